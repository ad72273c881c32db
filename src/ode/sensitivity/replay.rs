//! `Replay`: the accepted steps of a plain solve again, in dual numbers.
//!
//! A pass has [`DIRECTIONS`](crate::ode::DIRECTIONS) directions. It computes the stages of each accepted step by
//! the code that the solve has used, without an error estimate, a controller or a search for events. The values
//! are those of the solve, bit for bit; the replay checks this at saved times and at the end. Step times are
//! constants, except the times of events and times that depend on parameters.

use super::moving::{D, DualFunctions, Eval, FIXED, Moving, Tangent, Y};
use super::step::{Method, Step};
use super::tape::Tape;
use crate::ode::given_times::Planned;
use crate::ode::stiff::Consistency;
use crate::ode::{Carry, ConfigError, DIRECTIONS, DenseOutput, Resolved, Span};
use crate::simd::{Level, is_fused};
use std::sync::Arc;

/// A plain solve, without the types of its state and of its vector field.
pub(super) struct Track<'a> {
    pub span: (f64, f64),
    pub step_times: &'a [f64],
    pub tape: &'a Tape,
    pub rows: &'a [Row],
    /// The values of the rows, row by row, and those at the end.
    pub ys: &'a [f64],
    pub y1: &'a [f64],
    pub events: &'a [Happened],
    pub planned: &'a [Planned],
    /// Whether the solve ended before the resets of the last step were complete.
    pub fails_at_last: bool,
    /// The index of the event that ended the solve.
    pub ended_by: Option<usize>,
    pub num_observed: usize,
    /// Whether dense output is saved.
    pub dense: bool,
    pub resolved: &'a Resolved,
}

/// A recorded event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Happened {
    pub index: usize,
    pub t: f64,
    /// The number of its step.
    pub step: usize,
}

/// A saved time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub t: f64,
    pub kind: RowKind,
}

/// What is saved at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowKind {
    /// The state at a given time, which has no derivatives, before any reset.
    Given,
    /// The state at the end of a step, before any reset.
    Step,
    /// The state at the end of the solve.
    End,
}

/// The results of a pass.
pub(super) struct Passed {
    pub t1: D,
    pub y1: Y,
    /// The states of the rows.
    pub ys: Vec<D>,
    pub observed: Vec<D>,
    /// The time and the state of each event.
    pub events: Vec<(D, Y)>,
    /// The numbers of the events whose time has no derivative: their function has no finite, nonzero slope in time,
    /// or the derivative is not finite.
    pub grazing: Vec<usize>,
    /// The dense output, if it is saved.
    pub curve: Option<Curve>,
}

/// The dense output of a pass.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// The states, as functions of times that move with the steps.
    states: DenseOutput<Y>,
    /// The tangents of the ends of each step.
    tangents: Vec<[Tangent; 2]>,
}

impl Curve {
    /// The state at t, as a time without derivatives.
    ///
    /// # Errors
    /// As [`DenseOutput::eval`].
    pub fn at_fixed(&self, t: f64) -> Result<Y, ConfigError> {
        let Some((i, start, h)) = self.states.step_at(t)? else { return self.states.eval(t) };
        let [a, b] = self.tangents[i];
        if (a == FIXED && b == FIXED) || t == self.states.end_of(i) {
            return self.states.eval(t);
        }
        let (mut y, slope) = self.states.eval_with_derivative(t)?;
        for (y, slope) in y.iter_mut().zip(&slope) {
            for p in 0..DIRECTIONS {
                y.tangent[p] -= (a[p] + (b[p] - a[p]) * (t - start) / h) * slope.value;
            }
        }
        Ok(y)
    }
}

/// The replay of a solve in the directions of a pass.
pub(super) struct Replay<'a> {
    track: &'a Track<'a>,
    functions: &'a dyn DualFunctions,
    eval: Eval<'a>,
    level: Option<Level>,
    span: Span<f64>,
    /// The state reached, and the tangent of its time.
    y: Y,
    a: Tangent,
    /// The numbers of rows, events, cuts, method changes and planned times that lie behind, and of resets.
    next_row: usize,
    next_event: usize,
    next_cut: usize,
    next_planned: usize,
    num_resets: usize,
    /// The time at which algebraic equations were solved last.
    solved_at: f64,
    out: Passed,
}

