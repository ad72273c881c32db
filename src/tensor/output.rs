//! The return types of traced closures.
//!
//! A closure that cannot fail returns a tree. A closure that solves returns a `flowline::Result` of a tree.
//! Each transform accepts closures of both kinds: if the closure returns a `Result`, `grad` also returns a
//! `Result`, otherwise it returns the gradient. `vmap` therefore needs no fallible variant `try_vmap`. In a
//! closure that ends in `Ok(..)`, the compiler infers the error type, because only one `Result` type is
//! allowed.

use super::Tensor;
use super::tree::Tree;
use crate::error::{Error, Result};

/// A return type of traced closures: a tree, or a `flowline::Result` of a tree.
#[diagnostic::on_unimplemented(
    message = "a traced function cannot return `{Self}`",
    label = "return a tree of tensors, or a flowline::Result of one"
)]
pub trait Output {
    /// The tree.
    type Tree: Tree;
    /// The return type of a transform whose result is an `X`: `X` or `Result<X>`.
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
