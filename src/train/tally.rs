//! Counts of a run, for its report.
//!
//! The counts come from the rows of `metrics.csv`, written by this process or read from an earlier one, and
//! from `counters.json`, so the report of a resumed run covers the whole run. Only one number per
//! update is stored, in memory allocated at the start, because resident memory must not grow with the run.

use super::recorded::{Counters, PhaseCounters};
use super::{Phase, PhaseReport, TrainConfig};
use crate::backend::PlanReport;
use crate::backend::work::{Trips, Work, work};
use crate::io::run::metrics::Row;
use crate::tensor::RunReport;
use std::collections::BTreeMap;

/// Bounds on the KL divergence, in nats, for which the time is reported, with their names in the report.
const GAPS: [(&str, f64); 3] = [("0.12", 0.12), ("0.08", 0.08), ("0.05", 0.05)];
/// The update of a phase after which memory is measured, for comparison with the end of the phase.
const NOTED: usize = 100;
/// Maximum number of updates per phase for which memory is allocated at the start, so that it does not grow
/// during the run.
const KEPT_AHEAD: u64 = 1 << 18;
/// First updates of a phase that are excluded from the median time.
const UNSTEADY: usize = 10;

/// Counts of one phase.
#[derive(Debug)]
struct Tally {
    /// The part of the report that is not an average over the rows.
    report: PhaseReport,
    ms: Vec<f32>,
    field_evals: u64,
    /// Solves per update, one per block.
    blocks: usize,
    plan: Option<PlanReport>,
}

/// The running counts.
#[derive(Debug)]
pub(super) struct Tallies {
    entropy_nats: Option<f64>,
    phases: Vec<Tally>,
    seconds: f64,
    /// Loss of the last update.
    pub(super) loss: f64,
    pub(super) seconds_to_gap: BTreeMap<&'static str, Option<f64>>,
    /// Counts that rows do not hold, over this process and earlier ones.
    pub(super) counters: Counters,
}

impl Tallies {
    pub(super) fn new(config: &TrainConfig, entropy_nats: Option<f64>) -> Tallies {
        let tally = |phase: &Phase| Tally {
            report: PhaseReport { objective: phase.objective, ..PhaseReport::default() },
            ms: Vec::with_capacity(phase.updates.min(KEPT_AHEAD) as usize),
            field_evals: 0,
            blocks: config.model.blocks,
            plan: None,
        };
        let mut tallies = Tallies {
            entropy_nats,
            phases: config.phases.iter().map(tally).collect(),
            seconds: 0.0,
            loss: f64::NAN,
            seconds_to_gap: GAPS.map(|(name, _)| (name, None)).into(),
            counters: Counters::default(),
        };
        tallies.restore(Counters::default());
        tallies
    }

    /// Counts an update of phase `phase`.
    pub(super) fn update(&mut self, phase: usize, row: &Row) {
        let Tally { report, ms, field_evals, .. } = &mut self.phases[phase];
        ms.push(row.ms as f32);
        *field_evals += row.field_evals;
        report.updates += 1;
        report.seconds += f64::from(row.ms as f32) / 1e3;
        report.traces = report.traces.max(row.traces);
        (report.live_buffers_at_end, report.live_bytes_at_end) = (row.live_buffers, row.live_bytes);
        report.rss_mb_at_end = row.rss_mb;
        if ms.len() == NOTED {
            report.live_buffers_at_100 = Some(row.live_buffers);
            report.live_bytes_at_100 = Some(row.live_bytes);
            report.rss_mb_at_100 = Some(row.rss_mb);
        }
        (self.loss, self.seconds) = (row.loss, self.seconds + row.ms / 1e3);
        if let Some(nll) = row.nll_nats {
            self.measured(phase, nll, row.nll_stderr_nats);
        }
    }

    /// Counts an update of an earlier process from its row.
    pub(super) fn read(&mut self, config: &TrainConfig, row: &Row) {
        if let Some(phase) = config.phases.iter().position(|p| p.objective.name() == row.phase) {
            self.update(phase, row);
        }
    }

    /// Restores the counts of an earlier process.
    pub(super) fn restore(&mut self, counters: Counters) {
        self.counters = counters;
        self.counters.phases.resize(self.phases.len(), PhaseCounters::default());
    }

