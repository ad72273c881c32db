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

use super::draw::{Draw, num_cases};
use crate::ode::plain::{Ran, run};
use crate::ode::*;
use crate::vector_field;
use complex::C;
use std::array::from_fn;

#[path = "sensitivity_reference/complex.rs"]
mod complex;

const EPS: f64 = 1e-30;

vector_field! {
    /// The parameters a, b, c, d, zero (whose value is 0), lag, gain. The field jumps at the time `jump`, later by
    /// the lag if `moves` is 1. The alarms go off at the time `at`, later by the lag.
    struct Mixed<R> { p: [R; 7], at: f64, jump: f64, moves: f64, sign: f64 }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let [a, b, c, d, _, lag, gain] = self.p;
        let force = (t - (self.jump + self.moves * lag)).select_positive(gain, 0.0);
        [
            y[1] + 0.1 * a * (1.3 * t).cos(),
            -b * y[0] - 0.3 * self.sign * y[1] + c * t.sin() + force,
            0.3 * y[0] * y[0] - 0.5 * self.sign * d * y[2] + 0.2 * a * y[1],
        ]
    }
    fn height(&self, _t, y: &[R; 3]) -> R { y[0] - 0.2 * self.p[0] }
    fn speed(&self, t, y: &[R; 3]) -> R { y[1] + 0.1 * self.p[6] * t.sin() + 0.05 * self.p[1] }
    fn clock(&self, t, _y: &[R; 3]) -> R { (2.0 * t).sin() - 0.3 * self.p[2] }
    fn alarm(&self, t, y: &[R; 3]) -> R { t - (self.at + self.p[5]) + self.p[4] * y[0] }
    fn second_alarm(&self, t, y: &[R; 3]) -> R {
        (t - (self.at + self.p[5])) * (1.0 + y[0] * y[0]) - self.p[4] * y[1]
    }
    fn kick(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0], -0.9 * y[1] + 0.1 * self.p[2], y[2]] }
    fn shove(&self, t, y: &[R; 3]) -> [R; 3] { [y[0] + 0.1 * self.p[0], y[1] * y[0], y[2] + 0.1 * t] }
    fn push(&self, t, y: &[R; 3], amount) -> [R; 3] {
        [y[0], y[1] + amount * self.p[1], y[2] + 0.1 * amount * t]
    }
    fn late(&self, t) -> R { t + self.p[5] }
    fn later(&self, t) -> R { t + self.p[5] * (1.0 + self.p[4]) }
    fn observed(&self, t, y: &[R; 3]) -> R { y[0] * self.p[0] + t * y[2] }
}

/// The same functions in complex numbers. `at` is the time without its imaginary part, on its side of a jump.
impl Mixed<C> {
    fn rate(&self, (t, at): (C, f64), y: &[C; 3]) -> [C; 3] {
        let [a, b, c, d, _, lag, gain] = self.p;
        let force = if at - (self.jump + self.moves * lag.re) > 0.0 { gain } else { C::from(0.0) };
        [
            y[1] + a * (t * 1.3).cos() * 0.1,
            c * t.sin() + force - b * y[0] - y[1] * (0.3 * self.sign),
            y[0] * y[0] * 0.3 - d * y[2] * (0.5 * self.sign) + a * y[1] * 0.2,
        ]
    }
    fn when(&self, which: usize, t: C, y: &[C; 3]) -> C {
        let past = t - (self.p[5] + C::from(self.at));
        match which {
            0 => y[0] - self.p[0] * 0.2,
            1 => y[1] + self.p[6] * t.sin() * 0.1 + self.p[1] * 0.05,
            2 => (t * 2.0).sin() - self.p[2] * 0.3,
            3 => past + self.p[4] * y[0],
            _ => past * (C::from(1.0) + y[0] * y[0]) - self.p[4] * y[1],
        }
    }
    fn then(&self, which: usize, t: C, y: &[C; 3], x: f64) -> [C; 3] {
        match which {
            0 => *y,
            1 => [y[0], self.p[2] * 0.1 - y[1] * 0.9, y[2]],
            2 => [y[0] + self.p[0] * 0.1, y[1] * y[0], y[2] + t * 0.1],
            _ => [y[0], y[1] + self.p[1] * x, y[2] + t * (0.1 * x)],
        }
    }
    fn time(&self, which: usize, t: f64) -> C {
        match which {
            0 => C::from(t),
            1 => self.p[5] + C::from(t),
            _ => self.p[5] * (C::from(1.0) + self.p[4]) + C::from(t),
        }
    }
}

