//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn the_brusselator_is_drawn_and_its_values_agree_across_grids() {
    let folder = scratch();
    let ([u, v], words) = run(folder.path(), 40).unwrap();
    let ([u_coarse, v_coarse], _) = run(folder.path(), 20).unwrap();
    assert!((u - u_coarse).abs() < 0.05 && (v - v_coarse).abs() < 0.05, "{u} {u_coarse}, {v} {v_coarse}");
    assert!(words.starts_with("completed at t=10: tsit5"), "{words}");
    assert!(is_picture(folder.path(), "brusselator.png"));
}
