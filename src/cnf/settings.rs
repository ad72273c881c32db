//! Solver settings of a flow, which are not trained.

use super::Divergence;
use crate::adjoint::Adjoint;
use crate::ode::Method;
use crate::tensor::{Leaf, Tensor, Tree, TreePath};

/// The choice of step sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepControl {
    /// Steps of equal length.
    Fixed {
        /// The number of steps per block.
        steps: usize,
    },
    /// Adaptive steps; each tile of rows has its own steps, or each row with [`CnfOptions::per_row`].
    Adaptive {
        /// Relative tolerance.
        rtol: f64,
        /// Absolute tolerance.
        atol: f64,
    },
}

/// The norm of the error of an adaptive step when the log-density is integrated too.
///
/// Each norm is the RMS over the rows of a tile, which share their steps, and over the elements of each row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorNorm {
    /// The default: the maximum of the norms of the state, the log-density change and the path
    /// regularization. The tolerance holds for each of them in any number of dimensions.
    #[default]
    StateAndLogDensity,
    /// Only the state. The steps are those of a solve without a density, and are fewer where the divergence
    /// is rough or its estimate noisy. This norm does not limit the error of the log-density.
    State,
}

/// Regularization of trajectories in maximum likelihood training, in nats per row:
/// `kinetic * integral of |f|^2 dt + jacobian * integral of |df/dy|_F^2 dt`.
///
/// Straight trajectories need few steps. The Jacobian norm is exact or estimated like the divergence.
///
/// # References
/// Finlay et al. (2020), How to train your neural ODE: the world of Jacobian and kinetic regularization, eq. 9 and 10.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[doc(alias("RNODE", "kinetic_energy"))]
pub struct PathRegularization {
    /// Weight of the kinetic energy.
    pub kinetic: f64,
    /// Weight of the squared norm of the Jacobian.
    pub jacobian: f64,
}

/// Solver settings of a flow: one static leaf of its tree, so a change causes a new trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CnfOptions {
    /// Integration time per block, starting at 0; 1 by default.
    pub t1: f64,
    /// How the divergence is computed; exact by default.
    pub divergence: Divergence,
    /// The Runge-Kutta method; Tsit5 by default.
    pub method: Method,
    /// The choice of step sizes; adaptive with tolerances of 1e-5 by default.
    pub step_control: StepControl,
    /// The first step size of adaptive steps in a block; by default it is derived from two evaluations of the
    /// field.
    pub dt0: Option<f64>,
    /// The norm of the step error; [`ErrorNorm::StateAndLogDensity`] by default.
    pub error_norm: ErrorNorm,
    /// Path regularization in [`Cnf::nll_loss`](super::Cnf::nll_loss); none by default.
    pub path_regularization: PathRegularization,
    /// How gradients are computed; [`Adjoint::RecursiveCheckpoint`] by default.
    pub adjoint: Adjoint,
    /// The maximum number of steps per solve; 10,000 by default.
    pub max_steps: u64,
    /// Approximate number of rows that are solved together on one thread; 64 by default.
    pub rows_per_tile: usize,
    /// Whether each row has its own steps ([`Batching::PerRow`](crate::adjoint::Batching::PerRow)). By
    /// default the rows of a tile share their steps.
    ///
    /// With its own steps, a row's result has the same bits for any other rows in any order, because its step
    /// error is the RMS over its own elements. The norm of a tile, in contrast, lets some rows have larger
    /// errors than others. Own steps cost more if rows need different numbers of steps. The probes of an
    /// estimated divergence depend on the row index; for the same bits, pass the probes
    /// ([`Cnf::log_prob_with_probes`](super::Cnf::log_prob_with_probes)).
    pub per_row: bool,
}

/// The default relative and absolute tolerance of adaptive steps.
const TOLERANCE: f64 = 1e-5;

impl CnfOptions {
    /// The relative and absolute tolerance of adaptive steps; the defaults for fixed steps.
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
