//! `flowline info`: prints what a run folder holds, and what share of this machine's peak its updates reached.

use super::table::{Columns, Table, grouped, quantity};
use super::{machine, note, result};
use flowline::__internal::{
    Estimate, FieldConfig, Level, ModelConfig, Objective, Peak, Recorded, Rule, RunInfo, Steps, ToleranceRow,
};
use flowline::Result;
use flowline::nn::num_params;
use flowline::train::{PhaseReport, TrainError, TrainedFlow};
use serde::Serialize;
use std::num::NonZero;
use std::path::PathBuf;

/// Arguments of `flowline info`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the updates of a phase were: computed by their program, and in the time that the run wrote down.
#[derive(Serialize)]
struct Phase {
    objective: Objective,
    updates: u64,
    /// Kernels and loops of the program, each counted once.
    kernels: usize,
    flops_per_update: f64,
    bytes_moved_per_update: f64,
    /// The median of the steady state.
    ms_per_update: f64,
    /// The rate reached.
    gflops: f64,
    /// The rate as a share of the peak that was measured now.
    share_of_peak: f64,
}

impl Phase {
    /// None where the run did not note its program.
    fn new(phase: &PhaseReport, peak: &Peak) -> Option<Phase> {
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
            share_of_peak: gflops / peak.gflops,
        })
    }
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder.
pub fn run(args: &Args) -> Result<()> {
    let learned = TrainedFlow::open(&args.dir)?;
    // What the checkpoint says can be printed without them.
    let recorded = Recorded::read(&args.dir, &learned.header, learned.update);
    let recorded = recorded.map_err(|e| note(&format!("warning: {e}; phases are left out"))).ok();
    let peak = measure(recorded.as_ref().and_then(|recorded| recorded.threads))?;
    let (phases, tolerances) = recorded.map_or_else(Default::default, |r| (r.phases, r.tolerances));
    let phases: Vec<Phase> = phases.iter().filter_map(|phase| Phase::new(phase, &peak)).collect();
    if args.json {
        let json = serde_json::json!({
            "update": learned.update, "weights": num_params(&learned.flow), "header": header(&learned.header),
            "phases": phases, "tolerances": tolerances, "peak_gflops": peak.gflops, "peak_gflops_one_thread": peak.gflops_one_thread,
            "peak_bytes_per_s": peak.bytes_per_s, "peak_threads": peak.threads,
            "level": Level::detect().to_string(),
        });
        result(&json.to_string());
    } else {
        result(&text(&learned, &phases, &tolerances, &peak));
    }
    Ok(())
}

/// The header, with the field from which earlier programs read how points were drawn from an image.
fn header(header: &RunInfo) -> serde_json::Value {
    let mut told = serde_json::json!(header);
    if let Some(image) = &header.frames.image {
        told["image"]["documented_rule"] = matches!(image.rule, Rule::Uniform { .. }).into();
    }
    told
}

/// The peak of as many threads as the run had, or as there are cores.
fn measure(threads: Option<usize>) -> Result<Peak> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.map_or(cores, |threads| threads.min(cores));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| TrainError::Threads { threads, reason: e.to_string() })?;
    Ok(pool.install(Peak::measure))
}

/// The phases for people.
fn reached(phases: &[Phase]) -> String {
    let heading = ["an update of", "kernels", "operations", "moved", "time", "reached", "of the peak"];
    let mut columns = Columns::new(heading);
    for phase in phases {
        columns.line([
            phase.objective.title().to_owned(),
            grouped(phase.kernels as u64),
            quantity(phase.flops_per_update, "FLOP"),
            quantity(phase.bytes_moved_per_update, "B"),
            quantity(phase.ms_per_update / 1e3, "s"),
            quantity(phase.gflops * 1e9, "FLOP/s"),
            format!("{:.1} %", 100.0 * phase.share_of_peak),
        ]);
    }
    columns.text()
}

/// Bits of images by the tolerance of their solves.
fn by_tolerance(rows: &[ToleranceRow]) -> String {
    let mut columns = Columns::new(["rtol = atol", "bits/dim", "evaluations"]);
    for row in rows {
        columns.line([
            format!("{:e}", row.tolerance),
            Estimate { mean: row.bits_per_dim, stderr: row.bits_per_dim_stderr, count: 0 }.to_string(),
            format!("{:.1}", row.field_evals),
        ]);
    }
    columns.text()
}

/// The fields of a flow, from the base end on.
fn fields(model: &ModelConfig) -> String {
    let name = |field: &FieldConfig| match field {
        FieldConfig::Fourier { features, .. } => format!("MLP of {features} Fourier features"),
        FieldConfig::ConcatSquash => "ConcatSquash layers".to_owned(),
        FieldConfig::Mlp { .. } => "MLP".to_owned(),
        FieldConfig::UNet { ends: 0, patch, .. } => format!("U-Net of patches of {patch} x {patch} pixels"),
        FieldConfig::UNet { ends, patch, .. } => {
            format!("U-Net of patches of {patch} x {patch} pixels that weighs {} ranges of levels", ends + 1)
        }
        other => format!("{other:?}"),
    };
    if model.unlike.is_empty() {
        return format!("{} x {}, hidden {:?}", model.blocks, name(&model.field), model.hidden);
    }
    let each = model.unlike.iter().map(|(field, hidden)| format!("{}, hidden {hidden:?}", name(field)));
    each.collect::<Vec<_>>().join("; ")
}

fn text(learned: &TrainedFlow, phases: &[Phase], tolerances: &[ToleranceRow], peak: &Peak) -> String {
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
    if let Some(entropy) = header.frames.entropy_nats() {
        table.row("entropy", format!("{entropy:.4} nats"));
    }
    table
        .row("preset", config.preset.name())
        .row("flow", format!("{}, t in [0, {}]", fields(model), model.t1))
        .row("weights", grouped(num_params(&learned.flow) as u64))
        .row("solver", format!("{}, {steps}, {} divergence", model.solve.solver, model.solve.divergence))
        .row("seed", config.seed.to_string())
        .row("updates", format!("{} of {}", grouped(learned.update), grouped(config.updates())));
    for phase in &config.phases {
        let (updates, batch, lr) = (grouped(phase.updates), grouped(phase.batch as u64), phase.lr);
        let text = format!("{updates} updates of {batch} points, {} at {lr:e}", config.optimizer);
        table.row(phase.objective.title(), text);
    }
    let mut parts = vec![];
    if !phases.is_empty() {
        table.row("machine", machine::line(peak));
        parts.push(reached(phases));
    }
    if !tolerances.is_empty() {
        parts.push(by_tolerance(tolerances));
    }
    parts.insert(0, table.text());
    parts.join("\n\n")
}
