//! `on_times`: state resets at given times, against solves split by hand at these times.
//!
//! Ranges: eight methods, adaptive with rtol 1e-10 (1e-8 for methods of order 2), constant steps, and `StepTo` (there
//! the values are equal bit for bit); both directions; up to 6 resets in up to 3 lists, also at t0, at t1, outside
//! the interval, at equal times, and 1 to 200 ulp from each other, from t0 and from t1; saved times at the resets.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

const METHODS: [Method; 8] = [
    Method::Tsit5,
    Method::Vern7,
    Method::Dopri5,
    Method::Rodas5P,
    Method::AutoTsit5Rodas5P,
    Method::Rosenbrock23,
    Method::Rkc2,
    Method::Rk4,
];

fn field(t: f64, y: &[f64; 2]) -> [f64; 2] {
    [y[1] + 0.2 * (1.3 * t).cos(), -2.0 * y[0] - 0.1 * y[1] * y[1]]
}

fn reset(t: f64, y: &mut [f64; 2], x: f64) {
    *y = [0.9 * y[0] + 0.1 * t, y[1] + x + 0.05 * y[0]];
}

/// A call of a reset: time, number and the state before it.
type Called = (f64, f64, [f64; 2]);

struct Case {
    method: Method,
    span: (f64, f64),
    lists: Vec<Vec<(f64, f64)>>,
    /// The step times, if they are given.
    grid: Option<Vec<f64>>,
    saved: Vec<f64>,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let sign = if draw.coin() { -1.0 } else { 1.0 };
        let t0 = if draw.below(4) == 0 { 0.0 } else { draw.uniform(-2.0, 2.0) };
        let t1 = t0 + sign * draw.uniform(0.3, 2.0);
        let (low, high) = (t0.min(t1), t0.max(t1));
        let mut times: Vec<f64> = (0..draw.below(4)).map(|_| draw.uniform(low - 0.2, high + 0.2)).collect();
        for t in [t0, t1] {
            if draw.below(3) == 0 {
                times.push(t);
            }
        }
        for _ in 0..draw.below(3) {
            // Beside another time by a few ulp.
            let t = draw.one(&[&times[..], &[t0, t1]].concat());
            let ulps = draw.one(&[1.0, 2.0, 15.0, 17.0, 99.0, 101.0, 200.0]) * draw.one(&[-1.0, 1.0]);
            times.push(t + ulps * (t.next_up() - t).max(1e-16));
        }
        for _ in 0..draw.below(3) {
            times.push(draw.one(&[&times[..], &[t0]].concat()));
        }
        let mut lists = vec![vec![]; 3];
        for t in times {
            lists[draw.below(3)].push((t, draw.uniform(-1.0, 1.0)));
        }
        let mut case = Case { method: draw.one(&METHODS), span: (t0, t1), lists, grid: None, saved: vec![] };
        case.saved = case.planned().iter().map(|(t, _)| *t).filter(|_| draw.coin()).collect();
        if draw.below(3) == 0 {
            let mut grid: Vec<f64> = (0..40).map(|_| draw.uniform(low, high)).chain([t0, t1]).collect();
            grid.extend(case.planned().iter().map(|(t, _)| *t));
            grid.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
            grid.dedup();
            case.grid = Some(grid);
        }
        case
    }

    /// The resets that act, in the order of the solve.
    fn planned(&self) -> Vec<(f64, f64)> {
        let (t0, t1) = self.span;
        let sign = if t1 < t0 { -1.0 } else { 1.0 };
        let mut all = self.lists.concat();
        all.retain(|(t, _)| t0 * sign <= t * sign && t * sign < t1 * sign);
        all.sort_by(|(a, _), (b, _)| (a * sign).partial_cmp(&(b * sign)).unwrap());
        all
    }

    fn ode(&self) -> Ode<'static, [f64; 2], impl VectorField<[f64; 2]> + use<>> {
        let ode = Ode::new(field).method(self.method);
        if self.grid.is_some() {
            return ode;
        }
        match self.method {
            Method::Rk4 => ode.dt0(0.01),
            Method::Rosenbrock23 | Method::Rkc2 => ode.rtol(1e-8).atol(1e-8),
            _ => ode.rtol(1e-10).atol(1e-10),
        }
    }

    /// The solve split by hand: the states before each reset, and the end.
    fn by_hand(&self) -> (Vec<[f64; 2]>, [f64; 2]) {
        let (mut t, mut y) = (self.span.0, [1.0, 0.3]);
        let mut before = vec![];
        let mut to = |next: f64, y: [f64; 2]| {
            let from = std::mem::replace(&mut t, next);
            if from == next {
                return y;
            }
            let ode = match &self.grid {
                Some(grid) => {
                    let is_inside = |t: &f64| from.min(next) <= *t && *t <= from.max(next);
                    let ts = grid.iter().copied().filter(is_inside).collect();
                    self.ode().controller(StepTo { ts })
                }
                None => self.ode(),
            };
            ode.solve(from, next, y).unwrap().y1
        };
        for (t, x) in self.planned() {
            y = to(t, y);
            before.push(y);
            reset(t, &mut y, x);
        }
        (before, to(self.span.1, y))
    }
}

