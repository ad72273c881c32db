//! What a traced solve gives: values of the graph.

use crate::array::DType;
use crate::ode::{Outcome, status};
use crate::tensor::{Tensor, Tree};
use crate::tree;

tree! {
/// The result of a solve on tensors; inside a jitted function every number here is a device value.
///
/// A jitted call that contains a failed solve returns an error with its outcome; a solve on concrete
/// tensors says how it went in [`Solution::outcome`].
#[non_exhaustive]
pub struct Solution<Y> {
    /// The time reached: t1 unless the solve failed.
    pub t1: Tensor,
    /// The state there.
    pub y1: Y,
    /// The saved times, f64 of rank 1: t0, the given ones and t1, as far as they were asked for; t1 if nothing was.
    pub ts: Tensor,
    /// The states at these times. The axis of times stands behind the rows, `[row, time, component]`, where the first
    /// axes of all leaves of y have one length and some leaf has a further axis; else it is first, `[time, component]`
    /// or `[time]`. A time that a failed solve did not reach has NaN.
    pub ys: Y,
    /// Counters.
    pub stats: Stats,
    /// status, t, dt, step, component, dt_min, of shape [6]; see [`Solution::outcome`].
    pub(super) verdict: Tensor,
}
}

tree! {
/// Counters of a solve, each an f64 tensor of rank 0 that holds a whole number.
#[non_exhaustive]
pub struct Stats {
    /// Steps attempted.
    pub num_steps: Tensor,
    /// Steps accepted.
    pub num_accepted: Tensor,
    /// Steps rejected.
    pub num_rejected: Tensor,
    /// Evaluations of the field.
    pub num_field_evals: Tensor,
}
}

impl<Y: Tree> Solution<Y> {
    /// Why the solve ended.
    ///
    /// # Panics
    /// While it is traced.
    #[track_caller]
    pub fn outcome(&self) -> Outcome {
        let v = self.verdict.to_vec();
        Outcome::decode(v[0], v[1], v[2], v[3], v[4], v[5])
            .expect("invariant: a solve that returned has ended")
    }

    /// Whether t1 was reached: a bool tensor of rank 0.
    pub fn completed(&self) -> Tensor {
        self.verdict.at(0).eq(Tensor::scalar(DType::F64, status::COMPLETED))
    }
}