impl<'a> Replay<'a> {
    /// The replay at the start of the solve, with the state `y0`.
    pub fn new(track: &'a Track<'a>, functions: &'a dyn DualFunctions, y0: Y) -> Self {
        let level = track.resolved.native().level;
        let level = is_fused(level).then_some(level);
        let out = Passed {
            t1: D::from(0.0),
            y1: vec![],
            ys: Vec::with_capacity(track.ys.len()),
            observed: vec![],
            events: vec![],
            grazing: vec![],
            curve: None,
        };
        Replay {
            track,
            functions,
            eval: functions.eval(level),
            level,
            span: Span::new(track.span.0, track.span.1),
            y: y0,
            a: FIXED,
            next_row: 0,
            next_event: 0,
            next_cut: 0,
            next_planned: 0,
            num_resets: 0,
            solved_at: track.span.0,
            out,
        }
    }

    /// Computes all steps.
    ///
    /// # Panics
    /// If a value differs from that of the solve.
    pub fn run(mut self) -> Passed {
        let track = self.track;
        if let Some(last) = track.step_times.len().checked_sub(1) {
            let first = Method::new(track.resolved.scheme(None), track.resolved, &self.y);
            let stiff =
                track.resolved.stiff_scheme(None).map(|scheme| Method::new(scheme, track.resolved, &self.y));
            let (mut now, mut other) = (first, stiff);
            let mut switches = track.tape.switches.iter().peekable();
            self.begin(&mut now);
            if track.dense {
                let mut states = DenseOutput::new(Arc::clone(&now.interpolant), track.span.0);
                states.point(&self.y);
                self.out.curve = Some(Curve { states, tangents: vec![] });
            }
            for i in 0..last {
                if switches.next_if(|at| **at == i).is_some() {
                    let stiff = other.as_mut().expect("invariant: only a solve with two methods switches");
                    std::mem::swap(&mut now, stiff);
                }
                self.step((i, i + 1 == last), &mut now);
            }
            while self.next_row < track.rows.len() {
                let y = self.y.clone();
                self.save(self.a, &y);
            }
        }
        check(&self.y, track.y1);
        let t1 = track.step_times.last().copied().unwrap_or(track.span.0);
        Passed { t1: D { value: t1, tangent: self.a }, y1: self.y, ..self.out }
    }

    /// Saves the rows at t0, and runs the resets there.
    fn begin(&mut self, method: &mut Method<'a>) {
        let t0 = self.track.span.0;
        let y = self.y.clone();
        while self.is_next_row(t0) {
            self.save(FIXED, &y);
        }
        self.reset_at(t0);
        self.solve_constraints(t0, method);
    }

    /// Computes step i. `is_last`: whether the solve ends with it.
    fn step(&mut self, (i, is_last): (usize, bool), method: &mut Method<'a>) {
        let track = self.track;
        let (t, stop) = (track.step_times[i], track.step_times[i + 1]);
        let cut = track.tape.cuts.get(self.next_cut).filter(|(step, _)| *step == i);
        let end = cut.map_or(stop, |(_, end)| *end);
        self.next_cut += usize::from(cut.is_some());
        if method.scheme.after(&self.span, &t) != t && t != self.solved_at {
            self.solve_constraints(t, method);
        }
        let (functions, eval) = (self.functions, self.eval);
        let (a, b) = (self.a, self.tangent_of(end));
        let moves = a != FIXED || b != FIXED;
        let field = Moving { eval, functions, t, h: end - t, a, b, moves };
        if let Some(&num_stages) = track.tape.num_stages.get(i) {
            method.carry.stiff.iter_mut().for_each(|stiff| stiff.set_num_stages(num_stages));
        }
        let (span, level) = (self.span.clone(), self.level);
        method.advance(&field, &span, (&self.y, end), level);
        let mut step = method.step(&field, &span, end);

        let sign = self.span.direction;
        while track.rows.get(self.next_row).is_some_and(|row| row.t * sign < stop * sign) {
            let y = step.at_fixed(track.rows[self.next_row].t);
            self.save(FIXED, &y);
        }
        let mut group: Vec<(usize, D, Y)> = vec![];
        while let Some(&event) = track.events.get(self.next_event).filter(|event| event.step == i) {
            let (t, y) = self.event(&mut step, event);
            // An event without a reset has no effect on the rest of the solution.
            let acts = self.functions.resets(event.index) || track.ended_by == Some(event.index);
            if cut.is_some() && event.t == stop && acts {
                group.push((event.index, t, y.clone()));
            }
            self.out.events.push((t, y));
            self.next_event += 1;
        }
        let (tangent, mut y) = match group.first() {
            Some((_, t, y)) => (t.tangent, y.clone()),
            None if cut.is_some() => (FIXED, step.at_fixed(stop)),
            None => (b, step.y1.clone()),
        };
        while self.is_next_row(stop) {
            if track.rows[self.next_row].kind == RowKind::Given {
                let y = step.at_fixed(stop);
                self.save(FIXED, &y);
            } else {
                self.save(tangent, &y);
            }
        }
        if let Some(curve) = &mut self.out.curve {
            let end = step.at_fixed(stop);
            let (interpolant, segment) = step.segment();
            curve.states.push(interpolant, &segment, (stop, &end));
            curve.tangents.push([a, b]);
        }
        std::mem::swap(&mut self.y, &mut y);
        self.a = tangent;
        let acts = cut.is_some() && !(is_last && track.fails_at_last);
        if acts {
            self.act(stop, &group, is_last);
        }
        // A planned time at which the solve has ended has not moved its end, and a reset that failed changed nothing.
        let has_reset = !track.fails_at_last && self.num_resets < track.tape.num_resets;
        let resets = (!is_last || has_reset) && self.reset_at(stop);
        if (acts || resets) && !is_last {
            method.forget(track.resolved, &self.y);
            self.solve_constraints(stop, method);
        }
    }

