//! Timing of solves, the same for every crate: the solves of a problem run in turn.
//!
//! The speed of a machine changes within minutes, and other programs start and end. Samples of all compared solves
//! are therefore taken in rounds, one sample per solve and round, so that a disturbance affects all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds, which is the number of samples per solve.
pub const ROUNDS: usize = 7;
/// The minimum duration of a sample.
const SAMPLE: Duration = Duration::from_millis(20);

/// A slower solve is timed in fewer rounds, or not at all ([`Rules::slow_rounds`]).
const LONGEST: Duration = Duration::from_millis(400);

/// The result of a solve.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The end value, or all end values of an ensemble.
    pub y: Vec<f64>,
    /// Steps attempted: accepted and rejected. For SciPy, accepted steps only, because `solve_ivp` does not
    /// report rejected steps.
    pub num_steps: u64,
    /// Function evaluations.
    pub num_field_evals: u64,
    /// Number of matrix factorizations; 0 for explicit methods.
    pub num_factorizations: u64,
}

/// A solve to time.
pub struct Run<'a> {
    pub peer: &'static str,
    pub method: String,
    pub tol: f64,
    solve: Box<dyn FnMut() -> Result<End, String> + 'a>,
}

impl<'a> Run<'a> {
    pub fn new(
        peer: &'static str,
        method: impl Into<String>,
        tol: f64,
        solve: impl FnMut() -> Result<End, String> + 'a,
    ) -> Self {
        Run { peer, method: method.into(), tol, solve: Box::new(solve) }
    }
}

/// A timed solve.
#[derive(Clone, Debug)]
pub struct Timed {
    pub peer: &'static str,
    pub method: String,
    pub tol: f64,
    /// The median sample.
    pub ms: f64,
    /// The error, computed by [`Rules::error`].
    pub error: f64,
    pub num_steps: u64,
    pub num_field_evals: u64,
    pub num_factorizations: u64,
}

/// How solves are judged.
pub struct Rules<'a> {
    /// The error of an end value.
    pub error: &'a dyn Fn(&[f64]) -> f64,
    /// The number of rounds for a solve that takes longer than [`LONGEST`]; 0 leaves it out.
    pub slow_rounds: usize,
}

/// Times the runs in rounds. A failing solve is reported on standard error and left out.
pub fn time(runs: Vec<Run>, rules: &Rules) -> Vec<Timed> {
    let mut timing: Vec<(Run, End, u32, usize, Vec<f64>)> = Vec::new();
    for mut run in runs {
        let start = Instant::now();
        match (run.solve)() {
            Ok(end) if start.elapsed() > LONGEST => {
                let (peer, method, tol) = (run.peer, &run.method, run.tol);
                if rules.slow_rounds == 0 {
                    eprintln!("{peer} {method} at {tol:e} is left out: a solve takes {:?}", start.elapsed());
                } else {
                    timing.push((run, end, 1, rules.slow_rounds, Vec::new()));
                }
            }
            Ok(end) => {
                let calls = calls_in(SAMPLE / 8, &mut run);
                timing.push((run, end, calls, ROUNDS, Vec::new()));
            }
            Err(message) => {
                let message: String = message.chars().take(120).collect();
                eprintln!("{} {} at {:e} failed: {message}", run.peer, run.method, run.tol);
            }
        }
    }
    for round in 0..ROUNDS {
        for (run, _, calls, rounds, samples) in &mut timing {
            if round < *rounds {
                samples.push(sample(run, *calls));
            }
        }
    }
    let timed = |(run, reached, _, _, samples): (Run, End, u32, usize, Vec<f64>)| Timed {
        error: (rules.error)(&reached.y),
        ms: median(samples),
        peer: run.peer,
        method: run.method,
        tol: run.tol,
        num_steps: reached.num_steps,
        num_field_evals: reached.num_field_evals,
        num_factorizations: reached.num_factorizations,
    };
    timing.into_iter().map(timed).collect()
}

/// The number of calls that take about this long.
fn calls_in(duration: Duration, run: &mut Run) -> u32 {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            black_box((run.solve)().is_ok());
        }
        if start.elapsed() >= duration {
            return calls;
        }
        calls *= 2;
    }
}

/// Milliseconds per call.
fn sample(run: &mut Run, batch: u32) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        for _ in 0..batch {
            black_box((run.solve)().is_ok());
        }
        calls += batch;
        let elapsed = start.elapsed();
        if elapsed >= SAMPLE {
            return elapsed.as_secs_f64() * 1e3 / f64::from(calls);
        }
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
