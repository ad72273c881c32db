//! Training objectives of a flow.

use super::Cnf;
use super::solve::FlowStats;
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor, map_rows};

/// Losses.
impl<D: VelocityField> Cnf<D> {
    /// Maximum likelihood: the mean negative log-density (NLL) of the rows of x in nats, with the flow's
    /// [divergence](Cnf::divergence) and [path regularization](Cnf::path_regularization).
    ///
    /// # Shapes and units
    /// x `[n, dim]`; the result has rank 0. The probes of an estimated divergence are sampled from the key.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    ///
    /// # References
    /// Chen et al. (2018), section 4.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [8], &key));
    /// let x = key.normal([64, 2]);
    /// let (loss, gradient) = value_and_grad(|flow: &Cnf<_>| flow.nll_loss(&x, &key), &flow)?;
    /// assert!((loss + flow.log_prob(&x)?.mean()).abs().item() < 1e-5);
    /// assert!(gradient.blocks[0].layers[0].linear.weight.abs().max().item() > 0.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn nll_loss(&self, x: &Tensor, key: &Key) -> Result<Tensor> {
        Ok(self.nll_loss_with_stats(x, None, key)?.0)
    }

    /// [`Cnf::nll_loss`] of a weighted sample, `mean(w (cost - log p(x)))`, with the counters of its solves.
    ///
    /// x `[n, dim]`, weights `[n]`, 1 by default.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    pub fn nll_loss_with_stats(
        &self,
        x: &Tensor,
        weights: Option<&Tensor>,
        key: &Key,
    ) -> Result<(Tensor, FlowStats)> {
        let (log_prob, cost, stats) = self.density_and_cost(x, &self.draw_probes(x.shape()[0], key))?;
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
    /// `|v(s, (1 - s) x0 + s x1) - (x1 - x0)|^2`, x0 standard normal.
    ///
    /// v is the flow's velocity over s in [0, 1]. The B blocks, each integrated over t in [0, t1], cover B
    /// equal parts of the line: `v = B t1 f_b((B s - b) t1, x)` with `b = floor(B s)`. The flow with the
    /// least loss maps the normal density to the data density; training needs no solve. The times s are
    /// stratified, `s = (u + i / n) mod 1` for row i of n with one shared u in [0, 1): each row's s is
    /// uniform, and every update covers all of [0, 1].
    ///
    /// # Shapes and units
    /// x1 `[n, dim]`, rows in random order. A flow with classes must be [conditioned](Cnf::condition_on) on
    /// one label per row.
    ///
    /// # Errors
    /// A solve inside the field that ended early.
    ///
    /// # Panics
    /// When the flow is conditioned but its field has no classes, the flow is not conditioned but its field has
    /// classes, or there is not one label per row.
    ///
    /// # References
    /// Lipman et al. (2023), Flow matching for generative modeling, eq. 23 with sigma_min = 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let blocks = vec![ConcatSquash::new(2, [8], &key), ConcatSquash::new(2, [8], &key.fold_in(1))];
    /// let flow = Cnf::with_blocks(blocks);
    /// let x = key.normal([64, 2]) + 1.0;
    /// let (loss, gradient) = value_and_grad(|flow: &Cnf<_>| flow.flow_matching_loss(&x, &key), &flow)?;
    /// assert!(loss.item() > 2.0 && gradient.blocks[1].layers[0].linear.weight.abs().max().item() > 0.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn flow_matching_loss(&self, x1: &Tensor, key: &Key) -> Result<Tensor> {
        let ([noise, time], n) = (key.split(), x1.shape()[0]);
        self.flow_matching_loss_of(x1, &noise, &time, (&Tensor::from(0.0f32), n))
    }

    /// The contribution of a part of a batch to [`Cnf::flow_matching_loss`]: `x1` has the rows from `first` on, and
    /// the batch has `n` rows. The contributions of all parts add up to the loss of the batch. All parts have the
    /// same key `time`, and each has its own key `noise`. `first` is f32.
    #[track_caller]
    pub(crate) fn flow_matching_loss_of(
        &self,
        x1: &Tensor,
        noise: &Key,
        time: &Key,
        (first, n): (&Tensor, usize),
    ) -> Result<Tensor> {
        let (x1, rows) = (x1.cast(self.dtype()), x1.shape()[0]);
        let x0 = noise.normal(x1.shape().clone()).cast(x1.dtype());
        let row = Tensor::iota(DType::F32, [rows, 1], 0) + first;
        let stratified = time.uniform(Shape::scalar()) + row * (1.0 / n as f64);
        let s = (&stratified - stratified.floor()).cast(x1.dtype());
        let rows = [&[x0, x1, s], self.labels_of(rows)].concat();
        let (_, sums) = map_rows(&rows, self.blocks[0].rows_per_tile(), |rows| {
            let (x0, s, line) = (&rows[0], &rows[2], &rows[1] - &rows[0]);
            let velocity = self.velocity(s, &(x0 + s * &line), rows.get(3));
            Ok((vec![], vec![(velocity - line).square().sum()]))
        })?;
        Ok(&sums[0] * (1.0 / n as f64))
    }

    /// The flow's velocity at times `[rows, 1]` in [0, 1]. Each block covers an equal part of this interval.
    fn velocity(&self, time: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let (n, t1) = (self.blocks.len() as f64, self.settings.t1);
        let time = time * n;
        let speed =
            |i: usize| self.blocks[i].eval_conditional(&((&time - i as f64) * t1), y, labels) * (n * t1);
        let last = self.blocks.len() - 1;
        // From the last block to the first: each block covers the times before the start of the next.
        (0..last).rev().fold(speed(last), |later, i| {
            let begins = Tensor::scalar(time.dtype(), (i + 1) as f64);
            time.lt(begins).select(&speed(i), &later)
        })
    }
}
