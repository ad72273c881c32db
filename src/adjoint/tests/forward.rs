//! Forward sensitivities of plain solves agree with reverse gradients of the same solves on tensors.
//!
//! Ranges: a driven oscillator with four parameters, solved by Tsit5, Dopri5 or Bosh3 in both directions, with
//! rtol in `1e-9..1e-5`; up to 4 given times; an event that is recorded, one that resets the state, and in
//! half of the cases an end at an occurrence. The loss is a random combination of all saved numbers, of the times
//! and states of all events, and of t1 and y1.

use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Event, Method, Ode, SaveAt, Warning};
use crate::tensor::{Tensor, value_and_grad};
use crate::vector_field;

vector_field! {
    struct Driven<R> { stiffness: R, damping: R, force: R, bounce: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [y[1], self.force * (1.3 * t).cos() - self.stiffness * y[0] - self.damping * y[1]]
    }
    fn height(&self, _t, y: &[R; 2]) -> R { y[0] - 0.2 * self.force }
    fn speed(&self, t, y: &[R; 2]) -> R { y[1] + 0.1 * self.bounce * t.sin() }
    fn kick(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0], -self.bounce * y[1] + 0.1 * self.force] }
}

/// A drawn problem.
struct Case {
    p: [f64; 4],
    y0: [f64; 2],
    span: (f64, f64),
    ts: Vec<f64>,
    method: Method,
    rtol: f64,
    ends: usize,
}

impl Case {
    fn drawn(draw: &mut Draw) -> Case {
        let sign = if draw.coin() { 1.0 } else { -1.0 };
        let t0 = draw.uniform(-1.0, 1.0);
        let t1 = t0 + sign * draw.uniform(1.0, 4.0);
        let count = 1 + draw.below(4);
        let mut ts: Vec<f64> = (0..count).map(|_| t0 + (t1 - t0) * draw.unit()).collect();
        ts.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
        let damping = sign * draw.uniform(0.0, 0.5);
        Case {
            p: [draw.uniform(2.0, 9.0), damping, draw.uniform(-1.0, 1.0), draw.uniform(0.5, 0.9)],
            y0: [draw.uniform(0.5, 1.0), draw.uniform(-1.0, 1.0)],
            span: (t0, t1),
            ts,
            method: draw.one(&[Method::Tsit5, Method::Dopri5, Method::Bosh3]),
            rtol: draw.decade(-9.0, -5.0),
            ends: if draw.coin() { 1 + draw.below(3) } else { 0 },
        }
    }

    fn event(&self) -> Event {
        if self.ends > 0 { Event::crossing().terminal_after(self.ends) } else { Event::crossing() }
    }

    /// The numbers of a forward sensitivity solve, and their derivatives with respect to the parameters and y0.
    fn forward(&self) -> (Vec<f64>, Vec<[f64; 6]>, u64) {
        let [stiffness, damping, force, bounce] = self.p;
        let ode = Ode::from_generic(Driven { stiffness, damping, force, bounce })
            .method(self.method)
            .rtol(self.rtol)
            .atol(1e-2 * self.rtol)
            .save_at(SaveAt::ts(&self.ts))
            .field_event(self.event(), Driven::speed)
            .on_field_event(Event::falling(), Driven::height, Driven::kick);
        let s = ode.forward_sensitivity().solve(self.span.0, self.span.1, self.y0).unwrap();
        assert!(!s.warnings.iter().any(|warning| matches!(warning, Warning::Grazing { .. })));
        let (mut numbers, mut rows) = (vec![], vec![]);
        let mut state = |y: &[f64; 2], by_p: &Driven<[f64; 2]>, by_y0: &[[f64; 2]; 2]| {
            for i in 0..2 {
                numbers.push(y[i]);
                let p = [by_p.stiffness[i], by_p.damping[i], by_p.force[i], by_p.bounce[i]];
                rows.push([p[0], p[1], p[2], p[3], by_y0[i][0], by_y0[i][1]]);
            }
        };
        for ((y, by_p), by_y0) in s.ys.iter().zip(&s.dys_dp).zip(&s.dys_dy0) {
            state(y, by_p, by_y0);
        }
        state(&s.y1, &s.dy1_dp, &s.dy1_dy0);
        for event in &s.events {
            state(&event.y, &event.dy_dp, &event.dy_dy0);
        }
        let times = s.events.iter().map(|event| (event.t, &event.dt_dp, event.dt_dy0));
        for (t, by_p, by_y0) in times.chain([(s.t1, &s.dt1_dp, s.dt1_dy0)]) {
            numbers.push(t);
            rows.push([by_p.stiffness, by_p.damping, by_p.force, by_p.bounce, by_y0[0], by_y0[1]]);
        }
        (numbers, rows, s.stats.num_steps)
    }

