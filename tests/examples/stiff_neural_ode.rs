//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn a_stiff_reaction_is_learned() {
    let folder = scratch();
    let mut reports = 0;
    let found = run(folder.path(), 1_500, |_| reports += 1).unwrap();
    // A stiff method takes few steps over ten decades of time.
    assert!(found.num_steps < 200.0 && reports > 0, "{found:?}");
    // Each scaled concentration covers the range from 0 to 1: a constant would have a mean error of 0.2 or more.
    assert!(found.mean.iter().all(|error| *error < 0.1), "{found:?}");
    assert!(is_picture(folder.path(), "stiff_neural_ode.png"));
}
