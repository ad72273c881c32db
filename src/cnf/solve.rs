//! The one place of `cnf` that knows the ODE solver.

use super::divergence::{Directions, Local, local};
use super::{Divergence, ErrorNorm, PathCost, Settings, Stepping};
use crate::error::Result;
use crate::nn::Drift;
use crate::ode::{Constant, Drive, Ode};
use crate::odeint::{self, TreeState};
use crate::tensor::Tensor;
use crate::tree;

/// What the log-density is scaled by where its error must not count: a power of two, so that no bit of
/// it is lost, small enough that against the absolute tolerance it is nothing.
const MUTED: f64 = 1.0 / (1u64 << 40) as f64;

tree! {
    /// What solves took: f64 tensors of rank 0, summed over the blocks, averaged over the rows (each tile of
    /// rows takes steps of its own).
    pub struct SolveStats {
        /// Steps attempted.
        pub num_steps: Tensor,
        /// Steps rejected.
        pub num_rejected: Tensor,
        /// Evaluations of the field; with its divergence they count once.
        pub num_field_evals: Tensor,
    }
}

impl SolveStats {
    /// The counters as one tensor `[3]`, of which no derivative is taken.
    pub(super) fn pack(stats: &odeint::Stats) -> Tensor {
        Tensor::stack(&[&stats.num_steps, &stats.num_rejected, &stats.num_field_evals]).stop_gradient()
    }

    /// The inverse of [`SolveStats::pack`].
    pub(super) fn unpack(counts: &Tensor) -> SolveStats {
        let [num_steps, num_rejected, num_field_evals] = [0, 1, 2].map(|k| counts.at(k));
        SolveStats { num_steps, num_rejected, num_field_evals }
    }
}

/// Where a block leads, the change of the log-density on the way, what the path cost, and what it took.
pub(super) struct Followed {
    pub y1: Tensor,
    pub change: Tensor,
    pub cost: Option<Tensor>,
    pub counts: Tensor,
}

impl Settings {
    /// Solves `y' = field(t, y)` over a span of time: y1 and what it took.
    ///
    /// `slack` multiplies the tolerances.
    fn integrate<Y>(
        &self,
        field: impl Fn(Tensor, &Y) -> Y,
        (from, to): (f64, f64),
        y0: &Y,
        slack: f64,
    ) -> Result<(Y, Tensor)>
    where
        Y: TreeState + Drive<Options = odeint::Options, Solution<Y> = odeint::Solution<Y>>,
    {
        let ode = Ode::new(field).method(self.method).adjoint(self.adjoint).max_steps(self.max_steps);
        let ode = match self.stepping {
            Stepping::Fixed { steps } => {
                // Whole steps, as long as those over a block or a little shorter.
                let share = (to - from).abs() / self.t1.abs();
                let steps = (share * steps as f64 - 1e-9).ceil().max(1.0);
                ode.controller(Constant { dt0: (to - from).abs() / steps })
            }
            Stepping::Adaptive { rtol, atol } => {
                let ode = ode.rtol(rtol * slack).atol(atol * slack);
                let span = (to - from).abs();
                // What is no length goes on to the solver, which names it.
                let first = self.first_step.map(|dt0| if dt0 > span { span } else { dt0 });
                if let Some(dt0) = first { ode.dt0(dt0) } else { ode }
            }
        };
        let solution = ode.solve(from, to, y0)?;
        Ok((solution.y1, SolveStats::pack(&solution.stats)))
    }

    /// Follows a block over a span of time.
    pub(super) fn flow<D: Drift>(
        &self,
        (drift, labels): (&D, Option<&Tensor>),
        span: (f64, f64),
        y0: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        self.integrate(|t: Tensor, y: &Tensor| drift.eval_given(&t, y, labels), span, y0, 1.0)
    }

    /// Follows a block over a span of time, with the change of the log-density `[rows]` on the way, and what the path
    /// costs `[rows]` where it costs something: `y' = f`, `delta' = -div f`, `cost' = kinetic |f|^2 + jacobian |J|^2`,
    /// both 0 at first. The cost grows in either direction of time.
    ///
    /// Where the error norm is of the state alone, the density is carried muted, as the cost always is, and the tolerances
    /// undo that the mean of the norm runs over them too.
    pub(super) fn flow_with_density<D: Drift>(
        &self,
        (drift, labels): (&D, Option<&Tensor>),
        span: (f64, f64),
        y0: &Tensor,
        probes: Option<&Tensor>,
    ) -> Result<Followed> {
        let (rows, dim) = (y0.shape()[0], y0.shape()[1] as f64);
        let PathCost { kinetic, jacobian } = self.path_cost;
        let costs = self.path_cost != PathCost::default();
        let (scale, measured) = match (self.error_norm, self.stepping) {
            (ErrorNorm::State, Stepping::Adaptive { .. }) => (MUTED, dim),
            _ => (1.0, dim + 1.0),
        };
        let slack = (measured / (dim + 1.0 + f64::from(u8::from(costs)))).sqrt();
        let forward = if span.1 >= span.0 { MUTED } else { -MUTED };
        let directions = Directions::new(y0, probes);
        let field = |t: Tensor, (y, _): &(Tensor, Tensor)| {
            let Local { velocity, divergence, jacobian: norm } =
                local((drift, labels), &t, y, &directions, jacobian != 0.0);
            let change = divergence * -scale;
            if !costs {
                return (velocity, change);
            }
            let mut cost = velocity.square().sum_last() * (kinetic * forward);
            if let Some(norm) = norm {
                cost = cost + norm * (jacobian * forward);
            }
            (velocity, Tensor::concat(&[&change, &cost], 0))
        };
        let still = Tensor::full(y0.dtype(), [if costs { 2 * rows } else { rows }], 0.0);
        let ((y1, carried), counts) = self.integrate(field, span, &(y0.clone(), still), slack)?;
        let change = if costs { carried.slice(0, 0..rows) } else { carried.clone() };
        let change = if scale == 1.0 { change } else { change * (1.0 / scale) };
        let cost = costs.then(|| carried.slice(0, rows..2 * rows) * (1.0 / MUTED));
        Ok(Followed { y1, change, cost, counts })
    }

    /// Whether random numbers enter a density.
    pub(super) fn is_random(&self) -> bool {
        self.divergence != Divergence::Exact
    }
}
