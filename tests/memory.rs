//! Memory stands still: a training step with a solve inside, thousands of times, on an allocator that
//! counts. A binary of its own, and one test at a time, so that nothing else allocates beside it.
#![cfg(feature = "tensor")]
#![allow(unsafe_code, reason = "a global allocator that counts")]

use flowline::array::memory;
use flowline::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Counting;

static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, Relaxed);
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise, handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

tree! { struct TrainState { model: Mlp, optimiser: OptState, update: Tensor } }

fn loss(model: &Mlp, y0: &Tensor) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, y: &Tensor| model.forward(y)).rtol(1e-3).atol(1e-4);
    let end = field.adjoint(Adjoint::recursive_checkpoint(3)).solve(0.0, 1.0, y0)?.y1;
    Ok((end - y0 * 0.5).square().mean())
}

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Live buffers and their bytes, live heap blocks and their bytes.
fn live() -> [isize; 4] {
    let buffers = [memory::live_buffers() as isize, memory::live_bytes() as isize];
    [buffers[0], buffers[1], BLOCKS.load(Relaxed), BYTES.load(Relaxed)]
}

#[test]
fn a_training_step_with_an_adaptive_solve_leaves_nothing_behind() {
    let _alone = alone();
    let optimiser = chain([clip_global_norm(1.0), adamw(cosine(1e-3, 3_000))]);
    let step = jit(|state: TrainState, key: Key| {
        let y0 = key.fold_in(&state.update).normal([40, 2]);
        let (value, grads) = value_and_grad(|model| loss(model, &y0), &state.model)?;
        let (model, optimiser) = optimiser.update(&state.model, grads, state.optimiser);
        flowline::Result::Ok((TrainState { model, optimiser, update: state.update + 1 }, value))
    });
    let step = step.max_traces(1);
    let key = Key::new(0);
    let model = Mlp::new([2, 16, 2], Activation::Tanh, &key);
    let mut state = TrainState { optimiser: optimiser.init(&model), model, update: 0.into() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut at_100 = [0; 4];
    pool.install(|| {
        for i in 0..3_000 {
            step.step(&mut state, key.clone()).unwrap();
            if i == 100 {
                at_100 = live();
            }
        }
        assert_eq!(live(), at_100, "live buffers, their bytes, live heap blocks, their bytes");
    });
    assert_eq!((step.traces(), state.update.item()), (1, 3_000.0));
    drop(step);
    drop((state, optimiser, key));
    assert_eq!(memory::live_buffers(), 0, "what nobody holds is gone");
}

/// Runs 10,000 updates and compares what lives after 100 with what lives at the end.
fn radam_stands_still(mut update: impl FnMut(Tensor, OptState) -> (Tensor, OptState)) {
    let optimiser = radam(1e-3);
    let x = Tensor::from([1.0, -2.0, 3.0]);
    let (mut x, mut state) = (x.clone(), optimiser.init(&x));
    let mut at_100 = [0; 4];
    for i in 0..10_000 {
        (x, state) = update(x, state);
        if i == 100 {
            at_100 = live();
        }
    }
    assert_eq!(live(), at_100, "live buffers, their bytes, live heap blocks, their bytes");
    assert_eq!(state.get("0.count").unwrap().item(), 10_000.0);
    assert!(x.to_vec().iter().all(|x| x.abs() < 1e-2), "{x}");
}

#[test]
fn radam_leaves_nothing_behind_jitted_or_not() {
    let _alone = alone();
    let optimiser = radam(1e-3);
    let update = move |x: Tensor, state: OptState| optimiser.update(&x, x.clone(), state);
    radam_stands_still(&update);
    let step = jit(update).max_traces(1);
    radam_stands_still(|x, state| step.call(x, state).unwrap());
    assert_eq!(step.traces(), 1);
    drop(step);
    assert_eq!(memory::live_buffers(), 0, "what nobody holds is gone");
}
