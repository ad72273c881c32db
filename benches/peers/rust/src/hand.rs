//! A hand-written loop for one problem: Tsit5 with the I controller, without options, and without checks except the error
//! estimate.
//!
//! It is the reference for the cost of a step: the overhead of a general solver is measured against it, with the same right-hand
//! side and the same arithmetic. Its first step is 1e-3, and it saves nothing.

use crate::measure::{End, Run};
use crate::problems::Problem;
use flowline::ode::tableaux::TSIT5;

const B: &[f64] = TSIT5.b;
const E: &[f64] = match TSIT5.b_err {
    Some(b_err) => b_err,
    None => &[],
};
/// `A[i]` gives the argument of stage i + 2.
const A: [&[f64]; 6] = [TSIT5.row(1), TSIT5.row(2), TSIT5.row(3), TSIT5.row(4), TSIT5.row(5), TSIT5.row(6)];

/// The ratio of the next step size to the last, from the square of the error ratio.
#[inline(always)]
fn factor(ratio2: f64) -> f64 {
    0.9 * ratio2.powf(-0.1)
}

/// `y + h sum`.
#[inline(always)]
fn step<const N: usize>(y: &[f64; N], h: f64, sum: impl Fn(usize) -> f64) -> [f64; N] {
    std::array::from_fn(|j| y[j] + h * sum(j))
}

/// On arrays: everything stays on the stack.
fn solve_fixed<P: Problem, const N: usize>(tol: f64, y0: [f64; N]) -> ([f64; N], u64) {
    let f = |y: &[f64; N]| {
        let mut dy = [0.0; N];
        P::f(y, &mut dy);
        dy
    };
    let (mut t, mut h, mut y, mut num_steps) = (0.0, 1e-3, y0, 0);
    let mut k1 = f(&y);
    while t < P::T1 {
        let last = t + h >= P::T1;
        if last {
            h = P::T1 - t;
        }
        num_steps += 1;
        let k2 = f(&step(&y, h, |j| A[0][0] * k1[j]));
        let k3 = f(&step(&y, h, |j| A[1][0] * k1[j] + A[1][1] * k2[j]));
        let k4 = f(&step(&y, h, |j| A[2][0] * k1[j] + A[2][1] * k2[j] + A[2][2] * k3[j]));
        let k5 = f(&step(&y, h, |j| A[3][0] * k1[j] + A[3][1] * k2[j] + A[3][2] * k3[j] + A[3][3] * k4[j]));
        let k6 = f(&step(&y, h, |j| {
            A[4][0] * k1[j] + A[4][1] * k2[j] + A[4][2] * k3[j] + A[4][3] * k4[j] + A[4][4] * k5[j]
        }));
        let y1 = step(&y, h, |j| {
            B[0] * k1[j] + B[1] * k2[j] + B[2] * k3[j] + B[3] * k4[j] + B[4] * k5[j] + B[5] * k6[j]
        });
        let k7 = f(&y1);
        let mut sum = 0.0;
        for j in 0..N {
            let e = E[0] * k1[j]
                + E[1] * k2[j]
                + E[2] * k3[j]
                + E[3] * k4[j]
                + E[4] * k5[j]
                + E[5] * k6[j]
                + E[6] * k7[j];
            let ratio = h * e / (tol + tol * y[j].abs().max(y1[j].abs()));
            sum += ratio * ratio;
        }
        let ratio2 = sum / N as f64;
        if ratio2 < 1.0 {
            t = if last { P::T1 } else { t + h };
            (y, k1) = (y1, k7);
            h *= factor(ratio2).clamp(1.0, 10.0);
        } else {
            h *= factor(ratio2).clamp(0.2, 0.9);
        }
    }
    (y, num_steps)
}

