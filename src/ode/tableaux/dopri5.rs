//! RK5(4)7M: Dormand and Prince (1980), A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6,
//! 19-26, table 2; also Hairer, Norsett, Wanner (1993), table II.5.2. The interpolant is Shampine's (1986),
//! as in the code `dopri5.f` of that book: `BEYOND` is its `d1` to `d7`.
use crate::ode::tableau::{Kind, through_both_ends};
use crate::ode::{ButcherTableau, DenseTableau};

/// Seven stages, first same as last, order 5 with an embedded solution of order 4, an interpolant of order 4.
#[rustfmt::skip]
pub const DOPRI5: ButcherTableau<'static> = ButcherTableau {
    name: "dopri5",
    a: &[
        1.0 / 5.0,
        3.0 / 40.0, 9.0 / 40.0,
        44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0,
        19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0,
        9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0,
        35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0,
    ],
    b: &B,
    // b_embedded = 5179/57600, 0, 7571/16695, 393/640, -92097/339200, 187/2100, 1/40.
    b_err: Some(&[
        71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0,
    ]),
    b_err_low: None,
    c: &[0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0],
    order: 5,
    error_order: 5,
    kind: Kind::Explicit,
    dense: Some(DenseTableau {
        extra_a: &[],
        extra_c: &[],
        weights: &through_both_ends::<{ 7 * 4 }>(&B, 6, &BEYOND),
        degree: 4,
        order: 4,
    }),
};

const B: [f64; 7] = [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0, 0.0];

const BEYOND: [f64; 7] = [
    -12715105075.0 / 11282082432.0,
    0.0,
    87487479700.0 / 32700410799.0,
    -10690763975.0 / 1880347072.0,
    701980252875.0 / 199316789632.0,
    -1453857185.0 / 822651844.0,
    69997945.0 / 29380423.0,
];
