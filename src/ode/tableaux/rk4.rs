//! The classical method of order 4: Kutta (1901); Hairer, Norsett, Wanner (1993), table II.1.2.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Four stages, order 4, no error estimate.
#[rustfmt::skip]
pub const RK4: ButcherTableau<'static> = ButcherTableau {
    name: "rk4",
    a: &[
        0.5,
        0.0, 0.5,
        0.0, 0.0, 1.0,
    ],
    b: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
    b_err: None,
    b_err_low: None,
    c: &[0.0, 0.5, 0.5, 1.0],
    order: 4,
    error_order: 4,
    kind: Kind::Explicit,
    dense: None,
};
