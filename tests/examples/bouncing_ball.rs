//! Checks the results that the example states.

mod place;

use super::{Bounces, run};
use place::{is_picture, scratch};

#[test]
fn the_ball_bounces_at_the_times_of_the_closed_form() {
    let folder = scratch();
    let Bounces { times, by_restitution, energies } = run(folder.path()).unwrap();
    // The first fall takes sqrt(2 h / g), the k-th flight 2 * 0.9^k of it.
    let fall = (20.0_f64 / 9.81).sqrt();
    let (mut t, mut dt) = (fall, 0.0);
    assert_eq!(times.len(), by_restitution.len());
    for (k, (time, by_restitution)) in times.iter().zip(&by_restitution).enumerate() {
        assert!((time - t).abs() < 1e-8, "bounce {k} at {time}, not {t}");
        assert!((by_restitution - dt).abs() < 1e-7, "bounce {k}: {by_restitution}, not {dt}");
        let k = k as i32 + 1;
        t += 2.0 * 0.9_f64.powi(k) * fall;
        dt += 2.0 * f64::from(k) * 0.9_f64.powi(k - 1) * fall;
    }
    assert!(t > 8.0, "no bounce is missing");
    for (energy, time) in energies.iter().zip([0.0, 2.0, 4.0, 6.0, 8.0]) {
        let before = times.iter().filter(|bounce| **bounce < time).count() as i32;
        assert!((energy - 98.1 * 0.81_f64.powi(before)).abs() < 1e-6, "{energies:?}");
    }
    assert!(is_picture(folder.path(), "bouncing_ball.png"));
}
