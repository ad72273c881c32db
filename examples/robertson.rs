//! A stiff reaction over eleven decades of time: as three differential equations, and as two equations and a
//! constraint.
//!
//! Robertson (1966): `a' = -0.04 a + 1e4 b c`, `b' = 0.04 a - 1e4 b c - 3e7 b^2`, `c' = 3e7 b^2`, from (1, 0, 0). The
//! sum a + b + c is conserved. With `0 = a + b + c - 1` in place of the last equation the problem is `M y' = f(y)`,
//! M = diag(1, 1, 0) (Hairer, Wanner, Solving Ordinary Differential Equations II, section IV.1). Both solves also
//! compute the derivatives with respect to the three rates, as the example `cvsRoberts_FSA_dns` of CVODES does.
//! `cargo run --release --example robertson` prints the tables.

use flowline::ode::{Mass, Sensitivity};
use flowline::prelude::*;

vector_field! {
    /// The reaction.
    pub struct Robertson<R> {
        /// The rate of a alone.
        pub slow: R,
        /// The rate of b with c.
        pub back: R,
        /// The rate of b with b.
        pub fast: R,
        /// Whether the constraint replaces the last equation.
        pub is_constrained: bool,
    }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (slow, back, fast) = (self.slow * y[0], self.back * y[1] * y[2], self.fast * y[1] * y[1]);
        let last = if self.is_constrained { y[0] + y[1] + y[2] - 1.0 } else { fast };
        [-slow + back, slow - back - fast, last]
    }
}

/// The equations with the published rates.
pub const EQUATIONS: Robertson = Robertson { slow: 0.04, back: 1e4, fast: 3e7, is_constrained: false };
/// The times of the tables.
pub const TIMES: [f64; 4] = [0.4, 40.0, 4e5, 1e11];

/// The solutions of both forms at [`TIMES`].
pub fn run() -> flowline::Result<[Sensitivity<Robertson, 3>; 2]> {
    let ode = |field: Robertson| {
        let ode = Ode::from_generic(field).method(Method::Rodas5P).rtol(1e-8).atol([1e-12, 1e-16, 1e-12]);
        ode.save_at(&TIMES[..])
    };
    let equations = ode(EQUATIONS);
    let constraint = ode(Robertson { is_constrained: true, ..EQUATIONS });
    let constraint = constraint.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0]));
    let y0 = [1.0, 0.0, 0.0];
    Ok([
        equations.forward_sensitivity().solve(0.0, 1e11, y0)?,
        constraint.forward_sensitivity().solve(0.0, 1e11, y0)?,
    ])
}

fn main() -> flowline::Result<()> {
    let [equations, constraint] = run()?;
    println!("equations:  {equations}\nconstraint: {constraint}");
    println!("{:>6}  {:^33}  sum - 1, with the constraint", "t", "a, b, c");
    for ((t, y), z) in TIMES.iter().zip(&equations.ys).zip(&constraint.ys) {
        let sum = |y: &[f64; 3]| y.iter().sum::<f64>() - 1.0;
        println!("{t:>6.0e}  {:.4e} {:.4e} {:.4e}  {:+.1e}, {:+.1e}", y[0], y[1], y[2], sum(y), sum(z));
    }
    println!("{:>6}  da, db, dc / d(rate of a alone), times the rate", "t");
    for (t, by) in TIMES.iter().zip(&equations.dys_dp) {
        let [a, b, c] = by.slow.map(|derivative| derivative * EQUATIONS.slow);
        println!("{t:>6.0e}  {a:+.4e} {b:+.4e} {c:+.4e}");
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/robertson.rs"]
mod tests;
