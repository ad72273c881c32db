//! Points and rows as tensors, for custom training loops.

use crate::data::{Points, Rows};
use crate::tensor::Tensor;

/// The points in standardized coordinates, `[n, d]` of f32.
///
/// # Examples
/// ```
/// use flowline::data::Points;
/// use flowline::tensor::Tensor;
/// let points = Points::from_rows([[0.0, 10.0], [2.0, 30.0]])?;
/// assert_eq!(Tensor::from(&points).to_vec(), [-1.0, -1.0, 1.0, 1.0]);
/// # Ok::<(), flowline::data::DataError>(())
/// ```
impl From<&Points> for Tensor {
    fn from(points: &Points) -> Tensor {
        Tensor::from_vec([points.len(), points.dim()], points.standardized())
    }
}

/// The rows, `[n, d]` of f64.
impl From<&Rows> for Tensor {
    fn from(rows: &Rows) -> Tensor {
        Tensor::from_vec([rows.len(), rows.dim()], rows.values().to_vec())
    }
}
