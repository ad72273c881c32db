//! Balls that bounce on floors, drawn at random: solves on tensors have the events and outcomes of plain solves.

use crate::adjoint::TensorSolution;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Event, Method, Ode, Outcome, Solution};
use crate::tensor::Tensor;
use std::collections::BTreeSet;

const GRAVITY: f64 = 9.81;

/// A floor at `height + speed s + amplitude sin(frequency s)`, s seconds after the start.
#[derive(Clone, Copy, Debug)]
struct Case {
    height: f64,
    speed: f64,
    amplitude: f64,
    frequency: f64,
    restitution: f64,
    is_condition: bool,
    method: Method,
    t0: f64,
    sign: f64,
    duration: f64,
    tolerance: f64,
}

impl Case {
    fn draw(draw: &mut Draw) -> (Self, [usize; 6]) {
        let ranges = [4, 2, 3, 2, 2, 3].map(|n| draw.below(n));
        let [kind, condition, method, start, backward, tolerance] = ranges;
        let if_kind = |of: usize, x: f64| if kind == of { x } else { 0.0 };
        let case = Case {
            height: if_kind(1, draw.log_uniform(1e-2, 1e3)),
            speed: if_kind(2, draw.uniform(-2.0, 2.0)),
            amplitude: if_kind(3, draw.uniform(0.01, 0.2)),
            frequency: draw.uniform(1.0, 10.0),
            restitution: draw.uniform(0.2, 0.9),
            is_condition: condition == 1,
            method: [Method::Tsit5, Method::Vern7, Method::Dop853][method],
            t0: [0.0, 1.7e9][start],
            sign: [1.0, -1.0][backward],
            duration: draw.uniform(0.5, 4.0),
            tolerance: [0.0, 0.0, 1e-4][tolerance],
        };
        (case, ranges)
    }

    fn event(&self) -> Event {
        let event = if self.is_condition { Event::rising() } else { Event::falling() };
        event.tolerance(self.tolerance)
    }

    fn plain(self) -> Solution<[f64; 2]> {
        let since = move |t: f64| (t - self.t0) * self.sign;
        let Case { height, speed, amplitude, frequency, restitution, sign, .. } = self;
        let gap = move |t: f64, y: &[f64; 2]| {
            y[0] - (height + speed * since(t) + amplitude * (frequency * since(t)).sin())
        };
        let bounce = move |t: f64, y: &mut [f64; 2]| {
            let floor = speed + amplitude * frequency * (frequency * since(t)).cos();
            y[1] = (floor - restitution * (y[1] * sign - floor)) * sign;
        };
        let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -GRAVITY])
            .method(self.method)
            .allow_incomplete()
            .max_events(300);
        let ode = if self.is_condition {
            ode.on_event(self.event(), move |t, y| gap(t, y) <= 0.0, bounce)
        } else {
            ode.on_event(self.event(), gap, bounce)
        };
        ode.solve(self.t0, self.t0 + sign * self.duration, [height + 1.0, 0.0]).unwrap()
    }

    fn tensor(self) -> TensorSolution<Tensor> {
        let since = move |t: &Tensor| (t - self.t0) * self.sign;
        let Case { height, speed, amplitude, frequency, restitution, sign, .. } = self;
        let gap = move |t: &Tensor, y: &Tensor| {
            y.index(0) - (height + speed * since(t) + amplitude * (frequency * since(t)).sin())
        };
        let bounce = move |t: Tensor, y: &mut Tensor| {
            let floor = speed + amplitude * frequency * (frequency * since(&t)).cos();
            let up = (&floor - restitution * (y.index(1) * sign - &floor)) * sign;
            *y = Tensor::stack(&[&y.index(0), &up]);
        };
        let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-GRAVITY)]));
        let ode = ode.method(self.method).allow_incomplete().max_events(300);
        let ode = if self.is_condition {
            ode.on_event(self.event(), move |t, y| gap(&t, y).le(0.0), bounce)
        } else {
            ode.on_event(self.event(), move |t, y| gap(&t, y), bounce)
        };
        ode.solve(self.t0, self.t0 + sign * self.duration, Tensor::from([height + 1.0, 0.0])).unwrap()
    }
}

fn is_zeno(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Zeno { .. })
}

#[test]
fn balls_on_floors_bounce_as_on_plain_states() {
    let (mut draw, mut pairs, mut num_zeno) = (Draw(8), BTreeSet::new(), 0);
    for number in 0..num_cases(60) {
        let (case, ranges) = Case::draw(&mut draw);
        for (i, &a) in ranges.iter().enumerate() {
            pairs.extend(ranges.iter().enumerate().skip(i + 1).map(|(j, &b)| (i, a, j, b)));
        }
        let (plain, tensor) = (case.plain(), case.tensor());
        let events = tensor.events().unwrap();
        let (expected, found) = (plain.events.len(), events.num_events.item() as usize);
        num_zeno += usize::from(is_zeno(&plain.outcome));
        let context = format!("{number}: {case:?}: {} and {}", plain.outcome, tensor.outcome());
        assert_eq!(is_zeno(&plain.outcome), is_zeno(&tensor.outcome()), "{context}");
        // The last bounces before rest depend on rounding.
        let same = if is_zeno(&plain.outcome) { expected.min(found) - 3 } else { expected };
        assert!(
            expected.abs_diff(found) <= 3 && (same < expected || found == expected),
            "{context}: {expected}, {found}"
        );
        let ts = events.t.to_vec();
        for (event, t) in plain.events.iter().zip(&ts).take(same) {
            let close = 1e-7 + 2.0 * case.tolerance + 1e-14 * case.t0;
            assert!((event.t - t).abs() < close, "{context}: {} and {t}", event.t);
        }
    }
    assert!(pairs.len() == 105 || num_cases(60) < 60, "{} of 105 pairs of ranges", pairs.len());
    assert!(num_zeno > 10, "{num_zeno}");
}
