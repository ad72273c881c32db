//! What a solve must know of the rows that its vector field reads.

use super::InterpolationError;
use std::sync::Arc;

/// The times of the rows of an input.
#[derive(Clone, Debug)]
pub(crate) struct InputRows {
    pub(crate) ts: Arc<[f64]>,
    /// The shortest distance of two rows.
    pub(super) shortest: f64,
    /// Whether u is discontinuous at the rows; if not, one of its derivatives is.
    pub(crate) is_discontinuous: bool,
    /// Whether the first and the last row continue.
    pub(super) holds: bool,
}

/// A number of lower precision than f64 may round times by this share of the distance of two rows.
const ROUNDING: f64 = 1e-3;

impl InputRows {
    fn ends(&self) -> [f64; 2] {
        [self.ts[0], self.ts[self.ts.len() - 1]]
    }

    /// The times at which u is not NaN. The times of stages at the ends of an interval may be rounded, to numbers of
    /// precision `epsilon`.
    #[inline]
    pub(crate) fn range(&self, epsilon: f64) -> [f64; 2] {
        if self.holds {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        let [first, last] = self.ends();
        let slack = 4.0 * epsilon * first.abs().max(last.abs());
        [first - slack, last + slack]
    }

    /// Checks that the interval of a solve does not exceed the rows.
    pub(crate) fn contain(&self, t0: f64, t1: f64) -> Result<(), InterpolationError> {
        let ([from, to], [first, last]) = (self.range(f64::EPSILON), self.ends());
        let is_inside = from <= t0.min(t1) && t0.max(t1) <= to;
        if is_inside { Ok(()) } else { Err(InterpolationError::OutsideOfRows { t0, t1, first, last }) }
    }

    /// Checks that numbers of precision `epsilon`, as which a vector field receives t, tell the rows apart.
    pub(crate) fn differ(&self, epsilon: f64) -> Result<(), InterpolationError> {
        if epsilon <= f64::EPSILON {
            return Ok(());
        }
        let ([first, last], shortest) = (self.ends(), self.shortest);
        let rounding = epsilon * first.abs().max(last.abs());
        if rounding <= ROUNDING * shortest {
            return Ok(());
        }
        Err(InterpolationError::CloseInSingle { shortest, rounding })
    }
}
