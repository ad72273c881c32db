//! Options of `flowline train`, under the headings of its help.

use super::super::documented::DiffraxExample;
use super::super::input::{Delimiter, delimiter};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flowline::__internal::{
    DivergenceKind, ModelKind, ObjectiveKind, OptimizerKind, PixelTransformKind, PlotsKind, StartKind,
    TargetKind, TimesKind,
};
use flowline::train::{Preset, TrainOptions};
use std::path::PathBuf;

/// Headings that `-h` omits.
pub const ADVANCED: [&str; 4] = [MODEL, OBJECTIVE, SOLVER, OPTIMIZER];
const INPUT: &str = "Input";
const MODEL: &str = "Model";
const OBJECTIVE: &str = "Objective";
const SOLVER: &str = "Solver (maximum likelihood)";
const OPTIMIZER: &str = "Optimizer";
const RUN: &str = "Run";
const OUTPUT: &str = "Output";

/// Duration of a run with `--quick`, in seconds.
const QUICK_S: f64 = 15.0;

const DATA: &str = "\
What to learn:
image.png|jpg|bmp|gif|webp  image; darker pixels are more probable
points.csv|tsv|npy          a table with one point per row
-                           a table on standard input
folder, IDX file (or .gz),  a set of images of equal size
.npy with 3 or 4 axes
moons, 8gaussians, pinwheel, circles, 2spirals, checkerboard,
rings, swissroll            toy densities
[default: a built-in image]";

