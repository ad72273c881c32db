//! The records of solves with two or three events, beside a reference that knows the solution in closed form.
//!
//! The cases are drawn at random. `FLOWLINE_CASES=10000` draws more of them.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use std::collections::BTreeSet;

/// The longest step. The reference samples each function `FINE` times in this time.
const DT_MAX: f64 = 0.02;
const FINE: f64 = 4.0;
/// A root of another function, and a value of a function, count as clear of an instant from here on.
const CLEAR: f64 = 1e-3;
/// Roots within this time belong to one instant.
const TOGETHER: f64 = 1e-8;

/// The derivative of (x, v), with a solution in closed form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Motion {
    Rotation { w: f64 },
    Fall { g: f64 },
    Drag { d: f64, c: f64 },
}

impl Motion {
    fn field(self, y: &[f64; 2]) -> [f64; 2] {
        match self {
            Motion::Rotation { w } => [y[1], -w * w * y[0]],
            Motion::Fall { g } => [y[1], -g],
            Motion::Drag { d, c } => [y[1], c - d * y[1]],
        }
    }

    fn after(self, [x, v]: [f64; 2], dt: f64) -> [f64; 2] {
        match self {
            Motion::Rotation { w } => {
                let (sin, cos) = (w * dt).sin_cos();
                [x * cos + v / w * sin, v * cos - x * w * sin]
            }
            Motion::Fall { g } => [x + dt * (v - 0.5 * g * dt), v - g * dt],
            Motion::Drag { d, c } => {
                let (end, part) = (c / d, -(-d * dt).exp_m1());
                [x + end * dt + (v - end) * part / d, end + (v - end) * (1.0 - part)]
            }
        }
    }
}

/// The event's function a x + b v + s sin(k t) - c, times a scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub a: f64,
    pub b: f64,
    pub s: f64,
    pub k: f64,
    pub c: f64,
    pub scale: f64,
}

impl Function {
    fn at(&self, t: f64, y: &[f64; 2]) -> f64 {
        let Function { a, b, s, k, c, scale } = self;
        scale * (a * y[0] + b * y[1] + s * (k * t).sin() - c)
    }

    /// The size of the function: values below a thousandth of it are close to 0.
    fn size(&self) -> f64 {
        self.scale.abs() * (self.a.abs() + self.b.abs() + self.s.abs())
    }

