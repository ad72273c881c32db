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
        let (share, scale) = match *self {
            Times::Uniform => return u.clone(),
            Times::Half { scale } => (0.5, scale),
            Times::Likelihood { scale } => (1.0, scale),
        };
        assert!(scale > 0.0 && scale.is_finite(), "the scale of the times must be above 0, got {scale:?}");
        let knots = Tensor::from_vec([INTERVALS + 1], knots(share, scale));
        let place = u * INTERVALS as f64;
        let below = place.floor();
        let i = below.cast(DType::I32);
        let (left, right) = (knots.take(&i), knots.take(&(i + 1)));
        &left + (place - below) * (right - &left)
    }
}

/// Times at which the distribution function has equidistant values.
fn knots(share: f64, scale: f64) -> Vec<f32> {
    let whole = (1.0 + scale) * (1.0 / scale).ln_1p() - 1.0;
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
