//! Bits/dim of images under a flow, with standard errors.
//!
//! `bits/dim = 8 - log p(x) / (d ln 2)`, x a uniformly dequantized image: an upper bound on the code length
//! of its pixel values (Theis et al. 2016, A note on the evaluation of generative models, eq. 5).
//! Dequantization noise and Hutchinson's probe are both random. They are sampled together, once or more per
//! image. The standard error that they cause is reported beside the standard error over the images.

use super::samples::column;
use crate::cnf::config::Flow;
use crate::cnf::{Chunked, Divergence, ErrorNorm, ProbeDistribution};
use crate::data::{DataError, Estimate, ImageSet, PixelTransform, bits_per_dim, dequantize, subset};
use crate::error::{Error, Result};
use crate::eval::{Deadline, Work};
use crate::ode::Method;
use crate::tensor::{Key, Tensor};
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;
use std::fmt;
use std::sync::Arc;

/// Images per call of the compiled program, and the smallest number under a time limit.
const ROWS: usize = 128;
const ROWS_LEAST: usize = 32;
/// Rows per tile.
const TILE: usize = 16;
/// Tolerance of bits/dim and of samples, relative and absolute.
pub const IMAGE_TOLERANCE: f64 = 1e-3;
/// Maximum number of validation images for checks and for the table of tolerances, and of test images.
const WATCHED: usize = 128;
const TESTED: usize = 1_000;
/// Tolerances of the table.
const TOLERANCES: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];
/// Combined with a run's seed, so that these two uses have their own random numbers.
const WATCHED_STREAM: u64 = 0x70f5_0f7e_57da_7a14;
const TEST_STREAM: u64 = 0x70f5_0f7e_57da_7a15;

/// Converts bits/dim to nats per image.
pub(crate) fn nats_of_bits(bits: f64, dim: usize) -> f64 {
    bits * dim as f64 * LN_2
}

/// Converts nats per image to bits/dim.
pub(crate) fn bits_of_nats(nats: f64, dim: usize) -> f64 {
    nats / (dim as f64 * LN_2)
}

/// A mean of bits/dim and its errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BitsPerDim {
    /// The mean over the images, and its standard error over the choice of images.
    pub bits: Estimate,
    /// The part of the error from dequantization and probes for fixed images; `None` if no image was
    /// evaluated a second time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_stderr: Option<f64>,
    /// Draws of noise and probe per image.
    pub draws: usize,
    /// Mean number of function evaluations per solve, with the divergence.
    pub field_evals: f64,
}

impl BitsPerDim {
    /// `bits` holds `draws` values per image: first one value of each image, then the second ones, and so on.
    pub(super) fn of(bits: &[f64], draws: usize, field_evals: f64) -> BitsPerDim {
        let n = bits.len() / draws;
        let of_image = |i: usize| (0..draws).map(|k| bits[k * n + i]).sum::<f64>() / draws as f64;
        let means: Vec<f64> = (0..n).map(of_image).collect();
        let within: f64 = bits.iter().enumerate().map(|(j, &x)| (x - means[j % n]).powi(2)).sum();
        let noise = || (within / (n * (draws - 1)) as f64 / (n * draws) as f64).sqrt();
        BitsPerDim { bits: Estimate::of(&means), noise_stderr: (draws > 1).then(noise), draws, field_evals }
    }
}

/// Prints `1.0696 ± 0.0027 bits/dim`.
impl fmt::Display for BitsPerDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.bits, f)?;
        f.write_str(" bits/dim")
    }
}

/// The bits/dim of a few validation images at one tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToleranceRow {
    /// Relative and absolute tolerance of the solve.
    pub tolerance: f64,
    /// Bits/dim.
    pub bits_per_dim: f64,
    /// Its standard error over the images, which are the same in each row; `None` in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_stderr: Option<f64>,
    /// Mean number of function evaluations per solve, with the divergence.
    pub field_evals: f64,
}

/// Log-densities of images with one tolerance and one compiled program.
pub(crate) struct ImageDensities {
    program: Chunked<'static, Flow, (Tensor, Tensor)>,
    rows: usize,
}

impl ImageDensities {
    pub(crate) fn new(rtol: f64, atol: f64) -> ImageDensities {
        ImageDensities::of_rows(ROWS, rtol, atol)
    }

    /// [`ImageDensities::new`] with this number of images per call, which determines the random numbers of an image.
    fn of_rows(rows: usize, rtol: f64, atol: f64) -> ImageDensities {
        let solve = move |flow: &Flow, rows: &Tensor, key: &Key| {
            let flow = flow
                .clone()
                .divergence(Divergence::hutchinson(ProbeDistribution::Rademacher))
                .method(Method::Tsit5);
            let flow = flow.error_norm(ErrorNorm::default()).rtol(rtol).atol(atol).rows_per_tile(TILE);
            let (flow, z) = flow.part(rows);
            let (log_prob, stats) = flow.log_prob_with_stats(&z, key)?;
            let evals = stats.num_fn_evals.reshape([1]).broadcast_to([rows.shape()[0]]);
            Ok((log_prob, evals))
        };
        ImageDensities { program: Chunked::new(rows, solve), rows }
    }

