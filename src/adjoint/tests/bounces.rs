//! Gradients through events after which the solve continues: closed forms, central differences, and the adjoints that
//! support events against each other.

use super::event_records::flipped;
use super::f64s;
use super::steps::{close, pushed_tensor};
use crate::adjoint::{Adjoint, TensorSolution};
use crate::array::DType;
use crate::ode::{ConstantStepSize, Event, Ode, Outcome, SaveAt, StepTo};
use crate::tensor::{Tensor, Tree, jit, jvp, value_and_grad};
use crate::tree;

const GRAVITY: f64 = 9.81;

tree! { struct Ball { height: Tensor, restitution: Tensor } }

fn ball(height: f64, restitution: f64) -> Ball {
    Ball { height: Tensor::from(height), restitution: Tensor::from(restitution) }
}

/// A ball dropped from a height, up to t = 3.
fn bounce(p: &Ball, adjoint: Adjoint) -> TensorSolution<Tensor> {
    let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-GRAVITY)]));
    let restitution = p.restitution.clone();
    let then = move |_t: Tensor, y: &mut Tensor| *y = flipped(y, &restitution);
    // After a bounce the height is 0 only up to rounding. The rise from there must not count as another event.
    let ode = ode.on_event(Event::crossing(), |_t, y: &Tensor| y.index(0), then).rtol(1e-9).atol(1e-9);
    let y0 = Tensor::stack(&[&p.height, &Tensor::from(0.0)]);
    ode.max_events(12).adjoint(adjoint).solve(0.0, 3.0, y0).unwrap()
}

/// The times of its bounces and its height at t = 3, for a restitution e.
fn closed_form(height: f64, e: f64) -> (Vec<f64>, f64) {
    let first = (2.0 * height / GRAVITY).sqrt();
    let (mut times, mut flight) = (vec![first], 2.0 * first);
    loop {
        flight *= e;
        let next = times[times.len() - 1] + flight;
        if next > 3.0 {
            break;
        }
        times.push(next);
    }
    let up = e.powi(times.len() as i32) * (2.0 * GRAVITY * height).sqrt();
    let since = 3.0 - times[times.len() - 1];
    (times, up * since - 0.5 * GRAVITY * since * since)
}

