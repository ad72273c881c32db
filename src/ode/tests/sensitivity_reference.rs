//! Derivatives of solves against the same algorithm in complex numbers, with truly moved times.
//!
//! The reference takes only the recorded times from the solve: the ends of the steps, the ends before cuts, and
//! the events. It repeats the steps with one parameter or one component of y0 changed by `1e-30 i`, where the times
//! of events and of moved doses are complex. The imaginary parts divided by `1e-30` are the derivatives.
//!
//! Ranges: six explicit methods; both directions of time; rtol in `1e-9..1e-3`; up to 3 each of doses at fixed times,
//! doses and discontinuities at moved times, also at t0, at the times of events, at saved times and at each other;
//! up to 5 events with and without resets, of which two or three may occur at one time with different derivatives,
//! with resets that commute or do not; terminal events and n-th occurrences; saved times at and an ulp beside
//! events and steps, saved steps, t0 and t1.

use super::complex::{Complex as C, STEP};
use super::draw::{Draw, num_cases};
use crate::ode::plain::{Ran, run};
use crate::ode::*;
use case::{Case, List, Mixed};
use std::array::from_fn;

mod case;

/// The results in complex numbers.
#[derive(Default)]
struct Found {
    rows: Vec<[C; 3]>,
    observed: Vec<C>,
    events: Vec<(C, [C; 3])>,
    t1: C,
    y1: [C; 3],
}

fn add(y: &[C; 3], h: C, weights: &[C], k: &[[C; 3]]) -> [C; 3] {
    from_fn(|j| weights.iter().zip(k).fold(y[j], |sum, (w, k)| sum + h * *w * k[j]))
}

/// A step in complex numbers.
struct Step<'a> {
    interpolant: &'a Interpolant,
    t: C,
    h: C,
    y: [C; 3],
    k: Vec<[C; 3]>,
}

impl Step<'_> {
    fn at(&self, theta: C) -> [C; 3] {
        let (mut term, mut terms) = (C::from(1.0), vec![]);
        for j in 0..self.interpolant.degree() {
            term = term * if j % 2 == 0 { theta } else { C::from(1.0) - theta };
            terms.push(term);
        }
        let weight = |i: usize| {
            let all = self.interpolant.coefficients(i).iter().zip(&terms);
            all.fold(C::from(0.0), |sum, (c, term)| sum + *term * *c)
        };
        let weights: Vec<C> = (0..self.k.len()).map(weight).collect();
        add(&self.y, self.h, &weights, &self.k)
    }
    fn at_fixed(&self, t: f64) -> [C; 3] {
        self.at((C::from(t) - self.t) / self.h)
    }
    fn time(&self, theta: C) -> C {
        self.t + theta * self.h
    }
    /// The same step without imaginary parts.
    fn real(&self) -> Self {
        let re = |y: &[C; 3]| y.map(|y| C::from(y.re));
        let k = self.k.iter().map(re).collect();
        Step {
            interpolant: self.interpolant,
            t: C::from(self.t.re),
            h: C::from(self.h.re),
            y: re(&self.y),
            k,
        }
    }
}

/// The replay in complex numbers.
struct Reference<'a> {
    case: &'a Case,
    field: &'a Mixed<C>,
    plain: &'a Ran<[f64; 3], [f64; 3]>,
    planned: Vec<(f64, List)>,
    t: C,
    y: [C; 3],
    found: Found,
}

