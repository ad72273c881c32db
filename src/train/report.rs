//! The numbers of a run, as they are reported at its end; [`tally`](super::tally) counts them.

use super::{Objective, Scores, ToleranceRow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A run in numbers.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TrainReport {
    /// Updates of the whole run.
    pub updates: u64,
    /// Trained numbers of the model.
    pub weights: usize,
    /// Loss of the last batch, in the last phase's unit.
    pub loss: f64,
    /// Mean negative log-likelihood (NLL): in standardized coordinates for an image, per unit for points, of an image's gray
    /// levels for a set of them.
    ///
    /// Where the density to learn is known, `entropy_nats + gap_nats`, by the points of the test. Of files, `validation_nats`:
    /// the least of several measures on the rows that chose the weights, and so too small; `test_nll_nats` is the figure of
    /// the model.
    pub nll_nats: f64,
    /// Its standard error; none of one row.
    pub nll_stderr_nats: Option<f64>,
    /// Mean NLL of the validation rows, which chose the weights of a run on files.
    pub validation_nats: f64,
    /// Its standard error over the rows.
    pub validation_stderr_nats: Option<f64>,
    /// Validation rows that were measured.
    pub validation_rows: u64,
    /// Mean NLL of the test rows. They chose nothing and were measured once, at the end.
    pub test_nll_nats: f64,
    /// Its standard error over the rows.
    pub test_nll_stderr_nats: Option<f64>,
    /// Test rows that were measured.
    pub test_rows: u64,
    /// Of images, bits a coordinate of those of validation, dequantized uniformly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim: Option<f64>,
    /// Its standard error over images, noise and probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_stderr: Option<f64>,
    /// Draws of noise and probe for each image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_draws: Option<usize>,
    /// Of images, bits a coordinate of those of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim: Option<f64>,
    /// Its standard error over images, noise and probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim_stderr: Option<f64>,
    /// Bits a coordinate of a few images by the tolerance of their solves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToleranceRow>,
    /// Entropy of the density to learn, where it is known: the least that the NLL can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_nats: Option<f64>,
    /// KL divergence of the model from a known density: the mean of `log p(x) - log q(x)` over the points of the test, each
    /// evaluated under both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_nats: Option<f64>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_stderr_nats: Option<f64>,
    /// Integral of the learned density over the plane; none in other dimensions.
    #[serde(rename = "mass", skip_serializing_if = "Option::is_none")]
    pub total_probability: Option<f64>,
    /// Probability in the outermost band of the domain of that integral; above 1e-5 the domain is too small.
    #[serde(rename = "mass_outer", skip_serializing_if = "Option::is_none")]
    pub outer_probability: Option<f64>,
    /// Seconds from the start of the process to the end of its first update; where nothing was left to do, of the latest
    /// process that did one.
    pub first_update_s: Option<f64>,
    /// The phases in order.
    pub phases: Vec<PhaseReport>,
    /// Programs that this process traced and compiled.
    pub compiles: usize,
    /// Where a resumed run went on.
    pub resumed_from_update: Option<u64>,
    /// The most states that a gradient kept at once.
    pub states_kept_max: u64,
    /// Planned bytes of an update at their peak, of the last phase: the one that solves, whose memory `checkpoints` governs.
    pub plan_peak_bytes: u64,
    /// The largest resident memory of any process of the run.
    pub peak_rss_mb: f64,
    /// Seconds of training until the gap was first measured below each bound, in nats.
    pub seconds_to_gap: BTreeMap<&'static str, Option<f64>>,
    /// Threads that updates ran on.
    pub threads: usize,
    /// The seed.
    pub seed: u64,
    /// What lies in the run folder: name to path.
    pub files: BTreeMap<String, String>,
}

/// A phase in numbers.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// What was minimized.
    pub objective: Objective,
    /// Updates.
    pub updates: u64,
    /// Their wall time, measuring and drawing excluded.
    pub seconds: f64,
    /// Median time of the steady state.
    pub ms_per_update: f64,
    /// Evaluations of the field an update.
    pub field_evals_per_update: f64,
    /// Steps run again for a gradient an update.
    pub recomputed_steps_per_update: f64,
    /// Kernels and loops of its program, each counted once however often it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<usize>,
    /// Floating-point operations an update, by its program and the steps that solves took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops_per_update: Option<f64>,
    /// Bytes that its kernels read and write an update, in whichever cache they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_moved_per_update: Option<f64>,
    /// Times that the step function was traced.
    pub traces: usize,
    /// Buffers alive after update 100 of the phase, where it has as many.
    pub live_buffers_at_100: Option<usize>,
    /// Buffers alive after its last update.
    pub live_buffers_at_end: usize,
    /// Their bytes after update 100.
    pub live_bytes_at_100: Option<usize>,
    /// Their bytes after the last update.
    pub live_bytes_at_end: usize,
    /// Resident memory after update 100.
    pub rss_mb_at_100: Option<f64>,
    /// Resident memory after the last update.
    pub rss_mb_at_end: f64,
    /// NLL of the validation points at its end; of a known density, the entropy plus the gap.
    pub nll_nats: Option<f64>,
    /// Its standard error.
    pub nll_stderr_nats: Option<f64>,
    /// The gap at its end by the validation points, where an entropy is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_nats: Option<f64>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_stderr_nats: Option<f64>,
}

impl TrainReport {
    /// What was found of the model, by name, each with its standard error: test figures first.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        self.scores().figures()
    }

    /// The scores alone.
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
            total_probability: self.total_probability,
        }
    }
}

/// The figures of the model, one per line.
impl fmt::Display for TrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> =
            self.figures().iter().map(|(name, value)| format!("{name:19}  {value}")).collect();
        f.write_str(&lines.join("\n"))
    }
}