fn differences(f: impl Fn(f64, f64) -> f64, (a, b): (f64, f64)) -> [f64; 2] {
    let h = 1e-5;
    // A central difference of fourth order.
    let gradient = |f: &dyn Fn(f64) -> f64| (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
    [gradient(&|d| f(a + d, b)), gradient(&|d| f(a, b + d))]
}

#[test]
fn a_ball_and_its_gradients_bounce_as_in_closed_form_under_every_adjoint() {
    let (height, e) = (1.7, 0.8);
    let (times, end) = closed_form(height, e);
    assert_eq!(times.len(), 4);
    let solution = bounce(&ball(height, e), Adjoint::default());
    let occurrences = solution.events().unwrap();
    assert_eq!((solution.outcome(), occurrences.num_events.item()), (Outcome::Completed, 4.0));
    close(&occurrences.t.to_vec()[..4], &times, 1e-12);
    assert!(occurrences.t.to_vec()[4..].iter().chain(&occurrences.y.to_vec()[8..]).all(|x| x.is_nan()));
    close(&[solution.y1.to_vec()[0]], &[end], 1e-11);
    // The state before the reset: the ball falls.
    assert!(
        occurrences.y.to_vec()[1] < 0.0
            && occurrences.y.to_vec()[3] < 0.0
            && occurrences.y.to_vec()[0].abs() < 1e-12
    );

    let last = differences(|h, e| closed_form(h, e).0[3], (height, e));
    let at_end = differences(|h, e| closed_form(h, e).1, (height, e));
    let gradient = |adjoint| {
        let of = |f: &dyn Fn(&TensorSolution<Tensor>) -> Tensor| {
            let (_, gradient) = value_and_grad(|p: &Ball| f(&bounce(p, adjoint)), &ball(height, e));
            [gradient.height.item(), gradient.restitution.item()]
        };
        (of(&|s| s.events().unwrap().t.index(3)), of(&|s| s.y1.index(0)))
    };
    let direct = gradient(Adjoint::Direct);
    close(&direct.0, &last, 1e-8);
    close(&direct.1, &at_end, 1e-8);
    for n in [1, 2, 5] {
        assert_eq!(gradient(Adjoint::recursive_checkpoint(n)), direct, "{n} checkpoints");
    }
    for (along, i) in [(ball(1.0, 0.0), 0), (ball(0.0, 1.0), 1)] {
        let (_, gradient) =
            jvp(|p: &Ball| bounce(p, Adjoint::ForwardMode).y1.index(0), &ball(height, e), &along);
        close(&[gradient.item()], &[at_end[i]], 1e-8);
    }
}

tree! { struct Problem { mu: Tensor, y0: Tensor, t0: Tensor, t1: Tensor } }

/// All results of a pendulum with recorded events and kicks: events, times, steps, dense output and the end.
fn kicked(p: &Problem, adjoint: Adjoint) -> TensorSolution<Tensor> {
    let grid = StepTo { ts: (0..14).map(|i| 0.1 + 0.35 * f64::from(i)).chain([5.0]).collect() };
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&p.mu, &t, y)).controller(grid);
    let ode = ode.adjoint(adjoint).save_at(SaveAt::ts(&[0.6, 3.2]).and_steps().and_dense()).max_events(9);
    let (mu, note) = (p.mu.clone(), p.mu.clone());
    let ode = ode.event(Event::crossing(), move |t: Tensor, y: &Tensor| y.index(0) - &note * t * 0.02);
    let ode = ode.on_event(
        Event::falling(),
        |_t, y: &Tensor| y.index(0),
        move |t, y| {
            *y = Tensor::stack(&[
                &(y.index(0) * &mu - &mu * 0.02),
                &(y.index(1) * 0.9 + (&t * &mu).cos() * 0.1),
            ]);
        },
    );
    ode.solve(&p.t0, &p.t1, &p.y0).unwrap()
}

fn loss(p: &Problem, adjoint: Adjoint) -> Tensor {
    let got = kicked(p, adjoint);
    let occurrences = got.events().unwrap();
    let half = got.dense().unwrap().eval(&(&got.t1 * 0.5));
    let weighed = |x: &Tensor| {
        let known = x.is_finite().select(x, &Tensor::from(0.0)).reshape([x.size()]);
        (known * (1.0 + Tensor::iota(DType::F64, [x.size()], 0)).cos()).sum()
    };
    let seen = [&occurrences.t, &occurrences.y, &got.ys, &got.ts, &got.y1].map(weighed);
    seen.iter().fold(half.cos().sum(), |sum, x| sum + x)
}

fn problem() -> Problem {
    let y0 = f64s(&[1.0, 0.5]);
    Problem { mu: Tensor::from(6.0), y0, t0: Tensor::from(0.1), t1: Tensor::from(5.0) }
}

fn flat(p: &Problem) -> Vec<f64> {
    p.leaves().iter().flat_map(Tensor::to_vec).collect()
}

#[test]
fn gradients_of_all_results_equal_central_differences_over_state_parameters_and_both_ends() {
    let p = problem();
    let index = kicked(&p, Adjoint::default()).events().unwrap().index.to_vec();
    assert!([0.0, 1.0].iter().all(|i| index.iter().filter(|j| *j == i).count() >= 2), "{index:?}");
    let value = jit(move |p: Problem| loss(&p, Adjoint::default()));
    let gradient = |adjoint| flat(&value_and_grad(|p: &Problem| loss(p, adjoint), &p).1);
    let all = gradient(Adjoint::Direct);
    let shifted = |j: usize, h: f64| {
        let n = flat(&p);
        let s = |k: usize| n[k] + if k == j { h } else { 0.0 };
        let t = [3, 4].map(|k| Tensor::from(s(k)));
        let [t0, t1] = t;
        value.call(Problem { mu: Tensor::from(s(0)), y0: f64s(&[s(1), s(2)]), t0, t1 }).unwrap().item()
    };
    let h = 1e-5;
    let differences: Vec<f64> = (0..5).map(|j| (shifted(j, h) - shifted(j, -h)) / (2.0 * h)).collect();
    close(&all, &differences, 1e-6);
    for n in [1, 2, 5, 50] {
        assert_eq!(gradient(Adjoint::recursive_checkpoint(n)), all, "{n} checkpoints");
    }
    let along = p.with_leaves(p.leaves().iter().map(|x| (1.0 + x).sin()).collect::<Vec<_>>());
    let (_, tangent) = jvp(|p: &Problem| loss(p, Adjoint::ForwardMode), &p, &along);
    let sum: f64 = all.iter().zip(flat(&along)).map(|(g, d)| g * d).sum();
    close(&[tangent.item()], &[sum], 1e-12);
}

