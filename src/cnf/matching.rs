//! Flow matching: the times, points and velocities to which a flow is fitted.
//!
//! [`FlowMatching`] draws points on paths from noise to data, with a velocity at each. A flow that has this velocity on
//! average maps the normal density to that of the data ([`Cnf::matching_loss`]). The settings are the law of the times,
//! the path and the target. By default the target is the velocity of the drawn path, whose mean given the point is the
//! velocity of the flow. Where the density of the data is known, this mean is a formula, and the target has no noise.

use super::Cnf;
use super::times::Times;
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor, Tree};
use crate::tree;
use rayon::prelude::*;
use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

/// Rows per task of an exact target.
const ROWS: usize = 32;

/// A path from noise x0 at t = 0 to data x1 at t = 1: `x = a x0 + b x1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlowPath {
    /// `a = 1 - t`, `b = t`.
    ///
    /// Lipman et al. (2023), Flow matching for generative modeling, example II with sigma_min = 0.
    #[default]
    Straight,
    /// `a = cos(pi t / 2)`, `b = sin(pi t / 2)`: x keeps its variance if the data have variance 1.
    ///
    /// Albergo and Vanden-Eijnden (2023), Building normalizing flows with stochastic interpolants, section 3.
    Trigonometric,
}

impl FlowPath {
    /// a and b at time t, each with its derivative: `([a, a'], [b, b'])`.
    pub fn coefficients(self, t: f64) -> ([f64; 2], [f64; 2]) {
        match self {
            FlowPath::Straight => ([1.0 - t, -1.0], [t, 1.0]),
            FlowPath::Trigonometric => {
                let (sin, cos) = (FRAC_PI_2 * t).sin_cos();
                ([cos, -FRAC_PI_2 * sin], [sin, FRAC_PI_2 * cos])
            }
        }
    }

    /// The points at times t `[n, 1]`, and the derivatives in t.
    fn points(self, t: &Tensor, x0: &Tensor, x1: &Tensor) -> (Tensor, Tensor) {
        match self {
            FlowPath::Straight => {
                let line = x1 - x0;
                (x0 + t * &line, line)
            }
            FlowPath::Trigonometric => {
                let angle = t * FRAC_PI_2;
                let (sin, cos) = (angle.sin(), angle.cos());
                (x0 * &cos + x1 * &sin, (x1 * &cos - x0 * &sin) * FRAC_PI_2)
            }
        }
    }
}

/// The velocity of the flow from the standard normal density to a known density, at any point and time.
pub trait ExactVelocity: Send + Sync {
    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// Writes the mean of `a' x0 + b' x1` given `a x0 + b x1 = x` to `velocity`, for `noise = [a, a']` and
    /// `data = [b, b']`, x0 standard normal and x1 from the density.
    fn velocity(&self, noise: [f64; 2], data: [f64; 2], x: &[f64], velocity: &mut [f64]);
}

tree! {
    /// Points on paths from noise to data, with the velocities to which a flow is fitted.
    pub struct PathPoints {
        /// Times in [0, 1], `[n, 1]`.
        pub t: Tensor,
        /// Points, `[n, dim]`.
        pub x: Tensor,
        /// Velocities, `[n, dim]`.
        pub velocity: Tensor,
    }
}

/// The settings of flow matching.
///
/// # Examples
/// ```
/// use flowline::cnf::*;
/// use flowline::cnf::extra::{FlowMatching, Times};
/// use flowline::cnf::prelude::*;
/// use flowline::nn::*;
/// let key = Key::new(0);
/// let flow = Cnf::new(ConcatSquash::new(2, [8], &key));
/// let x1 = key.normal([64, 2]) * 0.1 + 1.0;
/// // More times near the data, whose smallest standard deviation is 0.1.
/// let matching = FlowMatching::new().times(Times::Half { scale: 0.1 });
/// let (loss, _) = value_and_grad(|flow: &Cnf<_>| flow.matching_loss(&matching.draw(&x1, &key)), &flow)?;
/// assert!(loss.item() > 1.0);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct FlowMatching {
    times: Times,
    path: FlowPath,
    source: Option<Tensor>,
    target: Option<Arc<dyn ExactVelocity>>,
}

