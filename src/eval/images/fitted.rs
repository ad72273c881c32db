//! A learned density of images, asked from outside: samples as gray levels, bits of other images.

use super::ImagesFrame;
use super::bits::{BitsPerDim, Dequantized, IMAGE_TOLERANCE, ImageDensities, nats_of_bits};
use super::samples::{column, for_samples, levels};
use crate::cnf::Streamed;
use crate::cnf::config::Flow;
use crate::data::{DataError, ImageSet, PixelTransform};
use crate::error::Result;
use crate::eval::{EvalError, Fitted, check_tolerances};
use crate::tensor::{Key, Tensor};

/// Images of a part: what is solved and handed over at once.
const PART: usize = 256;
/// Images that are drawn a second time where each is drawn once, to measure what the draws add to the error.
const REPEATED: usize = 256;

impl Fitted {
    pub(in crate::eval) fn images(&self, what: &'static str) -> Result<(&ImagesFrame, &PixelTransform)> {
        let of_images = self.frames.images.as_ref().zip(self.pixels.as_ref());
        let name = || self.frames.points.as_ref().map_or("an image".to_owned(), |points| points.name.clone());
        of_images.ok_or_else(|| EvalError::NoImages { what, name: name() }.into())
    }

    /// n images drawn from the density, of a class where the run has classes: gray levels
    /// `[n, height, width, channels]`, in parts. A longer draw by the same key begins with the images of a shorter one. A
    /// part whose solve ended early is an error.
    ///
    /// # Errors
    /// A run that learned no images; a class that it has not, or none where it has some.
    pub fn sample_images<'a>(
        &'a self,
        n: usize,
        label: Option<usize>,
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
        let program = Streamed::new(PART, |flow: &Flow, rows: &Tensor, _: &Key| {
            let (flow, z) = flow.part(rows);
            flow.push_forward(&z)
        });
        Ok((0u32..).zip((0..n).step_by(PART)).map(move |(i, start)| {
            let z = flow.base.sample(PART, flow.dtype(), &key.fold_in(Tensor::from(i)));
            let (flow, rows) = given.as_ref().unwrap_or(&flow).join(&z);
            // The rows of a tile share their steps, so the last part is pushed whole and cut afterwards.
            let mut points = program.call(&flow, &rows, key)?.to_vec();
            points.truncate((n - start) * d);
            Ok(levels(transform, &points))
        }))
    }

    /// Bits per dimension of images that the flow has not seen, each dequantized once, solved to [`IMAGE_TOLERANCE`] with
    /// Hutchinson's estimate: an upper bound of what their gray levels cost, with its standard error.
    ///
    /// # Errors
    /// As [`image_log_probs`](Self::image_log_probs).
    pub fn bits_per_dim(&self, images: &ImageSet, key: &Key) -> Result<BitsPerDim> {
        Ok(self.image_log_probs(images, (IMAGE_TOLERANCE, IMAGE_TOLERANCE), 1, key, |_| {})?.1)
    }

    /// The log-probability of the gray levels of images in nats, a lower bound of it: each dequantized `draws` times,
    /// solved with Hutchinson's estimate, averaged; `told` after each part with how many images it had.
    ///
    /// # Errors
    /// A run that learned no images, images of another size, tolerances out of range, no draw, no classes where the run
    /// has some, a file that has gone, a solve that ended early.
    pub fn image_log_probs(
        &self,
        images: &ImageSet,
        tolerance: (f64, f64),
        draws: usize,
        key: &Key,
        mut told: impl FnMut(usize),
    ) -> Result<(Vec<f64>, BitsPerDim)> {
        check_tolerances(tolerance.0, tolerance.1)?;
        let (frame, transform) = self.images("bits of images")?;
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
                told(part.len());
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

/// Refuses images of another size than the run's, and images without classes where it has some.
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
