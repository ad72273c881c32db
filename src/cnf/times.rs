//! The law of the times at which flow matching fits a velocity.

use crate::array::DType;
use crate::tensor::Tensor;

/// Intervals of the table of the inverse distribution function.
const INTERVALS: usize = 8192;

/// The law of the times t in [0, 1] of flow matching.
///
/// An error of the velocity along a straight path changes the likelihood in proportion to `t / (1 - t + s)`, where s is
/// the smallest standard deviation of the data in the coordinates of the flow. This density has most of its mass close
/// to t = 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Times {
    /// Density 1.
    #[default]
    Uniform,
    /// The mean of the densities of the other two.
    Half {
        /// s, above 0.
        scale: f64,
    },
    /// Density in proportion to `t / (1 - t + s)`.
    Likelihood {
        /// s, above 0.
        scale: f64,
    },
}

impl Times {
    /// Times with this law from numbers u uniform in [0, 1): the inverse distribution function at u, linear between
    /// 8,193 equidistant values of u.
    ///
    /// # Panics
    /// When s is not above 0.
    #[track_caller]
    pub fn at(&self, u: &Tensor) -> Tensor {
        let Some((share, scale)) = self.share() else { return u.clone() };
        let knots = Tensor::from_vec([INTERVALS + 1], knots(share, scale));
        let place = u * INTERVALS as f64;
        let below = place.floor();
        let i = below.cast(DType::I32);
        let (left, right) = (knots.take(&i), knots.take(&(i + 1)));
        &left + (place - below) * (right - &left)
    }

    /// The density of the law at a time t in [0, 1].
    ///
    /// # Panics
    /// When s is not above 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::extra::Times;
    /// assert_eq!(Times::Uniform.density(0.3), 1.0);
    /// assert_eq!(Times::Half { scale: 0.1 }.density(0.0), 0.5);
    /// ```
    #[track_caller]
    pub fn density(&self, t: f64) -> f64 {
        let Some((share, scale)) = self.share() else { return 1.0 };
        share * t / (1.0 - t + scale) / whole(scale) + (1.0 - share)
    }

    /// The share of the density in proportion to `t / (1 - t + s)`, and s; `None` if there is no such share.
    #[track_caller]
    fn share(self) -> Option<(f64, f64)> {
        let (share, scale) = match self {
            Times::Uniform => return None,
            Times::Half { scale } => (0.5, scale),
            Times::Likelihood { scale } => (1.0, scale),
        };
        assert!(scale > 0.0 && scale.is_finite(), "the scale of the times must be above 0, got {scale:?}");
        Some((share, scale))
    }
}

/// The integral of `t / (1 - t + s)` from 0 to 1.
fn whole(scale: f64) -> f64 {
    (1.0 + scale) * (1.0 / scale).ln_1p() - 1.0
}

/// Times at which the distribution function has equidistant values.
fn knots(share: f64, scale: f64) -> Vec<f32> {
    let whole = whole(scale);
    // The integral of t / (1 - t + s).
    let weighted = |t: f64| -t - (1.0 + scale) * (-t / (1.0 + scale)).ln_1p();
    let distribution = |t: f64| share * weighted(t) / whole + (1.0 - share) * t;
    let mut least = 0.0;
    let knot = |i: usize| {
        if i == INTERVALS {
            return 1.0;
        }
        let (wanted, mut most) = (i as f64 / INTERVALS as f64, 1.0);
        while most - least > 1e-9 {
            let middle = 0.5 * (least + most);
            *(if distribution(middle) < wanted { &mut least } else { &mut most }) = middle;
        }
        least as f32
    };
    (0..=INTERVALS).map(knot).collect()
}
