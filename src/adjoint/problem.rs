//! What a solve on tensors is recorded from, and the loop that all kinds of solves record.

use super::algorithm::{Carry, LeafField, Scheme};
use super::bodies::Bodies;
use super::curve::{Curve, Rows, Trail};
use super::dense::TensorDenseOutput;
use super::evaluations::Evaluations;
use super::event::Events;
use super::leaves::Leaves;
use super::mass::{Consistent, MassMatrix};
use super::saved::Saved;
use super::stiffness::{Stiffness, never};
use super::{ExpectedSteps, Options, TensorSolution, TensorStats};
use crate::array::DType;
use crate::graph::{SearchOperands, SearchValues, Solve, Taps};
use crate::ode::{
    Clock, ConstantStepSize, Controller, FieldFailure, SolveError, Span, StepTo, slack, status,
};
use crate::tensor::{Tensor, Traced, Tree, align, search};

/// The vector field, the options of its solve, and the data to record.
pub(super) struct Problem<'a> {
    pub(super) field: &'a LeafField<'a>,
    pub(super) scheme: &'a Scheme<'a>,
    pub(super) options: &'a Options,
    pub(super) saved: &'a Saved,
    pub(super) events: Events<'a>,
    /// The data that each step stores for saved values and events.
    pub(super) trail: Trail,
    pub(super) stiffness: Stiffness,
    /// The mass matrix, if there is one.
    pub(super) mass: Option<MassMatrix>,
    /// Whether this is one piece of a longer interval, to which tstops and the times of `StepTo` belong.
    pub(super) is_piece: bool,
}

impl<'a> Problem<'a> {
    pub(super) fn new(
        field: &'a LeafField<'a>,
        scheme: &'a Scheme<'a>,
        options: &'a Options,
        (saved, events): (&'a Saved, Events<'a>),
    ) -> Self {
        let curve = (saved.needs_curve() || !events.is_empty()).then(|| Curve::of(scheme));
        let trail = Trail { has_ends: saved.has_steps(), curve };
        let stiffness = Stiffness::of(scheme, options);
        Problem { field, scheme, options, saved, events, trail, stiffness, mass: None, is_piece: false }
    }

    /// A solve over one piece of the scheme's interval. It saves only its end and does not check for stiffness.
    pub(super) fn piece(field: &'a LeafField<'a>, scheme: &'a Scheme<'a>, options: &'a Options) -> Self {
        let whole = Problem::new(field, scheme, options, (&Saved::END, Events::NONE));
        Problem { is_piece: true, stiffness: Stiffness::NONE, ..whole }
    }

    /// The state that satisfies the algebraic equations at t with the same M y; `None` if there are no such equations.
    ///
    /// # Errors
    /// The field's error.
    pub(super) fn consistent(
        &self,
        field: &Evaluations<'_>,
        (t, y): (&Tensor, &Leaves),
    ) -> Result<Option<Consistent>, SolveError> {
        let Some(constraints) = self.mass.as_ref().and_then(|mass| mass.constraints.as_ref()) else {
            return Ok(None);
        };
        let traced = field.traced(t, y).map_err(|source| failed(FieldFailure { t: t.clone(), source }))?;
        Ok(Some(constraints.solve(traced, self.scheme, t, y)))
    }

    /// Fills in the saved values.
    pub(super) fn save(
        &self,
        solution: &mut TensorSolution<Leaves>,
        (t0, y0): (&Tensor, &Leaves),
        tapped: &Rows,
        span: &Span<Tensor>,
    ) {
        let (t1, y1, num_steps) =
            (solution.t1.clone(), solution.y1.clone(), solution.stats.num_accepted.clone());
        let may_be_cut = !self.events.is_empty();
        let curve = self.trail.curve.as_ref();
        (solution.ts, solution.ys, solution.num_saved) =
            self.saved.join((t0, y0), (tapped, curve), (&t1, &y1), (&num_steps, &span.direction, may_be_cut));
        solution.dense = curve.filter(|_| self.saved.dense).map(|curve| TensorDenseOutput {
            t0: t0.clone(),
            t1,
            rows: None,
            num_steps,
            ends: self.saved.all_steps(tapped).t_next,
            steps: self.saved.all_steps(tapped),
            y1,
            curve: curve.clone(),
        });
    }

    /// Adds the loop to the graph. Returns its last carry, the carried values of events and stiffness checks,
    /// and the leaves of the tapped rows.
    pub(super) fn search(
        &self,
        span: &Span<Tensor>,
        mut start: Carry,
        bodies: Bodies,
        (ext, taps): (&[Tensor], Taps),
    ) -> (Carry, Vec<Tensor>, Vec<Tensor>) {
        let Bodies { attempt, step, inverse, num_own, first } = bodies;
        let all: Vec<&Traced> = [&attempt, &step].into_iter().chain(&inverse).collect();
        let (bodies, captures) = align(&all);
        let mut bodies = bodies.into_iter();
        let mut next = || bodies.next().expect("invariant: a body for each trace");
        let (attempt, step, inverse) = (next(), next(), inverse.is_some().then(next));

        let num_carry = start.y.tensors().len();
        let mut carry = self.carried(&mut start);
        let constants = |x: &[Tensor]| x.iter().map(Tensor::stop_gradient).collect::<Vec<_>>();
        let operands = SearchOperands {
            expected: vec![self.expected_steps(span)],
            step_time: vec![start.t.clone()],
            times: constants(self.saved.ts.as_slice()),
            ext: [carry.split_off(num_carry), constants(ext)].concat(),
            carry,
            first: constants(&first),
            captures,
        };
        let (num_ext, num_first) = (operands.ext.len(), operands.first.len());
        let policy = self.options.adjoint.policy();
        let s = Solve { attempt, step, inverse, num_carry, num_ext, num_own, num_first, taps, policy };
        let SearchValues { carry, ext: mut own, tapped, .. } = search(s, operands);
        let ext = own.split_off(num_ext - ext.len());
        self.load(&mut start, &[carry, own].concat());
        (start, ext, tapped)
    }

