//! Every adjoint, against published values, against each other and against the states that it may store.

use crate::adjoint::{Adjoint, Checkpoints};
use crate::array::DType;
use crate::ode::{ConstantStepSize, Method, Ode, StepTo};
use crate::tensor::{Tensor, Tree, grad, jit, jvp, map_rows, value_and_grad};

type Problem = (Tensor, Tensor);

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

/// Lotka-Volterra, its parameters and start.
fn lotka() -> Problem {
    (f64s(&[1.5, 1.0, 3.0, 1.0]), f64s(&[1.0, 1.0]))
}

/// 1/2 |1 - u(10)|^2
fn distance((p, u0): &Problem, adjoint: Adjoint, tol: f64) -> Tensor {
    let ode = Ode::new(|_t, u: &Tensor| {
        let (x, y) = (u.index(0), u.index(1));
        let both = &x * &y;
        Tensor::stack(&[&(p.index(0) * x - p.index(1) * &both), &(p.index(3) * both - p.index(2) * y)])
    });
    let ode = ode.method(Method::Dopri5).rtol(tol).atol(tol).adjoint(adjoint);
    (ode.solve(0.0, 10.0, u0).unwrap().y1 - 1.0).square().sum() * 0.5
}

fn numbers((value, (p, u0)): &(Tensor, Problem)) -> Vec<f64> {
    [value.to_vec(), u0.to_vec(), p.to_vec()].concat()
}

/// The value, dg/du0 and dg/dp at tight tolerances, as published.
const LOTKA: [f64; 7] = [
    4.424874073408015e-3,
    0.2995995083036825,
    -0.01415181634485351,
    0.6219615855512814,
    0.06800140415087439,
    0.1691764639958929,
    0.2725606939500077,
];

fn assert_near(got: &[f64], want: &[f64], tol: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tol, "{what}, number {k}: {g}, not {w}");
    }
}

#[test]
fn every_adjoint_gives_the_published_lotka_volterra_gradient() {
    let of = |adjoint| numbers(&value_and_grad(|x: &Problem| distance(x, adjoint, 1e-10), &lotka()));
    let direct = of(Adjoint::Direct);
    assert_near(&direct, &LOTKA, 1e-7, "direct");
    for checkpoints in [1, 2, 5] {
        assert_eq!(of(Adjoint::recursive_checkpoint(checkpoints)), direct, "{checkpoints} checkpoints");
    }
    assert_eq!(of(Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto }), direct);
    assert_near(&of(Adjoint::backsolve()), &LOTKA, 1e-7, "backsolve");
}

#[test]
fn a_backward_solve_may_have_separate_tolerances() {
    let of = |rtol, atol| {
        let adjoint = Adjoint::Backsolve { rtol, atol };
        numbers(&value_and_grad(|x: &Problem| distance(x, adjoint, 1e-11), &lotka()))
    };
    let (same, loose) = (of(None, None), of(Some(1e-3), Some(1e-3)));
    assert_eq!(same[0], loose[0]);
    assert_eq!(of(Some(1e-11), Some(1e-11)), same);
    let off = same.iter().zip(&loose).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off > 1e-5, "{off}");
}

type Driven = (Tensor, Tensor, (Tensor, Tensor));

/// An oscillator driven in time; the gradient includes both ends of the interval.
fn driven((p, y0, (t0, t1)): &Driven, adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| {
        let force = (t * p.index(1)).sin() - p.index(0).square() * y.index(0) - y.index(1).tanh() * 0.1;
        Tensor::stack(&[&y.index(1), &force])
    });
    let ode = ode.rtol(1e-11).atol(1e-11).adjoint(adjoint);
    ode.solve(t0, t1, y0).unwrap().y1.square().sum()
}

fn driven_at(t0: f64, t1: f64) -> Driven {
    (f64s(&[1.3, 0.7]), f64s(&[1.0, -0.4]), (Tensor::from(t0), Tensor::from(t1)))
}

