//! The final summary of `flowline train`, and the output of `--plan`.

use super::super::error::Result;
use super::super::machine;
use super::super::say::{is_json, result, summary};
use super::super::table::{Columns, Table, grouped, quantity, seconds};
use flowline::__internal::{Estimate, FlopsOf, Peak, PhasePlan};
use flowline::train::{TrainReport, TrainedFlow, Trainer};
use std::path::Path;

/// Prints the summary of a run in a folder.
pub fn print(learned: &TrainedFlow, folder: &Path) {
    let Some(report) = &learned.report else { return };
    let text = format!("{}\n\n{}", table(report), next(folder, report, learned));
    summary(&text, || serde_json::json!(report));
}

/// The summary as text: the scores of the model, then the cost of the run.
fn table(report: &TrainReport) -> String {
    let mut table = Table::default();
    for (name, value) in report.figures() {
        table.row(name, value);
        match name {
            "KL divergence" => table.row("", "how far the model is from the data; 0 if they are equal"),
            "dequantized" => {
                table.row("", "scores are of values with uniform noise of one step in these columns")
            }
            "total probability" => table.row("", "integral of the model's density over the plane"),
            _ => &mut table,
        };
    }
    table.row("updates", grouped(report.updates)).row("weights", grouped(report.weights as u64));
    for phase in &report.phases {
        let (updates, ms) = (grouped(phase.updates), phase.ms_per_update);
        let kl = |mean| Estimate { mean, stderr: phase.gap_stderr_nats, count: 0 };
        let kl = phase.gap_nats.map_or_else(String::new, |mean| format!(", KL {} nats", kl(mean)));
        let noun = if phase.updates == 1 { "update" } else { "updates" };
        let text = format!("{updates} {noun} in {}, {ms:.1} ms each{kl}", seconds(phase.seconds));
        table.row(phase.objective.title(), text);
    }
    table.row("peak memory", format!("{:.0} MB", report.peak_rss_mb));
    for (name, path) in &report.files {
        table.row(name, path.clone());
    }
    table.text()
}

/// Commands to try next.
fn next(folder: &Path, report: &TrainReport, learned: &TrainedFlow) -> String {
    let (run, images) = (quoted(&folder.display().to_string()), learned.header.frames.images.as_ref());
    let is_images = images.is_some();
    let class = match images {
        Some(images) => images.classes.map(|_| "0".to_owned()),
        None => learned.class_names().first().map(|name| quoted(name)),
    };
    let label = class.map_or_else(String::new, |class| format!(" --label {class}"));
    let file = if is_images { "samples.png" } else { "samples.csv" };
    let mut lines = vec![format!("flowline sample {run}{label} -o {file}")];
    match (is_images, learned.dim() == 2 && label.is_empty()) {
        (true, _) => {}
        (_, true) => lines.push(format!("flowline density {run} --grid 1024")),
        (_, false) => lines.push(format!("flowline plot {run}{label}")),
    }
    lines.push(if is_images {
        format!("flowline info {run}")
    } else {
        format!("flowline log-prob {run} DATA")
    });
    let figure = report
        .files
        .get("density")
        .or_else(|| report.files.get("corner"))
        .or_else(|| report.files.get("samples"));
    let look = figure.map_or_else(String::new, |path| format!("Look at {path}\n"));
    format!("{look}Next: {}", lines.join("\n      "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    match word.chars().all(|c| c.is_alphanumeric() || "._+-/".contains(c)) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Prints what an update of each phase costs.
///
/// # Errors
/// As [`Trainer::plan`].
pub fn print_plan(trainer: &Trainer) -> Result<()> {
    let (plans, peak) = (trainer.plan()?, Peak::measure());
    if is_json() {
        // The peak memory of the last phase. In maximum likelihood it depends on `--checkpoints`.
        let plan_peak = plans.last().map_or(0, |p| p.peak_bytes);
        let most = plans.iter().max_by(|a, b| a.flops.total_cmp(&b.flops));
        let (flops, flops_of) = most.map_or((0.0, FlopsOf::Update), |p| (p.flops, p.flops_of));
        let json = serde_json::json!({
            "weights": trainer.num_params()?, "flops": flops, "flops_of": flops_of, "plan_peak_bytes": plan_peak,
            "kernels": most.map_or(0, |p| p.kernels), "bytes_moved": most.map_or(0, |p| p.bytes_moved),
            "peak_gflops": peak.gflops, "phases": plans,
        });
        result(&json.to_string());
        return Ok(());
    }
    result(&plan_text(trainer.num_params()?, &plans, &peak));
    Ok(())
}

/// The plan as a table. `memory` is the number of bytes read and written, `workspace` the peak memory, `no reuse` the
/// peak memory if no buffer were reused. `at peak` is the time of the operations at the measured rate of matrix
/// products.
fn plan_text(weights: usize, plans: &[PhasePlan], peak: &Peak) -> String {
    let mut table = Table::default();
    table.row("weights", grouped(weights as u64)).row("machine", machine::line(peak));
    let heading = ["one update", "kernels", "operations", "memory", "workspace", "no reuse", "at peak"];
    let mut columns = Columns::new(heading);
    for plan in plans {
        let (updates, batch) = (grouped(plan.updates), grouped(plan.batch as u64));
        table.row(plan.objective.title(), format!("{updates} updates of {batch} points"));
        for kept in &plan.states {
            table.row("states", kept.text.clone());
        }
        let mark = if plan.flops_of == FlopsOf::Step { "*" } else { "" };
        columns.line([
            format!("{}{mark}", plan.objective.title()),
            grouped(plan.kernels as u64),
            quantity(plan.flops, "FLOP"),
            quantity(plan.bytes_moved as f64, "B"),
            quantity(plan.peak_bytes as f64, "B"),
            quantity(plan.peak_bytes_without_reuse as f64, "B"),
            quantity(plan.flops / (peak.gflops * 1e9), "s"),
        ]);
    }
    let mut text = format!("{}\n\n{}", table.text(), columns.text());
    if plans.iter().any(|plan| plan.flops_of == FlopsOf::Step) {
        text.push_str(
            "\n  * with one step of each solve: the number of adaptive steps is not known in advance",
        );
    }
    text
}
