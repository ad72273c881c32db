//! How a flow is solved in training, as plain values: divergence, method, steps, stored states.
//!
//! These are the values in a checkpoint's header. Together with t1 they represent every [`CnfOptions`] without
//! loss. They describe neither fields nor weights.

use crate::adjoint::{Adjoint, Checkpoints};
use crate::cnf::{CnfOptions, Divergence, ErrorNorm, PathRegularization, ProbeDistribution, StepControl};
use crate::error::Result;
use crate::names::names;
use serde::{Deserialize, Serialize};

names! {
    /// How the divergence is computed.
    DivergenceKind {
        /// The trace of the Jacobian.
        Exact = "exact",
        /// An estimate from random probes.
        Hutchinson = "hutchinson",
    }
}

/// How a flow is solved in training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SolveConfig {
    /// How the divergence is computed.
    pub divergence: DivergenceKind,
    /// Whether the probes of an estimate are Gaussian instead of Rademacher.
    pub gaussian: bool,
    /// The number of probes of an estimate.
    pub probes: usize,
    /// The method's name.
    pub solver: String,
    /// Number of steps, or tolerances.
    pub steps: Steps,
    /// The first step size of adaptive steps, if set.
    #[serde(default, rename = "first_step", skip_serializing_if = "Option::is_none")]
    pub dt0: Option<f64>,
    /// Path regularization weights in maximum likelihood: kinetic energy, squared norm of the Jacobian.
    #[serde(default, skip_serializing_if = "is_free")]
    pub path_regularization: [f64; 2],
    /// Whether the step error includes the log-density.
    pub density_in_norm: bool,
    /// Which states are stored for the gradient.
    pub kept: Kept,
    /// The maximum number of steps per solve.
    pub max_steps: u64,
    /// Rows that are solved together.
    #[serde(rename = "tile")]
    pub rows_per_tile: usize,
    /// Whether each row has its own steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_row: bool,
}

/// The choice of step sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of StepControl")]
pub enum Steps {
    Fixed { steps: usize },
    Adaptive { rtol: f64, atol: f64 },
}

/// Which states are stored for the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// As many as fit into 32 MiB, at least one.
    Automatic,
    /// At most this many.
    Count(usize),
    /// As many as fit into this many bytes, at least one.
    Bytes(usize),
    /// All.
    All,
    /// None: the adjoint equation is solved backward, with its own tolerances if given.
    Nothing {
        /// The relative tolerance.
        rtol: Option<f64>,
        /// The absolute tolerance.
        atol: Option<f64>,
    },
    /// Only the last state, from which the steps are reversed.
    Last {
        /// Coupling of the two states of the reversible method.
        coupling: f64,
    },
    /// None: only forward-mode derivatives exist.
    Forward,
}

fn is_free(path_regularization: &[f64; 2]) -> bool {
    *path_regularization == [0.0; 2]
}

impl SolveConfig {
    pub(crate) fn of(settings: &CnfOptions) -> SolveConfig {
        let (divergence, gaussian, probes) = match settings.divergence {
            Divergence::Exact => (DivergenceKind::Exact, false, 1),
            Divergence::Hutchinson { probe, num_probes } => {
                (DivergenceKind::Hutchinson, probe == ProbeDistribution::Gaussian, num_probes)
            }
        };
        SolveConfig {
            divergence,
            gaussian,
            probes,
            solver: settings.method.to_string(),
            steps: match settings.step_control {
                StepControl::Fixed { steps } => Steps::Fixed { steps },
                StepControl::Adaptive { rtol, atol } => Steps::Adaptive { rtol, atol },
            },
            dt0: settings.dt0,
            path_regularization: [
                settings.path_regularization.kinetic,
                settings.path_regularization.jacobian,
            ],
            density_in_norm: settings.error_norm == ErrorNorm::StateAndLogDensity,
            kept: match settings.adjoint {
                Adjoint::Direct => Kept::All,
                Adjoint::ForwardMode => Kept::Forward,
                Adjoint::Reversible { coupling } => Kept::Last { coupling },
                Adjoint::Backsolve { rtol, atol } => Kept::Nothing { rtol, atol },
                Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Count(n) } => Kept::Count(n),
                Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(b) } => Kept::Bytes(b),
                Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto } => Kept::Automatic,
            },
            max_steps: settings.max_steps,
            rows_per_tile: settings.rows_per_tile,
            per_row: settings.per_row,
        }
    }

    pub(crate) fn settings(&self, t1: f64) -> Result<CnfOptions> {
        let probe = if self.gaussian { ProbeDistribution::Gaussian } else { ProbeDistribution::Rademacher };
        let checkpoints = |checkpoints| Adjoint::RecursiveCheckpoint { checkpoints };
        let mut settings = CnfOptions::default();
        let CnfOptions {
            t1: end,
            divergence,
            method,
            step_control,
            dt0,
            error_norm,
            path_regularization,
            adjoint,
            max_steps,
            rows_per_tile,
            per_row,
        } = &mut settings;
        *end = t1;
        *divergence = match self.divergence {
            DivergenceKind::Exact => Divergence::Exact,
            DivergenceKind::Hutchinson => Divergence::Hutchinson { probe, num_probes: self.probes },
        };
        *method = self.solver.parse()?;
        *step_control = match self.steps {
            Steps::Fixed { steps } => StepControl::Fixed { steps },
            Steps::Adaptive { rtol, atol } => StepControl::Adaptive { rtol, atol },
        };
        *error_norm = if self.density_in_norm { ErrorNorm::StateAndLogDensity } else { ErrorNorm::State };
        *adjoint = match self.kept {
            Kept::Last { coupling } => Adjoint::Reversible { coupling },
            Kept::Automatic => checkpoints(Checkpoints::Auto),
            Kept::Count(n) => checkpoints(Checkpoints::Count(n)),
            Kept::Bytes(b) => checkpoints(Checkpoints::Bytes(b)),
            Kept::All => Adjoint::Direct,
            Kept::Forward => Adjoint::ForwardMode,
            Kept::Nothing { rtol, atol } => Adjoint::Backsolve { rtol, atol },
        };
        *path_regularization = PathRegularization {
            kinetic: self.path_regularization[0],
            jacobian: self.path_regularization[1],
        };
        (*dt0, *max_steps) = (self.dt0, self.max_steps);
        (*rows_per_tile, *per_row) = (self.rows_per_tile, self.per_row);
        Ok(settings)
    }

    /// Tsit5 with equal relative and absolute tolerances, exact divergence, automatic checkpoints.
    pub(crate) fn adaptive(tolerance: f64) -> SolveConfig {
        let steps = Steps::Adaptive { rtol: tolerance, atol: tolerance };
        SolveConfig { steps, ..SolveConfig::of(&CnfOptions::default()) }
    }
}
