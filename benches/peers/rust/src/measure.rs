//! Timing of solves, the same for every crate: the solves of a problem run in turn.
//!
//! The speed of a machine drifts within minutes, and other work comes and goes. Samples of all compared solves are therefore
//! taken in rounds, one sample per solve and round, so that a disturbance affects all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds, which is the number of samples per solve.
pub const ROUNDS: usize = 7;
/// The minimum duration of a sample.
const SAMPLE: Duration = Duration::from_millis(20);

/// A slower solve is not timed: nobody would use it at that tolerance.
const LONGEST: Duration = Duration::from_millis(400);

/// The result of a solve.
#[derive(Clone, Debug)]
pub struct End {
    /// The end value, or all end values of an ensemble.
    pub y: Vec<f64>,
    /// Steps attempted: accepted and rejected.
    pub num_steps: u64,
    /// Function evaluations.
    pub num_field_evals: u64,
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
    /// `max_i |y_i - end_i| / (1 + |end_i|)`.
    pub error: f64,
    pub num_steps: u64,
    pub num_field_evals: u64,
}

/// Times the runs in rounds. A failing solve is reported on standard error and left out.
pub fn time(runs: Vec<Run>, end: &[f64]) -> Vec<Timed> {
    let mut timing: Vec<(Run, End, u32, Vec<f64>)> = Vec::new();
    for mut run in runs {
        let start = Instant::now();
        match (run.solve)() {
            Ok(_) if start.elapsed() > LONGEST => {
                let (peer, method, tol) = (run.peer, &run.method, run.tol);
                eprintln!("{peer} {method} at {tol:e} is left out: a solve takes {:?}", start.elapsed());
            }
            Ok(end) => {
                let calls = calls_in(SAMPLE / 8, &mut run);
                timing.push((run, end, calls, Vec::new()));
            }
            Err(message) => {
                let message: String = message.chars().take(120).collect();
                eprintln!("{} {} at {:e} failed: {message}", run.peer, run.method, run.tol);
            }
        }
    }
    for _ in 0..ROUNDS {
        for (run, _, calls, samples) in &mut timing {
            samples.push(sample(run, *calls));
        }
    }
    let timed = |(run, reached, _, samples): (Run, End, u32, Vec<f64>)| Timed {
        error: error(&reached.y, end),
        ms: median(samples),
        peer: run.peer,
        method: run.method,
        tol: run.tol,
        num_steps: reached.num_steps,
        num_field_evals: reached.num_field_evals,
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

/// The largest error relative to `1 + |end|`; infinite where the numbers are not finite.
pub fn error(y: &[f64], end: &[f64]) -> f64 {
    assert_eq!(y.len(), end.len(), "one value each");
    let relative = |(y, end): (&f64, &f64)| (y - end).abs() / (1.0 + end.abs());
    let largest = y.iter().zip(end).map(relative).fold(0.0, f64::max);
    if y.iter().all(|y| y.is_finite()) { largest } else { f64::INFINITY }
}
