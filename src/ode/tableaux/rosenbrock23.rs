//! Shampine and Reichelt (1997), The MATLAB ODE Suite, SIAM J. Sci. Comput. 18, 1-22, section 3 (`ode23s`):
//! the method's numbers in the transformed form, derived in 60 digits from `gamma = 1 / (2 + sqrt 2)`, `e32 =
//! 6 + sqrt 2` and the paper's interpolant.
use crate::ode::tableau::{Kind, Rosenbrock};
use crate::ode::{ButcherTableau, DenseTableau};

const GAMMA: f64 = 0.292893218813452475599155637895;
/// 2 + sqrt 2.
const M: f64 = 3.414213562373095048801688724210;

/// Three stages, order 2 with any matrix in place of the Jacobian, an interpolant of order 2. The error
/// estimate is proportional to h^3. The stability function R has R(infinity) = 0.
#[rustfmt::skip]
pub const ROSENBROCK23: ButcherTableau<'static> = ButcherTableau {
    name: "rosenbrock23",
    a: &[
        1.707106781186547524400844362105,
        M, M,
    ],
    b: &[M, M, 0.0],
    b_err: Some(&[
        0.569035593728849174800281454035, 3.080880229039761715468355390876, 0.569035593728849174800281454035,
    ]),
    b_err_low: None,
    c: &[0.0, 0.5, 1.0],
    order: 2,
    error_order: 3,
    kind: Kind::Rosenbrock(Rosenbrock {
        gamma: GAMMA,
        d: &[GAMMA, 0.0, -GAMMA],
        coupling: &[
            -M,
            -2.0 * M, -25.313708498984760390413509793678,
        ],
    }),
    dense: Some(DenseTableau {
        extra_a: &[],
        extra_c: &[],
        weights: &[
            M, 0.0,
            M, -8.242640687119285146405066172629,
            0.0, 0.0,
        ],
        degree: 2,
        order: 2,
    }),
};
