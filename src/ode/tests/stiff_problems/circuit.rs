//! The ring modulator of the CWI test set: oscillations at three time scales, driven by t.

use super::{ALL, assert_falls, by_differences, relative};
use crate::ode::{Method, Ode, Stats, VectorField};
use crate::vector_field;

#[path = "ring_field.rs"]
mod ring_field;

use ring_field::{RingModulatorField, SCALE};

/// `capacitance` is what makes the problem stiff.
const RINGMOD: RingModulatorField = RingModulatorField { capacitance: 2e-12 };

/// y at t = 1e-5, 1e-4 and 1e-3.
const ENDS: [(f64, [f64; 15]); 3] = [
    (
        1e-5,
        [
            1.11902669604703534e-02,
            -1.42600664938556968e-03,
            2.26711715370296607e-01,
            -2.19977271598736118e-01,
            -2.26285127882298459e-01,
            2.20403859086734266e-01,
            -1.35058281287750631e-01,
            -7.08416083194820002e-09,
            5.31690835748461193e-10,
            -1.52563636693801136e-03,
            -1.54891948506672935e-03,
            1.54891619705572548e-03,
            1.52563965494901524e-03,
            5.39312298706738085e-05,
            8.10725012082776314e-07,
        ],
    ),
    (
        1e-4,
        [
            2.68585538894733189e-01,
            1.97407577279169327e-01,
            3.95522220624620779e-01,
            -2.63014249717288262e-01,
            -2.91609760904994686e-01,
            3.66926709436914522e-01,
            1.11010990040785698e-01,
            -2.78448971485967993e-06,
            -9.69692180774007712e-07,
            1.12358682584058427e-03,
            4.06043720134585185e-04,
            -1.12203116460723984e-03,
            -4.07599381367929612e-04,
            3.93671866124529362e-04,
            -3.06875678825079120e-04,
        ],
    ),
    (
        1e-3,
        [
            -2.33905735843715976e-02,
            -7.36748548600823019e-03,
            2.58295670999191984e-01,
            -4.06446572058801081e-01,
            -4.03945566445544080e-01,
            2.60796676612448874e-01,
            1.10676186127329851e-01,
            2.93990434243300248e-07,
            -2.84002993306651808e-08,
            7.26719826729145882e-04,
            7.92948719702323587e-04,
            -7.25528349576584500e-04,
            -7.94140196854884969e-04,
            7.08849541687568040e-05,
            2.39005907527710641e-05,
        ],
    ),
];

/// The largest relative error at t1.
fn error<F: VectorField<[f64; 15]>>(
    ode: Ode<'_, [f64; 15], F>,
    (t1, end): (f64, [f64; 15]),
    rtol: f64,
) -> f64 {
    let atol = SCALE.map(|scale| scale * rtol);
    relative(&ode.method(Method::Rodas5P).rtol(rtol).atol(atol).solve(0.0, t1, [0.0; 15]).unwrap().y1, &end)
}

/// Errors in the phase of the oscillations do not decay: at t = 1e-4 and 1e-3 the error is 61 and 75 rtol for
/// rtol = 1e-3, and fewer rtol for smaller rtol.
#[test]
fn ring_modulator() {
    for (end, exponents) in ENDS.into_iter().zip([ALL, ALL, 3..=5]) {
        assert_falls(&format!("RINGMOD to {:e}", end.0), exponents, 100.0, |rtol| {
            error(Ode::from_generic(RINGMOD), end, rtol)
        });
    }
    assert_falls("RINGMOD to 1e-5 by differences", ALL, 100.0, |rtol| {
        error(by_differences(RINGMOD), ENDS[0], rtol)
    });
}

#[test]
fn differences_take_about_as_many_steps_as_dual_numbers_at_tight_tolerances() {
    let field = || RingModulatorField { capacitance: 1e-10 };
    for rtol in [1e-8, 1e-10] {
        let atol: [f64; 15] = std::array::from_fn(|i| rtol * if i < 7 { 1e-4 } else { 1e-7 });
        let steps = |stats: Stats| stats.num_steps as f64;
        let dual = Ode::from_generic(field()).method(Method::Rodas5P).rtol(rtol).atol(atol);
        let dual = steps(dual.solve(0.0, 1e-4, [0.0; 15]).unwrap().stats);
        let closure = by_differences(field()).method(Method::Rodas5P).rtol(rtol).atol(atol);
        let closure = steps(closure.solve(0.0, 1e-4, [0.0; 15]).unwrap().stats);
        assert!(
            closure < 1.3 * dual,
            "rtol={rtol:e}: {closure} steps by differences, {dual} by dual numbers"
        );
    }
}
