//! Bogacki and Shampine (1989), A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2, 321-325.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Four stages, first same as last, order 3 with an embedded solution of order 2.
#[rustfmt::skip]
pub const BOSH3: ButcherTableau<'static> = ButcherTableau {
    name: "bosh3",
    a: &[
        1.0 / 2.0,
        0.0, 3.0 / 4.0,
        2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0,
    ],
    b: &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0, 0.0],
    // b_embedded = 7/24, 1/4, 1/3, 1/8.
    b_err: Some(&[-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0]),
    b_err_low: None,
    c: &[0.0, 1.0 / 2.0, 3.0 / 4.0, 1.0],
    order: 3,
    error_order: 3,
    kind: Kind::Explicit,
    dense: None,
};
