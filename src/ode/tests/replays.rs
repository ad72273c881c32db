//! A sensitivity solve is the plain solve, bit for bit, under drawn settings.
//!
//! Ranges: every method with an error estimate, and constant steps; both directions of time; rtol in
//! `1e-9..1e-3`; up to 3 each of given times, stops, discontinuities, resets at given times, events and events
//! with resets; saved steps, t0 and t1; a limit on steps, `on_step`.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use crate::vector_field;
use std::array::from_fn;
use std::ops::ControlFlow;

vector_field! {
    /// An oscillator with a driving force, damped in the direction of the solve.
    pub(super) struct Driven<R> { stiffness: R, damping: R, force: R, shift: R }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let force = self.force * (1.3 * t).cos();
        [y[1], force - self.stiffness * y[0] - self.damping * y[1], y[0] * y[0] - 0.5 * y[2] + 0.1 * y[1]]
    }
    pub(super) fn height(&self, _t, y: &[R; 3]) -> R { y[0] - 0.2 * self.force }
    pub(super) fn speed(&self, t, y: &[R; 3]) -> R { y[1] + 0.1 * self.shift * t.sin() }
    pub(super) fn clock(&self, t, _y: &[R; 3]) -> R { (2.0 * t).sin() - 0.3 * self.shift }
    pub(super) fn kick(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0], -0.9 * y[1] + 0.1 * self.force, y[2]] }
    pub(super) fn push(&self, t, y: &[R; 3], amount) -> [R; 3] {
        [y[0], y[1] + amount * self.damping, y[2] + 0.1 * amount * t]
    }
    pub(super) fn late(&self, t) -> R { t + self.shift }
}

pub(super) const METHODS: [Method; 16] = [
    Method::Tsit5,
    Method::Dopri5,
    Method::Bosh3,
    Method::Vern7,
    Method::Vern9,
    Method::Dop853,
    Method::Rodas5P,
    Method::Rosenbrock23,
    Method::Rkc2,
    Method::AutoTsit5Rodas5P,
    Method::Tsit5,
    Method::Rodas5P,
    Method::Rkc2,
    Method::AutoTsit5Rodas5P,
    Method::Heun,
    Method::Rk4,
];

type Solve = Ode<'static, [f64; 3], Driven>;

/// A problem with its interval and initial state.
pub(super) type Drawn = (Solve, (f64, f64), [f64; 3]);

/// Draws a solve; `seen` counts what was drawn.
pub(super) fn drawn(draw: &mut Draw, seen: &mut [usize; 12]) -> Drawn {
    let is_stiff = draw.below(4) == 0;
    let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
    let field = Driven {
        stiffness: draw.uniform(1.0, 9.0),
        damping: sign * if is_stiff { draw.decade(1.0, 3.0) } else { draw.uniform(0.0, 1.0) },
        force: draw.uniform(-1.0, 1.0),
        shift: draw.uniform(-0.4, 0.4),
    };
    let t0 = draw.uniform(-1.0, 1.0);
    let t1 = t0 + sign * draw.uniform(0.5, 4.0);
    let index = draw.below(METHODS.len());
    let mut ode = Ode::from_generic(field).method(METHODS[index]);
    seen[index % 12] += 1;
    if METHODS[index] == Method::Rk4 {
        ode = ode.dt0(draw.uniform(0.01, 0.1));
    } else {
        ode = ode.rtol(draw.decade(-9.0, -3.0)).atol(draw.decade(-9.0, -5.0));
    }
    let times = |draw: &mut Draw| {
        let count = draw.below(4);
        let mut times: Vec<f64> = (0..count).map(|_| draw.uniform(t0.min(t1) - 0.2, t0.max(t1))).collect();
        if draw.below(4) == 0 {
            times.push(t0);
        }
        times.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
        times
    };
    let stops = times(draw);
    ode = ode.tstops(&stops);
    if draw.coin() {
        ode = ode.discontinuities(&times(draw));
    }
    if draw.coin() {
        let amounts: Vec<_> = times(draw).into_iter().map(|t| (t, draw.uniform(-1.0, 1.0))).collect();
        ode = ode.on_field_times(&amounts, Driven::push);
        let amounts: Vec<_> = times(draw).into_iter().map(|t| (t, draw.uniform(-1.0, 1.0))).collect();
        ode = ode.on_field_times(Times::at(&amounts).moved_to(Driven::late), Driven::push);
        if draw.coin() {
            ode = ode.on_field_times(&stops, Driven::push).field_discontinuities(&stops);
        }
    }
    let beside = [times(draw), stops].concat();
    ode = saving(draw, ode, (t0, t1), &beside);
    ode = watched(draw, ode);
    (ode.allow_incomplete(), (t0, t1), from_fn(|j| draw.uniform(if j == 2 { 0.0 } else { -1.0 }, 1.0)))
}

