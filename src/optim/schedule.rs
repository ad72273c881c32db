//! Learning rates as functions of the number of updates made.
//!
//! Every number of a schedule is a tensor: a rate to turn by hand, or a number of updates that becomes
//! known after the first of them, may be a leaf of the training state and change without a new trace.

use crate::array::DType;
use crate::tensor::Tensor;
use std::f64::consts::PI;

/// A learning rate as a function of the number n of updates already made (0 at the first).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Schedule {
    /// One rate.
    Constant {
        /// The rate.
        rate: Tensor,
    },
    /// `end + (peak - end) (1 + cos(pi min(n, N) / N)) / 2`
    Cosine {
        /// The rate at n = 0.
        peak: Tensor,
        /// N.
        updates: Tensor,
        /// The rate from n = N on.
        end: Tensor,
    },
    /// `r(0) n / N` for n < N, then `r(n - N)`.
    Warmup {
        /// N.
        updates: Tensor,
        /// r.
        then: Box<Schedule>,
    },
}

/// The same rate at every update: a number or a tensor.
pub fn constant(rate: impl Into<Tensor>) -> Schedule {
    Schedule::Constant { rate: rate.into() }
}

/// From `peak` to 0 along half a cosine over `updates` updates: numbers or tensors.
///
/// # References
/// Loshchilov and Hutter (2017), SGDR, eq. 5 with one period.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let rate = cosine(0.1, 100).at(&Tensor::from(50u32));
/// assert!((rate.item() - 0.05).abs() < 1e-12);
/// ```
pub fn cosine(peak: impl Into<Tensor>, updates: impl Into<Tensor>) -> Schedule {
    Schedule::Cosine { peak: peak.into(), updates: updates.into(), end: real(0.0) }
}

impl Schedule {
    /// Ends a cosine at this rate instead of 0; a constant rate does not end.
    pub fn end(self, rate: impl Into<Tensor>) -> Schedule {
        match self {
            Schedule::Cosine { peak, updates, .. } => Schedule::Cosine { peak, updates, end: rate.into() },
            Schedule::Warmup { updates, then } => {
                Schedule::Warmup { updates, then: Box::new(then.end(rate)) }
            }
            Schedule::Constant { .. } => self,
        }
    }

    /// Rises from 0 to the first rate over `updates` updates before it begins.
    pub fn warmup(self, updates: impl Into<Tensor>) -> Schedule {
        Schedule::Warmup { updates: updates.into(), then: Box::new(self) }
    }

    /// The rate when n updates were made before: f64, of rank 0.
    pub fn at(&self, n: &Tensor) -> Tensor {
        self.real_at(&n.cast(DType::F64))
    }

    fn real_at(&self, n: &Tensor) -> Tensor {
        match self {
            Schedule::Constant { rate } => rate.cast(DType::F64),
            Schedule::Cosine { peak, updates, end } => {
                let (peak, end) = (peak.cast(DType::F64), end.cast(DType::F64));
                let updates = updates.cast(DType::F64).maximum(&real(1.0));
                let share = n.minimum(&updates) / updates;
                &end + (peak - &end) * ((share * PI).cos() + 1.0) * 0.5
            }
            Schedule::Warmup { updates, then } => {
                let updates = updates.cast(DType::F64);
                let rising = then.real_at(&real(0.0)) * n / updates.maximum(&real(1.0));
                n.lt(&updates).select(&rising, &then.real_at(&(n - &updates)))
            }
        }
    }
}

fn real(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        constant(rate)
    }
}
impl From<Tensor> for Schedule {
    fn from(rate: Tensor) -> Self {
        constant(rate)
    }
}
impl From<&Tensor> for Schedule {
    fn from(rate: &Tensor) -> Self {
        constant(rate)
    }
}
