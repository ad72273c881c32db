//! Missing values of measured rows.

use super::InterpolationError;
use super::error::check_times;

/// The rows with every NaN filled from its column: on the line between the nearest values before and behind it; before
/// the first value of the column its first value, behind the last one its last value.
///
/// # Errors
/// As [`Interpolation::constant`](super::Interpolation::constant), but for NaN; a column without a value.
///
/// # Examples
/// ```
/// use flowline::ode::{Interpolation, fill_missing};
/// let (ts, gap) = ([0.0, 1.0, 3.0], f64::NAN);
/// let rows = fill_missing(&ts, &[[1.0, gap], [gap, 5.0], [4.0, gap]])?;
/// assert_eq!(rows, [[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]]);
/// let u = Interpolation::linear(&ts, &rows)?;
/// assert_eq!(u.at(0.5), [1.5, 5.0]);
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn fill_missing<const M: usize>(
    ts: &[f64],
    rows: &[[f64; M]],
) -> Result<Vec<[f64; M]>, InterpolationError> {
    check_times(ts, rows, 1)?;
    let mut filled = rows.to_vec();
    for column in 0..M {
        let known: Vec<usize> = (0..rows.len()).filter(|&i| !rows[i][column].is_nan()).collect();
        let (Some(&first), Some(&last)) = (known.first(), known.last()) else {
            return Err(InterpolationError::EmptyColumn { column });
        };
        for (i, row) in filled.iter_mut().enumerate().filter(|(_, row)| row[column].is_nan()) {
            let behind = known.partition_point(|&k| k < i);
            row[column] = match (i < first, i > last) {
                (true, _) => rows[first][column],
                (_, true) => rows[last][column],
                _ => {
                    let [a, b] = [known[behind - 1], known[behind]];
                    let share = (0.5 * ts[i] - 0.5 * ts[a]) / (0.5 * ts[b] - 0.5 * ts[a]);
                    (1.0 - share) * rows[a][column] + share * rows[b][column]
                }
            };
        }
    }
    Ok(filled)
}
