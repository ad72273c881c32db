//! Figures of a density of images: samples, trajectories, nearest training images, bits/dim over time.

use super::ImagesFrame;
use super::bits::Images;
use super::samples::{DRAWN, column, for_samples, levels};
use crate::cnf::config::Flow;
use crate::data::{Estimate, PixelTransform, grouped};
use crate::error::Result;
use crate::eval::{Deadline, Work};
use crate::io::run::{RunFolder, metrics::Row};
use crate::plot::{self, Axes, Figure, ImageGrid};
use crate::tensor::Key;

/// Rows and columns of the grid of samples. If the images have labels, each column shows one class, and at
/// most this many classes are shown.
const ROWS: usize = 10;
const COLUMNS: usize = 10;
/// Number of trajectories in `flow.png`, and of times.
const WAYS: usize = 6;
const TIMES: usize = 9;
/// Number of samples in `nearest.png`, and of training images beside each sample.
const LIKE: usize = 8;
const NEAREST: usize = 5;
/// Images per block of the nearest-neighbor search.
const BLOCK: usize = 1024;
/// Draws the figures of an image set.
pub(crate) struct Gallery<'a> {
    pub folder: &'a RunFolder,
    pub frame: &'a ImagesFrame,
    pub images: &'a Images,
}

impl Gallery<'_> {
    /// Draws `samples.png`, `flow.png` and `nearest.png`, each if there is time.
    ///
    /// # Errors
    /// A solve that ended early, a file that cannot be written.
    pub(crate) fn draw(&self, flow: &Flow, key: &Key, update: u64, by: &Deadline) -> Result<()> {
        if !by.fits(Work::ImageSamples, self.num_samples()) {
            return Ok(());
        }
        let samples = self.samples(flow, key, update, by)?;
        // A solve with many times takes several times as long.
        let of_ways = (3 * WAYS) as f64;
        if by.fits(Work::ImageSamples, of_ways) {
            by.watch.run(Work::ImageSamples, of_ways, || self.ways(flow, key))?;
        }
        if by.fits(Work::ImageSamples, self.num_samples()) { self.nearest(&samples) } else { Ok(()) }
    }

    fn num_samples(&self) -> f64 {
        (ROWS * columns(self.frame).unwrap_or(COLUMNS)) as f64
    }

    fn sheet(
        &self,
        name: &str,
        title: &str,
        images: &[u8],
        columns: usize,
        heads: &[(usize, String)],
    ) -> Result<()> {
        let sheet = ImageGrid { title, images, size: self.frame.size(), columns, headings: heads };
        Ok(plot::image_grid(&sheet)?.save(self.folder.target(name)?)?)
    }

    /// Draws `samples.png`, titled with the number of updates; returns the pixel values of the samples.
    ///
    /// # Errors
    /// As [`Gallery::draw`].
    pub(crate) fn samples(&self, flow: &Flow, key: &Key, update: u64, by: &Deadline) -> Result<Vec<u8>> {
        let columns = columns(self.frame).unwrap_or(COLUMNS);
        by.watch.run(Work::ImageSamples, self.num_samples(), || {
            let z = drawn(flow, ROWS * columns, key, |i| i % columns, self.frame.classes.is_some())?;
            let bytes = levels(&self.images.transform, &z);
            let title = format!("Samples after {} updates", grouped(update));
            self.sheet("samples.png", &title, &bytes, columns, &headings(self.frame))?;
            Ok(bytes)
        })
    }

    /// `flow.png`: a few trajectories from noise to samples.
    fn ways(&self, flow: &Flow, key: &Key) -> Result<()> {
        let flow = for_samples(flow, DRAWN);
        let flow = match self.frame.classes {
            Some(classes) => flow.condition_on_classes(&column(&flow, (0..WAYS).map(|i| i % classes))),
            None => flow,
        };
        let path = flow.sample_trajectories(WAYS, key, TIMES)?;
        let (d, all) = (self.frame.dim(), path.to_vec());
        let at = |sample: usize, time: usize| &all[(time * WAYS + sample) * d..][..d];
        let z: Vec<f64> = (0..WAYS).flat_map(|s| (0..TIMES).flat_map(move |t| at(s, t)).copied()).collect();
        let heads = [(0, "noise".to_owned()), (TIMES - 1, "image".to_owned())];
        self.sheet(
            "flow.png",
            "Trajectories from noise to samples",
            &levels(&self.images.transform, &z),
            TIMES,
            &heads,
        )
    }

    /// `nearest.png`: samples beside the training images nearest in pixel values, to reveal memorized images.
    fn nearest(&self, samples: &[u8]) -> Result<()> {
        let d = self.frame.dim();
        // Spread over the grid, to include several classes.
        let count = samples.len() / d;
        let shown = (0..LIKE.min(count)).map(|i| (i * (count + 1) / LIKE.min(count)) % count);
        let samples: Vec<&[u8]> = shown.map(|i| &samples[i * d..(i + 1) * d]).collect();
        let found = self.images.nearest(&samples, NEAREST)?;
        let columns = 1 + found[0].len();
        let rows: Vec<u8> = samples
            .iter()
            .zip(&found)
            .flat_map(|(sample, near)| sample.iter().copied().chain(near.iter().flatten().copied()))
            .collect();
        let heads = [(0, "sample".to_owned()), (1, "nearest training images".to_owned())];
        self.sheet("nearest.png", "Samples beside the nearest training images", &rows, columns, &heads)
    }

    /// `bits.png`: validation bits/dim against minutes of training.
    ///
    /// # Errors
    /// As [`Gallery::draw`].
    pub(crate) fn bits(&self, rows: impl Iterator<Item = Row>) -> Result<()> {
        let (d, mut minutes, mut last) = (self.frame.dim(), 0.0, None);
        let curve: Vec<[f64; 2]> = rows
            .filter_map(|row| {
                minutes += row.ms / 6e4;
                let nll = Estimate { mean: row.nll_nats?, stderr: row.nll_stderr_nats, count: 0 };
                let bits = *last.insert(nll.times(super::bits_of_nats(1.0, d)));
                Some([minutes, bits.mean])
            })
            .collect();
        let Some(last) = last else { return Ok(()) };
        let title = format!("{last:.3} bits/dim on validation images");
        let axes = Axes::new("training time (min)", "bits/dim").title(&title);
        let figure = axes.lines("", std::slice::from_ref(&curve), 0).scatter("", &curve, 0).render()?;
        Ok(figure.save(self.folder.target("bits.png")?)?)
    }
}

