//! The pictures of a run: what is drawn on the way, and the set at the end.
//!
//! All densities and samples of a run have one colour scale, that of the density to learn.

use super::folder::{PICTURES, RunFolder};
use super::frame::ImageFrame;
use super::metrics::{self, Row};
use super::{Data, METRICS_FILE, Objective, Recipe};
use crate::data::Points;
use crate::error::Result;
use crate::plot::{self, DensityMap};
use std::collections::BTreeMap;

/// Points of the samples' picture, and of the flow's.
pub(super) const SAMPLES: usize = 40_000;
pub(super) const FLOW_POINTS: usize = 12_000;
pub(super) const FLOW_PANELS: usize = 6;
/// Points of the corner's panels.
pub(super) const CORNER_POINTS: usize = 2_000;
/// Places on a line where a density is evaluated.
const LINE: usize = 600;

/// Who draws a run.
pub(super) struct Artist {
    frame: ImageFrame,
    /// What the truth is called.
    title: &'static str,
    truth: Vec<f64>,
    rows: usize,
    cols: usize,
}

/// A learned density over the image: values per square pixel, rows, columns.
pub(super) type Learned = (Vec<f64>, usize, usize);

impl Artist {
    /// With the density to learn on `per_pixel` cells along a pixel.
    pub(super) fn new(data: &Data, frame: &ImageFrame, per_pixel: usize) -> Artist {
        let (truth, rows, cols) = data.truth(frame, per_pixel);
        Artist { frame: frame.clone(), title: data.title(), truth, rows, cols }
    }

    fn map<'a>(&self, values: &'a [f64], rows: usize, cols: usize) -> DensityMap<'a> {
        DensityMap { values, rows, cols, frame: self.frame.window() }
    }

    /// `density.png` as it is after an update.
    pub(super) fn density(&self, folder: &RunFolder, learned: &Learned, update: u64) -> Result<()> {
        let map = self.map(&learned.0, learned.1, learned.2);
        let title = format!("learned density after {update} updates");
        Ok(plot::density(&title, &map, self.frame.scale())?.save(folder.file("density.png"))?)
    }

    /// The density to learn beside the learned one.
    pub(super) fn comparison(&self, folder: &RunFolder, learned: &Learned) -> Result<()> {
        let truth = self.map(&self.truth, self.rows, self.cols);
        let learned = self.map(&learned.0, learned.1, learned.2);
        let picture = plot::compare_with(self.title, &truth, &learned, self.frame.scale())?;
        Ok(picture.save(folder.file("comparison.png"))?)
    }

    /// A scatter and a histogram of points in pixel coordinates.
    pub(super) fn samples(&self, folder: &RunFolder, points: &[[f64; 2]]) -> Result<()> {
        Ok(plot::samples(points, self.frame.window(), self.frame.scale())?
            .save(folder.file("samples.png"))?)
    }

    /// Points in pixel coordinates on their way from the base to the data.
    pub(super) fn flow(&self, folder: &RunFolder, way: Vec<(f64, Vec<[f64; 2]>)>) -> Result<()> {
        let panels: Vec<(f64, &[[f64; 2]])> = way.iter().map(|(t, points)| (*t, &points[..])).collect();
        Ok(plot::flow(&panels, self.frame.window())?.save(folder.file("flow.png"))?)
    }
}

/// `corner.png`: the data and samples `[n, d]` in units, pair by pair.
pub(super) fn corner(folder: &RunFolder, points: &Points, samples: &[f64]) -> Result<()> {
    let shown = points.len().min(SAMPLES) * points.dim();
    let title = "samples over the data";
    let picture = plot::corner(title, &points.columns, &points.values()[..shown], samples)?;
    Ok(picture.save(folder.file("corner.png"))?)
}

/// Where the density of points on a line is drawn: evenly, over the data and a tenth of their extent on either side.
pub(super) fn on_line(points: &Points) -> Vec<f64> {
    let [low, high] = extent(points.values());
    let margin = 0.1 * (high - low);
    (0..LINE).map(|i| low - margin + (high - low + 2.0 * margin) * i as f64 / (LINE - 1) as f64).collect()
}

fn extent(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)])
}

/// `density.png` of points on a line: the data counted in bins, the learned density `(x, p)` over them.
pub(super) fn line(folder: &RunFolder, points: &Points, learned: Vec<[f64; 2]>) -> Result<()> {
    let [low, high] = extent(points.values());
    let bins = ((points.len() as f64).sqrt() as usize).clamp(10, 100);
    let width = (high - low) / bins as f64;
    let mut counts = vec![0_usize; bins];
    points.values().iter().for_each(|x| counts[(((x - low) / width) as usize).min(bins - 1)] += 1);
    let tall = |count: usize| count as f64 / (points.len() as f64 * width);
    let step = |(i, &count): (usize, &usize)| {
        [[low + i as f64 * width, tall(count)], [low + (i + 1) as f64 * width, tall(count)]]
    };
    let outline =
        [[[low, 0.0]].to_vec(), counts.iter().enumerate().flat_map(step).collect(), vec![[high, 0.0]]];
    let axes = plot::Axes::new(&points.columns[0], "density").title("learned density over the data");
    let axes = axes.thin_curves("data, counted", &[outline.concat()], 1).curves("learned", &[learned], 0);
    Ok(axes.draw()?.save(folder.file("density.png"))?)
}

/// The loss of every update and the NLL where it was measured. A weighted likelihood is divided by the mean weight, so
/// that it has the entropy as its floor like the others; `told_nats` is added where NLLs are told in units.
pub(super) fn loss_curve(
    folder: &RunFolder,
    recipe: &Recipe,
    entropy_nats: Option<f64>,
    mean_weight: f64,
    told_nats: f64,
) -> Result<()> {
    let rows: Vec<Row> = metrics::read(&folder.file(METRICS_FILE))?;
    // A run that was over when its rows were lost has none to draw.
    if rows.is_empty() {
        return Ok(());
    }
    let of = |objective: Objective| -> Vec<[f64; 2]> {
        let (unit, shift) =
            if objective == Objective::MaximumLikelihood { (mean_weight, told_nats) } else { (1.0, 0.0) };
        let mine = rows.iter().filter(|row| row.phase == objective.name());
        mine.map(|row| [row.update as f64, row.loss / unit + shift]).collect()
    };
    let losses: Vec<_> = recipe.phases.iter().map(|p| (p.objective, of(p.objective))).collect();
    let phases: Vec<plot::Phase> = losses
        .iter()
        .filter(|(_, loss)| !loss.is_empty())
        .map(|(objective, loss)| plot::Phase { name: objective.title(), unit: objective.unit(), loss })
        .collect();
    let nll: Vec<[f64; 2]> =
        rows.iter().filter_map(|row| row.nll_nats.map(|nll| [row.update as f64, nll])).collect();
    let nll_stderr = rows.iter().rfind(|row| row.nll_nats.is_some()).and_then(|row| row.nll_stderr_nats);
    let curve = plot::LossCurve { phases: &phases, nll: &nll, nll_stderr, entropy: entropy_nats };
    Ok(plot::loss_curve(&curve)?.save(folder.file("loss.png"))?)
}

/// The files of a run that are there, by name.
pub(super) fn files(folder: &RunFolder) -> BTreeMap<String, String> {
    let all = PICTURES.into_iter().chain([METRICS_FILE, super::MODEL_FILE]);
    let there = all.map(|name| (name, folder.file(name))).filter(|(_, path)| path.exists());
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    there.map(|(name, path)| (stem(name), path.display().to_string())).collect()
}
