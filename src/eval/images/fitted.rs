//! A density of images: samples as rows of pixel values, log-probabilities and bits/dim of given images.

use super::ImagesFrame;
use super::bits::{BitsPerDim, Dequantized, IMAGE_TOLERANCE, ImageDensities, nats_of_bits};
use super::samples::{column, for_samples, levels};
use crate::cnf::Chunked;
use crate::cnf::config::Flow;
use crate::data::{DataError, ImageSet, PixelTransform, Rows};
use crate::error::Result;
use crate::eval::EvalError;
use crate::eval::fitted::{Fitted, Parts};
use crate::tensor::{Key, Tensor};
use std::ops::Range;

/// Images per part.
const PART: usize = 256;
/// If there is one draw per image: the maximum number of images that are drawn a second time, to estimate the
/// error from dequantization and probes.
const REPEATED: usize = 256;

/// Images to score: a set, or rows of pixel values.
enum Scored<'a> {
    Set(&'a ImageSet),
    Rows(Vec<u8>),
}

/// Bits/dim of a part: for each draw the values of its images, and the number of function evaluations of all.
struct PartBits {
    draws: Vec<Vec<f64>>,
    evals: f64,
}

/// Log-probabilities of images, and the mean of their bits/dim.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageScores {
    /// In nats, one per image.
    pub log_probs: Vec<f64>,
    /// The mean over the images, with its errors.
    pub bits_per_dim: BitsPerDim,
}

impl Fitted {
    pub(in crate::eval) fn images(&self, what: &'static str) -> Result<(&ImagesFrame, &PixelTransform)> {
        let of_images = self.frames.images.as_ref().zip(self.pixels.as_ref());
        let name = || self.frames.points.as_ref().map_or("an image".to_owned(), |points| points.name.clone());
        of_images.ok_or_else(|| EvalError::NoImages { what, name: name() }.into())
    }

    /// n sampled images in parts, as rows of pixel values.
    pub(in crate::eval) fn sample_images<'a>(
        &'a self,
        n: usize,
        steps: Option<usize>,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<Rows>> + 'a> {
        let (frame, transform) = self.images("samples of images")?;
        let label = self.settings.class(frame.classes)?;
        let tolerances = self.settings.tolerances(IMAGE_TOLERANCE)?;
        let (flow, d) = (for_samples(&self.flow, tolerances), frame.dim());
        let given = label.map(|k| flow.condition_on_classes(&column(&flow, std::iter::repeat_n(k, PART))));
        let program = Chunked::new(PART, move |flow: &Flow, rows: &Tensor, _: &Key| {
            let (flow, z) = flow.part(rows);
            steps.map_or_else(|| flow.push_forward(&z), |steps| flow.push_forward_in_steps(&z, steps))
        });
        Ok((0u32..).zip((0..n).step_by(PART)).map(move |(i, start)| {
            let z = flow.base.sample(PART, flow.dtype(), &key.fold_in(Tensor::from(i)));
            let (flow, rows) = given.as_ref().unwrap_or(&flow).join(&z);
            // The rows of a tile share their steps, so the last part is computed whole and truncated.
            let mut points = program.call(&flow, &rows, key)?.to_vec();
            points.truncate((n - start) * d);
            Ok(self.named(levels(transform, &points).into_iter().map(f64::from).collect()))
        }))
    }

    /// Bits/dim of images, the mean over one dequantization of each.
    pub(crate) fn bits_per_dim(&self, images: &ImageSet) -> Result<BitsPerDim> {
        Ok(self.image_scores(images, |_| {})?.bits_per_dim)
    }

    /// Log-probabilities and bits/dim of images. Calls `progress` after each part with its number of images. If each
    /// image has one draw, up to 256 images are evaluated a second time, to estimate the error from dequantization and
    /// probes.
    pub(crate) fn image_scores(
        &self,
        images: &ImageSet,
        mut progress: impl FnMut(usize),
    ) -> Result<ImageScores> {
        let (frame, n) = (self.images("bits/dim of images")?.0, images.len());
        let draws = self.settings.noise_draws()?.unwrap_or(1);
        let (mut of_draws, mut log_probs, mut evals) = (vec![Vec::with_capacity(n); draws], Vec::new(), 0.0);
        for part in self.part_bits(Scored::Set(images), n, 0..draws)? {
            let part = part?;
            evals += part.evals;
            log_probs.extend(part.log_probs(frame.dim()));
            of_draws.iter_mut().zip(&part.draws).for_each(|(all, bits)| all.extend(bits));
            progress(part.draws[0].len() * draws);
        }
        let (bits, mut again) = (of_draws.concat(), Vec::new());
        if draws == 1 {
            for part in self.part_bits(Scored::Set(images), n.min(REPEATED), 1..2)? {
                let part = part?;
                evals += part.evals;
                progress(part.draws[0].len());
                again.extend(part.draws.concat());
            }
        }
        let mut found = BitsPerDim::of(&bits, draws, evals / (bits.len() + again.len()) as f64);
        if draws == 1 {
            let squares: f64 = again.iter().zip(&bits).map(|(a, b)| 0.5 * (a - b) * (a - b)).sum();
            found.noise_stderr = Some((squares / again.len() as f64 / n as f64).sqrt());
        }
        Ok(ImageScores { log_probs, bits_per_dim: found })
    }

    /// Log-probabilities of the images of a set in parts.
    pub(in crate::eval) fn of_images<'a>(&'a self, images: &'a ImageSet) -> Result<Parts<'a, Vec<f64>>> {
        self.image_parts(Scored::Set(images), images.len())
    }

    /// Log-probabilities of rows of pixel values in parts.
    pub(in crate::eval) fn of_pixel_rows(&self, rows: Rows) -> Result<Parts<'_, Vec<f64>>> {
        let d = self.dim();
        let is_level = |x: &f64| x.fract() == 0.0 && (0.0..=255.0).contains(x);
        if let Some(i) = rows.values().iter().position(|x| !is_level(x)) {
            let (row, pixel, value) = (i / d + 1, i % d, rows.values()[i]);
            return Err(EvalError::Pixel { row, pixel, value }.into());
        }
        self.image_parts(Scored::Rows(rows.to_pixel_bytes()), rows.len())
    }

    fn image_parts<'a>(&'a self, images: Scored<'a>, n: usize) -> Result<Parts<'a, Vec<f64>>> {
        let draws = self.settings.noise_draws()?.unwrap_or(1);
        Ok(Box::new(self.part_bits(images, n, 0..draws)?.map(move |part| Ok(part?.log_probs(self.dim())))))
    }

    /// n sampled images and their log-probabilities in parts.
    pub(in crate::eval) fn sample_images_with_log_prob<'a>(
        &'a self,
        n: usize,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<(Rows, Vec<f64>)>> + 'a> {
        let parts = self.sample_images(n, None, key)?;
        let scorer = self.scorer(0..self.settings.noise_draws()?.unwrap_or(1))?;
        Ok((0u32..).zip(parts).map(move |(i, part)| {
            let rows = part?;
            let bits = scorer.part(&Scored::Rows(rows.to_pixel_bytes()), 0..rows.len(), i)?;
            Ok((rows, bits.log_probs(self.dim())))
        }))
    }

    /// Bits/dim of the first n images in parts, for each of some draws of noise and probes.
    fn part_bits<'a>(
        &'a self,
        images: Scored<'a>,
        n: usize,
        draws: Range<usize>,
    ) -> Result<impl Iterator<Item = Result<PartBits>> + 'a> {
        let scorer = self.scorer(draws)?;
        match &images {
            Scored::Set(set) => check_images(scorer.frame, set)?,
            Scored::Rows(_) => {
                self.settings.class(scorer.frame.classes)?;
            }
        }
        let parts = (0u32..).zip((0..n).step_by(PART));
        Ok(parts.map(move |(i, start)| scorer.part(&images, start..n.min(start + PART), i)))
    }

    fn scorer(&self, draws: Range<usize>) -> Result<Scorer<'_>> {
        let (frame, transform) = self.images("log-probabilities of images")?;
        let (rtol, atol) = self.settings.tolerances(IMAGE_TOLERANCE)?;
        let (densities, key) = (ImageDensities::new(rtol, atol), Key::new(self.settings.noise_seed));
        Ok(Scorer { flow: &self.flow, frame, transform, densities, key, draws, class: self.settings.class })
    }
}