    /// Counts the tstops and the times of `StepTo` up to the start of a piece as passed.
    pub(super) fn skip(&self, span: &Span<Tensor>, start: &mut Carry) {
        let passed = |ts: &[f64]| {
            let ahead = (Tensor::from(ts) - &span.t0) * &span.direction;
            ahead.le(0.0).cast(DType::F64).sum()
        };
        if !self.scheme.limits.stops.is_empty() {
            start.num_stops = passed(self.scheme.limits.stops);
        }
        if let Controller::StepTo(StepTo { ts }) = self.scheme.controller {
            start.num_off_grid = 1.0 - passed(ts);
        }
    }

    /// Everything that the loop carries, in order: y, the clocks, and the first stage of the next step if it is
    /// carried.
    pub(super) fn carried(&self, carry: &mut Carry) -> Vec<Tensor> {
        let mut out = carry.y.leaves();
        out.extend(carry.clocks_mut(self.scheme).iter().map(|c| (**c).clone()));
        if self.scheme.carries_first() {
            out.extend(carry.k[0].leaves());
        }
        out
    }

    /// The inverse of [`Problem::carried`].
    pub(super) fn load(&self, carry: &mut Carry, values: &[Tensor]) {
        let n = carry.y.tensors().len();
        carry.y = carry.y.with(values[..n].to_vec());
        let mut rest = values[n..].iter().cloned();
        for clock in carry.clocks_mut(self.scheme) {
            *clock = rest.next().expect("invariant: as many clocks as were carried");
        }
        if self.scheme.carries_first() {
            carry.k[0] = carry.k[0].with(rest.take(n).collect());
        }
    }

    /// The expected number of accepted steps, 0 if unknown. It affects only the placement of checkpoints.
    fn expected_steps(&self, span: &Span<Tensor>) -> Tensor {
        if self.events.go_on() {
            // The user's number counts the steps of all pieces together, but each search is one piece.
            return Tensor::scalar(DType::U32, 0.0);
        }
        let whole = (&span.t1 - &span.t0).abs();
        match &self.options.expected_steps {
            ExpectedSteps::Auto => {}
            ExpectedSteps::Unknown => return Tensor::scalar(DType::U32, 0.0),
            // Given one number per group, the largest is used.
            ExpectedSteps::Steps(steps) if steps.rank() > 0 => {
                return steps.stop_gradient().max().cast(DType::U32);
            }
            ExpectedSteps::Steps(steps) => return steps.stop_gradient().cast(DType::U32),
        }
        let steps = match self.scheme.controller {
            Controller::Constant(ConstantStepSize { dt0 }) if self.scheme.limits.stops.is_empty() => {
                let steps = -((&whole - slack(&span.t0, &span.t1)) * (-1.0 / dt0.abs())).floor();
                let known = whole.is_finite().select(&steps, &Clock::like(&steps, 0.0));
                known.maximum(&Clock::like(&steps, 1.0))
            }
            Controller::StepTo(StepTo { ts }) => Clock::like(&whole, ts.len() as f64 - 1.0),
            _ => Clock::like(&whole, 0.0),
        };
        steps.stop_gradient().cast(DType::U32)
    }
}

/// The solution at the loop's last carry, without the saved values.
pub(super) fn solution(end: &Carry, dt_min: f64) -> TensorSolution<Leaves> {
    let broken = end.status.eq(Clock::like(&end.t, status::NON_FINITE));
    let dt = broken.select(&end.h, &end.dt);
    let dt_min = Clock::like(&end.t, dt_min);
    let all = [&end.status, &end.t, &dt, &end.num_steps, &end.component, &dt_min];
    let verdict = Tensor::stack(&all).stop_gradient();
    let stats = TensorStats {
        num_steps: end.num_steps.clone(),
        num_accepted: end.num_accepted.clone(),
        num_rejected: end.num_rejected.clone(),
        num_fn_evals: end.num_fn_evals.clone(),
        num_jac_evals: end.num_jac_evals.clone(),
        num_factorizations: end.num_factorizations.clone(),
    };
    let (t1, y1) = (end.t.clone(), end.y.clone());
    let num_saved = Clock::like(&t1, 1.0);
    let (ts, ys, stiff_from) = (t1.clone(), y1.clone(), never());
    TensorSolution { ts, ys, t1, y1, num_saved, stats, events: None, verdict, stiff_from, dense: None }
}

pub(super) fn failed(failure: FieldFailure<Tensor>) -> SolveError {
    let t = if failure.t.is_traced() { f64::NAN } else { failure.t.item() };
    SolveError::of_field(t, 0, failure.source)
}
