//! Evaluations of the vector field that each explicit method needs for an error at the end of a solve.

use super::problems::{ARENSTORF, B1, BRUSSELATOR, DETEST_A, DETEST_B, DETEST_D, LORENZ, PLEIADES, Problem};
use super::{EXPLICIT, error};
use flowline::ode::Ode;

/// The errors of the tables.
const ERRORS: [f64; 6] = [1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10];
/// A tolerance, and the error and the evaluations of a solve with it.
type Point = [f64; 3];

/// Prints, for each error and method, by which factor the method needs more evaluations than the best method on the same
/// problem, as a geometric mean over the problems; on how many problems the method is the best; and the median
/// tolerance at which the method reaches the error.
pub fn print() {
    let mut all: Vec<(&str, Vec<Vec<Point>>)> = vec![];
    all.extend(DETEST_A.iter().map(curves));
    all.push(curves(&B1));
    all.extend(DETEST_B.iter().map(curves));
    all.extend(DETEST_D.iter().map(curves));
    all.push(curves(&ARENSTORF));
    all.push(curves(&PLEIADES));
    all.push(curves(&BRUSSELATOR));
    all.extend(LORENZ[..2].iter().map(curves));
    println!("{} problems: {}", all.len(), all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
    println!(
        "each cell: evaluations / those of the best method (problems where it is the best), median tolerance"
    );
    let header: String = EXPLICIT.iter().map(|m| format!("{:>22}", m.to_string())).collect();
    println!("{:>8}{header}  problems", "error");
    for wanted in ERRORS {
        let found: Vec<Vec<Option<[f64; 2]>>> =
            all.iter().map(|(_, curves)| curves.iter().map(|c| reach(c, wanted)).collect()).collect();
        // Only problems on which every method reaches the error.
        let found: Vec<Vec<[f64; 2]>> = found.into_iter().filter_map(|of| of.into_iter().collect()).collect();
        let least: Vec<f64> =
            found.iter().map(|of| of.iter().map(|x| x[1]).fold(f64::INFINITY, f64::min)).collect();
        let cell = |k: usize| {
            let logs: f64 = found.iter().zip(&least).map(|(of, least)| (of[k][1] / least).ln()).sum();
            let wins = found.iter().zip(&least).filter(|(of, least)| of[k][1] == **least).count();
            let mut tolerances: Vec<f64> = found.iter().map(|of| of[k][0]).collect();
            tolerances.sort_by(f64::total_cmp);
            let ratio = (logs / found.len() as f64).exp();
            let tolerance = tolerances.get(found.len() / 2).copied().unwrap_or(f64::NAN);
            format!("{:>22}", format!("{ratio:.2} ({wins}) {tolerance:.0e}"))
        };
        println!("{wanted:>8.0e}{}  {}", (0..EXPLICIT.len()).map(cell).collect::<String>(), found.len());
    }
}

/// For each method, its solves at tolerances of 1e-1 to 1e-13.5, four per decade.
fn curves<const N: usize>(problem: &Problem<N>) -> (&'static str, Vec<Vec<Point>>) {
    let of = |method| {
        let ode = Ode::new(problem.f).method(method).max_steps(10_000_000);
        let point = |quarter: i32| {
            let tolerance = 10_f64.powf(-0.25 * f64::from(quarter));
            let solved =
                ode.clone().rtol(tolerance).atol(tolerance).solve(0.0, problem.t1, problem.y0).ok()?;
            Some([tolerance, error(&problem.end, &solved.y1), solved.stats.num_fn_evals as f64])
        };
        (4..=54).filter_map(point).collect()
    };
    (problem.name, EXPLICIT.map(of).to_vec())
}

/// The tolerance and the evaluations at which a method reaches an error from there on, between two solves by
/// interpolation of logarithms. `None` if a solve with the loosest tolerance has a smaller error, or no solve reaches it.
fn reach(curve: &[Point], wanted: f64) -> Option<[f64; 2]> {
    let last = curve.iter().rposition(|point| point[1] > wanted)?;
    let (before, after) = (curve[last], curve.get(last + 1)?);
    let share = (before[1] / wanted).ln() / (before[1] / after[1].max(f64::MIN_POSITIVE)).ln();
    Some([0, 2].map(|k| (before[k].ln() + share * (after[k] / before[k]).ln()).exp()))
}
