//! The dense output of a traced solve.
//!
//! Every accepted step has stored the data of its polynomial. The step that contains a time is found by counting the
//! step ends before it. Then that step's polynomial is evaluated. This module must not depend on how steps were chosen.

use super::curve::{Curve, Rows, choose, or_nan};
use super::leaves::Leaves;
use super::rows::swapped;
use crate::adjoint::TensorState;
use crate::array::DType;
use crate::tensor::{Searches, Tensor, Tree, over_rows};
use crate::tree;
use std::convert::Infallible;

tree! {
/// A solution that can be evaluated anywhere in its interval, also inside a jitted function. Its derivatives with
/// respect to the times, the initial state and the field's captures are the derivatives of the steps taken.
///
/// At step ends, the dense output equals the states of the steps up to rounding. Between step ends, it has the order
/// of the method's interpolant. Outside the interval from t0 to the time reached, it is NaN.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let decay = Ode::new(|_t, y: &Tensor| -y).max_steps(100).save_at(SaveAt::dense()).rtol(1e-9).atol(1e-9);
/// let curve = decay.solve(0.0, 2.0, Tensor::from([1.0]))?.dense()?.clone();
/// let ys = curve.eval(&Tensor::from([0.3, 1.7, 2.1]));
/// assert_eq!(ys.shape().to_vec(), [3, 1]);
/// assert!((ys.to_vec()[1] - (-1.7_f64).exp()).abs() < 1e-6 && ys.to_vec()[2].is_nan());
/// # Ok::<(), flowline::Error>(())
/// ```
#[non_exhaustive]
pub struct TensorDenseOutput<Y> {
    /// The start of its interval. One time per row if the rows do not all share their steps.
    pub t0: Tensor,
    /// The end of its interval: the time reached.
    pub t1: Tensor,
    /// The number of rows if they do not all share their steps. Each row then has its own dense output, for a
    /// state of one row, and every tensor has a leading axis of rows.
    pub(super) rows: Option<usize>,
    pub(super) num_steps: Tensor,
    /// The end of each step. If the solve ended at its first event, the last step may end after t1.
    pub(super) ends: Tensor,
    pub(super) steps: Rows,
    pub(super) y1: Y,
    pub(super) curve: Curve,
}
}

impl<Y: TensorState> TensorDenseOutput<Y> {
    /// The states at `ts`: `[..y]` if `ts` has rank 0, `[time, ..y]` if it has rank 1.
    ///
    /// # Panics
    /// If `ts` has more than one axis.
    #[track_caller]
    #[doc(alias = "evaluate")]
    #[doc(alias = "interpolate")]
    pub fn eval(&self, ts: &Tensor) -> Y {
        self.y1.with_leaves(self.erased().at(ts, &TensorDenseOutput::states))
    }

    /// The states at `ts` and their derivatives with respect to t, from the same polynomials. The derivative of
    /// a solution without a step is NaN.
    ///
    /// # Panics
    /// See [`TensorDenseOutput::eval`].
    #[track_caller]
    pub fn eval_with_derivative(&self, ts: &Tensor) -> (Y, Y) {
        let derivatives = self.y1.with_leaves(self.erased().at(ts, &TensorDenseOutput::derivatives));
        (self.eval(ts), derivatives)
    }

    /// t0 and the ends of the steps, up to the time reached: of all rows, in the order of the solve, if they do not share
    /// their steps.
    pub(super) fn step_times(&self) -> Vec<f64> {
        let (starts, reached, counts) = (self.t0.to_vec(), self.t1.to_vec(), self.num_steps.to_vec());
        let ends = self.ends.to_vec();
        let room = ends.len() / counts.len();
        let mut times: Vec<f64> = starts.iter().chain(&reached).copied().collect();
        for (row, (&n, &t1)) in counts.iter().zip(&reached).enumerate() {
            let (own, t0) = (&ends[row * room..][..n as usize], starts[row]);
            times.extend(own.iter().filter(|t| (**t - t0).abs() < (t1 - t0).abs()));
        }
        let sign = if reached.iter().zip(&starts).any(|(t1, t0)| t1 < t0) { -1.0 } else { 1.0 };
        times.sort_by(|a, b| (sign * a).total_cmp(&(sign * b)));
        times.dedup();
        times
    }

