//! The continuous adjoint through saved times, against the exact derivative of the steps taken.

use crate::adjoint::{Adjoint, TensorSolution};
use crate::array::DType;
use crate::ode::{ConfigError, ConstantStepSize, Method, Ode, SaveAt, StepTo};
use crate::tensor::{Tensor, Tree, grad, jit, jvp, map_rows, value_and_grad};

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

fn assert_near(got: &impl Tree, want: &impl Tree, tol: f64, what: &str) {
    let all = |x: &dyn Fn() -> Vec<Tensor>| x().iter().flat_map(Tensor::to_vec).collect::<Vec<f64>>();
    let (got, want) = (all(&|| got.leaves()), all(&|| want.leaves()));
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((g - w).abs() <= tol * w.abs().max(1.0), "{what}, number {k}: {g}, not {w}");
    }
}

/// Parameters, y0, (t0, t1), saved times.
type At = (Tensor, Tensor, (Tensor, Tensor), Tensor);

fn at(t0: f64, t1: f64, ts: &[f64]) -> At {
    (f64s(&[1.3, 0.7]), f64s(&[1.0, -0.4]), (Tensor::from(t0), Tensor::from(t1)), f64s(ts))
}

fn oscillator(p: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let force = (t * p.index(1)).sin() - p.index(0).square() * y.index(0) - y.index(1).tanh() * 0.1;
    Tensor::stack(&[&y.index(1), &force])
}

/// A weighted sum of the saved states and y1.
fn weighed(solution: &TensorSolution<Tensor>) -> Tensor {
    let n = solution.ys.size();
    let weights = (Tensor::iota(DType::F64, [n], 0) * 0.7 + 0.3).sin().reshape(solution.ys.shape().clone());
    (weights * solution.ys.sin()).sum() + solution.y1.square().sum() * 0.5
}

fn loss((p, y0, (t0, t1), ts): &At, adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| oscillator(p, &t, y)).rtol(1e-12).atol(1e-12);
    weighed(&ode.adjoint(adjoint).save_at(ts).solve(t0, t1, y0).unwrap())
}

#[test]
fn gradients_through_saved_times_are_those_of_the_steps_taken() {
    let cases: [(f64, f64, &[f64]); 5] = [
        (0.1, 2.0, &[0.4, 0.45, 1.2, 1.9]),
        (2.0, 0.1, &[1.9, 0.6, 0.5, 0.2]),
        (0.1, 2.0, &[0.7, 0.7, 0.7, 1.2, 1.2]),
        (0.1, 2.0, &[0.1, 0.1, 0.9, 2.0, 2.0]),
        (2.0, 0.1, &[2.0, 0.9, 0.1]),
    ];
    for (t0, t1, ts) in cases {
        let at = at(t0, t1, ts);
        let exact = value_and_grad(|x: &At| loss(x, Adjoint::default()), &at);
        let got = value_and_grad(|x: &At| loss(x, Adjoint::backsolve()), &at);
        assert_eq!(got.0.item(), exact.0.item());
        assert_near(&got.1, &exact.1, 1e-7, &format!("{t0} to {t1} at {ts:?}"));
    }
}

#[test]
fn saved_ends_and_rows_of_a_tree_have_their_gradients_too() {
    type Two = (Tensor, Tensor);
    let start = (f64s(&[1.0, -0.4, 0.2, 0.3, 0.8, -1.0]).reshape([3, 2]), f64s(&[0.5, 0.2, 0.1]));
    let loss = |(p, y0): &(Tensor, Two), adjoint| {
        let ode = Ode::new(|t: Tensor, y: &Two| {
            let rate = (y.0.sum_last() * p.index(0) - &y.1).tanh();
            (-&y.0 * rate.expand_dims(1) + t.sin(), rate * p.index(1))
        });
        let ode =
            ode.rtol(1e-12).atol(1e-12).adjoint(adjoint).save_at(SaveAt::ts(&[0.3, 0.8]).and_t0().and_t1());
        let ys = ode.solve(0.0, 1.0, y0.clone()).unwrap().ys;
        assert_eq!((ys.0.shape().to_vec(), ys.1.shape().to_vec()), (vec![4, 3, 2], vec![4, 3]));
        let weights = |x: &Tensor| (Tensor::iota(DType::F64, [x.size()], 0) + 1.0).reshape(x.shape().clone());
        (weights(&ys.0) * ys.0.square()).sum() + (weights(&ys.1) * ys.1.sin()).sum()
    };
    let at = (f64s(&[0.9, -0.6]), start);
    let of = |adjoint| value_and_grad(|x: &(Tensor, Two)| loss(x, adjoint), &at);
    assert_near(&of(Adjoint::backsolve()), &of(Adjoint::Direct), 1e-7, "rows");
}

