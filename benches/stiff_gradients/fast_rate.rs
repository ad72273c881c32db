//! The gradient of a fast rate k: reverse mode by `Rodas5P` beside the exact derivative.
//!
//! Implicit methods damp fast modes. The derivative of a damped mode with respect to its rate is damped too, and
//! Fronk and Petzold (2025, The vanishing gradient problem for stiff neural differential equations, arXiv 2508.01519)
//! show that in a long step it tends to 0. Two linear problems with exact solutions measure when the gradient suffers:
//! - `Follow`: y' = -k (y - cos t), y(0) = 2. The transient decays as e^-kt. After it, y hardly depends on k: k dy/dk
//!   is about -sin(t) / k.
//! - `Branch`: x' = e^-t - (k + l) x, p' = k x, both from 0, with l = k held constant. The fast x decays to p or to
//!   another product. k determines the share, so k dp/dk is about p / 2.

use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;

/// A problem with its exact solution.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Problem {
    Follow,
    Branch,
}

/// The end of each solve.
const T1: f64 = 2.0;
/// Relative tolerances of the table; `atol` is a thousandth of them.
const RTOLS: [f64; 4] = [1e-3, 1e-6, 1e-9, 1e-12];

impl Problem {
    /// y or p at t, and its derivative with respect to ln k.
    fn exact(self, k: f64, t: f64) -> [f64; 2] {
        match self {
            Problem::Follow => {
                let (sin, cos) = t.sin_cos();
                let (square, decayed) = (1.0 + k * k, (-k * t).exp());
                // y = slow + transient * decayed.
                let slow = (k * k * cos + k * sin) / square;
                let transient = 2.0 - k * k / square;
                let by_slow = k * (2.0 * k * cos + (1.0 - k * k) * sin) / square.powi(2);
                let by_transient = -2.0 * k * k / square.powi(2);
                [slow + transient * decayed, by_slow + (by_transient - k * t * transient) * decayed]
            }
            Problem::Branch => {
                // With s = k + l, x = (e^-t - e^-st) / (s - 1), whose integral is sum / (s - 1).
                let s = 2.0 * k;
                let decayed = (-s * t).exp();
                let sum = -(-t).exp_m1() - (1.0 - decayed) / s;
                let by_s = (1.0 - decayed) / (s * s) - t * decayed / s;
                let p = k / (s - 1.0) * sum;
                [p, p * (1.0 - k / (s - 1.0)) + k * k / (s - 1.0) * by_s]
            }
        }
    }

    /// y or p at t, and the accepted steps to [`T1`]; without an rtol, by constant steps of 0.01.
    fn solve(self, ln_k: &Tensor, l: f64, t: f64, rtol: Option<f64>) -> flowline::Result<(Tensor, Tensor)> {
        let k = ln_k.exp();
        let field = |t: Tensor, y: &Tensor| match self {
            Problem::Follow => &k * (t.cos() - y),
            Problem::Branch => {
                let x = y.index(0);
                Tensor::stack(&[(-t).exp() - (&k + l) * &x, &k * &x])
            }
        };
        let y0 = match self {
            Problem::Follow => Tensor::from(2.0),
            Problem::Branch => Tensor::from([0.0, 0.0]),
        };
        let ode = Ode::new(field).method(Method::Rodas5P).save_at(&Tensor::from([t, T1]));
        let ode = match rtol {
            Some(rtol) => ode.rtol(rtol).atol(1e-3 * rtol),
            None => ode.controller(ConstantStepSize { dt0: 0.01 }),
        };
        let solution = ode.solve(0.0, T1, y0)?;
        let y = solution.ys.index(0);
        Ok((if self == Problem::Follow { y } else { y.index(1) }, solution.stats.num_accepted))
    }

    /// S: |k dy/dk| at t, relative to the largest |y| of the solve.
    fn size(self, k: f64, t: f64) -> f64 {
        let largest = if self == Problem::Follow { 2.0 } else { self.exact(k, T1)[0] };
        self.exact(k, t)[1].abs() / largest
    }

    /// The relative errors of the value at t and of its derivative.
    fn errors(self, k: f64, t: f64, rtol: Option<f64>) -> [f64; 2] {
        let value = |ln_k: &Tensor| Ok(self.solve(ln_k, k, t, rtol)?.0);
        let found = value_and_grad(value, &Tensor::from(k.ln())).unwrap();
        let [y, by_ln_k] = self.exact(k, t);
        [(found.0.item() / y - 1.0).abs(), (found.1.item() / by_ln_k - 1.0).abs()]
    }
}

/// Prints the table, the steps, and the largest error of random cases.
pub fn run() {
    println!("Rodas5P: relative errors of y and of dy/dk; S = |k dy/dk| / max |y|\n");
    println!("| problem | t | k | S | rtol 1e-3 | 1e-6 | 1e-9 | 1e-12 | constant steps of 0.01 |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (problem, decays) in [
        (Problem::Follow, Some(1.0)),
        (Problem::Follow, Some(10.0)),
        (Problem::Follow, Some(20.0)),
        (Problem::Follow, None),
        (Problem::Branch, None),
    ] {
        for k in [1e1, 1e2, 1e4, 1e6, 1e8] {
            let t = decays.map_or(T1, |decays| decays / k);
            let errors = |rtol| {
                let [y, by_k] = problem.errors(k, t, rtol);
                format!("{y:.0e}, {by_k:.0e}")
            };
            let [a, b, c, d] = RTOLS.map(|rtol| errors(Some(rtol)));
            let (s, constant) = (problem.size(k, t), errors(None));
            let time = decays.map_or(format!("{T1}"), |decays| format!("{decays}/k"));
            println!("| {problem:?} | {time} | {k:.0e} | {s:.0e} | {a} | {b} | {c} | {d} | {constant} |");
        }
    }
    let k = 1e8_f64;
    let steps = |rtol| {
        let solved = Problem::Follow.solve(&Tensor::from(k.ln()), k, T1, Some(rtol)).unwrap();
        solved.1.item().to_string()
    };
    println!("\nAccepted steps of Follow with k = {k:.0e}: {}.", RTOLS.map(steps).join(", "));
    let largest = largest(1_000);
    println!("In 1,000 random cases, the relative error of dy/dk is at most {largest:.1} rtol / S.");
}

/// The largest relative error of dy/dk in units of rtol / S in n random cases: k from 10 to 1e8, rtol from 1e-12 to
/// 1e-3, t from 0.1 to 40 times 1/k or from 0 to [`T1`], both problems.
fn largest(n: usize) -> f64 {
    let draws = Key::new(0).uniform([n, 3]).to_vec();
    let ratio = |(i, draw): (usize, &[f64])| {
        let problem = if i % 4 == 0 { Problem::Branch } else { Problem::Follow };
        let (k, rtol) = (10_f64.powf(1.0 + 7.0 * draw[0]), 10_f64.powf(-3.0 - 9.0 * draw[1]));
        let t = if i % 3 == 0 { T1 * draw[2] } else { (10_f64.powf(-1.0 + 2.6 * draw[2]) / k).min(T1) };
        problem.errors(k, t, Some(rtol))[1] * problem.size(k, t) / rtol
    };
    draws.chunks_exact(3).enumerate().map(ratio).fold(0.0, f64::max)
}
