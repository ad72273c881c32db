//! Checks the results that the example states.

use super::run;

#[test]
fn doses_between_steps_give_the_sum_of_their_closed_forms() {
    let course = run().unwrap();
    let (absorbed, cleared) = (1.2, 0.2);
    let one = |t: f64| {
        let decays = (-cleared * t).exp() - (-absorbed * t).exp();
        if t > 0.0 { 100.0 * absorbed / (absorbed - cleared) * decays } else { 0.0 }
    };
    assert_eq!(course.hourly.len(), 48);
    let all = |t: f64| (0..6).map(|dose| one(t - 8.0 * f64::from(dose))).sum::<f64>();
    for (i, blood) in course.hourly.iter().enumerate() {
        let (hour, expected) = ((i + 1) as f64, all((i + 1) as f64));
        assert!((blood - expected).abs() < 1e-5, "hour {hour}: {blood}, not {expected}");
    }
    let highest = (0..48_000).map(|i| all(f64::from(i) / 1000.0)).fold(0.0, f64::max);
    let peak = course.peak;
    assert!(highest - 1.0 < peak && peak < highest + 1e-5, "{peak} of at most {highest}");
}
