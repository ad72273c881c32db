//! Residuals of steps: stored or recomputed, they give the same gradient bits.

use super::*;
use crate::array::Array;
use crate::backend::{Counters, current, run_on};
use crate::graph::{Func, Op, Type, indices};
use crate::tensor::trace;
use crate::transform::optimize;
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
            let ode = Ode::new(field).method(method).adjoint(adjoint);
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
    let (w, y0) = f.call(numbers(0.1, [9, 9]), numbers(0.4, [3, 9])).unwrap();
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
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3] {
        for adjoint in [Adjoint::Direct, Adjoint::default()] {
            let calls = Arc::new(AtomicUsize::new(0));
            let (_, run) = gradient(method, true, adjoint, &calls);
            assert!(run.accepted > 3 && run.attempts > run.accepted, "{run:?}");
            assert_eq!((run.recomputed, run.recomputed_residuals), (0, 0), "{method:?} {adjoint:?}");
            // The calls of the search: at its start, and in each attempt.
            let stages = method.tableau().num_stages() - 1;
            assert_eq!(calls.load(Relaxed), 1 + stages * run.attempts as usize, "{method:?} {adjoint:?}");
        }
    }
}

/// The gradient through a search that starts with y0 in place of the carried first stage f(t0, y0).
fn from_another_first_stage(adjoint: Adjoint) -> (Vec<Vec<f64>>, Counters) {
    let types = [[9, 9], [3, 9]].map(|shape| Type::array(DType::F32, shape));
    let traced = trace(&types, &mut |x| {
        let loss = |(w, y0): &(Tensor, Tensor)| {
            let ode = Ode::new(|t: Tensor, y: &Tensor| field(w, &t, y)).adjoint(adjoint);
            ode.rtol(1e-5).atol(1e-5).solve(0.25, 1.5, y0).unwrap().y1.square().sum()
        };
        let (w, y0) = value_and_grad(loss, &(x[0].clone(), x[1].clone())).1;
        vec![w, y0]
    });
    let mut nodes = traced.func.nodes().to_vec();
    let solve = nodes.iter().position(|n| matches!(n.op, Op::Solve(_))).unwrap();
    let Op::Solve(s) = nodes[solve].op.clone() else { unreachable!() };
    // The first stage is the last carried value that has the type of y0.
    let operands = s.operands(&indices(nodes[solve].args.len()));
    let carried = [operands.carry, operands.ext].concat();
    let y0 = nodes[solve].args[carried[0]];
    let is_like_y0 = |k: &usize| traced.func.node(nodes[solve].args[*k]).ty == traced.func.node(y0).ty;
    let first_stage = carried.into_iter().rfind(is_like_y0).unwrap();
    nodes[solve].args[first_stage] = y0;
    let func = Func::new(nodes, traced.func.inputs().to_vec(), traced.func.outputs()[..2].to_vec());
    let inputs = [0.1, 0.4].iter().zip(types).map(|(seed, ty)| {
        let shape = ty.shape().clone();
        let numbers = (Tensor::iota(DType::F32, [shape.size()], 0) * 0.7 + *seed).sin().reshape(shape);
        numbers.array().clone()
    });
    let inputs: Vec<Array> = inputs.collect();
    let (out, counters) = run_on(current(), &optimize(&func), &inputs.iter().collect::<Vec<_>>());
    (out.iter().map(Array::to_f64).collect(), counters)
}

#[test]
fn a_search_that_starts_from_another_first_stage_keeps_none() {
    if crate::backend::oracle_lacks("stored stages") {
        return;
    }
    let (got, run) = from_another_first_stage(Adjoint::Direct);
    assert_eq!(run.recomputed_residuals, run.accepted, "{run:?}");
    // A replay of the first step would not give the state from which the search continued.
    let (want, _) = from_another_first_stage(Adjoint::recursive_checkpoint(100));
    assert!(got.iter().flatten().all(|x| x.is_finite()) && got == want);
}
