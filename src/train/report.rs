//! What a run was, in numbers: counted on the way, told at the end.
//!
//! The counts come from rows of `metrics.csv`, written by this process or read from an earlier one, and from
//! `counters.json`, so the report of a resumed run covers all of it. Only a few numbers an update are kept: resident memory must not grow with the run.

use super::counters::{Counters, PhaseCounters};
use super::{Objective, Phase, Recipe, ToleranceRow};
use crate::backend::PlanReport;
use crate::backend::work::{Trips, work};
use crate::data::Estimate;
use crate::io::run::metrics::Row;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Gaps whose first passing is timed, in nats, as they are named in the report.
const GAPS: [(&str, f64); 3] = [("0.12", 0.12), ("0.08", 0.08), ("0.05", 0.05)];
/// The update of a phase after which memory is noted, to be compared with its end.
const NOTED: usize = 100;
/// Updates that room is made for at the start, so that memory does not grow with them.
const KEPT_AHEAD: u64 = 1 << 18;
/// First updates of a phase that do not count as steady.
const UNSTEADY: usize = 10;

/// A run in numbers.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Updates of the whole run.
    pub updates: u64,
    /// Trained numbers of the model.
    pub weights: usize,
    /// Loss of the last batch, in the last phase's unit.
    pub loss: f64,
    /// Mean negative log-likelihood (NLL): in standardised coordinates for an image, per unit for points, of an image's grey
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
    /// Of images, bits a coordinate of those of validation, dequantised uniformly.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Mass in the outermost band of its domain; above 1e-5 the domain did not hold all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass_outer: Option<f64>,
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
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// What was minimised.
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

impl Report {
    /// What was found of the model, by name, each with its standard error: test figures first.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let told = |mean, stderr| Estimate { mean, stderr, count: 0 };
        let mut all = Vec::new();
        if let Some(gap) = self.gap_nats {
            let gap = told(gap, self.gap_stderr_nats);
            all.push(("KL divergence", format!("{gap} nats ({} test points)", self.test_rows)));
        }
        if let Some(bits) = self.test_bits_per_dim {
            let bits = told(bits, self.test_bits_per_dim_stderr);
            all.push(("test bits/dim", format!("{bits} ({} images)", self.test_rows)));
        }
        let test = told(self.test_nll_nats, self.test_nll_stderr_nats);
        let validation = told(self.validation_nats, self.validation_stderr_nats);
        let rows = |rows: u64| {
            if self.bits_per_dim.is_some() { format!("{rows} images") } else { format!("{rows} points") }
        };
        all.push(("test NLL", format!("{test} nats ({})", rows(self.test_rows))));
        all.push(("validation NLL", format!("{validation} nats ({})", rows(self.validation_rows))));
        if let Some(bits) = self.bits_per_dim {
            all.push(("validation bits/dim", told(bits, self.bits_per_dim_stderr).to_string()));
        }
        if let Some(entropy) = self.entropy_nats {
            all.push(("entropy", format!("{entropy:.4} nats")));
        }
        if let Some(mass) = self.mass {
            all.push(("probability", format!("{mass:.5} (should be 1)")));
        }
        all
    }
}

/// The figures of the model, one a line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> =
            self.figures().iter().map(|(name, value)| format!("{name:19}  {value}")).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    live_buffers: usize,
    live_bytes: usize,
    rss_mb: f64,
}

/// What the solves of an update took, of all blocks together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solved {
    /// Steps tried.
    pub attempted: f64,
    /// Steps taken.
    pub accepted: f64,
    /// Steps run again for the gradient.
    pub recomputed: f64,
    /// The most states that were kept at once.
    pub states_kept: u64,
}

/// Counts of one phase.
#[derive(Debug)]
struct Tally {
    phase: Phase,
    /// Solves of an update, one a block.
    blocks: usize,
    plan: Option<PlanReport>,
    ms: Vec<f32>,
    field_evals: u64,
    counters: PhaseCounters,
    noted: Option<Memory>,
    last: Memory,
    traces: usize,
    /// The mean and its standard error.
    nll_nats: Option<(f64, Option<f64>)>,
}

