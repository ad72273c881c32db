//! `flowline train`: learn the density of an image, of points or of a toy.

use super::bar::Bar;
use super::documented::DiffraxExample;
use super::signals::Signals;
use super::table::{Columns, Table, grouped, quantity, seconds};
use super::{machine, note, result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flowline::__internal::{
    DivergenceKind, Estimate, FlopsOf, Given, ModelKind, ObjectiveKind, OptimizerKind, Peak, PhasePlan,
    PixelTransformKind, check_free, default_folder, read_npy_header,
};
use flowline::data::{ImageDensity, ImageSet, Points, ToyDensity};
use flowline::train::{Preset, TrainError, TrainOptions, TrainReport, TrainedFlow, Trainer, TrainingData};
use flowline::{Error, Result};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What an image without a path is called.
const EMBEDDED: &str = "flowlines";

/// Arguments of `flowline train`.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    /// An image (PNG, JPEG, BMP, GIF or WebP), whose dark pixels are where the density is; points [n, d] as .npy or .csv; a
    /// toy by name: moons, 8gaussians, pinwheel, circles, 2spirals, checkerboard, rings, swissroll; or a set of images, each a
    /// point: a folder of image files of one size, an IDX file (gzip or not), .npy [n, h, w] or [n, h, w, c]
    data: Option<PathBuf>,
    /// Points or images that choose the best weights [default: a seeded tenth of DATA's]
    #[arg(long, value_name = "FILE")]
    validation: Option<PathBuf>,
    /// Points or images for the scores of the end alone [default: a seeded tenth of DATA's]
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// The class of each image, IDX, .npy [n] or .csv: the flow learns the images of each class
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// The class of each image of --validation
    #[arg(long, value_name = "FILE")]
    validation_labels: Option<PathBuf>,
    /// The class of each image of --test
    #[arg(long, value_name = "FILE")]
    test_labels: Option<PathBuf>,
    /// The field of a flow of images [default: unet]
    #[arg(long, value_parser = names(ModelKind::NAMES, ModelKind::ALL))]
    field: Option<ModelKind>,
    /// What takes gray levels of images to numbers [default: marginals]
    #[arg(long, value_parser = names(PixelTransformKind::NAMES, PixelTransformKind::ALL))]
    pixels: Option<PixelTransformKind>,
    /// What is minimized [default: both, one after the other; flow matching for sets of images]
    #[arg(long, value_parser = names(ObjectiveKind::NAMES, ObjectiveKind::ALL))]
    objective: Option<ObjectiveKind>,
    /// Weight of the path's kinetic energy in maximum likelihood
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    kinetic: Option<f64>,
    /// Weight of the squared norm of the field's Jacobian along the path in maximum likelihood
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    jacobian: Option<f64>,
    /// End after so many measures without a better one, ten a phase; of points and images
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    patience: Option<u64>,
    /// The run folder [default: runs/<data>, with the next free number]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Set of defaults; `diffrax` is the example of its documentation that learns an image
    #[arg(long, value_parser = presets())]
    preset: Option<Preset>,
    /// Updates of all phases together
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    updates: Option<u64>,
    /// Seconds for the whole run, figures included: the phases share them, and the end measures and draws what fits
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    time_limit: Option<f64>,
    /// Points an update
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    batch: Option<usize>,
    /// Width of the hidden layers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    width: Option<usize>,
    /// Number of hidden layers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    depth: Option<usize>,
    /// Number of vector fields, one after the other
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    blocks: Option<usize>,
    /// How training finds the divergence
    #[arg(long, value_parser = names(DivergenceKind::NAMES, DivergenceKind::ALL))]
    divergence: Option<DivergenceKind>,
    /// Probes of the Hutchinson estimator
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    probes: Option<usize>,
    /// Runge-Kutta method of maximum likelihood, by name: tsit5, dopri5, vern7, rk4 ...
    #[arg(long, value_name = "NAME")]
    solver: Option<String>,
    /// Relative tolerance of its steps
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    rtol: Option<f64>,
    /// Absolute tolerance of its steps, in standardized coordinates
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    atol: Option<f64>,
    /// Steps of equal length a block instead of tolerances
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    fixed_steps: Option<usize>,
    /// States that its gradient keeps; the others are recomputed [default: what fits into 32 MiB]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    checkpoints: Option<usize>,
    /// The optimizer
    #[arg(long, value_name = "NAME", value_parser = names(OptimizerKind::NAMES, OptimizerKind::ALL))]
    optimizer: Option<OptimizerKind>,
    /// Peak learning rate of the first phase; that of a later one keeps its ratio to it
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    lr: Option<f64>,
    /// Seed of weights and draws [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Threads [default: all]; the result does not depend on it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Go on with the run in the folder, bit for bit
    #[arg(long, conflicts_with = "restart")]
    resume: bool,
    /// Begin anew in the folder; the files of the run that lies there are moved to DIR.1, DIR.2, ...
    #[arg(long)]
    restart: bool,
    /// Run nothing; print the number of weights, and per update the kernels, operations, bytes and time at this machine's peak
    #[arg(long)]
    plan: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

fn names<T: Copy + Send + Sync + 'static>(
    names: &'static [&'static str],
    all: &'static [T],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.iter().copied()).map(move |name| {
        let at =
            names.iter().position(|n| *n == name).expect("invariant: the parser allows these names alone");
        all[at]
    })
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    let mut names = Preset::NAMES.to_vec();
    names.splice(1..1, DiffraxExample::NAMES);
    PossibleValuesParser::new(names).map(Preset::from)
}

