//! The only file of `cnf` that calls the ODE solver.

use super::divergence::{Directions, Local, local};
use super::{CnfOptions, Divergence, ErrorNorm, PathRegularization, StepControl};
use crate::adjoint::{self, PartNorm, TensorState};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::ode::{ConstantStepSize, Ode, OdeState, SaveAt};
use crate::tensor::Tensor;
use crate::tree;

tree! {
    /// Solver counters: f64 tensors of rank 0, summed over the blocks and averaged over the rows (each tile
    /// of rows has its own steps).
    pub struct FlowStats {
        /// Steps attempted.
        pub num_steps: Tensor,
        /// Steps rejected.
        pub num_rejected: Tensor,
        /// Evaluations of the field; an evaluation with its divergence counts once.
        pub num_fn_evals: Tensor,
    }
}

impl FlowStats {
    /// The counters as one tensor `[3]`, with gradients stopped.
    pub(super) fn pack(stats: &adjoint::TensorStats) -> Tensor {
        Tensor::stack(&[&stats.num_steps, &stats.num_rejected, &stats.num_fn_evals]).stop_gradient()
    }

    /// The inverse of [`FlowStats::pack`].
    pub(super) fn unpack(counts: &Tensor) -> FlowStats {
        let [num_steps, num_rejected, num_fn_evals] = [0, 1, 2].map(|k| counts.index(k));
        FlowStats { num_steps, num_rejected, num_fn_evals }
    }
}

/// The result of one block: the state, the change of the log-density, the path regularization and the
/// counters.
pub(super) struct Followed {
    pub y1: Tensor,
    pub change: Tensor,
    pub cost: Option<Tensor>,
    pub counts: Tensor,
}

impl CnfOptions {
    /// Solves `y' = field(t, y)` over a time span; returns y1 and the counters.
    pub(super) fn integrate<Y>(
        &self,
        field: impl Fn(Tensor, &Y) -> Y,
        span: (f64, f64),
        y0: &Y,
    ) -> Result<(Y, Tensor)>
    where
        Y: TensorState + OdeState<Options = adjoint::Options, Solution<Y> = adjoint::TensorSolution<Y>>,
    {
        let solution = self.solve(field, (span, SaveAt::default()), y0)?;
        Ok((solution.y1, FlowStats::pack(&solution.stats)))
    }

    fn solve<Y>(
        &self,
        field: impl Fn(Tensor, &Y) -> Y,
        ((from, to), save_at): ((f64, f64), SaveAt),
        y0: &Y,
    ) -> Result<adjoint::TensorSolution<Y>>
    where
        Y: TensorState + OdeState<Options = adjoint::Options, Solution<Y> = adjoint::TensorSolution<Y>>,
    {
        let ode = Ode::new(field).method(self.method).adjoint(self.adjoint).max_steps(self.max_steps);
        let (ode, span) = (ode.save_at(save_at), (to - from).abs());
        let ode = match self.step_control {
            StepControl::Fixed { steps } => {
                ode.controller(ConstantStepSize { dt0: span / steps.max(1) as f64 })
            }
            StepControl::Adaptive { rtol, atol } => {
                let norm = match self.error_norm {
                    ErrorNorm::StateAndLogDensity => PartNorm::Largest,
                    ErrorNorm::State => PartNorm::First,
                };
                let ode = ode.rtol(rtol).atol(atol).part_norm(norm);
                // An invalid dt0 is passed on: the solver reports it.
                let first = self.dt0.map(|dt0| if dt0 > span { span } else { dt0 });
                if let Some(dt0) = first { ode.dt0(dt0) } else { ode }
            }
        };
        Ok(ode.solve(from, to, y0)?)
    }

    /// Integrates a block over a time span.
    pub(super) fn flow<D: VelocityField>(
        &self,
        (field, labels): (&D, Option<&Tensor>),
        span: (f64, f64),
        y0: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        self.integrate(|t: Tensor, y: &Tensor| field.eval_conditional(&t, y, labels), span, y0)
    }

    /// Integrates a block over its whole time span; returns the states at `times` within it, and at its end.
    pub(super) fn flow_at<D: VelocityField>(
        &self,
        (field, labels): (&D, Option<&Tensor>),
        times: &[f64],
        y0: &Tensor,
    ) -> Result<(Vec<Tensor>, Tensor)> {
        let field = |t: Tensor, y: &Tensor| field.eval_conditional(&t, y, labels);
        let save_at = if times.is_empty() { SaveAt::default() } else { SaveAt::ts(times) };
        let solution = self.solve(field, ((0.0, self.t1), save_at), y0)?;
        Ok(((0..times.len()).map(|k| solution.ys.index(k)).collect(), solution.y1))
    }

    /// Integrates a block over a time span with the change of the log-density `[rows]` and, if set, the path
    /// regularization `[rows]`: `y' = f`, `delta' = -div f`, `cost' = kinetic |f|^2 + jacobian |J|^2`. delta and
    /// cost are 0 at the start of the span. The cost increases in either direction of time.
    pub(super) fn flow_with_density<D: VelocityField>(
        &self,
        (field, labels): (&D, Option<&Tensor>),
        span: (f64, f64),
        y0: &Tensor,
        probes: Option<&Tensor>,
    ) -> Result<Followed> {
        let PathRegularization { kinetic, jacobian } = self.path_regularization;
        let forward = if span.1 >= span.0 { 1.0 } else { -1.0 };
        let directions = Directions::new(y0, probes);
        let at = |t: &Tensor, y: &Tensor| local((field, labels), t, y, &directions, jacobian != 0.0);
        let still = Tensor::full(y0.dtype(), [y0.shape()[0]], 0.0);
        if self.path_regularization == PathRegularization::default() {
            let field = |t: Tensor, (y, _): &(Tensor, Tensor)| {
                let here = at(&t, y);
                (here.velocity, -here.divergence)
            };
            let ((y1, change), counts) = self.integrate(field, span, &(y0.clone(), still))?;
            return Ok(Followed { y1, change, cost: None, counts });
        }
        let field = |t: Tensor, (y, _, _): &(Tensor, Tensor, Tensor)| {
            let Local { velocity, divergence, jacobian: norm } = at(&t, y);
            let mut cost = velocity.square().sum_last() * (kinetic * forward);
            if let Some(norm) = norm {
                cost = cost + norm * (jacobian * forward);
            }
            (velocity, -divergence, cost)
        };
        let ((y1, change, cost), counts) =
            self.integrate(field, span, &(y0.clone(), still.clone(), still))?;
        Ok(Followed { y1, change, cost: Some(cost), counts })
    }

    /// Whether a density depends on random numbers.
    pub(super) fn is_random(&self) -> bool {
        self.divergence != Divergence::Exact
    }
}
