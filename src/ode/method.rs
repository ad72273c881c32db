//! `Method`: the available methods, their names, and a table that compares them.

use super::{ButcherTableau, ConfigError, Interpolant, tableaux};
use std::fmt;
use std::str::FromStr;

/// An explicit Runge-Kutta method.
///
/// By tolerance: Tsit5 to 1e-6, Vern7 to 1e-9, Vern9 or Dop853 below; stiff: another library. Tsit5 is the default.
///
/// [`Method::table`] compares all methods: orders, stages, evaluations per step, dense output, and what each is for.
///
/// # Examples
/// ```
/// use flowline::prelude::*;
/// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).method(Method::Vern7).rtol(1e-10).atol(1e-10);
/// assert!((decay.solve(0.0, 1.0, [1.0])?.y1[0] - (-1.0_f64).exp()).abs() < 1e-9);
/// assert_eq!("vern7".parse::<Method>()?, Method::Vern7);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Euler's method.
    Euler,
    /// The explicit midpoint method.
    Midpoint,
    /// The explicit trapezoidal rule.
    Heun,
    /// The two-stage method of order 2 with the smallest error bound.
    Ralston,
    /// Shu and Osher's third order strong-stability-preserving method.
    Ssprk3,
    /// Bogacki and Shampine 3(2); `ode23`, `RK23` in other libraries.
    Bosh3,
    /// The classical method of order 4.
    Rk4,
    /// Fehlberg 4(5); `rkf45` in other libraries.
    Fehlberg45,
    /// Cash and Karp 5(4).
    CashKarp,
    /// Dormand and Prince 5(4); `ode45`, `RK45`, `dopri5` in other libraries.
    Dopri5,
    /// Tsitouras 5(4). The default.
    #[default]
    Tsit5,
    /// Verner's most efficient pair 7(6).
    Vern7,
    /// Dormand and Prince 8(5,3) by Hairer and Wanner; `DOP853` in other libraries.
    ///
    /// Its error estimate combines two estimates and can vanish at some step sizes on scalar problems. On y' =
    /// y cos t from 0 to 20, at 121 tolerances from 1e-4 to 1e-10, the ratio of error to tolerance has the
    /// median 8 and the maximum 5,300 (SciPy's DOP853: 7 and 3,100).
    Dop853,
    /// Verner's most efficient pair 9(8).
    Vern9,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 14] = [
        Method::Euler,
        Method::Midpoint,
        Method::Heun,
        Method::Ralston,
        Method::Ssprk3,
        Method::Bosh3,
        Method::Rk4,
        Method::Fehlberg45,
        Method::CashKarp,
        Method::Dopri5,
        Method::Tsit5,
        Method::Vern7,
        Method::Dop853,
        Method::Vern9,
    ];

    /// The Butcher tableau of the method.
    pub const fn tableau(self) -> &'static ButcherTableau<'static> {
        match self {
            Method::Euler => &tableaux::EULER,
            Method::Midpoint => &tableaux::MIDPOINT,
            Method::Heun => &tableaux::HEUN,
            Method::Ralston => &tableaux::RALSTON,
            Method::Ssprk3 => &tableaux::SSPRK3,
            Method::Bosh3 => &tableaux::BOSH3,
            Method::Rk4 => &tableaux::RK4,
            Method::Fehlberg45 => &tableaux::FEHLBERG45,
            Method::CashKarp => &tableaux::CASHKARP,
            Method::Dopri5 => &tableaux::DOPRI5,
            Method::Tsit5 => &tableaux::TSIT5,
            Method::Vern7 => &tableaux::VERN7,
            Method::Dop853 => &tableaux::DOP853,
            Method::Vern9 => &tableaux::VERN9,
        }
    }

    /// When to use it. A tolerance bound is where the next method reaches the same error with fewer
    /// evaluations, on Kepler, Lorenz, Lotka-Volterra, Van der Pol and a forced pendulum.
    pub const fn use_for(self) -> &'static str {
        match self {
            Method::Euler => "teaching and comparisons",
            Method::Midpoint => "two evaluations per step, constant steps",
            Method::Heun => "two evaluations per step, non-smooth fields",
            Method::Ralston => "two evaluations per step, with the smallest error bound",
            Method::Ssprk3 => "hyperbolic equations by the method of lines, constant steps",
            Method::Bosh3 => "low accuracy, tolerances above 1e-3",
            Method::Rk4 => "constant steps",
            Method::Fehlberg45 => "comparisons with older codes",
            Method::CashKarp => "comparisons with older codes",
            Method::Dopri5 => "comparisons with other libraries; else Tsit5",
            Method::Tsit5 => "the default: non-stiff problems, tolerances down to 1e-6",
            Method::Vern7 => "smooth fields, tolerances from 1e-6 to 1e-9",
            Method::Dop853 => "smooth fields, tolerances below 1e-9, cheaper dense output than Vern9",
            Method::Vern9 => "smooth fields, tolerances below 1e-9",
        }
    }

    /// One sentence on choosing a method, the same in every document.
    pub const ADVICE: &str = "Tsit5 to 1e-6, Vern7 to 1e-9, Vern9 or Dop853 below; stiff: another library.";

    /// A Markdown table of all methods, followed by the [advice](Method::ADVICE).
    pub fn table() -> String {
        let head = "| method | order | embedded | stages | evaluations | FSAL | dense order | when to use it |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        let rows: String = Method::ALL.into_iter().map(|method| method.line() + "\n").collect();
        format!("{head}{rows}\nBy tolerance: {}\n", Method::ADVICE)
    }

    fn line(self) -> String {
        let tableau = self.tableau();
        let (stages, interpolant) = (tableau.num_stages(), Interpolant::of(tableau));
        let more = interpolant.num_stages() - stages - usize::from(interpolant.starts_with_f1());
        let cells = [
            format!("{self:?}"),
            tableau.order.to_string(),
            self.embedded_orders().into(),
            stages.to_string(),
            (stages - usize::from(tableau.is_fsal())).to_string(),
            if tableau.is_fsal() { "yes".into() } else { String::new() },
            interpolant.order().to_string() + &if more == 0 { String::new() } else { format!(" (+{more})") },
            self.use_for().into(),
        ];
        format!("| {} |", cells.join(" | "))
    }

    /// The orders of the embedded solutions of the error estimates.
    fn embedded_orders(self) -> &'static str {
        match self {
            Method::Euler | Method::Ssprk3 | Method::Rk4 => "",
            Method::Midpoint | Method::Heun | Method::Ralston => "1",
            Method::Bosh3 => "2",
            Method::CashKarp | Method::Dopri5 | Method::Tsit5 => "4",
            Method::Fehlberg45 => "5",
            Method::Vern7 => "6",
            Method::Dop853 => "5 and 3",
            Method::Vern9 => "8",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tableau().name)
    }
}

impl FromStr for Method {
    type Err = ConfigError;

    /// The method of a name, in upper or lower case.
    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let same = |method: &Method| method.tableau().name.eq_ignore_ascii_case(name);
        Method::ALL.into_iter().find(same).ok_or_else(|| ConfigError::UnknownMethod {
            name: name.into(),
            known: Method::ALL.map(|method| method.tableau().name).join(", "),
        })
    }
}
