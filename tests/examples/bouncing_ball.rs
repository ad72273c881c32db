//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn the_ball_bounces_at_the_times_of_the_closed_form() {
    let folder = scratch();
    let (bounces, energies) = run(folder.path()).unwrap();
    // The first fall takes sqrt(2 h / g), the k-th flight 2 * 0.9^k of it.
    let fall = (20.0_f64 / 9.81).sqrt();
    let mut t = fall;
    for (k, bounce) in bounces.iter().enumerate() {
        assert!((bounce - t).abs() < 1e-8, "bounce {k} at {bounce}, not {t}");
        t += 2.0 * 0.9_f64.powi(k as i32 + 1) * fall;
    }
    assert!(t > 8.0, "no bounce is missing");
    for (energy, time) in energies.iter().zip([0.0, 2.0, 4.0, 6.0, 8.0]) {
        let before = bounces.iter().filter(|bounce| **bounce < time).count() as i32;
        assert!((energy - 98.1 * 0.81_f64.powi(before)).abs() < 1e-6, "{energies:?}");
    }
    assert!(is_picture(folder.path(), "bouncing_ball.png"));
}
