//! `Method`: the methods to choose from, and their names.

use super::{ButcherTableau, OdeError, tableaux};
use std::fmt;
use std::str::FromStr;

/// An explicit Runge-Kutta method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Euler's method: order 1, one stage, no error estimate.
    Euler,
    /// The classical method: order 4, four stages, no error estimate.
    Rk4,
    /// Tsitouras 5(4): order 5, six evaluations a step, smaller errors than Dopri5. The default.
    #[default]
    Tsit5,
    /// Dormand and Prince 5(4): order 5, six evaluations a step; `ode45`, `RK45`, `dopri5` of other libraries.
    Dopri5,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 4] = [Method::Euler, Method::Rk4, Method::Tsit5, Method::Dopri5];

    /// The method's numbers.
    pub const fn tableau(self) -> &'static ButcherTableau {
        match self {
            Method::Euler => &tableaux::EULER,
            Method::Rk4 => &tableaux::RK4,
            Method::Tsit5 => &tableaux::TSIT5,
            Method::Dopri5 => &tableaux::DOPRI5,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tableau().name)
    }
}

impl FromStr for Method {
    type Err = OdeError;

    /// The method of a name, in upper or lower case.
    fn from_str(name: &str) -> Result<Self, OdeError> {
        let same = |method: &Method| method.tableau().name.eq_ignore_ascii_case(name);
        Method::ALL.into_iter().find(same).ok_or_else(|| OdeError::UnknownMethod {
            name: name.into(),
            known: Method::ALL.map(|method| method.tableau().name).join(", "),
        })
    }
}
