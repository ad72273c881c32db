//! Events on tensors: equal to those of plain states and to closed forms, with derivatives through event times.

use super::f64s;
use super::steps::{close, pushed_tensor};
use crate::adjoint::{Adjoint, TensorSolution};
use crate::array::DType;
use crate::ode::{ConfigError, Event, Method, Ode, Outcome, SaveAt, StepTo};
use crate::tensor::{Tensor, Tree, jit, jvp, value_and_grad};
use crate::tree;

/// A ball dropped from a height: it lands at sqrt(2 height / g).
fn fall(height: &Tensor, g: &Tensor) -> TensorSolution<Tensor> {
    let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &-g]));
    let ode = ode.event(Event::falling().terminal(), |_t, y: &Tensor| y.index(0)).rtol(1e-9).atol(1e-9);
    ode.solve(0.0, 10.0, Tensor::stack(&[height, &Tensor::from(0.0)])).unwrap()
}

#[test]
fn a_ball_lands_at_the_closed_form_time_with_its_derivatives() {
    let (height, g) = (1.7_f64, 9.81_f64);
    let t: f64 = (2.0 * height / g).sqrt();
    let at = (Tensor::from(height), Tensor::from(g));
    let landed = fall(&at.0, &at.1);
    assert!(matches!(landed.outcome(), Outcome::Event { index: 0, .. }));
    assert!(landed.reached_t1().item() == 0.0);
    close(&[landed.t1.item(), landed.y1.to_vec()[1]], &[t, -(2.0 * height * g).sqrt()], 1e-12);
    assert!(landed.y1.to_vec()[0].abs() < 1e-12);
    assert_eq!((landed.ts.to_vec(), landed.ys.to_vec()), (vec![landed.t1.item()], landed.y1.to_vec()));

    let time = |(height, g): &(Tensor, Tensor)| fall(height, g).t1;
    let speed = |(height, g): &(Tensor, Tensor)| fall(height, g).y1.index(1);
    let (_, (dh, dg)) = value_and_grad(time, &at);
    close(&[dh.item(), dg.item()], &[t / (2.0 * height), -t / (2.0 * g)], 1e-10);
    let (_, (dh, dg)) = value_and_grad(speed, &at);
    close(&[dh.item(), dg.item()], &[-(g / (2.0 * height)).sqrt(), -(height / (2.0 * g)).sqrt()], 1e-10);

    // An event is not an error in a jit, and the second derivative is right too.
    let curvature = jit(move |height: Tensor, g: Tensor| {
        let gradient = |h: &Tensor| value_and_grad(|h: &Tensor| fall(h, &g).t1, h).1;
        jvp(gradient, &height, &Tensor::from(1.0))
    });
    let (gradient, second) = curvature.call(at.0.clone(), at.1.clone()).unwrap();
    close(&[gradient.item(), second.item()], &[t / (2.0 * height), -t / (4.0 * height * height)], 1e-8);
    assert_eq!(curvature.num_traces(), 1);
}

#[test]
fn the_end_and_all_saved_values_equal_those_of_plain_states() {
    let field = |t: f64, y: &[f64; 2]| [y[1], -1.3 * y[0].sin() - 0.2 * y[1] + (1.7 * t).sin()];
    let mu = Tensor::from(1.3);
    let save_at = |sign: f64| SaveAt::ts(&[0.2 * sign, 0.4 * sign, 3.0 * sign]).and_steps().and_dense();
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3, Method::Vern7, Method::CashKarp] {
        for sign in [1.0, -1.0] {
            let end = 6.0 * sign;
            // On the same grid: step sizes depend on error estimates, which are differences of much larger numbers
            // and so depend on rounding.
            let grid = Ode::new(field).method(method).solve(0.0, end, [1.0, 0.5]).unwrap().step_times;
            let grid = StepTo { ts: grid };
            let plain = Ode::new(field).method(method).controller(grid.clone()).save_at(save_at(sign));
            let plain = plain.event(Event::rising().terminal(), |_t, y| y[0] + 5.0);
            let plain = plain
                .event(Event::falling().terminal(), |_t, y| y[0] - 0.1)
                .solve(0.0, end, [1.0, 0.5])
                .unwrap();
            assert!(matches!(plain.outcome, Outcome::Event { index: 1, .. }));
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).method(method);
            let ode = ode.controller(grid).save_at(save_at(sign));
            let ode = ode.event(Event::rising().terminal(), |_t, y: &Tensor| y.index(0) + 5.0);
            let ode = ode.event(Event::falling().terminal(), |_t, y: &Tensor| y.index(0) - 0.1);
            let got = ode.solve(0.0, end, f64s(&[1.0, 0.5])).unwrap();
            assert!(matches!(got.outcome(), Outcome::Event { index: 1, t } if t == got.t1.item()));
            close(&[got.t1.item()], &[plain.t1], 1e-12);
            close(&got.y1.to_vec(), &plain.y1, 1e-12);
            let (n, ts, ys) = (got.num_saved.item() as usize, got.ts.to_vec(), got.ys.to_vec());
            close(&ts[..n], &plain.ts, 1e-12);
            close(&ys[..2 * n], &plain.ys.concat(), 1e-12);
            assert_eq!(&ys[2 * n - 2..2 * n], got.y1.to_vec());
            assert!(ts[n..].iter().chain(&ys[2 * n..]).all(|x| x.is_nan()));
            let curve = got.dense().unwrap();
            let at = [0.3, 0.999, 1.001].map(|part| part * got.t1.item());
            let states = curve.eval(&f64s(&at)).to_vec();
            close(&states[..2], &plain.dense().unwrap().eval(at[0]).unwrap(), 1e-12);
            assert!(states[2].is_finite() && states[4].is_nan());
        }
    }
}

