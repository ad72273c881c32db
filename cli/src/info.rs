//! `flowline info`: prints the configuration of a run, its scores and the cost of its updates.

use super::error::Result;
use super::say::{is_json, note, result};
use super::table::{Columns, Table, grouped, quantity};
use super::typed::flags;
use super::{machine, run_folder};
use flowline::__internal::{
    Estimate, FieldConfig, Level, ModelConfig, Objective, Peak, PointsFrame, Recorded, RunInfo, SamplingRule,
    Scores, Steps, ToleranceRow,
};
use flowline::nn::num_params;
use flowline::train::{PhaseReport, TrainError, TrainedFlow};
use serde::Serialize;
use std::num::NonZero;
use std::path::PathBuf;

/// Arguments of `flowline info`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  flowline info latest
  flowline info runs/cat --options > cat.toml
  flowline train cat.png --config cat.toml")]
pub struct Args {
    /// Run folder, or `latest` for the newest run in runs/
    run: PathBuf,
    /// Measure the peak rate of this machine, and print the share of the peak that the updates reached
    #[arg(long)]
    machine: bool,
    /// Print the options of the run as TOML for `train --config`, without DATA, the options that select from
    /// it, like --columns, the number of threads and the options of output
    #[arg(long, conflicts_with = "machine")]
    options: bool,
}

/// The cost of an update in one phase, and the time per update that the run recorded.
#[derive(Serialize)]
struct Phase {
    objective: Objective,
    updates: u64,
    /// Kernels and loops in the compiled program of an update, each counted once however often it runs.
    kernels: usize,
    flops_per_update: f64,
    bytes_moved_per_update: f64,
    /// Median time per update, without the first updates.
    ms_per_update: f64,
    /// 10^9 floating-point operations per second.
    gflops: f64,
    /// `gflops` divided by the peak of this machine; 0 until the peak is measured.
    share_of_peak: f64,
}

