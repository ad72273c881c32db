//! Sommeijer, Shampine and Verwer (1998), RKC: an explicit solver for parabolic PDEs, J. Comput. Appl. Math.
//! 88, 315-326.
//!
//! The number of stages of a step depends on its size. The tableau therefore describes only the three vectors
//! that are stored after a step: f(t, y), the mean rate (y1 - y) / h, and f(t + h, y1). With these vectors
//! the method is first same as last. The error estimate is eq. (3.1) of the paper, `0.8 (y - y1) + 0.4 h
//! (f(t, y) + f(t + h, y1))`. Dense output is the cubic Hermite interpolant.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Order 2, stable on the negative real axis up to (s^2 - 1) / 1.54 with s stages.
#[rustfmt::skip]
pub const RKC2: ButcherTableau<'static> = ButcherTableau {
    name: "rkc2",
    a: &[
        0.0,
        0.0, 1.0,
    ],
    b: &[0.0, 1.0, 0.0],
    b_err: Some(&[0.4, -0.8, 0.4]),
    b_err_low: None,
    c: &[0.0, 0.0, 1.0],
    order: 2,
    error_order: 3,
    kind: Kind::Chebyshev,
    dense: None,
};