impl Args {
    fn options(&self) -> TrainOptions {
        TrainOptions {
            preset: self.preset.clone(),
            updates: self.updates,
            time_limit: self.time_limit,
            batch: self.batch,
            width: self.width,
            depth: self.depth,
            blocks: self.blocks,
            divergence: self.divergence,
            probes: self.probes,
            solver: self.solver.clone(),
            rtol: self.rtol,
            atol: self.atol,
            fixed_steps: self.fixed_steps,
            checkpoints: self.checkpoints,
            optimizer: self.optimizer,
            lr: self.lr,
            seed: self.seed,
            objective: self.objective,
            field: self.field,
            pixels: self.pixels,
            kinetic: self.kinetic,
            jacobian: self.jacobian,
            patience: self.patience,
        }
    }

    fn folder(&self) -> PathBuf {
        let stem = self.data.as_deref().and_then(Path::file_stem);
        let stem = stem.map_or_else(|| EMBEDDED.into(), |s| s.to_string_lossy().into_owned());
        self.out
            .clone()
            .unwrap_or_else(|| default_folder(Path::new("runs"), &stem, self.resume || self.restart))
    }
}

/// More threads than any machine that this is for has cores.
const MAX_THREADS: usize = 1024;

/// Runs the subcommand; `started` is when the process did.
///
/// # Errors
/// Wrong options, a bad image, a folder that cannot be written, a run that failed.
pub fn run(args: Args, started: Instant) -> Result<()> {
    let options = args.options();
    options.check()?;
    if let Some(threads) = args.threads
        && !(1..=MAX_THREADS).contains(&threads)
    {
        let (option, value, range) = ("--threads", threads.to_string(), "a whole number from 1 to 1024");
        return Err(TrainError::Option { option, value, range }.into());
    }
    // All that multithreads is rayon's, so one pool around the run is the number of threads.
    let threads = args.threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| TrainError::Threads { threads, reason: e.to_string() })?;
    pool.install(|| train(&args, &options, started))
}

fn train(args: &Args, options: &TrainOptions, started: Instant) -> Result<()> {
    let trainer = match &options.preset {
        Some(Preset::Given(_)) => DiffraxExample::trainer(data(args)?)?,
        _ => Trainer::new(data(args)?),
    };
    let trainer = trainer.options(options).started(started);
    if args.plan {
        return tell_plan(args, &trainer);
    }
    let folder = args.folder();
    if !(args.resume || args.restart) {
        check_free(&folder)?;
    }
    let trainer = trainer.run_dir(&folder);
    let trainer = if args.restart { trainer.restart() } else { trainer };
    // Without handlers a signal ends the run as it ends any program, and its last checkpoint is there.
    let signals = Signals::watch().ok();
    let bar = RefCell::new(Bar::new());
    let learned = trainer
        .stop_when(|| signals.as_ref().is_some_and(Signals::is_requested))
        .on_update(|progress| bar.borrow_mut().show(progress))
        .on_note(|text| bar.borrow_mut().note(text))
        .on_stage(|stage, done| bar.borrow_mut().stage(stage, done))
        .run();
    drop(bar);
    if let (Err(stopped @ Error::Train(TrainError::Stopped { .. })), Some(signals)) = (&learned, &signals) {
        note(&stopped.to_string());
        signals.end();
    }
    tell(args, &learned?);
    Ok(())
}

