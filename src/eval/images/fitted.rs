//! The public interface to a density of images: samples as pixel values, bits/dim of given images.

use super::ImagesFrame;
use super::bits::{BitsPerDim, Dequantized, IMAGE_TOLERANCE, ImageDensities, nats_of_bits};
use super::samples::{column, for_samples, levels};
use crate::cnf::Streamed;
use crate::cnf::config::Flow;
use crate::data::{DataError, ImageSet, PixelTransform};
use crate::error::Result;
use crate::eval::{EvalError, Fitted, check_tolerances};
use crate::tensor::{Key, Tensor};

/// Images per part.
const PART: usize = 256;
/// If there is one draw per image: the maximum number of images that are drawn a second time, to estimate the
/// error from dequantization and probes.
const REPEATED: usize = 256;

impl Fitted {
    pub(in crate::eval) fn images(&self, what: &'static str) -> Result<(&ImagesFrame, &PixelTransform)> {
        let of_images = self.frames.images.as_ref().zip(self.pixels.as_ref());
        let name = || self.frames.points.as_ref().map_or("an image".to_owned(), |points| points.name.clone());
        of_images.ok_or_else(|| EvalError::NoImages { what, name: name() }.into())
    }

    /// n sampled images, of a class if the run has classes, as pixel values `[n, height, width, channels]` in an
    /// iterator of parts. With the same key a longer draw starts with the images of a shorter one. A part whose solve
    /// ended early is an error.
    ///
    /// # Errors
    /// The run was not trained on an image set; the class does not exist, or the run has classes and none is given.
    pub fn sample_images<'a>(
        &'a self,
        n: usize,
        label: Option<usize>,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<Vec<u8>>> + 'a> {
        self.images_of(n, label, None, key)
    }

    /// [`sample_images`](Self::sample_images) in `steps` steps of fixed cost
    /// ([`Cnf::push_forward_in_steps`](crate::cnf::Cnf::push_forward_in_steps)): 2 evaluations of the vector field per
    /// step.
    ///
    /// # Errors
    /// As [`sample_images`](Self::sample_images).
    ///
    /// # Panics
    /// When there are no steps.
    #[track_caller]
    pub fn sample_images_in_steps<'a>(
        &'a self,
        n: usize,
        label: Option<usize>,
        steps: usize,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<Vec<u8>>> + 'a> {
        assert!(steps > 0, "steps is 0, but a sample needs at least one step");
        self.images_of(n, label, Some(steps), key)
    }

    fn images_of<'a>(
        &'a self,
        n: usize,
        label: Option<usize>,
        steps: Option<usize>,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<Vec<u8>>> + 'a> {
        let (frame, transform) = self.images("samples of images")?;
        match (label, frame.classes) {
            (None, None) => {}
            (Some(asked), Some(classes)) if asked < classes => {}
            (asked, classes) => return Err(EvalError::Class { asked, classes }.into()),
        }
        let (flow, d) = (for_samples(&self.flow), frame.dim());
        let given = label.map(|k| flow.condition_on(&column(&flow, std::iter::repeat_n(k, PART))));
        let program = Streamed::new(PART, move |flow: &Flow, rows: &Tensor, _: &Key| {
            let (flow, z) = flow.part(rows);
            steps.map_or_else(|| flow.push_forward(&z), |steps| flow.push_forward_in_steps(&z, steps))
        });
        Ok((0u32..).zip((0..n).step_by(PART)).map(move |(i, start)| {
            let z = flow.base.sample(PART, flow.dtype(), &key.fold_in(Tensor::from(i)));
            let (flow, rows) = given.as_ref().unwrap_or(&flow).join(&z);
            // The rows of a tile share their steps, so the last part is computed whole and truncated.
            let mut points = program.call(&flow, &rows, key)?.to_vec();
            points.truncate((n - start) * d);
            Ok(levels(transform, &points))
        }))
    }

    /// Bits/dim of unseen images, the mean over one dequantization of each, solved to [`IMAGE_TOLERANCE`] with
    /// Hutchinson's estimator: an upper bound on the code length of their pixel values, with its standard error.
    ///
    /// # Errors
    /// As [`image_log_probs`](Self::image_log_probs).
    pub fn bits_per_dim(&self, images: &ImageSet, key: &Key) -> Result<BitsPerDim> {
        Ok(self.image_log_probs(images, (IMAGE_TOLERANCE, IMAGE_TOLERANCE), 1, key, |_| {})?.1)
    }

    /// A lower bound on the log-probability of the images' pixel values, in nats (ELBO): the mean over
    /// `draws` dequantizations, with Hutchinson's estimator. Calls `progress` after each part with its number
    /// of images. If `draws` is 1, up to 256 images are evaluated a second time, to estimate the error from
    /// dequantization and probes.
    ///
    /// # Errors
    /// The run was not trained on an image set; images of another size, tolerances out of range, `draws` of 0, missing
    /// labels, a missing file, a solve that ended early.
    pub fn image_log_probs(
        &self,
        images: &ImageSet,
        tolerance: (f64, f64),
        draws: usize,
        key: &Key,
        mut progress: impl FnMut(usize),
    ) -> Result<(Vec<f64>, BitsPerDim)> {
        check_tolerances(tolerance.0, tolerance.1)?;
        let (frame, transform) = self.images("bits/dim of images")?;
        check_images(frame, images)?;
        if draws == 0 {
            return Err(EvalError::NoDraws.into());
        }
        let densities = ImageDensities::new(tolerance.0, tolerance.1);
        let which: Vec<usize> = (0..images.len()).collect();
        let (mut bits, mut evals) = (Vec::with_capacity(images.len() * draws), 0.0);
        let mut once = |which: &[usize], draw: u32, bits: &mut Vec<f64>| -> Result<()> {
            let key = key.fold_in(Tensor::from(draw));
            for (i, part) in (0u32..).zip(which.chunks(PART)) {
                let [noise, probes] = key.fold_in(Tensor::from(i)).split();
                let read = Dequantized::read(images, part, transform, &noise)?;
                let (of_part, took) = densities.bits(&self.flow, &read, &probes)?;
                evals += took * part.len() as f64;
                bits.extend(of_part);
                progress(part.len());
            }
            Ok(())
        };
        (0..draws as u32).try_for_each(|draw| once(&which, draw, &mut bits))?;
        let n = which.len();
        let mut again = Vec::new();
        if draws == 1 {
            once(&which[..n.min(REPEATED)], 1, &mut again)?;
        }
        let seen = (bits.len() + again.len()) as f64;
        let mut found = BitsPerDim::of(&bits, draws, evals / seen);
        if draws == 1 {
            let squares: f64 = again.iter().zip(&bits).map(|(a, b)| 0.5 * (a - b) * (a - b)).sum();
            found.noise_stderr = Some((squares / again.len() as f64 / n as f64).sqrt());
        }
        let mean = |i: usize| (0..draws).map(|k| bits[k * n + i]).sum::<f64>() / draws as f64;
        Ok(((0..n).map(|i| -nats_of_bits(mean(i), frame.dim())).collect(), found))
    }
}

/// Checks that images have the size of the training images and, if the run has classes, labels of these
/// classes.
fn check_images(frame: &ImagesFrame, images: &ImageSet) -> Result<()> {
    let found = [images.height, images.width, images.channels];
    if found != frame.size() {
        let (name, wanted) = (images.name.clone(), frame.size());
        return Err(DataError::OtherSize { name, found, wanted }.into());
    }
    let Some(classes) = frame.classes else { return Ok(()) };
    let Some(labels) = images.labels() else {
        return Err(DataError::NoLabels { name: images.name.clone() }.into());
    };
    match labels.iter().map(|&k| usize::from(k)).find(|&k| k >= classes) {
        Some(asked) => Err(EvalError::Class { asked: Some(asked), classes: Some(classes) }.into()),
        None => Ok(()),
    }
}
