//! Densities of a flow: integrated from the data end to the base end, or along with samples.
//!
//! This file loops over the blocks and accumulates the log-density, the path regularization and the solver
//! counters. `solve` integrates one block at a time.

use super::solve::FlowStats;
use super::{Cnf, CnfOptions, Divergence, PathRegularization};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor};

/// Densities.
impl<D: VelocityField> Cnf<D> {
    /// The log-density of each row of x in nats, with the exact divergence regardless of the flow's setting.
    ///
    /// On concrete tensors, each call traces a program and runs it on at most 4,096 rows at a time, with a cached plan
    /// if an earlier call had as many rows. To trace only once, keep a [`Chunked`](super::Chunked).
    ///
    /// # Shapes and units
    /// x `[n, dim]`, cast to the element type of the weights ([`Cnf::dtype`]); the result `[n]`, of this type. An f32
    /// flow computes densities of f64 rows in f32. For densities in f64, cast the weights:
    /// `flow.cast_floats(DType::F64)`.
    ///
    /// # Errors
    /// Invalid settings, or a solve that ended early.
    #[doc(alias = "logpdf")]
    pub fn log_prob(&self, x: &Tensor) -> Result<Tensor> {
        self.clone().divergence(Divergence::Exact).log_prob_estimate(x, &Key::new(0))
    }

    /// The log-density of each row of x in nats with the flow's [divergence](Cnf::divergence) setting. With
    /// Hutchinson's estimator it is an unbiased estimate, with probes sampled from the key. An evaluation of the
    /// field then costs one Jacobian-vector product per probe. An exact divergence ignores the key.
    ///
    /// # Shapes and units
    /// As [`Cnf::log_prob`].
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::extra::ProbeDistribution;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let [init, data, probes] = Key::new(0).split();
    /// let flow = Cnf::new(ConcatSquash::new(50, [32], &init))
    ///     .divergence(Divergence::hutchinson(ProbeDistribution::Rademacher));
    /// let x = data.normal([8, 50]);
    /// let off = flow.log_prob_estimate(&x, &probes)? - flow.log_prob(&x)?;
    /// assert!(off.abs().max().item() > 0.0 && off.mean().abs().item() < 1.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn log_prob_estimate(&self, x: &Tensor, key: &Key) -> Result<Tensor> {
        self.on_rows(x, key, |flow, x, key| Ok(flow.log_prob_with_stats(x, key)?.0))
    }

    /// [`Cnf::log_prob_estimate`] with the counters of its solves; for losses inside a jitted function.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    pub fn log_prob_with_stats(&self, x: &Tensor, key: &Key) -> Result<(Tensor, FlowStats)> {
        self.density_with_stats(x, &self.draw_probes(x.shape()[0], key))
    }

    /// [`Cnf::log_prob_estimate`] with the given probes instead of sampled ones.
    ///
    /// # Shapes and units
    /// x `[n, dim]`; one tensor of probes `[n, num_probes dim]` per block, from the base end to the data end.
    /// An exact divergence ignores them.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    ///
    /// # Panics
    /// When the divergence is estimated and there is not one tensor of that shape per block.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::extra::ProbeDistribution;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(1, [8], &key));
    /// let x = Tensor::from([[0.5], [-1.0]]);
    /// let exact = flow.log_prob(&x)?;
    /// // In one dimension a probe of length 1 is exact.
    /// let along = flow.divergence(Divergence::hutchinson(ProbeDistribution::Rademacher));
    /// let along = along.log_prob_with_probes(&x, &[Tensor::from([[1.0], [-1.0]])])?;
    /// assert!((along - exact).abs().max().item() < 1e-5);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn log_prob_with_probes(&self, x: &Tensor, probes: &[Tensor]) -> Result<Tensor> {
        if !self.settings.is_random() {
            return Ok(self.density_with_stats(x, &[])?.0);
        }
        let (n, blocks) = (x.shape()[0], self.blocks.len());
        let wanted = self.settings.divergence.num_probes() * self.base.dim;
        assert!(
            probes.len() == blocks && probes.iter().all(|e| e.shape()[..] == [n, wanted]),
            "a flow of {blocks} blocks needs one tensor of probes [{n}, {wanted}] per block, got {probes:?}"
        );
        let probes: Vec<Tensor> = probes.iter().map(|e| e.cast(self.dtype())).collect();
        Ok(self.density_with_stats(x, &probes)?.0)
    }

    fn density_with_stats(&self, x: &Tensor, probes: &[Tensor]) -> Result<(Tensor, FlowStats)> {
        let settings =
            CnfOptions { path_regularization: PathRegularization::default(), ..self.settings.clone() };
        let (log_prob, _, counts) = Cnf { settings, ..self.clone() }.density_and_cost(x, probes)?;
        Ok((log_prob, counts))
    }

    /// The log-density of each row, its path regularization (see [`PathRegularization`]) if set, and the
    /// counters.
    pub(super) fn density_and_cost(
        &self,
        x: &Tensor,
        probes: &[Tensor],
    ) -> Result<(Tensor, Option<Tensor>, FlowStats)> {
        let (mut rows, counts) = self.each_tile(x, probes, |flow, x, labels, probes| {
            let (mut x, mut change, mut costs, mut counts) = (x.clone(), None, None, None);
            for (block, probes) in flow.blocks.iter().zip(probes).rev() {
                let span = (flow.settings.t1, 0.0);
                let way = flow.settings.flow_with_density((block, labels), span, &x, *probes)?;
                x = way.y1;
                change = Some(sum(change, way.change));
                costs = way.cost.map(|cost| sum(costs, cost));
                counts = Some(sum(counts, way.counts));
            }
            let (change, counts) = change.zip(counts).expect("invariant: at least one block");
            let log_prob = flow.base.log_prob(&x) - change;
            Ok((std::iter::once(log_prob).chain(costs).collect(), counts))
        })?;
        let cost = (rows.len() > 1).then(|| rows.remove(1));
        Ok((rows.remove(0), cost, counts))
    }

    /// `x = flow(z)` and log p(x) for z at the base end.
    pub(crate) fn push_with_density(&self, z: &Tensor, key: &Key) -> Result<(Tensor, Tensor)> {
        let probes = self.draw_probes(z.shape()[0], key);
        let (rows, _) = self.each_tile(z, &probes, |flow, z, labels, probes| {
            let (mut x, mut log_prob, mut counts) = (z.clone(), flow.base.log_prob(z), None);
            for (block, probes) in flow.blocks.iter().zip(probes) {
                let span = (0.0, flow.settings.t1);
                let way = flow.settings.flow_with_density((block, labels), span, &x, *probes)?;
                x = way.y1;
                log_prob = log_prob + way.change;
                counts = Some(sum(counts, way.counts));
            }
            Ok((vec![x, log_prob], counts.expect("invariant: at least one block")))
        })?;
        let [x, log_prob] = rows.try_into().expect("invariant: two results per row");
        Ok((x, log_prob))
    }

    /// The probes of each block for n rows, from the base end on; none for an exact divergence.
    pub(super) fn draw_probes(&self, n: usize, key: &Key) -> Vec<Tensor> {
        let draw = |i: u32| {
            let key = if self.settings.is_random() { key.fold_in(i) } else { key.clone() };
            self.settings.divergence.draw(n, self.base.dim, self.dtype(), &key)
        };
        (0..self.blocks.len() as u32).filter_map(draw).collect()
    }
}

fn sum(a: Option<Tensor>, b: Tensor) -> Tensor {
    match a {
        Some(a) => a + b,
        None => b,
    }
}
