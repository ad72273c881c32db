//! A bouncing ball. One event resets the state at each bounce, and another event records the highest points. A second
//! solve saves the energy, a function of the state. A third one computes the derivatives of the times of the bounces with
//! respect to the restitution: the events are functions of the `vector_field!`, so they have derivatives.
//!
//! `cargo run --release --example bouncing_ball -- [FOLDER]` writes `bouncing_ball.png` to FOLDER.

use flowline::plot;
use flowline::prelude::*;
use std::path::Path;

const GRAVITY: f64 = 9.81;

vector_field! {
    /// y: height and velocity.
    struct Ball<R> {
        gravity: R,
        /// The speed just after a bounce over the speed just before it.
        restitution: R,
    }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1], -self.gravity] }
    fn height(&self, _t, y: &[R; 2]) -> R { y[0] }
    fn velocity(&self, _t, y: &[R; 2]) -> R { y[1] }
    fn bounce(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0], -self.restitution * y[1]] }
}

/// The results of the solves.
pub struct Bounces {
    /// The time of each bounce.
    pub times: Vec<f64>,
    /// Its derivative with respect to the restitution.
    pub by_restitution: Vec<f64>,
    /// The energies per unit mass at t = 0, 2, ..., 8.
    pub energies: Vec<f64>,
}

/// Solves and plots.
pub fn run(folder: &Path) -> flowline::Result<Bounces> {
    let ball = Ode::from_generic(Ball { gravity: GRAVITY, restitution: 0.9 })
        .on_field_event(Event::falling(), Ball::height, Ball::bounce)
        .field_event(Event::falling(), Ball::velocity);

    let solution = ball.clone().save_at(SaveAt::dense()).solve(0.0, 8.0, [10.0, 0.0])?;
    plot::time_series(&solution, &["height", "velocity"])?.save(folder.join("bouncing_ball.png"))?;
    let times = solution.events.iter().filter(|event| event.index == 0).map(|event| event.t).collect();

    let s = ball.clone().forward_sensitivity().solve(0.0, 8.0, [10.0, 0.0])?;
    let bounces = s.events.iter().filter(|event| event.index == 0);
    let by_restitution = bounces.map(|event| event.dt_dp.restitution).collect();

    let energy_ode =
        ball.save_at([0.0, 2.0, 4.0, 6.0, 8.0]).save_fn(|_t, y| 0.5 * y[1] * y[1] + GRAVITY * y[0]);
    let energies = energy_ode.solve(0.0, 8.0, [10.0, 0.0])?.ys;
    Ok(Bounces { times, by_restitution, energies })
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let Bounces { times, by_restitution, energies } = run(Path::new(&folder))?;
    println!("bounces at {times:.6?}, by the restitution {by_restitution:.6?}");
    println!("energies at t = 0, 2, ..., 8: {energies:.6?}");
    println!("{folder}/bouncing_ball.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/bouncing_ball.rs"]
mod tests;
