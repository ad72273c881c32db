//! Checks the results that the example states.

use super::run;
use flowline::__internal::with_at_most;
use flowline::cnf::prelude::*;

#[test]
fn both_branches_are_drawn_in_about_their_shares() {
    let trainer = Trainer::new(ToyDensity::Moons).updates(400).width(16).depth(2).batch(256);
    let ([above, log_p], [exact, exact_log_p], effective) = with_at_most(512, || run(trainer, 1000)).unwrap();
    // By the lengths of the two branches per unit of x, 0.70.
    assert!((exact - 0.70).abs() < 0.02 && (above - exact).abs() < 0.25, "{above} {exact}");
    assert!((log_p - exact_log_p).abs() < 1.0 && effective > 300.0, "{log_p} {exact_log_p} {effective}");
}
