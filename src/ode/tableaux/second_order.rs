//! The two-stage methods of order 2: Runge (1895) and Heun (1900), in Hairer, Norsett, Wanner (1993), section
//! II.1; Ralston (1962), Runge-Kutta methods with minimum error bounds, Math. Comp. 16, 431-437. The embedded
//! solution of each is Euler's method, which costs no extra stage.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// The explicit midpoint method.
pub const MIDPOINT: ButcherTableau<'static> = ButcherTableau {
    name: "midpoint",
    a: &[0.5],
    b: &[0.0, 1.0],
    b_err: Some(&[-1.0, 1.0]),
    b_err_low: None,
    c: &[0.0, 0.5],
    order: 2,
    error_order: 2,
    kind: Kind::Explicit,
    dense: None,
};

/// The explicit trapezoidal rule.
pub const HEUN: ButcherTableau<'static> = ButcherTableau {
    name: "heun",
    a: &[1.0],
    b: &[0.5, 0.5],
    b_err: Some(&[-0.5, 0.5]),
    b_err_low: None,
    c: &[0.0, 1.0],
    order: 2,
    error_order: 2,
    kind: Kind::Explicit,
    dense: None,
};

/// The two-stage method with the smallest bound of the local error.
pub const RALSTON: ButcherTableau<'static> = ButcherTableau {
    name: "ralston",
    a: &[2.0 / 3.0],
    b: &[0.25, 0.75],
    b_err: Some(&[-0.75, 0.75]),
    b_err_low: None,
    c: &[0.0, 2.0 / 3.0],
    order: 2,
    error_order: 2,
    kind: Kind::Explicit,
    dense: None,
};
