//! What a flow is trained on.

use super::Cnf;
use super::solve::SolveStats;
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::nn::Drift;
use crate::tensor::{Key, Tensor, map_rows};

/// The negative mean log-density of the rows of x in nats and what their paths cost, `mean(w (cost - log p(x)))`, and what
/// the solves took; paths cost nothing unless the flow's settings say so ([`PathCost`](super::PathCost)).
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
    let (log_prob, cost, stats) = flow.density_and_cost(x, &flow.draw_probes(x.shape()[0], key))?;
    let gain = match cost {
        Some(cost) => log_prob - cost,
        None => log_prob,
    };
    let weighted = match weights {
        Some(weights) => gain * weights,
        None => gain,
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
    flow_matching_loss_given(drift, x1, None, key)
}

/// [`flow_matching_loss`] of rows that each have a class, labels `[n, 1]` in the element type of x1.
///
/// # Panics
/// When labels are given to a field without classes, or are not one a row.
pub fn flow_matching_loss_given<D: Drift>(
    drift: &D,
    x1: &Tensor,
    labels: Option<&Tensor>,
    key: &Key,
) -> Tensor {
    let (n, [noise, time]) = (x1.shape()[0], key.split());
    let x0 = noise.normal(x1.shape().clone()).cast(x1.dtype());
    let place = time.uniform(Shape::scalar()) + Tensor::iota(DType::F32, [n, 1], 0) * (1.0 / n as f64);
    let t = (&place - place.floor()).cast(x1.dtype());
    let rows = [vec![x0, x1.clone(), t], labels.cloned().into_iter().collect()].concat();
    let (_, sums) = map_rows(&rows, drift.tile(), |rows| {
        let (x0, t, line) = (&rows[0], &rows[2], &rows[1] - &rows[0]);
        let velocity = drift.eval_given(t, &(x0 + t * &line), rows.get(3));
        (vec![], vec![(velocity - line).square().sum()])
    });
    &sums[0] * (1.0 / n as f64)
}
