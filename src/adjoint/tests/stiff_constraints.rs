//! Differential-algebraic problems on tensors: consistent values at every saved time, and gradients beside differences.
//!
//! Ranges: pendulums of length 0.5 to 2 from angles in `-1..1`; resets of a charge with a nonlinear current, with the rate
//! in `0.5..2`, 1 to 4 resets, which scale and shift the charge and leave, spoil or clear the current; both directions of
//! time; Rodas5P and Rosenbrock23.

use crate::adjoint::TensorSolution;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Event, Mass, Method, Ode, SaveAt, StepTo};
use crate::tensor::{Tensor, grad};

/// The derivatives of f by each of `x`, by central differences of order 4.
fn differences(f: &dyn Fn(&[f64]) -> Vec<f64>, x: &[f64]) -> Vec<Vec<f64>> {
    let by = |j: usize| {
        let h = 1e-3 * if x[j] == 0.0 { 1.0 } else { x[j].abs() };
        let at = |part: f64| {
            let mut x = x.to_vec();
            x[j] += part * h;
            f(&x)
        };
        let [up, down, far_up, far_down] = [at(1.0), at(-1.0), at(2.0), at(-2.0)];
        let of = |i: usize| (8.0 * (up[i] - down[i]) - (far_up[i] - far_down[i])) / (12.0 * h);
        (0..up.len()).map(of).collect()
    };
    (0..x.len()).map(by).collect()
}

/// Asserts that two gradients agree within 1e-6 of their largest entry, as derivatives by the logarithms of `x` where x is
/// not 0.
#[track_caller]
fn assert_same(got: &[f64], want: &[f64], x: &[f64], what: &str) {
    let scale = |x: f64| if x == 0.0 { 1.0 } else { x.abs() };
    let size = want.iter().zip(x).fold(0.0_f64, |size, (g, x)| size.max(g.abs() * scale(*x)));
    for (j, ((a, b), x)) in got.iter().zip(want).zip(x).enumerate() {
        assert!((a - b).abs() * scale(*x) < 1e-6 * size, "{what}, variable {j}: {a} for {b}");
    }
}

/// Robertson's problem whose third equation is `0 = y0 + y1 + y2 - 1`.
fn robertson(k: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
    let [slow, fast, back] = [k.index(0) * &a, k.index(1) * &b * &b, k.index(2) * &b * &c];
    Tensor::stack(&[&(&back - &slow), &(slow - &fast - back), &(a + b + c - 1.0)])
}

#[test]
fn robertsons_problem_with_an_algebraic_equation_keeps_its_sum() {
    let (k, t1) = ([0.04, 3e7, 1e4], 4e4);
    let saved: Vec<f64> = (-8..=18).map(|i| 10.0_f64.powf(0.25 * f64::from(i))).collect();
    let solve = |k: &Tensor, steps: Option<&StepTo>| -> TensorSolution<Tensor> {
        let ode = Ode::new(|_t, y: &Tensor| robertson(k, y)).method(Method::Rodas5P);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0])).max_steps(1000);
        let ode = match steps {
            None => ode.rtol(1e-7).atol([1e-10, 1e-14, 1e-10]).save_at(SaveAt::ts(&saved).and_steps()),
            Some(steps) => ode.controller(steps.clone()),
        };
        ode.solve(0.0, t1, Tensor::from([1.0, 0.0, 0.0])).unwrap()
    };
    let solution = solve(&Tensor::from(k), None);
    let num_saved = solution.num_saved.item() as usize;
    let (ts, ys) = (solution.ts.to_vec(), solution.ys.to_vec());
    assert!(num_saved > saved.len() + 50, "{num_saved}");
    // The equation is linear, so each stage satisfies it, and only the sums round.
    for (t, y) in ts.iter().zip(ys.chunks(3)).take(num_saved) {
        assert!((y[0] + y[1] + y[2] - 1.0).abs() < 1e-14, "t={t}: {y:?}");
    }
    let of_steps = ts[..num_saved].iter().filter(|t| !saved.contains(t) && **t > 0.0 && **t < t1);
    let steps = StepTo { ts: [0.0].iter().chain(of_steps).chain(&[t1]).copied().collect() };
    let want = differences(&|k| solve(&Tensor::from(k), Some(&steps)).y1.to_vec(), &k);
    for i in 0..3 {
        let got = grad(|k: &Tensor| solve(k, Some(&steps)).y1.index(i), &Tensor::from(k)).to_vec();
        let want: Vec<f64> = want.iter().map(|of| of[i]).collect();
        assert_same(&got, &want, &k, &format!("y[{i}]"));
    }
}

