//! Checks the results that the example states.

use super::run;
use flowline::__internal::with_at_most;
use flowline::cnf::prelude::*;

#[test]
fn more_steps_are_nearer_to_the_adaptive_samples() {
    let trainer = Trainer::new(ImageDensity::embedded()).updates(30).width(8).depth(1).batch(64);
    let (rows, adaptive) = with_at_most(512, || run(trainer, 200)).unwrap();
    assert!(rows.len() == 7 && adaptive > 6.0, "{rows:?} {adaptive}");
    assert!(rows.windows(2).skip(2).all(|pair| pair[1].1 < pair[0].1.max(0.05)), "{rows:?}");
    assert!(rows[6].1 < 0.05 && rows[6].2 < 0.02, "{rows:?}");
}
