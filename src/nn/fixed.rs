//! Tensors of a model that are saved with it and never trained.
//!
//! The tree of a model is what gradients, optimisers and files see alike, so a constant of the model
//! (the frequencies of a Fourier layer) must be in it to be saved, and must be told apart to stay what
//! it is: no derivative is taken by it, and optimisers know it by the last name of its path. A static
//! leaf would do for both, but its numbers would then be part of every signature and of no weights file.

use crate::tensor::Tensor;
use crate::tree;

/// The last name of the path of every fixed tensor.
const NAME: &str = "fixed";

tree! {
    /// A tensor that is part of a model and is not trained. Its path ends in `.fixed`.
    pub struct Fixed { fixed: Tensor }
}

impl Fixed {
    /// Fixes a tensor.
    pub fn new(x: impl Into<Tensor>) -> Fixed {
        Fixed { fixed: x.into() }
    }

    /// The tensor, of which no derivative is taken.
    pub fn get(&self) -> Tensor {
        self.fixed.stop_gradient()
    }
}

/// Whether the leaf at `path` is [`Fixed`]: optimisers and averages leave it as it is.
pub fn is_fixed(path: &str) -> bool {
    path.rsplit('.').next() == Some(NAME)
}