#[test]
fn a_solve_with_resets_is_the_solve_split_by_hand() {
    let mut draw = Draw(43);
    let (mut seen, mut worst) = ([0; 8], 0.0_f64);
    for number in 0..num_cases(150) {
        let case = Case::draw(&mut draw);
        let called = Arc::new(Mutex::new(Vec::<Called>::new()));
        let mut ode = case.ode();
        if let Some(ts) = &case.grid {
            ode = ode.controller(StepTo { ts: ts.clone() });
        }
        for list in &case.lists {
            let called = Arc::clone(&called);
            ode = ode.on_times(list, move |t, y, x| {
                called.lock().unwrap().push((t, x, *y));
                reset(t, y, x);
            });
        }
        let (t0, t1) = case.span;
        let ode = ode.save_at(SaveAt::t1().and_dense().and_ts(&case.saved));
        let solution = ode.solve(t0, t1, [1.0, 0.3]).unwrap_or_else(|e| panic!("case {number}: {e}"));
        let called = called.lock().unwrap().clone();
        let (planned, (before, y1)) = (case.planned(), case.by_hand());
        let acted: Vec<_> = called.iter().map(|(t, x, _)| (*t, *x)).collect();
        assert_eq!(acted, planned, "case {number}, {:?}", case.span);
        let mut same = |got: &[f64; 2], want: &[f64; 2], what: &str| {
            let off = (0..2).fold(0.0_f64, |max, j| max.max((got[j] - want[j]).abs()));
            let allowed = if case.grid.is_some() { 0.0 } else { 1e-6 };
            worst = worst.max(off);
            assert!(off <= allowed, "case {number}, {}: {what} {got:?} for {want:?}", case.method);
        };
        same(&solution.y1, &y1, "y1");
        for ((_, _, got), want) in called.iter().zip(&before) {
            same(got, want, "before a reset");
        }
        for (t, y) in solution.ts.iter().zip(&solution.ys).filter(|(t, _)| **t != t1) {
            let first = called.iter().find(|one| one.0 == *t).unwrap();
            assert_eq!(*y, first.2, "a saved value is before the reset");
            let dense = solution.dense().unwrap().eval(*t).unwrap();
            assert!(*t == t0 || dense == *y, "dense output is before the reset");
        }
        let is_twice = planned.windows(2).any(|pair| pair[0].0 == pair[1].0);
        let near = |pair: &[(f64, f64)]| pair[0].0 != pair[1].0 && (pair[0].0 - pair[1].0).abs() < 1e-12;
        let found = [
            t1 < t0,
            planned.first().is_some_and(|(t, _)| *t == t0),
            case.lists.concat().iter().any(|(t, _)| *t == t1),
            is_twice,
            planned.windows(2).any(near),
            case.grid.is_some(),
            solution.ts.len() > 2,
            planned.iter().any(|(t, _)| *t != t1 && (t - t1).abs() < 1e-12),
        ];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 5), "{seen:?}");
}

#[test]
fn step_to_needs_the_times() {
    let ode = |ts: &[f64]| Ode::new(field).controller(StepTo { ts: ts.to_vec() }).on_times(&[0.5], reset);
    let error = ode(&[0.0, 0.3, 1.0]).solve(0.0, 1.0, [1.0, 0.0]).unwrap_err();
    assert!(matches!(error, SolveError::Config(_)) && error.to_string().contains("0.5"), "{error}");
    let solution = ode(&[0.0, 0.3, 0.5, 1.0]).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
    assert!(solution.stats.num_accepted == 3);
    // Times that do not act need not be among them, except t1.
    let outside =
        Ode::new(field).controller(StepTo { ts: vec![0.0, 1.0] }).on_times(&[-1.0, 2.0, 1.0, 0.0], reset);
    assert!(outside.solve(0.0, 1.0, [1.0, 0.0]).is_ok());
}

