//! A bouncing ball. One event resets the state at each bounce, and another event records the highest points. A second
//! solve saves the energy, a function of the state.
//!
//! `cargo run --release --example bouncing_ball -- [FOLDER]` writes `bouncing_ball.png` to FOLDER.

use flowline::plot;
use flowline::prelude::*;
use std::path::Path;

const GRAVITY: f64 = 9.81;
/// Coefficient of restitution: the speed just after a bounce over the speed just before it.
const RESTITUTION: f64 = 0.9;

/// Solves and plots. Returns the times of the bounces, and the energies per unit mass at t = 0, 2, ..., 8.
pub fn run(folder: &Path) -> flowline::Result<(Vec<f64>, Vec<f64>)> {
    let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -GRAVITY])
        .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -RESTITUTION)
        .event(Event::falling(), |_t, y| y[1]);

    let solution = ball.clone().save_at(SaveAt::dense()).solve(0.0, 8.0, [10.0, 0.0])?;
    plot::time_series(&solution, &["height", "velocity"])?.save(folder.join("bouncing_ball.png"))?;
    let bounces = solution.events.iter().filter(|event| event.index == 0).map(|event| event.t).collect();

    let energy_ode =
        ball.save_at([0.0, 2.0, 4.0, 6.0, 8.0]).save_fn(|_t, y| 0.5 * y[1] * y[1] + GRAVITY * y[0]);
    let energies = energy_ode.solve(0.0, 8.0, [10.0, 0.0])?.ys;
    Ok((bounces, energies))
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (bounces, energies) = run(Path::new(&folder))?;
    println!("bounces at {bounces:.6?}");
    println!("energies at t = 0, 2, ..., 8: {energies:.6?}");
    println!("{folder}/bouncing_ball.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/bouncing_ball.rs"]
mod tests;
