//! Accuracy on published problems: the error stays near the tolerance and decreases with it.
//!
//! Runs every method with an error estimate at rtol = atol from 1e-4 to 1e-12 (orders below 5 to 1e-8, where
//! they take a hundred thousand steps). Errors are relative to `1 + |y|`, the largest over the components.
//! The allowed multiples of the tolerance come from the best codes in use, which do no better on the same
//! problems.
//!
//! [`OUTLIERS`] lists the methods for which other bounds hold, with the reasons.

use super::problems::{ARENSTORF, B1, BRUSSELATOR, DETEST_A, DETEST_B, DETEST_D, LORENZ, PLEIADES, Problem};
use crate::ode::{Method, Ode};

/// Errors below this are due to rounding of the arithmetic and of the published values.
const ROUNDING: f64 = 1e-13;

/// Bounds on the slope of log(error) over log(tolerance), fitted to the errors above [`ROUNDING`]. The slope
/// is 1 if the error is proportional to the tolerance.
const SLOPES: [f64; 2] = [0.8, 1.25];

/// The bounds of a method on a problem for which the common bounds do not hold.
struct Outlier {
    /// The name of the problem; empty for all problems.
    problem: &'static str,
    method: &'static str,
    /// The factor by which the common bound of the error is multiplied.
    times: f64,
    slopes: [f64; 2],
}

const fn outlier(problem: &'static str, method: &'static str, times: f64, slopes: [f64; 2]) -> Outlier {
    Outlier { problem, method, times, slopes }
}

const OUTLIERS: &[Outlier] = &[
    // At 1e-4 a quarter of the 38 steps is rejected, the steps are still large, and the error is 34
    // tolerances. From 1e-10 on the slope is 1 and the error is 0.4 tolerances.
    outlier("B5", "tsit5", 1.0, [0.8, 1.27]),
    // The h^5 term nearly cancels: the error is 2 tolerances at 1e-4 and 0.03 tolerances at 1e-12.
    outlier("Lorenz to 1", "tsit5", 1.0, [0.8, 1.26]),
    // These solves take about a dozen steps. At loose tolerances the errors are far below the tolerance
    // (1e-3, 1e-4, 4e-5 and 0.01 tolerances). At tight tolerances they are below one tolerance.
    outlier("A1", "vern7", 0.01, [0.75, 1.25]),
    outlier("A2", "vern9", 0.01, [0.77, 1.25]),
    outlier("A2", "dop853", 0.01, [0.68, 1.25]),
    outlier("A5", "vern9", 0.01, [0.77, 1.25]),
    // The solutions approach an equilibrium, so the errors of early steps decay. At loose tolerances
    // stability limits the last steps, and the errors are 0.1 and 2 tolerances. At tight tolerances they are
    // 0.001 tolerances.
    outlier("A4", "midpoint", 0.01, [0.8, 1.42]),
    outlier("B2", "dop853", 0.02, [0.8, 1.66]),
    // The weakest error estimate among the methods of order 5: the error is 190 tolerances at 3e-5.
    outlier("B4", "cashkarp", 2.0, SLOPES),
    // A method of order 3: errors accumulate to 205 tolerances on B1, at every tolerance.
    outlier("", "bosh3", 2.1, SLOPES),
    // Steps continue from the solution of order 4, whose error is estimated, not from the solution of order
    // 5. The error of each step is near the tolerance, so the global error is proportional to
    // tolerance^(4/5).
    outlier("", "fehlberg45", 11.0, [0.6, 1.25]),
];

fn methods() -> impl Iterator<Item = Method> {
    Method::EXPLICIT.into_iter().filter(|method| method.tableau().b_err.is_some())
}

/// The tolerances of a method's runs, in steps of half a decade.
fn tolerances(method: Method) -> impl Iterator<Item = f64> {
    let tightest = if method.tableau().order >= 5 { 12 } else { 8 };
    (8..=2 * tightest).map(|halves| 10_f64.powf(-0.5 * f64::from(halves)))
}