impl FlowMatching {
    /// Uniform times, straight paths from normal noise, and the velocities of the drawn paths as targets.
    pub fn new() -> FlowMatching {
        FlowMatching::default()
    }

    /// The law of the times; uniform by default.
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// The path; straight by default.
    pub fn path(mut self, path: FlowPath) -> Self {
        self.path = path;
        self
    }

    /// The points `[n, dim]` at which the paths begin, in place of normal noise: row i goes to row i of the data. The
    /// flow then maps these points to the data, and its density is not that of the data.
    pub fn source(mut self, x0: &Tensor) -> Self {
        self.source = Some(x0.clone());
        self
    }

    /// The exact velocity of a known density as the target. The gradient of the loss has the same mean and much less
    /// noise. The flow learns this density, whatever the points were drawn from.
    pub fn target(mut self, exact: Arc<dyn ExactVelocity>) -> Self {
        self.target = Some(exact);
        self
    }

    /// Whether the target is exact.
    pub fn is_exact(&self) -> bool {
        self.target.is_some()
    }

    /// Draws a time for each row of the data and the point at this time on a path to the row.
    ///
    /// The times are stratified: their law is applied to `(u + i / n) mod 1` for row i of n, with one u uniform in
    /// [0, 1).
    ///
    /// # Shapes and units
    /// x1 `[n, dim]`, rows in random order.
    ///
    /// # Panics
    /// When a source has another shape. With an exact target: when x1 or the key is traced, since the target is
    /// computed from numbers (draw outside of `jit`, and pass the points to the jitted function); when the target has
    /// another dimension, or there is a source.
    #[track_caller]
    pub fn draw(&self, x1: &Tensor, key: &Key) -> PathPoints {
        let [noise, time] = key.split();
        let points = self.draw_part(x1, &noise, &time, (&Tensor::from(0.0f32), x1.shape()[0]));
        self.with_target(points)
    }

    /// A part of [`FlowMatching::draw`], without the exact target: `x1` has the rows from `first` on, and the batch
    /// has `n` rows. All parts have the same key `time`, and each has its own key `noise`. `first` is f32.
    #[track_caller]
    pub(crate) fn draw_part(
        &self,
        x1: &Tensor,
        noise: &Key,
        time: &Key,
        (first, n): (&Tensor, usize),
    ) -> PathPoints {
        let x0 = match &self.source {
            None => noise.normal(x1.shape().clone()).cast(x1.dtype()),
            Some(x0) => {
                let (found, wanted) = (x0.shape(), x1.shape());
                assert!(found == wanted, "the source has shape {found}, but the data have shape {wanted}");
                x0.cast(x1.dtype())
            }
        };
        let row = Tensor::iota(DType::F32, [x1.shape()[0], 1], 0) + first;
        let stratified = time.uniform(Shape::scalar()) + row * (1.0 / n as f64);
        let t = self.times.at(&(&stratified - stratified.floor())).cast(x1.dtype());
        let (x, velocity) = self.path.points(&t, &x0, x1);
        PathPoints { t, x, velocity }
    }

    /// The points with the exact target, if there is one.
    #[track_caller]
    pub(crate) fn with_target(&self, points: PathPoints) -> PathPoints {
        let Some(exact) = &self.target else { return points };
        let d = exact.dim();
        assert!(
            self.source.is_none(),
            "an exact target belongs to paths from normal noise: leave the source out"
        );
        assert!(
            !points.x.is_traced(),
            "an exact target is computed from numbers, but the points are traced: draw outside of `jit`, and pass the points to the jitted function"
        );
        assert!(
            points.x.shape()[1] == d,
            "the target has {d} dimensions, but the points have {}",
            points.x.shape()[1]
        );
        let (t, x) = (points.t.to_vec(), points.x.to_vec());
        let mut velocity = vec![0.0; x.len()];
        let rows = (t.par_chunks(ROWS), x.par_chunks(ROWS * d), velocity.par_chunks_mut(ROWS * d));
        rows.into_par_iter().for_each(|(t, x, velocity)| {
            for ((&t, x), velocity) in t.iter().zip(x.chunks_exact(d)).zip(velocity.chunks_exact_mut(d)) {
                let (noise, data) = self.path.coefficients(t);
                exact.velocity(noise, data, x, velocity);
            }
        });
        let velocity = match points.x.dtype() {
            DType::F32 => {
                Tensor::from_vec(points.x.shape().clone(), velocity.iter().map(|&v| v as f32).collect())
            }
            dtype => Tensor::from_vec(points.x.shape().clone(), velocity).cast(dtype),
        };
        PathPoints { velocity, ..points }
    }
}