/// What is to be learned: a toy where the name is one and no such file is there, points by the file's ending, else an image.
fn data(args: &Args) -> Result<TrainingData> {
    let set = args.data.as_deref().map(is_image_set).transpose()?.unwrap_or(false);
    let labels = [&args.labels, &args.validation_labels, &args.test_labels];
    for (option, file) in ["--labels", "--validation-labels", "--test-labels"].into_iter().zip(labels) {
        if let Some(file) = file.as_ref().filter(|_| !set) {
            let (value, range) = (file.display().to_string(), "left out: classes are of sets of images");
            return Err(TrainError::Option { option, value, range }.into());
        }
    }
    let Some(path) = &args.data else { return check_given(args, ImageDensity::embedded().into()) };
    let toy = path.to_str().filter(|_| !path.exists()).and_then(|name| name.parse::<ToyDensity>().ok());
    if let Some(toy) = toy {
        return check_given(args, toy.into());
    }
    if set {
        let open = |path: &Path, labels: Option<&PathBuf>| -> Result<Arc<ImageSet>> {
            let images = ImageSet::open(path)?;
            Ok(Arc::new(if let Some(labels) = labels { images.with_labels(labels)? } else { images }))
        };
        let given = |path: &Option<PathBuf>, labels: &Option<PathBuf>| {
            path.as_ref().map(|path| open(path, labels.as_ref())).transpose()
        };
        let validation = given(&args.validation, &args.validation_labels)?;
        let test = given(&args.test, &args.test_labels)?;
        return Ok(TrainingData::Images(open(path, args.labels.as_ref())?, Given { validation, test }));
    }
    let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    if is("npy") || is("csv") {
        let [validation, test] = [&args.validation, &args.test].map(|path| path.as_ref().map(Points::open));
        let given = Given { validation: validation.transpose()?, test: test.transpose()? };
        return Ok(TrainingData::Points(Points::open(path)?, given));
    }
    check_given(args, ImageDensity::open(path)?.into())
}

/// Whether a path is a set of images: a folder, an array of more than two axes, a gzip or IDX file.
fn is_image_set(path: &Path) -> Result<bool> {
    if path.is_dir() {
        return Ok(true);
    }
    let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    if is("npy") {
        return Ok(read_npy_header(path)?.shape.len() > 2);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    Ok(is("gz") || is("idx") || name.ends_with("-ubyte"))
}

/// An image and a toy are drawn from for their held-out points.
fn check_given(args: &Args, data: TrainingData) -> Result<TrainingData> {
    let given = [("--validation", &args.validation), ("--test", &args.test)];
    let Some((option, path)) = given.into_iter().find_map(|(option, path)| Some((option, path.as_ref()?)))
    else {
        return Ok(data);
    };
    let value = path.display().to_string();
    let range = "left out: an image or a toy gives held-out points by itself";
    Err(TrainError::Option { option, value, range }.into())
}

fn tell(args: &Args, learned: &TrainedFlow) {
    let Some(report) = &learned.train_report else { return };
    note(&summary(report));
    if args.json {
        result(&serde_json::to_string(report).expect("invariant: a report is plain values"));
    }
}

/// The run for people.
fn summary(report: &TrainReport) -> String {
    let mut table = Table::default();
    table.row("updates", grouped(report.updates)).row("weights", grouped(report.weights as u64));
    for (name, value) in report.figures() {
        table.row(name, value);
    }
    for phase in &report.phases {
        let (updates, ms) = (grouped(phase.updates), phase.ms_per_update);
        let gap = |mean| Estimate { mean, stderr: phase.gap_stderr_nats, count: 0 };
        let gap = phase.gap_nats.map_or_else(String::new, |mean| format!(", gap {} nats", gap(mean)));
        let text = format!("{updates} updates in {}, {ms:.1} ms each{gap}", seconds(phase.seconds));
        table.row(phase.objective.title(), text);
    }
    table.row("memory", format!("{:.0} MB at most", report.peak_rss_mb));
    for (name, path) in &report.files {
        table.row(name, path.clone());
    }
    table.text()
}

fn tell_plan(args: &Args, trainer: &Trainer) -> Result<()> {
    let (plans, peak) = (trainer.plan()?, Peak::measure());
    if args.json {
        // The last phase solves: its peak is what --checkpoints governs.
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

/// The plan for people. The floor is the time that the operations would take at the rate of matrix products in cache.
fn plan_text(weights: usize, plans: &[PhasePlan], peak: &Peak) -> String {
    let mut table = Table::default();
    table.row("weights", grouped(weights as u64)).row("machine", machine::line(peak));
    let heading = ["an update of", "kernels", "operations", "moved", "workspace", "without reuse", "floor"];
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
        text.push_str("\n  * of an update with a step of each solve: how many there will be is not known");
    }
    text
}
