//! The return types of traced closures.
//!
//! A closure that cannot fail returns a tree, one that solves returns a `flowline::Result` of one. Each
//! transform accepts both and returns accordingly: `grad` of a closure with `?` is a `Result`, `grad` of one
//! without is a gradient. So `vmap` needs no fallible twin `try_vmap`. In a closure that ends in `Ok(..)` the
//! error type is inferred, since `Result` is not a tree.

use super::Tensor;
use super::tree::Tree;
use crate::error::{Error, Result};

/// A return type of traced closures: a tree, or a `flowline::Result` of one.
#[diagnostic::on_unimplemented(
    message = "a traced function cannot return `{Self}`",
    label = "return a tree of tensors, or a flowline::Result of one"
)]
pub trait Output {
    /// The tree.
    type Tree: Tree;
    /// The return type of a transform of the closure that yields an `X`: `X` or `Result<X>`.
    type Of<X>;
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Tree>;
    #[doc(hidden)]
    fn answer<X>(found: Result<X>) -> Self::Of<X>;
}

impl<T: Tree> Output for T {
    type Tree = T;
    type Of<X> = X;
    fn into_result(self) -> Result<T> {
        Ok(self)
    }
    #[track_caller]
    fn answer<X>(found: Result<X>) -> X {
        found.unwrap_or_else(|e| panic!("{e}"))
    }
}

impl<T: Tree> Output for Result<T, Error> {
    type Tree = T;
    type Of<X> = Result<X, Error>;
    fn into_result(self) -> Result<T> {
        self
    }
    fn answer<X>(found: Result<X>) -> Result<X, Error> {
        found
    }
}

/// A loss: one number, or `(number, aux)`.
#[diagnostic::on_unimplemented(
    message = "a loss cannot be `{Self}`",
    label = "return a scalar Tensor, (Tensor, aux), or a flowline::Result of either"
)]
pub trait Loss: Tree {
    /// The values returned besides the loss.
    type Aux: Tree;
    #[doc(hidden)]
    fn open(self) -> (Tensor, Self::Aux);
    #[doc(hidden)]
    fn close(value: Tensor, aux: Self::Aux) -> Self;
}

impl Loss for Tensor {
    type Aux = ();
    fn open(self) -> (Tensor, ()) {
        (self, ())
    }
    fn close(value: Tensor, (): ()) -> Tensor {
        value
    }
}

impl<A: Tree> Loss for (Tensor, A) {
    type Aux = A;
    fn open(self) -> (Tensor, A) {
        self
    }
    fn close(value: Tensor, aux: A) -> (Tensor, A) {
        (value, aux)
    }
}