impl Reference<'_> {
    fn save_rows(&mut self, is_due: impl Fn(f64) -> bool, of: impl Fn(f64, bool) -> (C, [C; 3])) {
        let Ran { solution, .. } = self.plain;
        while let Some(&t) = solution.ts.get(self.found.rows.len()).filter(|t| is_due(**t)) {
            let (t, y) = of(t, self.case.saved.contains(&t));
            self.found.observed.push(y[0] * self.field.p[0] + t * y[2]);
            self.found.rows.push(y);
        }
    }

    fn advance(&mut self, to: C) {
        let rate = self.field.rate((self.t, self.t.re), &self.y);
        self.y = add(&self.y, to - self.t, &[C::from(1.0)], &[rate]);
        self.t = to;
    }

    /// The planned times at t.
    fn plan(&mut self, at: f64) {
        while self.planned.first().is_some_and(|(t, _)| *t == at) {
            let (_, List { entries, moved_by, doses }) = self.planned.remove(0);
            self.advance(self.field.time(moved_by, entries[0].0));
            if doses {
                self.y = self.field.then(3, self.t, &self.y, entries[0].1);
            }
        }
    }

    /// The stages of the step from the current time to `end`.
    fn stages<'i>(
        &self,
        tableau: &ButcherTableau,
        interpolant: &'i Interpolant,
        from: f64,
        end: f64,
    ) -> Step<'i> {
        let case = self.case;
        let moved = self.planned.first().filter(|(t, _)| *t == end);
        let end_c = moved.map_or(C::from(end), |(_, list)| self.field.time(list.moved_by, list.entries[0].0));
        let h = end_c - self.t;
        let mut k: Vec<[C; 3]> = vec![];
        let rows = (0..tableau.num_stages()).map(|i| (tableau.c[i], tableau.row(i)));
        for (i, (c, row)) in rows.chain(interpolant.extra()).enumerate() {
            let t = self.t + h * c;
            let real = if i == 0 { case.beside(from, true) } else { from + h.re * c };
            let real = if c == 1.0 { case.beside(end, false) } else { real };
            let row: Vec<C> = row.iter().map(|a| C::from(*a)).collect();
            k.push(self.field.rate((t, real), &add(&self.y, h, &row, &k)));
        }
        Step { interpolant, t: self.t, h, y: self.y, k }
    }

    /// The fraction of the step at which an event occurs.
    fn event(&self, step: &Step, which: usize, at: f64) -> C {
        let theta = (at - step.t.re) / step.h.re;
        let value =
            |step: &Step, field: &Mixed<C>, theta: C| field.when(which, step.time(theta), &step.at(theta)).im;
        let by_theta = value(&step.real(), &re_field(self.field), C::variable(theta));
        let by_p = value(step, self.field, C::from(theta));
        C { re: theta, im: -by_p / by_theta * STEP }
    }

    fn run(mut self) -> Found {
        let Ran { solution, tape, .. } = self.plain;
        let tableau = self.case.method.tableau();
        let interpolant = Interpolant::of(tableau);
        let sign = (self.case.span.1 - self.case.span.0).signum();
        let (t, y) = (self.t, self.y);
        self.save_rows(|row| row == t.re, |_, _| (t, y));
        self.plan(t.re);
        for i in 0..solution.step_times.len() - 1 {
            let (from, stop) = (solution.step_times[i], solution.step_times[i + 1]);
            let is_last = i + 2 == solution.step_times.len();
            let cut = tape.cuts.iter().find(|(step, _)| *step == i).map(|(_, end)| *end);
            let end = cut.unwrap_or(stop);
            let step = self.stages(tableau, &interpolant, from, end);
            self.save_rows(|t| t * sign < stop * sign, |t, _| (C::from(t), step.at_fixed(t)));
            let mut group = vec![];
            for (k, event) in solution.events.iter().enumerate().filter(|(k, _)| tape.event_steps[*k] == i) {
                let theta = self.event(&step, self.case.events[event.index].1, event.t);
                // With fixed times of the events, rounding errors of the values may grow from event to event.
                let (t, y) = (step.time(theta), step.at(theta));
                let y = from_fn(|j| C { re: event.y[j], ..y[j] });
                let acts = self.case.events[event.index].2 > 0
                    || matches!(solution.outcome, Outcome::Event { index, .. } if index == event.index);
                if cut.is_some() && event.t == stop && acts {
                    group.push((event.index, t, y));
                }
                assert_eq!(self.found.events.len(), k);
                self.found.events.push((t, y));
            }
            let at_end = (step.t + step.h, step.at(C::from(1.0)));
            (self.t, self.y) = group.first().map_or(at_end, |(_, t, y)| (*t, *y));
            self.t.re = stop;
            let before = (self.t, self.y);
            let is_due = self.case.every > 0 && (i + 1).is_multiple_of(self.case.every);
            let is_end = |t: f64| t == stop && (is_due || self.case.saved.contains(&t));
            self.save_rows(is_end, |t, given| if given { (C::from(t), step.at_fixed(t)) } else { before });
            for (index, t, _) in &group {
                self.advance(*t);
                self.y = self.field.then(self.case.events[*index].2, self.t, &self.y, 0.0);
            }
            if let (Outcome::Event { index, .. }, true) = (solution.outcome, is_last) {
                // The solve ends at the time of the event that ends it.
                let of_end = group.iter().find(|one| one.0 == index).unwrap();
                self.advance(of_end.1);
            } else if !is_last {
                self.plan(stop);
            }
        }
        let (t, y) = (self.t, self.y);
        self.save_rows(|_| true, |_, _| (t, y));
        Found { t1: self.t, y1: self.y, ..self.found }
    }
}

fn re_field(field: &Mixed<C>) -> Mixed<C> {
    Mixed { p: field.p.map(|p| C::from(p.re)), ..*field }
}

/// The largest difference of pairs of a derivative and its reference, relative to the largest of them; infinite if
/// one of them is not finite.
fn difference(pairs: &[(f64, C)]) -> f64 {
    let size = pairs.iter().fold(1.0_f64, |max, (_, c)| max.max((c.im / STEP).abs()));
    let all = pairs.iter().map(|(got, c)| (got - c.im / STEP).abs() / size);
    all.fold(0.0_f64, |max, off| if off.is_finite() { max.max(off) } else { f64::INFINITY })
}

