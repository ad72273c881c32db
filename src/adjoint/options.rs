//! What only a traced solve can be asked: how its gradient is taken, which rows share steps, how parts are measured.

use crate::graph::{Checkpoints, Policy};
use crate::tensor::Tensor;

#[doc = include_str!("adjoint.md")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Adjoint {
    /// Keeps at most so many states and recomputes the others: O(checkpoints) memory whatever the
    /// number of steps, and the fewest recomputed steps there can be where that number is known before.
    RecursiveCheckpoint {
        /// How many.
        checkpoints: Checkpoints,
    },
    /// Keeps every state: no step is recomputed, memory grows with their number.
    Direct,
    /// Solves the adjoint equation backward in time, the state along with it, and keeps no state: the
    /// continuous adjoint, which is not the exact derivative of the steps taken.
    Backsolve {
        /// The relative tolerance of the backward solve; that of the solve if not said.
        rtol: Option<f64>,
        /// Its absolute tolerance.
        atol: Option<f64>,
    },
    /// Solves by a map that runs backward as well as forward, and keeps the last state alone: the exact derivative of
    /// the steps up to rounding, which grows as coupling^-N over N steps. A step costs twice the method's evaluations.
    ///
    /// The map is not the method's own. It is for solutions that are not damped: those of y' = -k y it holds while
    /// `coupling e^(k h)` is below 1, h the length of its steps. Where it does not hold the two states that it carries
    /// part, and the solve ends with [`Outcome::StatesApart`](crate::ode::Outcome::StatesApart); a backward pass that
    /// does not find y0 again gives NaN. Numbers stand below the table.
    Reversible {
        /// How fast the two states are drawn together: above 0 and below 1, where 1 would be no rounding's growth and no
        /// stability either. A smaller one bears more damping and fewer steps.
        coupling: f64,
    },
    /// Forward derivatives alone ([`jvp`](crate::tensor::jvp)); a reverse one is an error.
    ForwardMode,
}

impl Adjoint {
    /// [`Adjoint::RecursiveCheckpoint`] with so many states kept, the first included.
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

/// As many checkpoints as fit into 32 MiB.
impl Default for Adjoint {
    fn default() -> Self {
        Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto }
    }
}

/// Which rows of a batch share their steps.
///
/// Rows are the entries of the first axis, which is of one length in every leaf of the state. Rows that share their
/// steps are one solve: one error norm, one controller, one verdict. A solve that fails leaves the others as they are.
/// For all but [`Batching::Joint`] the field sees the rows of one group (`[1, ..]` for [`Batching::PerRow`]) and a scalar
/// t, so whatever else belongs to a row is a part of the state. Numbers of the solution are vectors over groups, saved
/// times are `[time, group]`, and states have the shapes that they have for all rows together: saved ones `[time, row, ..]`.
///
/// The values of a group have the bits of that group solved alone, and its gradient by y0 too. Gradients by what rows
/// share are sums over rows: in the order of the groups, or in lockstep of each step over all rows.
///
/// # Examples
/// ```
/// use flowline::adjoint::Batching;
/// use flowline::nn::prelude::*;
/// // y' = -(1 + y^2) y: the larger, the steeper
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
    /// All rows: the error norm is taken over the whole state.
    #[default]
    Joint,
    /// None: every row has steps of its own. All run in lockstep, one attempted step of each at a time, until the last
    /// one has ended, so the field's products are over all rows. On one thread; in parallel inside of
    /// [`map_rows`](crate::tensor::map_rows).
    PerRow,
    /// Groups of so many rows, one below the other; the last may have fewer. Each is solved alone, groups in parallel.
    Groups(usize),
}

/// How the errors of the parts of a state, a tuple of trees, are measured together.
///
/// A norm over all components gives a part with few of them little weight: its tolerance loosens by
/// `sqrt(components / its components)`. Steps, tolerances and the first step's length are those of the norm; a state of
/// one part has the RMS norm of its components.
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
    /// The largest of the RMS norms of the parts: the tolerance holds each.
    Largest,
    /// The RMS of the first part. The others are moved by its steps, and only have to stay finite.
    First,
}

/// How many steps a solve is expected to accept. It decides where checkpoints are placed, never a value.
///
/// An expected number that is right makes the recomputed steps the fewest there can be; a wrong one costs at most a fifth
/// more, one step more where that is less, than those fewest. An adaptive solve without one costs at most 1.22 times the fewest (2 checkpoints;
/// 1.05 from 14 on), so an expected number pays where the number repeats within about a tenth, as from one update of a training
/// to the next.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let decay = Ode::new(|_t, y: &Tensor| -y).adjoint(Adjoint::recursive_checkpoint(3));
/// let first = decay.clone().solve(0.0, 1.0, Tensor::from(1.0))?;
/// // On the device: a training step may carry it to the next.
/// let again = decay.expected_steps(&first.stats.num_accepted).solve(0.0, 1.0, Tensor::from(1.1))?;
/// assert!((again.y1.item() - 1.1 * (-1.0_f64).exp()).abs() < 1e-4);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ExpectedSteps {
    /// What follows from the controller: the number of constant steps or of given times; of adaptive steps nothing.
    #[default]
    Auto,
    /// Nothing, also where the number follows from the controller.
    Unknown,
    /// This many: a tensor of rank 0, traced or concrete.
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
    /// How its gradient is taken.
    pub adjoint: Adjoint,
    /// Which rows share their steps.
    pub batching: Batching,
    /// How many steps are expected.
    pub expected_steps: ExpectedSteps,
    /// How the errors of parts are measured together.
    pub part_norm: PartNorm,
    /// Times to save at that are values of a trace.
    pub(super) ts: Option<Tensor>,
}