#[test]
fn the_first_of_several_events_in_a_step_decides() {
    let run = |events: &[(Event, f64)]| {
        let mut ode = Ode::new(|_t, y: &Tensor| y * 0.0 + 1.0);
        for &(event, at) in events {
            ode = ode.event(event, move |_t, y: &Tensor| y - at);
        }
        let got = ode.dt0(1.0).solve(0.0, 4.0, Tensor::from(0.0)).unwrap();
        (got.outcome(), got.t1.item())
    };
    let (stop, falling) = (Event::rising().terminal(), Event::falling().terminal());
    let (outcome, t) = run(&[(stop, 0.75), (stop, 0.25), (stop, 0.5)]);
    assert!(
        matches!(outcome, Outcome::Event { index: 1, .. }) && (t - 0.25).abs() < 1e-14,
        "{outcome:?} {t}"
    );
    let (outcome, t) = run(&[(falling, 0.25), (stop, 1.5)]);
    assert!(matches!(outcome, Outcome::Event { index: 1, .. }) && (t - 1.5).abs() < 1e-14, "{outcome:?} {t}");
    assert_eq!(run(&[(falling, 0.25)]), (Outcome::Completed, 4.0));
    // The start is a root: the sign after the start counts.
    assert_eq!(run(&[(stop, 0.0)]), (Outcome::Completed, 4.0));
}

#[test]
fn two_changes_in_a_step_are_seen_at_samples_as_on_plain_states() {
    let bump = |samples: usize| {
        let ode = Ode::new(|_t, y: &Tensor| y * 0.0).controller(StepTo { ts: vec![0.0, 1.0] });
        let ode = ode.event(Event::rising().terminal().interp_points(samples), |t: Tensor, _y: &Tensor| {
            0.01 - (t - 0.5).square()
        });
        ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap().t1.item()
    };
    assert_eq!(bump(1), 1.0);
    assert!((bump(4) - 0.4).abs() < 1e-14, "{}", bump(4));
}

#[test]
fn a_boolean_condition_has_a_time_and_no_derivative() {
    let at = |rate: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y * 0.0 + rate);
        let ode = ode.event(Event::rising().terminal(), |_t, y: &Tensor| y.gt(0.3));
        ode.solve(0.0, 1.0, Tensor::from(0.0)).unwrap().t1
    };
    let (t, gradient) = value_and_grad(at, &Tensor::from(1.0));
    assert!((t.item() - 0.3).abs() < 1e-14);
    assert_eq!(gradient.item(), 0.0);
}

#[test]
fn a_solve_whose_event_does_not_occur_is_the_solve_without_events() {
    let solve = |watched: bool, y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y.sin());
        // The value and the derivative of this function are infinite at 0, but the state is never 0.
        let ode =
            if watched { ode.event(Event::rising().terminal(), |_t, y: &Tensor| -y.ln() - 9.0) } else { ode };
        ode.solve(0.0, 1.0, y0).unwrap()
    };
    let y0 = Tensor::from(0.7);
    let gradient = |watched| value_and_grad(|y: &Tensor| solve(watched, y).y1, &y0);
    assert_eq!(solve(true, &y0).outcome(), Outcome::Completed);
    let ((a, da), (b, db)) = (gradient(true), gradient(false));
    close(&[a.item(), da.item()], &[b.item(), db.item()], 1e-12);
    let point = |y: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -y).event(Event::rising().terminal(), |_t, y: &Tensor| y.ln());
        ode.solve(1.0, 1.0, y).unwrap().y1
    };
    let (y, gradient) = value_and_grad(point, &y0);
    assert_eq!((y.item(), gradient.item()), (0.7, 1.0));
}

tree! { struct Problem { mu: Tensor, y0: Tensor, t0: Tensor } }

fn problem() -> (Problem, Vec<f64>) {
    let p = Problem { mu: Tensor::from(0.8), y0: f64s(&[1.0, 0.5]), t0: Tensor::from(0.1) };
    (p, vec![0.1, 0.4, 0.7, 1.1, 1.5, 1.9, 2.3, 2.8, 3.3])
}

