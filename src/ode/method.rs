//! `Method`: the available methods, their names, and a table that compares them.

use super::{ButcherTableau, ConfigError, Interpolant, tableaux};
use std::fmt;
use std::str::FromStr;

/// A method: fourteen explicit Runge-Kutta methods, and four for stiff problems.
///
/// By tolerance: Tsit5 to 1e-4, Vern7 to 1e-7, Vern9 or Dop853 below; stiff: Rodas5P. Tsit5 is the default.
///
/// [`Method::table`] compares all methods: orders, stages, evaluations per step, dense output, and when to
/// use each.
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
    #[doc(alias = "SSPRK33")]
    Ssprk3,
    /// Bogacki and Shampine 3(2); `BS3`, `ode23`, `RK23` in other libraries.
    #[doc(alias = "Bs3")]
    #[doc(alias = "RK23")]
    #[doc(alias = "ode23")]
    Bosh3,
    /// The classical method of order 4.
    Rk4,
    /// Fehlberg 4(5); `rkf45` in other libraries.
    #[doc(alias = "rkf45")]
    Fehlberg45,
    /// Cash and Karp 5(4).
    #[doc(alias = "rkck")]
    CashKarp,
    /// Dormand and Prince 5(4); `ode45`, `RK45`, `dopri5` in other libraries.
    #[doc(alias = "DP5")]
    #[doc(alias = "RK45")]
    #[doc(alias = "ode45")]
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
    #[doc(alias = "DP8")]
    #[doc(alias = "dopri8")]
    Dop853,
    /// Verner's most efficient pair 9(8).
    Vern9,
    /// Steinebach's Rosenbrock method 5(4) for stiff problems and differential-algebraic equations of index 1;
    /// `Rodas5P` of SciML.
    ///
    /// A step takes eight stages. Each solves a linear system with the same matrix `M / gamma - h J`, so
    /// there is no iteration that can fail. The matrix is factored once per attempt. The Jacobian J is
    /// computed once per accepted step; in ensembles and on tensors, once per attempt.
    #[doc(alias = "stiff")]
    #[doc(alias = "KenCarp4")]
    Rodas5P,
    /// Shampine and Reichelt's Rosenbrock method of order 2 for stiff problems at loose tolerances; `ode23s` of MATLAB.
    #[doc(alias = "ode23s")]
    Rosenbrock23,
    /// The Runge-Kutta-Chebyshev method of order 2 by Sommeijer, Shampine and Verwer; `RKC` in other
    /// libraries. It is explicit and needs no Jacobian. It is for problems such as diffusion, whose Jacobian
    /// has its eigenvalues near the negative real axis.
    Rkc2,
    /// [`Tsit5`](Method::Tsit5) while the problem is not stiff, [`Rodas5P`](Method::Rodas5P) while it is;
    /// `AutoTsit5(Rodas5P())` of SciML.
    AutoTsit5Rodas5P,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 18] = [
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
        Method::Rodas5P,
        Method::Rosenbrock23,
        Method::Rkc2,
        Method::AutoTsit5Rodas5P,
    ];

    /// The explicit Runge-Kutta methods.
    #[cfg(test)]
    pub(crate) const EXPLICIT: [Method; 14] =
        *Method::ALL.first_chunk().expect("fourteen of them come first");

    /// Whether this is one of the fourteen explicit Runge-Kutta methods.
    pub const fn is_explicit(self) -> bool {
        !matches!(self, Method::Rodas5P | Method::Rosenbrock23 | Method::Rkc2 | Method::AutoTsit5Rodas5P)
    }

    /// The tableau of the method; for a method that switches, the tableau of the first method.
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
            Method::Rodas5P => &tableaux::RODAS5P,
            Method::Rosenbrock23 => &tableaux::ROSENBROCK23,
            Method::Rkc2 => &tableaux::RKC2,
            Method::AutoTsit5Rodas5P => &tableaux::AUTO_TSIT5,
        }
    }

    /// When to use the method. Beyond the tolerances given, another method reaches the same error with fewer
    /// evaluations, counted on 20 problems (`cargo bench --bench work_precision -- --counts`).
    pub const fn use_for(self) -> &'static str {
        match self {
            Method::Euler => "teaching and comparisons",
            Method::Midpoint => "two evaluations per step, constant steps",
            Method::Heun => "two evaluations per step, non-smooth fields",
            Method::Ralston => "two evaluations per step, with the smallest error bound",
            Method::Ssprk3 => "hyperbolic equations by the method of lines, constant steps",
            Method::Bosh3 => "comparisons with other libraries; else Tsit5",
            Method::Rk4 => "constant steps",
            Method::Fehlberg45 => "comparisons with older codes",
            Method::CashKarp => "comparisons with older codes",
            Method::Dopri5 => "comparisons with other libraries; else Tsit5",
            Method::Tsit5 => "the default: non-stiff problems, tolerances down to 1e-4; non-smooth fields",
            Method::Vern7 => "smooth fields, tolerances from 1e-4 to 1e-7",
            Method::Dop853 => "smooth fields, tolerances below 1e-7, cheaper dense output than Vern9",
            Method::Vern9 => "smooth fields, tolerances below 1e-7",
            Method::Rodas5P => "stiff problems, constraints: start here",
            Method::Rosenbrock23 => "stiff problems, tolerances above 1e-2",
            Method::Rkc2 => "diffusion, many components, no Jacobian",
            Method::AutoTsit5Rodas5P => "problems that are stiff at times",
        }
    }

    /// One sentence on choosing a method, the same in every document.
    pub const ADVICE: &str = "Tsit5 to 1e-4, Vern7 to 1e-7, Vern9 or Dop853 below; stiff: Rodas5P.";

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
            if self == Method::Rkc2 { "s".into() } else { stages.to_string() },
            self.evals(),
            if tableau.is_fsal() { "yes".into() } else { String::new() },
            interpolant.order().to_string() + &if more == 0 { String::new() } else { format!(" (+{more})") },
            self.use_for().into(),
        ];
        format!("| {} |", cells.join(" | "))
    }

    /// Evaluations per accepted step, for the table.
    fn evals(self) -> String {
        let tableau = self.tableau();
        let evals = tableau.num_stages() - usize::from(tableau.is_fsal());
        match self {
            Method::Rkc2 => "s".into(),
            Method::Rodas5P | Method::Rosenbrock23 => format!("{evals} and J"),
            _ => evals.to_string(),
        }
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
            Method::Rodas5P | Method::AutoTsit5Rodas5P => "4",
            Method::Rosenbrock23 => "3",
            Method::Rkc2 => "2",
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

    /// Returns the method with this name, in upper or lower case.
    fn from_str(name: &str) -> Result<Self, ConfigError> {
        // Slices, not arrays: with loops over 18 methods unrolled, LLVM takes 20 seconds for this function.
        let all: &[Method] = std::hint::black_box(&Method::ALL);
        let known = || all.iter().map(|method| method.tableau().name).collect::<Vec<_>>().join(", ");
        let found = all.iter().find(|method| method.tableau().name.eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| ConfigError::UnknownMethod { name: name.into(), known: known() })
    }
}