#[test]
fn pieces_follow_given_steps_constant_steps_and_stops() {
    let ts: Vec<f64> = (0..=400).map(|i| 0.005 * f64::from(i)).collect();
    for turned in [false, true] {
        let place = |t: f64| if turned { 2.0 - t } else { t };
        let saved = f64s(&[0.0, 0.3, 0.30001, 0.505, 1.99].map(place));
        let of = |adjoint, kind: usize| {
            grad(
                |p: &Tensor| {
                    // Only steps that end at the discontinuity resolve it.
                    let kick = if kind == 2 { 1.0 } else { 0.0 };
                    let ode = Ode::new(|t: Tensor, y: &Tensor| {
                        (p * y).sin() + t.gt(1.25).select(&Tensor::from(kick), &Tensor::from(0.0))
                    });
                    let ode = ode.method(Method::Dopri5).adjoint(adjoint).save_at(&saved);
                    let ode = match kind {
                        0 => ode.controller(StepTo { ts: ts.iter().map(|t| place(*t)).collect() }),
                        1 => ode.controller(ConstantStepSize { dt0: 0.005 }),
                        _ => ode
                            .rtol(1e-9)
                            .atol(1e-9)
                            .discontinuities(&[1.25])
                            .tstops(&[0.3, 0.4, 1.0].map(place)),
                    };
                    ode.solve(place(0.0), place(2.0), Tensor::from(1.0)).unwrap().ys.square().sum()
                },
                &Tensor::from(0.7),
            )
        };
        for kind in 0..3 {
            let what = format!("kind {kind}, turned {turned}");
            assert_near(&of(Adjoint::backsolve(), kind), &of(Adjoint::Direct, kind), 1e-6, &what);
        }
    }
}

#[test]
fn a_program_through_saved_times_does_not_grow_with_their_number() {
    let kernels = |n: usize| {
        let f = jit(|p: Tensor, ts: Tensor| {
            grad(
                |p: &Tensor| {
                    let ode = Ode::new(|_t, y: &Tensor| -(p * y)).adjoint(Adjoint::backsolve());
                    ode.save_at(&ts).solve(0.0, 1.0, Tensor::ones([3])).unwrap().ys.sum()
                },
                &p,
            )
        });
        let ts: Vec<f64> = (1..=n).map(|i| i as f64 / (n + 1) as f64).collect();
        let gradient = f.call(1.0, f64s(&ts)).unwrap().item();
        let exact: f64 = ts.iter().map(|t| -3.0 * t * (-t).exp()).sum();
        assert!((gradient / exact - 1.0).abs() < 1e-4, "{gradient}, not {exact}");
        assert_eq!(f.last_run().states_kept_max, 0);
        let plan = f.plan(&(Tensor::from(1.0), f64s(&ts))).unwrap();
        (plan.kernels, plan.bodies.iter().map(|b| b.1.kernels).sum::<usize>())
    };
    assert_eq!(kernels(3), kernels(200));
}

