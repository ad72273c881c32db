//! The solution of a traced solve, as values of the graph.

use crate::adjoint::leaves::Leaves;
use crate::adjoint::{EventRecords, TensorDenseOutput};
use crate::array::DType;
use crate::ode::{Clock, ConfigError, Outcome, Warning, status};
use crate::tensor::{Check, Tensor, Tree, register_check};
use crate::tree;

tree! {
/// The result of a solve on tensors; inside a jitted function all its numbers are traced.
///
/// Unless `allow_incomplete` is set, a solve that ends early is an error. A jitted call returns an error with the
/// outcome; a solve on concrete tensors returns an error that also holds the solution.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// // y(t) = y0 e^(-rate t), and d/drate of the sum over the saved times
/// let sum = |rate: &Tensor| {
///     let decay = Ode::new(|_t, y: &Tensor| -(rate * y)).save_at([0.5, 1.0]).rtol(1e-6).atol(1e-8);
///     let ys = decay.solve(0.0, 1.0, Tensor::ones([3, 2]))?.ys;
///     assert_eq!(ys.shape().to_vec(), [2, 3, 2]); // time, row, component
///     Ok(ys.sum())
/// };
/// let (value, gradient) = value_and_grad(sum, &Tensor::from(1.0))?;
/// let (a, b) = ((-0.5_f64).exp(), (-1.0_f64).exp());
/// assert!((value.item() - 6.0 * (a + b)).abs() < 1e-5);
/// assert!((gradient.item() + 6.0 * (0.5 * a + b)).abs() < 1e-5);
/// # Ok::<(), flowline::Error>(())
/// ```
#[non_exhaustive]
pub struct TensorSolution<Y> {
    /// The time reached: t1 unless the solve failed or an event ended it. One time per group if the rows do not
    /// all share their steps.
    pub t1: Tensor,
    /// The state at `t1`.
    pub y1: Y,
    /// The saved times, f64, `[time]`: those of [`SaveAt`](crate::ode::SaveAt), in the order of the solve and
    /// without repetitions. Rows after the last saved time are NaN, and so are rows of traced times outside the
    /// interval. The shape is `[time, group]` if groups of rows have their own steps
    /// ([`Batching`](super::Batching)).
    pub ts: Tensor,
    /// The states at these times, `[time, ..y]`; NaN where `ts` is NaN.
    pub ys: Y,
    /// The number of rows in use, an f64 tensor of rank 0, or one per group. It is less than the number of rows
    /// if the solve ended early, if it took fewer steps than there is room for, or if times known only at run
    /// time are equal.
    pub num_saved: Tensor,
    /// Counters.
    pub stats: TensorStats,
    /// status, t, dt, step, component, dt_min, of shape `[6]`, or `[groups, 6]`; see [`Outcome::decode`].
    pub(super) verdict: Tensor,
    /// When stiffness was detected, NaN if it was not: of shape `[]`, or `[groups]`. It is separate from the verdict,
    /// which every program reads: a program that does not read this value has no stiffness checks.
    pub(super) stiff_from: Tensor,
    pub(super) events: Option<EventRecords<Y>>,
    pub(super) dense: Option<TensorDenseOutput<Y>>,
}
}

tree! {
/// Counters of a solve, each an f64 tensor of rank 0 that holds a whole number; of rank 1, one per group, where
/// groups of rows have their own steps ([`Batching`](super::Batching)).
#[non_exhaustive]
pub struct TensorStats {
    /// Steps attempted.
    pub num_steps: Tensor,
    /// Steps accepted.
    pub num_accepted: Tensor,
    /// Steps rejected.
    pub num_rejected: Tensor,
    /// Function evaluations, without those for Jacobians and for gradients.
    pub num_fn_evals: Tensor,
    /// Jacobians computed; 0 for explicit methods, else `num_steps`.
    pub num_jac_evals: Tensor,
    /// LU factorizations; 0 for explicit methods, else `num_steps`.
    pub num_factorizations: Tensor,
}
}

impl<Y: Tree> TensorSolution<Y> {
    /// Why the solve ended. With several groups of rows, this is the outcome of the first group that failed,
    /// else of the first group that an event ended.
    ///
    /// # Panics
    /// If the solution is traced.
    #[track_caller]
    pub fn outcome(&self) -> Outcome {
        let mut all = decoded(&self.verdict);
        let early = all.iter().position(|outcome| !outcome.is_success());
        let first = early.or_else(|| all.iter().position(|outcome| !outcome.reached_t1()));
        all.swap_remove(first.unwrap_or(0))
    }

    /// The dense output.
    ///
    /// # Errors
    /// [`ConfigError::NotSaved`] unless [`SaveAt::dense`](crate::ode::SaveAt::dense) was set.
    pub fn dense(&self) -> Result<&TensorDenseOutput<Y>, ConfigError> {
        self.dense.as_ref().ok_or(ConfigError::NotSaved { what: "dense output" })
    }

    /// The records of events.
    ///
    /// # Errors
    /// [`ConfigError::NotSaved`] if the solve had no events.
    pub fn events(&self) -> Result<&EventRecords<Y>, ConfigError> {
        self.events.as_ref().ok_or(ConfigError::NotSaved { what: "events" })
    }

    /// Why the solve of each group of rows ended; one entry where all rows share their steps.
    ///
    /// # Panics
    /// If the solution is traced.
    #[track_caller]
    pub fn outcomes(&self) -> Vec<Outcome> {
        decoded(&self.verdict)
    }

