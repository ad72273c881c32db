//! Missing coordinates against closed forms: normal densities, and a proposal against the density that it is fitted to.

use super::*;
use crate::cnf::proposal::{Proposal, effective_size};
use crate::triangular::{above, below, cholesky};

tree! {
    /// `z' = A z` in any dimension; `a` is A transposed.
    pub(super) struct AnyLinear { a: Tensor }
}

impl VelocityField for AnyLinear {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y.matmul(&self.a)
    }
    fn dim(&self) -> usize {
        self.a.shape()[0]
    }
}

/// A flow `x = exp(A) z` with entries of A from -0.8 to 0.8, and its covariance `exp(A) exp(A)^T`, row-major.
pub(super) fn any_normal(dim: usize, key: &Key) -> (Cnf<AnyLinear>, Vec<f64>) {
    let a = ((key.uniform([dim, dim]) * 2.0 - 1.0) * 0.8).cast(DType::F64);
    let (mut term, mut exp) =
        (Tensor::from_vec([dim, dim], identity(dim)), Tensor::from_vec([dim, dim], identity(dim)));
    for k in 1..30 {
        term = term.matmul(&a) * (1.0 / f64::from(k));
        exp = exp + &term;
    }
    let covariance = exp.matmul(&exp.transpose()).to_vec();
    (Cnf::new(AnyLinear { a: a.transpose() }).fixed_steps(8), covariance)
}

fn identity(dim: usize) -> Vec<f64> {
    (0..dim * dim).map(|i| f64::from(i % (dim + 1) == 0)).collect()
}

/// The conditional mean and covariance of the other coordinates of a centered normal density, and the log-density of the
/// given ones.
fn conditional(covariance: &[f64], row: &[f64]) -> (Vec<f64>, Vec<f64>, f64) {
    let d = row.len();
    let (missing, given): (Vec<usize>, Vec<usize>) = (0..d).partition(|&i| row[i].is_nan());
    let (k, at) = (given.len(), |i: usize, j: usize| covariance[i * d + j]);
    let root = cholesky(given.iter().flat_map(|&i| given.iter().map(move |&j| at(i, j))).collect(), k);
    let solve = |x: Vec<f64>| above(&root, below(&root, x, k), k);
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let x: Vec<f64> = given.iter().map(|&i| row[i]).collect();
    let with = |m: usize| given.iter().map(|&i| at(m, i)).collect::<Vec<f64>>();
    let mean = missing.iter().map(|&m| dot(&with(m), &solve(x.clone()))).collect();
    let left = |m: usize, l: usize| at(m, l) - dot(&with(m), &solve(with(l)));
    let rest =
        missing.iter().flat_map(|&m| missing.iter().map(move |&l| (m, l))).map(|(m, l)| left(m, l)).collect();
    let log_det: f64 = (0..k).map(|i| root[i * k + i].ln()).sum();
    let log_p = -0.5 * dot(&x, &solve(x.clone())) - log_det - 0.5 * k as f64 * std::f64::consts::TAU.ln();
    (mean, rest, log_p)
}

/// Covariances and sets of given coordinates are drawn, in 2 to 5 dimensions.
#[test]
fn missing_coordinates_have_the_conditional_mean_and_covariance() {
    let n = 1000;
    for case in 0..8 {
        let [shape, start, mask, draws] = Key::new(77).fold_in(case).split();
        let d = 2 + case as usize % 4;
        let (flow, covariance) = any_normal(d, &shape);
        let mut row = flow.sample(1, &start).unwrap().to_vec();
        let which = 1 + (mask.uniform([1]).item() * ((1 << d) - 2) as f64) as usize;
        (0..d).filter(|i| which >> i & 1 == 1).for_each(|i| row[i] = f64::NAN);
        let found = flow.sample_given(&row, n, &draws).unwrap();
        let (mean, rest, log_p) = conditional(&covariance, &row);
        let effective = found.effective_sample_size;
        assert!(effective > 1000.0 && found.num_proposals == 4096, "{effective} {row:?}");
        let off = (found.log_prob_given - log_p).abs();
        assert!(off < 4.5 * found.log_prob_given_stderr + 1e-3, "{off} {}", found.log_prob_given_stderr);
        let missing: Vec<usize> = (0..d).filter(|&i| row[i].is_nan()).collect();
        for (i, x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            assert!(found.rows.iter().skip(i).step_by(d).all(|found| found == x));
        }
        let share = (1.0 / n as f64 + 1.0 / effective).sqrt();
        let m = missing.len();
        let from_mean = |r: usize, i: usize| found.rows[r * d + missing[i]] - mean[i];
        for i in 0..m {
            let off = (0..n).map(|r| from_mean(r, i)).sum::<f64>() / n as f64;
            assert!(off.abs() < 4.5 * share * rest[i * m + i].sqrt(), "mean {i} of {row:?}: {off}");
            for j in 0..=i {
                let moment = (0..n).map(|r| from_mean(r, i) * from_mean(r, j)).sum::<f64>() / n as f64;
                let spread = (rest[i * m + i] * rest[j * m + j] + rest[i * m + j].powi(2)).sqrt();
                let off = moment - rest[i * m + j];
                assert!(off.abs() < 4.5 * share * spread, "covariance {i} {j} of {row:?}: {off} {spread}");
            }
        }
    }
}

/// Two bells far apart, in the plane: the weights of proposals have mean 1, and many count.
#[test]
fn a_proposal_knows_its_density() {
    let bells = |n: usize, key: &Key| {
        let [which, noise] = key.split();
        let center = which
            .uniform([n, 1])
            .lt(0.3)
            .select(&Tensor::from([[-3.0f32, 1.0]]), &Tensor::from([[2.0f32, 0.5]]));
        (noise.normal([n, 2]) * 0.5 + center).to_vec()
    };
    let log_p = |x: &[f64]| {
        let bell = |c: [f64; 2]| {
            (-2.0 * ((x[0] - c[0]).powi(2) + (x[1] - c[1]).powi(2))).exp() / (0.5 * std::f64::consts::PI)
        };
        (0.3 * bell([-3.0, 1.0]) + 0.7 * bell([2.0, 0.5])).ln()
    };
    for (i, n) in [(0, 50), (1, 300), (2, 2000)] {
        let [points, fit, draws] = Key::new(5).fold_in(i).split();
        let proposal = Proposal::fit(&bells(n, &points), &vec![1.0 / n as f64; n], 2, &fit);
        let drawn = proposal.draw(4000, &draws);
        let log_q = proposal.log_prob(&drawn);
        let weights: Vec<f64> = drawn.chunks(2).zip(log_q).map(|(x, q)| (log_p(x) - q).exp()).collect();
        let (mean, effective) = (weights.iter().sum::<f64>() / 4000.0, effective_size(&weights));
        let error = ((4000.0 / effective - 1.0) / 3999.0).sqrt();
        assert!((mean - 1.0).abs() < 4.5 * error && effective > 800.0, "{n}: {mean} ± {error}, {effective}");
    }
}

#[test]
fn rows_that_ask_nothing_are_refused() {
    let (flow, nan) = (small(), f64::NAN);
    for (row, word) in [
        (vec![nan, nan], "no coordinate is given"),
        (vec![0.0, 1.0], "no coordinate is missing"),
        (vec![f64::INFINITY, nan], "infinite"),
        (vec![0.0, nan, nan], "3 coordinates, but the flow has 2"),
    ] {
        let refused =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| flow.sample_given(&row, 5, &key())));
        let payload = refused.unwrap_err();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap();
        assert!(message.contains(word), "{message}");
    }
}
