//! The one place of `cnf` that knows the ODE solver.

use super::divergence::{Directions, velocity_and_divergence};
use super::{Divergence, ErrorNorm, Settings, Stepping};
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
        drift: &D,
        span: (f64, f64),
        y0: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        self.integrate(|t: Tensor, y: &Tensor| drift.eval(&t, y), span, y0, 1.0)
    }

    /// Follows a block over a span of time, with the change of the log-density `[rows]` on the way:
    /// `y' = f`, `delta' = -div f`, delta 0 at first.
    ///
    /// Where the error norm is of the state alone, the density is carried muted, and the tolerances undo
    /// that the mean of the norm runs over it too.
    pub(super) fn flow_with_density<D: Drift>(
        &self,
        drift: &D,
        span: (f64, f64),
        y0: &Tensor,
        probes: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let (rows, dim) = (y0.shape()[0], y0.shape()[1] as f64);
        let (scale, slack) = match (self.error_norm, self.stepping) {
            (ErrorNorm::State, Stepping::Adaptive { .. }) => (MUTED, (dim / (dim + 1.0)).sqrt()),
            _ => (1.0, 1.0),
        };
        let directions = Directions::new(y0, probes);
        let field = |t: Tensor, (y, _): &(Tensor, Tensor)| {
            let (velocity, divergence) = velocity_and_divergence(drift, &t, y, &directions);
            (velocity, divergence * -scale)
        };
        let still = Tensor::full(y0.dtype(), [rows], 0.0);
        let ((y1, delta), counts) = self.integrate(field, span, &(y0.clone(), still), slack)?;
        Ok((y1, if scale == 1.0 { delta } else { delta * (1.0 / scale) }, counts))
    }

    /// Whether random numbers enter a density.
    pub(super) fn is_random(&self) -> bool {
        self.divergence != Divergence::Exact
    }
}
