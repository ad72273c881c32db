//! Solver settings of a flow: what is not trained.

use super::Divergence;
use crate::adjoint::Adjoint;
use crate::ode::Method;
use crate::tensor::{Leaf, Tensor, Tree, TreePath};

/// How long the steps of a solve are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepControl {
    /// Steps of equal length.
    Fixed {
        /// How many over a block.
        steps: usize,
    },
    /// Steps that hold the error estimate of a tile of rows at the tolerance. Each tile has its own.
    Adaptive {
        /// Relative tolerance.
        rtol: f64,
        /// Absolute tolerance.
        atol: f64,
    },
}

/// What the error of an adaptive step is measured on when the log-density is integrated too.
///
/// Each norm is the RMS over the rows of a tile, which share their steps, and over the numbers of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorNorm {
    /// The largest of the norms of the state, of the log-density's change and of what paths cost: the tolerance holds
    /// each of them in any number of dimensions. The default.
    #[default]
    StateAndLogDensity,
    /// The state alone: the steps are those of a solve without a density, fewer where the divergence is
    /// rough or its estimate noisy. Nothing then bounds the error of the log-density.
    State,
}

/// What a path costs in training by maximum likelihood, beside the likelihood: nats a row,
/// `kinetic * integral of |f|^2 dt + jacobian * integral of |df/dy|_F^2 dt`.
///
/// Straight paths are solved in few steps. The Jacobian's norm is exact or estimated as the divergence is.
///
/// # References
/// Finlay et al. (2020), How to train your neural ODE: the world of Jacobian and kinetic regularization, eq. 9 and 10.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathRegularization {
    /// Weight of the kinetic energy.
    pub kinetic: f64,
    /// Weight of the squared norm of the Jacobian.
    pub jacobian: f64,
}

/// How a flow is solved; one static leaf of its tree, so a change means another trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CnfOptions {
    /// Time spent in each block, from 0: 1 where none is given.
    pub t1: f64,
    /// How the divergence is computed: exactly where nothing is said.
    pub divergence: Divergence,
    /// The method: Tsit5 where none is given.
    pub method: Method,
    /// How long the steps are: adaptive with tolerances of 1e-5 where nothing is said.
    pub step_control: StepControl,
    /// The length of the first adaptive step tried in a block: found from two evaluations of the field where none is
    /// given.
    pub dt0: Option<f64>,
    /// What the error is measured on.
    pub error_norm: ErrorNorm,
    /// What paths cost in [`Cnf::nll_loss`](super::Cnf::nll_loss): nothing where nothing is said.
    pub path_regularization: PathRegularization,
    /// How the gradient is taken.
    pub adjoint: Adjoint,
    /// The most steps of one solve: 10,000 where nothing is said.
    pub max_steps: u64,
    /// Rows that are solved together on one thread, about: 64 where nothing is said.
    pub rows_per_tile: usize,
    /// Whether each row has steps of its own ([`Batching::PerRow`](crate::adjoint::Batching::PerRow)); the rows of a tile
    /// share theirs where nothing is said.
    ///
    /// What is found of a row then has the same bits whatever rows stand beside it and in whatever order: alone, the norm
    /// of a step is the RMS over its numbers, where that of a tile lets some rows err more than others. It costs more
    /// steps where rows differ in how many they need. An estimated divergence draws its probes by the place of a row: for
    /// the same bits give the probes with the rows
    /// ([`Cnf::log_prob_with_probes`](super::Cnf::log_prob_with_probes)).
    pub per_row: bool,
}

/// Of adaptive steps, relative and absolute, where none is given.
const TOLERANCE: f64 = 1e-5;

impl CnfOptions {
    /// The tolerances of adaptive steps, relative and absolute; of equal steps those that adaptive ones would have.
    pub(super) fn tolerances(&self) -> (f64, f64) {
        match self.step_control {
            StepControl::Adaptive { rtol, atol } => (rtol, atol),
            StepControl::Fixed { .. } => (TOLERANCE, TOLERANCE),
        }
    }
}

impl Default for CnfOptions {
    fn default() -> Self {
        CnfOptions {
            t1: 1.0,
            divergence: Divergence::Exact,
            method: Method::Tsit5,
            step_control: StepControl::Adaptive { rtol: TOLERANCE, atol: TOLERANCE },
            dt0: None,
            error_norm: ErrorNorm::default(),
            path_regularization: PathRegularization::default(),
            adjoint: Adjoint::default(),
            max_steps: 10_000,
            rows_per_tile: 64,
            per_row: false,
        }
    }
}

impl Tree for CnfOptions {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        f(path, Leaf::Static(self));
    }
    fn each_mut(&mut self, _: &mut dyn FnMut(&mut Tensor)) {}
    fn map(&self, _: &mut TreePath, _: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        self.clone()
    }
}
