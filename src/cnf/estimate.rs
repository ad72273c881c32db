//! The KL divergence of a flow from a known density, estimated from velocities alone.
//!
//! A density is known to flow matching by its exact velocity. The difference of two such velocities is the difference of
//! the scores of two densities, up to a factor, and the derivative of their KL divergence in t is the product of both.
//! So the integral over t of the squared error of a velocity is a KL divergence. It needs one evaluation of the flow per
//! point, and no solve.

use super::{Cnf, ExactVelocity, FlowMatching, FlowPath, PathPoints, Times};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor};
use std::sync::Arc;

/// Parts of the interval of t in [`KlEstimate::loss_by_t`].
const PARTS: usize = 8;

/// An estimate of the KL divergence of a flow from a known density; see [`KlEstimator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KlEstimate {
    /// The estimate in nats; at least 0.
    pub nats: f64,
    /// Its standard error over the points, in nats. It contains no error of the formula.
    pub stderr: f64,
    /// The mean of `|v - u|^2` over each eighth of the times from 0 to 1; NaN if no point has such a time.
    pub loss_by_t: [f64; 8],
}

/// Estimates the KL divergence of a flow from a density whose exact velocity is known, without a solve.
///
/// # Mathematics
/// Let u be the exact velocity of the density p, v that of the flow, and `x = a x0 + b x1` the points of the paths
/// to p. The estimate is
///
/// `integral over t from 0 to 1 of b / ((a + s) w) E|v(t, x) - u(t, x)|^2`, `w = a b' - a' b`,
///
/// where s is the smallest standard deviation of p. On straight paths the factor is `t / (1 - t + s)`.
///
/// Without s, it is the KL divergence of the flow from p if v is the exact velocity of some density q. Both velocities
/// are then scores, `u = (b' / b) x + (a w / b) grad log p_t`, and `d/dt KL(p_t, q_t) = E (u - v) . (grad log p_t -
/// grad log q_t)`. A trained v is not such a velocity, and the integral without s does not converge. The estimate of
/// trained flows is about half to four fifths of their KL divergence, and nearly proportional to it: it ranks the flows
/// of one run or of equal times, but it is not a score to report.
///
/// # Errors
/// The points are fixed, so that differences of estimates have less noise than an estimate. Half of their times are
/// uniform and half have a density in proportion to `t / (1 - t + s)` ([`Times::Half`]); each point is weighted by the
/// inverse of the density of its time.
///
/// # References
/// Albergo, Boffi and Vanden-Eijnden (2023), Stochastic interpolants, section 2.4; Zheng, Lu, Chen and Zhu (2023),
/// Improved techniques for maximum likelihood estimation for diffusion ODEs.
///
/// # Examples
/// ```
/// use flowline::cnf::*;
/// use flowline::cnf::extra::{ExactVelocity, FlowPath, KlEstimator};
/// use flowline::cnf::prelude::*;
/// use flowline::nn::*;
/// use std::sync::Arc;
/// /// To a normal density with mean 0 and standard deviation 0.5.
/// struct Narrow;
/// impl ExactVelocity for Narrow {
///     fn dim(&self) -> usize {
///         2
///     }
///     fn velocity(&self, [a, da]: [f64; 2], [b, db]: [f64; 2], x: &[f64], velocity: &mut [f64]) {
///         let k = (a * da + b * db * 0.25) / (a * a + b * b * 0.25);
///         velocity.iter_mut().zip(x).for_each(|(v, x)| *v = k * x);
///     }
/// }
/// let key = Key::new(0);
/// let data = key.normal([256, 2]) * 0.5;
/// let estimator = KlEstimator::new(Arc::new(Narrow), FlowPath::Straight, 0.5, &data, &key);
/// let flow = Cnf::new(ConcatSquash::new(2, [8], &key));
/// assert!(estimator.estimate(&flow)?.nats > 0.1);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KlEstimator {
    points: PathPoints,
    /// The part of t, the inverse density of t, and the factor of the squared error in the integral, of each point.
    rows: Vec<(usize, f64, f64)>,
}

impl KlEstimator {
    /// Draws a fixed point on a path to each row of the data.
    ///
    /// # Shapes and units
    /// x1 `[n, dim]`, rows of the density in random order, in the coordinates of the flow. `scale` is s, the smallest
    /// standard deviation of the density in these coordinates, above 0.
    ///
    /// # Panics
    /// When x1 or the key is traced, x1 has another dimension than the velocity, or s is not above 0.
    #[track_caller]
    pub fn new(
        exact: Arc<dyn ExactVelocity>,
        path: FlowPath,
        scale: f64,
        x1: &Tensor,
        key: &Key,
    ) -> KlEstimator {
        let times = Times::Half { scale };
        let points = FlowMatching::new().path(path).times(times).target(exact).draw(x1, key);
        let row = |t: f64| {
            let ([a, da], [b, db]) = path.coefficients(t);
            let inverse = 1.0 / times.density(t);
            let part = ((t * PARTS as f64) as usize).min(PARTS - 1);
            (part, inverse, inverse * b / ((a + scale) * (a * db - da * b)))
        };
        let rows = points.t.to_vec().into_iter().map(row).collect();
        KlEstimator { points, rows }
    }

    /// The estimate for a flow.
    ///
    /// # Errors
    /// A solve inside the field that ended early.
    ///
    /// # Panics
    /// As [`Cnf::squared_errors`].
    #[track_caller]
    pub fn estimate<D: VelocityField>(&self, flow: &Cnf<D>) -> Result<KlEstimate> {
        let errors = flow.squared_errors(&self.points)?.to_vec();
        let n = errors.len() as f64;
        let terms = || errors.iter().zip(&self.rows).map(|(error, (.., factor))| error * factor);
        let nats = terms().sum::<f64>() / n;
        let squares = terms().map(|term| (term - nats).powi(2)).sum::<f64>();
        let (mut sums, mut shares) = ([0.0; PARTS], [0.0; PARTS]);
        for (error, &(part, inverse, _)) in errors.iter().zip(&self.rows) {
            sums[part] += error * inverse;
            shares[part] += inverse;
        }
        let loss_by_t = std::array::from_fn(|part| sums[part] / shares[part]);
        Ok(KlEstimate { nats, stderr: (squares / (n - 1.0).max(1.0) / n).sqrt(), loss_by_t })
    }
}