/// Arguments of `flowline train`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  flowline train cat.png --time-limit 280
  flowline train points.csv --columns height,weight --quick
  flowline train moons --updates 5000 --out runs/moons")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    #[arg(help = DATA)]
    pub data: Option<PathBuf>,

    /// Columns of a table (.csv, .tsv or standard input) to learn, by heading or by number from 1 [default: all
    /// numeric columns]
    #[arg(long, value_name = "A,B", help_heading = INPUT)]
    pub columns: Option<String>,
    /// Separator of the columns of a table: a character, tab or space [default: guessed]
    #[arg(long, value_name = "CHAR", value_parser = delimiter, help_heading = INPUT)]
    pub delimiter: Option<Delimiter>,
    /// For image sets: class of each image, a whole number from 0; an IDX, .npy or .csv file
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub labels: Option<PathBuf>,
    /// For tables and image sets: data that select the best weights [default: a random tenth of DATA]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation: Option<PathBuf>,
    /// Class of each image in --validation; required with --labels
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation_labels: Option<PathBuf>,
    /// For tables and image sets: data for the final scores, not used in training [default: a random tenth of
    /// DATA]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test: Option<PathBuf>,
    /// Class of each image in --test; required with --labels
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test_labels: Option<PathBuf>,
    /// For tables: add uniform noise of one step to columns whose values are rounded to a step, in training and in
    /// scores
    #[arg(long, help_heading = INPUT)]
    pub dequantize: bool,
    /// For image sets: transform of pixel values, marginals (by the distribution of each pixel) or logit
    /// [default: marginals]
    #[arg(long, value_name = "NAME", help_heading = INPUT, hide_possible_values = true,
        value_parser = names(PixelTransformKind::NAMES, PixelTransformKind::ALL))]
    pub pixels: Option<PixelTransformKind>,

    /// Network for image sets: unet, mlp, concatsquash [default: unet]
    #[arg(long, value_name = "NAME", visible_alias = "model", help_heading = MODEL, hide_possible_values = true,
        value_parser = names(ModelKind::NAMES, ModelKind::ALL))]
    pub field: Option<ModelKind>,
    /// For tables: density from which the flow starts, mixture (normal densities fitted to the training rows) or
    /// normal [default: mixture for at most 64 columns and a single block]
    #[arg(long, value_name = "NAME", help_heading = MODEL, hide_possible_values = true,
        value_parser = names(StartKind::NAMES, StartKind::ALL))]
    pub start: Option<StartKind>,
    /// Width of the hidden layers; for unet, channels of the finest level [default: 72, or 128 for an image
    /// with fine structures; tables, toy densities 52, or 96 if not 2-D; image sets 32 for unet, otherwise 1024]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub width: Option<usize>,
    /// Number of hidden layers; for unet, number of levels [default: 3; unet 2]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub depth: Option<usize>,
    /// Number of vector fields, applied in sequence [default: 1]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub blocks: Option<usize>,

    /// Loss: flow-matching, maximum-likelihood, or both in this order [default: flow-matching]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(ObjectiveKind::NAMES, ObjectiveKind::ALL))]
    pub objective: Option<ObjectiveKind>,
    /// Times of flow matching: uniform; likelihood, in proportion to their weight in the likelihood; half, one
    /// half of each [default: uniform for image sets, otherwise half]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(TimesKind::NAMES, TimesKind::ALL))]
    pub times: Option<TimesKind>,
    /// Target of flow matching: drawn, the velocity of a drawn path; exact, its mean by a formula, for one image
    /// or a toy density [default: exact for one image, otherwise drawn]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(TargetKind::NAMES, TargetKind::ALL))]
    pub target: Option<TargetKind>,
    /// Divergence in maximum likelihood: exact, hutchinson [default: exact up to 8 dimensions, otherwise
    /// hutchinson]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(DivergenceKind::NAMES, DivergenceKind::ALL))]
    pub divergence: Option<DivergenceKind>,
    /// Number of random probes of the Hutchinson estimator; implies --divergence hutchinson [default: 1]
    #[arg(long, value_name = "K", help_heading = OBJECTIVE, allow_negative_numbers = true)]
    pub probes: Option<usize>,
    /// Weight of the kinetic energy of the paths in the maximum-likelihood loss [default: 0]
    #[arg(long, value_name = "X", visible_alias = "kinetic-weight", help_heading = OBJECTIVE,
        allow_hyphen_values = true)]
    pub kinetic: Option<f64>,
    /// Weight of the squared Frobenius norm of the Jacobian in the maximum-likelihood loss [default: 0]
    #[arg(long, value_name = "X", visible_alias = "jacobian-weight", help_heading = OBJECTIVE,
        allow_hyphen_values = true)]
    pub jacobian: Option<f64>,

    /// Explicit Runge-Kutta method, for example tsit5, dopri5, vern7, rk4 [default: tsit5]
    #[arg(long, value_name = "NAME", visible_alias = "method", help_heading = SOLVER)]
    pub solver: Option<String>,
    /// Relative tolerance [default: 1e-3; 1e-4 if --atol is given]
    #[arg(long, value_name = "X", help_heading = SOLVER, allow_hyphen_values = true)]
    pub rtol: Option<f64>,
    /// Absolute tolerance in standardized coordinates [default: 1e-3; 1e-4 if --rtol is given]
    #[arg(long, value_name = "X", help_heading = SOLVER, allow_hyphen_values = true)]
    pub atol: Option<f64>,
    /// Take N equal steps per vector field, without error control [default: 16 for methods without an error
    /// estimate]
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true)]
    pub fixed_steps: Option<usize>,
    /// Number of states that a gradient stores; the others are recomputed [default: as many as fit into 32
    /// MiB]
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true)]
    pub checkpoints: Option<usize>,

    /// Optimizer: adam, adamw, sgd, momentum, nesterov, rmsprop, adagrad, adabelief, nadam, radam, lion, lamb
    /// [default: adamw]
    #[arg(long, value_name = "NAME", help_heading = OPTIMIZER, hide_possible_values = true,
        value_parser = names(OptimizerKind::NAMES, OptimizerKind::ALL))]
    pub optimizer: Option<OptimizerKind>,
    /// Peak learning rate of the first phase; later phases scale with it [default: 6e-3; image sets 2e-3;
    /// maximum-likelihood alone 1e-3]
    #[arg(long, value_name = "X", help_heading = OPTIMIZER, allow_hyphen_values = true)]
    pub lr: Option<f64>,
    /// Points or images per update [default: 256 for one image, 4096 for it with drawn targets, 2048 for tables
    /// and toy densities; 512 in maximum likelihood; image sets 128]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Number of updates of all phases together [default: flow matching 16000 (tables, toy densities 12000;
    /// image sets 4000); with --objective, maximum likelihood 160 (image sets 100)]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub updates: Option<u64>,
    /// For tables and image sets: stop after N validations in a row without improvement. A phase has 10 on image
    /// sets and 30 on tables, each after a quarter more updates than the one before. For exact targets: after N
    /// estimates of the KL divergence, of 50 [default: never]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub patience: Option<u64>,

    /// Divide each batch into N equal parts, so that up to N MPI ranks share an update; the weights depend on
    /// N [default: 1]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub shards: Option<usize>,
    /// First look: the same as --time-limit 15; figures may be coarse
    #[arg(long, help_heading = RUN, conflicts_with_all = ["updates", "time_limit"])]
    pub quick: bool,
    /// Time limit of the whole run in seconds, including scores and figures; replaces the number of updates
    #[arg(long, value_name = "SECONDS", help_heading = RUN, allow_hyphen_values = true)]
    pub time_limit: Option<f64>,
    /// Set of defaults: default, points, images or, for a single image, diffrax (the CNF example of diffrax)
    /// [default: chosen by DATA]
    #[arg(long, value_name = "NAME", help_heading = RUN, hide_possible_values = true, value_parser = presets())]
    pub preset: Option<Preset>,
    /// TOML file of options; options on the command line take precedence
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub config: Option<PathBuf>,
    /// Random seed of the split of DATA, of initial weights, batches and noise [default: 0]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Number of threads, 1 to 1024; the results do not depend on it [default: RAYON_NUM_THREADS, or one per
    /// core]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Continue the run in --out, or begin it if there is none; without a time limit, the result has the bits
    /// of an uninterrupted run
    #[arg(long, help_heading = RUN, conflicts_with = "restart")]
    pub resume: bool,
    /// Start a new run in --out; the files of the old run move to DIR.1, or DIR.2, ... if that exists
    #[arg(long, help_heading = RUN)]
    pub restart: bool,
    /// Print the operations and the memory of an update of each phase, without training
    #[arg(long, help_heading = RUN)]
    pub plan: bool,

    /// Folder of the run [default: runs/ and the name of DATA; -2, -3, ... is added if it exists; to resume
    /// or restart, the last that exists]
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Figures to draw: all, density (only the density and the loss curve), none [default: all]
    #[arg(long, value_name = "WHICH", help_heading = OUTPUT, hide_possible_values = true,
        value_parser = names(PlotsKind::NAMES, PlotsKind::ALL))]
    pub plots: Option<PlotsKind>,
    /// Format of progress on standard error: text, jsonl [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = OUTPUT, hide_possible_values = true,
        value_parser = names(&["text", "jsonl"], &[false, true]))]
    pub log_format: Option<bool>,
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
    /// Converts the arguments to the library's [`TrainOptions`].
    pub fn options(&self) -> TrainOptions {
        TrainOptions {
            preset: self.preset.clone(),
            updates: self.updates,
            time_limit: self.time_limit.or(self.quick.then_some(QUICK_S)),
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
            times: self.times,
            target: self.target,
            start: self.start,
            field: self.field,
            pixels: self.pixels,
            dequantize: self.dequantize.then_some(true),
            kinetic: self.kinetic,
            jacobian: self.jacobian,
            patience: self.patience,
            shards: self.shards,
            plots: self.plots,
        }
    }
}