/// Counts of a run as it goes.
#[derive(Debug)]
pub(super) struct Tallies {
    entropy_nats: Option<f64>,
    phases: Vec<Tally>,
    seconds: f64,
    pub(super) loss: f64,
    pub(super) seconds_to_gap: BTreeMap<&'static str, Option<f64>>,
    pub(super) states_kept_max: u64,
}

impl Tallies {
    pub(super) fn new(recipe: &Recipe, entropy_nats: Option<f64>) -> Tallies {
        let tally = |phase: &Phase| Tally {
            phase: *phase,
            blocks: recipe.model.blocks,
            plan: None,
            ms: Vec::with_capacity(phase.updates.min(KEPT_AHEAD) as usize),
            field_evals: 0,
            counters: PhaseCounters::default(),
            noted: None,
            last: Memory::default(),
            traces: 0,
            nll_nats: None,
        };
        Tallies {
            entropy_nats,
            phases: recipe.phases.iter().map(tally).collect(),
            seconds: 0.0,
            loss: f64::NAN,
            seconds_to_gap: GAPS.map(|(name, _)| (name, None)).into(),
            states_kept_max: 0,
        }
    }

    /// Counts an update of phase `phase`.
    pub(super) fn update(&mut self, phase: usize, row: &Row) {
        let tally = &mut self.phases[phase];
        tally.ms.push(row.ms as f32);
        tally.field_evals += row.field_evals;
        tally.traces = tally.traces.max(row.traces);
        tally.last =
            Memory { live_buffers: row.live_buffers, live_bytes: row.live_bytes, rss_mb: row.rss_mb };
        if tally.ms.len() == NOTED {
            tally.noted = Some(tally.last);
        }
        (self.loss, self.seconds) = (row.loss, self.seconds + row.ms / 1e3);
        if let Some(nll) = row.nll_nats {
            self.measured(phase, nll, row.nll_stderr_nats);
        }
    }

    /// Counts an update of an earlier process, by its row.
    pub(super) fn read(&mut self, recipe: &Recipe, row: &Row) {
        if let Some(phase) = recipe.phases.iter().position(|p| p.objective.name() == row.phase) {
            self.update(phase, row);
        }
    }

    /// Goes on from the counts of an earlier process.
    pub(super) fn restore(&mut self, counters: &Counters) {
        self.states_kept_max = counters.states_kept_max;
        self.phases.iter_mut().zip(&counters.phases).for_each(|(tally, counted)| tally.counters = *counted);
    }

    /// Each phase's counts that its rows do not tell.
    pub(super) fn phase_counters(&self) -> Vec<PhaseCounters> {
        self.phases.iter().map(Tally::counted).collect()
    }

    /// Notes the program of a phase that begins.
    pub(super) fn planned(&mut self, phase: usize, plan: PlanReport) {
        self.phases[phase].plan = Some(plan);
    }

    /// Counts what the solves of an update took.
    pub(super) fn solves(&mut self, phase: usize, solved: Solved) {
        let counters = &mut self.phases[phase].counters;
        counters.attempted += solved.attempted;
        counters.accepted += solved.accepted;
        counters.recomputed += solved.recomputed;
        counters.updates += 1;
        self.states_kept_max = self.states_kept_max.max(solved.states_kept);
    }

    /// Notes the NLL of the validation points after the last update.
    pub(super) fn measured(&mut self, phase: usize, nll_nats: f64, stderr: Option<f64>) {
        self.phases[phase].nll_nats = Some((nll_nats, stderr));
        for (name, bound) in GAPS {
            if self.entropy_nats.is_some_and(|entropy| nll_nats - entropy < bound) {
                self.seconds_to_gap.entry(name).or_default().get_or_insert(self.seconds);
            }
        }
    }

    pub(super) fn phase_reports(&self) -> Vec<PhaseReport> {
        self.phases.iter().filter(|t| !t.ms.is_empty()).map(|t| t.report(self.entropy_nats)).collect()
    }
}

