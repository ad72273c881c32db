//! The gradient of a fast rate k: reverse mode by `Rodas5P` beside the exact derivative.
//!
//! Implicit methods damp fast modes. The derivative of a damped mode with respect to its rate is damped too, and
//! Fronk and Petzold (2025, The vanishing gradient problem for stiff neural differential equations, arXiv 2508.01519)
//! show that in a long step it tends to 0. Two linear problems with exact solutions measure when the gradient suffers:
//! - `follow`: y' = -k (y - cos t), y(0) = 2. The transient decays as e^-kt. After it, y hardly depends on k: k dy/dk
//!   is about -sin(t) / k.
//! - `branch`: x' = e^-t - (k + l) x, p' = k x, both from 0, with l = k held constant. The fast x decays to p or to
//!   another product. k determines the share, so k dp/dk is about p / 2.

use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;

/// A problem with its exact solution.
#[derive(Clone, Copy, PartialEq)]
enum Problem {
    Follow,
    Branch,
}

/// The end of each solve.
const T1: f64 = 2.0;
/// Relative tolerances; `atol` is a thousandth of them.
const RTOLS: [f64; 10] = [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12];
/// Those in the table.
const SHOWN: [usize; 4] = [0, 3, 6, 9];

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

    /// The relative errors of the value at t and of its derivative.
    fn errors(self, k: f64, t: f64, rtol: Option<f64>) -> [f64; 2] {
        let value = |ln_k: &Tensor| Ok(self.solve(ln_k, k, t, rtol)?.0);
        let found = value_and_grad(value, &Tensor::from(k.ln())).unwrap();
        let [y, by_ln_k] = self.exact(k, t);
        [(found.0.item() / y - 1.0).abs(), (found.1.item() / by_ln_k - 1.0).abs()]
    }
}

/// Prints the table, and the largest error in units of rtol |y| / |k dy/dk|.
pub fn run() {
    println!("Rodas5P: relative errors of y and of dy/dk\n");
    println!(
        "| problem | t | k | \\|k dy/dk / y\\| | rtol 1e-3 | 1e-6 | 1e-9 | 1e-12 | constant steps of 0.01 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (follow, branch) = (("follow", Problem::Follow), ("branch", Problem::Branch));
    let mut largest = 0.0_f64;
    for (of, decays) in
        [(follow, Some(1.0)), (follow, Some(10.0)), (follow, Some(20.0)), (follow, None), (branch, None)]
    {
        let (name, problem) = of;
        for k in [1e1, 1e2, 1e4, 1e6, 1e8] {
            let t = decays.map_or(T1, |decays| decays / k);
            let [y, by_ln_k] = problem.exact(k, t);
            let size = (by_ln_k / y).abs();
            let errors = RTOLS.map(|rtol| problem.errors(k, t, Some(rtol)));
            let ratios = errors.iter().zip(RTOLS).map(|([_, error], rtol)| error * size / rtol);
            largest = ratios.fold(largest, f64::max);
            let cell = |[y, by]: [f64; 2]| format!("{y:.0e}, {by:.0e}");
            let [a, b, c, d] = SHOWN.map(|i| cell(errors[i]));
            let constant = cell(problem.errors(k, t, None));
            let time = decays.map_or(format!("{T1}"), |decays| format!("{decays}/k"));
            println!("| {name} | {time} | {k:.0e} | {size:.0e} | {a} | {b} | {c} | {d} | {constant} |");
        }
    }
    let k = 1e8_f64;
    let steps = |i: usize| {
        let solved = Problem::Follow.solve(&Tensor::from(k.ln()), k, T1, Some(RTOLS[i])).unwrap();
        solved.1.item().to_string()
    };
    println!("\nAccepted steps of follow with k = {k:.0e}: {}.", SHOWN.map(steps).join(", "));
    println!("The error of dy/dk at ten tolerances is at most {largest:.1} rtol |y| / |k dy/dk|.");
}
