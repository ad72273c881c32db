//! What a flow is trained on.

use super::Cnf;
use super::solve::SolveStats;
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::nn::Drift;
use crate::tensor::{Key, Tensor, map_rows};

/// The negative mean log-density of the rows of x in nats, `-mean(w log p(x))`, and what the solves took.
///
/// # Shapes and units
/// x `[n, dim]`, weights `[n]` (1 where not given).
///
/// # Errors
/// As [`Cnf::log_prob`].
///
/// # References
/// Chen et al. (2018), section 4; the weights are those of a weighted sample.
pub fn maximum_likelihood_loss<D: Drift>(
    flow: &Cnf<D>,
    x: &Tensor,
    weights: Option<&Tensor>,
    key: &Key,
) -> Result<(Tensor, SolveStats)> {
    let (log_prob, stats) = flow.log_prob_with_stats(x, key)?;
    let weighted = match weights {
        Some(weights) => log_prob * weights,
        None => log_prob,
    };
    Ok((-weighted.mean(), stats))
}

/// Conditional flow matching along straight lines: the mean over the rows of
/// `|f(t, (1 - t) x0 + t x1) - (x1 - x0)|^2`, x0 standard normal.
///
/// Its minimum over all fields is one whose flow over t in [0, 1] takes the normal density to that of the
/// data: no solve is needed in training. Times are stratified, `t = (u + i / n) mod 1` for row i with one
/// u in [0, 1) for all: each row's t is uniform, and every update sees the whole of [0, 1].
///
/// # Shapes and units
/// x1 `[n, dim]`, rows in random order.
///
/// # References
/// Lipman et al. (2023), Flow matching for generative modeling, eq. 23 with sigma_min = 0.
pub fn flow_matching_loss<D: Drift>(drift: &D, x1: &Tensor, key: &Key) -> Tensor {
    let (n, [noise, time]) = (x1.shape()[0], key.split());
    let x0 = noise.normal(x1.shape().clone()).cast(x1.dtype());
    let place = time.uniform(Shape::scalar()) + Tensor::iota(DType::F32, [n, 1], 0) * (1.0 / n as f64);
    let t = (&place - place.floor()).cast(x1.dtype());
    let (_, sums) = map_rows(&[x0, x1.clone(), t], drift.tile(), |rows| {
        let (x0, t, line) = (&rows[0], &rows[2], &rows[1] - &rows[0]);
        let velocity = drift.eval(t, &(x0 + t * &line));
        (vec![], vec![(velocity - line).square().sum()])
    });
    &sums[0] * (1.0 / n as f64)
}