/// The start of a pendulum with the parameters gravity, length, angle and angular velocity: place, velocity and the
/// multiplier of the constraint.
fn pendulum_start(p: &Tensor) -> Tensor {
    let [g, length, angle, speed] = [0, 1, 2, 3].map(|i: usize| p.index(i));
    let (x, y) = (&length * angle.sin(), -(&length * angle.cos()));
    let (u, v) = (-(&speed * &y), &speed * &x);
    let multiplier = (&u * &u + &v * &v - g * &y) / length.square();
    Tensor::stack(&[&x, &y, &u, &v, &multiplier])
}

/// `x'' = -m x`, `y'' = -m y - g`; the constraint `x^2 + y^2 = length^2`, differentiated twice, determines m.
fn pendulum(p: &Tensor, state: &Tensor) -> Tensor {
    let [x, y, u, v, m] = [0, 1, 2, 3, 4].map(|i: usize| state.index(i));
    let second = &u * &u + &v * &v - p.index(0) * &y - &m * (&x * &x + &y * &y);
    Tensor::stack(&[&u, &v, &-(&m * &x), &(-(&m * &y) - p.index(0)), &second])
}

#[test]
fn a_pendulum_of_index_1_has_consistent_values_and_exact_gradients() {
    let mut draw = Draw(411);
    for case in 0..num_cases(3) {
        let p = [
            draw.uniform(1.0, 10.0),
            draw.uniform(0.5, 2.0),
            draw.uniform(-1.0, 1.0),
            draw.uniform(-1.0, 1.0),
        ];
        let method = if case % 3 == 2 { Method::Rosenbrock23 } else { Method::Rodas5P };
        let (rtol, t1) = (if method == Method::Rodas5P { 1e-7 } else { 1e-5 }, draw.uniform(0.5, 2.0));
        let saved: Vec<f64> = (1..20).map(|i| t1 * f64::from(i) / 20.0).collect();
        let solve = |p: &Tensor, steps: Option<&StepTo>| -> TensorSolution<Tensor> {
            let ode = Ode::new(|_t, y: &Tensor| pendulum(p, y)).method(method).max_steps(2000);
            let ode = ode.mass_matrix(Mass::diagonal([1.0, 1.0, 1.0, 1.0, 0.0]));
            let ode = match steps {
                None => ode.rtol(rtol).atol(rtol).save_at(SaveAt::ts(&saved).and_steps()),
                Some(steps) => ode.controller(steps.clone()).save_at(SaveAt::ts(&saved).and_t1()),
            };
            ode.solve(0.0, t1, pendulum_start(p)).unwrap()
        };
        let solution = solve(&Tensor::from(p), None);
        let num_saved = solution.num_saved.item() as usize;
        let (ts, ys) = (solution.ts.to_vec(), solution.ys.to_vec());
        let mut worst = 0.0_f64;
        for state in ys.chunks(5).take(num_saved) {
            let [x, y, u, v, m] = *state else { unreachable!() };
            let consistent = (u * u + v * v - p[0] * y) / (x * x + y * y);
            worst = worst.max((consistent - m).abs() / (rtol * (1.0 + m.abs())));
        }
        assert!(worst < 10.0, "case {case}, {method}: {worst} tolerances, {num_saved} saved");
        let of_steps = ts[..num_saved].iter().filter(|t| !saved.contains(t) && **t > 0.0 && **t < t1);
        let steps = StepTo { ts: [0.0].iter().chain(of_steps).chain(&[t1]).copied().collect() };
        let loss = |p: &Tensor| {
            let ys = solve(p, Some(&steps)).ys;
            let weights = (Tensor::iota(ys.dtype(), [ys.size()], 0) + 1.0).cos();
            (&ys * weights.reshape(ys.shape().clone())).sum()
        };
        let got = grad(loss, &Tensor::from(p)).to_vec();
        let want = differences(&|p| loss(&Tensor::from(p)).to_vec(), &p);
        assert_same(&got, &want.concat(), &p, &format!("case {case}, {method}"));
    }
}

/// What a reset does with the current.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Current {
    Left,
    Spoiled,
    Cleared,
}

/// A charge q that a current i drains, with `0 = i + a i^3 - k q`. Where q falls to `low`, it becomes `s q + d`. The
/// parameters are k, a, low, s, d and the charge at t0.
#[derive(Clone, Copy)]
struct Charge {
    current: Current,
    method: Method,
    t1: f64,
}

