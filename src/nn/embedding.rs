//! Embeddings of indices and times.

use super::Init;
use crate::array::DType;
use crate::tensor::{Key, Tensor};
use crate::tree;
use std::f64::consts::TAU;

tree! {
    /// A lookup table: `y = weight[index]`.
    ///
    /// # Shapes and units
    /// weight `[num, dim]`, index of any shape `[..]` in 0 to num - 1, y `[.., dim]`. [`Tensor::take`] defines
    /// the result for indices out of range.
    pub struct Embedding {
        /// Of shape `[num, dim]`.
        pub weight: Tensor,
    }
}

impl Embedding {
    /// Rows of standard normal samples, as in PyTorch and Equinox.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::prelude::*;
    /// let table = Embedding::new(10, 4, &Key::new(0));
    /// assert_eq!(**table.forward(&Tensor::from([[3, 1, 3]])).shape(), [1, 3, 4]);
    /// ```
    pub fn new(num: usize, dim: usize, key: &Key) -> Embedding {
        Embedding { weight: Init::Normal(1.0).sample([num, dim], key) }
    }

    /// Looks up the row of each index.
    ///
    /// # Panics
    /// When an index is concrete and out of range; see [`Tensor::take`].
    #[track_caller]
    pub fn forward(&self, index: &Tensor) -> Tensor {
        self.weight.take(index)
    }
}

/// Sinusoidal time embedding with geometrically decreasing frequencies: with `w_i = longest^(-i / n)`, n =
/// dim / 2, `[sin(t w_0), .., sin(t w_(n-1)), cos(t w_0), .., cos(t w_(n-1))]`.
///
/// The wavelengths run from 2 pi to `2 pi longest^(1 - 1 / n)`. The paper has `longest` = 10,000 for positions; for
/// times in [0, 1], scale t (diffusion models use `1000 t`). The paper interleaves sines and cosines; the order is
/// a permutation that the next layer's weights absorb.
///
/// # Shapes and units
/// t `[..]`, cast to f32 if not of a float type, in radians of the highest frequency; the result is `[.., dim]`.
///
/// # Panics
/// For an odd `dim`.
///
/// # References
/// Vaswani et al. (2017), Attention is all you need, section 3.5.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::timestep_embedding;
/// use flowline::nn::prelude::*;
/// assert_eq!(timestep_embedding(&Tensor::from([0.0]), 4, 1e4).to_vec(), [0.0, 0.0, 1.0, 1.0]);
/// ```
#[track_caller]
pub fn timestep_embedding(t: &Tensor, dim: usize, longest: f64) -> Tensor {
    assert!(dim.is_multiple_of(2), "an embedding of sines and cosines needs an even length, got {dim}");
    let t = if t.dtype().is_float() { t.clone() } else { t.cast(DType::F32) };
    let n = dim / 2;
    let frequencies: Vec<f64> = (0..n).map(|i| longest.powf(-(i as f64) / n as f64)).collect();
    waves(&(t.expand_dims(t.rank()) * Tensor::from(frequencies).cast(t.dtype())))
}

/// `[sin, cos]` along the last axis.
fn waves(angle: &Tensor) -> Tensor {
    Tensor::concat(&[&angle.sin(), &angle.cos()], angle.rank() - 1)
}

tree! {
    /// Times as sines and cosines of trained frequencies: `[sin(2 pi t w), cos(2 pi t w)]`.
    ///
    /// Wrapped in [`Frozen`](super::Frozen), it is the Gaussian Fourier projection of score models.
    ///
    /// # Shapes and units
    /// t `[..]`, w `[features]` in cycles per unit of t; the result is `[.., 2 features]`.
    ///
    /// # References
    /// Li et al. (2021), Learnable Fourier features for multi-dimensional spatial positional encoding, eq. 2,
    /// without its constant factor; Song et al. (2021), Score-based generative modeling through stochastic
    /// differential equations, appendix C.1 (fixed frequencies of scale 16).
    pub struct GaussianFourierProjection {
        /// w, of shape `[features]`.
        pub frequencies: Tensor,
    }
}

impl GaussianFourierProjection {
    /// Standard normal frequencies times `scale`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::GaussianFourierProjection;
    /// use flowline::nn::prelude::*;
    /// let embedding = GaussianFourierProjection::new(8, 1.0, &Key::new(0));
    /// assert_eq!(**embedding.forward(&Tensor::zeros([5])).shape(), [5, 16]);
    /// ```
    pub fn new(features: usize, scale: f64, key: &Key) -> GaussianFourierProjection {
        GaussianFourierProjection { frequencies: Init::Normal(scale).sample([features], key) }
    }

    /// Embeds each time, in the element type of the frequencies.
    pub fn forward(&self, t: &Tensor) -> Tensor {
        waves(&(t.cast(self.frequencies.dtype()).expand_dims(t.rank()) * &self.frequencies * TAU))
    }
}
