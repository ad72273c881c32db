//! Balls that bounce on floors: no bounce is lost, and Zeno behavior ends the solve, at any scale of t and y.
//!
//! The cases are drawn at random. `FLOWLINE_CASES=20000` draws more of them.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use std::collections::BTreeSet;

const GRAVITY: f64 = 9.81;

/// The height of the floor as a function of the time since the start.
#[derive(Clone, Copy, Debug)]
enum Floor {
    Fixed(f64),
    Uniform { speed: f64 },
    Accelerated { by: f64 },
    Oscillating { amplitude: f64, frequency: f64 },
}

impl Floor {
    /// The height and the speed of the floor.
    fn at(self, s: f64) -> [f64; 2] {
        match self {
            Floor::Fixed(height) => [height, 0.0],
            Floor::Uniform { speed } => [speed * s, speed],
            Floor::Accelerated { by } => [0.5 * by * s * s, by * s],
            Floor::Oscillating { amplitude, frequency } => {
                let (sin, cos) = (frequency * s).sin_cos();
                [amplitude * sin, amplitude * frequency * cos]
            }
        }
    }

    /// The accumulation time of the bounces of a ball that starts at rest, one meter above the floor; `None` if it is
    /// not known.
    fn end(self, restitution: f64) -> Option<f64> {
        let (gravity, speed) = match self {
            Floor::Fixed(_) => (GRAVITY, 0.0),
            Floor::Uniform { speed } => (GRAVITY, -speed),
            Floor::Accelerated { by } => (GRAVITY + by, 0.0),
            Floor::Oscillating { .. } => return None,
        };
        let impact = (speed * speed + 2.0 * gravity).sqrt();
        let first = (speed + impact) / gravity;
        (restitution < 1.0).then(|| first + 2.0 * impact * restitution / (gravity * (1.0 - restitution)))
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    floor: Floor,
    restitution: f64,
    is_f32: bool,
    is_condition: bool,
    method: usize,
    t0: f64,
    sign: f64,
    duration: f64,
    tolerance: f64,
    interp_points: usize,
}

const METHODS: [Method; 5] = [Method::Tsit5, Method::Vern7, Method::Dop853, Method::Rodas5P, Method::Rk4];
const STARTS: [f64; 2] = [0.0, 1.7e9];
const TOLERANCES: [f64; 5] = [0.0, 0.0, 1e-6, 1e-4, 5e-3];

impl Case {
    /// A case, and the range of each of its parameters.
    fn draw(draw: &mut Draw) -> (Self, [usize; 9]) {
        let kind = draw.below(4);
        let floor = match kind {
            0 => Floor::Fixed(if draw.below(2) == 0 { 0.0 } else { draw.log_uniform(1e-3, 1e4) }),
            1 => Floor::Uniform { speed: draw.uniform(-3.0, 3.0) },
            2 => Floor::Accelerated { by: draw.uniform(-4.0, 4.0) },
            _ => Floor::Oscillating {
                amplitude: draw.log_uniform(0.01, 0.3),
                frequency: draw.log_uniform(0.3, 20.0),
            },
        };
        let [is_f32, is_condition, is_elastic] = [2, 2, 6].map(|n| draw.below(n) == 0);
        let restitution = if is_elastic { 1.0 } else { draw.uniform(0.3, 1.0) };
        let duration = draw.log_uniform(0.1, 1e6);
        let [method, start, tolerance, backward] = [5, 2, 5, 2].map(|n| draw.below(n));
        let interp_points = [1, 4, 4, 16, 64][draw.below(5)];
        let case = Case {
            floor,
            restitution,
            is_f32,
            is_condition,
            method,
            t0: STARTS[start],
            sign: [1.0, -1.0][backward],
            duration,
            tolerance: TOLERANCES[tolerance],
            interp_points,
        };
        let flags = [is_f32, is_condition, is_elastic].map(usize::from);
        let long = usize::from(duration > 100.0);
        let [a, b, c] = flags;
        (case, [kind, a, b, c, method, start, tolerance, backward, long])
    }

    /// The time since the start.
    fn since(&self, t: f64) -> f64 {
        (t - self.t0) * self.sign
    }

