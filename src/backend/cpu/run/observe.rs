//! The kernel of a debug callback: copies a value and passes it to a plain Rust function.
//!
//! The kernel allocates memory for each value, because callbacks are for debugging and need not be fast.

use crate::array::Data;
use crate::backend::cpu::address::{Address, Env};
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
    /// # Safety
    /// Both locations are valid for the type's bytes and do not overlap.
    pub unsafe fn run(&self, env: Env) {
        let (shape, bytes) = (self.ty.shape(), self.ty.bytes());
        let mut seen = Data::zeros(self.ty.dtype(), shape.size());
        // SAFETY: the caller's promise; `seen` has the type's bytes.
        unsafe {
            let src = env.at(self.src).cast_const();
            std::ptr::copy_nonoverlapping(src, env.at(self.dst), bytes);
            std::ptr::copy_nonoverlapping(src, seen.as_mut_ptr(), bytes);
        }
        // User code runs with standard IEEE 754 denormals.
        let _mode = Denormals::kept();
        self.observer.see(shape, &seen);
    }
}
