//! Options that only traced solves have: the adjoint, batching, the error norm of a tuple, expected steps.

use crate::graph::{Checkpoints, Policy};
use crate::tensor::Tensor;

/// How the gradient of a solve is computed.
///
/// Prefer the default, [`Adjoint::RecursiveCheckpoint`]: its gradient is exact for the steps taken, and its
/// memory is bounded.
///
/// | adjoint | states stored for N steps | derivative of |
/// | --- | --- | --- |
/// | `RecursiveCheckpoint` | a bounded number; the others are recomputed | the steps taken, exact to rounding |
/// | `Direct` | N | the same, with the same bits; reverse derivatives of any order, except with `PerRow` |
/// | `Reversible` | one pair | the steps of its own map, up to rounding that grows as coupling^-N |
/// | `Backsolve` | none | the solution of the ODE, to the errors of two solves |
/// | `ForwardMode` | none | the steps taken, only with [`jvp`](crate::tensor::jvp) |
///
/// If an adjoint cannot differentiate a solve, the error names an alternative. [`Jit::plan`](crate::tensor::Jit::plan)
/// reports the states stored and the steps recomputed; [`debug_nans`](crate::tensor::debug_nans) locates a gradient
/// that is not finite. `docs/reference/adjoints.md` in the repository has all costs, restrictions and measured errors.
///
/// # References
/// Griewank and Walther (2000), Algorithm 799: revolve, ACM TOMS 26, 19-45, for the placement of checkpoints. Chen,
/// Rubanova, Bettencourt, Duvenaud (2018), Neural ordinary differential equations, algorithm 1, for `Backsolve`.
/// McCallum and Foster (2024), arXiv:2410.11648, for `Reversible`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Adjoint {
    /// Stores at most `checkpoints` states and recomputes the others: O(checkpoints) memory for any number of
    /// steps, with as few recomputed steps as possible if the number of steps is known in advance.
    #[doc(alias = "RecursiveCheckpointAdjoint")]
    #[doc(alias = "InterpolatingAdjoint")]
    RecursiveCheckpoint {
        /// The number of stored states.
        checkpoints: Checkpoints,
    },
    /// Stores every state: no step is recomputed; memory grows with the number of steps.
    #[doc(alias("ReverseDiffAdjoint", "DirectAdjoint"))]
    Direct,
    /// Solves the adjoint equation and the state backward in time and stores only the result of the forward solve.
    /// This continuous adjoint is not the exact derivative of the steps taken.
    ///
    /// The gradient is NaN if the backward solve ends early. With
    /// [`allow_incomplete`](crate::ode::Ode::allow_incomplete), it is also NaN if the forward solve ends early: the
    /// backward solve starts at t1, which the state has not reached. Other adjoints differentiate the steps taken.
    #[doc(alias = "BacksolveAdjoint")]
    Backsolve {
        /// The relative tolerance of the backward solve; `None` for that of the forward solve.
        rtol: Option<f64>,
        /// The absolute tolerance of the backward solve; `None` for that of the forward solve.
        atol: Option<f64>,
    },
    /// Takes steps with an invertible map and stores only the last state. The gradient is the exact derivative of these
    /// steps up to rounding, which grows as coupling^-N over N steps. A step costs twice the method's evaluations.
    ///
    /// The map is not the method itself. It suits solutions that are not damped: on y' = -k y with steps of
    /// length h it is stable while `coupling e^(k h)` is below 1. Where it is unstable, its two states
    /// separate, and the solve ends with [`Outcome::ReversibleUnstable`](crate::ode::Outcome::ReversibleUnstable). The
    /// gradient is NaN if the backward pass does not recover y0.
    Reversible {
        /// The coupling of the two states, in (0, 1). A value closer to 1 amplifies rounding less, but is less
        /// stable. A smaller value allows more damping, but fewer steps.
        coupling: f64,
    },
    /// Forward derivatives only ([`jvp`](crate::tensor::jvp)); a reverse derivative is an error.
    ForwardMode,
}

impl Adjoint {
    /// [`Adjoint::RecursiveCheckpoint`] that stores `checkpoints` states, the first one included.
    pub fn recursive_checkpoint(checkpoints: usize) -> Adjoint {
        Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Count(checkpoints) }
    }

    /// [`Adjoint::Backsolve`] with the tolerances of the solve.
    pub fn backsolve() -> Adjoint {
        Adjoint::Backsolve { rtol: None, atol: None }
    }

    /// [`Adjoint::Reversible`] with a coupling of 0.99.
    pub fn reversible() -> Adjoint {
        Adjoint::Reversible { coupling: 0.99 }
    }

    pub(super) fn policy(self) -> Policy {
        match self {
            Adjoint::RecursiveCheckpoint { checkpoints } => Policy::Checkpoint(checkpoints),
            Adjoint::Direct => Policy::Direct,
            Adjoint::ForwardMode => Policy::Forward,
            Adjoint::Reversible { .. } => Policy::Reversible,
            Adjoint::Backsolve { .. } => Policy::Checkpoint(Checkpoints::Auto),
        }
    }
}

/// As many checkpoints as fit into 32 MiB, at least one.
impl Default for Adjoint {
    fn default() -> Self {
        Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto }
    }
}