/// All derivatives of `s` in a direction, with the references.
fn pairs(s: &Sensitivity<Mixed, 3>, found: &Found, direction: usize) -> Vec<(f64, C)> {
    let mut all = vec![];
    let number = |by_p: &Mixed<f64>, by_y0: &[f64; 3]| {
        if direction < 7 { by_p.p[direction] } else { by_y0[direction - 7] }
    };
    let state = |by_p: &Mixed<[f64; 3]>, by_y0: &[[f64; 3]; 3]| -> [f64; 3] {
        if direction < 7 { by_p.p[direction] } else { from_fn(|i| by_y0[i][direction - 7]) }
    };
    let mut push = |got: [f64; 3], want: &[C; 3]| all.extend(got.into_iter().zip(*want));
    push(state(&s.dy1_dp, &s.dy1_dy0), &found.y1);
    assert_eq!((s.ts.len(), s.events.len()), (found.rows.len(), found.events.len()));
    for k in 0..s.ts.len() {
        push(state(&s.dys_dp[k], &s.dys_dy0[k]), &found.rows[k]);
    }
    for (event, (_, y)) in s.events.iter().zip(&found.events) {
        push(state(&event.dy_dp, &event.dy_dy0), y);
    }
    all.push((number(&s.dt1_dp, &s.dt1_dy0), found.t1));
    for (event, (t, _)) in s.events.iter().zip(&found.events) {
        all.push((number(&event.dt_dp, &event.dt_dy0), *t));
    }
    for k in 0..s.observed.len() {
        all.push((number(&s.dobserved_dp[k], &s.dobserved_dy0[k]), found.observed[k]));
    }
    all
}

#[test]
fn derivatives_are_those_of_the_algorithm_with_truly_moved_times() {
    let mut draw = Draw(41);
    let (mut seen, mut worst, mut failures) = ([0; 12], 0.0_f64, vec![]);
    let cases = num_cases(200);
    for number in 0..cases {
        let case = Case::draw(&mut draw);
        let (t0, t1) = case.span;
        let s = match case.ode().forward_sensitivity().observe([Mixed::observed]).solve(t0, t1, case.y0) {
            Ok(s) => s,
            Err(error) => panic!("case {number}: {error}"),
        };
        let ran = run(&case.ode(), case.span, case.y0, true).unwrap();
        for direction in 0..10 {
            let mut field = Mixed {
                p: case.field.p.map(C::from),
                at: case.field.at,
                jump: case.field.jump,
                moves: case.field.moves,
                sign: case.field.sign,
            };
            let mut y = case.y0.map(C::from);
            let to = if direction < 7 { &mut field.p[direction] } else { &mut y[direction - 7] };
            to.im = STEP;
            let (plain, planned, found) = (&ran, case.planned(), Found::default());
            let reference =
                Reference { case: &case, field: &field, plain, planned, t: C::from(t0), y, found };
            let all = pairs(&s, &reference.run(), direction);
            let off = difference(&all);
            worst = worst.max(off);
            if off >= 1e-12 {
                failures.push((number, direction, off));
            }
        }
        count(&case, &s, &mut seen);
    }
    assert!(failures.is_empty(), "{} of {cases}: {failures:?}", failures.len());
    assert!(seen.iter().all(|&n| n > 2), "{seen:?}");
}

/// Counts what a case contains.
fn count(case: &Case, s: &Sensitivity<Mixed, 3>, seen: &mut [usize; 12]) {
    let (t0, t1) = case.span;
    let planned = case.planned();
    let at_once = |a: &EventSensitivity<Mixed, 3>, b: &EventSensitivity<Mixed, 3>| a.t == b.t;
    let groups = s.events.chunk_by(at_once);
    let found = [
        t1 < t0,
        !s.events.is_empty(),
        s.events.iter().any(|e| case.events[e.index].2 > 0),
        groups.clone().any(|group| group.len() == 2),
        groups.clone().any(|group| group.len() > 2),
        matches!(s.outcome, Outcome::Event { .. }),
        matches!(s.outcome, Outcome::Event { .. }) && groups.last().is_some_and(|group| group.len() > 1),
        planned.iter().any(|(t, list)| *t == t0 && list.doses),
        planned.iter().any(|(t, _)| s.events.iter().any(|e| e.t == *t)),
        planned.windows(2).any(|pair| pair[0].0 == pair[1].0),
        planned.iter().any(|(t, list)| list.moved_by > 0 && s.ts.contains(t)),
        !s.events.is_empty() && s.stats.num_rejected > 0,
    ];
    seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
}
