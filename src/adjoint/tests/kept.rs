//! Residuals of steps: stored or recomputed, they give the same gradient bits.

use super::*;
use crate::adjoint::Batching;
use crate::backend::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const STEPS: usize = 60;

/// Two layers, the second of which depends on t.
fn field(w: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let hidden = y.matmul(w).tanh();
    (hidden.matmul(w) + t.cast(DType::F32)).tanh() - y
}

/// The gradient with respect to the weights and y0, and the counters of the run.
fn gradient(
    method: Method,
    is_adaptive: bool,
    adjoint: Adjoint,
    calls: &Arc<AtomicUsize>,
) -> (Vec<Vec<f64>>, Counters) {
    gradient_of(Batching::Joint, (method, is_adaptive), adjoint, calls)
}

fn gradient_of(
    batching: Batching,
    (method, is_adaptive): (Method, bool),
    adjoint: Adjoint,
    calls: &Arc<AtomicUsize>,
) -> (Vec<Vec<f64>>, Counters) {
    let calls = calls.clone();
    let f = jit(move |w: Tensor, y0: Tensor| {
        let loss = |(w, y0): &(Tensor, Tensor)| {
            let calls = calls.clone();
            let field = |t: Tensor, y: &Tensor| {
                let calls = calls.clone();
                field(
                    w,
                    &t,
                    &y.debug_callback(move |_| {
                        calls.fetch_add(1, Relaxed);
                    }),
                )
            };
            let ode = Ode::new(field).method(method).adjoint(adjoint).batching(batching);
            let solution = match is_adaptive {
                // The first step is too long and is rejected.
                true => ode
                    .controller(PidController { dt0: Some(1.25), ..PidController::default() })
                    .rtol(1e-6)
                    .solve(0.25, 1.5, y0),
                false => ode.controller(ConstantStepSize { dt0: 1.25 / STEPS as f64 }).solve(0.25, 1.5, y0),
            };
            solution.unwrap().y1.square().sum()
        };
        value_and_grad(loss, &(w, y0)).1
    });
    let numbers = |seed: f64, shape: [usize; 2]| {
        (Tensor::iota(DType::F32, [shape[0] * shape[1]], 0) * 0.7 + seed).sin().reshape(shape)
    };
    let mut y0 = numbers(0.4, [3, 9]);
    if batching == Batching::PerRow {
        // The rows take different numbers of steps.
        y0 = y0 * (Tensor::iota(DType::F32, [3, 9], 0) * 2.0 + 0.1);
    }
    let (w, y0) = f.call(numbers(0.1, [9, 9]), y0).unwrap();
    (vec![w.to_vec(), y0.to_vec()], f.last_run())
}

fn bytes(n: usize) -> Adjoint {
    Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(n) }
}

#[test]
fn kept_and_remade_stages_give_the_same_bits() {
    let calls = Arc::new(AtomicUsize::new(0));
    let fixed = [Method::Euler, Method::Tsit5, Method::Rk4].map(|method| (method, false));
    let adaptive = [Method::Tsit5, Method::Bosh3, Method::Dopri5, Method::Heun].map(|method| (method, true));
    for (method, is_adaptive) in fixed.into_iter().chain(adaptive) {
        let (want, _) = gradient(method, is_adaptive, Adjoint::recursive_checkpoint(1), &calls);
        assert!(want.iter().flatten().all(|x| x.is_finite() && *x != 0.0));
        let kept = [Adjoint::Direct, Adjoint::default(), Adjoint::recursive_checkpoint(7)];
        for adjoint in kept.into_iter().chain([200_000, 40_000, 10_000, 1].map(bytes)) {
            let (got, _) = gradient(method, is_adaptive, adjoint, &calls);
            assert_eq!(got, want, "{method:?} {adjoint:?}");
        }
    }
}

#[test]
fn a_backward_pass_that_has_every_stage_calls_no_field() {
    if crate::backend::oracle_lacks("stored stages") {
        return;
    }
    for (method, stages) in [(Method::Euler, 1), (Method::Tsit5, 6)] {
        for adjoint in [Adjoint::Direct, Adjoint::default()] {
            let calls = Arc::new(AtomicUsize::new(0));
            let (_, run) = gradient(method, false, adjoint, &calls);
            assert_eq!((run.recomputed, run.recomputed_residuals), (0, 0), "{method:?} {adjoint:?}");
            assert_eq!(calls.load(Relaxed), STEPS * stages, "{method:?} {adjoint:?}");
        }
        // Without stored stages the field is called twice as often.
        let calls = Arc::new(AtomicUsize::new(0));
        gradient(method, false, Adjoint::recursive_checkpoint(STEPS), &calls);
        assert_eq!(calls.load(Relaxed), 2 * STEPS * stages, "{method:?}");
    }
}

#[test]
fn the_first_stage_of_an_adaptive_step_is_that_of_the_step_before() {
    if crate::backend::oracle_lacks("stored stages") {
        return;
    }
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3, Method::Heun] {
        for adjoint in [Adjoint::Direct, Adjoint::default()] {
            let calls = Arc::new(AtomicUsize::new(0));
            let (_, run) = gradient(method, true, adjoint, &calls);
            assert!(run.accepted > 3 && run.attempts > run.accepted, "{run:?}");
            assert_eq!((run.recomputed, run.recomputed_residuals), (0, 0), "{method:?} {adjoint:?}");
            // The calls of the search: at its start, and in each attempt, which also evaluates the first stage of the
            // next step if that is not its own last stage.
            let stages = method.tableau().num_stages() - usize::from(method.tableau().is_fsal());
            assert_eq!(calls.load(Relaxed), 1 + stages * run.attempts as usize, "{method:?} {adjoint:?}");
        }
    }
}

#[test]
fn rows_in_lockstep_store_the_stages_of_their_own_steps() {
    let calls = Arc::new(AtomicUsize::new(0));
    for method in [Method::Tsit5, Method::Heun] {
        let of = |adjoint| gradient_of(Batching::PerRow, (method, true), adjoint, &calls);
        let (want, _) = of(Adjoint::recursive_checkpoint(5));
        assert!(want.iter().flatten().all(|x| x.is_finite() && *x != 0.0));
        let mut made = vec![];
        for adjoint in [Adjoint::Direct, Adjoint::default(), bytes(8_000), bytes(1)] {
            let (got, run) = of(adjoint);
            assert_eq!(got, want, "{method:?} {adjoint:?}");
            let most = run.states_kept_max as u64;
            assert!(adjoint != Adjoint::Direct || most < run.accepted && run.accepted < 3 * most, "{run:?}");
            made.push(run.recomputed_residuals);
        }
        if !crate::backend::oracle_lacks("stored stages") {
            assert!(made[..2] == [0, 0] && made[2] > 0, "{method:?}: {made:?}");
        }
    }
}
