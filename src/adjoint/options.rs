//! Options of traced solves alone: how the gradient is computed, which rows share steps, how parts are measured.

use crate::graph::{Checkpoints, Policy};
use crate::tensor::Tensor;

/// How the gradient of a solve is computed.
///
/// Keep the default, [`Adjoint::RecursiveCheckpoint`]: its gradient is exact for the steps taken, and its memory is bounded.
///
/// | adjoint | states stored for N steps | derivative of |
/// | --- | --- | --- |
/// | `RecursiveCheckpoint` | a bounded number; the others are recomputed | the steps taken, exact to rounding |
/// | `Direct` | N | the same, with the same bits; in reverse of any order |
/// | `Reversible` | one pair | the steps of its own map, but for rounding that grows as coupling^-N |
/// | `Backsolve` | none | the solution of the ODE, to the errors of two solves |
/// | `ForwardMode` | none | the steps taken, by [`jvp`](crate::tensor::jvp) alone |
///
/// An adjoint refuses what it cannot differentiate by an error that names an alternative. [`Jit::plan`](crate::tensor::Jit::plan)
/// reports the states stored and the steps recomputed; [`debug_nans`](crate::tensor::debug_nans) locates a gradient that is not
/// finite. `docs/reference/adjoints.md` in the repository has all costs, restrictions and measured errors.
///
/// # References
/// Griewank and Walther (2000), Algorithm 799: revolve, ACM TOMS 26, 19-45, for the placement of checkpoints. Chen,
/// Rubanova, Bettencourt, Duvenaud (2018), Neural ordinary differential equations, algorithm 1, for `Backsolve`. McCallum
/// and Foster (2024), arXiv:2410.11648, for `Reversible`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Adjoint {
    /// Stores a bounded number of states and recomputes the others: O(checkpoints) memory whatever the
    /// number of steps, with the minimum of recomputed steps where that number is known in advance.
    RecursiveCheckpoint {
        /// How many states.
        checkpoints: Checkpoints,
    },
    /// Stores every state: no step is recomputed, and memory is proportional to the number of steps.
    Direct,
    /// Solves the adjoint equation backward in time together with the state, and stores no states: the
    /// continuous adjoint, which is not the exact derivative of the steps taken.
    Backsolve {
        /// The relative tolerance of the backward solve; by default that of the solve.
        rtol: Option<f64>,
        /// The absolute tolerance of the backward solve; by default that of the solve.
        atol: Option<f64>,
    },
    /// Solves by a map that can be inverted and stores the last state alone: the exact derivative of
    /// the steps up to rounding, which grows as coupling^-N over N steps. A step costs twice the method's evaluations.
    ///
    /// The map is for solutions that are not damped. On y' = -k y with steps of length h it is stable while
    /// `coupling e^(k h)` is below 1. Where it is unstable the two states that it carries diverge, and the solve ends with
    /// [`Outcome::StatesApart`](crate::ode::Outcome::StatesApart); a backward pass that does not find y0 again gives NaN.
    Reversible {
        /// In (0, 1): how strongly the two states are coupled. Closer to 1 rounding grows less and the map is less stable.
        coupling: f64,
    },
    /// Forward mode alone ([`jvp`](crate::tensor::jvp)); a reverse derivative is an error.
    ForwardMode,
}

impl Adjoint {
    /// [`Adjoint::RecursiveCheckpoint`] with this number of stored states, the first included.
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
    /// Each row has its own step size. All rows advance as one batch, one attempted step each, until the slowest has
    /// finished, so the field's products are over all rows. On one thread; in parallel inside
    /// [`map_rows`](crate::tensor::map_rows).
    PerRow,
    /// Groups of this number of consecutive rows; the last may have fewer. Each group is solved alone, groups in parallel.
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
