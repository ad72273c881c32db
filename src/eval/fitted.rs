//! A fitted density in the coordinates of its data: samples and log-densities of rows.
//!
//! Flows work in standardized coordinates; users work in pixels, or in the units of their points. This module
//! converts between the two. Rows have any number of columns. A row of an image set is an image, and its columns are
//! pixel values.

use super::draws::Draws;
use super::input::{Input, IntoRows};
use super::measure::{DRAW_TOLERANCE, LogDensity, MEASURE_TOLERANCE, PairSampler, Sampler, with_labels};
use super::settings::Settings;
use super::{EvalError, Frames, ImageFrame, PointsFrame};
use crate::cnf::config::{Flow, of_class};
use crate::data::{DataError, PixelTransform, Rows, Standardizer, class_numbers};
use crate::error::{Error, Result};
use crate::io::listed;
use crate::ode::{Outcome, SolveError, Tolerance};
use crate::tensor::Key;

/// Log-densities are not evaluated farther than this many standard deviations from the mean of the data. A
/// normal density is exp(-5000) at this distance, and a solve takes thousands of steps.
pub const FAR: f64 = 100.0;

/// A flow in the coordinates of the data that it was fitted to.
/// [`TrainedFlow`](crate::train::TrainedFlow) documents its methods.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    /// The flow with its averaged weights, in standardized coordinates.
    pub flow: Flow,
    /// The frames of the data.
    pub frames: Frames,
    /// The pixel transform, if the data are an image set.
    pub pixels: Option<PixelTransform>,
    /// How it is evaluated.
    pub settings: Settings,
    /// The flow of the class that is set, for a table with classes.
    of_class: Option<Flow>,
}

/// Results in parts: a part is an error if its solve ended early.
pub(crate) type Parts<'a, T> = Box<dyn Iterator<Item = Result<T>> + 'a>;

impl Fitted {
    pub(crate) fn new(flow: Flow, frames: &Frames, pixels: Option<PixelTransform>) -> Fitted {
        Fitted { flow, frames: frames.clone(), pixels, settings: Settings::default(), of_class: None }
    }

    /// Sets the class of samples and rows. A method that uses it refuses a class that does not exist.
    pub(crate) fn set_class(&mut self, class: usize) {
        self.settings.class = Some(class);
        let exists = self.classes().is_some_and(|classes| class < classes);
        self.of_class = exists.then(|| of_class(&self.flow, class)).flatten();
    }

    /// Number of classes of a table, if it has any.
    pub(crate) fn classes(&self) -> Option<usize> {
        self.frames.points.as_ref().and_then(PointsFrame::classes)
    }

    /// The flow of the class that is set; of a run without classes, its flow.
    ///
    /// # Errors
    /// As [`Settings::class`].
    pub(super) fn chosen(&self) -> Result<&Flow> {
        self.settings.class(self.classes())?;
        Ok(self.of_class.as_ref().unwrap_or(&self.flow))
    }

    /// The frame of the image or, for points in the plane, of the window over them. `what` names the request
    /// in the error.
    ///
    /// # Errors
    /// [`EvalError::NoPlane`] for an image set and for points of another dimension than 2.
    pub(crate) fn plane(&self, what: &'static str) -> Result<&ImageFrame> {
        let dim = self.dim();
        if self.classes().is_some() {
            return Err(EvalError::NoPlaneOfClasses { what }.into());
        }
        self.frames.image.as_ref().ok_or_else(|| EvalError::NoPlane { what, dim }.into())
    }

    /// Number of columns of a row.
    pub(crate) fn dim(&self) -> usize {
        self.flow.base.dim
    }

    /// The transform between standardized coordinates and the coordinates of the data: pixels, or the units
    /// of points.
    pub(crate) fn standard(&self) -> Standardizer {
        self.frames.standard(self.dim())
    }

    /// Names of the columns of rows: those of the table, x and y of an image, `pixel0`, ... of image sets.
    pub(crate) fn columns(&self) -> Vec<String> {
        match (&self.frames.points, &self.frames.images) {
            (Some(points), _) => points.columns.clone(),
            (None, Some(images)) => (0..images.dim()).map(|i| format!("pixel{i}")).collect(),
            (None, None) => ["x", "y"].map(str::to_owned).to_vec(),
        }
    }

    /// Rows with the names of the columns.
    pub(super) fn named(&self, values: Vec<f64>) -> Rows {
        let rows = Rows::from_flat(values, self.dim());
        rows.with_columns(self.columns()).expect("invariant: a name per column")
    }

    /// The rows, if they have the columns of the data.
    ///
    /// # Errors
    /// [`DataError::RaggedPoints`], [`DataError::OtherColumns`].
    pub(super) fn checked(&self, rows: impl Into<Rows>) -> Result<Rows> {
        let (name, expected) = ("given".to_owned(), self.dim());
        let rows = rows.into().of_equal_length(&name)?;
        if rows.dim() != expected && !rows.is_empty() {
            return Err(DataError::OtherColumns { name, found: rows.dim(), expected }.into());
        }
        Ok(rows)
    }

