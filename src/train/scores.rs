//! The final scores of a run, as its folder stores them and as text.

use super::LearnedFrom;
use crate::data::{Estimate, grouped};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An error of the total probability below this is not printed: it changes only the last digit.
const SHOWN: f64 = 1e-4;

/// The final scores of a run, named like the fields of [`TrainReport`](super::TrainReport).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[allow(missing_docs, reason = "documented in `TrainReport`")]
pub struct Scores {
    /// Updates of the run at its end.
    pub update: u64,
    pub validation_nats: f64,
    pub validation_stderr_nats: Option<f64>,
    pub validation_rows: u64,
    pub test_nll_nats: f64,
    pub test_nll_stderr_nats: Option<f64>,
    pub test_rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim_stderr: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bits_per_dim_stderr: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_stderr_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_estimate_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_estimate_stderr_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<LearnedFrom>,
    #[serde(rename = "mass", skip_serializing_if = "Option::is_none")]
    pub total_probability: Option<f64>,
    #[serde(rename = "mass_error", skip_serializing_if = "Option::is_none")]
    pub total_probability_error: Option<f64>,
    #[serde(rename = "mass_points", skip_serializing_if = "Option::is_none")]
    pub total_probability_points: Option<u64>,
}

impl Scores {
    /// The scores by name, means with their standard errors: test scores first.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let with_error = |mean, stderr| Estimate { mean, stderr, count: 0 };
        let mut all = Vec::new();
        if let Some(gap) = self.gap_nats {
            let gap = with_error(gap, self.gap_stderr_nats);
            all.push(("KL divergence", format!("{gap} nats ({} test points)", grouped(self.test_rows))));
        }
        if self.learned_from == Some(LearnedFrom::Formula) {
            all.push(("learned from", "the formula of the density, not samples".to_owned()));
        }
        if let Some(bits) = self.test_bits_per_dim {
            let bits = with_error(bits, self.test_bits_per_dim_stderr);
            all.push(("test bits/dim", format!("{bits} ({} images)", grouped(self.test_rows))));
        }
        let test = with_error(self.test_nll_nats, self.test_nll_stderr_nats);
        let validation = with_error(self.validation_nats, self.validation_stderr_nats);
        let rows = |rows: u64| {
            format!("{} {}", grouped(rows), if self.bits_per_dim.is_some() { "images" } else { "points" })
        };
        all.push(("test NLL", format!("{test} nats ({})", rows(self.test_rows))));
        all.push(("validation NLL", format!("{validation} nats ({})", rows(self.validation_rows))));
        if let Some(bits) = self.bits_per_dim {
            all.push(("validation bits/dim", with_error(bits, self.bits_per_dim_stderr).to_string()));
        }
        if let Some(entropy) = self.entropy_nats {
            all.push(("entropy", format!("{entropy:.4} nats")));
        }
        if let Some(total) = self.total_probability {
            let error = self.total_probability_error.filter(|&error| error >= SHOWN);
            let error = error.map_or(String::new(), |error| format!(" ± {error:.5}"));
            let of_points = self.total_probability_points;
            let points =
                of_points.map_or(String::new(), |n| format!("standard error of {} points; ", grouped(n)));
            all.push(("total probability", format!("{total:.5}{error} ({points}should be 1)")));
        }
        all
    }
}

/// The scores, one per line.
impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lines(&self.figures()))
    }
}

/// Names and values, one per line.
pub(super) fn lines(figures: &[(&'static str, String)]) -> String {
    let lines: Vec<_> = figures.iter().map(|(name, value)| format!("{name:19}  {value}")).collect();
    lines.join("\n")
}