impl Phase {
    /// `None` if the run recorded no program or no time per update.
    fn new(phase: &PhaseReport) -> Option<Phase> {
        let flops_per_update = phase.flops_per_update.filter(|_| phase.ms_per_update > 0.0)?;
        let gflops = flops_per_update / (phase.ms_per_update * 1e6);
        Some(Phase {
            objective: phase.objective,
            updates: phase.updates,
            kernels: phase.kernels?,
            flops_per_update,
            bytes_moved_per_update: phase.bytes_moved_per_update?,
            ms_per_update: phase.ms_per_update,
            gflops,
            share_of_peak: 0.0,
        })
    }
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a checkpoint that cannot be read.
pub fn run(args: &Args) -> Result<()> {
    let run = run_folder::folder(&args.run, None)?;
    let learned = TrainedFlow::open(&run)?;
    if args.options {
        result(&options(&learned.header));
        return Ok(());
    }
    // If the metrics cannot be read, the checkpoint is still described.
    let recorded = Recorded::read(&run, &learned.header, learned.num_updates);
    let recorded =
        recorded.map_err(|e| note(&flags(&format!("warning: {e}; scores and phases are omitted")))).ok();
    let threads = recorded.as_ref().and_then(|recorded| recorded.threads);
    let scores = recorded.as_ref().and_then(|recorded| recorded.scores);
    let (phases, tolerances) = recorded.map_or_else(Default::default, |r| (r.phases, r.tolerances));
    let mut phases: Vec<Phase> = phases.iter().filter_map(Phase::new).collect();
    let peak = if args.machine || is_json() { Some(measure(threads, &mut phases)?) } else { None };
    if let (true, Some(peak)) = (is_json(), &peak) {
        let json = serde_json::json!({
            "update": learned.num_updates, "weights": num_params(learned.cnf()), "header": header(&learned.header),
            "phases": phases, "tolerances": tolerances, "scores": scores,
            "peak_gflops": peak.gflops, "peak_gflops_one_thread": peak.gflops_one_thread,
            "peak_bytes_per_s": peak.bytes_per_s, "peak_threads": peak.threads,
            "level": Level::detect().to_string(),
        });
        result(&json.to_string());
    } else {
        result(&text(&learned, (&phases, &tolerances), scores.as_ref(), peak.as_ref()));
    }
    Ok(())
}

/// The options of a run as TOML, which writes strings, numbers and booleans like JSON.
fn options(header: &RunInfo) -> String {
    let options = serde_json::json!(header.options);
    let lines = options.as_object().into_iter().flatten().map(|(key, value)| format!("{key} = {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The header as JSON. Earlier versions had the field `documented_rule`, so it is added for the scripts that
/// read it.
fn header(header: &RunInfo) -> serde_json::Value {
    let mut json = serde_json::json!(header);
    if let Some(image) = &header.frames.image {
        json["image"]["documented_rule"] = matches!(image.rule, SamplingRule::Uniform { .. }).into();
    }
    json
}

/// Measures the peak with the run's number of threads, at most one per core. Sets the share of the peak that
/// each phase reached. Other programs lower the measured peak, so the peak is raised to the rate of the
/// fastest phase.
fn measure(threads: Option<usize>, phases: &mut [Phase]) -> Result<Peak> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.map_or(cores, |threads| threads.min(cores));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| TrainError::Threads { threads, reason: e.to_string() })?;
    let mut peak = pool.install(Peak::measure);
    peak.gflops = phases.iter().fold(peak.gflops, |peak, phase| peak.max(phase.gflops));
    phases.iter_mut().for_each(|phase| phase.share_of_peak = phase.gflops / peak.gflops);
    Ok(peak)
}

/// The phases as a table.
fn reached(phases: &[Phase], with_share: bool) -> String {
    let heading = ["one update", "kernels", "operations", "memory", "time", "rate"];
    let mut columns = Columns::new(heading.into_iter().chain(with_share.then_some("of the peak")));
    for phase in phases {
        let cells = [
            phase.objective.title().to_owned(),
            grouped(phase.kernels as u64),
            quantity(phase.flops_per_update, "FLOP"),
            quantity(phase.bytes_moved_per_update, "B"),
            quantity(phase.ms_per_update / 1e3, "s"),
            quantity(phase.gflops * 1e9, "FLOP/s"),
        ];
        let share = with_share.then(|| format!("{:.1} %", 100.0 * phase.share_of_peak));
        columns.line(cells.into_iter().chain(share));
    }
    columns.text()
}

/// Bits per dimension of images by solver tolerance.
fn by_tolerance(rows: &[ToleranceRow]) -> String {
    let mut columns = Columns::new(["rtol = atol", "bits/dim", "evals"]);
    for row in rows {
        columns.line([
            format!("{:e}", row.tolerance),
            Estimate { mean: row.bits_per_dim, stderr: row.bits_per_dim_stderr, count: 0 }.to_string(),
            format!("{:.1}", row.field_evals),
        ]);
    }
    columns.text()
}

/// The velocity fields of a flow, from the base distribution to the data.
fn fields(model: &ModelConfig) -> String {
    let name = |field: &FieldConfig| match field {
        FieldConfig::Fourier { features, normals, .. } => {
            let start = match normals {
                0 => String::new(),
                1 => " from a normal density".to_owned(),
                n => format!(" from a mixture of {n} normal densities"),
            };
            format!("MLP of {features} Fourier features{start}")
        }
        FieldConfig::ConcatSquash => "ConcatSquash layers".to_owned(),
        FieldConfig::Mlp { .. } => "MLP".to_owned(),
        FieldConfig::UNet { ends: 0, patch, .. } => format!("U-Net of patches of {patch} x {patch} pixels"),
        FieldConfig::UNet { ends, patch, .. } => {
            format!(
                "U-Net of patches of {patch} x {patch} pixels that weights {} ranges of pixel values",
                ends + 1
            )
        }
        other => format!("{other:?}"),
    };
    if model.unlike.is_empty() {
        return format!("{} x {}, hidden {:?}", model.blocks, name(&model.field), model.hidden);
    }
    let each = model.unlike.iter().map(|(field, hidden)| format!("{}, hidden {hidden:?}", name(field)));
    each.collect::<Vec<_>>().join("; ")
}

fn text(
    learned: &TrainedFlow,
    (phases, tolerances): (&[Phase], &[ToleranceRow]),
    scores: Option<&Scores>,
    peak: Option<&Peak>,
) -> String {
    let mut parts = vec![about(learned, scores, peak)];
    if !phases.is_empty() {
        parts.push(reached(phases, peak.is_some()));
    }
    if !tolerances.is_empty() {
        parts.push(by_tolerance(tolerances));
    }
    parts.join("\n\n")
}

/// The checkpoint's contents and the final scores.
fn about(learned: &TrainedFlow, scores: Option<&Scores>, peak: Option<&Peak>) -> String {
    let (config, header) = (&learned.header.config, &learned.header);
    let model = &config.model;
    let steps = match model.solve.steps {
        Steps::Fixed { steps } => format!("{steps} fixed steps"),
        Steps::Adaptive { rtol, atol } => format!("rtol {rtol:e}, atol {atol:e}"),
    };
    let mut table = Table::default();
    match (&header.frames.points, &header.frames.image) {
        (None, None) => {
            if let Some(images) = &header.frames.images {
                let sizes = format!("{} x {} pixels of {}", images.width, images.height, images.channels);
                table.row("images", format!("{}: {sizes}, {}", images.name, images.pixels));
            }
            &mut table
        }
        (None, Some(image)) => table.row("image", format!("{} x {} pixels", image.width, image.height)),
        (points, _) => {
            let name = points.as_ref().map_or("", |points| &points.name);
            table.row("points", format!("{name}: {}", learned.columns().join(", ")))
        }
    };
    if let Some(parts) = header.parts.filter(|parts| parts.test > 0) {
        table.row("rows", parts.to_string());
    }
    match (scores, header.frames.entropy_nats()) {
        (Some(scores), _) => scores.figures().into_iter().for_each(|(name, value)| {
            table.row(name, value);
        }),
        (None, Some(entropy)) => {
            table.row("entropy", format!("{entropy:.4} nats"));
        }
        (None, None) => {}
    }
    let points = header.frames.points.as_ref();
    if let Some(classes) = points.and_then(PointsFrame::classes_text) {
        table.row("classes", classes);
    }
    if let Some(rows) = points.and_then(PointsFrame::dropped_text) {
        table.row("dropped", rows);
    }
    if let Some(columns) = points.and_then(PointsFrame::dequantized_text) {
        table.row("dequantized", columns);
    }
    table
        .row("preset", config.preset.name())
        .row("flow", format!("{}, t in [0, {}]", fields(model), model.t1))
        .row("weights", grouped(num_params(learned.cnf()) as u64))
        .row("solver", format!("{}, {steps}, {} divergence", model.solve.solver, model.solve.divergence))
        .row("seed", config.seed.to_string())
        .row("updates", format!("{} of {}", grouped(learned.num_updates), grouped(config.updates())));
    for phase in &config.phases {
        let (updates, batch, lr) = (grouped(phase.updates), grouped(phase.batch as u64), phase.lr);
        let text = format!("{updates} updates of {batch} points, {} at {lr:e}", config.optimizer);
        table.row(phase.objective.title(), text);
    }
    if let Some(peak) = peak {
        table.row("machine", machine::line(peak));
    }
    table.text()
}
