//! Robertson's reaction (1966) over eleven decades of t, and its sensitivities.

use super::{ALL, assert_falls, by_differences, relative};
use crate::ode::{GenericField, Method, Ode, VectorField};
use crate::vector_field;

vector_field! {
    /// ROBER. The same `d` occurs in two equations, so the sum of y is constant up to rounding.
    pub struct Rober<R> { pub k: [R; 3] }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (a, b, c) = (self.k[0] * y[0], self.k[1] * y[1] * y[1], self.k[2] * y[1] * y[2]);
        let d = a - c;
        [-d, d - b, b]
    }
}

vector_field! {
    /// ROBER as published. At t = 1e11, a and c are 4e9 times as large as their difference, so their rounding
    /// changes the sum of y.
    struct Published<R> { k: [R; 3] }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (a, b, c) = (self.k[0] * y[0], self.k[1] * y[1] * y[1], self.k[2] * y[1] * y[2]);
        [-a + c, a - b - c, b]
    }
}

const K: [f64; 3] = [0.04, 3e7, 1e4];

/// ROBER as a function.
pub fn rober(t: f64, y: &[f64; 3]) -> [f64; 3] {
    Rober::eval_f64(&Rober { k: K }, t, y)
}

/// ROBER with the last equation replaced by the conserved sum.
pub fn rober_dae(t: f64, y: &[f64; 3]) -> [f64; 3] {
    let dy = rober(t, y);
    [dy[0], dy[1], y[0] + y[1] + y[2] - 1.0]
}

pub const ROBER_40: [f64; 3] = [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01];
pub const ROBER_1E11: [f64; 3] = [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01];
const ENDS: [(f64, [f64; 3]); 4] = [
    (0.4, [9.85172113860989906e-01, 3.38639537897490419e-05, 1.47940221852203881e-02]),
    (40.0, ROBER_40),
    (4e5, [4.93827452097981515e-03, 1.98499408795437557e-08, 9.95061705629079252e-01]),
    (1e11, ROBER_1E11),
];

/// dy/dk1, dy/dk2 and dy/dk3 at t = 0.4, 40 and 4e5.
const SENSITIVITIES: [[[f64; 3]; 3]; 3] = [
    [
        [-3.55952565982855573e-01, 3.90254405381821841e-04, 3.55562311577473755e-01],
        [-1.58317663555763497e-11, -5.29004109321481472e-13, 1.63607704648978292e-11],
        [9.54238142784976915e-08, -2.13096103019364633e-10, -9.52107181754783209e-08],
    ],
    [
        [-4.24755877170573282e+00, 4.59119624925389384e-05, 4.24751285974323967e+00],
        [-2.28835508890566941e-09, -1.13805950935012730e-13, 2.28846889485660431e-09],
        [1.37308079734462482e-05, -2.35719211384633328e-10, -1.37305722542348626e-05],
    ],
    [
        [-2.36333732902316657e-01, -4.58407856062153099e-07, 2.36334191310172692e-01],
        [-1.57504845353563875e-10, -6.36251477842254960e-16, 1.57505481605041727e-10],
        [9.45027194043004417e-07, 1.83250715287399199e-12, -9.45029026550157322e-07],
    ],
];

/// The largest relative error at t1.
fn error<F: VectorField<[f64; 3]>>(ode: Ode<'_, [f64; 3], F>, (t1, end): (f64, [f64; 3]), rtol: f64) -> f64 {
    let ode = ode.method(Method::Rodas5P).rtol(rtol).atol(end.map(|y| 1e-2 * rtol * y));
    relative(&ode.solve(0.0, t1, [1.0, 0.0, 0.0]).unwrap().y1, &end)
}

#[test]
fn eleven_decades() {
    for end in ENDS {
        let name = format!("ROBER to {:e}", end.0);
        let rober = Rober { k: K };
        assert_falls(&name, ALL, 10.0, |rtol| error(Ode::from_generic(rober.clone()), end, rtol));
        let name = format!("{name} by differences");
        assert_falls(&name, ALL, 10.0, |rtol| error(by_differences(rober.clone()), end, rtol));
    }
}

/// Rounding of the published form limits the accuracy at t = 1e11. With dual numbers the error is at least
/// about 1e-9 (13 to 41 rtol at rtol = 1e-10 for three choices of atol). A Jacobian by differences does not
/// conserve the sum, so a solve takes 5,128 steps instead of 441 at rtol = 1e-7, and more than 100,000 at
/// 1e-10.
#[test]
fn published_form() {
    let published = Published { k: K };
    for (end, by_dual, by_difference) in [(ENDS[2], 10, 10), (ENDS[3], 8, 6)] {
        let name = format!("ROBER as published to {:e}", end.0);
        let dual = |rtol| error(Ode::from_generic(published.clone()), end, rtol);
        assert_falls(&name, 3..=by_dual, 10.0, dual);
        let name = format!("{name} by differences");
        assert_falls(&name, 3..=by_difference, 10.0, |rtol| {
            error(by_differences(published.clone()), end, rtol)
        });
    }
}

#[test]
fn sensitivities_are_those_of_the_variational_equations() {
    let y0 = [1.0, 0.0, 0.0];
    for ((t1, end), exact) in ENDS.into_iter().zip(&SENSITIVITIES) {
        let name = format!("sensitivities of ROBER to {t1:e}");
        assert_falls(&name, 5..=10, 10.0, |rtol| {
            let ode = Ode::from_generic(Rober { k: K }).method(Method::Rodas5P).rtol(rtol);
            let ode = ode.atol(end.map(|y| 1e-2 * rtol * y));
            let plain = ode.solve(0.0, t1, y0).unwrap();
            let found = ode.forward_sensitivity().solve(0.0, t1, y0).unwrap();
            assert_eq!((found.y1, found.stats.num_steps), (plain.y1, plain.stats.num_steps));
            relative(found.dy1_dp.k.as_flattened(), exact.as_flattened())
        });
    }
}
