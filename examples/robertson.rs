//! A stiff reaction over eleven decades of time: as three differential equations, and as two equations and a
//! constraint.
//!
//! Robertson (1966): `a' = -0.04 a + 1e4 b c`, `b' = 0.04 a - 1e4 b c - 3e7 b^2`, `c' = 3e7 b^2`, from (1, 0, 0). The
//! sum a + b + c is conserved. With `0 = a + b + c - 1` in place of the last equation the problem is `M y' = f(y)`,
//! M = diag(1, 1, 0) (Hairer, Wanner, Solving Ordinary Differential Equations II, section IV.1).
//! `cargo run --release --example robertson` prints the table.

use flowline::ode::Mass;
use flowline::prelude::*;

fn robertson(_t: f64, y: &[f64; 3]) -> [f64; 3] {
    let (slow, fast, back) = (0.04 * y[0], 3e7 * y[1] * y[1], 1e4 * y[1] * y[2]);
    [-slow + back, slow - fast - back, fast]
}

fn constrained(t: f64, y: &[f64; 3]) -> [f64; 3] {
    let [da, db, _] = robertson(t, y);
    [da, db, y[0] + y[1] + y[2] - 1.0]
}

/// The times of the table.
pub const TIMES: [f64; 4] = [0.4, 40.0, 4e5, 1e11];

/// The solutions of both forms at [`TIMES`], and summaries of the solves.
pub fn run() -> flowline::Result<([Vec<[f64; 3]>; 2], [String; 2])> {
    let (y0, atol) = ([1.0, 0.0, 0.0], [1e-12, 1e-16, 1e-12]);
    let equations = Ode::new(robertson).method(Method::Rodas5P).rtol(1e-8).atol(atol).save_at(&TIMES[..]);
    let equations = equations.solve(0.0, 1e11, y0)?;
    let constraint = Ode::new(constrained).method(Method::Rodas5P).rtol(1e-8).atol(atol).save_at(&TIMES[..]);
    let constraint = constraint.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0])).solve(0.0, 1e11, y0)?;
    let words = [equations.to_string(), constraint.to_string()];
    Ok(([equations.ys, constraint.ys], words))
}

fn main() -> flowline::Result<()> {
    let ([equations, constraint], words) = run()?;
    println!("equations:  {}\nconstraint: {}", words[0], words[1]);
    println!("{:>6}  {:^33}  sum - 1, with the constraint", "t", "a, b, c");
    for ((t, y), z) in TIMES.iter().zip(&equations).zip(&constraint) {
        let sum = |y: &[f64; 3]| y.iter().sum::<f64>() - 1.0;
        println!("{t:>6.0e}  {:.4e} {:.4e} {:.4e}  {:+.1e}, {:+.1e}", y[0], y[1], y[2], sum(y), sum(z));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/robertson.rs"]
mod tests;
