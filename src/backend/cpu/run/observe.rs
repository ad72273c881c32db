//! The kernel of a debug callback: copies a value and passes it to a plain Rust function.
//!
//! The kernel allocates memory for each value, because callbacks are for debugging and need not be fast.

use crate::array::Data;
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::graph::{Observer, Type};
use crate::simd::denormals::Denormals;

/// One callback.
#[derive(Debug)]
pub(crate) struct Observe {
    pub src: Address,
    pub dst: Address,
    pub ty: Type,
    pub observer: Observer,
}

impl Observe {
    /// Copies the value and calls the observer.
    pub fn run(&self, env: Env) {
        let (shape, bytes) = (self.ty.shape(), self.ty.bytes());
        let mut seen = Data::zeros(self.ty.dtype(), shape.size());
        let src = env.bound(self.src);
        src.copy_to(env.bound(self.dst), bytes);
        // SAFETY: `seen` has the bytes of the type, and nothing else refers to it yet.
        src.copy_to(unsafe { Bound::new(seen.as_mut_ptr(), bytes) }, bytes);
        // User code runs with standard IEEE 754 denormals.
        let _mode = Denormals::kept();
        self.observer.see(shape, &seen);
    }
}