#[test]
fn the_executor_continues_after_events_as_the_reference_interpreter_does() {
    let p = problem();
    let types: Vec<_> = p.leaves().iter().map(Tensor::ty).collect();
    let traced = crate::tensor::trace(&types, &mut |x| {
        let p = p.with_leaves(x.to_vec());
        let (value, grads) = value_and_grad(|p: &Problem| loss(p, Adjoint::recursive_checkpoint(3)), &p);
        [vec![value], grads.leaves()].concat()
    });
    let args: Vec<_> = p.leaves().iter().map(|x| x.array().clone()).collect();
    let want = crate::graph::interpret(&traced.func, &args).unwrap();
    for (got, want) in crate::tensor::apply(&traced.func, &p.leaves()).iter().zip(&want) {
        close(&got.to_vec(), &want.to_f64(), 1e-11);
    }
}

#[test]
fn a_second_derivative_through_bounces_is_that_of_the_closed_form() {
    let (height, e) = (1.7, 0.8);
    let gradient = |h: &Tensor| {
        let at = |h: &Tensor| {
            let p = Ball { height: h.clone(), restitution: Tensor::from(e) };
            bounce(&p, Adjoint::recursive_checkpoint(3)).y1.index(0)
        };
        value_and_grad(at, h).1
    };
    let (_, second) = jvp(gradient, &Tensor::from(height), &Tensor::from(1.0));
    let direct = |h: &Tensor| {
        let at = |h: &Tensor| {
            let p = Ball { height: h.clone(), restitution: Tensor::from(e) };
            bounce(&p, Adjoint::Direct).y1.index(0)
        };
        value_and_grad(at, h).1
    };
    let (_, reverse) = value_and_grad(direct, &Tensor::from(height));
    close(&[reverse.item()], &[second.item()], 1e-9);
    let of = |h: f64| closed_form(h, e).1;
    let d = 1e-3;
    close(&[second.item()], &[(of(height + d) - 2.0 * of(height) + of(height - d)) / (d * d)], 1e-5);
}

#[test]
fn the_function_of_one_event_never_sees_a_state_that_another_is_to_change() {
    // The square root of a negative number is NaN, and so is its derivative.
    let at = |y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y * 0.0 - 1.0).controller(ConstantStepSize { dt0: 0.25 });
        let ode = ode.on_event(Event::falling(), |_t, y| y - 0.5, |_t, y| *y = y.sqrt() - 1.3);
        let ode = ode.on_event(Event::falling(), |_t, y| y + 1.5, |_t, y| *y = &*y * 2.0);
        ode.solve(0.0, 2.0, y0).unwrap().y1
    };
    // y falls from 1 to 1/2 at t = 1/2, becomes sqrt(1/2) - 1.3, falls to -3/2, is doubled and falls again. A change
    // of y0 shifts both events by the same time, so dy1/dy0 is 1.
    let (y, gradient) = value_and_grad(at, &Tensor::from(1.0));
    let second = 0.5 + (0.5_f64.sqrt() - 1.3 + 1.5);
    close(&[y.item(), gradient.item()], &[-3.0 - (2.0 - second), 1.0], 1e-12);
}
