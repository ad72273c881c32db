//! From pixel values to real numbers and back: uniform dequantization, and transforms with their Jacobians.
//!
//! A model has a density q of the transformed image z, and `log p(x) = log q(z) + log_det`. Images are points
//! x of the unit cube, `x = (level + u) / 256` with levels 0..=255 and u uniform in (0, 1). A density of x
//! then gives a lower bound on the log-probability of the levels (L. Theis et al. 2016, A note on the
//! evaluation of generative models, eq. 5).

mod logit;
mod marginals;

pub use logit::LogitTransform;
pub use marginals::{MarginalTransform, SMOOTHING};

use rand::Rng;

/// Number of byte values.
const LEVELS: usize = 256;
/// Images per read when a transform is fitted.
const BLOCK: usize = 1024;

/// `x = (level + u) / 256` in (0, 1), u uniform: one random number per byte.
pub fn dequantize<R: Rng + ?Sized>(bytes: &[u8], rng: &mut R) -> Vec<f64> {
    // u is the middle of one of 2^32 cells, so it is never 0, where a quantile would be infinite.
    let uniform = |word: u32| (f64::from(word) + 0.5) * 2f64.powi(-32);
    bytes.iter().map(|&level| (f64::from(level) + uniform(rng.next_u32())) / LEVELS as f64).collect()
}

/// Bits per dimension of an image whose log-density over the unit cube is `log_prob` nats:
/// `8 - log_prob / (dim ln 2)`; the uniform density has 8.
///
/// # Examples
/// ```
/// use flowline::data::extra::bits_per_dim;
/// assert_eq!(bits_per_dim(0.0, 784), 8.0);
/// assert!((bits_per_dim(784.0 * 2f64.ln(), 784) - 7.0).abs() < 1e-12);
/// ```
pub fn bits_per_dim(log_prob: f64, dim: usize) -> f64 {
    (LEVELS as f64).log2() - log_prob / (dim as f64 * std::f64::consts::LN_2)
}

/// Maps points of the unit cube to the coordinates that a flow learns, and back.
#[derive(Clone, Debug, PartialEq)]
pub enum PixelTransform {
    /// Each pixel is mapped through its own distribution to a normal variable.
    Marginals(MarginalTransform),
    /// Each pixel is mapped through the logit and standardized.
    Logit(LogitTransform),
}

impl PixelTransform {
    /// Number of coordinates of an image.
    pub fn dim(&self) -> usize {
        match self {
            Self::Marginals(marginals) => marginals.dim(),
            Self::Logit(logit) => logit.mean.len(),
        }
    }

    /// z `[rows, dim]` for points x `[rows, dim]` in the open unit cube, and `ln |det dz/dx|` `[rows]`.
    ///
    /// # Panics
    /// When the length is not a multiple of `dim`.
    #[track_caller]
    pub fn forward(&self, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let d = self.dim();
        assert!(
            x.len().is_multiple_of(d),
            "{} coordinates are not a multiple of the image size {d}",
            x.len()
        );
        let (mut z, mut log_det) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len() / d));
        for image in x.chunks_exact(d) {
            let mut sum = 0.0;
            for (i, &x) in image.iter().enumerate() {
                let (to, log_derivative) = match self {
                    Self::Marginals(marginals) => marginals.forward(i, x),
                    Self::Logit(logit) => logit.forward(i, x),
                };
                z.push(to);
                sum += log_derivative;
            }
            log_det.push(sum);
        }
        (z, log_det)
    }

    /// Only the z of [`forward`](Self::forward), in single precision, for the rows of a batch.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn points(&self, x: &[f64]) -> Vec<f32> {
        let d = self.dim();
        assert!(
            x.len().is_multiple_of(d),
            "{} coordinates are not a multiple of the image size {d}",
            x.len()
        );
        let to = |(i, &x): (usize, &f64)| match self {
            Self::Marginals(marginals) => marginals.to_normal(i % d, x).0,
            Self::Logit(logit) => (logit.logit(x).0 - logit.mean[i % d]) / logit.std[i % d],
        };
        x.iter().enumerate().map(|x| to(x) as f32).collect()
    }

    /// The points x in `[0, 1]` for z, both `[rows, dim]`: turns samples into images.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn inverse(&self, z: &[f64]) -> Vec<f64> {
        let d = self.dim();
        assert!(
            z.len().is_multiple_of(d),
            "{} coordinates are not a multiple of the image size {d}",
            z.len()
        );
        let back = |(i, &z): (usize, &f64)| match self {
            Self::Marginals(marginals) => marginals.inverse(i % d, z),
            Self::Logit(logit) => logit.inverse(i % d, z),
        };
        z.iter().enumerate().map(back).collect()
    }
}

impl From<MarginalTransform> for PixelTransform {
    fn from(marginals: MarginalTransform) -> Self {
        Self::Marginals(marginals)
    }
}

