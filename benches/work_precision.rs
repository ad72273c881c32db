//! Draws the work-precision figures of the documentation: `cargo bench --bench work_precision [-- FOLDER]`.
//!
//! Error at the end against time, for six methods on two problems, each at tolerances half a decade apart. A time is the
//! minimum of many short batches, which alternate over all methods and tolerances, because the machine may be shared.
//! FOLDER defaults to `assets`.

#[allow(dead_code, reason = "two of the problems that the accuracy tests run")]
#[path = "../src/ode/tests/problems.rs"]
mod problems;

use flowline::ode::{Method, Ode};
use flowline::plot::{MethodCurve, work_precision};
use problems::{LORENZ, PLEIADES, Problem};
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The methods, from low order to high.
const METHODS: [Method; 6] =
    [Method::Bosh3, Method::Dopri5, Method::Tsit5, Method::Vern7, Method::Dop853, Method::Vern9];

/// Batches per solve, and the minimum duration of a batch in seconds.
const ROUNDS: usize = 25;
const BATCH: f64 = 1e-3;

/// Error and time in milliseconds of one method at each tolerance.
type Curve = Vec<[f64; 2]>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let folder = folder.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), PathBuf::from);
    let lorenz = measure(&LORENZ[2], |t, y| (LORENZ[2].f)(t, y), 3e-12);
    draw("Lorenz's equations, 3 unknowns, t = 10", &lorenz, &folder.join("work_precision_lorenz.png"))?;
    let pleiades = measure(&PLEIADES, |t, y| (PLEIADES.f)(t, y), 3e-12);
    draw("The Pleiades problem, 28 unknowns", &pleiades, &folder.join("work_precision_pleiades.png"))
}

fn draw(title: &str, curves: &[Curve], file: &Path) -> Result<(), Box<dyn Error>> {
    let names = METHODS.map(|method| method.to_string());
    let curves: Vec<MethodCurve> =
        names.iter().zip(curves).map(|(name, points)| MethodCurve { name, points }).collect();
    let figure = work_precision(title, "wall time (ms)", &curves)?;
    figure.save(file)?;
    figure.save(file.with_extension("svg"))?;
    println!("{}", file.display());
    Ok(())
}

/// Errors and times of every method at every tolerance, without errors above 0.1 and without errors below
/// `floor`, which are rounding errors. `f` is the problem's vector field as a function that the compiler can
/// inline.
fn measure<const N: usize>(
    problem: &Problem<N>,
    f: impl Fn(f64, &[f64; N]) -> [f64; N] + Copy,
    floor: f64,
) -> Vec<Curve> {
    let Problem { y0, t1, end, .. } = *problem;
    let mut solves = Vec::new();
    for (index, method) in METHODS.iter().enumerate() {
        let tightest = if method.tableau().order < 5 { 16 } else { 27 };
        for halves in 5..=tightest {
            let tol = 10_f64.powf(-0.5 * f64::from(halves));
            let ode = Ode::new(move |t, y: &[f64; N]| f(t, y));
            let ode = ode.method(*method).rtol(tol).atol(tol).max_steps(10_000_000);
            let solve = move || ode.solve(0.0, t1, y0).expect("the options are valid").y1;
            let y1 = solve();
            let error = (0..N).map(|i| (y1[i] - end[i]).abs() / (1.0 + end[i].abs())).fold(0.0, f64::max);
            if error > floor && error < 0.1 {
                solves.push((index, error, solve, f64::INFINITY));
            }
        }
    }
    for _ in 0..ROUNDS {
        for (_, _, solve, least) in &mut solves {
            *least = least.min(milliseconds(solve));
        }
    }
    let curve = |index| {
        let points = solves.iter().filter(|s| s.0 == index);
        points.map(|(_, error, _, ms)| [*error, *ms]).collect()
    };
    (0..METHODS.len()).map(curve).collect()
}

/// Milliseconds per call, over a batch.
fn milliseconds<T>(f: &impl Fn() -> T) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        black_box(f());
        calls += 1;
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed >= BATCH {
            return elapsed * 1e3 / f64::from(calls);
        }
    }
}
