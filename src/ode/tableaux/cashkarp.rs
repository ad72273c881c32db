//! Cash and Karp (1990), A variable order Runge-Kutta method for initial value problems with rapidly varying
//! right-hand sides, ACM TOMS 16, 201-222, p. 206; the pair of orders 5(4).
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Six stages, order 5 with an embedded solution of order 4.
#[rustfmt::skip]
pub const CASHKARP: ButcherTableau<'static> = ButcherTableau {
    name: "cashkarp",
    a: &[
        1.0 / 5.0,
        3.0 / 40.0, 9.0 / 40.0,
        3.0 / 10.0, -9.0 / 10.0, 6.0 / 5.0,
        -11.0 / 54.0, 5.0 / 2.0, -70.0 / 27.0, 35.0 / 27.0,
        1631.0 / 55296.0, 175.0 / 512.0, 575.0 / 13824.0, 44275.0 / 110592.0, 253.0 / 4096.0,
    ],
    b: &[37.0 / 378.0, 0.0, 250.0 / 621.0, 125.0 / 594.0, 0.0, 512.0 / 1771.0],
    // b_embedded = 2825/27648, 0, 18575/48384, 13525/55296, 277/14336, 1/4.
    b_err: Some(&[-277.0 / 64512.0, 0.0, 6925.0 / 370944.0, -6925.0 / 202752.0, -277.0 / 14336.0, 277.0 / 7084.0]),
    b_err_low: None,
    c: &[0.0, 1.0 / 5.0, 3.0 / 10.0, 3.0 / 5.0, 1.0, 7.0 / 8.0],
    order: 5,
    error_order: 5,
    kind: Kind::Explicit,
    dense: None,
};