    /// Runs the resets of events at t in the order of declaration, each at its own time.
    fn act(&mut self, t: f64, group: &[(usize, D, Y)], is_last: bool) {
        for (index, time, _) in group {
            self.advance(t, time.tangent);
            self.functions.reset_by_event(*index, *time, &mut self.y);
        }
        // The solve ends at the time of the event that ends it, even if other events act there after it.
        let ended_by = self.track.ended_by.filter(|_| is_last);
        if let Some((_, time, _)) = group.iter().find(|(index, ..)| Some(*index) == ended_by) {
            self.advance(t, time.tangent);
        }
    }

    /// Runs the planned resets at t; returns whether there are any.
    fn reset_at(&mut self, t: f64) -> bool {
        let Track { planned, tape, .. } = self.track;
        let first = self.next_planned;
        while let Some(next) = planned.get(self.next_planned).filter(|next| next.t == t) {
            if next.acts && self.num_resets == tape.num_resets {
                break;
            }
            let time = self.functions.time(next.list, next.entry);
            self.advance(t, time.tangent);
            if next.acts {
                self.functions.reset_at_time(next.list, D { value: t, ..time }, &mut self.y, next.x);
                self.num_resets += 1;
            }
            self.next_planned += 1;
        }
        self.next_planned > first
    }

    /// The tangent of a time at which a step ends: that of the planned time there.
    fn tangent_of(&self, end: f64) -> Tangent {
        let planned = self.track.planned.get(self.next_planned).filter(|next| next.t == end);
        planned.map_or(FIXED, |next| self.functions.time(next.list, next.entry).tangent)
    }

    /// Moves the state at t, whose time has the tangents `a`, to the same time with other tangents. With a mass
    /// matrix the derivative of the state is unknown, so its tangents become NaN.
    fn advance(&mut self, t: f64, to: Tangent) {
        if to == self.a {
            return;
        }
        let mut rate = self.y.clone();
        self.eval.call(&D { value: t, tangent: self.a }, &self.y, &mut rate);
        let is_known = self.track.resolved.mass().is_none();
        for (y, rate) in self.y.iter_mut().zip(&rate) {
            for p in (0..to.len()).filter(|p| to[*p] != self.a[*p]) {
                let change = rate.value * (to[p] - self.a[p]);
                y.tangent[p] += if is_known { change } else { f64::NAN };
            }
        }
        self.a = to;
    }

