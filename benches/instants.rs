//! The cost of events and discontinuities: `cargo bench --bench instants`.
//!
//! Measures the time per bounce of a bouncing ball, and the time per function evaluation if each of many steps ends
//! at a discontinuity, compared with steps that end at the same times as `tstops`. The times are medians of seven
//! runs.

use flowline::ode::{Event, Ode};
use std::cell::Cell;
use std::time::Instant;

const RUNS: usize = 7;
const STOPS: usize = 10_000;

fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// Nanoseconds per bounce of an elastic ball.
fn bounce() -> f64 {
    let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81]).max_steps(1_000_000);
    let ball = ball.on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] = -y[1]);
    let start = Instant::now();
    let solution = ball.solve(0.0, 1000.0, [1.0, 0.0]).expect("a ball bounces");
    start.elapsed().as_secs_f64() * 1e9 / solution.events.len() as f64
}

/// Nanoseconds per function evaluation of a solve whose steps end at many given times.
fn stops(is_discontinuity: bool) -> f64 {
    let evaluations = Cell::new(0_u64);
    let times: Vec<f64> = (1..STOPS).map(|i| i as f64 / 100.0).collect();
    let ode = Ode::new(|_t, y: &[f64; 2]| {
        evaluations.set(evaluations.get() + 1);
        [y[1], -y[0]]
    });
    let ode = if is_discontinuity { ode.discontinuities(&times) } else { ode.tstops(&times) };
    let start = Instant::now();
    ode.solve(0.0, STOPS as f64 / 100.0, [1.0, 0.0]).expect("an oscillator swings");
    start.elapsed().as_secs_f64() * 1e9 / evaluations.get() as f64
}

fn main() {
    println!("bounce: {:.0} ns", median(bounce));
    let (tstops, discontinuities) = (median(|| stops(false)), median(|| stops(true)));
    println!("evaluation, {STOPS} tstops: {tstops:.1} ns");
    println!(
        "evaluation, {STOPS} discontinuities: {discontinuities:.1} ns, {:.2} x tstops",
        discontinuities / tstops
    );
}