    /// Solves; returns the outcome, and the height of the ball over the floor at the end and in the samples at
    /// which a bounce was lost.
    fn run(self) -> (Outcome, Vec<f64>) {
        if self.is_f32 { self.run_f32() } else { self.run_f64() }
    }
}

macro_rules! run {
    ($name:ident, $t:ty) => {
        impl Case {
            fn $name(self) -> (Outcome, Vec<f64>) {
                let gap = move |t: f64, y: &[$t; 2]| f64::from(y[0]) - self.floor.at(self.since(t))[0];
                let bounce = move |t: f64, y: &mut [$t; 2]| {
                    let floor = self.floor.at(self.since(t))[1];
                    let speed = f64::from(y[1]) * self.sign;
                    y[1] = ((floor - self.restitution * (speed - floor)) * self.sign) as $t;
                };
                let method = METHODS[self.method];
                let event = if self.is_condition { Event::rising() } else { Event::falling() };
                let event = event.interp_points(self.interp_points).tolerance(self.tolerance);
                let event = event.terminal_after(10_000);
                let ode = Ode::new(|_t: f64, y: &[$t; 2]| [y[1], -GRAVITY as $t]);
                let ode =
                    ode.method(method).max_steps(10_000_000).allow_incomplete().save_at(SaveAt::dense());
                let ode = if matches!(method, Method::Rk4) {
                    ode.dt0((1e-4 * self.duration).max(0.05))
                } else {
                    ode
                };
                let ode = if self.is_condition {
                    ode.on_event(event, move |t, y| gap(t, y) <= 0.0, bounce)
                } else {
                    ode.on_event(event, gap, bounce)
                };
                let y0 = [(self.floor.at(0.0)[0] + 1.0) as $t, 0.0];
                let solution = ode.solve(self.t0, self.t0 + self.sign * self.duration, y0).unwrap();
                let noise = |t: f64, y: &[$t; 2]| {
                    let [height, speed] = self.floor.at(self.since(t));
                    let speed = (f64::from(y[1]) * self.sign - speed).abs() + speed.abs();
                    let time = 2.0 * self.tolerance.max(t.abs() * 1e-15);
                    speed * time + 16.0 * <$t>::EPSILON as f64 * (height.abs() + 1.0)
                };
                let below = |t: f64, y: &[$t; 2]| gap(t, y) < -noise(t, y);
                let mut lost = vec![];
                if solution.outcome == Outcome::Completed && below(solution.t1, &solution.y1) {
                    lost.push(gap(solution.t1, &solution.y1));
                }
                let (dense, mut start) = (solution.dense().unwrap(), self.t0);
                let mut bounces = solution.events.iter().map(|event| event.t).peekable();
                for &end in &solution.step_times {
                    let mut above = false;
                    let is_cut = bounces.next_if(|t| *t == end).is_some();
                    for part in (0..=self.interp_points).filter(|_| !is_cut) {
                        let part = part as f64 / self.interp_points as f64;
                        let t = if part == 1.0 { end } else { start + (end - start) * part };
                        let y = dense.eval(t).unwrap();
                        if above && below(t, &y) {
                            lost.push(gap(t, &y));
                        }
                        above = gap(t, &y) > noise(t, &y);
                    }
                    start = end;
                }
                (solution.outcome, lost)
            }
        }
    };
}
run!(run_f64, f64);
run!(run_f32, f32);

#[test]
fn balls_on_floors_lose_no_bounce() {
    let mut draw = Draw(20261124);
    let mut pairs = BTreeSet::new();
    let (mut failures, mut num_zeno) = (vec![], 0);
    let n = num_cases(300);
    for number in 0..n {
        let (case, ranges) = Case::draw(&mut draw);
        for (i, &a) in ranges.iter().enumerate() {
            pairs.extend(ranges.iter().enumerate().skip(i + 1).map(|(j, &b)| (i, a, j, b)));
        }
        let (outcome, lost) = case.run();
        let end = case.floor.end(case.restitution);
        let is_zeno = matches!(outcome, Outcome::Zeno { .. });
        num_zeno += usize::from(is_zeno);
        let fell = !lost.is_empty();
        // In f32, rounding errors of a height may give a ball the little energy that it loses in a bounce.
        let loses = !case.is_f32 || case.restitution < 0.99;
        let should_end = loses && end.is_some_and(|end| case.duration > 1.01 * end + 0.1);
        let may_end = end.is_none_or(|end| case.duration > 0.99 * end - 0.1) || case.is_f32;
        let ended = matches!(outcome, Outcome::Event { .. });
        if fell
            || should_end && !(is_zeno || ended)
            || is_zeno && !may_end
            || !(is_zeno || ended || outcome == Outcome::Completed)
        {
            failures.push((number, case, outcome, lost, end));
        }
    }
    // 4 kinds of floor, 5 methods, 5 tolerances, and 6 parameters with two ranges each.
    assert_eq!(pairs.len(), 293, "not every pair of ranges was drawn");
    assert!(num_zeno > n / 3, "{num_zeno} of {n} solves end with Zeno behavior");
    assert!(
        failures.is_empty(),
        "{} of {n} solves: {:#?}",
        failures.len(),
        &failures[..failures.len().min(12)]
    );
}
