//! A vector field for dequantized pixels: the velocity of independent pixels, corrected by a network.
//!
//! A pixel transformed to a normal quantile of its gray level
//! ([`MarginalTransform`](crate::data::MarginalTransform)) has a piecewise density: each gray level is an
//! interval of z, and the other pixels determine how likely each interval is. A network that predicts the
//! velocity directly would have to learn these steps at every t. Here the network predicts, for a few ranges of
//! levels, how much likelier each is than for independent pixels; the velocity follows. The formula is exact up
//! to t = 0.952. For larger t, the range ends stay blurred as at t = 0.952. The module uses normal densities
//! and a network on images, not data sets: the caller passes the range ends.

use super::velocity_field::{VelocityField, time_column};
use super::{Buffer, UNet};
use crate::array::DType;
use crate::tensor::Tensor;
use crate::tree;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Bound on the magnitude of a log weight: a weight of `e^8` makes a range practically certain.
const MOST: f64 = 8.0;
/// Minimum standard deviation for blurring range ends: at t = 1 they would be steps, which stall a solver.
const SOFTEST: f64 = 0.05;

tree! {
    /// The velocity of a straight path to a pixel whose density is normal, reweighted on ranges of its
    /// values:
    ///
    /// `v = (2 t - 1) / r^2 x + G / r`, `r^2 = (1 - t)^2 + t^2`, `y = x / r`, and with
    /// `s = max((1 - t) / r, 0.05)`, `a_k = (c_k - y t / r) / s` for the range ends c_k, and weights w_k of
    /// the ranges,
    ///
    /// `G = sum_k (w_(k+1) - w_k) phi(a_k) / sum_k w_k (Phi(a_k) - Phi(a_(k-1)))`,
    ///
    /// where a_0 and the last a_k are infinite. For independent pixels, the pixel at t = 1 given x at t is normal
    /// with mean `y t / r` and standard deviation `(1 - t) / r`. G is the mean of that normal reweighted by w_k on
    /// range k, in units of its standard deviation. The network receives `[y, 2 Phi(a_k) - 1]` and t and returns
    /// o_k, with `w_k = exp(8 tanh(o_k / 8))`. A network that returns 0 gives the flow of independent pixels.
    ///
    /// # Numerics
    /// v is the exact velocity up to t = 0.9523, where the standard deviation is 0.05. For larger t, the
    /// formula still uses 0.05: v is still smooth and its flow has a density. The range ends of this density
    /// are blurred by 0.05, and v is no longer the mean of `x1 - x0` given x.
    ///
    /// Weights of two ranges may differ by a factor of `e^16`. Range probabilities are therefore computed in
    /// f64, where a tail of 1e-10 next to 1 is not lost. The sums are in the type of x; the terms of the
    /// denominator are all positive.
    ///
    /// # Shapes and units
    /// Rows of `height width channels` pixels; c `[ends, pixels]`, ascending along each pixel; a network on
    /// images with `ends + 1` channels per pixel channel.
    ///
    /// # References
    /// The velocity of a normal density: Lipman et al. (2023), Flow matching for generative modeling, eq. 8 and 22;
    /// the mean of a truncated normal: Johnson, Kotz and Balakrishnan (1994), Continuous univariate distributions 1,
    /// section 13.10.1.
    pub struct LevelMixture {
        /// c, not trained.
        pub ends: Buffer,
        /// Predicts the log weights of the ranges.
        pub net: UNet,
    }
}

impl LevelMixture {
    /// Ranges with the given ends, weighted by a network.
    ///
    /// # Panics
    /// When the ends are not a matrix, or the network's image size is not the number of pixels times the number of
    /// ranges.
    #[track_caller]
    pub fn new(ends: &Tensor, net: UNet) -> LevelMixture {
        let [h, w, c] = net.image_shape;
        let fits = ends.rank() == 2 && ends.shape()[1] * (ends.shape()[0] + 1) == h * w * c;
        assert!(
            fits,
            "ends of shape [ranges - 1, pixels] = {} need a network whose image shape has pixels * ranges numbers, not {h} x {w} x {c}",
            ends.shape()
        );
        LevelMixture { ends: Buffer::new(ends.clone()), net }
    }
}

/// The cumulative distribution function of the standard normal.
fn distribution(x: &Tensor) -> Tensor {
    (x * FRAC_1_SQRT_2).erf() * 0.5 + 0.5
}

/// The probability of each range, from the probabilities below each end.
fn within(below: &Tensor) -> Tensor {
    let (axis, count) = (below.rank() - 1, below.shape()[below.rank() - 1]);
    let edge = |x: f64| Tensor::full(below.dtype(), below.shape().with_axis(axis, 1), x);
    let ends = Tensor::concat(&[&edge(0.0), below, &edge(1.0)], axis);
    ends.slice(axis, 1..count + 2) - ends.slice(axis, 0..count + 1)
}

/// The density of the standard normal.
fn density(x: &Tensor) -> Tensor {
    (x.square() * -0.5).exp() * (0.5 / PI).sqrt()
}

impl VelocityField for LevelMixture {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, x: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let (t, n) = (time_column(t, x), x.shape()[0]);
        let ends = self.ends.get().cast(x.dtype());
        let (count, d) = (ends.shape()[0], ends.shape()[1]);
        assert!(x.shape()[1] == d, "rows must have {d} pixels, got {}", x.shape()[1]);
        let left = 1.0 - &t;
        let square = left.square() + t.square();
        let r = square.sqrt();
        let y = x / &r;
        let soft = (&left / &r).maximum(&Tensor::scalar(x.dtype(), SOFTEST));
        let mean = &y * (&t / &r);
        // Ends last, as the channels of an image: [n, d, ends].
        let cut = ends.transpose().reshape([1, d, count]);
        let rows = t.shape()[0];
        let a = (cut - mean.reshape([n, d, 1])) * (1.0 / soft).reshape([rows, 1, 1]);
        let below = distribution(&a.cast(DType::F64));
        let seen = Tensor::concat(&[&y.reshape([n, d, 1]), &(&below * 2.0 - 1.0).cast(x.dtype())], 2);
        let log_weights = self
            .net
            .eval_conditional(&t, &seen.reshape([n, d * (count + 1)]), labels)
            .reshape([n, d, count + 1]);
        let weights = ((log_weights * (1.0 / MOST)).tanh() * MOST).exp();
        let mass = (&weights * within(&below).cast(x.dtype())).sum_last();
        let step = weights.slice(2, 1..count + 1) - weights.slice(2, 0..count);
        let gain = (step * density(&a)).sum_last() / mass;
        let drawn = (&t * 2.0 - 1.0) / square;
        x * drawn + gain / r
    }

    fn is_preconditioned(&self) -> bool {
        true
    }

    fn num_classes(&self) -> usize {
        self.net.num_classes()
    }

    fn rows_per_tile(&self) -> usize {
        self.net.rows_per_tile()
    }

    fn dim(&self) -> usize {
        self.ends.get().shape()[1]
    }
}