const WHEN: [NumberFn<Mixed, 3>; 5] =
    [Mixed::height, Mixed::speed, Mixed::clock, Mixed::alarm, Mixed::second_alarm];
const METHODS: [Method; 6] =
    [Method::Tsit5, Method::Dopri5, Method::Vern7, Method::Bosh3, Method::Dop853, Method::Rk4];

/// A list of times: the function that moves them, and whether they are doses or discontinuities.
struct List {
    entries: Vec<(f64, f64)>,
    moved_by: usize,
    doses: bool,
}

/// A problem, and how to make its `Ode`.
struct Case {
    field: Mixed,
    method: Method,
    rtol: f64,
    span: (f64, f64),
    y0: [f64; 3],
    /// The function and the reset of each event; reset 0 is none.
    events: Vec<(Event, usize, usize)>,
    lists: Vec<List>,
    stops: Vec<f64>,
    jumps: Vec<f64>,
    saved: Vec<f64>,
    /// Saves every n-th step; 0 for none.
    every: usize,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let t0 = draw.uniform(-1.0, 1.0);
        let t1 = t0 + sign * draw.uniform(0.5, 3.0);
        let lag = if draw.below(4) == 0 { 0.0 } else { draw.uniform(-0.3, 0.3) };
        let inside =
            |draw: &mut Draw| if draw.below(8) == 0 { t0 } else { draw.uniform(t0.min(t1), t0.max(t1)) };
        let (at, jump) = (inside(draw), inside(draw));
        let moves = if draw.coin() { 1.0 } else { 0.0 };
        let mut p: [f64; 7] = from_fn(|_| draw.uniform(-1.0, 1.0));
        (p[1], p[4], p[5]) = (draw.uniform(1.0, 9.0), 0.0, lag);
        let field = Mixed { p, at, jump, moves, sign };
        let is_jump_listed = draw.coin();
        let mut lists = vec![];
        for moved_by in [0, 1, 2, 0] {
            // Times at which other things happen: those of the alarms, of the jump, and of other doses.
            let mut times: Vec<f64> = (0..draw.below(3)).map(|_| inside(draw)).collect();
            if draw.below(3) == 0 {
                times.push(if moved_by == 0 { at + lag } else { at });
            }
            if draw.below(4) == 0 && is_jump_listed {
                times.push(if moved_by == 0 { jump + moves * lag } else { jump });
            }
            if draw.below(5) == 0 {
                times.push(t0);
            }
            let entries = times.into_iter().map(|t| (t, draw.uniform(-1.0, 1.0))).collect();
            lists.push(List { entries, moved_by, doses: true });
        }
        let mut jumps = vec![];
        if moves > 0.0 {
            lists.insert(draw.below(5), List { entries: vec![(jump, 0.0)], moved_by: 1, doses: false });
        } else if is_jump_listed {
            jumps.push(jump);
        }
        let events = (0..draw.below(6)).map(|_| {
            let event = draw.one(&[Event::crossing(), Event::rising(), Event::falling(), Event::crossing()]);
            let event = if draw.below(6) == 0 { event.terminal_after(1 + draw.below(3)) } else { event };
            (event, draw.one(&[0, 1, 2, 3, 3, 4, 4]), draw.below(3))
        });
        let events = events.collect();
        let stops = if draw.coin() { vec![at + lag] } else { vec![] };
        let (method, rtol) = (draw.one(&METHODS), draw.decade(-9.0, -3.0));
        let y0 = from_fn(|_| draw.uniform(-1.0, 1.0));
        let (saved, every) = (vec![], draw.below(4));
        let mut case =
            Case { field, method, rtol, span: (t0, t1), y0, events, lists, stops, jumps, saved, every };
        if !is_jump_listed && moves == 0.0 {
            // Nothing ends a step at the jump.
            case.field.p[6] = 0.0;
        }
        case.save_beside(draw);
        case
    }

    /// Saves times at events, at steps and beside them.
    fn save_beside(&mut self, draw: &mut Draw) {
        let (t0, t1) = self.span;
        let plain = self.ode().solve(t0, t1, self.y0).unwrap();
        let happened = plain.events.iter().map(|event| event.t).chain(plain.step_times.iter().copied());
        let all: Vec<f64> = happened.flat_map(|t| [t, t.next_up(), t.next_down()]).collect();
        self.saved = all.into_iter().filter(|_| draw.below(3) == 0).collect();
        self.saved.extend((0..draw.below(4)).map(|_| draw.uniform(t0.min(t1), t0.max(t1))));
        self.saved.retain(|t| t0.min(t1) <= *t && *t <= t0.max(t1));
        self.saved.sort_by(f64::total_cmp);
        self.saved.dedup();
        if t1 < t0 {
            self.saved.reverse();
        }
    }

    fn ode(&self) -> Ode<'static, [f64; 3], Mixed> {
        let mut ode = Ode::from_generic(self.field.clone()).method(self.method);
        ode = match self.method {
            Method::Rk4 => ode.dt0(0.05),
            _ => ode.rtol(self.rtol).atol(self.rtol),
        };
        for &(event, when, then) in &self.events {
            ode = match then {
                0 => ode.field_event(event, WHEN[when]),
                1 => ode.on_field_event(event, WHEN[when], Mixed::kick),
                _ => ode.on_field_event(event, WHEN[when], Mixed::shove),
            };
        }
        for List { entries, moved_by, doses } in &self.lists {
            let times = Times::at(entries);
            let times = match moved_by {
                0 => times,
                1 => times.moved_to(Mixed::late),
                _ => times.moved_to(Mixed::later),
            };
            ode = if *doses {
                ode.on_field_times(times, Mixed::push)
            } else {
                ode.field_discontinuities(times)
            };
        }
        let steps = if self.every > 0 { SaveAt::every_nth_step(self.every) } else { SaveAt::t1() };
        ode.tstops(&self.stops)
            .discontinuities(&self.jumps)
            .save_at(steps.and_ts(&self.saved))
            .allow_incomplete()
    }

    /// The planned times in the order of the solve: time, number, moved by, whether it is a dose.
    fn planned(&self) -> Vec<(f64, List)> {
        let ((t0, t1), lag) = (self.span, self.field.p[5]);
        let sign = (t1 - t0).signum();
        let mut all = vec![];
        for doses in [false, true] {
            for list in self.lists.iter().filter(|list| list.doses == doses) {
                for &(given, x) in &list.entries {
                    let t = if list.moved_by == 0 { given } else { given + lag };
                    let one = List { entries: vec![(given, x)], moved_by: list.moved_by, doses };
                    all.push((t, one));
                }
            }
        }
        all.retain(|(t, _)| t * sign >= t0 * sign && t * sign < t1 * sign);
        all.sort_by(|(a, _), (b, _)| (a * sign).total_cmp(&(b * sign)));
        all
    }

    /// The times beside which the field is evaluated.
    fn beside(&self, t: f64, after: bool) -> f64 {
        let lag = self.field.p[5];
        let moved = self.lists.iter().filter(|list| !list.doses).flat_map(|list| &list.entries);
        let is_jump = moved.map(|(t, _)| t + lag).chain(self.jumps.iter().copied()).any(|jump| jump == t);
        match (is_jump, after == (self.span.1 >= self.span.0)) {
            (false, _) => t,
            (true, true) => t.next_up(),
            (true, false) => t.next_down(),
        }
    }
}

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

impl<'a> Reference<'a> {
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
        let by_theta = value(&step.real(), &re_field(self.field), C { re: theta, im: EPS });
        let by_p = value(step, self.field, C::from(theta));
        C { re: theta, im: -by_p / by_theta * EPS }
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

/// The largest difference of pairs of a derivative and its reference, relative to the largest of them.
fn difference(pairs: &[(f64, C)]) -> f64 {
    let size = pairs.iter().fold(1.0_f64, |max, (_, c)| max.max((c.im / EPS).abs()));
    pairs.iter().fold(0.0_f64, |max, (got, c)| max.max((got - c.im / EPS).abs() / size))
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
            to.im = EPS;
            let (plain, planned, found) = (&ran, case.planned(), Found::default());
            let reference =
                Reference { case: &case, field: &field, plain, planned, t: C::from(t0), y, found };
            let all = pairs(&s, &reference.run(), direction);
            let off = difference(&all);
            worst = worst.max(off);
            if !(off < 1e-12) {
                failures.push((number, direction, off));
            }
        }
        count(&case, &s, &mut seen);
    }
    println!("{seen:?} worst {worst:e}");
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