    /// n samples.
    pub(crate) fn sample(&self, n: usize, key: &Key) -> Result<Rows> {
        let mut values = Vec::new();
        for part in self.sample_parts(n, key)? {
            values.extend(part?.into_values());
        }
        Ok(self.named(values))
    }

    /// n samples in parts.
    pub(crate) fn sample_parts<'a>(&'a self, n: usize, key: &'a Key) -> Result<Parts<'a, Rows>> {
        let steps = self.settings.steps()?;
        if self.frames.images.is_some() {
            return Ok(Box::new(self.sample_images(n, steps, key)?));
        }
        let flow = self.chosen()?;
        let tolerances = self.settings.tolerances(DRAW_TOLERANCE)?;
        let sampler = steps.map_or_else(|| Sampler::with_tolerances(tolerances), Sampler::in_steps);
        let mut units = self.units();
        Ok(Box::new(sampler.draw(flow, n, key).map(move |part| units(&part?))))
    }

    /// Converts parts of standardized samples, in their order, to rows.
    fn units(&self) -> impl FnMut(&[f64]) -> Result<Rows> + '_ {
        let (standard, d, mut drawn) = (self.standard(), self.dim(), 0);
        move |part| {
            let rows = standard.inverse_transform(part);
            let before = drawn;
            drawn += rows.len() / d;
            if let Some(i) = rows.chunks_exact(d).position(|row| !row.iter().all(|x| x.is_finite())) {
                let (row, value) = (before + i + 1, in_brief(&rows[i * d..(i + 1) * d]));
                return Err(EvalError::Overflow { row, value }.into());
            }
            Ok(self.named(rows))
        }
    }

    /// n samples and their log-densities.
    pub(crate) fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Rows, Vec<f64>)> {
        let (mut rows, mut log_probs) = (Vec::new(), Vec::new());
        for part in self.sample_with_log_prob_parts(n, key)? {
            let (of_part, log_prob) = part?;
            rows.extend(of_part.into_values());
            log_probs.extend(log_prob);
        }
        Ok((self.named(rows), log_probs))
    }

    /// n samples and their log-densities in parts.
    pub(crate) fn sample_with_log_prob_parts<'a>(
        &'a self,
        n: usize,
        key: &'a Key,
    ) -> Result<Parts<'a, (Rows, Vec<f64>)>> {
        self.settings.without_steps("log-densities of samples")?;
        if self.frames.images.is_some() {
            return Ok(Box::new(self.sample_images_with_log_prob(n, key)?));
        }
        let flow = self.chosen()?;
        let sampler = PairSampler::new(self.settings.tolerances(MEASURE_TOLERANCE)?);
        let shift = self.standard().log_jacobian();
        let mut units = self.units();
        Ok(Box::new(sampler.draw(flow, n, key).map(move |part| {
            let (rows, log_prob) = part?;
            Ok((units(&rows)?, log_prob.into_iter().map(|x| x + shift).collect()))
        })))
    }

    /// The log-density of each row.
    pub(crate) fn log_prob<'a>(&'a self, data: impl IntoRows<'a>) -> Result<Vec<f64>> {
        let parts: Vec<_> = self.log_prob_parts(data)?.collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    /// The log-density of each row in parts.
    pub(crate) fn log_prob_parts<'a>(&'a self, data: impl IntoRows<'a>) -> Result<Parts<'a, Vec<f64>>> {
        match (data.into_input(), &self.frames.images) {
            (Input::Rows(rows), None) => Ok(Box::new(self.densities(self.checked(rows)?)?)),
            (Input::Rows(rows), Some(_)) => self.of_pixel_rows(self.checked(rows)?),
            (Input::Images(images), _) => self.of_images(images),
        }
    }

    /// The number of each row's class, for rows with labels of a run with classes if no class is set.
    fn class_of_rows(&self, rows: &Rows) -> Result<Option<Vec<u16>>> {
        let Some(frame) = self.frames.points.as_ref().filter(|frame| frame.classes().is_some()) else {
            return Ok(None);
        };
        if self.settings.class.is_some() || rows.labels().is_empty() {
            return Ok(None);
        }
        let of_rows = class_numbers(&frame.class_names, rows.labels());
        Ok(Some(of_rows.map_err(|row| EvalError::NoSuchClass {
            place: format!("row {}", row + 1),
            row,
            class: rows.labels()[row].clone(),
            classes: listed(&frame.class_names, "classes"),
        })?))
    }

    fn densities(&self, rows: Rows) -> Result<impl Iterator<Item = Result<Vec<f64>>> + '_> {
        let labels = self.class_of_rows(&rows)?;
        let flow = if labels.is_some() { &self.flow } else { self.chosen()? };
        let (rtol, atol) = self.settings.tolerances(MEASURE_TOLERANCE)?;
        let rounding = self.frames.points.as_ref().and_then(PointsFrame::rounding);
        let of_draws = |(count, rounding)| Draws { rounding, count, seed: self.settings.noise_seed };
        let draws = self.settings.noise_draws()?.zip(rounding).map(of_draws);
        let (n, d, points) = (rows.len(), self.dim(), rows.into_values());
        let whose = if self.frames.points.is_some() { DATA } else { IMAGE };
        check_rows(&points, &self.standard(), whose, |i| format!("point {}", i + 1))?;
        let density = LogDensity::for_points(n, rtol, atol).by_distance();
        let rows = LogDensity::rows_for(n);
        let (frame, shift) = (self.standard(), self.standard().log_jacobian());
        let solve = move |first: usize, points: &[f64]| -> Result<Vec<f64>> {
            let standard: Vec<f32> = frame.transform(points).into_iter().map(|x| x as f32).collect();
            let count = points.len() / d;
            let labels = labels.as_ref().map_or(&[][..], |labels| &labels[first..first + count]);
            let (standard, width) = with_labels(&standard, labels, d);
            let found = density.eval_rows(flow, &standard, width).map_err(|e| match e {
                Error::Solve(SolveError::Incomplete { outcome, .. }) => self.unsolved(first, points, outcome),
                e => e,
            })?;
            Ok(found.into_iter().map(|x| f64::from(x) + shift).collect())
        };
        Ok((0..n).step_by(rows).map(move |first| {
            let part = &points[first * d..(first + rows).min(n) * d];
            match &draws {
                None => solve(first, part),
                Some(draws) => draws.mean((part, d), first, |points| solve(first, points)),
            }
        }))
    }

    fn unsolved(&self, first: usize, points: &[f64], outcome: Outcome) -> Error {
        let (d, standard) = (self.dim(), self.standard());
        let out = |p: &&[f64]| deviations(&standard, p);
        let farthest = points.chunks_exact(d).max_by(|a, b| out(a).total_cmp(&out(b))).unwrap_or_default();
        let n = points.len() / d;
        let place = match n {
            1 => format!("point {}", first + 1),
            n => format!("points {} to {}", first + 1, first + n),
        };
        let rows = [first, first + n - 1];
        EvalError::Unsolved { place, rows, value: in_brief(farthest), outcome }.into()
    }
}