    /// `log q(z)` of the first `most` rows, or as many as there is time for, and the mean number of function
    /// evaluations.
    fn eval(
        &self,
        flow: &Flow,
        (images, most): (&Dequantized, usize),
        key: &Key,
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Vec<f64>, f64)> {
        let d = images.dim;
        let mut found = Vec::with_capacity(images.log_det.len());
        let mut evals = 0.0;
        let n = most.min(images.log_det.len());
        by.in_chunks((Work::ImageScore, n, self.rows, self.rows), progress, |part| {
            let i = (part.start / self.rows) as u32;
            let rows = images.z[part.start * d..part.end * d].to_vec();
            let rows = Tensor::from_vec([part.len(), d], rows).cast(flow.dtype());
            let labels = images.labels.as_ref().map(|all| &all[part]);
            let given =
                labels.map(|all| flow.condition_on_classes(&column(flow, all.iter().map(|&k| k as usize))));
            let (flow, rows) = given.as_ref().unwrap_or(flow).join(&rows);
            let (log_prob, of_part) = self.program.call(&flow, &rows, &key.fold_in(Tensor::from(i)))?;
            found.extend(log_prob.to_vec());
            evals += of_part.to_vec().iter().sum::<f64>();
            Ok::<_, Error>(())
        })?;
        let n = found.len().max(1) as f64;
        Ok((found, evals / n))
    }

    /// Bits/dim of each image, and the mean number of function evaluations.
    ///
    /// # Errors
    /// A solve that ended early.
    pub(crate) fn bits(&self, flow: &Flow, images: &Dequantized, key: &Key) -> Result<(Vec<f64>, f64)> {
        self.bits_by(flow, (images, usize::MAX), key, &Deadline::none(), &mut |_| ())
    }

    /// [`bits`](Self::bits) of the first `most` images, or as many as there is time for.
    ///
    /// # Errors
    /// A solve that ended early.
    fn bits_by(
        &self,
        flow: &Flow,
        (images, most): (&Dequantized, usize),
        key: &Key,
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Vec<f64>, f64)> {
        let (log_prob, evals) = self.eval(flow, (images, most), key, by, progress)?;
        let bits = |(q, det): (f64, &f64)| bits_per_dim(q + det, images.dim);
        Ok((log_prob.into_iter().zip(&images.log_det).map(bits).collect(), evals))
    }

    /// Number of traces of the program.
    pub(crate) fn traces(&self) -> usize {
        self.program.traces()
    }
}

/// Dequantized and transformed images: z, `ln |det dz/dx|`, classes.
#[derive(Clone, Debug)]
pub(crate) struct Dequantized {
    z: Vec<f32>,
    log_det: Vec<f64>,
    labels: Option<Vec<u32>>,
    dim: usize,
}

impl Dequantized {
    /// Reads the images with these indices, with noise from the key.
    pub(crate) fn read(
        images: &ImageSet,
        which: &[usize],
        transform: &PixelTransform,
        key: &Key,
    ) -> std::result::Result<Dequantized, DataError> {
        let labels = images.labels().map(|all| which.iter().map(|&i| u32::from(all[i])).collect());
        Ok(Dequantized::of(&images.rows(which)?, labels, transform, key))
    }

    /// Images as bytes, with noise from the key.
    pub(super) fn of(
        bytes: &[u8],
        labels: Option<Vec<u32>>,
        transform: &PixelTransform,
        key: &Key,
    ) -> Dequantized {
        let (z, log_det) = transform.forward(&dequantize(bytes, &mut key.rng()));
        Dequantized { z: z.into_iter().map(|z| z as f32).collect(), log_det, labels, dim: transform.dim() }
    }
}

/// The image sets of a run, with the held-out images ready to be scored.
pub(crate) struct Images {
    /// The training set, and the indices of its training images.
    #[cfg_attr(not(feature = "plot"), expect(dead_code, reason = "figures show samples beside them"))]
    pub set: Arc<ImageSet>,
    #[cfg_attr(not(feature = "plot"), expect(dead_code, reason = "figures show samples beside them"))]
    pub train: Vec<usize>,
    pub transform: PixelTransform,
    /// The validation images for checks, and the key of their probes.
    watched: (Dequantized, Key),
    test: (Dequantized, Key),
    densities: ImageDensities,
    /// Programs compiled for the table of tolerances.
    compiled: usize,
}