#[test]
fn events_at_a_time_act_first_and_a_jump_is_no_event() {
    for sign in [1.0, -1.0] {
        let log = Mutex::new(vec![]);
        let ode = Ode::new(move |_t, _y: &[f64; 2]| [sign, 0.0]).rtol(1e-9);
        // The first event occurs at the time of a reset, which then jumps over the root of the second.
        let act = |t: f64, y: &mut [f64; 2]| {
            log.lock().unwrap().push(("event", t));
            y[1] += 1.0;
        };
        let reset = |t: f64, y: &mut [f64; 2], x: f64| {
            log.lock().unwrap().push(("time", t));
            y[1] *= x;
            y[0] += 0.25;
        };
        let ode = ode
            .on_event(Event::rising(), move |t, _y| sign * t - 0.5, act)
            .event(Event::crossing(), |_t, y| y[0] - 0.7)
            .on_times(&[(sign * 0.5, 2.0), (sign * 0.5, 3.0)], reset);
        let solution = ode.save_at(SaveAt::steps()).solve(0.0, sign, [0.0, 1.0]).unwrap();
        let t = sign * 0.5;
        assert_eq!(*log.lock().unwrap(), [("event", t), ("time", t), ("time", t)]);
        // (1 + 1) * 2 * 3
        assert!((solution.y1[0] - 1.5).abs() < 1e-14 && solution.y1[1] == 12.0, "{solution:?}");
        let events: Vec<_> = solution.events.iter().map(|e| (e.index, e.t, e.y[1])).collect();
        assert_eq!(events, [(0, t, 1.0)]);
        let saved = solution.ts.iter().position(|at| *at == t).unwrap();
        assert_eq!((solution.ys[saved][1], solution.ys[saved][0] < 0.51), (1.0, true));
    }
}

#[test]
fn zero_and_minus_zero_are_one_time() {
    let ode = Ode::new(|_t, _y: &[f64; 1]| [0.0])
        .on_times(&[(0.0, 1.0), (-0.0, 2.0)], |_t, y, x| y[0] = 10.0 * y[0] + x);
    for (t0, t1) in [(0.0, 1.0), (-0.0, 1.0), (-1.0, 1.0), (1.0, -1.0)] {
        assert_eq!(ode.solve(t0, t1, [0.0]).unwrap().y1, [12.0], "from {t0}");
    }
}

#[test]
fn the_signs_of_events_are_those_after_the_reset() {
    // Each reset moves the state back below the root, so the event occurs again.
    let doses: Vec<f64> = (1..10).map(|i| 0.3 * f64::from(i)).collect();
    let ode = Ode::new(|_t, _y: &[f64; 1]| [1.0]).rtol(1e-9).event(Event::crossing(), |_t, y| y[0] - 0.2);
    let solution = ode.on_times(&doses, |_t, y, _x| y[0] = 0.0).solve(0.0, 3.0, [0.0]).unwrap();
    assert_eq!(solution.events.len(), 10);
    for (i, event) in solution.events.iter().enumerate() {
        assert!((event.t - 0.3 * i as f64 - 0.2).abs() < 1e-12, "{event:?}");
    }
    // A reset onto the root: the event has the sign that its function takes next.
    for (rate, count) in [(1.0, 0), (-1.0, 1)] {
        let ode =
            Ode::new(move |t, _y: &[f64; 1]| [if t < 0.5 { 1.0 } else { rate }]).discontinuities(&[0.5]);
        let ode = ode
            .event(Event::crossing(), |_t, y: &[f64; 1]| y[0] - 5.0)
            .on_times(&[0.5], |_t, y, _x| y[0] = 5.0);
        let solution = ode.solve(0.0, 1.0, [0.0]).unwrap();
        assert!(solution.events.is_empty(), "{count} {:?}", solution.events);
    }
}