#[test]
fn a_backward_solve_gives_the_gradients_of_parameters_state_and_both_times() {
    for (t0, t1) in [(0.1, 2.0), (2.0, 0.1)] {
        let at = driven_at(t0, t1);
        let gradients = grad(|x: &Driven| driven(x, Adjoint::backsolve()), &at);
        let value = jit(|x: Driven| driven(&x, Adjoint::Direct));
        let (leaves, gradients) = (at.leaves(), gradients.leaves());
        for (i, leaf) in leaves.iter().enumerate() {
            for j in 0..leaf.size() {
                let shifted = |h: f64| {
                    let (mut v, mut leaves) = (leaf.to_vec(), leaves.clone());
                    v[j] += h;
                    leaves[i] = Tensor::from_vec(leaf.shape().clone(), v);
                    value.call(at.with_leaves(leaves)).unwrap().item()
                };
                let h = 1e-3; // error O(h^4)
                let gradient = |h: f64| (shifted(h) - shifted(-h)) / (2.0 * h);
                let difference = (4.0 * gradient(h) - gradient(2.0 * h)) / 3.0;
                let got = gradients[i].to_vec()[j];
                assert!((got - difference).abs() < 1e-7, "leaf {i}[{j}]: {got}, not {difference}");
            }
        }
    }
}

#[test]
fn a_backward_solve_follows_the_times_of_the_forward_one() {
    let ts: Vec<f64> = (0..=200).map(|i| 0.01 * f64::from(i)).collect();
    let of = |adjoint, step_to: bool| {
        let gradient = grad(
            |p: &Tensor| {
                let ode = Ode::new(|_t, y: &Tensor| (p * y).sin()).adjoint(adjoint);
                let ode = match step_to {
                    true => ode.controller(StepTo { ts: ts.clone() }),
                    false => ode.controller(ConstantStepSize { dt0: 0.01 }),
                };
                ode.solve(0.0, 2.0, Tensor::from(1.0)).unwrap().y1
            },
            &Tensor::from(0.7),
        );
        gradient.item()
    };
    let direct = of(Adjoint::Direct, true);
    for step_to in [true, false] {
        assert!((of(Adjoint::backsolve(), step_to) - direct).abs() < 1e-8);
    }
}

#[test]
fn integrals_of_the_parameters_make_no_step_shorter() {
    // `p - p.stop_gradient()` is 0, but its derivative makes q' = -a * part.
    let attempts = |bent: bool| {
        let f = jit(move |p: Tensor| {
            grad(
                |p: &Tensor| {
                    let ode = Ode::new(|t: Tensor, y: &Tensor| {
                        let part = if bent { (t * 40.0).sin() } else { t };
                        -y + (p - p.stop_gradient()) * part
                    });
                    ode.adjoint(Adjoint::backsolve()).solve(0.0, 3.0, Tensor::from(1.0)).unwrap().y1
                },
                &p,
            )
        });
        f.call(1.0).unwrap();
        f.last_run().attempts
    };
    assert_eq!(attempts(true), attempts(false));
}

#[test]
fn a_backward_solve_keeps_no_state_whatever_the_number_of_steps() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let kept = |adjoint, steps: f64| {
        let f = jit(move |p: Tensor| {
            grad(
                |p: &Tensor| {
                    let ode =
                        Ode::new(|_t, y: &Tensor| -(p * y)).controller(ConstantStepSize { dt0: 1.0 / steps });
                    ode.adjoint(adjoint).solve(0.0, 1.0, Tensor::ones([100])).unwrap().y1.sum()
                },
                &p,
            )
        });
        f.call(1.0).unwrap();
        let plan = f.plan(&(Tensor::from(1.0),)).unwrap();
        (f.last_run().accepted, f.last_run().states_kept_max, plan.arena_bytes)
    };
    let (few, many) = (kept(Adjoint::backsolve(), 10.0), kept(Adjoint::backsolve(), 1000.0));
    assert_eq!((few.0, many.0), (20, 2000));
    assert_eq!((few.1, many.1), (0, 0));
    assert!(few.2 == many.2 && many.2 < 100 * 8 * 60, "{} {}", few.2, many.2);
    assert_eq!(kept(Adjoint::Direct, 1000.0).1, 1000);
}

#[test]
fn forward_and_second_derivatives_go_through_a_backward_solve() {
    let at = lotka();
    let one = (f64s(&[1.0, 0.0, 0.0, 0.0]), f64s(&[0.0, 0.0]));
    let f = |x: &Problem| distance(x, Adjoint::backsolve(), 1e-10);
    assert_near(&[jvp(f, &at, &one).1.item()], &LOTKA[3..4], 1e-7, "jvp");
    let gradient = |p: f64| grad(f, &(f64s(&[p, 1.0, 3.0, 1.0]), at.1.clone())).0.to_vec()[0];
    let second = (gradient(1.5 + 1e-4) - gradient(1.5 - 1e-4)) / 2e-4;
    let forward_over_reverse = jvp(|x: &Problem| grad(f, x).0.index(0), &at, &one).1.item();
    let reverse_over_reverse = grad(|x: &Problem| grad(f, x).0.index(0), &at).0.to_vec()[0];
    assert_near(&[forward_over_reverse, reverse_over_reverse], &[second; 2], 1e-4, "second derivative");
}