/// Columns of a sample grid, one per class, if there are classes.
fn columns(frame: &ImagesFrame) -> Option<usize> {
    frame.classes.map(|classes| classes.min(COLUMNS))
}

/// The classes as column headings, if the columns are wide enough.
fn headings(frame: &ImagesFrame) -> Vec<(usize, String)> {
    let classes = columns(frame).filter(|_| frame.width >= 12).unwrap_or(0);
    (0..classes).map(|k| (k, format!("{k}"))).collect()
}

/// A grid of n samples.
///
/// # Errors
/// A solve that ended early; n of 0.
pub(in crate::eval) fn sample_figure(
    flow: &Flow,
    (frame, transform): (&ImagesFrame, &PixelTransform),
    tolerances: (f64, f64),
    n: usize,
    key: &Key,
) -> Result<Figure> {
    let columns = columns(frame).unwrap_or_else(|| (n as f64).sqrt().ceil() as usize).max(1);
    let flow = for_samples(flow, tolerances);
    let z = drawn(&flow, n, key, |i| i % columns, frame.classes.is_some())?;
    let (images, heads) = (levels(transform, &z), headings(frame));
    let sheet =
        ImageGrid { title: "Samples", images: &images, size: frame.size(), columns, headings: &heads };
    Ok(plot::image_grid(&sheet)?)
}

/// n samples z `[n, dim]` of a flow with solver options, row i of class `class(i)` if there are classes.
fn drawn(
    flow: &Flow,
    n: usize,
    key: &Key,
    class: impl Fn(usize) -> usize,
    classes: bool,
) -> Result<Vec<f64>> {
    let labels = classes.then(|| column(flow, (0..n).map(class)));
    Ok(labels
        .map_or_else(|| flow.clone(), |labels| flow.condition_on_classes(&labels))
        .sample(n, key)?
        .to_vec())
}

impl Images {
    /// The `k` training images nearest to each given image by squared distance of pixel values, nearest first.
    ///
    /// # Errors
    /// A file of images cannot be read.
    pub(super) fn nearest(&self, to: &[&[u8]], k: usize) -> Result<Vec<Vec<Vec<u8>>>> {
        let d = self.set.dim();
        let mut best: Vec<Vec<(u64, Vec<u8>)>> = vec![Vec::new(); to.len()];
        for part in self.train.chunks(BLOCK) {
            let bytes = self.set.rows(part)?;
            for image in bytes.chunks_exact(d) {
                for (of, near) in to.iter().zip(&mut best) {
                    let far = of.iter().zip(image).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
                    if near.len() < k || near.last().is_some_and(|(last, _)| far < *last) {
                        let at = near.partition_point(|(other, _)| *other <= far);
                        near.insert(at, (far, image.to_vec()));
                        near.truncate(k);
                    }
                }
            }
        }
        Ok(best.into_iter().map(|near| near.into_iter().map(|(_, image)| image).collect()).collect())
    }
}