    /// The numbers of the solve on tensors, in the same order; `p` holds the parameters and y0.
    fn on_tensors(&self, p: &Tensor, num_rows: usize, num_events: usize) -> crate::Result<(Tensor, Tensor)> {
        let [stiffness, damping, force, bounce] = [0, 1, 2, 3].map(|i| p.index(i));
        let (f, c, b) = (force.clone(), force.clone(), bounce.clone());
        let field = move |t: Tensor, y: &Tensor| {
            let (x, v) = (y.index(0), y.index(1));
            Tensor::stack(&[&v, &(&f * (1.3 * t).cos() - &stiffness * x - &damping * &v)])
        };
        let kick = move |_t: Tensor, y: &mut Tensor| {
            *y = Tensor::stack(&[&y.index(0), &(-(&bounce * y.index(1)) + 0.1 * &force)]);
        };
        let ode = Ode::new(field)
            .method(self.method)
            .rtol(self.rtol)
            .atol(1e-2 * self.rtol)
            .save_at(SaveAt::ts(&self.ts))
            .max_events(40)
            .event(self.event(), move |t: Tensor, y: &Tensor| y.index(1) + 0.1 * &b * t.sin())
            .on_event(Event::falling(), move |_t, y: &Tensor| y.index(0) - 0.2 * &c, kick);
        let solution = ode.solve(self.span.0, self.span.1, p.slice(0, 4..6))?;
        let events = solution.events().expect("there are events");
        let all = [
            &solution.ys.slice(0, 0..num_rows).reshape([2 * num_rows]),
            &solution.y1,
            &events.y.slice(0, 0..num_events).reshape([2 * num_events]),
            &events.t.slice(0, 0..num_events),
            &solution.t1.reshape([1]),
        ];
        Ok((Tensor::concat(&all, 0), solution.stats.num_steps.clone()))
    }
}

#[test]
fn forward_sensitivities_are_the_gradients_of_tensors() {
    let mut draw = Draw(3707);
    let (mut num_events, mut num_ended) = (0, 0);
    let cases = num_cases(8);
    for number in 0..cases {
        let case = Case::drawn(&mut draw);
        let (numbers, rows, num_steps) = case.forward();
        let weights: Vec<f64> = numbers.iter().map(|_| draw.uniform(-1.0, 1.0)).collect();
        let want: [f64; 6] =
            std::array::from_fn(|j| rows.iter().zip(&weights).map(|(row, weight)| row[j] * weight).sum());
        let scale = rows.iter().flatten().fold(1.0_f64, |most, x| most.max(x.abs()));
        let num_rows = case.ts.iter().filter(|t| {
            let sign = (case.span.1 - case.span.0).signum();
            **t * sign <= numbers[numbers.len() - 1] * sign
        });
        let num_rows = num_rows.count();
        let events = (numbers.len() - 3 - 2 * num_rows) / 3;
        let at: Vec<f64> = case.p.iter().chain(&case.y0).copied().collect();
        let weights = Tensor::from(&weights[..]);
        let loss = |p: &Tensor| {
            let (all, steps) = case.on_tensors(p, num_rows, events)?;
            Ok::<_, crate::Error>(((&all * &weights).sum(), (all, steps)))
        };
        let ((_, (found, steps)), gradient) = value_and_grad(loss, &Tensor::from(&at[..])).unwrap();
        let off = found.to_vec().iter().zip(&numbers).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(off < 1e-11 * scale, "{number}: values differ by {off}");
        assert_eq!(steps.item() as u64, num_steps, "{number}");
        for (j, (got, want)) in gradient.to_vec().into_iter().zip(want).enumerate() {
            let off = (got - want).abs() / scale;
            assert!(off < 1e-11, "{number}, direction {j}: {got} for {want}, off by {off:e} of {scale}");
        }
        num_events += events;
        num_ended += usize::from(numbers[numbers.len() - 1] != case.span.1);
    }
    assert!(num_events > 3 * cases && num_ended > 1, "{num_events} {num_ended}");
}

vector_field! {
    struct Rest<R> { start: R }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [0.0 * y[0] + 1.0] }
    /// Rises to 0 and stays there.
    fn lid(&self, _t, y: &[R; 1]) -> R { (self.start - y[0]).select_positive(y[0] - self.start, 0.0) }
}

#[test]
fn an_event_that_does_not_cross_zero_has_derivatives_that_are_nan() {
    let grazing = |p: &Tensor| {
        let start = p.index(0);
        let ode = Ode::new(|_t: Tensor, y: &Tensor| 0.0 * y + 1.0).rtol(1e-9);
        let lid = move |_t: Tensor, y: &Tensor| {
            let below = y - &start;
            below.lt(0.0).select(&below, &(&below * 0.0))
        };
        let solution = ode.event(Event::rising().terminal(), lid).solve(0.0, 2.0, p.index(1))?;
        Ok::<_, crate::Error>((solution.t1.clone(), solution.y1))
    };
    let ((t1, y1), gradient) = value_and_grad(grazing, &Tensor::from([1.5, 1.0])).unwrap();
    // Any time from 0.5 on is a root.
    assert!(t1.item() >= 0.5 && t1.item() < 2.0 && (y1.item() - 1.0 - t1.item()).abs() < 1e-9);
    assert!(gradient.to_vec().iter().all(|x| x.is_nan()), "{gradient:?}");

    let rest =
        Ode::from_generic(Rest { start: 1.5 }).rtol(1e-9).field_event(Event::rising().terminal(), Rest::lid);
    let s = rest.forward_sensitivity().solve(0.0, 2.0, [1.0]).unwrap();
    assert!((s.t1 - t1.item()).abs() < 1e-9 && (s.y1[0] - y1.item()).abs() < 1e-9, "{s}");
    assert!(s.dt1_dp.start.is_nan() && s.dy1_dy0[0][0].is_nan());
    let [Warning::Grazing { index: 0, t }] = s.warnings[..] else { panic!("{:?}", s.warnings) };
    assert_eq!(t, s.t1);
}
