//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn arenstorfs_orbit_closes() {
    let folder = scratch();
    let (gap, half) = run(folder.path()).unwrap();
    assert!(gap < 1e-8, "{gap:e}");
    // The orbit is symmetric about the x axis, and crosses it at a right angle halfway.
    assert!(half[1].abs() < 1e-8 && half[2].abs() < 1e-8, "{half:?}");
    assert!(is_picture(folder.path(), "arenstorf.png"));
}
