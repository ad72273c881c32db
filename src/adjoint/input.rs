//! Interpolation of measured inputs on tensors: the rows are values with derivatives.
//!
//! The coefficients of the polynomials are computed once, outside of the loop over steps. An evaluation counts the rows
//! up to t, gathers the coefficients there and evaluates the polynomials, so its derivative by the rows is a
//! scatter into these coefficients. The count takes one comparison per row; a binary search would take a loop per
//! evaluation.

use crate::array::DType;
use crate::ode::{Between, Interpolation};
use crate::tensor::Tensor;

/// An [`Interpolation`] whose rows are a tensor.
#[derive(Clone, Debug)]
pub struct TensorInterpolation {
    /// The times of the rows, `[n]` in f64.
    ts: Tensor,
    /// The time at which the argument of each polynomial is 0, `[n + 1]` in f64.
    starts: Tensor,
    /// `[n + 1, m, 4]`, from the constant coefficient.
    coefficients: Tensor,
    range: [f64; 2],
}

impl<const M: usize> Interpolation<M> {
    /// The same interpolation of other values at the same times, which may have derivatives: parameters of an input
    /// that is fitted, or measurements to whose errors a solve is sensitive.
    ///
    /// # Shapes
    /// rows `[n, m]` for n times and any m, of a float type.
    ///
    /// # Panics
    /// If `rows` does not have one row per time, or is not of a float type.
    ///
    /// # Examples
    /// The sensitivity of y(3) to each measured value of its input:
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::ode::Interpolation;
    /// let u = Interpolation::linear(&[0.0, 1.0, 3.0], &[[0.0], [2.0], [1.0]])?;
    /// let end = |rows: &Tensor| {
    ///     let input = u.of_tensor(rows);
    ///     let f = |t: Tensor, y: &Tensor| input.at(&t).index(0) - y;
    ///     let ode = Ode::new(f).stop_at_rows(&u).rtol(1e-9).atol(1e-9);
    ///     Ok(ode.solve(0.0, 3.0, Tensor::from(0.0_f64))?.y1)
    /// };
    /// let rows = Tensor::from([[0.0_f64], [2.0], [1.0]]);
    /// let (y1, gradient) = value_and_grad(end, &rows)?;
    /// assert!((y1.item() - 1.261_236).abs() < 1e-6);
    /// // y(3) is linear in the rows.
    /// assert!(((gradient * rows).sum() - y1).item().abs() < 1e-6);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn of_tensor(&self, rows: &Tensor) -> TensorInterpolation {
        let n = self.ts().len();
        assert!(rows.dtype().is_float(), "rows must be of a float type, but they are {}", rows.ty());
        let fits = rows.rank() == 2 && rows.shape()[0] == n;
        assert!(fits, "rows must have shape [{n}, m], one row per time, but it is {}", rows.shape());
        let ts = Tensor::from_vec([n], self.ts().to_vec());
        let starts = Tensor::concat(&[&ts.slice(0, 0..1), &ts], 0);
        let coefficients = coefficients(self.kind(), self.ts(), rows);
        TensorInterpolation { ts, starts, coefficients, range: self.range() }
    }
}

impl TensorInterpolation {
    /// u(t), see [`Interpolation::at`].
    ///
    /// # Shapes
    /// t a scalar; the result `[m]`, of the type of the rows.
    #[track_caller]
    pub fn at(&self, t: &Tensor) -> Tensor {
        assert!(t.rank() == 0, "t must be a scalar, but it has shape {}", t.shape());
        let t = t.cast(DType::F64);
        let passed = self.ts.le(&t).cast(DType::I32).sum();
        let c = self.coefficients.take_clamped(&passed);
        let dtype = c.dtype();
        let s = (&t - self.starts.take_clamped(&passed)).cast(dtype);
        let k = |k: usize| c.slice(1, k..k + 1).reshape([c.shape()[0]]);
        let u = ((k(3) * &s + k(2)) * &s + k(1)) * &s + k(0);
        let [first, last] = self.range;
        if last == f64::INFINITY {
            return u;
        }
        t.ge(first).and(&t.le(last)).select(&u, &Tensor::scalar(dtype, f64::NAN))
    }
}

/// The coefficients before the first row, between the rows, and behind the last row, `[n + 1, m, 4]`.
fn coefficients(kind: Between, ts: &[f64], rows: &Tensor) -> Tensor {
    let [n, m] = [rows.shape()[0], rows.shape()[1]];
    let zeros = |num: usize| Tensor::full(rows.dtype(), [num, m], 0.0);
    let padded = |between: Tensor| Tensor::concat(&[&zeros(1), &between, &zeros(1)], 0);
    let c0 = Tensor::concat(&[&rows.slice(0, 0..1), rows], 0);
    if kind == Between::Constant {
        return stacked(&[c0, zeros(n + 1), zeros(n + 1), zeros(n + 1)]);
    }
    let steps = ts.windows(2).map(|t| t[1] - t[0]).collect();
    let h = Tensor::from_vec([n - 1, 1], steps).cast(rows.dtype());
    // The slope of each interval, and that of the interval before; the first interval is its own predecessor.
    let slope = (rows.slice(0, 1..n) - rows.slice(0, 0..n - 1)) / &h;
    if kind == Between::Linear {
        return stacked(&[c0, padded(slope), zeros(n + 1), zeros(n + 1)]);
    }
    let past = Tensor::concat(&[&slope.slice(0, 0..1), &slope.slice(0, 0..n - 2)], 0);
    let bend = &slope - &past;
    let c2 = &bend * 2.0 / &h;
    let c3 = -(bend / &h / &h);
    stacked(&[c0, padded(past), padded(c2), padded(c3)])
}

/// Four arrays `[n, m]` as one `[n, m, 4]`.
fn stacked(parts: &[Tensor; 4]) -> Tensor {
    let parts = parts.each_ref().map(|part| part.expand_dims(2));
    Tensor::concat(&parts.each_ref(), 2)
}
