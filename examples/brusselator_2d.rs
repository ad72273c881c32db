//! A partial differential equation in two dimensions: the Brusselator with diffusion, solved without a Jacobian by
//! `Rkc2`.
//!
//! `u_t = 1 + u^2 v - 4.4 u + a (u_xx + u_yy) + g`, `v_t = 3.4 u - u^2 v + a (v_xx + v_yy)`, periodic on the unit
//! square, with a = 0.1, u = 22 y (1 - y)^1.5 and v = 27 x (1 - x)^1.5 at the start; from t = 1.1 on the source g
//! is 5 in the disc of radius 0.1 around (0.3, 0.6) (Hairer, Wanner, Solving Ordinary Differential Equations II,
//! section IV.10). `cargo run --release --example brusselator_2d -- [N]` solves on N x N points, 64 by default.
//!
//! Diffusion limits the steps of Tsit5 to 3.3 / (8 a N^2), 1e-3 at N = 64. The limit of `Rkc2` grows with the
//! square of its number of stages, so it uses as many stages as the step size needs. A Jacobian would have a
//! band of 2 N diagonals.

use flowline::prelude::*;

const DIFFUSION: f64 = 0.1;
/// The time at which the source is switched on.
const SWITCHED: f64 = 1.1;

/// dy/dt of `[u, v]`, each row by row on n x n points.
fn brusselator(n: usize, t: f64, y: &[f64], dy: &mut [f64]) {
    let (u, v) = y.split_at(n * n);
    let (du, dv) = dy.split_at_mut(n * n);
    let rate = DIFFUSION * (n * n) as f64;
    for row in 0..n {
        let (below, above) = ((row + n - 1) % n * n, (row + 1) % n * n);
        for column in 0..n {
            let (left, right) = ((column + n - 1) % n, (column + 1) % n);
            let i = row * n + column;
            let around = |w: &[f64]| {
                w[below + column] + w[above + column] + w[row * n + left] + w[row * n + right] - 4.0 * w[i]
            };
            let (x, y) = (column as f64 / n as f64, row as f64 / n as f64);
            let is_fed = t >= SWITCHED && (x - 0.3).powi(2) + (y - 0.6).powi(2) <= 0.01;
            let reaction = u[i] * u[i] * v[i];
            du[i] = 1.0 + reaction - 4.4 * u[i] + rate * around(u) + if is_fed { 5.0 } else { 0.0 };
            dv[i] = 3.4 * u[i] - reaction + rate * around(v);
        }
    }
}

/// u and v on n x n points at `t1`, and a summary of the solve.
pub fn run(n: usize, t1: f64, tolerance: f64) -> flowline::Result<(Vec<f64>, String)> {
    let at = |i: usize| i as f64 / n as f64;
    let points = |f: fn(f64, f64) -> f64| (0..n * n).map(move |i| f(at(i % n), at(i / n)));
    let u0 = points(|_x, y| 22.0 * y * (1.0 - y).powf(1.5));
    let y0: Vec<f64> = u0.chain(points(|x, _y| 27.0 * x * (1.0 - x).powf(1.5))).collect();
    let radius = 8.0 * DIFFUSION * (n * n) as f64 + 20.0; // eigenvalue of the diffusion, bound of the reaction
    let solution = Ode::in_place(move |t: f64, y: &[f64], dy: &mut [f64]| brusselator(n, t, y, dy))
        .method(Method::Rkc2)
        .spectral_radius(move |_t, _y| radius)
        .discontinuities(&[SWITCHED])
        .rtol(tolerance)
        .atol(tolerance)
        .solve(0.0, t1, y0)?;
    let words = solution.to_string();
    Ok((solution.y1, words))
}

fn main() -> flowline::Result<()> {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(64);
    let (y1, words) = run(n, 11.5, 1e-4)?;
    println!("{words}");
    println!("u at (0, 0) and in the middle: {:.6} {:.6}", y1[0], y1[n * n / 2 + n / 2]);
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/brusselator_2d.rs"]
mod tests;