impl std::fmt::Debug for FlowMatching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target = self.target.as_ref().map_or("drawn", |_| "exact");
        f.debug_struct("FlowMatching")
            .field("times", &self.times)
            .field("path", &self.path)
            .field("source", &self.source)
            .field("target", &target)
            .finish()
    }
}

/// Flow matching.
impl<D: VelocityField> Cnf<D> {
    /// The mean over the rows of `|v(t, x) - velocity|^2`.
    ///
    /// v is the flow's velocity over t in [0, 1]. The B blocks, each integrated over [0, t1], cover B equal parts of
    /// this interval: `v = B t1 f_b((B t - b) t1, x)` with `b = floor(B t)`. The flow with the least loss maps the
    /// normal density to the data density; training needs no solve.
    ///
    /// # Shapes and units
    /// The result has rank 0. A flow with classes must be [conditioned](Cnf::condition_on_classes) on one label per row.
    ///
    /// # Errors
    /// A solve inside the field that ended early.
    ///
    /// # Panics
    /// When the flow is conditioned but its field has no classes, the flow is not conditioned but its field has
    /// classes, or there is not one label per row.
    ///
    /// # References
    /// Lipman et al. (2023), Flow matching for generative modeling, eq. 5; with drawn targets eq. 23.
    #[track_caller]
    pub fn matching_loss(&self, points: &PathPoints) -> Result<Tensor> {
        self.matching_loss_of(points, points.x.shape()[0])
    }

    /// `|v(t, x) - velocity|^2` of each row, with v the [velocity](Cnf::velocity) of the flow. The mean over the rows is
    /// [`Cnf::matching_loss`].
    ///
    /// # Shapes and units
    /// The result is `[n]`, of the element type of the weights. Rows are chunked as in [`Cnf::log_prob`].
    ///
    /// # Errors, panics
    /// As [`Cnf::matching_loss`].
    #[track_caller]
    pub fn squared_errors(&self, points: &PathPoints) -> Result<Tensor> {
        let PathPoints { t, x, velocity } = points.cast_floats(self.dtype());
        let columns = [&[t, x, velocity], self.labels_of(points.x.shape()[0])].concat();
        self.on_columns(&columns, |flow, columns| {
            let velocity = flow.velocity_of(&columns[0], &columns[1], columns.get(3));
            (velocity - &columns[2]).square().sum_axes(&[1])
        })
    }

    /// The flow's velocity over t in [0, 1]. The B blocks, each integrated over [0, t1], cover B equal parts of this
    /// interval: `v = B t1 f_b((B t - b) t1, x)` with `b = floor(B t)`, the last block at t = 1.
    ///
    /// # Shapes and units
    /// t `[n, 1]`, x and the result `[n, dim]`, of the element type of the weights. Rows are chunked as in
    /// [`Cnf::log_prob`].
    ///
    /// # Errors, panics
    /// As [`Cnf::matching_loss`].
    #[track_caller]
    pub fn velocity(&self, t: &Tensor, x: &Tensor) -> Result<Tensor> {
        let columns = [t, x].map(|column| column.cast(self.dtype()));
        let columns = [&columns, self.labels_of(x.shape()[0])].concat();
        self.on_columns(&columns, |flow, columns| flow.velocity_of(&columns[0], &columns[1], columns.get(2)))
    }
}