/// Which rows of a batch share their steps.
///
/// Rows are the entries of the first axis, which has the same length in every leaf of the state. Rows that
/// share their steps are one solve: one error norm, one controller, one outcome. The failure of one solve does
/// not affect the others. Except under [`Batching::Joint`], the field is called with the rows of one group
/// (`[1, ..]` for [`Batching::PerRow`]) and a scalar t, so other data per row must be part of the state.
/// Numbers of the solution become vectors over groups, saved times are `[time, group]`, and states keep the
/// shape of the whole batch: saved states are `[time, row, ..]`.
///
/// The values of a group, and the gradient with respect to its rows of y0, are bit-equal to those of the group solved
/// alone. Gradients with respect to values that rows share are sums over rows. The sums of groups are added in
/// order; [`Batching::PerRow`] adds all rows of each step.
///
/// # Examples
/// ```
/// use flowline::adjoint::Batching;
/// use flowline::nn::prelude::*;
/// // y' = -(1 + y^2) y: larger values decay faster
/// let field = |_t: Tensor, y: &Tensor| -((1.0 + y.square()) * y);
/// let y0 = Tensor::from([[0.1], [1.0], [10.0]]);
/// let solution = Ode::new(field).batching(Batching::PerRow).solve(0.0, 1.0, &y0)?;
/// let steps = solution.stats.num_steps.to_vec();
/// assert!(steps[0] < steps[1] && steps[1] < steps[2]);
/// let alone = Ode::new(field).solve(0.0, 1.0, Tensor::from([[1.0]]))?;
/// assert_eq!((solution.y1.to_vec()[1], steps[1]), (alone.y1.to_vec()[0], alone.stats.num_steps.item()));
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Batching {
    /// All rows share their steps: the error norm is taken over the whole state.
    #[default]
    Joint,
    /// Each row has its own step size. All rows advance as one batch, one attempted step at a time, until the
    /// slowest row has finished, so the field is evaluated on all rows at once on one thread. To use several
    /// threads, solve inside [`map_rows`](crate::tensor::map_rows), which runs tiles of rows in parallel.
    /// Solves that continue after events, and those by [`Adjoint::Reversible`] or [`Adjoint::Backsolve`], are
    /// separate solves per row instead, as with `Groups(1)`.
    PerRow,
    /// Groups of this many consecutive rows; the last group may have fewer. Groups are solved separately, in
    /// parallel.
    Groups(usize),
}

/// How the errors of the parts of a state, a tuple of trees, are combined.
///
/// A norm over all components gives a small part little weight: its effective tolerance is larger by the factor
/// `sqrt(all components / components of the part)`. The norm applies to step sizes, tolerances and the choice
/// of the first step. For a state of one part, each variant is the RMS norm of its components.
///
/// # References
/// [`PartNorm::First`] is a seminorm: Kidger, Chen and Lyons (2021), "Hey, that's not an ODE": faster ODE adjoints via
/// seminorms.
///
/// # Examples
/// ```
/// use flowline::adjoint::extra::PartNorm;
/// use flowline::nn::prelude::*;
/// // 100 components at rest beside one that oscillates.
/// let field = |t: Tensor, (y, q): &(Tensor, Tensor)| (y * 0.0, q * 0.0 + (t * 40.0).sin() * 5.0);
/// let y0 = (Tensor::zeros([100]), Tensor::zeros([1]));
/// let error = |norm: PartNorm| -> flowline::Result<f64> {
///     let solution = Ode::new(field).rtol(1e-3).atol(1e-3).part_norm(norm).solve(0.0, 1.0, &y0)?;
///     Ok((solution.y1.1.item() - 0.125 * (1.0 - 40.0_f64.cos())).abs())
/// };
/// assert!(error(PartNorm::Largest)? < 1e-3 && error(PartNorm::Joint)? > 2e-3);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartNorm {
    /// The RMS over all components of all parts.
    #[default]
    Joint,
    /// The largest RMS norm of any part: each part meets the tolerance.
    Largest,
    /// The RMS of the first part. The other parts take the same steps and only have to stay finite.
    First,
}

/// The expected number of accepted steps of a solve. It affects only the placement of checkpoints, never a
/// value. A solve that continues after events ignores it.
///
/// A correct number minimizes the recomputed steps. With a wrong number, at most a fifth more steps than the
/// minimum are recomputed, or one step more if a fifth is less than a step. An adaptive solve without a number
/// recomputes at most 1.22 times the minimum (with 2 checkpoints; 1.05 times from 14 on). So set it if the
/// number of steps varies by at most about a tenth, for example from one update to the next.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let decay = Ode::new(|_t, y: &Tensor| -y).adjoint(Adjoint::recursive_checkpoint(3));
/// let first = decay.clone().solve(0.0, 1.0, Tensor::from(1.0))?;
/// // The count is a tensor, so one update can pass it to the next.
/// let again = decay.expected_steps(&first.stats.num_accepted).solve(0.0, 1.0, Tensor::from(1.1))?;
/// assert!((again.y1.item() - 1.1 * (-1.0_f64).exp()).abs() < 1e-4);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ExpectedSteps {
    /// Derived from the controller: known for `StepTo`, and for constant steps without tstops or discontinuities;
    /// unknown for adaptive steps.
    #[default]
    Auto,
    /// Unknown, even where it follows from the controller.
    Unknown,
    /// This number, traced or concrete: a tensor of rank 0, or one number per group, of which the largest is used.
    Steps(Tensor),
}

impl From<&Tensor> for ExpectedSteps {
    fn from(steps: &Tensor) -> Self {
        ExpectedSteps::Steps(steps.clone())
    }
}
impl From<u32> for ExpectedSteps {
    fn from(steps: u32) -> Self {
        ExpectedSteps::Steps(Tensor::from(steps))
    }
}

/// Options of a traced solve.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How the gradient is computed.
    pub adjoint: Adjoint,
    /// Which rows share their steps.
    pub batching: Batching,
    /// How many steps are expected.
    pub expected_steps: ExpectedSteps,
    /// How the errors of parts are combined.
    pub part_norm: PartNorm,
    /// Times to save at that are given as a tensor.
    pub(super) ts: Option<Tensor>,
    /// Whether such times were given twice.
    pub(super) ts_twice: bool,
}
