//! Checks the results that the example states.

use super::run;
use flowline::train::TrainOptions;

#[test]
fn more_steps_are_nearer_to_the_adaptive_samples() {
    let (updates, width, depth, batch) = (Some(30), Some(8), Some(1), Some(64));
    let (rows, adaptive) =
        run(&TrainOptions { updates, width, depth, batch, ..Default::default() }, 200).unwrap();
    assert!(rows.len() == 7 && adaptive > 6.0, "{rows:?} {adaptive}");
    assert!(rows.windows(2).skip(2).all(|pair| pair[1].1 < pair[0].1.max(0.05)), "{rows:?}");
    assert!(rows[6].1 < 0.05 && rows[6].2 < 0.02, "{rows:?}");
}
