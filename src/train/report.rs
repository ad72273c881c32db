//! The report of a run: scores, times and costs. [`tally`](super::tally) counts them.

use super::scores::lines;
use super::{LearnedFrom, Objective, Scores, ToleranceRow, start};
use crate::eval::{classes_text, dequantized_text, dropped_text};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Scores, times and costs of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TrainReport {
    /// Total number of updates.
    #[doc(alias = "iteration")]
    pub updates: u64,
    /// Number of trained parameters.
    pub weights: usize,
    /// Loss of the last batch, in the unit of the last phase.
    pub loss: f64,
    /// Mean negative log-likelihood (NLL): in standardized coordinates for an image, in the units of the data
    /// for points, of pixel values for a set of images.
    ///
    /// For a known density `entropy_nats + gap_nats`, from the test points. For points and image sets
    /// `validation_nats`: the lowest of several checks on the rows that selected the weights, and so biased
    /// low; report `test_nll_nats` instead.
    pub nll_nats: f64,
    /// Its standard error; `None` for one row.
    pub nll_stderr_nats: Option<f64>,
    /// Mean NLL of the validation rows, which selected the weights of a run on points or image sets.
    pub validation_nats: f64,
    /// Its standard error over the rows.
    pub validation_stderr_nats: Option<f64>,
    /// Number of validation rows scored.
    pub validation_rows: u64,
    /// Mean NLL of the test rows. They did not select the weights and were scored once, at the end.
    pub test_nll_nats: f64,
    /// Its standard error over the rows.
    pub test_nll_stderr_nats: Option<f64>,
    /// Number of test rows scored.
    pub test_rows: u64,
    /// For images, bits/dim of the validation images with uniform dequantization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim: Option<f64>,
    /// Its standard error over images, noise and probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_stderr: Option<f64>,
    /// Draws of noise and probe per image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_draws: Option<usize>,
    /// For images, bits/dim of the test images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim: Option<f64>,
    /// Its standard error over images, noise and probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim_stderr: Option<f64>,
    /// Bits/dim of a few validation images by solver tolerance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToleranceRow>,
    /// Entropy of the target density, if known: the lower bound of the NLL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_nats: Option<f64>,
    /// KL divergence of the model from a known density: the mean of `log p(x) - log q(x)` over the test points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_nats: Option<f64>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_stderr_nats: Option<f64>,
    /// In a run that learned from exact targets alone, the [estimate](crate::cnf::extra::KlEstimator) of the KL divergence
    /// by velocities, without a solve: the least of the checks during training. It ranks flows; the score is `gap_nats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_estimate_nats: Option<f64>,
    /// Its standard error over the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_estimate_stderr_nats: Option<f64>,
    /// For a toy density, what the flow learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<LearnedFrom>,
    /// For a table whose flow started from a mixture, the number of its normal densities; 0 if there were too few rows
    /// for a mixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_normals: Option<usize>,
    /// The total probability: the integral of the learned density over the plane; `None` in other dimensions.
    #[serde(rename = "mass", skip_serializing_if = "Option::is_none")]
    pub total_probability: Option<f64>,
    /// The estimated error of the quadrature that computed the total probability; for a large image its standard error.
    #[serde(rename = "mass_error", skip_serializing_if = "Option::is_none")]
    pub total_probability_error: Option<f64>,
    /// Number of points, if the total probability was computed by importance sampling.
    #[serde(rename = "mass_points", skip_serializing_if = "Option::is_none")]
    pub total_probability_points: Option<u64>,
    /// The part of the total probability in the outermost band of the domain; if it is above 1e-5, the domain
    /// is too small.
    #[serde(rename = "mass_outer", skip_serializing_if = "Option::is_none")]
    pub outer_probability: Option<f64>,
    /// Seconds from the start of the process to the end of its first update; if this process made no update, of
    /// the latest process that made one.
    pub first_update_s: Option<f64>,
    /// The phases in order.
    pub phases: Vec<PhaseReport>,
    /// Number of programs that this process traced and compiled, without those that apply a gradient.
    pub compiles: usize,
    /// The update from which the run was resumed.
    pub resumed_from_update: Option<u64>,
    /// Maximum number of states stored for a gradient.
    pub states_kept_max: u64,
    /// Planned peak memory of an update in the last phase, in bytes. The option `checkpoints` changes it.
    pub plan_peak_bytes: u64,
    /// Peak resident memory of any process of the run, in MB of 10^6 bytes.
    pub peak_rss_mb: f64,
    /// Seconds of updates until a validation first found a KL divergence below each bound, in nats; `None` if
    /// none did.
    pub seconds_to_gap: BTreeMap<&'static str, Option<f64>>,
    /// The columns with uniform noise of one step, and their steps: all scores are of values with this noise.
    #[serde(rename = "dequantized", skip_serializing_if = "BTreeMap::is_empty")]
    pub dequantized_columns: BTreeMap<String, f64>,
    /// Number of rows of the table that were left out because a cell is missing; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_dropped: Option<usize>,
    /// The names of the classes of a table; empty without classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
    /// The column of labels of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_column: Option<String>,
    /// Number of threads.
    pub threads: usize,
    /// The seed.
    pub seed: u64,
    /// The paths of the figures, the metrics and the checkpoint in the run folder, by name without extension.
    pub files: BTreeMap<String, String>,
}

