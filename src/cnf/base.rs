//! The base density of a flow.

use crate::array::DType;
use crate::tensor::{Key, Tensor};
use crate::tree;
use std::f64::consts::TAU;

tree! {
    /// The normal density with mean 0 and identity covariance.
    #[derive(Copy, PartialEq, Eq)]
    pub struct StandardNormal {
        /// Length of a row.
        pub dim: usize,
    }
}

impl StandardNormal {
    /// The standard normal in `dim` dimensions.
    pub fn new(dim: usize) -> StandardNormal {
        StandardNormal { dim }
    }

    /// `-(|z|^2 + dim ln 2 pi) / 2` in nats for each row of z.
    ///
    /// # Panics
    /// When a row does not have `dim` elements.
    #[track_caller]
    pub fn log_prob(&self, z: &Tensor) -> Tensor {
        assert!(
            z.rank() == 2 && z.shape()[1] == self.dim,
            "rows must have {} elements, got shape {}",
            self.dim,
            z.shape()
        );
        (z.square().sum_last() + self.dim as f64 * TAU.ln()) * -0.5
    }

    /// Samples of shape `[n, dim]`.
    pub fn sample(&self, n: usize, dtype: DType, key: &Key) -> Tensor {
        key.normal([n, self.dim]).cast(dtype)
    }
}
