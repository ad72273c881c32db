//! Checks the results that the example states.

use super::{EQUATIONS, Robertson, TIMES, run};

#[test]
fn both_forms_give_the_published_values() {
    let published = [
        [9.85172113860989906e-01, 3.38639537897490419e-05, 1.47940221852203881e-02],
        [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01],
        [4.93827452097981515e-03, 1.98499408795437557e-08, 9.95061705629079252e-01],
        [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01],
    ];
    let forms = run().unwrap();
    for form in &forms {
        assert_eq!(form.ys.len(), TIMES.len());
        for (y, published) in form.ys.iter().zip(&published) {
            let off = (0..3).map(|i| (y[i] / published[i] - 1.0).abs()).fold(0.0, f64::max);
            assert!(off < 1e-4, "{y:?}, not {published:?}");
        }
    }
    for y in &forms[1].ys {
        // Within a step the constraint holds to the tolerance.
        assert!((y.iter().sum::<f64>() - 1.0).abs() < 1e-7, "{y:?}");
    }
}

#[test]
fn both_forms_have_the_derivatives_by_the_rates() {
    // The variational equations in extended precision by a method of order 13, at the first three times:
    // [rate][component].
    let reference = [
        [
            [-3.559525660e-01, 3.902544054e-04, 3.555623116e-01],
            [9.542381428e-08, -2.130961030e-10, -9.521071818e-08],
            [-1.583176636e-11, -5.290041093e-13, 1.636077046e-11],
        ],
        [
            [-4.247558772e+00, 4.591196249e-05, 4.247512860e+00],
            [1.373080797e-05, -2.357192114e-10, -1.373057225e-05],
            [-2.288355089e-09, -1.138059509e-13, 2.288468895e-09],
        ],
        [
            [-2.363337329e-01, -4.584078561e-07, 2.363341913e-01],
            [9.450271940e-07, 1.832507153e-12, -9.450290266e-07],
            [-1.575048454e-10, -6.362514778e-16, 1.575054816e-10],
        ],
    ];
    let rates = |by: &Robertson<[f64; 3]>| [by.slow, by.back, by.fast];
    for form in run().unwrap() {
        for (by, reference) in form.dys_dp.iter().zip(reference) {
            for (by, reference) in rates(by).into_iter().zip(reference) {
                let off = (0..3).map(|i| (by[i] / reference[i] - 1.0).abs()).fold(0.0, f64::max);
                assert!(off < 1e-6, "{by:?}, not {reference:?}");
            }
        }
        // Rates that are all x times as large make the reaction x times as fast: sum p dc/dp = t c'.
        for ((t, y), by) in TIMES.iter().zip(&form.ys).zip(&form.dys_dp) {
            let Robertson { slow, back, fast, .. } = EQUATIONS;
            let sum = slow * by.slow[2] + back * by.back[2] + fast * by.fast[2];
            let want = t * fast * y[1] * y[1];
            assert!((sum / want - 1.0).abs() < 1e-2, "t = {t}: {sum}, not {want}");
        }
    }
}
