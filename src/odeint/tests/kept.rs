//! What steps leave for their derivatives: kept or made again, the gradient has the same bits.

use super::*;
use crate::backend::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const STEPS: usize = 60;

/// Two layers, of which the second sees t.
fn field(w: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let hidden = y.matmul(w).tanh();
    (hidden.matmul(w) + t.cast(DType::F32)).tanh() - y
}

/// The gradient's leaves by the weights and by y0, and what the run counted.
fn gradient(
    method: Method,
    is_adaptive: bool,
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
                    &y.observe(move |_| {
                        calls.fetch_add(1, Relaxed);
                    }),
                )
            };
            let ode = Ode::new(field).method(method).adjoint(adjoint);
            let solution = match is_adaptive {
                true => ode.rtol(1e-5).atol(1e-5).solve(0.25, 1.5, y0),
                false => ode.controller(Constant { dt0: 1.25 / STEPS as f64 }).solve(0.25, 1.5, y0),
            };
            solution.unwrap().y1.square().sum()
        };
        value_and_grad(loss, &(w, y0)).1
    });
    let numbers = |seed: f64, shape: [usize; 2]| {
        (Tensor::iota(DType::F32, [shape[0] * shape[1]], 0) * 0.7 + seed).sin().reshape(shape)
    };
    let (w, y0) = f.call(numbers(0.1, [9, 9]), numbers(0.4, [3, 9])).unwrap();
    (vec![w.to_vec(), y0.to_vec()], f.last_run())
}

fn bytes(n: usize) -> Adjoint {
    Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(n) }
}

#[test]
fn kept_and_remade_stages_give_the_same_bits() {
    let calls = Arc::new(AtomicUsize::new(0));
    for (method, is_adaptive) in
        [(Method::Euler, false), (Method::Tsit5, false), (Method::Rk4, false), (Method::Tsit5, true)]
    {
        let (want, _) = gradient(method, is_adaptive, Adjoint::recursive_checkpoint(1), &calls);
        assert!(want.iter().flatten().all(|x| x.is_finite() && *x != 0.0));
        for adjoint in
            [Adjoint::Direct, Adjoint::default(), Adjoint::recursive_checkpoint(7), bytes(40_000), bytes(1)]
        {
            let (got, _) = gradient(method, is_adaptive, adjoint, &calls);
            assert_eq!(got, want, "{method:?} {adjoint:?}");
        }
    }
}

#[test]
fn a_backward_pass_that_has_every_stage_calls_no_field() {
    for (method, stages) in [(Method::Euler, 1), (Method::Tsit5, 6)] {
        for adjoint in [Adjoint::Direct, Adjoint::default()] {
            let calls = Arc::new(AtomicUsize::new(0));
            let (_, run) = gradient(method, false, adjoint, &calls);
            assert_eq!((run.recomputed, run.remade), (0, 0), "{method:?} {adjoint:?}");
            assert_eq!(calls.load(Relaxed), STEPS * stages, "{method:?} {adjoint:?}");
        }
        // One whose stages are not kept calls it as often again
        let calls = Arc::new(AtomicUsize::new(0));
        gradient(method, false, Adjoint::recursive_checkpoint(STEPS), &calls);
        assert_eq!(calls.load(Relaxed), 2 * STEPS * stages, "{method:?}");
    }
}
