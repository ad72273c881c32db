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
    // At 1 h one dose of 100 mg has been absorbed for 0.6 h: a larger lag or a larger volume lowers the concentration.
    let (t, c, by) = fit.fitted[2];
    assert!(t == 1.0 && (1.8..2.4).contains(&c) && by[0] > 0.0 && by[2] < 0.0 && by[3] < 0.0, "{fit:?}");
    assert!((fit.noise - 0.044539).abs() < 1e-5 && fit.num_solves < 12, "{fit:?}");
}
