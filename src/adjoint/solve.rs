//! Records a solve: chooses the kind of solve, and records a search that saves values and may end at an event.

use super::algorithm::{self, Carry};
use super::behind::Errors;
use super::bodies::Bodies;
use super::curve::{Curve, Rows, choose};
use super::evaluations::Evaluations;
use super::event::{Events, Mark, Past, always};
use super::event_records::{EventRecords, LastStep};
use super::leaves::Leaves;
use super::problem::{Problem, failed, solution};
use super::rows::Groups;
use super::stiffness::Stiffness;
use super::{Adjoint, Batching, TensorSolution, backsolve, pieces, reversible};
use crate::array::DType;
use crate::graph::Type;
use crate::ode::{Clock, SolveError, Span, status};
use crate::tensor::{Check, Tensor, Tree, apply, register_check, try_trace};

/// A recorded solve, or the error of its settings or of its field.
pub(super) type Recorded = Result<TensorSolution<Leaves>, SolveError>;

impl Problem<'_> {
    /// Solves `y' = f(t, y)` from t0 to t1 on tensors, traced or concrete.
    ///
    /// # Errors
    /// The field's error while it was recorded; a setting that cannot be used, such as saved steps that take too many
    /// bytes.
    pub(super) fn solve(&self, t0: &Tensor, t1: &Tensor, y0: &Leaves) -> Recorded {
        let (t0, t1) = (t0.cast(DType::F64), t1.cast(DType::F64));
        if let (Adjoint::Backsolve { .. }, Batching::Joint) = (self.options.adjoint, self.options.batching) {
            return self.record_joint(&t0, &t1, y0);
        }
        let mut args = vec![t0, t1];
        args.extend(y0.leaves());
        if args.iter().chain(&self.saved.ts).any(Tensor::is_traced) {
            return self.record_batch(&args[0], &args[1], y0);
        }
        // No input is traced here, so the solve becomes a separate program. The field may still capture tracers.
        let mut solution = None;
        let types: Vec<Type> = args.iter().map(Tensor::ty).collect();
        let traced = try_trace(&types, &mut |x| {
            let recorded = self.record_batch(&x[0], &x[1], &y0.with(x[2..].to_vec()))?;
            Ok::<_, SolveError>(solution.insert(recorded).leaves())
        })?;
        args.extend(traced.captures.iter().cloned());
        let mut leaves = apply(&traced.func, &args);
        for values in leaves.split_off(traced.num_outputs) {
            register_check(Check { values });
        }
        Ok(solution.expect("invariant: a solution where there is no failure").with_leaves(leaves))
    }

    /// Records one solve for each group of rows that share their steps.
    fn record_batch(&self, t0: &Tensor, t1: &Tensor, y0: &Leaves) -> Recorded {
        match Groups::of(self.options.batching, y0)? {
            None => self.record_joint(t0, t1, y0),
            Some(groups) => groups.record(self, (t0, t1), y0),
        }
    }

    /// Records one solve of all rows.
    pub(super) fn record_joint(&self, t0: &Tensor, t1: &Tensor, y0: &Leaves) -> Recorded {
        match self.options.adjoint {
            Adjoint::Backsolve { rtol, atol } => backsolve::record(self, (rtol, atol), (t0, t1), y0),
            _ => self.record(t0, t1, y0),
        }
    }

    pub(super) fn record(&self, t0: &Tensor, t1: &Tensor, y0: &Leaves) -> Recorded {
        if let Adjoint::Reversible { coupling } = self.options.adjoint {
            return reversible::record(self, coupling, (t0, t1), y0);
        }
        if self.events.go_on() {
            return pieces::record(self, (t0, t1), y0);
        }
        let span = Span::new(t0.clone(), t1.clone());
        let like = self.trail.like(t0, y0);
        let taps = self.saved.taps(!self.events.is_empty(), &like)?;
        let field = Evaluations::of(self.field);
        let mut start = algorithm::start(&field, self.scheme, &span, y0.clone()).map_err(failed)?;
        let first = field.take().into_iter().next().filter(|_| self.scheme.carries_first());
        let has_first = first.is_some();
        if self.is_piece {
            self.skip(&span, &mut start);
        }
        if let Some(found) = self.consistent(&field, (t0, y0))? {
            found.end(&found.is_violated(), &mut start);
        }
        let values = self.events.values(t0, y0);
        Events::refuse_nan(&values, &always(), &mut start);
        let errors = (!self.events.is_empty()).then(|| Errors::none(y0).of(y0));
        let past = Past { rhythms: &[], errors: errors.as_ref() };
        let attempt = self.attempt((&field, has_first), &span, &mut start, past)?;
        let (step, num_own) = self.step((&field, has_first), &span, (t0, y0))?;
        let first = first.unwrap_or_default();
        let bodies = Bodies { attempt, step, inverse: None, num_own, first };
        let ext = [&values[..], &self.stiffness.clocks()].concat();
        let (mut end, ext, tapped) = self.search(&span, start, bodies, (&ext, taps));
        let tapped = if taps.num_rows() == 0 { like } else { like.with_leaves(tapped) };
        let mut events = None;
        if let (Some(curve), false) = (&self.trail.curve, self.events.is_empty()) {
            let last = tapped.map_leaves(|x| x.index(taps.num_rows() - 1));
            events = Some(self.end_at_event((t0, y0), (curve, &span, &last), &mut end)?);
        }
        let mut solution = solution(&end, self.scheme.limits.dt_min);
        solution.stiff_from = Stiffness::detected(&ext[values.len()..]);
        self.save(&mut solution, (t0, y0), &tapped, &span);
        solution.events = events;
        Ok(solution)
    }

    /// Ends the solve at the first event that occurred in `step`, the last step, if any. Every event here ends the
    /// solve.
    fn end_at_event(
        &self,
        (t0, y0): (&Tensor, &Leaves),
        (curve, span, step): (&Curve, &Span<Tensor>, &Rows),
        end: &mut Carry,
    ) -> Result<EventRecords<Leaves>, SolveError> {
        let code = |x: f64| Clock::like(t0, x);
        let is_met = end.status.eq(code(status::EVENT));
        let y_start = step.y.as_ref().expect("invariant: a step with a curve has its start");
        let still = y_start.map_leaves(Tensor::stop_gradient);
        let marks = self.events.values(&step.t.stop_gradient(), &still).into_iter().map(Mark::new);
        let marks: Vec<Mark> = marks.collect();
        let last = LastStep {
            curve,
            span,
            step,
            y1: &end.y,
            marks: &marks,
            errors: &Errors::none(y0).of(y0),
            counts: &[],
            is_met: &is_met,
        };
        let none = EventRecords::none(self.events.num_rows(), y0);
        let (occurrences, cut) = none.and(&self.events, &last)?;
        (end.t, end.y) = (cut.is_met.select(&cut.t, &end.t), choose(&cut.is_met, &cut.y, &end.y));
        let index = Events::index_of(&Events::code(&cut.group));
        let index = cut.is_beyond.select(&code(self.events.num_rows() as f64), &index);
        end.component = is_met.select(&index, &end.component);
        end.status = cut.is_beyond.select(&code(status::MAX_EVENTS), &end.status);
        Ok(occurrences)
    }
}