/// On vectors: ten of them, allocated once, one loop per stage.
fn solve_heap<P: Problem>(tol: f64, y0: &[f64]) -> (Vec<f64>, u64) {
    let n = y0.len();
    let mut y = y0.to_vec();
    let (mut next, mut error) = (vec![0.0; n], vec![0.0; n]);
    let [mut k1, mut k2, mut k3, mut k4, mut k5, mut k6, mut k7] = std::array::from_fn(|_| vec![0.0; n]);
    let (mut t, mut h, mut num_steps) = (0.0, 1e-3, 0);
    P::f(&y, &mut k1);
    while t < P::T1 {
        let last = t + h >= P::T1;
        if last {
            h = P::T1 - t;
        }
        num_steps += 1;
        /// Each component of `$out` from its `sum a_i k_i` and its y, in one loop.
        macro_rules! weighted {
            ($out:ident, |$sum:ident, $y:ident| $value:expr, $a:expr; $($i:literal $k:ident)*) => {{
                let (y, k1, $out) = (&y[..n], &k1[..n], &mut $out[..n]);
                $( let $k = &$k[..n]; )*
                for j in 0..n {
                    let ($sum, $y) = ($a[0] * k1[j] $( + $a[$i] * $k[j] )*, y[j]);
                    $out[j] = $value;
                }
            }};
        }
        macro_rules! combine {
            ($($arguments:tt)*) => { weighted!(next, |sum, y| y + h * sum, $($arguments)*) };
        }
        combine!(A[0];);
        P::f(&next, &mut k2);
        combine!(A[1]; 1 k2);
        P::f(&next, &mut k3);
        combine!(A[2]; 1 k2 2 k3);
        P::f(&next, &mut k4);
        combine!(A[3]; 1 k2 2 k3 3 k4);
        P::f(&next, &mut k5);
        combine!(A[4]; 1 k2 2 k3 3 k4 4 k5);
        P::f(&next, &mut k6);
        combine!(B; 1 k2 2 k3 3 k4 4 k5 5 k6);
        P::f(&next, &mut k7);
        weighted!(error, |sum, _y| h * sum, E; 1 k2 2 k3 3 k4 4 k5 5 k6 6 k7);
        let ratio2 = squared_ratio(tol, &error, &y, &next);
        if ratio2 < 1.0 {
            t = if last { P::T1 } else { t + h };
            std::mem::swap(&mut y, &mut next);
            std::mem::swap(&mut k1, &mut k7);
            h *= factor(ratio2).clamp(1.0, 10.0);
        } else {
            h *= factor(ratio2).clamp(0.2, 0.9);
        }
    }
    (y, num_steps)
}

/// Mean square of the scaled errors, in eight parallel sums, because a single sum waits for each addition.
fn squared_ratio(tol: f64, error: &[f64], y0: &[f64], y1: &[f64]) -> f64 {
    let square = |error: f64, y0: f64, y1: f64| {
        let ratio = error / (tol + tol * y0.abs().max(y1.abs()));
        ratio * ratio
    };
    let mut sums = [0.0; 8];
    let chunks = error.chunks_exact(8).zip(y0.chunks_exact(8)).zip(y1.chunks_exact(8));
    for ((error, y0), y1) in chunks {
        for i in 0..8 {
            sums[i] += square(error[i], y0[i], y1[i]);
        }
    }
    for j in error.len() / 8 * 8..error.len() {
        sums[0] += square(error[j], y0[j], y1[j]);
    }
    sums.iter().sum::<f64>() / error.len() as f64
}

/// The end value if none is published: that of this loop at 1e-13.
pub fn end<P: Problem>() -> Vec<f64> {
    solve_heap::<P>(1e-13, &P::y0()).0
}

fn reached(y: Vec<f64>, num_steps: u64) -> Result<End, String> {
    Ok(End { y, num_steps, num_field_evals: 6 * num_steps + 1, ..End::default() })
}

pub fn fixed<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let y0: [f64; N] = P::y0().try_into().expect("the problem has N unknowns");
    let solve = move || {
        let (y, num_steps) = solve_fixed::<P, N>(tol, y0);
        reached(y.to_vec(), num_steps)
    };
    vec![Run::new("hand", "tsit5", tol, solve)]
}

pub fn heap<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let y0 = P::y0();
    let solve = move || {
        let (y, num_steps) = solve_heap::<P>(tol, &y0);
        reached(y, num_steps)
    };
    vec![Run::new("hand", "tsit5", tol, solve)]
}