impl Images {
    /// `train` are the indices of the training images in `set`; validation and test images are indices into
    /// the same set or another one.
    ///
    /// # Errors
    /// A file of images cannot be read.
    pub(crate) fn new(
        set: Arc<ImageSet>,
        train: Vec<usize>,
        validation: (&ImageSet, Vec<usize>),
        test: (&ImageSet, Vec<usize>),
        transform: PixelTransform,
        seed: u64,
    ) -> Result<Images> {
        let read = |(set, rows): (&ImageSet, Vec<usize>), most, stream| -> Result<_> {
            let (few, key) = (subset(&rows, set.labels(), most, seed ^ stream), Key::new(seed ^ stream));
            Ok((Dequantized::read(set, &few, &transform, &key)?, key))
        };
        let watched = read(validation, WATCHED, WATCHED_STREAM)?;
        let test = read(test, TESTED, TEST_STREAM)?;
        let densities = ImageDensities::new(IMAGE_TOLERANCE, IMAGE_TOLERANCE);
        Ok(Images { set, train, transform, watched, test, densities, compiled: 0 })
    }

    /// Scores in short calls from now on, with enough tiles for all threads.
    pub(crate) fn in_short_calls(&mut self) {
        let rows = (2 * TILE * rayon::current_num_threads()).clamp(ROWS_LEAST, ROWS);
        self.densities = ImageDensities::of_rows(rows, IMAGE_TOLERANCE, IMAGE_TOLERANCE);
    }

    /// Number of images per call.
    pub(crate) fn rows_per_call(&self) -> usize {
        self.densities.rows
    }

    /// Number of validation images for checks.
    pub(crate) fn watched(&self) -> usize {
        self.watched.0.log_det.len()
    }

    /// NLL in nats of the first `most` of a few validation images, or as many as there is time for.
    pub(crate) fn watch(
        &self,
        flow: &Flow,
        most: usize,
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Estimate> {
        self.nats(flow, (&self.watched, most), by, progress)
    }

    /// NLL in nats of the test images, as many as there is time for.
    pub(crate) fn test(&self, flow: &Flow, by: &Deadline, progress: &mut dyn FnMut(f64)) -> Result<Estimate> {
        self.nats(flow, (&self.test, usize::MAX), by, progress)
    }

    fn nats(
        &self,
        flow: &Flow,
        ((images, key), most): (&(Dequantized, Key), usize),
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Estimate> {
        let (bits, _) = self.densities.bits_by(flow, (images, most), key, by, progress)?;
        Ok(Estimate::of(&bits).times(nats_of_bits(1.0, images.dim)))
    }

    /// Bits/dim of the same images, noise and probes for each tolerance; empty if there is no time for all of them.
    pub(crate) fn tolerances(&mut self, flow: &Flow, by: &Deadline) -> Result<Vec<ToleranceRow>> {
        let (few, key) = &self.watched;
        let row = |tolerance: f64| {
            let (bits, field_evals) = ImageDensities::new(tolerance, tolerance).bits(flow, few, key)?;
            let Estimate { mean, stderr, .. } = Estimate::of(&bits);
            let row =
                ToleranceRow { tolerance, bits_per_dim: mean, bits_per_dim_stderr: stderr, field_evals };
            Ok::<_, Error>(row)
        };
        let mut rows = Vec::new();
        // A tenth of the tolerance takes about twice as many steps. The unit is an image at the tolerance of scores.
        let units = |tolerance: f64| {
            self.watched.0.log_det.len() as f64 * (IMAGE_TOLERANCE / tolerance).log10().exp2()
        };
        for (i, &tolerance) in TOLERANCES.iter().enumerate() {
            if !by.fits(Work::ImageScore, TOLERANCES[i..].iter().map(|&tolerance| units(tolerance)).sum()) {
                return Ok(Vec::new());
            }
            rows.push(by.watch.run(Work::ImageScore, units(tolerance), || row(tolerance))?);
            self.compiled += 1;
        }
        Ok(rows)
    }

    /// Number of programs compiled.
    pub(crate) fn traces(&self) -> usize {
        self.densities.traces() + self.compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_images_and_of_the_draws() {
        // Two draws of three images: means 1, 2, 3; the draws of an image differ by 0.2.
        let bits = [0.9, 1.9, 2.9, 1.1, 2.1, 3.1];
        let found = BitsPerDim::of(&bits, 2, 7.0);
        assert!((found.bits.mean - 2.0).abs() < 1e-12 && found.bits.count == 3);
        assert!((found.bits.stderr.unwrap() - (1.0f64 / 3.0).sqrt()).abs() < 1e-12, "{found:?}");
        // The variance of a draw is 0.02, and there are six.
        assert!((found.noise_stderr.unwrap() - (0.02f64 / 6.0).sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(BitsPerDim::of(&bits, 1, 0.0).noise_stderr, None);
    }
}
