//! Tensors of counted numbers: ranges, identity matrices, one-hot rows.

use super::Tensor;
use crate::array::{Array, DType, Shape};

impl Tensor {
    /// The numbers from `start` on in steps of `step`, before `end`: `start + i step` for `i` below `(end - start) / step`.
    /// They are computed in f64 and converted to `dtype`. For a given number of elements use [`Tensor::linspace`]; for 0, 1,
    /// 2, ... along an axis [`Tensor::iota`].
    ///
    /// # Panics
    /// If a number is not finite, or the step is 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// assert_eq!(Tensor::arange(DType::I32, 2, 9, 3).to_vec(), [2.0, 5.0, 8.0]);
    /// assert_eq!(Tensor::arange(DType::F64, 1.0, 0.0, -0.5).to_vec(), [1.0, 0.5]);
    /// ```
    #[track_caller]
    pub fn arange(dtype: DType, start: impl Into<f64>, end: impl Into<f64>, step: impl Into<f64>) -> Tensor {
        arange(dtype, [start.into(), end.into(), step.into()])
    }

    /// The identity matrix `[n, n]`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// assert_eq!(Tensor::eye(DType::F32, 2).to_vec(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    #[doc(alias = "identity")]
    pub fn eye(dtype: DType, n: usize) -> Tensor {
        let mut a = Array::zeros(dtype, [n, n]);
        (0..n).for_each(|i| a.data_mut().set_f64(i * (n + 1), 1.0));
        Tensor::from_array(a)
    }

    /// A row of n numbers for each index, f32: 1 at the index, else 0. A number that is not a place of the row, such as -1,
    /// gives zeros. The result has no derivative with respect to the indices.
    ///
    /// # Shapes and units
    /// self of any shape; the result has this shape, followed by `[n]`.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let rows = Tensor::from([2, 0]).one_hot(3);
    /// assert_eq!(rows.to_vec(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn one_hot(&self, n: usize) -> Tensor {
        let index = if self.dtype() == DType::Bool { self.cast(DType::I32) } else { self.clone() };
        let places = Tensor::iota(index.dtype(), [n], 0);
        index.expand_dims(self.rank()).eq(&places).cast(DType::F32)
    }
}

#[track_caller]
fn arange(dtype: DType, [start, end, step]: [f64; 3]) -> Tensor {
    let count = ((end - start) / step).ceil();
    assert!(
        start.is_finite() && end.is_finite() && step.is_finite() && step != 0.0,
        "arange from {start} to {end} in steps of {step}: the numbers must be finite, and the step not 0"
    );
    assert!(
        count < Shape::MAX_SIZE as f64,
        "arange from {start} to {end} in steps of {step}: {count} elements are more than a tensor can have"
    );
    // Rounding may count one element too many.
    let is_before = |x: &f64| if step > 0.0 { *x < end } else { *x > end };
    let all = (0..count.max(0.0) as usize).map(|i| start + i as f64 * step);
    let numbers: Vec<f64> = all.take_while(is_before).collect();
    Tensor::from(numbers).cast(dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::refusal;

    #[test]
    fn ranges_end_before_their_end() {
        for (start, end, step) in
            [(0.0, 0.0, 1.0), (3.0, 1.0, 1.0), (0.0, 1.0, 0.3), (2.0, -2.0, -1.5), (1.0, 1.3, 0.1)]
        {
            let got = Tensor::arange(DType::F64, start, end, step).to_vec();
            let inside = |i: usize| (start + i as f64 * step - end) * f64::signum(step) < 0.0;
            let count = (0..100).take_while(|&i| inside(i)).count();
            let want: Vec<f64> = (0..count).map(|i| start + i as f64 * step).collect();
            assert_eq!(got, want, "{start} {end} {step}");
        }
        assert_eq!(Tensor::arange(DType::F32, 0, 3, 1).dtype(), DType::F32);
        let said = refusal(|| Tensor::arange(DType::F64, -1e308, 1e308, 1e-3));
        assert!(said.ends_with("inf elements are more than a tensor can have"), "{said}");
        let said = refusal(|| Tensor::arange(DType::I32, 0, 3, 0));
        assert!(said.starts_with("arange from 0 to 3 in steps of 0"), "{said}");
    }

    #[test]
    fn identities_and_one_hot_rows_have_one_one_per_row() {
        for n in [0, 1, 4] {
            for dtype in [DType::F64, DType::I32, DType::Bool] {
                let eye = Tensor::eye(dtype, n);
                let want: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k % (n + 1) == 0))).collect();
                assert_eq!((eye.dtype(), eye.to_vec()), (dtype, want));
            }
        }
        let index = Tensor::from([[0, 2], [-1, 3]]);
        let want = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        for dtype in [DType::I32, DType::F32, DType::F64] {
            let rows = index.cast(dtype).one_hot(3);
            assert_eq!((rows.shape().to_vec(), rows.to_vec()), (vec![2, 2, 3], want.to_vec()));
        }
        assert_eq!(Tensor::from([1.0]).cast(DType::Bool).one_hot(2).to_vec(), [0.0, 1.0]);
        assert_eq!(Tensor::from(1).one_hot(0).size(), 0);
    }
}
