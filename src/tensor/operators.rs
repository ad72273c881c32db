//! `+ - * /` and unary minus between tensors and numbers.
//!
//! Plain numbers are f64 or i32 only: a further impl for f32 would make `(x * 2.0).tanh()` ambiguous.

use super::Tensor;
use crate::graph::BinaryOp;
use std::ops::{Add, Div, Mul, Neg, Sub};

macro_rules! operator {
    ($($tr:ident $f:ident $op:ident),*) => { $(
        operator!(@tensors $tr $f $op: Tensor, Tensor; Tensor, &Tensor; &Tensor, Tensor; &Tensor, &Tensor);
        operator!(@right $tr $f $op: Tensor, f64; &Tensor, f64; Tensor, i32; &Tensor, i32);
        operator!(@left $tr $f $op: f64, Tensor; f64, &Tensor; i32, Tensor; i32, &Tensor);
    )* };
    (@tensors $tr:ident $f:ident $op:ident: $($a:ty, $b:ty);*) => { $(
        impl $tr<$b> for $a {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, other: $b) -> Tensor { Tensor::binary(BinaryOp::$op, &self, &other) }
        }
    )* };
    (@right $tr:ident $f:ident $op:ident: $($a:ty, $b:ty);*) => { $(
        impl $tr<$b> for $a {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, other: $b) -> Tensor { Tensor::binary(BinaryOp::$op, &self, &self.number(f64::from(other))) }
        }
    )* };
    (@left $tr:ident $f:ident $op:ident: $($a:ty, $b:ty);*) => { $(
        impl $tr<$b> for $a {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, other: $b) -> Tensor { Tensor::binary(BinaryOp::$op, &other.number(f64::from(self)), &other) }
        }
    )* };
}
operator!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.negate()
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.negate()
    }
}
