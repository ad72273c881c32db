//! Checks the results that the example states.

mod place;

use super::{P, run};
use place::{is_picture, scratch};

#[test]
fn the_parameters_of_prey_and_predators_are_found_within_three_standard_errors() {
    let folder = scratch();
    let fit = run(folder.path(), 600).unwrap();
    for i in 0..4 {
        let (off, error) = ((fit.p[i] - P[i]).abs(), fit.error[i]);
        assert!(off < 3.0 * error && error < 0.02 * fit.p[i], "{fit:?}");
    }
    // With 100 counts and 4 parameters, 0.96 is expected, with a standard deviation of 0.14.
    assert!((0.6..1.4).contains(&fit.loss), "{fit:?}");
    assert!(is_picture(folder.path(), "lotka_volterra.png"));
}
