//! The interface of a trained density: settings, samples and log-densities. [`Fitted`](crate::eval::Fitted) implements it.

use super::TrainedFlow;
use crate::cnf::{AnomalyScore, Cnf, Inpainted};
use crate::data::{ImageSet, Rows, Standardizer};
use crate::error::Result;
use crate::eval::{BitsPerDim, DensityGrid, GridAccuracy, ImageFrame, ImageScores, IntoRows};
use crate::nn::AnyVelocityField;
use crate::tensor::Key;

/// Settings. They apply to every method, and refuse impossible values when a method is called.
impl TrainedFlow {
    /// Relative tolerance of all solves. By default log-densities have 1e-6, samples and figures 1e-4; image sets 1e-3.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.fitted.settings.rtol = Some(rtol);
        self
    }

    /// Absolute tolerance of all solves, in standardized coordinates. The defaults are those of [`rtol`](Self::rtol).
    pub fn atol(mut self, atol: f64) -> Self {
        self.fitted.settings.atol = Some(atol);
        self
    }

    /// Draws samples in this many steps of fixed cost, in place of a tolerance: 2 evaluations of the vector field per step
    /// ([`Cnf::push_forward_in_steps`]). With the same key, the samples approach those without this setting.
    pub fn steps(mut self, steps: usize) -> Self {
        self.fitted.settings.steps = Some(steps);
        self
    }

    /// The class of samples and of rows, from 0, in a run with classes; for a table in the order of
    /// [`class_names`](Self::class_names).
    pub fn class(mut self, class: usize) -> Self {
        self.fitted.set_class(class);
        self
    }

    /// Draws of noise per row of a log-density that depends on noise; it has no effect on other data.
    ///
    /// For an image set, a log-probability is the mean over the draws, 1 by default, of noise (dequantization) and probes
    /// (Hutchinson's estimator).
    ///
    /// For a table that was trained with `dequantize`, the density is averaged over the rounding of its columns:
    /// `log((1/K) sum_k q(x + h (u_k - 1/2)))` over K uniform draws u_k per row, with the steps h of the columns. In
    /// expectation it is at most the logarithm of the mean density over one step around x, by Jensen's inequality, and
    /// it tends to it with many draws. Plus `sum ln h` over the columns with noise it is a log-probability of the rounded
    /// values. Without this setting, the density is that at the row.
    pub fn noise_draws(mut self, draws: usize) -> Self {
        self.fitted.settings.noise_draws = Some(draws);
        self
    }

    /// The seed of the noise in log-densities, 1 by default. The noise of a row is a function of the seed and of the number
    /// of the row.
    pub fn noise_seed(mut self, seed: u64) -> Self {
        self.fitted.settings.noise_seed = seed;
        self
    }
}

/// Samples and log-densities.
impl TrainedFlow {
    /// Number of columns of a row: of a table, 2 for an image, `height * width * channels` for an image set.
    pub fn dim(&self) -> usize {
        self.fitted.dim()
    }

    /// Names of the columns of a row: those of the table, `x` and `y` for an image, `pixel0`, ... for an image set.
    pub fn columns(&self) -> Vec<String> {
        self.fitted.columns()
    }

    /// The names of the classes of a table, in the order of their numbers; empty without classes and for image sets.
    pub fn class_names(&self) -> &[String] {
        self.header.frames.points.as_ref().map_or(&[], |points| &points.class_names)
    }

    /// The flow with its averaged weights, in standardized coordinates (see [`standardizer`](Self::standardizer); for image
    /// sets, in the coordinates behind the pixel transform).
    pub fn cnf(&self) -> &Cnf<AnyVelocityField> {
        &self.fitted.flow
    }

    /// The transform between the units of the data and standardized coordinates; the identity for image sets.
    pub fn standardizer(&self) -> Standardizer {
        self.fitted.standard()
    }