/// The largest error relative to `1 + |y|`.
fn error<const N: usize>(problem: &Problem<N>, method: Method, tol: f64) -> f64 {
    let ode = Ode::new(problem.f).method(method).rtol(tol).atol(tol).max_steps(1_000_000);
    let solution = ode.solve(0.0, problem.t1, problem.y0).unwrap();
    assert!(solution.outcome.reached_t1(), "{}: {solution}", problem.name);
    let relative = |i: usize| (solution.y1[i] - problem.end[i]).abs() / (1.0 + problem.end[i].abs());
    (0..N).map(relative).fold(0.0, f64::max)
}

/// Slope of log(error) against log(tolerance), by least squares over the errors above rounding.
fn slope(errors: &[(f64, f64)]) -> f64 {
    let points = errors.iter().filter(|(_, error)| *error > ROUNDING);
    let points: Vec<(f64, f64)> = points.map(|(tol, error)| (tol.ln(), error.ln())).collect();
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x).powi(2))
}

fn known(problem: &str, method: Method) -> Option<&'static Outlier> {
    let name = method.tableau().name;
    OUTLIERS.iter().find(|o| o.method == name && (o.problem.is_empty() || o.problem == problem))
}

/// Checks every method at every tolerance: the error is within `most` tolerances and decreases with them.
fn check<const N: usize>(problem: &Problem<N>, most: f64) {
    check_down_to(0.0, problem, most);
}

/// [`check`], with the bound checked only at tolerances of at least `tightest`.
fn check_down_to<const N: usize>(tightest: f64, problem: &Problem<N>, most: f64) {
    let mut wrong = Vec::new();
    for method in methods() {
        let errors: Vec<(f64, f64)> =
            tolerances(method).map(|tol| (tol, error(problem, method, tol))).collect();
        let (most, slopes) = match known(problem.name, method) {
            Some(outlier) => (most * outlier.times, outlier.slopes),
            None => (most, SLOPES),
        };
        for (tol, error) in &errors {
            // Errors that are due to rounding need not decrease with the tolerance.
            if *tol >= tightest && *error > most * tol && *error > ROUNDING {
                wrong.push(format!("{method} at {tol:.1e}: {:.1} tolerances", error / tol));
            }
        }
        let slope = slope(&errors);
        if slope < slopes[0] || slope > slopes[1] {
            wrong.push(format!("{method}: slope {slope:.3}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", problem.name, wrong.join("\n"));
}

#[test]
fn errors_on_single_equations_are_within_100_tolerances() {
    for problem in &DETEST_A {
        check(problem, if problem.name == "A3" { 200.0 } else { 100.0 });
    }
}

#[test]
fn errors_on_small_systems_are_within_100_tolerances() {
    check(&B1, 100.0);
    DETEST_B.iter().for_each(|problem| check(problem, 100.0));
}

#[test]
fn errors_on_two_body_orbits_are_within_5000_tolerances() {
    DETEST_D.iter().for_each(|problem| check(problem, 5000.0));
}

#[test]
fn errors_on_seven_bodies_are_within_5000_tolerances() {
    check(&PLEIADES, 5000.0);
}

#[test]
fn errors_on_the_arenstorf_orbit_are_within_50000_tolerances() {
    // Below 1e-11 rounding errors matter: the orbit magnifies the rounding error of y0 up to 2.2e6 times.
    check_down_to(1e-11, &ARENSTORF, 5e4);
}

#[test]
fn errors_on_the_brusselator_are_within_100_tolerances() {
    check(&BRUSSELATOR, 100.0);
}

#[test]
fn errors_on_lorenz_are_within_100_tolerances_at_5_and_1000_at_10() {
    let most = [100.0, 100.0, 1000.0];
    LORENZ.iter().zip(most).for_each(|(problem, most)| check(problem, most));
}
