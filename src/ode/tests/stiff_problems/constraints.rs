//! Chemical Akzo Nobel of the CWI test set. Its algebraic equation is eliminated by hand, or solved by the
//! method.

use super::{ALL, assert_falls, relative};
use crate::ode::{Mass, Method, Ode};
use crate::vector_field;

/// The reaction rates k1 to k4.
const RATES: [f64; 4] = [18.7, 0.58, 0.09, 0.42];
/// The coefficient of the algebraic equation y6 = SOLUBILITY y1 y4.
const SOLUBILITY: f64 = 115.83;

/// y1' to y5' as functions of y1 to y5 and y6.
macro_rules! reactions {
    ($k:expr, $y:expr, $y6:expr) => {{
        let (k, y, y6) = ($k, $y, $y6);
        let r = [
            k[0] * y[0].powi(4) * y[1].sqrt(),
            k[1] * y[2] * y[3],
            k[1] / 34.4 * y[0] * y[4],
            k[2] * y[0] * y[3].square(),
            k[3] * y6.square() * y[1].sqrt(),
        ];
        let inflow = 3.3 * (0.9 / 737.0 - y[1]);
        [
            -2.0 * r[0] + r[1] - r[2] - r[3],
            -0.5 * r[0] - r[3] - 0.5 * r[4] + inflow,
            r[0] - r[1] + r[2],
            -r[1] + r[2] - 2.0 * r[3],
            r[1] - r[2] + r[4],
        ]
    }};
}

vector_field! {
    /// Five equations: y6 is eliminated.
    struct Eliminated<R> { k: [R; 4], solubility: R }
    fn eval(&self, _t, y: &[R; 5]) -> [R; 5] {
        reactions!(self.k, y, self.solubility * y[0] * y[3])
    }
}

vector_field! {
    /// Six equations, the last one algebraic.
    struct Constrained<R> { k: [R; 4], solubility: R }
    fn eval(&self, _t, y: &[R; 6]) -> [R; 6] {
        let [a, b, c, d, e] = reactions!(self.k, y, y[5]);
        [a, b, c, d, e, self.solubility * y[0] * y[3] - y[5]]
    }
}

const END: [f64; 5] = [
    1.15079492066170214e-01,
    1.20383147156771504e-03,
    1.61156288740797432e-01,
    3.65615642124928278e-04,
    1.70801088526440423e-02,
];

const START: [f64; 5] = [0.444, 0.00123, 0.0, 0.007, 0.0];

/// The five components and y6.
fn extended([a, b, c, d, e]: [f64; 5]) -> [f64; 6] {
    [a, b, c, d, e, SOLUBILITY * a * d]
}

#[test]
fn an_algebraic_equation_by_hand_and_by_the_method() {
    assert_falls("AKZO, 5 equations", ALL, 10.0, |rtol| {
        let ode = Ode::from_generic(Eliminated { k: RATES, solubility: SOLUBILITY }).method(Method::Rodas5P);
        relative(&ode.rtol(rtol).atol(1e-4 * rtol).solve(0.0, 180.0, START).unwrap().y1, &END)
    });
    for (method, exponents) in [(Method::Rodas5P, ALL), (Method::Rosenbrock23, 3..=6)] {
        assert_falls(&format!("AKZO, 6 equations, {method}"), exponents, 10.0, |rtol| {
            let ode = Ode::from_generic(Constrained { k: RATES, solubility: SOLUBILITY }).method(method);
            let ode = ode.mass_matrix(Mass::diagonal([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]));
            let ode = ode.rtol(rtol).atol(1e-4 * rtol);
            relative(&ode.solve(0.0, 180.0, extended(START)).unwrap().y1, &extended(END))
        });
    }
}