impl Charge {
    fn on_tensors(self, p: &Tensor) -> Tensor {
        let [k, a, low, s, d, q0] = [0, 1, 2, 3, 4, 5].map(|i: usize| p.index(i));
        let sign = self.t1.signum();
        let field = |_t: Tensor, y: &Tensor| {
            let (q, i) = (y.index(0), y.index(1));
            Tensor::stack(&[&(&i * -sign), &(&i + &a * i.powi(3) - &k * q)])
        };
        let tolerance = if self.method == Method::Rodas5P { 1e-10 } else { 1e-8 };
        let ode = Ode::new(field).method(self.method).mass_matrix(Mass::diagonal([1.0, 0.0]));
        let ode = ode.rtol(tolerance).atol(tolerance);
        let reset = |_t: Tensor, y: &mut Tensor| {
            let i = match self.current {
                Current::Left => y.index(1),
                Current::Spoiled => y.index(1) * 2.0 + 0.1,
                Current::Cleared => y.index(1) * 0.0,
            };
            *y = Tensor::stack(&[&(&s * y.index(0) + &d), &i]);
        };
        let ode = ode.on_event(Event::crossing(), |_t, y: &Tensor| y.index(0) - &low, reset).max_events(20);
        let mut i0 = &k * &q0;
        for _ in 0..12 {
            i0 = &i0 - (&i0 + &a * i0.powi(3) - &k * &q0) / (&a * i0.square() * 3.0 + 1.0);
        }
        ode.solve(0.0, self.t1, Tensor::stack(&[&q0, &i0])).unwrap().y1
    }

    /// The same solve on plain states, and the number of resets.
    fn on_arrays(self, p: &[f64]) -> ([f64; 2], usize) {
        let [k, a, low, s, d, q0] = *p else { unreachable!() };
        let sign = self.t1.signum();
        let field = move |_t: f64, y: &[f64; 2]| [-sign * y[1], y[1] + a * y[1].powi(3) - k * y[0]];
        let ode = Ode::new(field).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0, 0.0]));
        let reset = move |_t: f64, y: &mut [f64; 2]| {
            y[0] = s * y[0] + d;
            y[1] = match self.current {
                Current::Left => y[1],
                Current::Spoiled => 2.0 * y[1] + 0.1,
                Current::Cleared => 0.0,
            };
        };
        let ode = ode.rtol(1e-11).atol(1e-12);
        let ode = ode.on_event(Event::crossing(), move |_t, y: &[f64; 2]| y[0] - low, reset).max_events(20);
        let mut i0 = k * q0;
        for _ in 0..12 {
            i0 -= (i0 + a * i0.powi(3) - k * q0) / (1.0 + 3.0 * a * i0 * i0);
        }
        let solution = ode.solve(0.0, self.t1, [q0, i0]).unwrap();
        (solution.y1, solution.events.len())
    }
}

#[test]
fn drawn_resets_that_break_the_equations_have_gradients_of_differences() {
    let (mut draw, mut seen) = (Draw(412), [0; 7]);
    for case in 0..num_cases(8) {
        let current = [Current::Left, Current::Spoiled, Current::Cleared][case % 3];
        let method = if draw.below(4) == 0 { Method::Rosenbrock23 } else { Method::Rodas5P };
        let charge =
            Charge { current, method, t1: if draw.coin() { 1.0 } else { -1.0 } * draw.uniform(0.8, 2.0) };
        let p = [
            draw.uniform(0.5, 2.0),
            draw.uniform(0.1, 1.0),
            draw.uniform(0.3, 0.6),
            draw.uniform(1.2, 2.0),
            draw.uniform(0.05, 0.3),
            draw.uniform(0.7, 1.2),
        ];
        let (end, num_resets) = charge.on_arrays(&p);
        let y1 = charge.on_tensors(&Tensor::from(p)).to_vec();
        let (k, a, tolerance) = (p[0], p[1], if method == Method::Rodas5P { 1e-8 } else { 1e-6 });
        assert!(
            (y1[0] - end[0]).abs() + (y1[1] - end[1]).abs() < tolerance,
            "case {case}: {y1:?} for {end:?}"
        );
        let residual = y1[1] + a * y1[1].powi(3) - k * y1[0];
        assert!(residual.abs() < tolerance, "case {case}: {residual:e}");
        let weights = Tensor::from([1.0, 0.3]);
        let got = grad(|p: &Tensor| (charge.on_tensors(p) * &weights).sum(), &Tensor::from(p)).to_vec();
        let weighed = |p: &[f64]| {
            let y = charge.on_arrays(p).0;
            vec![y[0] + 0.3 * y[1]]
        };
        let want = differences(&weighed, &p);
        assert_same(&got, &want.concat(), &p, &format!("case {case}, {method}, {current:?}"));
        let found = [
            current == Current::Left,
            current == Current::Spoiled,
            current == Current::Cleared,
            method == Method::Rosenbrock23,
            charge.t1 < 0.0,
            num_resets == 1,
            num_resets > 1,
        ];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}