/// A sum over the time and the state of the event, a saved time before it, the steps up to it and the dense output.
fn loss(p: &Problem, grid: &[f64], adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&p.mu, &t, y))
        .controller(StepTo { ts: grid.to_vec() });
    let ode = ode.adjoint(adjoint).save_at(SaveAt::ts(&[0.6, 3.2]).and_steps().and_dense());
    let ode = ode.event(Event::falling().terminal(), |t: Tensor, y: &Tensor| y.index(0) - &p.mu * t * 0.1);
    let got = ode.solve(&p.t0, Tensor::from(3.3), &p.y0).unwrap();
    let half = got.dense().unwrap().eval(&(&got.t1 * 0.5));
    let known = |y: &Tensor| y.is_finite().select(y, &Tensor::from(0.0));
    let weights = (1.0 + Tensor::iota(DType::F64, [22], 0)).cos();
    let ys = known(&got.ys).reshape([22]);
    got.t1.sin()
        + (&got.y1 * f64s(&[0.3, 0.7])).sum()
        + (ys * weights).sum()
        + known(&got.ts).square().sum()
        + half.cos().sum()
}

fn flat(p: &Problem) -> Vec<f64> {
    p.leaves().iter().flat_map(Tensor::to_vec).collect()
}

#[test]
fn gradients_through_the_time_of_an_event_equal_central_differences() {
    let (p, grid) = problem();
    let at = grid.clone();
    let value = jit(move |p: Problem| loss(&p, &at, Adjoint::default()));
    let (_, grads) = value_and_grad(|p: &Problem| loss(p, &grid, Adjoint::recursive_checkpoint(2)), &p);
    let shifted = |j: usize, h: f64| {
        let n = flat(&p);
        let s = |k: usize| n[k] + if k == j { h } else { 0.0 };
        let p = Problem { mu: Tensor::from(s(0)), y0: f64s(&[s(1), s(2)]), t0: Tensor::from(s(3)) };
        value.call(p).unwrap().item()
    };
    let h = 1e-5;
    let differences: Vec<f64> = (0..4).map(|j| (shifted(j, h) - shifted(j, -h)) / (2.0 * h)).collect();
    close(&flat(&grads), &differences, 1e-6);
}

#[test]
fn gradients_through_events_are_bit_identical_for_every_number_of_checkpoints_and_equal_tangents() {
    let (p, grid) = problem();
    let gradient = |adjoint| flat(&value_and_grad(|p: &Problem| loss(p, &grid, adjoint), &p).1);
    let all = gradient(Adjoint::Direct);
    for n in [1, 2, 5, 50] {
        assert_eq!(gradient(Adjoint::recursive_checkpoint(n)), all, "{n} checkpoints");
    }
    let along = p.with_leaves(p.leaves().iter().map(|x| (1.0 + x).sin()).collect::<Vec<_>>());
    let (_, tangent) = jvp(|p: &Problem| loss(p, &grid, Adjoint::ForwardMode), &p, &along);
    let sum: f64 = all.iter().zip(flat(&along)).map(|(g, d)| g * d).sum();
    close(&[tangent.item()], &[sum], 1e-12);
}

#[test]
fn the_executor_finds_events_as_the_reference_interpreter_does() {
    let (p, grid) = problem();
    let types: Vec<_> = p.leaves().iter().map(Tensor::ty).collect();
    let traced = crate::tensor::trace(&types, &mut |x| {
        let p = p.with_leaves(x.to_vec());
        let (value, grads) =
            value_and_grad(|p: &Problem| loss(p, &grid, Adjoint::recursive_checkpoint(3)), &p);
        [vec![value], grads.leaves()].concat()
    });
    assert!(traced.captures.is_empty() && traced.func.to_string().contains(", last"));
    let args: Vec<_> = p.leaves().iter().map(|x| x.array().clone()).collect();
    let want = crate::graph::interpret(&traced.func, &args).unwrap();
    for (got, want) in crate::tensor::apply(&traced.func, &p.leaves()).iter().zip(&want) {
        close(&got.to_vec(), &want.to_f64(), 1e-11);
    }
}

#[test]
fn adjoints_without_events_are_refused_with_a_remedy_and_a_nan_event_ends_the_solve() {
    let ode = || Ode::new(|_t, y: &Tensor| -y);
    for adjoint in [Adjoint::backsolve(), Adjoint::reversible()] {
        for event in [Event::falling().terminal(), Event::falling()] {
            let ode = ode().adjoint(adjoint).event(event, |_t, y: &Tensor| y - 0.5);
            let e = crate::Error::from(ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap_err());
            assert!(matches!(e, crate::Error::Config(ConfigError::Adjoint { .. })), "{e}");
            assert!(
                e.to_string().contains("events") && e.to_string().contains("use RecursiveCheckpoint"),
                "{e}"
            );
        }
    }
    let nan = ode().event(Event::falling().terminal(), |_t, y: &Tensor| (y - 0.5).sqrt() + 1.0);
    let nan = nan.solve(0.0, 1.0, Tensor::from(1.0)).unwrap_err().into_partial().unwrap();
    assert!(matches!(nan.outcome(), Outcome::NonFiniteEvent { index: 0, .. }), "{:?}", nan.outcome());
}
