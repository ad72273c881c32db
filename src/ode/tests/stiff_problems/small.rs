//! HIRES, the Oregonator and van der Pol's oscillator, with Jacobians by dual numbers and by differences.

use super::{ALL, assert_falls, by_differences, relative};
use crate::ode::{Method, Ode, VectorField};
use crate::vector_field;

vector_field! {
    /// HIRES of the CWI test set: the growth of a plant in light.
    pub struct Hires<R> { binding: R }
    fn eval(&self, _t, y: &[R; 8]) -> [R; 8] {
        let bound = self.binding * y[5] * y[7];
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -bound + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            bound - 1.81 * y[6],
            -bound + 1.81 * y[6],
        ]
    }
}
pub const HIRES: Hires = Hires { binding: 280.0 };
const HIRES_END: [f64; 8] = [
    7.37131257332566741e-04,
    1.44248572631618479e-04,
    5.88872974096757516e-05,
    1.17565134328314908e-03,
    2.38635619883133037e-03,
    6.23896825274279556e-03,
    2.84999839518576895e-03,
    2.85000160481423126e-03,
];

/// The largest relative error at t = 321.8122.
pub fn hires<F: VectorField<[f64; 8]>>(ode: Ode<'_, [f64; 8], F>, rtol: f64) -> f64 {
    let y0 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057];
    relative(&ode.rtol(rtol).atol(1e-4 * rtol).solve(0.0, 321.8122, y0).unwrap().y1, &HIRES_END)
}

vector_field! {
    /// The Oregonator of the CWI test set.
    pub struct Orego<R> { s: R, q: R, w: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [
            self.s * (y[1] + y[0] * (1.0 - self.q * y[0] - y[1])),
            (y[2] - (1.0 + y[0]) * y[1]) / self.s,
            self.w * (y[0] - y[2]),
        ]
    }
}
pub const OREGO: Orego = Orego { s: 77.27, q: 8.375e-6, w: 0.161 };
pub const OREGO_ENDS: [(f64, [f64; 3]); 2] = [
    (30.0, [1.00066146718049676e+00, 1.51277893734825034e+03, 1.03585431276722757e+04]),
    (360.0, [1.00081487031852268e+00, 1.22817852154988805e+03, 1.32055494284650820e+02]),
];

/// The largest relative error at t1.
pub fn orego<F: VectorField<[f64; 3]>>(
    ode: Ode<'_, [f64; 3], F>,
    (t1, end): (f64, [f64; 3]),
    rtol: f64,
) -> f64 {
    relative(&ode.rtol(rtol).atol(1e-2 * rtol).solve(0.0, t1, [1.0, 2.0, 3.0]).unwrap().y1, &end)
}

vector_field! {
    /// Van der Pol's oscillator.
    pub struct VanDerPol<R> { epsilon: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) / self.epsilon]
    }
}
pub const VDPOL: VanDerPol = VanDerPol { epsilon: 1e-6 };
pub const VDPOL_ENDS: [(f64, [f64; 2]); 3] = [
    (0.5, [1.59676895105266170e+00, -1.03039118783935679e+00]),
    (1.0, [-1.86364625480813384e+00, 7.53543086543543406e-01]),
    (2.0, [1.70616773217046491e+00, -8.92809701024816604e-01]),
];

/// The largest relative error at t1.
pub fn vdpol<F: VectorField<[f64; 2]>>(
    ode: Ode<'_, [f64; 2], F>,
    (t1, end): (f64, [f64; 2]),
    rtol: f64,
) -> f64 {
    relative(&ode.rtol(rtol).atol(rtol).solve(0.0, t1, [2.0, 0.0]).unwrap().y1, &end)
}

#[test]
fn growth_of_a_plant() {
    let method = Method::Rodas5P;
    assert_falls("HIRES", ALL, 10.0, |rtol| hires(Ode::from_generic(HIRES).method(method), rtol));
    assert_falls("HIRES by differences", ALL, 10.0, |rtol| hires(by_differences(HIRES).method(method), rtol));
}

#[test]
fn oregonator() {
    let method = Method::Rodas5P;
    for end in OREGO_ENDS {
        let name = format!("OREGO to {}", end.0);
        assert_falls(&name, ALL, 10.0, |rtol| orego(Ode::from_generic(OREGO).method(method), end, rtol));
        let name = format!("{name} by differences");
        assert_falls(&name, ALL, 10.0, |rtol| orego(by_differences(OREGO).method(method), end, rtol));
    }
}

#[test]
fn oscillator_of_van_der_pol() {
    let method = Method::Rodas5P;
    for end in VDPOL_ENDS {
        let name = format!("VDPOL to {}", end.0);
        assert_falls(&name, ALL, 10.0, |rtol| vdpol(Ode::from_generic(VDPOL).method(method), end, rtol));
        let name = format!("{name} by differences");
        assert_falls(&name, ALL, 10.0, |rtol| vdpol(by_differences(VDPOL).method(method), end, rtol));
    }
}