/// What the coordinates of points are, in messages: numbers of a table, or pixels of an image.
pub(crate) const DATA: &str = "data";
const IMAGE: &str = "image";

/// Refuses rows at which no log-density is evaluated: a coordinate is not finite, or the row is farther than [`FAR`]
/// standard deviations from the mean. `place` names a row, from 0.
///
/// # Errors
/// [`EvalError::Point`] for the first such row.
pub(crate) fn check_rows(
    rows: &[f64],
    standard: &Standardizer,
    whose: &str,
    place: impl Fn(usize) -> String,
) -> Result<(), EvalError> {
    let is_near = |p: &[f64]| deviations(standard, p) <= FAR;
    let Some((row, p)) = rows.chunks_exact(standard.mean.len()).enumerate().find(|(_, p)| !is_near(p)) else {
        return Ok(());
    };
    let reason = if p.iter().all(|x| x.is_finite()) {
        format!(
            "it is {} standard deviations from the {whose}'s center of mass, but densities are evaluated only within {FAR} standard deviations; leave it out",
            in_short(deviations(standard, p))
        )
    } else {
        let of = if whose == IMAGE { " of pixels" } else { "" };
        format!("coordinates must be finite numbers{of}")
    };
    Err(EvalError::Point { place: place(row), row, value: in_brief(p), reason })
}

/// The distance of a point from the data's mean, in standard deviations.
fn deviations(standard: &Standardizer, p: &[f64]) -> f64 {
    standard.transform(p).into_iter().fold(0.0, f64::hypot)
}

/// The coordinates of a point in a message: at most the first 6.
pub(super) fn in_brief(p: &[f64]) -> String {
    match p.len() {
        0..=6 => format!("{p:?}"),
        d => {
            let first: Vec<String> = p[..6].iter().map(|x| format!("{x:?}")).collect();
            format!("[{}, ... {d} coordinates]", first.join(", "))
        }
    }
}

/// Formats a number of any magnitude in a few digits.
fn in_short(x: f64) -> String {
    if x < 1e9 { format!("{x:.0}") } else { format!("{x:.1e}") }
}

/// Refuses tolerances that are negative, not finite, or both zero, and an rtol of 1 or more.
///
/// # Errors
/// [`ConfigError::Tolerance`](crate::ode::ConfigError::Tolerance).
pub fn check_tolerances(rtol: f64, atol: f64) -> Result<(), Error> {
    Ok(Tolerance::new(rtol, atol).check()?)
}
