//! Tests of whole plans against the interpreter.

mod batched;
mod bounds;
mod broken;
mod chains;
mod chaos;
mod cond;
mod convolved;
mod defects;
mod factors;
mod loops;
mod ones;
mod oracle;
mod random;
mod reference;
mod straight;
mod systems;
mod totals;

use super::{Plan, Workspace};
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{Func, Type};
use crate::simd::Level;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator allocates; counting changes only a thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the layout is passed on, and both allocators ask for the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `alloc` took the memory from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations by this thread.
pub(super) fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// A small generator of test numbers.
pub(super) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    /// A number in -1 .. 1.
    pub fn real(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 30) as f64 - 1.0
    }

    pub fn array(&mut self, ty: &Type) -> Array {
        let mut a = Array::zeros(ty.dtype(), ty.shape().clone());
        for i in 0..ty.shape().size() {
            let x = match ty.dtype() {
                DType::F32 | DType::F64 => self.real(),
                DType::I32 => self.below(20) as f64 - 10.0,
                DType::U32 => self.next() as u32 as f64,
                DType::Bool => self.below(2) as f64,
            };
            a.data_mut().set_f64(i, x);
        }
        a
    }
}

pub(super) fn run(plan: &Plan, inputs: &[Array]) -> Vec<Array> {
    let mut outputs: Vec<Array> = plan.output_types().iter().map(garbage).collect();
    let refs: Vec<&Array> = inputs.iter().collect();
    let mut ws = Workspace::new();
    plan.run_arrays(&mut ws, &refs, &mut outputs);
    // The results of a second run on used buffers must be bitwise equal.
    let mut again: Vec<Array> = plan.output_types().iter().map(garbage).collect();
    plan.run_arrays(&mut ws, &refs, &mut again);
    for (a, b) in outputs.iter().zip(&again) {
        assert_eq!(bits(a), bits(b));
    }
    outputs
}

/// Arbitrary contents of an output buffer before a run.
fn garbage(ty: &Type) -> Array {
    let mut a = Array::zeros(ty.dtype(), ty.shape().clone());
    (0..ty.shape().size()).for_each(|i| a.data_mut().set_f64(i, 77.0));
    a
}

/// The elements' bits.
pub(super) fn bits(a: &Array) -> Vec<u64> {
    match a.data() {
        Data::F32(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Data::F64(v) => v.iter().map(|x| x.to_bits()).collect(),
        Data::I32(v) => v.iter().map(|&x| x as u64).collect(),
        Data::U32(v) | Data::Bool(v) => v.iter().map(|&x| x.into()).collect(),
    }
}

/// Checks the function on all available levels against the interpreter, each element within its bound.
#[track_caller]
pub(super) fn check(func: &Func, seed: u64) {
    let mut rng = Rng(seed);
    let inputs: Vec<Array> = func.input_types().iter().map(|ty| rng.array(ty)).collect();
    check_on(func, &inputs);
}

/// [`check`] on the given inputs.
#[track_caller]
pub(super) fn check_on(func: &Func, inputs: &[Array]) {
    let want = bounds::outputs(func, inputs);
    for level in Level::available() {
        let got = run(&Plan::compile(func, level), inputs);
        for (k, (got, want)) in got.iter().zip(&want).enumerate() {
            for (i, x) in got.to_f64().into_iter().enumerate() {
                let (ball, radius) = (want.value.data().get_f64(i), want.radius[i]);
                assert!(
                    want.holds(i, x),
                    "element {i} of output {k} is {x:e}, expected {ball:e} within {radius:e}, at {level:?} of\n{func}"
                );
            }
        }
    }
}

pub(super) fn f32s(dims: impl Into<Shape>) -> Type {
    Type::array(DType::F32, dims)
}

pub(super) fn f64s(dims: impl Into<Shape>) -> Type {
    Type::array(DType::F64, dims)
}