    fn erased(&self) -> TensorDenseOutput<Leaves> {
        let TensorDenseOutput { t0, t1, rows, num_steps, ends, steps, y1, curve } = self.clone();
        TensorDenseOutput { t0, t1, rows, num_steps, ends, steps, y1: Leaves::of(&y1), curve }
    }
}

impl TensorDenseOutput<Leaves> {
    /// Applies `f` at `ts` to the dense output, or to the dense output of each row. The result has the axes of
    /// a dense output of all rows.
    #[track_caller]
    fn at(&self, ts: &Tensor, f: &dyn Fn(&Self, &Tensor) -> Leaves) -> Vec<Tensor> {
        let Some(rows) = self.rows else { return f(self, ts).into_tensors() };
        let one = TensorDenseOutput { rows: None, ..self.clone() };
        let own = (rows, Searches::Alone);
        let is_list = ts.rank() == 1;
        let Ok(found) = over_rows(self.leaves(), std::slice::from_ref(ts), own, &mut |x| {
            let (ts, own) = x.split_last().expect("invariant: the times are the last");
            let found = f(&one.with_leaves(own.to_vec()), ts);
            // Drops the axis of the single row, which comes after the axis of times.
            let without_row = |y: &Tensor| y.reshape(y.shape().without_axes(&[usize::from(is_list)]));
            Ok::<_, Infallible>(found.tensors().iter().map(without_row).collect())
        });
        found.iter().map(|y| if is_list { swapped(y) } else { y.clone() }).collect()
    }

    #[track_caller]
    fn states(&self, ts: &Tensor) -> Leaves {
        let (flat, inside, rows) = self.find(ts);
        // A solution without a step is the single point y1.
        let nowhere = rows.t.eq(&rows.t_next);
        let ys = choose(&nowhere, &self.ends(&flat), &self.curve.eval(&flat, &rows));
        shaped(ts, or_nan(&inside, &ys))
    }

    #[track_caller]
    fn derivatives(&self, ts: &Tensor) -> Leaves {
        let (flat, inside, rows) = self.find(ts);
        let inside = inside.and(&rows.t.ne(&rows.t_next));
        shaped(ts, or_nan(&inside, &self.curve.derivative(&flat, &rows)))
    }

    /// The times as a list, whether each time is in the interval, and the step of each time. A time at the end
    /// of a step belongs to that step.
    #[track_caller]
    fn find(&self, ts: &Tensor) -> (Tensor, Tensor, Rows) {
        assert!(ts.rank() < 2, "eval: {ts:?} must be a time (rank 0) or a list of times (rank 1)");
        let (t0, t1) = (&self.t0, &self.t1);
        let flat = ts.cast(DType::F64).reshape([ts.size()]);
        let ahead = t1.lt(t0).select(&Tensor::scalar(DType::F64, -1.0), &Tensor::scalar(DType::F64, 1.0));
        let (at, ends) = (&flat * &ahead, &self.ends * &ahead);
        let inside = at.ge(t0 * &ahead).and(&at.le(t1 * &ahead));
        let is_real = Tensor::iota(DType::F64, [ends.size()], 0).lt(&self.num_steps);
        let before = ends.expand_dims(0).lt(at.expand_dims(1)).and(&is_real.expand_dims(0));
        let index = before.cast(DType::F64).sum_axes(&[1]).minimum(&(&self.num_steps - 1.0));
        let rows = self.steps.take(&index.maximum(&Tensor::scalar(DType::F64, 0.0)));
        (flat, inside, rows)
    }

    fn ends(&self, flat: &Tensor) -> Leaves {
        self.y1.map_leaves(|y| {
            let shape = [&[flat.size()], &y.shape()[..]].concat();
            y.expand_dims(0).broadcast_to(shape)
        })
    }
}

/// Drops the axis of times if `ts` is a single time.
fn shaped(ts: &Tensor, ys: Leaves) -> Leaves {
    match ts.rank() {
        0 => ys.map_leaves(|y| y.index(0)),
        _ => ys,
    }
}
