//! The memory of a gradient through a solve: the states of the checkpoints, and at most 16 bytes per step. A separate
//! binary, whose allocator counts the bytes of the whole process.
#![cfg(feature = "autodiff")]
#![allow(unsafe_code, reason = "a global allocator that counts")]

use flowline::adjoint::Checkpoints;
use flowline::memory;
use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;
use flowline::tensor::DType;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a state of 32 f64 values.
const STATE_BYTES: usize = 256;

/// The increase of live bytes by a gradient through `steps` constant steps, without its compilation: of arrays and
/// workspaces, and in total.
fn live(steps: usize, checkpoints: usize) -> (usize, usize) {
    let slope = jit(move |rate: Tensor| {
        let end = |rate: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| -(rate * y))
                .controller(ConstantStepSize { dt0: 1.0 / steps as f64 });
            let ode = ode.max_steps(20_000).adjoint(Adjoint::recursive_checkpoint(checkpoints));
            ode.solve(0.0, 1.0, Tensor::full(DType::F64, [32], 1.0)).unwrap().y1.sum()
        };
        grad(end, &rate)
    });
    slope.plan(&(Tensor::from(1.0),)).unwrap();
    let before = (memory::live_bytes(), LIVE.load(Relaxed));
    let value = slope.call(1.0).unwrap().item();
    let after = (memory::live_bytes(), LIVE.load(Relaxed));
    assert!((value + 32.0 * (-1.0_f64).exp()).abs() < 1e-6, "{value}");
    let run = slope.last_run();
    assert_eq!((run.accepted, run.states_kept_max), (steps as u64, checkpoints));
    (after.0 - before.0, after.1 - before.1)
}

/// Bytes of arrays and workspaces live after a gradient through `steps` constant steps of a 16 x 16 layer, beyond
/// those live after compiling it, and the number of steps whose stages were recomputed.
fn live_with_stages(steps: usize, adjoint: Adjoint) -> (usize, u64) {
    let slope = jit(move |w: Tensor| {
        let end = |w: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| y.matmul(w).tanh());
            let ode = ode.method(Method::Euler).controller(ConstantStepSize { dt0: 1.0 / steps as f64 });
            let ode = ode.max_steps(200_000).adjoint(adjoint);
            ode.solve(0.0, 1.0, Tensor::full(DType::F32, [4, 16], 0.5)).unwrap().y1.sum()
        };
        grad(end, &w)
    });
    let w = Tensor::full(DType::F32, [16, 16], 0.01);
    slope.plan(&(w.clone(),)).unwrap();
    let before = memory::live_bytes();
    let value = slope.call(w).unwrap();
    assert!(value.to_vec().iter().all(|x| x.is_finite()));
    let live = memory::live_bytes() - before - value.to_vec().len() * size_of::<f32>();
    let run = slope.last_run();
    assert_eq!(run.accepted, steps as u64);
    (live, run.recomputed_residuals)
}

/// Bytes of a step with its stage: a state of 64 f32 values, and a stage of the same size.
const PAIR_BYTES: usize = 2 * 256;
/// Upper bound of the workspace of a run, for any number of steps.
const BESIDE: usize = 64 << 10;

fn states_and_stages_stay_within_their_bytes() {
    let bytes = |n| Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(n) };
    live_with_stages(10, Adjoint::Direct); // allocates what is created once per process
    let budget = 1 << 20;
    for steps in [100, 1_000, 3_000, 10_000] {
        let (live, recomputed_residuals) = live_with_stages(steps, bytes(budget));
        assert!(live <= budget + BESIDE, "{steps} steps: {live} bytes");
        // With more steps, first all states and stages fit, then all states and some stages, then not even all states.
        let [all, some] = [2 * steps * PAIR_BYTES <= budget, steps * PAIR_BYTES / 2 <= budget * 7 / 8];
        match (all, some) {
            (true, _) => assert_eq!(recomputed_residuals, 0),
            (false, true) => assert!(
                (1..steps as u64).contains(&recomputed_residuals),
                "{recomputed_residuals} of {steps}"
            ),
            (false, false) => assert_eq!(recomputed_residuals, steps as u64),
        }
    }
    let (live, recomputed_residuals) = live_with_stages(10_000, Adjoint::Direct);
    assert!(recomputed_residuals == 0 && live <= 10_000 * PAIR_BYTES + BESIDE + (128 << 10), "{live} bytes");
    // A given number of states is not exceeded.
    let (live, recomputed_residuals) = live_with_stages(10_000, Adjoint::recursive_checkpoint(100));
    assert!(recomputed_residuals == 0 && live <= 100 * PAIR_BYTES / 2 + BESIDE, "{live} bytes");
}

#[test]
fn a_gradient_keeps_its_checkpoints_and_at_most_16_bytes_per_step() {
    states_and_stages_stay_within_their_bytes();
    live(100, 5); // allocates what is created once per process
    let (least, _) = live(100, 1);
    for checkpoints in [5, 20, 100] {
        let (_, few) = live(100, checkpoints);
        for steps in [100, 1_000, 10_000] {
            let (arrays, all) = live(steps, checkpoints);
            // exactly equal for any number of steps
            assert_eq!(arrays, least + (checkpoints - 1) * STATE_BYTES, "{steps} steps");
            // step times, in a list that doubles: 8 bytes each and as many spare
            assert!(
                all <= few + 16 * steps,
                "{steps} steps, {checkpoints} checkpoints: {all} bytes, {few} for 100"
            );
            // the positions of the checkpoints, and the plan of the backward pass
            let beside = (all - arrays).saturating_sub(16 * (steps + 1));
            assert!(beside <= 16_384 + 200 * checkpoints, "{beside} bytes beside arrays and step times");
        }
    }
}
