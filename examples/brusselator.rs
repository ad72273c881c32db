//! A partial differential equation by the method of lines: the Brusselator with diffusion in one space dimension.
//!
//! `u_t = A + u^2 v - (B + 1) u + a u_xx`, `v_t = B u - u^2 v + a v_xx` on (0, 1) with A = 1, B = 3, a = 1/50,
//! u = 1 and v = 3 at both ends, u = 1 + sin(2 pi x) and v = 3 at the start (Hairer, Wanner, Solving Ordinary
//! Differential Equations II, section IV.1). With N interior points, second differences give 2N equations.
//! `cargo run --release --example brusselator -- [FOLDER]` writes `brusselator.png` there.
//!
//! Diffusion makes it stiff: stability limits the steps of an explicit method to 3.3 / (4 a (N + 1)^2) at any
//! tolerance. At N = 200 the limit is 1e-3, so the solve takes ten thousand steps, in a fraction of a second. For
//! finer grids use `Method::Rodas5P`, or `Method::Rkc2` as in `brusselator_2d`.

use flowline::plot::{self, SpaceTime};
use flowline::prelude::*;
use std::f64::consts::TAU;
use std::path::Path;

const DIFFUSION: f64 = 1.0 / 50.0;

/// dy/dt of `[u, v]`, each on the interior points.
fn brusselator(y: &[f64], dy: &mut [f64]) {
    let n = y.len() / 2;
    let (u, v) = y.split_at(n);
    let (du, dv) = dy.split_at_mut(n);
    let rate = DIFFUSION * ((n + 1) * (n + 1)) as f64;
    for i in 0..n {
        let around = |w: &[f64], end: f64| {
            let left = if i > 0 { w[i - 1] } else { end };
            let right = if i + 1 < n { w[i + 1] } else { end };
            left - 2.0 * w[i] + right
        };
        let reaction = u[i] * u[i] * v[i];
        du[i] = 1.0 + reaction - 4.0 * u[i] + rate * around(u, 1.0);
        dv[i] = 3.0 * u[i] - reaction + rate * around(v, 3.0);
    }
}

/// Solves on n points and plots u over time and space; returns u and v in the middle at t = 10, and a summary of
/// the solve.
pub fn run(folder: &Path, n: usize) -> flowline::Result<([f64; 2], String)> {
    let x = |i: usize| (i + 1) as f64 / (n + 1) as f64;
    let u0 = (0..n).map(|i| 1.0 + (TAU * x(i)).sin());
    let y0: Vec<f64> = u0.chain((0..n).map(|_| 3.0)).collect();

    let ts: Vec<f64> = (0..=400).map(|i| f64::from(i) / 40.0).collect();
    let solution = Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| brusselator(y, dy))
        .rtol(1e-6)
        .atol(1e-6)
        .save_at(&ts)
        .save_fn(|_t, y| y[..n].to_vec()) // save u, the first half of the components
        .solve(0.0, 10.0, y0)?;

    let title = "The Brusselator oscillates after the first wave";
    let field = SpaceTime { title, name: "u", ts: &solution.ts, rows: &solution.ys, x: [x(0), x(n - 1)] };
    plot::space_time(&field)?.save(folder.join("brusselator.png"))?;
    Ok(([solution.y1[n / 2], solution.y1[n + n / 2]], solution.to_string()))
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (middle, solve) = run(Path::new(&folder), 200)?;
    println!("{solve}");
    println!("u and v in the middle at t = 10: {middle:.6?}; {folder}/brusselator.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/brusselator.rs"]
mod tests;