    /// Records the program of a phase that begins.
    pub(super) fn planned(&mut self, phase: usize, plan: PlanReport) {
        self.phases[phase].plan = Some(plan);
    }

    /// Counts the cost of an update's solves; each of its tiles attempted `steps` steps.
    pub(super) fn solves(&mut self, phase: usize, counts: RunReport, steps: f64) {
        // The backend counts over all tiles.
        let tiles = if steps > 0.0 { (counts.attempts as f64 / steps).max(1.0) } else { 1.0 };
        let counters = &mut self.counters.phases[phase];
        counters.attempted += counts.attempts as f64 / tiles;
        counters.accepted += counts.accepted as f64 / tiles;
        counters.recomputed += counts.recomputed as f64 / tiles;
        counters.updates += 1;
        self.counters.states_kept_max = self.counters.states_kept_max.max(counts.states_kept_max as u64);
    }

    /// Records the validation NLL after the last update.
    pub(super) fn measured(&mut self, phase: usize, nll_nats: f64, stderr: Option<f64>) {
        let report = &mut self.phases[phase].report;
        (report.nll_nats, report.nll_stderr_nats) = (Some(nll_nats), stderr);
        for (name, bound) in GAPS {
            if self.entropy_nats.is_some_and(|entropy| nll_nats - entropy < bound) {
                self.seconds_to_gap.entry(name).or_default().get_or_insert(self.seconds);
            }
        }
    }

    /// Stores the mean operations per update of this process's programs in the counters.
    pub(super) fn settle(&mut self) {
        for (tally, counters) in self.phases.iter().zip(&mut self.counters.phases) {
            counters.work = tally.work(counters).or(counters.work);
        }
    }

    /// Reports of the phases that have updates. Call [`settle`](Self::settle) before.
    pub(super) fn phase_reports(&self) -> Vec<PhaseReport> {
        let phases = self.phases.iter().zip(&self.counters.phases).filter(|(tally, _)| !tally.ms.is_empty());
        phases.map(|(tally, counters)| tally.report(counters, self.entropy_nats)).collect()
    }
}

impl Tally {
    /// The mean operations per update of this process's program.
    fn work(&self, counters: &PhaseCounters) -> Option<Work> {
        let per_solve = |sum: f64| sum / (counters.updates.max(1) as f64 * self.blocks.max(1) as f64);
        let trips = Trips {
            attempted: per_solve(counters.attempted),
            accepted: per_solve(counters.accepted),
            replayed: Some(per_solve(counters.recomputed)),
        };
        self.plan.as_ref().filter(|_| counters.updates > 0).map(|plan| work(plan, trips))
    }

    fn report(&self, counters: &PhaseCounters, entropy_nats: Option<f64>) -> PhaseReport {
        let PhaseCounters { recomputed, updates, work, .. } = *counters;
        let report = &self.report;
        PhaseReport {
            ms_per_update: median(&self.ms),
            field_evals_per_update: self.field_evals as f64 / report.updates.max(1) as f64,
            recomputed_steps_per_update: recomputed / updates.max(1) as f64,
            kernels: work.map(|work| work.kernels),
            flops_per_update: work.map(|work| work.flops),
            bytes_moved_per_update: work.map(|work| work.bytes_moved),
            gap_nats: report.nll_nats.zip(entropy_nats).map(|(nll, entropy)| nll - entropy),
            gap_stderr_nats: entropy_nats.and(report.nll_stderr_nats),
            ..report.clone()
        }
    }
}
/// The median without the first updates, at most half of them.
fn median(ms: &[f32]) -> f64 {
    let mut steady = ms[UNSTEADY.min(ms.len() / 2)..].to_vec();
    steady.sort_by(f32::total_cmp);
    steady.get(steady.len() / 2).map_or(0.0, |&ms| f64::from(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::TrainOptions;

    #[test]
    fn a_tally_notes_memory_medians_and_the_time_to_a_gap() {
        let config = TrainConfig::new(&TrainOptions { updates: Some(300), ..TrainOptions::default() });
        let mut tallies = Tallies::new(&config, Some(2.0));
        for update in 1..=150u64 {
            let row = Row {
                update,
                phase: "flow_matching".into(),
                loss: 1.0,
                nll_nats: (update == 100).then_some(2.1),
                nll_stderr_nats: (update == 100).then_some(0.03),
                kl_estimate: None,
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
