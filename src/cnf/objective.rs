//! Training objectives of a flow.

use super::solve::FlowStats;
use super::{Cnf, FlowMatching, PathPoints};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor, Tree, map_rows};

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

    /// [`Cnf::matching_loss`] at uniform times on straight lines from normal noise to the rows of x1: the mean over
    /// the rows of `|v(t, (1 - t) x0 + t x1) - (x1 - x0)|^2`, x0 standard normal. [`FlowMatching`] has other times,
    /// paths and targets.
    ///
    /// # Shapes and units
    /// x1 `[n, dim]`, rows in random order. A flow with classes must be [conditioned](Cnf::condition_on_classes) on
    /// one label per row.
    ///
    /// # Errors, panics
    /// As [`Cnf::matching_loss`].
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let blocks = vec![ConcatSquash::new(2, [8], &key), ConcatSquash::new(2, [8], &key.fold_in(1))];
    /// let flow = Cnf::from_blocks(blocks);
    /// let x = key.normal([64, 2]) + 1.0;
    /// let (loss, gradient) = value_and_grad(|flow: &Cnf<_>| flow.flow_matching_loss(&x, &key), &flow)?;
    /// assert!(loss.item() > 2.0 && gradient.blocks[1].layers[0].linear.weight.abs().max().item() > 0.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn flow_matching_loss(&self, x1: &Tensor, key: &Key) -> Result<Tensor> {
        self.matching_loss(&FlowMatching::new().draw(&x1.cast(self.dtype()), key))
    }

    /// The contribution of points to [`Cnf::matching_loss`] of a batch of `n` rows. The contributions of all parts of
    /// the batch add up to its loss.
    #[track_caller]
    pub(crate) fn matching_loss_of(&self, points: &PathPoints, n: usize) -> Result<Tensor> {
        let PathPoints { t, x, velocity } = points.cast_floats(self.dtype());
        let labels = self.labels_of(x.shape()[0]);
        let rows = [&[t, x, velocity], labels].concat();
        let (_, sums) = map_rows(&rows, self.blocks[0].rows_per_tile(), |rows| {
            let velocity = self.velocity_of(&rows[0], &rows[1], rows.get(3));
            Ok((vec![], vec![(velocity - &rows[2]).square().sum()]))
        })?;
        Ok(&sums[0] * (1.0 / n as f64))
    }

    /// [`Cnf::velocity`] with one label per row.
    pub(super) fn velocity_of(&self, time: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
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
