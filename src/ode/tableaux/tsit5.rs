//! Tsitouras (2011), Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption,
//! Comput. Math. Appl. 62, 770-775, table 1; digits beyond the paper's 16 as published by P. Stone, Peter
//! Stone's Maple worksheets, RKcoeff5n_1 (rounded here to 32). The interpolant is from the paper's section 4:
//! `BEYOND` holds the leading coefficient of each of its polynomials; y1 and the derivatives at the ends
//! determine the other coefficients.
use crate::ode::tableau::{Kind, through_both_ends};
use crate::ode::{ButcherTableau, DenseTableau};

/// Seven stages, first same as last, order 5 with an embedded solution of order 4 and small error constants,
/// an interpolant of order 4.
#[rustfmt::skip]
pub const TSIT5: ButcherTableau<'static> = ButcherTableau {
    name: "tsit5",
    a: &[
        0.161,
        -0.0084806554923569885444268742502308, 0.33548065549235698854442687425023,
        2.8971530571054934321304325941929, -6.3594484899750748431481599123838, 4.3622954328695814110177273181909,
        5.3258648284392566044288779208405, -11.748883564062827877747170339786, 7.4955393428898362083046047845644,
        -0.092495066361755249256502079332072,
        5.8614554429464200286592514869826, -12.920969317847109291706118681783, 8.1593678985761586431804007945393,
        -0.071584973281400997224530542525830, -0.028269050394068382909003057212712,
        0.096460766818065229518167313165129, 0.01, 0.47988965041449957477524953229059,
        1.3790085741037418931922748218569, -3.2900695154360806799010475857114, 2.3247105240997739824153559183988,
    ],
    b: &B,
    // b - b_embedded, subtracted in 100 digits: the difference in f64 would lose three digits.
    b_err: Some(&[
        0.0017800110522257714433785506075395, 0.00081643445965674690322363606335469,
        -0.0078808780102619960103147276725263, 0.14471100717326290753716514797264,
        -0.58235716545255522501993761065204, 0.45808210592918694666163651883255, -1.0 / 66.0,
    ]),
    b_err_low: None,
    c: &[0.0, 0.161, 0.327, 0.9, 0.98002554090450968572981028628702, 1.0, 1.0],
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

#[rustfmt::skip]
const B: [f64; 7] = [
    0.096460766818065229518167313165129, 0.01, 0.47988965041449957477524953229059,
    1.3790085741037418931922748218569, -3.2900695154360806799010475857114, 2.3247105240997739824153559183988, 0.0,
];

#[rustfmt::skip]
const BEYOND: [f64; 7] = [
    -1.0530884977290216, 0.1017, 2.490627285651252793, -16.54810288924490272, 47.37952196281928122,
    -34.87065786149660974, 2.5,
];
