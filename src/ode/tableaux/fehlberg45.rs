//! RKF4(5): Fehlberg (1969), Klassische Runge-Kutta-Formeln vierter und niedrigerer Ordnung mit
//! Schrittweiten-Kontrolle, Computing 6, 61-71; also Hairer, Norsett, Wanner (1993), table II.5.1. As in the
//! paper, the solution has order 4, and the order 5 solution is used only for the estimate.
use crate::ode::ButcherTableau;
use crate::ode::tableau::Kind;

/// Six stages, order 4 with an embedded solution of order 5.
#[rustfmt::skip]
pub const FEHLBERG45: ButcherTableau<'static> = ButcherTableau {
    name: "fehlberg45",
    a: &[
        1.0 / 4.0,
        3.0 / 32.0, 9.0 / 32.0,
        1932.0 / 2197.0, -7200.0 / 2197.0, 7296.0 / 2197.0,
        439.0 / 216.0, -8.0, 3680.0 / 513.0, -845.0 / 4104.0,
        -8.0 / 27.0, 2.0, -3544.0 / 2565.0, 1859.0 / 4104.0, -11.0 / 40.0,
    ],
    b: &[25.0 / 216.0, 0.0, 1408.0 / 2565.0, 2197.0 / 4104.0, -1.0 / 5.0, 0.0],
    // b_embedded = 16/135, 0, 6656/12825, 28561/56430, -9/50, 2/55.
    b_err: Some(&[-1.0 / 360.0, 0.0, 128.0 / 4275.0, 2197.0 / 75240.0, -1.0 / 50.0, -2.0 / 55.0]),
    b_err_low: None,
    c: &[0.0, 1.0 / 4.0, 3.0 / 8.0, 12.0 / 13.0, 1.0, 1.0 / 2.0],
    order: 4,
    error_order: 5,
    kind: Kind::Explicit,
    dense: None,
};
