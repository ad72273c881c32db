//! Checks the results that the example states.

use super::run;
use flowline::train::TrainOptions;

#[test]
fn both_branches_are_drawn_in_about_their_shares() {
    let (updates, width, depth, batch) = (Some(400), Some(16), Some(2), Some(256));
    let options = TrainOptions { updates, width, depth, batch, ..Default::default() };
    let ([above, log_p], [exact, exact_log_p], effective) = run(&options, 1000).unwrap();
    // By the lengths of the two branches per unit of x, 0.70.
    assert!((exact - 0.70).abs() < 0.02 && (above - exact).abs() < 0.25, "{above} {exact}");
    assert!((log_p - exact_log_p).abs() < 1.0 && effective > 300.0, "{log_p} {exact_log_p} {effective}");
}
