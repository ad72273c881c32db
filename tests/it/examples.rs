//! The examples run: their numbers are right and their pictures are written.

#[path = "../../examples/arenstorf.rs"]
mod arenstorf;
#[path = "../../examples/bouncing_ball.rs"]
mod bouncing_ball;
#[path = "../../examples/brusselator.rs"]
mod brusselator;
#[path = "../../examples/hand_stepping.rs"]
mod hand_stepping;
#[cfg(feature = "tensor")]
#[path = "../../examples/latent_ode.rs"]
mod latent_ode;
#[path = "../../examples/lorenz.rs"]
mod lorenz;
#[cfg(all(feature = "tensor", feature = "nalgebra"))]
#[path = "../../examples/lotka_volterra.rs"]
mod lotka_volterra;
#[cfg(feature = "tensor")]
#[path = "../../examples/pendulum.rs"]
mod pendulum;
#[cfg(feature = "tensor")]
#[path = "../../examples/spiral.rs"]
mod spiral;

use std::path::Path;

fn is_picture(folder: &Path, name: &str) -> bool {
    std::fs::read(folder.join(name)).is_ok_and(|bytes| bytes.len() > 10_000 && &bytes[1..4] == b"PNG")
}

#[test]
fn lorenz_draws_its_orbit_and_writes_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let y = lorenz::run(folder.path()).unwrap();
    // y(10), integrated with 80-bit numbers.
    let reference = [-4.902687541135, -3.743872921803, 24.690858102791];
    let off = (0..3).map(|j| (y[j] - reference[j]).abs()).fold(0.0, f64::max);
    assert!(off < 1e-8, "{y:?} is off by {off:e}");
    assert!(is_picture(folder.path(), "lorenz.png") && is_picture(folder.path(), "lorenz_t.png"));
    let table = std::fs::read_to_string(folder.path().join("lorenz.csv")).unwrap();
    assert_eq!((table.lines().next(), table.lines().count()), (Some("t,y0,y1,y2"), 2002));
}

#[test]
fn the_ball_bounces_at_the_times_of_the_closed_form() {
    let folder = tempfile::tempdir().unwrap();
    let (bounces, energies) = bouncing_ball::run(folder.path()).unwrap();
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

#[test]
fn arenstorfs_orbit_closes() {
    let folder = tempfile::tempdir().unwrap();
    let (gap, half) = arenstorf::run(folder.path()).unwrap();
    assert!(gap < 1e-8, "{gap:e}");
    // The orbit is symmetric about the x axis, which it crosses at a right angle half-way.
    assert!(half[1].abs() < 1e-8 && half[2].abs() < 1e-8, "{half:?}");
    assert!(is_picture(folder.path(), "arenstorf.png"));
}

#[test]
fn the_brusselator_is_drawn_and_comes_near_its_values_on_any_grid() {
    let folder = tempfile::tempdir().unwrap();
    let ([u, v], words) = brusselator::run(folder.path(), 40).unwrap();
    let ([u_coarse, v_coarse], _) = brusselator::run(folder.path(), 20).unwrap();
    assert!((u - u_coarse).abs() < 0.05 && (v - v_coarse).abs() < 0.05, "{u} {u_coarse}, {v} {v_coarse}");
    assert!(words.starts_with("completed at t=10: tsit5"), "{words}");
    assert!(is_picture(folder.path(), "brusselator.png"));
}

#[test]
fn doses_by_hand_give_the_sum_of_their_closed_forms() {
    let course = hand_stepping::run().unwrap();
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

#[cfg(feature = "tensor")]
#[test]
fn the_pendulums_energy_is_learned_from_its_swings() {
    let folder = tempfile::tempdir().unwrap();
    let (held_out, drift) = pendulum::run(folder.path(), 500).unwrap();
    assert!(held_out < 1e-3 && drift < 0.1, "{held_out:e} {drift}");
    assert!(is_picture(folder.path(), "pendulum.png"));
}

#[cfg(feature = "tensor")]
#[test]
fn a_field_is_learned_from_spirals_in_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (held_out, traces) = spiral::run(folder.path(), 300).unwrap();
    // Starts and ends are 1 to 2 from the origin: a field that stands still is off by more than 1.
    assert!(held_out < 0.15 && traces == 1, "{held_out:e} {traces}");
    assert!(is_picture(folder.path(), "spiral.png"));
}

#[cfg(feature = "tensor")]
#[test]
fn a_latent_motion_is_learned_from_series_with_times_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let reached = latent_ode::run(folder.path(), 100).unwrap();
    // A decoder that always says zero is off by 0.9, and has an evidence of -1,600.
    assert!(reached.off < 0.6 && reached.evidence > -700.0 && reached.traces == 1, "{reached:?}");
    assert!(is_picture(folder.path(), "latent_ode.png"));
}

#[cfg(all(feature = "tensor", feature = "nalgebra"))]
#[test]
fn the_parameters_of_prey_and_predators_are_found_within_three_standard_errors() {
    let folder = tempfile::tempdir().unwrap();
    let fit = lotka_volterra::run(folder.path(), 600).unwrap();
    for i in 0..4 {
        let (off, error) = ((fit.p[i] - lotka_volterra::P[i]).abs(), fit.error[i]);
        assert!(off < 3.0 * error && error < 0.02 * fit.p[i], "{fit:?}");
    }
    // 100 counts and 4 parameters: 0.96 is expected, with a deviation of 0.14.
    assert!((0.6..1.4).contains(&fit.loss) && fit.traces == 1, "{fit:?}");
    assert!(is_picture(folder.path(), "lotka_volterra.png"));
}