    /// Warnings, in the order of the groups of rows; a warning does not name its group. A solve by
    /// [`Adjoint::Reversible`](super::Adjoint::Reversible) has no warnings, because it ends early if the problem is
    /// stiff.
    ///
    /// # Panics
    /// If the solution is traced.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let stiff = Ode::new(|t: Tensor, y: &Tensor| (y - t.cos()) * -2000.0);
    /// let solution = stiff.solve(0.0, 10.0, Tensor::from(0.0))?;
    /// let text = solution.warnings()[0].to_string();
    /// assert!(text.starts_with("the problem seems stiff from t="));
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn warnings(&self) -> Vec<Warning> {
        let detected = self.stiff_from.to_vec().into_iter().filter(|t| !t.is_nan());
        detected.map(|t| Warning::Stiff { t }).collect()
    }

    /// Whether the solve reached t1 and no event ended it before: a bool tensor of rank 0, or one entry per
    /// group.
    pub fn reached_t1(&self) -> Tensor {
        let status = match self.verdict.rank() {
            1 => self.verdict.index(0),
            _ => self.verdict.column(0),
        };
        status.eq(Tensor::scalar(DType::F64, status::COMPLETED))
    }
}

#[track_caller]
fn decoded(verdict: &Tensor) -> Vec<Outcome> {
    let of = |v: &[f64]| {
        Outcome::decode(v[0], v[1], v[2], v[3], v[4], v[5])
            .expect("invariant: a solve that returned has ended")
    };
    verdict.to_vec().chunks(6).map(of).collect()
}

impl TensorSolution<Leaves> {
    /// The same solution with trees like `y`.
    pub(super) fn of<Y: Tree>(self, y: &Y) -> TensorSolution<Y> {
        let tree = |leaves: Leaves| y.with_leaves(leaves.into_tensors());
        let TensorSolution { t1, y1, ts, ys, num_saved, stats, verdict, stiff_from, events, dense } = self;
        let events = events.map(|EventRecords { index, t, y, num_events: count }| EventRecords {
            index,
            t,
            y: tree(y),
            num_events: count,
        });
        let dense = dense.map(|curve| {
            let TensorDenseOutput { t0, t1, rows, num_steps, ends, steps, y1, curve } = curve;
            TensorDenseOutput { t0, t1, rows, num_steps, ends, steps, y1: tree(y1), curve }
        });
        let (y1, ys) = (tree(y1), tree(ys));
        TensorSolution { t1, y1, ts, ys, num_saved, stats, verdict, stiff_from, events, dense }
    }

    /// The solution of a solve that has not begun.
    pub(super) fn unstarted(t0: &Tensor, y0: &Leaves) -> Self {
        let t1 = t0.cast(DType::F64);
        let number = |x: f64| Clock::like(&t1, x);
        let (zero, none) = (number(0.0), number(-1.0));
        let verdict =
            Tensor::stack(&[&number(status::FAILED), &t1, &zero, &zero, &none, &zero]).stop_gradient();
        let rows = |y: &Tensor| Tensor::full(y.dtype(), [&[0], &y.shape()[..]].concat(), 0.0);
        let [num_steps, num_accepted, num_rejected, num_fn_evals, num_jac_evals, num_factorizations] =
            [(); 6].map(|()| zero.clone());
        TensorSolution {
            y1: y0.clone(),
            ts: Tensor::full(DType::F64, [0], 0.0),
            ys: y0.map_leaves(rows),
            num_saved: zero,
            stats: TensorStats {
                num_steps,
                num_accepted,
                num_rejected,
                num_fn_evals,
                num_jac_evals,
                num_factorizations,
            },
            verdict,
            stiff_from: number(f64::NAN),
            events: None,
            dense: None,
            t1,
        }
    }

    /// The outcome and the index of the first group that ended early; `None` if none did. If the verdict is traced,
    /// registers a check that runs with the program and returns `None`. `rows`: the number of rows per group, if
    /// there are groups.
    pub(super) fn settle(&self, rows: Option<usize>) -> Option<(Outcome, usize)> {
        if self.verdict.is_traced() {
            self.register(rows);
            return None;
        }
        let early = decoded(&self.verdict).into_iter().enumerate().find(|(_, outcome)| !outcome.is_success());
        early.map(|(group, outcome)| (outcome, group))
    }

    /// Adds a check of the verdict, which runs with the program.
    pub(super) fn register(&self, rows: Option<usize>) {
        register_check(Check { values: checked(&self.verdict, rows) });
    }
}

/// The values of the check: verdicts in which a terminal event counts as success. If there are groups, each
/// verdict is followed by the first row of its group.
fn checked(verdict: &Tensor, rows: Option<usize>) -> Tensor {
    let code = |x: f64| Tensor::scalar(DType::F64, x);
    let verdict = if rows.is_none() { verdict.reshape([1, 6]) } else { verdict.clone() };
    let status = verdict.column(0);
    let status = status.eq(code(status::EVENT)).select(&code(status::COMPLETED), &status);
    let values = [&status.expand_dims(1), &verdict.slice(1, 1..6)];
    match rows {
        None => Tensor::concat(&values, 1),
        Some(rows) => {
            let first = Tensor::iota(DType::F64, [verdict.shape()[0], 1], 0) * rows as f64;
            Tensor::concat(&[values[0], values[1], &first], 1)
        }
    }
}