impl From<LogitTransform> for PixelTransform {
    fn from(logit: LogitTransform) -> Self {
        Self::Logit(logit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImageSet, normal};
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    /// Images of 2 x 3 pixels: one pixel always black, one mostly black, the other pixels with many levels.
    fn images(n: usize) -> (crate::io::Scratch, ImageSet, Vec<u8>) {
        let mut rng = SmallRng::seed_from_u64(1);
        let image = |i: usize| {
            let level: u8 = rng.random_range(0..200);
            [0, if i == 7 { 255 } else { 0 }, level, level / 2, 255 - level, rng.random()]
        };
        let bytes: Vec<u8> = (0..n).flat_map(image).collect();
        let folder = crate::io::scratch();
        let path = folder.path().join("set.idx");
        let header = [[0, 0, 8, 3], (n as u32).to_be_bytes(), [0, 0, 0, 2], [0, 0, 0, 3]].concat();
        std::fs::write(&path, [header, bytes.clone()].concat()).unwrap();
        let set = ImageSet::open(&path).unwrap();
        (folder, set, bytes)
    }

    fn all(set: &ImageSet) -> Vec<usize> {
        (0..set.len()).collect()
    }

    fn transforms(set: &ImageSet) -> [PixelTransform; 2] {
        let logit = LogitTransform::fit(set, &all(set), 0.01, &mut SmallRng::seed_from_u64(2)).unwrap();
        [MarginalTransform::fit(set, &all(set)).unwrap().into(), logit.into()]
    }

    #[test]
    fn the_marginals_alone_cost_the_entropy_of_the_counts() {
        let (_folder, set, bytes) = images(3_000);
        let (n, d) = (set.len() as f64, set.dim());
        let mut counts = vec![0u32; d * LEVELS];
        bytes.iter().enumerate().for_each(|(i, &v)| counts[i % d * LEVELS + usize::from(v)] += 1);
        let bits = |c: &&u32| -f64::from(**c) / n * (f64::from(**c) / n).log2();
        let entropy = counts.iter().filter(|c| **c > 0).map(|c| bits(&c)).sum::<f64>() / d as f64;
        let cost = |transform: &PixelTransform| {
            let x = dequantize(&bytes, &mut SmallRng::seed_from_u64(3));
            let (z, log_det) = transform.forward(&x);
            let base = |z: &[f64]| z.iter().map(|&z| normal::ln_density(z)).sum::<f64>();
            let log_prob: f64 = z.chunks_exact(d).zip(log_det).map(|(z, l)| base(z) + l).sum::<f64>() / n;
            bits_per_dim(log_prob, d)
        };
        let exact = cost(&MarginalTransform::from_counts(&counts, 0.0).into());
        assert!((exact - entropy).abs() < 1e-9, "{exact} {entropy}");
        // Smoothing costs about its share of the counts, 0.02 x 256 / 3,000.
        let smoothed = cost(&MarginalTransform::fit(&set, &all(&set)).unwrap().into());
        assert!(smoothed > entropy && smoothed < entropy + 5e-3, "{smoothed} {entropy}");
    }

    #[test]
    fn transforms_come_back_and_their_determinants_are_those_of_differences() {
        let (_folder, set, bytes) = images(500);
        for transform in transforms(&set) {
            let x = dequantize(&bytes, &mut SmallRng::seed_from_u64(4));
            let (z, log_det) = transform.forward(&x);
            let back = transform.inverse(&z);
            let far = back.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far < 1e-9, "{far}");
            // The finite difference along each coordinate stays within the level.
            let d = transform.dim();
            for (row, want) in log_det.iter().enumerate().take(50) {
                let image = &x[row * d..(row + 1) * d];
                let derivative = |i: usize| {
                    let level = (image[i] * 256.0).floor();
                    let h = 1e-3 * (image[i] - level / 256.0).min((level + 1.0) / 256.0 - image[i]);
                    let at = |to: f64| {
                        let mut moved = image.to_vec();
                        moved[i] += to;
                        transform.forward(&moved).0[i]
                    };
                    ((at(h) - at(-h)) / (2.0 * h)).ln()
                };
                let found: f64 = (0..d).map(derivative).sum();
                assert!((found - want).abs() < 1e-3, "{found} {want}");
            }
        }
    }

    #[test]
    fn marginals_make_the_training_pixels_normal_and_the_logit_standard() {
        let (_folder, set, bytes) = images(2_000);
        for (transform, square) in transforms(&set).into_iter().zip([0.05, 0.02]) {
            let (z, _) = transform.forward(&dequantize(&bytes, &mut SmallRng::seed_from_u64(6)));
            for i in 0..set.dim() {
                let pixel = || z.iter().skip(i).step_by(set.dim());
                let mean = pixel().sum::<f64>() / 2_000.0;
                let variance = pixel().map(|z| z * z).sum::<f64>() / 2_000.0;
                assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.1 + square, "{i}: {mean} {variance}");
            }
        }
    }

    #[test]
    fn levels_come_back_from_both_tails_and_beyond() {
        let (_folder, set, _) = images(3_000);
        let [marginals, _] = transforms(&set);
        let d = set.dim();
        // Level 255 of a pixel that is always black has 0.02 of 3,005 counts and a large z.
        for level in [0u8, 1, 128, 254, 255] {
            let x = dequantize(&vec![level; d], &mut SmallRng::seed_from_u64(8));
            let back = marginals.inverse(&marginals.forward(&x).0);
            assert!(back.iter().all(|&x| (x * 256.0).floor() == f64::from(level)), "{level}: {back:?}");
        }
        assert!(marginals.inverse(&vec![-40.0; d]).iter().all(|&x| x < 1e-9));
        assert!(marginals.inverse(&vec![40.0; d]).iter().all(|&x| x > 1.0 - 1e-9));
    }

    #[test]
    fn dequantized_levels_stay_in_their_cell_and_a_seed_repeats_them() {
        let bytes: Vec<u8> = (0..=255).collect();
        let x = dequantize(&bytes, &mut SmallRng::seed_from_u64(9));
        assert!(x.iter().zip(&bytes).all(|(x, &v)| (x * 256.0).floor() == f64::from(v)));
        assert_eq!(x, dequantize(&bytes, &mut SmallRng::seed_from_u64(9)));
        let mean = x.iter().sum::<f64>() / 256.0;
        assert!((mean - 0.5).abs() < 1e-3, "{mean}");
    }
}