#[test]
fn forward_and_second_derivatives_go_through_saved_times() {
    let at = at(0.0, 1.5, &[0.4, 1.0]);
    let one = (f64s(&[1.0, 0.0]), f64s(&[0.0; 2]), (Tensor::from(0.0), Tensor::from(0.0)), f64s(&[0.0; 2]));
    let f = |x: &At| loss(x, Adjoint::backsolve());
    let gradient = grad(f, &at).0.to_vec()[0];
    assert!((jvp(f, &at, &one).1.item() - gradient).abs() < 1e-7);
    let shifted =
        |h: f64| grad(f, &(f64s(&[1.3 + h, 0.7]), at.1.clone(), at.2.clone(), at.3.clone())).0.to_vec()[0];
    let second = (shifted(1e-4) - shifted(-1e-4)) / 2e-4;
    let twice = jvp(|x: &At| grad(f, x).0.index(0), &at, &one).1.item();
    assert!((twice - second).abs() < 1e-4, "{twice}, not {second}");
    let twice = grad(|x: &At| grad(f, x).0.index(0), &at).0.to_vec()[0];
    assert!((twice - second).abs() < 1e-4, "{twice}, not {second}");
}

#[test]
fn saved_times_in_tiles_in_f32_have_gradients() {
    let loss = |w: &Tensor, adjoint| {
        let rows = Tensor::full(DType::F32, [8, 2], 0.5);
        let (_, sums) = map_rows(&[rows], 4, |x| {
            let ode = Ode::new(|_t, y: &Tensor| y.matmul(w).tanh()).rtol(1e-6).atol(1e-6).adjoint(adjoint);
            (vec![], vec![ode.save_at([0.2, 0.7]).solve(0.0, 1.0, &x[0]).unwrap().ys.square().sum()])
        });
        sums[0].clone()
    };
    let w = Tensor::from_vec([2, 2], vec![0.3, -0.2, 0.8, 0.1]).cast(DType::F32);
    let of = |adjoint| grad(|w: &Tensor| loss(w, adjoint), &w);
    assert_near(&of(Adjoint::backsolve()), &of(Adjoint::Direct), 1e-4, "tiles");
}

#[test]
fn a_piece_that_ends_early_gives_nan() {
    let of = |atol| {
        let adjoint = Adjoint::Backsolve { rtol: Some(0.0), atol: Some(atol) };
        let f = |y0: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| -(y * y * y)).max_steps(60).adjoint(adjoint);
            ode.save_at([5.0]).solve(0.0, 10.0, y0).unwrap().ys.sum()
        };
        grad(f, &Tensor::from(1.0)).item()
    };
    assert!((of(1e-6) - 11.0_f64.powf(-1.5)).abs() < 1e-3);
    assert!(of(1e-14).is_nan());
}

#[test]
fn steps_and_the_dense_curve_are_refused_when_the_solve_is_built() {
    for save_at in [SaveAt::steps(), SaveAt::dense()] {
        let ode = Ode::new(|_t, y: &Tensor| -y).adjoint(Adjoint::backsolve()).save_at(save_at);
        let refused = crate::Error::from(ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap_err());
        assert!(matches!(refused, crate::Error::Config(ConfigError::Adjoint { .. })), "{refused}");
    }
}

#[test]
fn unused_integrals_are_not_computed() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let work = |both: bool| {
        let f = jit(move |p: Tensor, w: Tensor| {
            let loss = |p: &Tensor, w: &Tensor| {
                let ode = Ode::new(|_t, y: &Tensor| (w.matmul(y) * p).tanh()).adjoint(Adjoint::backsolve());
                ode.save_at([0.5]).solve(0.0, 1.0, Tensor::full(DType::F64, [30], 1.0)).unwrap().ys.sum()
            };
            match both {
                true => grad(|(p, w): &(Tensor, Tensor)| loss(p, w), &(p, w)),
                false => (grad(|p: &Tensor| loss(p, &w), &p), Tensor::from(0.0)),
            }
        });
        let w = Tensor::full(DType::F64, [30, 30], 0.01);
        let gradient = f.call(0.5, w.clone()).unwrap().0.item();
        (gradient, f.plan(&(Tensor::from(0.5), w)).unwrap().arena_bytes)
    };
    let (all, one) = (work(true), work(false));
    assert_eq!(all.0, one.0);
    assert!(one.1 < all.1, "{} {}", one.1, all.1);
    // 30 x 30 f64 are 7,200 bytes. If the integral were computed, each stage would store one such array.
    assert!(one.1 < 7200 * 4, "{}", one.1);
}
