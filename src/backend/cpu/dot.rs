//! Matrix products, alone or with the bias and the activation of a layer.

use super::kernels::{Activation, Elem, Epilogue, Gemm, gemm_f32, gemm_f64, gemm_layer_f32, gemm_layer_f64};
use super::step::{Access, Cost, Env, Loc};
use crate::simd::Level;
use std::ptr::null_mut;

/// `C = A B`: A with any strides, rows of B and C without gaps inside.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub a: Loc,
    pub b: Loc,
    pub c: Loc,
    pub double: bool,
    pub shape: Gemm,
    pub layer: Option<Layer>,
}

/// What follows the product: `activation(A B + bias)`. The bits are those of separate kernels.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub bias: Loc,
    pub activation: Activation,
}

impl Dot {
    pub fn cost(&self) -> Cost {
        let elem = if self.double { Elem::F64 } else { Elem::F32 };
        let Gemm { m, n, k, .. } = self.shape;
        let layer = match &self.layer {
            None => 0,
            Some(l) => 1 + usize::from(l.activation != Activation::Identity),
        };
        Cost { flops: 2 * m * n * k + layer * m * n, bytes: (m * k + k * n + m * n) * elem.size() }
    }

    pub fn each_loc(&mut self, f: &mut dyn FnMut(&mut Loc, Access)) {
        f(&mut self.a, Access::Read);
        f(&mut self.b, Access::Read);
        if let Some(layer) = &mut self.layer {
            f(&mut layer.bias, Access::Read);
        }
        f(&mut self.c, Access::Write);
    }

    /// # Safety
    /// The locations are valid for the shapes, the written one overlaps no other, and the level is
    /// available.
    pub unsafe fn run(&self, env: Env, level: Level) {
        let s = &self.shape;
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b, c) = (env.at(self.a), env.at(self.b), env.at(self.c));
            match (&self.layer, self.double) {
                (None, false) => gemm_f32(level, s, a.cast(), b.cast(), c.cast()),
                (None, true) => gemm_f64(level, s, a.cast(), b.cast(), c.cast()),
                (Some(l), false) => gemm_layer_f32(level, s, &l.end(env), a.cast(), b.cast(), c.cast()),
                (Some(l), true) => gemm_layer_f64(level, s, &l.end(env), a.cast(), b.cast(), c.cast()),
            }
        }
    }
}

impl Layer {
    unsafe fn end<T>(&self, env: Env) -> Epilogue<T> {
        // SAFETY: the caller's promise.
        let bias = unsafe { env.at(self.bias) }.cast::<T>().cast_const();
        Epilogue { bias, activation: self.activation, pre: null_mut(), ldp: 0 }
    }
}
