//! Draws the work-precision figures of the documentation: `cargo bench --bench work_precision [-- FOLDER]`.
//!
//! Error at the end against time, for six explicit methods on two problems, and for four methods on a mildly
//! stiff problem and three on a very stiff one, each at tolerances half a decade apart. A time is the minimum
//! of many short batches. The batches of all methods and tolerances alternate, because other programs may
//! slow down the machine. FOLDER defaults to `docs/images`. Each figure also has a dark variant, `..-dark.png`.
//!
//! `cargo bench --bench work_precision -- --counts` counts evaluations of the vector field instead, for the explicit
//! methods on 20 problems, and draws nothing.

#[path = "work_precision/counts.rs"]
mod counts;
#[allow(dead_code, reason = "some of the problems that the accuracy tests run")]
#[path = "../src/ode/tests/problems.rs"]
mod problems;
#[allow(dead_code, reason = "two of the problems of the stiff bench")]
#[path = "common/stiff.rs"]
mod stiff;

use flowline::ode::{Method, Ode};
use flowline::plot::{MethodCurve, work_precision};
use problems::{LORENZ, PLEIADES, Problem};
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Explicit methods, from low order to high.
const EXPLICIT: [Method; 6] =
    [Method::Bosh3, Method::Dopri5, Method::Tsit5, Method::Vern7, Method::Dop853, Method::Vern9];
/// Methods for stiff problems; Tsit5 solves mildly stiff ones.
const STIFF: [Method; 4] = [Method::Rosenbrock23, Method::Rodas5P, Method::AutoTsit5Rodas5P, Method::Tsit5];

/// The names of errors: for the explicit methods, whose solutions have components near 0, and for the others.
const MIXED: &str = "largest error of a component at the end, |error| / (1 + |y|)";
const RELATIVE: &str = "largest relative error of a component at the end";

/// Batches per solve, and the minimum duration of a batch in seconds.
const ROUNDS: usize = 25;
const BATCH: f64 = 1e-3;

/// Error and time in milliseconds of one method at each tolerance.
type Curve = Vec<[f64; 2]>;
/// A solve that returns its error.
type Solve<'a> = Box<dyn Fn() -> f64 + 'a>;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--counts") {
        counts::print();
        return Ok(());
    }
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let images = || Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    let folder = folder.map_or_else(images, PathBuf::from);
    let file = |name: &str| folder.join(format!("work_precision_{name}.png"));
    let lorenz = explicit(&LORENZ[2], |t, y| (LORENZ[2].f)(t, y));
    draw("Lorenz's equations, 3 unknowns, t = 10", MIXED, &EXPLICIT, &lorenz, &file("lorenz"))?;
    let pleiades = explicit(&PLEIADES, |t, y| (PLEIADES.f)(t, y));
    draw("The Pleiades problem, 28 unknowns", MIXED, &EXPLICIT, &pleiades, &file("pleiades"))?;
    let hires = implicit::<stiff::Hires, 8>(&STIFF);
    draw("HIRES, 8 unknowns, t = 322: mildly stiff", RELATIVE, &STIFF, &hires, &file("hires"))?;
    let vdpol = implicit::<stiff::VanDerPol, 2>(&STIFF[..3]);
    draw("Van der Pol's oscillator with rate 1e6: very stiff", RELATIVE, &STIFF[..3], &vdpol, &file("vdpol"))
}

fn draw(
    title: &str,
    error: &str,
    methods: &[Method],
    curves: &[Curve],
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = methods.iter().map(|method| format!("{method:?}")).collect();
    let curves: Vec<MethodCurve> =
        names.iter().zip(curves).map(|(name, points)| MethodCurve { name, points }).collect();
    let figure = work_precision(title, [error, "wall time (ms)"], &curves)?;
    figure.save(file)?;
    let dark = format!("{}-dark.png", file.with_extension("").display());
    figure.dark().save(dark)?;
    println!("{} and its dark variant", file.display());
    Ok(())
}

/// `f` is the problem's vector field as a function that the compiler can inline.
fn explicit<const N: usize>(
    problem: &Problem<N>,
    f: impl Fn(f64, &[f64; N]) -> [f64; N] + Copy + 'static,
) -> Vec<Curve> {
    let Problem { y0, t1, end, .. } = *problem;
    measure(&EXPLICIT, 3e-12, |method, tol| {
        let ode = Ode::new(move |t, y: &[f64; N]| f(t, y));
        let ode = ode.method(method).rtol(tol).atol(tol).max_steps(10_000_000);
        Box::new(move || error(&end, &ode.solve(0.0, t1, y0).expect("the options are valid").y1))
    })
}

/// The largest error of a component at the end, `|y_i - end_i| / (1 + |end_i|)`.
fn error<const N: usize>(end: &[f64; N], y1: &[f64; N]) -> f64 {
    (0..N).map(|i| (y1[i] - end[i]).abs() / (1.0 + end[i].abs())).fold(0.0, f64::max)
}

fn implicit<P: stiff::Problem<N>, const N: usize>(methods: &[Method]) -> Vec<Curve> {
    measure(methods, 1e-12, |method, tol| {
        let ode = Ode::from_generic(P::FIELD).method(method).rtol(tol).atol(P::atol(tol));
        let ode = ode.max_steps(10_000_000);
        Box::new(move || P::error(&ode.solve(0.0, P::T1, P::Y0).expect("the options are valid").y1))
    })
}

/// Errors and times of every method at every tolerance, without errors above 0.1 and without errors below
/// `floor`, which are rounding errors.
fn measure<'a>(methods: &[Method], floor: f64, solve: impl Fn(Method, f64) -> Solve<'a>) -> Vec<Curve> {
    let mut solves = Vec::new();
    for (index, method) in methods.iter().enumerate() {
        let halves = match method.tableau().order {
            ..3 => 5..=13,
            3 | 4 => 5..=16,
            _ => 5..=27,
        };
        for half in halves {
            let solve = solve(*method, 10_f64.powf(-0.5 * f64::from(half)));
            let error = solve();
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
    (0..methods.len()).map(curve).collect()
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