    /// The same function in another form: `relation` is 0 for the same, 1 for a multiple, 2 for the negative,
    /// 3 for other rounding errors.
    fn related(self, relation: usize, draw: &mut Draw) -> Self {
        let by = draw.log_uniform(1e-6, 1e6);
        match relation {
            0 => self,
            1 => Function { scale: self.scale * by, ..self },
            2 => Function { scale: -self.scale, ..self },
            _ => {
                let by = draw.uniform(1.1, 3.0);
                let Function { a, b, s, c, .. } = self;
                Function { a: a * by, b: b * by, s: s * by, c: c * by, ..self }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reset {
    Nothing,
    Reflect(f64),
    Kick(f64),
    Jump(f64),
    Put([f64; 2]),
}

impl Reset {
    fn run(self, y: &mut [f64; 2]) {
        match self {
            Reset::Nothing => {}
            Reset::Reflect(by) => y[1] *= -by,
            Reset::Kick(by) => y[1] += by,
            Reset::Jump(by) => y[0] += by,
            Reset::Put(to) => *y = to,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub function: Function,
    /// The number of the first event whose function has the same roots.
    pub family: usize,
    pub is_condition: bool,
    pub event: Event,
    pub reset: Reset,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub motion: Motion,
    pub watched: Vec<Watched>,
    pub method: Method,
    pub t0: f64,
    pub t1: f64,
    pub y0: [f64; 2],
}

/// An occurrence: the event's index, the time, and the state before the resets.
pub(crate) type Record = (usize, f64, [f64; 2]);

impl Case {
    /// A case, and the range of each of its parameters.
    pub fn draw(draw: &mut Draw) -> (Self, Vec<usize>) {
        let [kind, more, method, backward, start, zero] = [3, 2, 3, 2, 3, 4].map(|n| draw.below(n));
        let motion = match kind {
            0 => Motion::Rotation { w: draw.uniform(0.5, 2.0) },
            1 => Motion::Fall { g: draw.uniform(-3.0, 3.0) },
            _ => Motion::Drag { d: draw.uniform(0.05, 0.3), c: draw.uniform(-1.0, 1.0) },
        };
        let t0 = [0.0, -3.0, 1e4][start];
        let y0 = [(); 2].map(|()| draw.uniform(-2.0, 2.0));
        let mut ranges = vec![kind, more, method, backward, start, zero];
        let mut watched: Vec<Watched> = vec![];
        for index in 0..2 + more {
            let [shape, relation, way, action, samples, last] = [4, 6, 3, 6, 3, 3].map(|n| draw.below(n));
            let [a, b, s, c] = [(); 4].map(|()| draw.uniform(-1.0, 1.0));
            let new = match shape {
                0 => Function { a: 1.0, b: 0.0, s: 0.0, k: 0.0, c, scale: 1.0 },
                1 => Function { a: 0.0, b: 1.0, s: 0.0, k: 0.0, c, scale: 1.0 },
                2 => Function { a, b, s: 0.0, k: 0.0, c, scale: draw.log_uniform(1e-3, 1e3) },
                _ => Function { a, b, s, k: draw.uniform(0.5, 3.0), c, scale: 1.0 },
            };
            // Exactly 0 at the start in a quarter of the cases.
            let c = if zero == 0 { Function { c: 0.0, scale: 1.0, ..new }.at(t0, &y0) } else { new.c };
            let new = Function { c, ..new };
            let (function, family) = match watched.last() {
                Some(other) if relation < 4 => (other.function.related(relation, draw), other.family),
                _ => (new, index),
            };
            let event = [Event::rising(), Event::falling(), Event::crossing()][way];
            let event = event.interp_points([1, 4, 16][samples]);
            let event = if last == 0 { event.terminal_after(1 + draw.below(6)) } else { event };
            let reset = match action {
                0 | 1 => Reset::Nothing,
                2 => Reset::Reflect(draw.uniform(0.5, 1.0)),
                3 => Reset::Kick(draw.uniform(-1.0, 1.0)),
                4 => Reset::Jump(draw.uniform(-0.5, 0.5)),
                _ => Reset::Put([(); 2].map(|()| draw.uniform(-1.0, 1.0))),
            };
            // A condition is false at 0.
            let is_condition = zero != 0 && draw.coin();
            watched.push(Watched { function, family, is_condition, event, reset });
            if index < 2 {
                ranges.extend([shape, relation, way, action, samples, last]);
            }
        }
        let method = [Method::Tsit5, Method::Vern7, Method::Dop853][method];
        let t1 = t0 + [8.0, -8.0][backward];
        (Case { motion, watched, method, t0, t1, y0 }, ranges)
    }

    /// A case that ends before the first instant that is not clear, its ranges, its records, and whether an event ends
    /// the solve.
    pub fn clear(draw: &mut Draw) -> (Self, Vec<usize>, Vec<Record>, bool) {
        loop {
            let (mut case, ranges) = Case::draw(draw);
            let (records, end, is_last) = case.reference();
            let last = records.last().map_or(case.t0, |record| record.1);
            if records.len() >= 2 && (is_last || (end - last) * (case.t1 - case.t0) > 0.0) {
                case.t1 = if is_last { case.t1 } else { end };
                return (case, ranges, records, is_last);
            }
        }
    }

    fn values(&self, t: f64, y: &[f64; 2]) -> Vec<f64> {
        self.watched.iter().map(|watched| watched.function.at(t, y) / watched.function.size()).collect()
    }

    pub fn solve(&self) -> Solution<[f64; 2]> {
        let motion = self.motion;
        let mut ode = Ode::new(move |_t, y: &[f64; 2]| motion.field(y)).method(self.method);
        for watched in &self.watched {
            let Watched { function, is_condition, event, reset, .. } = *watched;
            let number = move |t: f64, y: &[f64; 2]| function.at(t, y);
            let condition = move |t: f64, y: &[f64; 2]| function.at(t, y) > 0.0;
            let then = move |_t: f64, y: &mut [f64; 2]| reset.run(y);
            ode = match (is_condition, matches!(reset, Reset::Nothing)) {
                (false, false) => ode.on_event(event, number, then),
                (true, false) => ode.on_event(event, condition, then),
                (false, true) => ode.event(event, number),
                (true, true) => ode.event(event, condition),
            };
        }
        let ode = ode.rtol(1e-10).atol(1e-10).dt_max(DT_MAX).allow_incomplete();
        ode.solve(self.t0, self.t1, self.y0).unwrap()
    }

    /// The records, the end of the solve, and whether an event ends it. The reference ends before the first
    /// instant that is not clear: two roots of a function in a few steps, a function that only touches 0, two
    /// instants close together.
    fn reference(&self) -> (Vec<Record>, f64, bool) {
        let mut walk = Walk::new(self);
        let (sign, mut records, mut counts) = (walk.sign, vec![], vec![0_u64; self.watched.len()]);
        if !walk.starts_clearly() {
            return (records, self.t0, false);
        }
        while (walk.t - self.t1) * sign < 0.0 {
            let next = walk.t + sign * DT_MAX / FINE;
            let after = self.values(next, &self.motion.after(walk.y0, next - walk.start));
            let from = walk.signs_before(&after);
            let roots = walk.roots(next, &from, &after);
            if walk.touches(&after, &roots) {
                return (records, walk.t - sign * 3.0 * DT_MAX, false);
            }
            let Some(first) =
                roots.iter().flatten().copied().min_by(|a, b| (a * sign).total_cmp(&(b * sign)))
            else {
                (walk.earlier, walk.values, walk.t) = (walk.values, after, next);
                continue;
            };
            let is_first = |i: &usize| roots[*i].is_some_and(|t| (t - first).abs() < TOGETHER);
            let group: Vec<usize> = (0..roots.len()).filter(is_first).collect();
            if !walk.is_clear(first, &group) {
                return (records, first - sign * 3.0 * DT_MAX, false);
            }
            let y = self.motion.after(walk.y0, first - walk.start);
            let (mut new, mut ends) = (y, false);
            for &i in group.iter().filter(|&&i| self.watched[i].event.has_occurred(&from[i], &after[i])) {
                counts[i] += 1;
                records.push((i, first, y));
                self.watched[i].reset.run(&mut new);
                ends |= self.watched[i].event.ends_at(counts[i]);
            }
            if ends {
                return (records, first, true);
            }
            if !walk.go_on(first, new, &group) {
                // The records of this instant are clear. The solve must end before the next.
                return (records, first + sign * 1e-7, false);
            }
        }
        (records, self.t1, false)
    }

    /// The derivative of function i, in units of its size, on the motion from `from`.
    fn slope(&self, i: usize, t: f64, from: (f64, [f64; 2])) -> f64 {
        let at = |t: f64| self.values(t, &self.motion.after(from.1, t - from.0))[i];
        (at(t + 1e-5) - at(t - 1e-5)) / 2e-5
    }

    /// The root of function i between two times, by bisection; `sign` is its sign before.
    fn root(&self, i: usize, [mut a, mut b]: [f64; 2], sign: f64, from: (f64, [f64; 2])) -> f64 {
        for _ in 0..60 {
            let middle = 0.5 * (a + b);
            // Right behind an instant, the function may be 0 up to rounding.
            let value = self.values(middle, &self.motion.after(from.1, middle - from.0))[i];
            if value * sign > 0.0 { a = middle } else { b = middle }
        }
        b
    }
}

/// The state of the reference.
struct Walk<'a> {
    case: &'a Case,
    sign: f64,
    /// The last instant, and the state there.
    start: f64,
    y0: [f64; 2],
    /// The last sample, and the one before.
    t: f64,
    values: Vec<f64>,
    earlier: Vec<f64>,
    /// The time at which each function was last 0.
    last_root: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(case: &'a Case) -> Self {
        let (sign, start, y0) = ((case.t1 - case.t0).signum(), case.t0, case.y0);
        let values = case.values(start, &y0);
        let last_root =
            values.iter().map(|v| if *v == 0.0 { start } else { -f64::INFINITY * sign }).collect();
        Walk { case, sign, start, y0, t: start, earlier: values.clone(), values, last_root }
    }

    fn slope(&self, i: usize, t: f64) -> f64 {
        self.case.slope(i, t, (self.start, self.y0))
    }

    fn starts_clearly(&self) -> bool {
        let is_clear = |(i, v): (usize, &f64)| {
            if *v == 0.0 { self.slope(i, self.t).abs() >= 0.01 } else { v.abs() >= CLEAR }
        };
        self.values.iter().enumerate().all(is_clear)
    }

    /// The values at the last sample. A sign at the start or behind an instant is that of the next sample.
    fn signs_before(&self, after: &[f64]) -> Vec<f64> {
        let sign = |(v, after): (&f64, &f64)| if v.abs() < 1e-9 { *after } else { *v };
        self.values.iter().zip(after).map(sign).collect()
    }

    fn roots(&self, next: f64, from: &[f64], after: &[f64]) -> Vec<Option<f64>> {
        let root = |i: usize| self.case.root(i, [self.t, next], from[i], (self.start, self.y0));
        (0..after.len()).map(|i| (from[i] * after[i] < 0.0).then(|| root(i))).collect()
    }

    /// Whether a function has an extremum near 0 at the last sample.
    fn touches(&self, after: &[f64], roots: &[Option<f64>]) -> bool {
        (0..after.len()).any(|i| {
            let size = self.values[i].abs();
            let turns = size <= self.earlier[i].abs() && size <= after[i].abs();
            let is_open = (self.t - self.last_root[i]).abs() < 3.0 * DT_MAX;
            turns && size < CLEAR && !is_open && roots[i].is_none()
        })
    }

    /// Whether the functions of `group`, and no others, have simple roots at `t`, far from their last roots.
    fn is_clear(&self, t: f64, group: &[usize]) -> bool {
        let watched = &self.case.watched;
        let values = self.case.values(t, &self.case.motion.after(self.y0, t - self.start));
        let is_clear = |i: usize| {
            if group.contains(&i) {
                let is_late = (t - self.last_root[i]).abs() > 3.0 * DT_MAX;
                return self.slope(i, t).abs() > 0.01 && is_late;
            }
            values[i].abs() > CLEAR || values[i].abs() < 1e-9 && self.last_root[i] == t
        };
        let is_one = group.iter().all(|&i| watched[i].family == watched[group[0]].family);
        is_one && (0..values.len()).all(is_clear)
    }

    /// Continues from the instant at `t` with the state `y`. Returns whether all signs behind it are clear.
    fn go_on(&mut self, t: f64, y: [f64; 2], group: &[usize]) -> bool {
        group.iter().for_each(|&i| self.last_root[i] = t);
        (self.start, self.y0, self.t) = (t, y, t);
        self.values = self.case.values(t, &y);
        self.earlier = self.values.clone();
        (0..self.values.len()).all(|i| {
            if self.values[i].abs() >= 1e-9 {
                return self.values[i].abs() >= CLEAR;
            }
            self.last_root[i] = t;
            self.slope(i, t + self.sign * 1e-5).abs() >= 0.01
        })
    }
}

#[test]
fn records_of_two_or_three_events_equal_a_reference() {
    let mut draw = Draw(20261124);
    let (mut pairs, mut failures) = (BTreeSet::new(), vec![]);
    let (mut num_records, mut num_groups, mut num_ended) = (0, 0, 0);
    let n = num_cases(300);
    for number in 0..n {
        let (case, ranges, records, is_last) = Case::clear(&mut draw);
        for (i, &a) in ranges.iter().enumerate() {
            pairs.extend(ranges.iter().enumerate().skip(i + 1).map(|(j, &b)| (i, a, j, b)));
        }
        let solution = case.solve();
        let is_near = |(a, b): (&EventRecord<[f64; 2]>, &Record)| {
            let apart = (0..2).map(|i| (a.y[i] - b.2[i]).abs()).fold((a.t - b.1).abs(), f64::max);
            a.index == b.0 && apart < 1e-6
        };
        let is_ended = matches!(solution.outcome, Outcome::Event { .. });
        let same =
            solution.events.len() == records.len() && solution.events.iter().zip(&records).all(is_near);
        num_records += records.len();
        num_groups += records.windows(2).filter(|pair| pair[0].1 == pair[1].1).count();
        num_ended += usize::from(is_last);
        if !same || is_ended != is_last {
            let found: Vec<_> = solution.events.iter().map(|e| (e.index, e.t, e.y)).collect();
            failures
                .push(format!("{number}: {case:?}\n found {found:?}\n expected {records:?}\n {solution}"));
        }
    }
    // 18 parameters with 2 to 6 ranges each.
    assert_eq!(pairs.len(), 2104, "not every pair of ranges was drawn");
    assert!(
        num_records > 5 * n && num_groups > n && num_ended > n / 5,
        "{num_records} {num_groups} {num_ended}"
    );
    assert!(
        failures.is_empty(),
        "{} of {n} solves:\n{}",
        failures.len(),
        failures[..failures.len().min(8)].join("\n")
    );
}

/// A motion, a function that is exactly 0 at its start, the state there, and the end of a solve from t = 0.
pub(crate) fn zero_at_the_start(draw: &mut Draw) -> (Motion, Function, [f64; 2], f64) {
    let y0 = [(); 2].map(|()| draw.uniform(-2.0, 2.0));
    let [a, b, s] = [(); 3].map(|()| draw.uniform(-1.0, 1.0));
    let zero = Function { a, b, s, k: draw.uniform(0.5, 3.0), c: 0.0, scale: 1.0 };
    let function = Function { c: zero.at(0.0, &y0), ..zero };
    let motion = Motion::Rotation { w: draw.uniform(1.0, 2.0) };
    (motion, function, y0, if draw.coin() { 0.01 } else { -0.01 })
}

/// A function that is 0 at the start has the sign that it takes beyond rounding errors, so no event occurs there. The
/// value just behind t = 0 has the sign of a rounding error in one case of 15.
#[test]
fn a_function_of_zero_at_the_start_does_not_change_its_sign_there() {
    let mut draw = Draw(7);
    for number in 0..num_cases(2_000) {
        let (motion, function, y0, t1) = zero_at_the_start(&mut draw);
        let ode = Ode::new(move |_t, y: &[f64; 2]| motion.field(y)).dt_max(0.01);
        let ode = ode.event(Event::crossing(), move |t, y| function.at(t, y));
        let found = ode.solve(0.0, t1, y0).unwrap();
        let early = found.events.iter().find(|event| event.t.abs() < 1e-9);
        assert!(early.is_none(), "{number}: {function:?} from {y0:?}: {early:?}");
    }
}
