//! Euler's method (1768), order 1.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// `y1 = y + h f(t, y)`.
pub const EULER: ButcherTableau<'static> = ButcherTableau {
    name: "euler",
    a: &[],
    b: &[1.0],
    b_err: None,
    b_err_low: None,
    c: &[0.0],
    order: 1,
    error_order: 1,
    kind: Kind::Explicit,
    dense: None,
};