/// Draws events, limits and `on_step`.
fn watched(draw: &mut Draw, mut ode: Solve) -> Solve {
    for _ in 0..draw.below(3) {
        let event = draw.one(&[Event::crossing(), Event::rising(), Event::falling()]);
        let event = if draw.below(4) == 0 { event.terminal_after(1 + draw.below(4)) } else { event };
        let when = draw.one(&[Driven::height, Driven::speed, Driven::clock]);
        ode = if draw.coin() {
            ode.field_event(event, when)
        } else {
            ode.on_field_event(event, when, Driven::kick)
        };
    }
    if draw.below(4) == 0 {
        ode = ode.max_steps(1 + draw.below(60) as u64);
    }
    if draw.below(6) == 0 {
        let mut left = draw.below(40);
        ode = ode.on_step(move |_t, _y| {
            left = left.wrapping_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    if draw.below(6) == 0 {
        ode = ode.max_events(1 + draw.below(3));
    }
    ode
}

/// Draws what is saved; `beside` are times at which something happens.
fn saving(draw: &mut Draw, mut ode: Solve, (t0, t1): (f64, f64), beside: &[f64]) -> Solve {
    let sign = (t1 - t0).signum();
    let mut saved: Vec<f64> = beside.iter().chain(&[t1]).copied().filter(|_| draw.coin()).collect();
    saved.retain(|t| (t0..=t1).contains(t) || (t1..=t0).contains(t));
    saved.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
    match draw.below(5) {
        0 => {}
        1 => ode = ode.save_at(SaveAt::steps().and_ts(&saved)),
        2 => ode = ode.save_at(SaveAt::ts(&saved).and_every_nth_step(2).and_dense()),
        3 => ode = ode.save_at(SaveAt::ts(&saved).and_t0().and_t1()),
        _ => ode = ode.save_at(&saved),
    }
    ode
}

#[test]
fn a_sensitivity_solve_is_the_plain_solve() {
    let mut draw = Draw(37);
    let (mut seen, mut found) = ([0; 12], [0; 6]);
    for case in 0..num_cases(400) {
        let from = draw.0;
        let (ode, (t0, t1), y0) = drawn(&mut draw, &mut seen);
        let plain = match drawn(&mut Draw(from), &mut [0; 12]).0.solve(t0, t1, y0) {
            Ok(plain) => plain,
            Err(SolveError::Config(error)) => {
                let same = ode.forward_sensitivity().solve(t0, t1, y0).unwrap_err();
                assert_eq!(same.to_string(), error.to_string());
                found[0] += 1;
                continue;
            }
            Err(error) => error.into_partial().unwrap(),
        };
        let s = match ode.forward_sensitivity().observe([Driven::height]).solve(t0, t1, y0) {
            Ok(s) => s,
            Err(error) => error.into_partial().unwrap(),
        };
        assert_eq!(
            (plain.t1, plain.y1, plain.stats, plain.outcome),
            (s.t1, s.y1, s.stats, s.outcome),
            "case {case}"
        );
        assert_eq!((&plain.ts, &plain.ys, &plain.step_times), (&s.ts, &s.ys, &s.step_times), "case {case}");
        let events: Vec<_> = s.events.iter().map(|e| (e.index, e.t, e.y)).collect();
        assert_eq!(
            plain.events.iter().map(|e| (e.index, e.t, e.y)).collect::<Vec<_>>(),
            events,
            "case {case}"
        );
        assert_eq!((s.dys_dp.len(), s.observed.len()), (s.ts.len(), s.ts.len()));
        found[1] += usize::from(!events.is_empty());
        found[2] += usize::from(s.outcome == Outcome::Completed);
        found[3] += usize::from(matches!(s.outcome, Outcome::Event { .. }));
        found[4] += usize::from(t1 < t0);
        found[5] += usize::from(s.ys.len() > 2);
    }
    assert!(seen.iter().all(|&n| n > 10) && found[1..].iter().all(|&n| n > 20), "{seen:?} {found:?}");
}
