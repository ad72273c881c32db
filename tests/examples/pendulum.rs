//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn the_pendulums_energy_is_learned_from_its_swings() {
    let folder = scratch();
    let (held_out, drift) = run(folder.path(), 500).unwrap();
    assert!(held_out < 1e-3 && drift < 0.1, "{held_out:e} {drift}");
    assert!(is_picture(folder.path(), "pendulum.png"));
}
