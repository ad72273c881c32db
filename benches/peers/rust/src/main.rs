//! One harness for flowline and the other Rust crates that solve ODEs.
//!
//! Prints one measurement per line, as JSON or as tables, and a summary to standard error. `problems` has the problems,
//! `peers` passes a problem to each crate, and `measure` times the solves.

mod curves;
mod ensemble;
mod hand;
mod measure;
mod options;
mod peers;
mod problems;
mod record;
mod summary;

use measure::{Rules, Run, time};
use options::Options;
use peers::{differential_equations, diffsol, flowline, ode_solvers, russell};
use problems::{Arenstorf, Brusselator, Lorenz20, Lotka, Pleiades, Problem};
use record::Record;

/// The measurements so far.
struct Session {
    options: Options,
    records: Vec<Record>,
}

impl Session {
    /// Half decades from `loosest` to `tightest`, given as exponents; `--quick`: every second decade.
    fn tolerances(&self, loosest: i32, tightest: i32) -> Vec<f64> {
        let stride = if self.options.quick { 4 } else { 1 };
        (0..=2 * (loosest - tightest))
            .step_by(stride)
            .map(|i| 10f64.powf(f64::from(loosest) - f64::from(i) / 2.0))
            .collect()
    }

    /// Times the runs in turn and prints them.
    fn measure(
        &mut self,
        problem: &'static str,
        ensemble: Option<(usize, &'static str)>,
        runs: Vec<Run>,
        end: &[f64],
    ) {
        let rules = Rules { error: &|y| error(y, end), slow_rounds: 0 };
        for timed in time(self.options.wanted(runs), &rules) {
            let flags = self.options.flags.clone();
            let record = Record { timed, problem, flags, ensemble };
            let title = record.title();
            if self.options.json {
                println!("{}", record.json());
            } else {
                if self.records.last().is_none_or(|last| last.title() != title) {
                    println!("\n{title}\n{}", Record::HEADER);
                }
                println!("{}", record.row());
            }
            self.records.push(record);
        }
    }

    /// A problem at each tolerance.
    fn problem<P: Problem>(&mut self, runs: impl Fn(f64) -> Vec<Run<'static>>) {
        if !self.options.wants_problem(P::NAME) {
            return;
        }
        let end = P::end().unwrap_or_else(hand::end::<P>);
        for tol in self.tolerances(-4, -10) {
            self.measure(P::NAME, None, runs(tol), &end);
        }
    }

    fn ensemble(&mut self) {
        if !self.options.wants_problem(ensemble::NAME) {
            return;
        }
        let end = ensemble::end();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
            let pool = ensemble::pool(threads);
            for tol in self.tolerances(-4, -10) {
                let runs = ensemble::f64_runs(&pool, tol);
                self.measure(ensemble::NAME, Some((threads, "f64")), runs, &end);
            }
            for tol in self.tolerances(-3, -6) {
                let runs = ensemble::f32_runs(&pool, tol);
                self.measure(ensemble::NAME, Some((threads, "f32")), runs, &end);
            }
        }
    }
}

/// The largest error relative to `1 + |end|`; infinite where the numbers are not finite.
fn error(y: &[f64], end: &[f64]) -> f64 {
    assert_eq!(y.len(), end.len(), "one value each");
    let relative = |(y, end): (&f64, &f64)| (y - end).abs() / (1.0 + end.abs());
    let largest = y.iter().zip(end).map(relative).fold(0.0, f64::max);
    if y.iter().all(|y| y.is_finite()) { largest } else { f64::INFINITY }
}

/// All solvers, on arrays if they support them.
fn on_arrays<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let mut runs = ode_solvers::fixed::<P, N>(tol);
    runs.extend(differential_equations::arrays::<P, N>(tol));
    runs.extend(russell::heap::<P>(tol));
    runs.extend(diffsol::heap::<P>(tol));
    runs.extend(hand::fixed::<P, N>(tol));
    runs.extend(flowline::fixed::<P, N>(tol));
    runs
}

/// All solvers, on vectors on the heap if they support them.
fn on_the_heap<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let mut runs = ode_solvers::heap::<P>(tol);
    runs.extend(differential_equations::arrays::<P, N>(tol));
    runs.extend(russell::heap::<P>(tol));
    runs.extend(diffsol::heap::<P>(tol));
    runs.extend(hand::heap::<P>(tol));
    runs.extend(flowline::heap::<P>(tol));
    runs
}

/// The hand-written loop alone, on the heap.
fn on_the_heap_by_hand<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let mut runs = hand::heap::<P>(tol);
    runs.extend(flowline::heap::<P>(tol));
    runs
}

fn main() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut session = Session { options, records: Vec::new() };
    session.problem::<Lorenz20>(on_arrays::<Lorenz20, 3>);
    session.problem::<Lotka>(on_arrays::<Lotka, 2>);
    session.problem::<Pleiades>(on_arrays::<Pleiades, 28>);
    session.problem::<Arenstorf>(on_arrays::<Arenstorf, 4>);
    session.problem::<Brusselator<200>>(on_the_heap::<Brusselator<200>, 400>);
    session.problem::<Brusselator<16>>(on_the_heap_by_hand::<Brusselator<16>>);
    session.ensemble();
    eprintln!("\n{}", summary::of(&session.records));
    Ok(())
}