/// Times and costs of a phase.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// The objective.
    pub objective: Objective,
    /// Number of updates.
    pub updates: u64,
    /// Wall time of the updates in seconds, without validation and figures.
    pub seconds: f64,
    /// Median milliseconds per update, without the first 10 updates (at most half of all).
    pub ms_per_update: f64,
    /// Function evaluations per update.
    pub field_evals_per_update: f64,
    /// Steps recomputed for gradients, per update.
    pub recomputed_steps_per_update: f64,
    /// Kernels and loops of the program, each counted once, however often it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<usize>,
    /// Floating-point operations per update, from the program and the number of solver steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops_per_update: Option<f64>,
    /// Bytes that kernels read and write per update, in any cache or memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_moved_per_update: Option<f64>,
    /// Number of times that the gradient of an update was traced.
    pub traces: usize,
    /// Live buffers after update 100 of the phase, if the phase has 100 updates.
    pub live_buffers_at_100: Option<usize>,
    /// Live buffers after the last update.
    pub live_buffers_at_end: usize,
    /// Bytes of live buffers after update 100 of the phase.
    pub live_bytes_at_100: Option<usize>,
    /// Bytes of live buffers after the last update.
    pub live_bytes_at_end: usize,
    /// Resident memory after update 100 of the phase, in MB of 10^6 bytes.
    pub rss_mb_at_100: Option<f64>,
    /// Resident memory after the last update, in MB of 10^6 bytes.
    pub rss_mb_at_end: f64,
    /// The last validation NLL of the phase; for a known density, entropy plus KL divergence.
    pub nll_nats: Option<f64>,
    /// Its standard error.
    pub nll_stderr_nats: Option<f64>,
    /// The last KL divergence over the validation points in the phase, if the entropy is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_nats: Option<f64>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_stderr_nats: Option<f64>,
}

impl TrainReport {
    /// The scores of the model by name, means with their standard errors: test scores first; then the classes, the
    /// rows dropped, the columns with noise and the start.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let noise = dequantized_text(&self.dequantized_columns).map(|columns| ("dequantized", columns));
        let from = self.start_normals.map(|normals| ("start", start::named(normals)));
        let dropped = dropped_text(self.num_dropped).map(|rows| ("dropped", rows));
        let classes = classes_text(&self.class_names, self.label_column.as_deref());
        let classes = classes.map(|classes| ("classes", classes));
        self.scores().figures().into_iter().chain(classes).chain(dropped).chain(noise).chain(from).collect()
    }

    /// The scores only.
    pub(super) fn scores(&self) -> Scores {
        Scores {
            update: self.updates,
            validation_nats: self.validation_nats,
            validation_stderr_nats: self.validation_stderr_nats,
            validation_rows: self.validation_rows,
            test_nll_nats: self.test_nll_nats,
            test_nll_stderr_nats: self.test_nll_stderr_nats,
            test_rows: self.test_rows,
            bits_per_dim: self.bits_per_dim,
            bits_per_dim_stderr: self.bits_per_dim_stderr,
            test_bits_per_dim: self.test_bits_per_dim,
            test_bits_per_dim_stderr: self.test_bits_per_dim_stderr,
            entropy_nats: self.entropy_nats,
            gap_nats: self.gap_nats,
            gap_stderr_nats: self.gap_stderr_nats,
            kl_estimate_nats: self.kl_estimate_nats,
            kl_estimate_stderr_nats: self.kl_estimate_stderr_nats,
            learned_from: self.learned_from,
            total_probability: self.total_probability,
            total_probability_error: self.total_probability_error,
            total_probability_points: self.total_probability_points,
        }
    }
}

/// The scores of the model, one per line.
impl fmt::Display for TrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lines(&self.figures()))
    }
}
