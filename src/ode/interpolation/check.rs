//! What a solve must know of the rows that its vector field reads.

use super::InterpolationError;

/// The times of the rows of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputRows {
    pub(super) first: f64,
    pub(super) last: f64,
    /// The shortest distance of two rows.
    pub(super) shortest: f64,
    /// Whether the first and the last row continue.
    pub(super) holds: bool,
    /// Whether u jumps at the rows.
    pub(super) jumps: bool,
}

/// A number of lower precision than f64 may round times by this share of the distance of two rows.
const ROUNDING: f64 = 1e-3;

impl InputRows {
    /// The times at which u is not NaN. The times of stages at the ends of an interval may be rounded, to numbers of
    /// precision `epsilon`.
    pub(super) fn range(&self, epsilon: f64) -> [f64; 2] {
        if self.holds {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        let slack = 4.0 * epsilon * self.first.abs().max(self.last.abs());
        [self.first - slack, self.last + slack]
    }

    /// Checks that the interval of a solve does not exceed the rows.
    pub(crate) fn contain(&self, t0: f64, t1: f64) -> Result<(), InterpolationError> {
        let ([from, to], InputRows { first, last, .. }) = (self.range(f64::EPSILON), *self);
        let is_inside = from <= t0.min(t1) && t0.max(t1) <= to;
        if is_inside { Ok(()) } else { Err(InterpolationError::OutsideOfRows { t0, t1, first, last }) }
    }

    /// Checks that numbers of precision `epsilon`, as which a vector field receives t, tell the rows apart.
    pub(crate) fn differ(&self, epsilon: f64) -> Result<(), InterpolationError> {
        if epsilon <= f64::EPSILON {
            return Ok(());
        }
        let InputRows { first, last, shortest, jumps, .. } = *self;
        if jumps {
            return Err(InterpolationError::DiscontinuousInSingle);
        }
        let rounding = epsilon * first.abs().max(last.abs());
        if rounding <= ROUNDING * shortest {
            return Ok(());
        }
        Err(InterpolationError::CloseInSingle { shortest, rounding })
    }
}
