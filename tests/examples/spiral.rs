//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn a_vector_field_is_learned_from_spirals() {
    let folder = scratch();
    let held_out = run(folder.path(), 300).unwrap();
    // Starts and ends are 1 to 2 from the origin: a zero field is off by more than 1.
    assert!(held_out < 0.15, "{held_out:e}");
    assert!(is_picture(folder.path(), "spiral.png"));
}
