//! A field of dequantized pixels: the velocity that independent pixels have, changed by what a network says of levels.
//!
//! A pixel that is a normal quantile of its gray level ([`MarginalTransform`](crate::data::MarginalTransform)) is a density with steps: each
//! gray level has an interval of z, and the other pixels determine how likely each interval is. A network whose
//! output is a velocity has to draw those steps by itself, at every t; here it says how much more likely than by itself
//! each of a few ranges of levels is, and the velocity follows. Its formula is exact up to t = 0.95; behind that the ends of
//! ranges stay as soft as they are there. It knows normal densities and a network of images; it must never know a data
//! set: where the ranges end is given to it.

use super::velocity_field::{VelocityField, time_column};
use super::{Buffer, UNet};
use crate::array::DType;
use crate::tensor::Tensor;
use crate::tree;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Bound of the logarithm of a weight: `e^8` is as sure as anything is of a gray level.
const MOST: f64 = 8.0;
/// The least deviation that ranges are softened by: at t = 1 their ends would be steps, which no solver likes.
const SOFTEST: f64 = 0.05;

tree! {
    /// The velocity of a straight path to a pixel whose density is a normal one, reweighted on ranges of its values:
    ///
    /// `v = (2 t - 1) / r^2 x + G / r`, `r^2 = (1 - t)^2 + t^2`, `y = x / r`, and with `s = max((1 - t) / r, 0.05)`,
    /// `a_k = (c_k - y t / r) / s` for the ends c_k of ranges, weights w_k of the ranges,
    ///
    /// `G = sum_k (w_(k+1) - w_k) phi(a_k) / sum_k w_k (Phi(a_k) - Phi(a_(k-1)))`,
    ///
    /// a_0 and the last a_k being infinite. Given x at t, the pixel at t = 1 is normal with mean `y t / r` and deviation
    /// `(1 - t) / r` where pixels are independent, and G is the mean of that normal reweighted by w_k on range k, in units of
    /// its deviation. The network sees `[y, 2 Phi(a_k) - 1]` and t and says o_k, `w_k = exp(8 tanh(o_k / 8))`. A network that
    /// says 0 makes the flow of independent pixels.
    ///
    /// # Numerics
    /// v is the velocity of such pixels to t = 0.95, where the deviation is 0.0525. From t = 0.9525 on the deviation in the
    /// formula is 0.05: v is a smooth field and its flow has a density, but that is of ranges with ends blurred by 0.05, and
    /// v is no more the mean of `x1 - x0` given x.
    ///
    /// Weights of two ranges may be `e^16` apart. So the probabilities of ranges are found in f64, where a tail of 1e-10 beside 1
    /// is not lost, and summed as they are, all positive, in the type of x.
    ///
    /// # Shapes and units
    /// Rows of `height width channels` pixels, c `[ends, pixels]` ascending along each pixel; the network is one of images
    /// with `ends + 1` channels for each channel of a pixel.
    ///
    /// # References
    /// The velocity of a normal density: Lipman et al. (2023), Flow matching for generative modeling, eq. 8 and 22; the mean
    /// of a truncated normal: Johnson, Kotz and Balakrishnan (1994), Continuous univariate distributions 1, section 13.10.1.
    pub struct LevelMixture {
        /// c, not trained.
        pub ends: Buffer,
        /// What says how likely each range is.
        pub net: UNet,
    }
}

impl LevelMixture {
    /// Ranges that end at `ends`, weighted by a network.
    ///
    /// # Panics
    /// When the network's images have not as many numbers as `ends` has pixels times ranges.
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

/// The normal distribution function.
fn distribution(x: &Tensor) -> Tensor {
    (x * FRAC_1_SQRT_2).erf() * 0.5 + 0.5
}

/// What lies between the ends of each range, of what lies below each end.
fn within(below: &Tensor) -> Tensor {
    let (axis, count) = (below.rank() - 1, below.shape()[below.rank() - 1]);
    let edge = |x: f64| Tensor::full(below.dtype(), below.shape().with_axis(axis, 1), x);
    let ends = Tensor::concat(&[&edge(0.0), below, &edge(1.0)], axis);
    ends.slice(axis, 1..count + 2) - ends.slice(axis, 0..count + 1)
}

/// The normal density.
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
        assert!(x.shape()[1] == d, "a row has {d} pixels, not {}", x.shape()[1]);
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
        let said = self.net.eval_conditional(&t, &seen.reshape([n, d * (count + 1)]), labels).reshape([
            n,
            d,
            count + 1,
        ]);
        let weights = ((said * (1.0 / MOST)).tanh() * MOST).exp();
        let mass = (&weights * within(&below).cast(x.dtype())).sum_last();
        let step = weights.slice(2, 1..count + 1) - weights.slice(2, 0..count);
        let gain = (step * density(&a)).sum_last() / mass;
        let drawn = (&t * 2.0 - 1.0) / square;
        x * drawn + gain / r
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