#[test]
fn solves_that_end_at_a_reset() {
    // The third constant step ends at a dose.
    let ode = || {
        Ode::new(|_t, _y: &[f64; 1]| [1.0])
            .method(Method::Rk4)
            .dt0(0.25)
            .on_times(&[0.75], |_t, y, _x| y[0] += 10.0)
    };
    let short = ode().max_steps(3).allow_incomplete().solve(0.0, 1.0, [0.0]).unwrap();
    assert!(matches!(short.outcome, Outcome::MaxSteps { .. }) && short.t1 == 0.75, "{short:?}");
    let rest = ode().solve(short.t1, 1.0, short.y1).unwrap();
    assert!((rest.y1[0] - 11.0).abs() < 1e-14, "two solves in a row act once");
    let cancelled = ode().on_step(|t, y| {
        let want = if t < 0.75 { t } else { t + 10.0 };
        assert!((y[0] - want).abs() < 1e-14, "on_step sees the state after a reset");
        if t == 0.75 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let cancelled = cancelled.solve(0.0, 1.0, [0.0]).unwrap();
    assert!(cancelled.t1 == 0.75 && (cancelled.y1[0] - 10.75).abs() < 1e-14);
    let ended = ode().event(Event::rising().terminal(), |t, _y| t - 0.75).solve(0.0, 1.0, [0.0]).unwrap();
    assert!(ended.t1 == 0.75 && ended.y1[0] < 1.0, "a terminal event ends the solve before the reset");
}

#[test]
fn resets_that_fail_and_times_that_are_not_finite() {
    for at in [0.0, 0.5] {
        let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).rtol(1e-9).save_at(SaveAt::steps());
        let ode = ode.on_times(&[at], |_t, y, _x| y[0] = f64::NAN);
        let error = ode.clone().solve(0.0, 1.0, [1.0]).unwrap_err();
        assert!(matches!(error, SolveError::AtTime { t, .. } if t == at), "{error}");
        let partial = error.into_partial().unwrap();
        assert_eq!(partial.t1, at);
        assert!((partial.y1[0] - (-at).exp()).abs() < 1e-8, "the state before the reset");
        assert!(matches!(partial.outcome, Outcome::Failed { t, .. } if t == at));
        assert!(partial.ys.iter().all(|y| y[0].is_finite()));
    }
    for t in [f64::NAN, f64::INFINITY] {
        let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).on_times(&[0.5, t], |_t, y, _x| y[0] += 1.0);
        let error = ode.solve(0.0, 1.0, [1.0]).unwrap_err();
        assert!(matches!(error, SolveError::Config(_)) && error.to_string().contains("on_times"), "{error}");
    }
    let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).on_times(&[0.5], |_t, y, _x| y[0] += 1.0);
    assert!(ode.stepper(0.0, 1.0, [1.0]).is_err());
    let empty = ode.on_times(&[1.0, 0.0], |_t, y, _x| y[0] += 1.0).solve(1.0, 1.0, [1.0]).unwrap();
    assert_eq!(empty.y1, [1.0], "no time is in an empty interval");
}

#[test]
fn an_infinite_interval_ends_at_an_event_behind_resets() {
    for sign in [1.0, -1.0] {
        let ode = Ode::new(move |_t, y: &[f64; 1]| [-sign * y[0]]).rtol(1e-10).atol(1e-12);
        let ode = ode.on_times(&[sign * 40.0, 0.0, sign * 2.0], |_t, y, _x| y[0] += 1.0);
        let ode = ode.event(Event::falling().terminal_after(2), |_t, y: &[f64; 1]| y[0] - 0.1);
        let solution = ode.solve(0.0, sign * f64::INFINITY, [0.0]).unwrap();
        // It falls from 1 + e^-2 at t = 2, and from 1 at t = 40.
        assert_eq!(solution.events.len(), 2);
        assert!((solution.t1.abs() - 40.0 - 10.0_f64.ln()).abs() < 1e-6, "{solution:?}");
    }
}

#[test]
fn algebraic_variables_are_solved_again_after_a_reset() {
    let cases = [(Method::Rodas5P, 0.5), (Method::Rosenbrock23, 0.5), (Method::Rodas5P, 0.0)];
    for (method, at) in cases {
        let allowed = if method == Method::Rodas5P { 1e-7 } else { 1e-5 };
        let ode =
            Ode::new(|_t, y: &[f64; 2]| [-y[0], y[1] - 2.0 * y[0]]).method(method).rtol(1e-8).atol(1e-8);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0])).save_at(SaveAt::steps());
        let ode = ode.on_times(&[(at, 3.0)], |_t, y, x| y[0] += x);
        let solution = ode.solve(0.0, 1.0, [1.0, 2.0]).unwrap_or_else(|error| panic!("at {at}: {error}"));
        let y1 = (-1.0_f64).exp() + 3.0 * (at - 1.0).exp();
        let off = [solution.y1[0] - y1, solution.y1[1] - 2.0 * y1].map(f64::abs);
        assert!(off[0] < allowed && off[1] < allowed, "{method} {at}: {off:?}");
        for (t, y) in solution.ts.iter().zip(&solution.ys) {
            assert!((y[1] - 2.0 * y[0]).abs() < allowed, "at {t}: {y:?}");
        }
    }
    // A y0 that violates the equations is an error, with a reset at t0 and without.
    let bad = Ode::new(|_t, y: &[f64; 2]| [-y[0], y[1] - 2.0 * y[0]]).method(Method::Rodas5P);
    let bad = bad.mass_matrix(Mass::diagonal([1.0, 0.0])).on_times(&[0.0], |_t, y, _x| y[0] = 1.0);
    assert!(matches!(bad.solve(0.0, 1.0, [2.0, 2.0]).unwrap_err(), SolveError::Config(_)));
}