#[test]
fn forward_derivatives_keep_nothing_and_have_no_reverse_one() {
    let (at, dx) = (lotka(), (f64s(&[0.3, -1.0, 0.5, 2.0]), f64s(&[1.0, -0.7])));
    let f = |x: &Problem| distance(x, Adjoint::ForwardMode, 1e-11);
    let gradient: f64 = LOTKA[1..3].iter().zip([1.0, -0.7]).map(|(g, d)| g * d).sum();
    let gradient = gradient + LOTKA[3..].iter().zip([0.3, -1.0, 0.5, 2.0]).map(|(g, d)| g * d).sum::<f64>();
    let forward = jit(move |at: Problem, dx: Problem| jvp(f, &at, &dx).1);
    let got = forward.call(at.clone(), dx.clone()).unwrap().item();
    assert_near(&[got], &[gradient], 1e-7, "jvp");
    assert_eq!(forward.last_run().states_kept_max, 0);
    let direct = jvp(|x: &Problem| distance(x, Adjoint::Direct, 1e-11), &at, &dx).1.item();
    assert_eq!(got, direct);
    let second = |x: &Problem| jvp(f, x, &dx).1;
    let twice = jvp(second, &at, &dx).1.item();
    assert!(twice.is_finite() && twice != 0.0);
    for e in [
        value_and_grad(|x: &Problem| crate::Result::Ok(f(x)), &at).map(|_| ()).unwrap_err(),
        value_and_grad(|x: &Problem| crate::Result::Ok(second(x)), &at).map(|_| ()).unwrap_err(),
    ] {
        assert!(
            e.to_string().contains("no reverse derivative of a solve with the adjoint `ForwardMode`"),
            "{e}"
        );
    }
}

#[test]
fn a_backward_solve_runs_in_tiles_in_f32_and_beside_captured_integers() {
    let index = Tensor::from([1]);
    let loss = |w: &Tensor, adjoint| {
        let rows = Tensor::full(DType::F32, [8, 2], 0.5);
        let (_, sums) = map_rows(&[rows], 4, |x| {
            let ode = Ode::new(|_t, y: &Tensor| y.matmul(w).tanh() + w.take(&index).sum() * 0.1);
            let ode = ode.rtol(1e-6).atol(1e-6).adjoint(adjoint);
            (vec![], vec![ode.solve(0.0, 1.0, &x[0]).unwrap().y1.square().sum()])
        });
        sums[0].clone()
    };
    let w = Tensor::from_vec([2, 2], vec![0.3, -0.2, 0.8, 0.1]).cast(DType::F32);
    let of = |adjoint| grad(|w: &Tensor| loss(w, adjoint), &w).to_vec();
    assert_near(&of(Adjoint::backsolve()), &of(Adjoint::Direct), 1e-4, "tiles");
}

#[test]
fn a_backward_solve_that_ends_early_gives_nan() {
    // Backward in time, solutions of y' = -y^3 grow. With the tighter tolerance, the backward solve ends early.
    let of = |atol| {
        let adjoint = Adjoint::Backsolve { rtol: Some(0.0), atol: Some(atol) };
        let f = |y0: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| -(y * y * y)).max_steps(60).adjoint(adjoint);
            ode.solve(0.0, 10.0, y0).unwrap().y1
        };
        grad(f, &Tensor::from(1.0)).item()
    };
    assert!((of(1e-6) - 21.0_f64.powf(-1.5)).abs() < 1e-3);
    assert!(of(1e-14).is_nan());
}

#[test]
fn a_field_without_a_reverse_derivative_is_refused_when_the_solve_is_recorded() {
    let inner = |y: &Tensor| Ode::new(|_t, z: &Tensor| -z.square()).solve(0.0, 1.0, y).unwrap().y1.sum();
    let outer = |y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| grad(inner, y)).adjoint(Adjoint::backsolve());
        Ok::<_, crate::Error>(ode.solve(0.0, 1.0, y0)?.y1.sum())
    };
    let e = value_and_grad(outer, &f64s(&[1.0])).unwrap_err().to_string();
    assert!(e.contains("Backsolve has no gradient of this solve"), "{e}");
}