/// Scores parts of images by one compiled program.
struct Scorer<'a> {
    flow: &'a Flow,
    frame: &'a ImagesFrame,
    transform: &'a PixelTransform,
    densities: ImageDensities,
    key: Key,
    /// The draws of noise and probes, by their numbers.
    draws: Range<usize>,
    /// The class of rows of pixel values.
    class: Option<usize>,
}

impl Scorer<'_> {
    /// Bits/dim of some images, with the noise of part `index`.
    fn part(&self, images: &Scored, which: Range<usize>, index: u32) -> Result<PartBits> {
        let (n, d, mut found) = (which.len(), self.frame.dim(), PartBits { draws: Vec::new(), evals: 0.0 });
        let numbers: Vec<usize> = which.clone().collect();
        for draw in self.draws.clone() {
            let key = self.key.fold_in(Tensor::from(draw as u32)).fold_in(Tensor::from(index));
            let [noise, probes] = key.split();
            let read = match images {
                Scored::Set(set) => Dequantized::read(set, &numbers, self.transform, &noise)?,
                Scored::Rows(bytes) => {
                    let labels = self.class.map(|class| vec![class as u32; n]);
                    let part = &bytes[which.start * d..which.end * d];
                    Dequantized::of(part, labels, self.transform, &noise)
                }
            };
            let (bits, evals) = self.densities.bits(self.flow, &read, &probes)?;
            found.evals += evals * n as f64;
            found.draws.push(bits);
        }
        Ok(found)
    }
}

impl PartBits {
    /// Log-probabilities in nats, each the mean over the draws.
    fn log_probs(&self, dim: usize) -> Vec<f64> {
        let count = self.draws.len() as f64;
        let mean = |i: usize| self.draws.iter().map(|bits| bits[i]).sum::<f64>() / count;
        (0..self.draws[0].len()).map(|i| -nats_of_bits(mean(i), dim)).collect()
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
