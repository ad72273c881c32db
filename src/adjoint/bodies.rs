//! The bodies of a recorded search: one attempted step, and the replay of an accepted one.
//!
//! Both are functions of `ode`, run once on tracers. The attempt also checks events and taps the data that a step
//! stores; the replay taps these data again. The bodies must not depend on the code around the loop.

use super::algorithm::{self, Carry};
use super::curve::{Rows, Step};
use super::evaluations::Evaluations;
use super::event::{Events, Mark, Past, Seen, marks_of};
use super::leaves::Leaves;
use super::problem::{Problem, failed};
use super::rosenbrock::Rosenbrock;
use crate::array::DType;
use crate::graph::Type;
use crate::ode::{Before, Clock, FieldFailure, SolveError, Span, StiffStages, status, take_back};
use crate::tensor::{Tensor, Traced, Tree, try_trace};

/// The bodies of a search.
pub(super) struct Bodies {
    pub(super) attempt: Traced,
    pub(super) step: Traced,
    pub(super) inverse: Option<Traced>,
    /// The number of residuals that a step itself computes.
    pub(super) num_own: usize,
    /// The residuals of the first step that other steps take from the one before.
    pub(super) first: Vec<Tensor>,
}

impl Problem<'_> {
    /// The body of the search, from step time, carry.., ext.., checks.. to accept, running, reached, step time',
    /// carry'.., ext'.., checks'.., tap.., own.., last..; ext.. are the carried values of events, checks.. those of
    /// stiffness checks. If `has_first`, the first stage of a step has residuals.
    pub(super) fn attempt(
        &self,
        (field, has_first): (&Evaluations<'_>, bool),
        span: &Span<Tensor>,
        start: &mut Carry,
        past: Past<'_>,
    ) -> Result<Traced, SolveError> {
        let mut types = vec![Type::scalar(DType::F64)];
        types.extend(self.carried(start).iter().map(Tensor::ty));
        let first_ext = types.len();
        let first_check = first_ext + self.num_ext();
        let num_checks = self.stiffness.clocks().len();
        types.extend(vec![Type::scalar(DType::F64); self.num_ext() + num_checks]);
        body(&types, &mut |x| {
            let mut carry = Carry::new(x[0].clone(), start.y.clone(), self.scheme.tableau.num_stages());
            carry.num_off_grid = start.num_off_grid.clone();
            carry.stiff = self.stiff_stages(field).map(|stiff| Box::new(stiff) as Box<_>);
            self.load(&mut carry, &x[1..]);
            carry.k[1..].fill(carry.y.clone());
            carry.y1 = carry.y.clone();
            let before = carry.clone();
            field.take();
            algorithm::attempt_then(field, self.scheme, span, &mut carry, &mut |_, _, _| Ok(()))?;
            let stages = field.take();
            let rows = self.trail_of_attempt(field, span, &before, &mut carry)?;
            let residuals = self.residuals_of_attempt(stages, field.take(), has_first);
            // `reached` is computed before events are checked: the last step ends at t1 even if it contains an
            // event.
            let reached = carry.status.eq(Clock::like(&carry.t, status::COMPLETED));
            let ext =
                self.check_events(rows.as_ref(), (&x[first_ext..first_check], past), &before, &mut carry);
            let checks = self.stiffness.see(self.scheme, &x[first_check..], (&before, &carry));
            let reached = reached.and(&carry.accepted);
            let mut out = vec![carry.accepted.clone(), carry.is_running(), reached, carry.t.clone()];
            out.extend(self.carried(&mut carry));
            out.extend(ext);
            out.extend(checks);
            out.extend(rows.map_or(vec![], |rows| rows.leaves()));
            out.extend(residuals);
            Ok(out)
        })
    }

    /// What computes the stages of a method that is not explicit.
    fn stiff_stages(&self, field: &Evaluations<'_>) -> Option<Rosenbrock> {
        (!self.scheme.tableau.is_explicit())
            .then(|| Rosenbrock::of(field, self.mass.as_ref().map(|mass| mass.entries.clone())))
    }

    /// The residuals own.. and last.. of an attempt, from those of its evaluations for stages and for the trail. If
    /// steps carry the first stage, an attempt evaluates the other ones, and last of all the first one of the next step.
    fn residuals_of_attempt(
        &self,
        mut stages: Vec<Vec<Tensor>>,
        of_trail: Vec<Vec<Tensor>>,
        has_first: bool,
    ) -> Vec<Tensor> {
        let last = stages.last().filter(|_| has_first).cloned().unwrap_or_default();
        if self.scheme.carries_first() {
            // The step evaluates the last stage of a FSAL method only for the trail.
            let reads_last = self.trail.curve.is_some() && self.scheme.tableau.is_fsal();
            stages.truncate(self.scheme.num_stages_of_y1() - 1 + usize::from(reads_last));
        }
        [stages.concat(), of_trail.concat(), last].concat()
    }

    /// Whether steps store data.
    fn is_tapped(&self) -> bool {
        self.trail.has_ends || self.trail.curve.is_some()
    }

    /// The number of values that the search carries for events: the value of each event function at the start of
    /// the next step. If the solve may continue after an event, it also carries the side of each mark; the values
    /// and the sides at the start of the last accepted step; the status that this step would have without events;
    /// and `Carry::num_off_grid` before it.
    fn num_ext(&self) -> usize {
        let num_events = self.events.watches.len();
        if self.events.go_on() { 4 * num_events + 2 } else { num_events }
    }

    /// Ends the search if an accepted attempt contains an event. Rejects the step if an event function is NaN in it, or
    /// if an event whose times accumulate passes its root; the latter also ends the search. Returns the carried values
    /// of events.
    fn check_events(
        &self,
        rows: Option<&Rows>,
        (ext, past): (&[Tensor], Past<'_>),
        before: &Carry,
        after: &mut Carry,
    ) -> Vec<Tensor> {
        let (Some(curve), Some(rows), false) = (&self.trail.curve, rows, self.events.is_empty()) else {
            return vec![];
        };
        let n = self.events.watches.len();
        let (values, old) = ext.split_at(n);
        let marks: Vec<Mark> = match old.get(..n) {
            Some(sides) => marks_of(values, sides),
            None => values.iter().cloned().map(Mark::new).collect(),
        };
        let own_status = after.status.clone();
        let code = |x: f64| Clock::like(&own_status, x);
        let Seen { ends, has_occurred, is_bad, code: which, is_zeno } =
            self.events.check(curve, (rows, &after.y1), &marks, past);
        let is_bad = after.accepted.and(&is_bad);
        let has_occurred = after.accepted.and(&has_occurred).and(&is_bad.not());
        take_back(self.scheme, &Before::of(before), (&is_bad, &which), after);
        let is_zeno = is_bad.and(&is_zeno);
        after.component = is_zeno.select(&Events::index_of(&which), &after.component);
        after.status = is_zeno.select(&code(status::ZENO), &after.status);
        after.status = has_occurred.select(&code(status::EVENT), &after.status);
        let accepted = &after.accepted;
        let kept = |new: &[Tensor], old: &[Tensor]| -> Vec<Tensor> {
            new.iter().zip(old).map(|(new, old)| accepted.select(new, old)).collect()
        };
        let (new_values, new_sides): (Vec<_>, Vec<_>) =
            ends.into_iter().map(|end| (end.value, end.side)).unzip();
        let mut out = kept(&new_values, values);
        if let [sides @ .., _, off_grid] = old {
            let (sides, starts) = sides.split_at(n);
            out.extend(kept(&new_sides, sides));
            out.extend(kept(&ext[..2 * n], starts));
            out.push(own_status);
            out.push(accepted.select(&before.num_off_grid, off_grid));
        }
        out
    }

    /// The data that an attempt stores if it is accepted.
    fn trail_of_attempt(
        &self,
        field: &Evaluations<'_>,
        span: &Span<Tensor>,
        before: &Carry,
        after: &mut Carry,
    ) -> Result<Option<Rows>, FieldFailure<Tensor>> {
        if !self.is_tapped() {
            return Ok(None);
        }
        let first = self.scheme.carries_first();
        let mut k = after.k[..self.scheme.tableau.num_stages()].to_vec();
        if first {
            // At this point after.k[0] is already the next step's first stage.
            k[0] = before.k[0].clone();
        }
        let step = Step { t: &before.t, t_next: &after.t, y: &before.y, y1: &after.y1, k, has_last: first };
        let rows = self.trail.of(field, self.scheme, span, step)?;
        let extra = Clock::like(&after.t, self.trail.num_extra() as f64);
        after.num_fn_evals = &after.num_fn_evals + extra;
        Ok(Some(rows))
    }

    /// The body of the replay, from first, last, t, t_next, carry.. to carry'.., tap.., own.., first.., and the number
    /// of own... The residuals first.. are those of the first stage, if `has_first`.
    ///
    /// The first step starts at the tensor t0 and the last step ends at the tensor t1, so gradients with respect
    /// to t0 and t1 need no special rule. The inner step times are constants of the replay.
    pub(super) fn step(
        &self,
        (field, has_first): (&Evaluations<'_>, bool),
        span: &Span<Tensor>,
        (t0, y0): (&Tensor, &Leaves),
    ) -> Result<(Traced, usize), SolveError> {
        let mut num_own = 0;
        let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
        let mut types = vec![flag.clone(), flag, time.clone(), time];
        types.extend(y0.tensors().iter().map(Tensor::ty));
        let step = body(&types, &mut |x| {
            field.take();
            let t = x[0].select(t0, &x[2].stop_gradient());
            let t_next = x[1].select(&span.t1, &x[3].stop_gradient());
            let y = y0.with(x[4..].to_vec());
            let mut k = vec![y.clone(); self.scheme.tableau.num_stages()];
            let mut y1 = y.clone();
            let mut stiff = self.stiff_stages(field);
            let stiff = stiff.as_mut().map(|stiff| stiff as &mut dyn StiffStages<Leaves>);
            algorithm::step(field, self.scheme, span, (&t, &t_next), (&y, &mut y1), &mut k, stiff)?;
            let mut out = y1.leaves();
            if self.is_tapped() {
                let step = Step { t: &t, t_next: &t_next, y: &y, y1: &y1, k, has_last: false };
                out.extend(self.trail.of(field, self.scheme, span, step)?.leaves());
            }
            let mut stages = field.take();
            // An attempt that is given the first stage does not evaluate it.
            let first = if self.scheme.carries_first() { stages.remove(0) } else { vec![] };
            num_own = stages.iter().map(Vec::len).sum();
            out.extend(stages.into_iter().flatten().chain(first.into_iter().filter(|_| has_first)));
            Ok(out)
        })?;
        Ok((step, num_own))
    }
}

/// Traces a loop body. Solves inside a field are not checked: a solve that fails returns its last valid state.
pub(super) fn body(
    types: &[Type],
    f: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>, FieldFailure<Tensor>>,
) -> Result<Traced, SolveError> {
    try_trace(types, f).map_err(failed)
}
