//! Rows that cannot be interpolated, and solves that exceed them.

use crate::ode::shown;

/// Why rows cannot be interpolated, or not be solved with. Rows and columns are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpolationError {
    /// Too few rows.
    #[error("{rows} rows, but at least {least} are needed")]
    TooFewRows {
        /// The number of rows.
        rows: usize,
        /// The least number.
        least: usize,
    },
    /// The numbers of times and rows differ.
    #[error("{times} times for {rows} rows: give one time per row")]
    Lengths {
        /// The number of times.
        times: usize,
        /// The number of rows.
        rows: usize,
    },
    /// A time that is not finite.
    #[error("row {row}: its time is {}, but must be finite", shown(*t))]
    Time {
        /// The row.
        row: usize,
        /// Its time.
        t: f64,
    },
    /// Two times that do not increase.
    #[error(
        "row {row}: its time {} is not after {}, the time of the row before; sort the rows, and keep one row of each time", shown(*t), shown(*before)
    )]
    Order {
        /// The later row.
        row: usize,
        /// Its time.
        t: f64,
        /// The time of the row before.
        before: f64,
    },
    /// A value that is NaN.
    #[error("row {row}: column {column} has no value; `fill_missing` fills it from its neighbors")]
    Missing {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// A value that is infinite.
    #[error("row {row}: column {column} is {value}, but must be finite")]
    Infinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// The interval of a solve exceeds the rows that its vector field reads.
    #[error(
        "the solve from {} to {} exceeds the rows of its input, from {} to {}: shorten it, add rows, or continue the first and the last row by `hold`", shown(*t0), shown(*t1), shown(*first), shown(*last)
    )]
    OutsideOfRows {
        /// The start of the solve.
        t0: f64,
        /// Its end.
        t1: f64,
        /// The time of the first row.
        first: f64,
        /// The time of the last row.
        last: f64,
    },
    /// A solve in f32 whose times are too coarse for the rows.
    #[error(
        "f32 rounds the times of this input by up to {rounding:.1e}, but its rows are only {shortest:.1e} apart: subtract the first time from all times, or solve in f64"
    )]
    CloseInSingle {
        /// The shortest distance of two rows.
        shortest: f64,
        /// The rounding of the latest time.
        rounding: f64,
    },
    /// Two rows whose distance, or whose change over it, is too large for a number.
    #[error(
        "between rows {row} and {}: column {column} changes too much for the distance of their times; scale the times or the values", row + 1
    )]
    TooSteep {
        /// The earlier row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// A column without a value.
    #[error("column {column} has no value in any row: leave it out")]
    EmptyColumn {
        /// The column.
        column: usize,
    },
}

/// Checks times, and that no value is infinite.
pub(super) fn check_times<const M: usize>(
    ts: &[f64],
    rows: &[[f64; M]],
    least: usize,
) -> Result<(), InterpolationError> {
    if ts.len() != rows.len() {
        return Err(InterpolationError::Lengths { times: ts.len(), rows: rows.len() });
    }
    if rows.len() < least {
        return Err(InterpolationError::TooFewRows { rows: rows.len(), least });
    }
    for (row, &t) in ts.iter().enumerate() {
        if !t.is_finite() {
            return Err(InterpolationError::Time { row, t });
        }
        if row > 0 && t <= ts[row - 1] {
            return Err(InterpolationError::Order { row, t, before: ts[row - 1] });
        }
    }
    match find(rows, f64::is_infinite) {
        Some((row, column)) => Err(InterpolationError::Infinite { row, column, value: rows[row][column] }),
        None => Ok(()),
    }
}

/// Checks times and values of at least `least` rows.
pub(super) fn check<const M: usize>(
    ts: &[f64],
    rows: &[[f64; M]],
    least: usize,
) -> Result<(), InterpolationError> {
    check_times(ts, rows, least)?;
    match find(rows, f64::is_nan) {
        Some((row, column)) => Err(InterpolationError::Missing { row, column }),
        None => Ok(()),
    }
}

/// Row and column of the first value with a property.
fn find<const M: usize>(rows: &[[f64; M]], is_it: impl Fn(f64) -> bool) -> Option<(usize, usize)> {
    rows.iter().enumerate().find_map(|(i, row)| Some((i, row.iter().position(|&x| is_it(x))?)))
}
