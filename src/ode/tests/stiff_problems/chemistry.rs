//! Chemical reactions: POLLU of the CWI test set, and E5.

use super::{ALL, assert_falls, by_differences, relative};
use crate::ode::{Method, Ode, VectorField};
use crate::vector_field;

vector_field! {
    /// Air pollution by Verwer (1994): 20 species, 25 reactions with rates `k`.
    pub struct Pollu<R> { k: [R; 25] }
    fn eval(&self, _t, y: &[R; 20]) -> [R; 20] {
        let k = &self.k;
        let r = [
            k[0] * y[0], k[1] * y[1] * y[3], k[2] * y[4] * y[1], k[3] * y[6], k[4] * y[6],
            k[5] * y[6] * y[5], k[6] * y[8], k[7] * y[8] * y[5], k[8] * y[10] * y[1], k[9] * y[10] * y[0],
            k[10] * y[12], k[11] * y[9] * y[1], k[12] * y[13], k[13] * y[0] * y[5], k[14] * y[2],
            k[15] * y[3], k[16] * y[3], k[17] * y[15], k[18] * y[15], k[19] * y[16] * y[5],
            k[20] * y[18], k[21] * y[18], k[22] * y[0] * y[3], k[23] * y[18] * y[0], k[24] * y[19],
        ];
        [
            -r[0] - r[9] - r[13] - r[22] - r[23] + r[1] + r[2] + r[8] + r[10] + r[11] + r[21] + r[24],
            -r[1] - r[2] - r[8] - r[11] + r[0] + r[20],
            -r[14] + r[0] + r[16] + r[18] + r[21],
            -r[1] - r[15] - r[16] - r[22] + r[14],
            -r[2] + 2.0 * r[3] + r[5] + r[6] + r[12] + r[19],
            -r[5] - r[7] - r[13] - r[19] + r[2] + 2.0 * r[17],
            -r[3] - r[4] - r[5] + r[12],
            r[3] + r[4] + r[5] + r[6],
            -r[6] - r[7],
            -r[11] + r[6] + r[8],
            -r[8] - r[9] + r[7] + r[10],
            r[8],
            -r[10] + r[9],
            -r[12] + r[11],
            r[13],
            -r[17] - r[18] + r[15],
            -r[19],
            r[19],
            -r[20] - r[21] - r[23] + r[22] + r[24],
            -r[24] + r[23],
        ]
    }
}

pub const POLLU: Pollu = Pollu {
    k: [
        0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3, 0.022, 1.2e4, 1.88, 1.63e4,
        4.8e6, 3.5e-4, 0.0175, 1e8, 4.44e11, 1.24e3, 2.1, 5.78, 0.0474, 1.78e3, 3.12,
    ],
};
const POLLU_60: [f64; 20] = [
    5.64625548002276947e-02,
    1.34248413042233838e-01,
    4.13973433109942663e-09,
    5.52314020748435972e-03,
    2.01897726230219596e-07,
    1.46454186349396573e-07,
    7.78424911899796429e-02,
    3.24507535339601805e-01,
    7.49401338388040565e-03,
    1.62229315730156053e-08,
    1.13586383325707477e-08,
    2.23050597572135986e-03,
    2.08716288279862992e-04,
    1.39692101684015771e-05,
    8.96488485689829473e-03,
    4.35284636933010379e-18,
    6.89921969626340528e-03,
    1.00780303736594599e-04,
    1.77214651396998444e-06,
    5.68294329231639324e-05,
];

/// The largest relative error at t = 60. The species range from 1e-18 to 0.3.
pub fn pollu<F: VectorField<[f64; 20]>>(ode: Ode<'_, [f64; 20], F>, rtol: f64) -> f64 {
    let mut y0 = [0.0; 20];
    (y0[1], y0[3], y0[6], y0[7], y0[8], y0[16]) = (0.2, 0.04, 0.1, 0.3, 0.01, 0.007);
    relative(&ode.rtol(rtol).atol(1e-10 * rtol).solve(0.0, 60.0, y0).unwrap().y1, &POLLU_60)
}

#[test]
fn air_pollution() {
    let method = Method::Rodas5P;
    assert_falls("POLLU", ALL, 10.0, |rtol| pollu(Ode::from_generic(POLLU).method(method), rtol));
    assert_falls("POLLU by differences", ALL, 10.0, |rtol| pollu(by_differences(POLLU).method(method), rtol));
}

vector_field! {
    /// E5 (Enright, Hull, Lindberg 1975): y1, y3 and y4; y2 = y3 + y4.
    struct E5<R> { a: R, b: R, c: R, mc: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (first, second) = (self.a * y[0], self.b * y[0] * y[1]);
        let (third, fourth) = (self.mc * (y[1] + y[2]) * y[1], self.c * y[2]);
        [-first - second, first - second - third + fourth, second - fourth]
    }
}

const E5: E5 = E5 { a: 7.89e-10, b: 1.1e7, c: 1.13e3, mc: 1.13e9 };

/// y1 to y4 at t1. The components differ by many orders of magnitude, so each has its own atol.
fn e5(t1: f64, rtol: f64) -> [f64; 4] {
    let ode = Ode::from_generic(E5).method(Method::Rodas5P).rtol(rtol);
    let ode = ode.atol([1e-16 * rtol, 1e-24 * rtol, 1e-28 * rtol]);
    let [y1, y3, y4] = ode.solve(0.0, t1, [1.76e-3, 0.0, 0.0]).unwrap().y1;
    [y1, y3 + y4, y3, y4]
}

/// y1 to y4 at t = 1e5 and 1e9.
const E5_ENDS: [(f64, [f64; 4]); 2] = [
    (
        1e5,
        [7.48132082242922144e-06, 2.37347815612059798e-12, 2.21235866895816710e-12, 1.61119487162431178e-13],
    ),
    (
        1e9,
        [3.13171483293569963e-14, 1.48409579528700654e-16, 1.48409579483456918e-16, 4.52437282797826228e-26],
    ),
];

#[test]
fn species_that_fall_through_fourteen_decades() {
    for (t1, exact) in E5_ENDS {
        assert_falls(&format!("E5 to {t1:e}"), ALL, 10.0, |rtol| relative(&e5(t1, rtol), &exact));
    }
    // y1 and y4 are negligible, so y2 and y3 are compared.
    for (t1, exact) in [(1e11, 1.01925825681427061e-20), (1e13, 8.86123352129108452e-23)] {
        assert_falls(&format!("E5 to {t1:e}"), ALL, 10.0, |rtol| relative(&e5(t1, rtol)[1..3], &[exact; 2]));
    }
}
