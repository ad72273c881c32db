//! Each pixel through the logit, standardized: the usual transform (L. Dinh et al. 2017, Density estimation
//! using Real NVP, section 4.1), for comparison.
//!
//! With this transform, a flow needs minutes of training to become better than the model of independent
//! pixels, because the transform uses the mean and standard deviation of each pixel, but not the
//! probabilities of its levels.

use super::{BLOCK, dequantize};
use crate::data::{DataError, ImageSet};
use rand::Rng;

/// Each pixel through the logit, then standardized: `z = (logit(alpha + (1 - 2 alpha) x) - mean) / std`.
#[derive(Clone, Debug, PartialEq)]
pub struct LogitTransform {
    /// The argument of the logit lies in [alpha, 1 - alpha], because the logit is infinite at 0 and 1.
    pub alpha: f64,
    /// Mean of each pixel's logit `[dim]`.
    pub mean: Vec<f64>,
    /// Standard deviation of each pixel's logit `[dim]`.
    pub std: Vec<f64>,
}

impl LogitTransform {
    /// Fits means and standard deviations to the images with the given numbers. The images are read in blocks
    /// and dequantized once.
    ///
    /// # Errors
    /// As [`ImageSet::rows`].
    ///
    /// # Panics
    /// When alpha is not in (0, 1/2), or no images are given.
    #[track_caller]
    pub fn fit<R: Rng + ?Sized>(
        images: &ImageSet,
        rows: &[usize],
        alpha: f64,
        rng: &mut R,
    ) -> Result<Self, DataError> {
        assert!(alpha > 0.0 && alpha < 0.5, "alpha must be in (0, 1/2), got {alpha}");
        assert!(!rows.is_empty(), "a logit transform needs at least one image");
        let d = images.dim();
        let mut fitted = Self { alpha, mean: vec![0.0; d], std: vec![0.0; d] };
        let mut seen = 0.0;
        for part in rows.chunks(BLOCK) {
            for image in dequantize(&images.rows(part)?, rng).chunks_exact(d) {
                // Welford's update: a sum of squares would lose the digits of pixels that hardly vary.
                seen += 1.0;
                for (i, &x) in image.iter().enumerate() {
                    let y = fitted.logit(x).0;
                    let before = y - fitted.mean[i];
                    fitted.mean[i] += before / seen;
                    fitted.std[i] += before * (y - fitted.mean[i]);
                }
            }
        }
        // If there is a single image, the sum is 0, and the pixels are not scaled.
        let std = |sum: f64| if sum > 0.0 { (sum / seen).sqrt() } else { 1.0 };
        fitted.std.iter_mut().for_each(|s| *s = std(*s));
        Ok(fitted)
    }

    /// The logit of x, and the logarithm of its derivative.
    pub(super) fn logit(&self, x: f64) -> (f64, f64) {
        let scale = 1.0 - 2.0 * self.alpha;
        let (from_0, from_1) = (self.alpha + scale * x, self.alpha + scale * (1.0 - x));
        ((from_0 / from_1).ln(), scale.ln() - from_0.ln() - from_1.ln())
    }

    pub(super) fn forward(&self, pixel: usize, x: f64) -> (f64, f64) {
        let (y, log_derivative) = self.logit(x);
        ((y - self.mean[pixel]) / self.std[pixel], log_derivative - self.std[pixel].ln())
    }

    pub(super) fn inverse(&self, pixel: usize, z: f64) -> f64 {
        let y = self.mean[pixel] + self.std[pixel] * z;
        let s = 1.0 / (1.0 + (-y).exp());
        ((s - self.alpha) / (1.0 - 2.0 * self.alpha)).clamp(0.0, 1.0)
    }
}
