//! Checks the results that the example states.

use super::{K, run};

#[test]
fn the_rates_of_a_stiff_reaction_are_found_within_three_standard_errors() {
    let fit = run(300).unwrap();
    for i in 0..3 {
        let off = (fit.k[i] / K[i]).ln().abs();
        assert!(off < 3.0 * fit.error[i] && fit.error[i] < 0.2, "{fit:?}");
    }
    // With 60 numbers and 3 rates, 0.95 is expected, with a standard deviation of 0.18.
    assert!((0.5..1.5).contains(&fit.loss), "{fit:?}");
}