impl Tally {
    /// The counts, with what the mean update computed: by the program, where this process has it, else as it was told.
    fn counted(&self) -> PhaseCounters {
        let counters = self.counters;
        let per_solve = |sum: f64| sum / (counters.updates.max(1) as f64 * self.blocks.max(1) as f64);
        let trips = Trips {
            attempted: per_solve(counters.attempted),
            accepted: per_solve(counters.accepted),
            replayed: Some(per_solve(counters.recomputed)),
        };
        let plan = self.plan.as_ref().filter(|_| counters.updates > 0);
        PhaseCounters { work: plan.map(|plan| work(plan, trips)).or(counters.work), ..counters }
    }

    fn report(&self, entropy_nats: Option<f64>) -> PhaseReport {
        let per = |sum: f64, updates: u64| sum / updates.max(1) as f64;
        let work = self.counted().work;
        PhaseReport {
            objective: self.phase.objective,
            updates: self.ms.len() as u64,
            seconds: self.ms.iter().map(|&ms| f64::from(ms) / 1e3).sum(),
            ms_per_update: median(&self.ms),
            field_evals_per_update: per(self.field_evals as f64, self.ms.len() as u64),
            recomputed_steps_per_update: per(self.counters.recomputed, self.counters.updates),
            kernels: work.map(|work| work.kernels),
            flops_per_update: work.map(|work| work.flops),
            bytes_moved_per_update: work.map(|work| work.bytes_moved),
            traces: self.traces,
            live_buffers_at_100: self.noted.map(|m| m.live_buffers),
            live_buffers_at_end: self.last.live_buffers,
            live_bytes_at_100: self.noted.map(|m| m.live_bytes),
            live_bytes_at_end: self.last.live_bytes,
            rss_mb_at_100: self.noted.map(|m| m.rss_mb),
            rss_mb_at_end: self.last.rss_mb,
            nll_nats: self.nll_nats.map(|(nll, _)| nll),
            nll_stderr_nats: self.nll_nats.and_then(|(_, stderr)| stderr),
            gap_nats: self.nll_nats.zip(entropy_nats).map(|((nll, _), entropy)| nll - entropy),
            gap_stderr_nats: entropy_nats.and(self.nll_nats).and_then(|(_, stderr)| stderr),
        }
    }
}

/// Median of the steady state: the first updates, at most half of them, are left out.
fn median(ms: &[f32]) -> f64 {
    let mut steady = ms[UNSTEADY.min(ms.len() / 2)..].to_vec();
    steady.sort_by(f32::total_cmp);
    steady.get(steady.len() / 2).map_or(0.0, |&ms| f64::from(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Options;

    #[test]
    fn a_tally_notes_memory_medians_and_the_time_to_a_gap() {
        let recipe = Recipe::new(&Options { updates: Some(300), ..Options::default() });
        let mut tallies = Tallies::new(&recipe, Some(2.0));
        for update in 1..=150u64 {
            let row = Row {
                update,
                phase: "flow_matching".into(),
                loss: 1.0,
                nll_nats: (update == 100).then_some(2.1),
                nll_stderr_nats: (update == 100).then_some(0.03),
                ms: if update == 1 { 900.0 } else { 10.0 },
                field_evals: 2,
                live_buffers: update as usize,
                live_bytes: 8,
                rss_mb: 1.0,
                traces: 1,
            };
            tallies.update(0, &row);
        }
        let report = &tallies.phase_reports()[0];
        assert_eq!((report.updates, report.ms_per_update, report.field_evals_per_update), (150, 10.0, 2.0));
        assert_eq!((report.live_buffers_at_100, report.live_buffers_at_end), (Some(100), 150));
        let seconds = tallies.seconds_to_gap["0.12"].unwrap();
        assert!((seconds - 1.89).abs() < 1e-9 && tallies.seconds_to_gap["0.08"].is_none(), "{seconds}");
        assert!((report.gap_nats.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!((report.nll_stderr_nats, report.gap_stderr_nats), (Some(0.03), Some(0.03)));
    }
}
