//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn lorenz_draws_its_orbit_and_writes_its_table() {
    let folder = scratch();
    let y = run(folder.path()).unwrap();
    // y(10), computed in 80-bit arithmetic.
    let reference = [-4.902687541135, -3.743872921803, 24.690858102791];
    let off = (0..3).map(|j| (y[j] - reference[j]).abs()).fold(0.0, f64::max);
    assert!(off < 1e-8, "{y:?} is off by {off:e}");
    assert!(is_picture(folder.path(), "lorenz.png") && is_picture(folder.path(), "lorenz_t.png"));
    let table = std::fs::read_to_string(folder.path().join("lorenz.csv")).unwrap();
    assert_eq!((table.lines().next(), table.lines().count()), (Some("t,y0,y1,y2"), 2002));
}
