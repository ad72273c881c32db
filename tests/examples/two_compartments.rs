//! Checks the results that the example states.

use super::{TRUTH, run};

#[test]
fn the_fit_is_that_of_the_closed_form() {
    let fit = run().unwrap();
    // The sum of three exponentials per dose, its derivatives by complex steps, the same least squares.
    let p = [1.185202, 5.004513, 20.896253, 0.397389];
    let error = [0.086226, 0.054001, 0.967114, 0.005808];
    for i in 0..4 {
        assert!((fit.p[i] - p[i]).abs() < 1e-4 * p[i], "{fit:?}, not {p:?}");
        assert!((fit.error[i] - error[i]).abs() < 1e-3 * error[i], "{fit:?}, not {error:?}");
        assert!((fit.p[i] - TRUTH[i].1).abs() < fit.error[i], "{fit:?}");
    }
    assert!((fit.noise - 0.044539).abs() < 1e-5 && fit.num_solves < 12, "{fit:?}");
}