    /// n samples `[n, dim]`, in the units of the data. For an image set, a row is an image: its pixel values, row by row,
    /// channels last. With the same key a longer draw starts with the samples of a shorter one.
    ///
    /// # Errors
    /// Tolerances out of range, 0 steps; the class does not exist, or the run has classes and none is set; a solve that
    /// ended early, a sample that is not finite in the units of the data.
    pub fn sample(&self, n: usize, key: &Key) -> Result<Rows> {
        self.fitted.sample(n, key)
    }

    /// [`sample`](Self::sample) in parts of up to 4,096 rows (256 images), for more rows than fit in memory. A part is an
    /// error if its solve ended early or a sample is not finite.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), before the first part.
    pub fn sample_parts<'a>(
        &'a self,
        n: usize,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<Rows>> + 'a> {
        self.fitted.sample_parts(n, key)
    }

    /// n samples as [`sample`](Self::sample), and the log-density of each as [`log_prob`](Self::log_prob), both in the units
    /// of the data and from one solve. The samples start from the same points of the base as those of `sample`, and are
    /// equal to them within the tolerances; for image sets they are the same.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); [`steps`](Self::steps) is set.
    pub fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Rows, Vec<f64>)> {
        self.fitted.sample_with_log_prob(n, key)
    }

    /// [`sample_with_log_prob`](Self::sample_with_log_prob) in parts.
    ///
    /// # Errors
    /// As [`sample_with_log_prob`](Self::sample_with_log_prob), before the first part.
    pub fn sample_with_log_prob_parts<'a>(
        &'a self,
        n: usize,
        key: &'a Key,
    ) -> Result<impl Iterator<Item = Result<(Rows, Vec<f64>)>> + 'a> {
        self.fitted.sample_with_log_prob_parts(n, key)
    }

    /// The log-density of each row in nats: per square pixel for an image, per unit volume for points.
    ///
    /// For an image set, `data` is an `&ImageSet`, or rows of pixel values. The result is then a lower bound of the
    /// log-probability of the pixel values (ELBO), estimated with [`noise_draws`](Self::noise_draws). The labels of an
    /// `ImageSet` are the classes of its images; rows have the class that is [set](Self::class). Without one, the rows of
    /// a table with classes need labels: `&Points` with labels, or [`Rows::with_labels`].
    ///
    /// # Errors
    /// Rows of other or different numbers of columns; a number that is not finite, or not a pixel value; a row
    /// farther than 100 standard deviations from the mean of the data; images of another size, without labels in a run
    /// with classes, or for a run that was not trained on images; tolerances out of range, 0 draws; a missing file; a
    /// solve that ended early.
    ///
    /// # Examples
    /// ```no_run
    /// use flowline::cnf::prelude::*;
    /// let flow = TrainedFlow::open("runs/people")?; // a table of three columns
    /// let nats = flow.log_prob([[172.0, 65.0, 34.0], [160.0, 58.0, 41.0]])?;
    /// let exact = flow.rtol(1e-9).atol(1e-9).log_prob(&[vec![172.0, 65.0, 34.0]][..])?;
    /// assert!((nats[0] - exact[0]).abs() < 1e-3);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias = "logpdf")]
    pub fn log_prob<'a>(&'a self, data: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.fitted.log_prob(data)
    }

    /// [`log_prob`](Self::log_prob) in parts of up to 1,024 rows (256 images), to show progress or to write results as
    /// they are computed. A part is an error if its solve ended early.
    ///
    /// # Errors
    /// As [`log_prob`](Self::log_prob), before the first part.
    pub fn log_prob_parts<'a>(
        &'a self,
        data: impl IntoRows<'a>,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        self.fitted.log_prob_parts(data)
    }

    /// Bits/dim of unseen images, the mean over the images with its standard errors: an upper bound on the code length of
    /// their pixel values.
    ///
    /// # Errors
    /// As [`log_prob`](Self::log_prob).
    pub fn bits_per_dim(&self, images: &ImageSet) -> Result<BitsPerDim> {
        self.fitted.bits_per_dim(images)
    }

    /// [`log_prob`](Self::log_prob) and [`bits_per_dim`](Self::bits_per_dim) from one evaluation. Calls `progress` after
    /// each part with its number of images.
    ///
    /// # Errors
    /// As [`log_prob`](Self::log_prob).
    pub fn image_scores(&self, images: &ImageSet, progress: impl FnMut(usize)) -> Result<ImageScores> {
        self.fitted.image_scores(images, progress)
    }

    /// n rows with the given numbers of `row`; the others, which are NaN in `row`, are sampled from their conditional
    /// density: [`Cnf::sample_given`] in the units of the data.
    ///
    /// # Errors
    /// The run was trained on an image set or has [`steps`](Self::steps) set; a row of another length, with an infinite
    /// number, with no number or without NaN; given numbers farther than 100 standard deviations from the mean; an
    /// effective sample size below 100; a solve that ended early.
    #[doc(alias = "inpaint")]
    #[doc(alias = "conditional_sample")]
    pub fn sample_given(&self, row: &[f64], n: usize, key: &Key) -> Result<Inpainted> {
        self.fitted.sample_given(row, n, key)
    }

    /// The score of each row: the probability that a sample of the model has a lower log-density, from `draws` samples,
    /// and `|z|^2`; as [`Cnf::anomaly_scores`] in the units of the data. Log-densities are in nats. Those of the samples
    /// have a tolerance of 1e-4 by default.
    ///
    /// # Errors
    /// The run was trained on an image set or has [`steps`](Self::steps) set; 0 draws; the errors of
    /// [`log_prob`](Self::log_prob).
    pub fn anomaly_scores(
        &self,
        rows: impl Into<Rows>,
        draws: usize,
        key: &Key,
    ) -> Result<Vec<AnomalyScore>> {
        self.fitted.anomaly_scores(rows, draws, key)
    }

    /// The log-density at the centers of `size` x `size` cells over the image grown by `margin` pixels on all sides; for
    /// points in the plane, over the window of their figures.
    ///
    /// Cells where the density hardly changes, most of them far from the data, are not solved but interpolated: off by at
    /// most about 2e-4 of the largest density. Nearly all values above 1e-6 of the largest are within 0.02 nats. A feature
    /// narrower than 8 cells in which no sample lies may be missed, however. [`log_prob`](Self::log_prob) of the centers
    /// solves each.
    ///
    /// # Errors
    /// A density that is not defined over the plane; tolerances out of range; a solve that ended early.
    pub fn log_grid(&self, size: usize, margin: f64) -> Result<DensityGrid> {
        self.fitted.log_grid(size, margin)
    }
}

/// Parts of the command line.
#[doc(hidden)]
impl TrainedFlow {
    /// The values of [`log_grid`](Self::log_grid) with this accuracy, in parts, row-major, first row on top. `progress`
    /// takes the number of cells that are done.
    ///
    /// # Errors
    /// As [`log_grid`](Self::log_grid), before the first part.
    pub fn log_grid_parts<'a>(
        &'a self,
        (size, margin): (usize, f64),
        accuracy: GridAccuracy,
        progress: impl FnMut(usize) + 'a,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        self.fitted.log_grid_parts(([size; 2], margin), accuracy, progress)
    }

    /// A grid from the values of [`log_grid_parts`](Self::log_grid_parts).
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub fn grid_of(&self, log_density: Vec<f64>, size: usize, margin: f64) -> Result<DensityGrid> {
        self.fitted.grid_of(log_density, size, margin)
    }

    /// The frame of the image or, for points in the plane, of the window over them. `what` names the request in the error.
    ///
    /// # Errors
    /// A density that is not defined over the plane.
    pub fn plane(&self, what: &'static str) -> Result<&ImageFrame> {
        self.fitted.plane(what)
    }
}