    /// The time and the state of an event, with their derivatives by the implicit function theorem.
    fn event(&mut self, step: &mut Step<'_>, Happened { index, t: s, .. }: Happened) -> (D, Y) {
        let (mut y, slope) = step.at(s);
        let delta = step.field.tangent_at(s);
        let g = self.functions.event(index, D { value: s, tangent: delta }, &y);
        let rate = self.functions.event_rate(index, s, &y, &slope);
        let is_crossing = rate != 0.0 && rate.is_finite();
        let quotient = |g: f64| Some(-g / rate).filter(|x| is_crossing && x.is_finite());
        let by_s: Tangent = g.tangent.map(|g| quotient(g).unwrap_or(f64::NAN));
        // The NaN of an earlier grazing event says nothing about this one.
        let is_known = |p: usize| delta[p].is_finite() && y.iter().all(|y| y.tangent[p].is_finite());
        if !is_crossing || (0..DIRECTIONS).any(|p| is_known(p) && !by_s[p].is_finite()) {
            self.out.grazing.push(self.out.events.len());
        }
        for (y, slope) in y.iter_mut().zip(&slope) {
            y.tangent.iter_mut().zip(&by_s).for_each(|(y, by_s)| *y += by_s * slope.value);
        }
        (D { value: s, tangent: std::array::from_fn(|p| delta[p] + by_s[p]) }, y)
    }

    /// Solves the algebraic equations at t as the solve has done, and computes the derivatives of their solution.
    fn solve_constraints(&mut self, t: f64, method: &mut Method<'a>) {
        let Method { scheme, carry, .. } = method;
        let Carry { stiff: Some(stiff), k, y1, .. } = carry else { return };
        if !stiff.is_constrained() {
            return;
        }
        let (functions, eval) = (self.functions, self.eval);
        let (a, moves) = (self.a, self.a != FIXED);
        // The same tangents at both ends: the time does not stretch.
        let field = Moving { eval, functions, t, h: 1.0, a, b: a, moves };
        let side = scheme.after(&self.span, &t);
        let mut solved = self.y.clone();
        let found = stiff
            .solve_constraints(&field, scheme, &side, &mut solved, (y1, &mut k[0]))
            .expect("invariant: a `vector_field!` does not fail");
        // At t0 the solve has checked the equations, and has changed the state only after resets.
        let is_kept = t == self.track.span.0 && self.num_resets == 0;
        match found {
            Consistency::Solved(_) => {
                for (y, solved) in self.y.iter_mut().zip(&solved) {
                    *y = D { value: if is_kept { y.value } else { solved.value }, ..*solved };
                }
            }
            // There are no equations, or no derivatives.
            Consistency::Unknown => {}
            // The solve goes on from a y0 that is within a few tolerances of a solution.
            Consistency::Unsolved(_) | Consistency::Open { .. } => {
                self.y.iter_mut().for_each(|y| y.tangent = [f64::NAN; DIRECTIONS]);
            }
        }
        self.solved_at = t;
    }

    /// Whether the next row is at t, before the end of the solve.
    fn is_next_row(&self, t: f64) -> bool {
        self.track.rows.get(self.next_row).is_some_and(|row| row.t == t && row.kind != RowKind::End)
    }

    /// Saves the next row with the state `y`, at its time with these tangents.
    fn save(&mut self, tangent: Tangent, y: &Y) {
        let (n, t) = (y.len(), self.track.rows[self.next_row].t);
        check(y, &self.track.ys[self.next_row * n..][..n]);
        self.next_row += 1;
        self.out.ys.extend_from_slice(y);
        for index in 0..self.track.num_observed {
            let value = self.functions.observed(index, D { value: t, tangent }, y);
            self.out.observed.push(value);
        }
    }
}

/// Compares values with those of the solve.
fn check(y: &[D], of_solve: &[f64]) {
    let is_same = |(y, of_solve): (&D, &f64)| {
        y.value.to_bits() == of_solve.to_bits() || y.value.is_nan() && of_solve.is_nan()
    };
    assert!(
        y.len() == of_solve.len() && y.iter().zip(of_solve).all(is_same),
        "invariant: a replay repeats the solve bit for bit"
    );
}

/// Runs the passes, on threads if there are several.
pub(super) fn run_all(track: &Track<'_>, passes: &[(&dyn DualFunctions, &[D])]) -> Vec<Passed> {
    let run =
        |(functions, y0): &(&dyn DualFunctions, &[D])| Replay::new(track, *functions, y0.to_vec()).run();
    #[cfg(feature = "rayon")]
    if passes.len() > 1 {
        use rayon::prelude::*;
        return passes.par_iter().map(run).collect();
    }
    passes.iter().map(run).collect()
}
