//! Checks the results that the example states.

use super::{run, table};
use flowline::__internal::with_at_most;
use flowline::train::Trainer;

#[test]
fn the_mean_and_the_alternating_row_are_unusual() {
    let trainer = Trainer::new(table().unwrap()).updates(100).width(8).depth(1).batch(128);
    let scores = with_at_most(512, || run(trainer, 400)).unwrap();
    let [usual, mean, alternating] = scores[..] else { panic!("{scores:?}") };
    assert!(mean.log_prob > usual.log_prob && usual.log_prob > alternating.log_prob, "{scores:?}");
    assert!(mean.p_value > 0.97 && mean.two_sided() < 0.06 && alternating.p_value < 0.05, "{scores:?}");
    assert!(alternating.z_squared > 15.0 && mean.z_squared < 2.0, "{scores:?}");
}
