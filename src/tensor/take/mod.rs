//! Indexing by tensors: rows of the first axis, elements of any axis ([`along`]), rows that are replaced ([`scatter`]).
//!
//! Negative indices count from the end, whether an index is concrete or traced. The operations of the graph only
//! clamp, so this module converts negative indices before it records them.

mod along;
mod scatter;
#[cfg(test)]
mod tests;

use super::Tensor;
use crate::array::DType;
use crate::graph::Op;

impl Tensor {
    /// Rows of the first axis: `y[i.., ..] = x[index[i..], ..]`.
    ///
    /// A negative index counts from the end: -1 is the last row. An index outside -n to n - 1 is an error if it
    /// is concrete. If it is traced, its number is not known when the operation is recorded, and it selects the
    /// nearest row: row 0 below -n, row n - 1 above n - 1. A tensor that a function under
    /// [`jit`](super::jit()), [`vmap`](super::vmap()) or a derivative captures stays concrete; an index that is an
    /// argument of such a function, or is computed from an argument, is traced.
    ///
    /// # Shapes and units
    /// x `[n, ..]`; index of any shape with values from -n to n - 1, cast to i32 (a fraction is cut off); y has the
    /// index's shape, followed by `[..]`.
    ///
    /// # Panics
    /// If a concrete index is out of range, or there are no rows.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let x = Tensor::from([10.0, 20.0, 30.0]);
    /// assert_eq!(x.take(&Tensor::from([-1, 0])).to_vec(), [30.0, 10.0]);
    /// let traced = jit(|x: Tensor, index: Tensor| x.take(&index));
    /// assert_eq!(traced.call(&x, &Tensor::from([-1, 7, -9]))?.to_vec(), [30.0, 30.0, 10.0]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Tensor {
        Tensor::op(Op::Gather, &[self, &self.places("take", index, 0)], None)
    }

    /// Rows of the first axis at an index that does not count from the end: it is clamped to the axis, whether it is
    /// concrete or traced.
    #[track_caller]
    pub(crate) fn take_clamped(&self, index: &Tensor) -> Tensor {
        Tensor::op(Op::Gather, &[self, &index.cast(DType::I32)], None)
    }

    /// An index into an axis as i32, with negative numbers converted. A concrete index is in range.
    #[track_caller]
    fn places(&self, name: &str, index: &Tensor, axis: usize) -> Tensor {
        match self.shape().get(axis) {
            // The operation refuses an axis without elements.
            None | Some(0) => index.cast(DType::I32),
            Some(&n) if index.is_traced() => wrapped(index, n),
            Some(&n) => self.known_places(name, index, (axis, n)),
        }
    }

    #[track_caller]
    fn known_places(&self, name: &str, index: &Tensor, (axis, n): (usize, usize)) -> Tensor {
        let (rows, wanted) = (n as f64, index.to_vec());
        if let Some(i) = wanted.iter().find(|&&i| !(-rows..rows).contains(&i)) {
            panic!(
                "{name}: index {i} is out of range for axis {axis} of {}, of length {n}: it must be from -{n} to {}",
                self.ty(),
                n - 1
            );
        }
        if wanted.iter().all(|&i| i >= 0.0) {
            return index.cast(DType::I32);
        }
        let from_start = |i: f64| if i <= -1.0 { i.trunc() + rows } else { i };
        let rows: Vec<i32> = wanted.into_iter().map(|i| from_start(i) as i32).collect();
        Tensor::from_vec(index.shape().clone(), rows)
    }
}

/// A traced index into an axis of length n as i32, with n added to negative numbers.
#[track_caller]
fn wrapped(index: &Tensor, n: usize) -> Tensor {
    let last = (n - 1) as f64;
    match index.dtype() {
        DType::Bool => index.cast(DType::I32),
        // The cast would make large numbers negative.
        DType::U32 => index.minimum(&index.number(last)).cast(DType::I32),
        DType::I32 | DType::F32 | DType::F64 => {
            let rows = index.cast(DType::I32);
            rows.lt(0).select(&(&rows + n as f64), &rows)
        }
    }
}
