//! Arenstorf's orbit: a satellite on a closed orbit around the Earth and the Moon.
//!
//! The restricted three-body problem in the frame that rotates with the Moon (Hairer, Norsett, Wanner, Solving
//! Ordinary Differential Equations I, section II.0). Step sizes differ by a factor of 1,000, because close passages
//! need short steps. The period is known to 16 digits, so the distance between the ends of the orbit is the error.
//! `cargo run --release --example arenstorf -- [FOLDER]` writes `arenstorf.png` there.

use flowline::plot;
use flowline::prelude::*;
use std::path::Path;

/// The mass of the Moon as a share of the total mass.
const MU: f64 = 0.012277471;
const PERIOD: f64 = 17.0652165601579625588917206249;
const START: [f64; 4] = [0.994, 0.0, 0.0, -2.00158510637908252240537862224];

fn three_bodies(_t: f64, y: &[f64; 4]) -> [f64; 4] {
    let (to_earth, to_moon) = (y[0] + MU, y[0] - 1.0 + MU);
    let (d1, d2) = (to_earth.hypot(y[1]).powi(3), to_moon.hypot(y[1]).powi(3));
    let pull = |from_earth: f64, from_moon: f64| (1.0 - MU) * from_earth / d1 + MU * from_moon / d2;
    [y[2], y[3], y[0] + 2.0 * y[3] - pull(to_earth, to_moon), y[1] - 2.0 * y[2] - pull(y[1], y[1])]
}

/// Solves and plots; returns the distance between the orbit's ends, and the state at half the period.
pub fn run(folder: &Path) -> flowline::Result<(f64, [f64; 4])> {
    let orbit = Ode::new(three_bodies)
        .method(Method::Dop853)
        .rtol(1e-12)
        .atol(1e-12)
        .tstops(&[0.5 * PERIOD]) // a step ends at this time, so the saved value is not interpolated
        .save_at(SaveAt::ts(&[0.5 * PERIOD]).and_dense())
        .solve(0.0, PERIOD, START)?;
    plot::phase_portrait(&orbit, ["x", "y"], |y| [y[0], y[1]])?.save(folder.join("arenstorf.png"))?;
    let gap = (orbit.y1[0] - START[0]).hypot(orbit.y1[1] - START[1]);
    Ok((gap, orbit.ys[0]))
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (gap, half) = run(Path::new(&folder))?;
    println!("the orbit closes to {gap:.1e}; at half the period it is at {half:.9?}");
    println!("{folder}/arenstorf.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/arenstorf.rs"]
mod tests;
