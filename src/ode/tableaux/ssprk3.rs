//! SSPRK(3,3): Shu and Osher (1988), Efficient implementation of essentially non-oscillatory shock-capturing
//! schemes, J. Comput. Phys. 77, 439-471, eq. 2.18, written as a tableau. It has no error estimate.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Three stages, order 3, strong stability preserving with coefficient 1, no error estimate.
#[rustfmt::skip]
pub const SSPRK3: ButcherTableau<'static> = ButcherTableau {
    name: "ssprk3",
    a: &[
        1.0,
        0.25, 0.25,
    ],
    b: &[1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0],
    b_err: None,
    b_err_low: None,
    c: &[0.0, 1.0, 0.5],
    order: 3,
    error_order: 3,
    kind: Kind::Explicit,
    dense: None,
};
