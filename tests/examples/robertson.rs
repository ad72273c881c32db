//! Checks the results that the example states.

use super::{TIMES, run};

#[test]
fn both_forms_give_the_published_values() {
    let published = [
        [9.85172113860989906e-01, 3.38639537897490419e-05, 1.47940221852203881e-02],
        [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01],
        [4.93827452097981515e-03, 1.98499408795437557e-08, 9.95061705629079252e-01],
        [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01],
    ];
    let (forms, _) = run().unwrap();
    for ys in &forms {
        assert_eq!(ys.len(), TIMES.len());
        for (y, published) in ys.iter().zip(&published) {
            let off = (0..3).map(|i| (y[i] / published[i] - 1.0).abs()).fold(0.0, f64::max);
            assert!(off < 1e-4, "{y:?}, not {published:?}");
        }
    }
    for y in &forms[1] {
        // Within a step the constraint holds to the tolerance.
        assert!((y.iter().sum::<f64>() - 1.0).abs() < 1e-7, "{y:?}");
    }
}
