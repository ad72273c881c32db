//! Layer normalization.

use crate::tensor::Tensor;
use crate::tree;

tree! {
    /// `y = (x - mean) / sqrt(variance + eps) * gain + bias`, with mean and variance of each row over its
    /// last axis.
    ///
    /// There are no batch statistics, so rows stay independent. The variance is the mean squared distance
    /// from the mean. The mean square minus the squared mean would lose digits if the mean is large.
    ///
    /// # Shapes and units
    /// x `[.., dim]`, gain and bias `[dim]`.
    ///
    /// # References
    /// Ba, Kiros and Hinton (2016), Layer normalization, eq. 4.
    pub struct LayerNorm {
        /// Of shape `[dim]`.
        pub gain: Tensor,
        /// Of shape `[dim]`.
        pub bias: Tensor,
        /// Added to the variance.
        pub eps: f64,
    }
}

impl LayerNorm {
    /// Gain 1, bias 0 and eps 1e-5, as in PyTorch, Equinox and Haiku.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::prelude::*;
    /// let y = LayerNorm::new(2).forward(&Tensor::from([[1.0, 3.0]])).to_vec();
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[1] - 1.0).abs() < 1e-5);
    /// ```
    pub fn new(dim: usize) -> LayerNorm {
        LayerNorm { gain: Tensor::ones([dim]), bias: Tensor::zeros([dim]), eps: 1e-5 }
    }

    /// Normalizes each row.
    ///
    /// # Panics
    /// When the last axis of x is not `dim`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let last = x.rank().checked_sub(1).filter(|&a| x.shape()[a] == self.gain.size());
        let last = last.unwrap_or_else(|| {
            panic!(
                "a layer norm of size {0} needs a last axis of length {0}, got shape {1}",
                self.gain.size(),
                x.shape()
            )
        });
        let centered = x - x.mean_axes(&[last]).expand_dims(last);
        let variance = centered.square().mean_axes(&[last]).expand_dims(last);
        centered / (variance + self.eps).sqrt() * &self.gain + &self.bias
    }
}
