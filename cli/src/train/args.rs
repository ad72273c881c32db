//! Options of `flowline train`, under the headings of its help.

use super::super::documented::DiffraxExample;
use super::super::input::{Delimiter, delimiter};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flowline::__internal::{
    DivergenceKind, ModelKind, ObjectiveKind, OptimizerKind, PixelTransformKind, PlotsKind,
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
image.png|jpg|bmp|gif|webp  darker pixels are more probable
points.csv|tsv|npy, -       one point per row; - is standard input
folder, IDX(.gz), 3-D .npy  a set of images
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

    /// Columns [default: all numeric columns]
    #[arg(long, value_name = "A,B", help_heading = INPUT)]
    pub columns: Option<String>,
    /// Separator [default: guessed]
    #[arg(long, value_name = "CHAR", value_parser = delimiter, help_heading = INPUT)]
    pub delimiter: Option<Delimiter>,
    /// Class of each image: IDX, .npy or .csv
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub labels: Option<PathBuf>,
    /// Validation data, to select weights [default: a random tenth]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation: Option<PathBuf>,
    /// Classes of --validation
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation_labels: Option<PathBuf>,
    /// Test data, for the final scores [default: a random tenth]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test: Option<PathBuf>,
    /// Classes of --test
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test_labels: Option<PathBuf>,
    /// marginals, logit [default: marginals]
    #[arg(long, value_name = "NAME", help_heading = INPUT, hide_possible_values = true,
        value_parser = names(PixelTransformKind::NAMES, PixelTransformKind::ALL))]
    pub pixels: Option<PixelTransformKind>,

    /// Network for image sets: unet, mlp, concatsquash [default: unet]
    #[arg(long, value_name = "NAME", visible_alias = "model", help_heading = MODEL, hide_possible_values = true,
        value_parser = names(ModelKind::NAMES, ModelKind::ALL))]
    pub field: Option<ModelKind>,
    /// Hidden width [default: 80; points 56, 3-D 96; unet 32]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub width: Option<usize>,
    /// Hidden layers [default: 3; unet 2]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub depth: Option<usize>,
    /// Vector fields in sequence [default: 1]
    #[arg(long, value_name = "N", help_heading = MODEL, allow_negative_numbers = true)]
    pub blocks: Option<usize>,

    /// flow-matching, maximum-likelihood, both [default: both; images flow-matching]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(ObjectiveKind::NAMES, ObjectiveKind::ALL))]
    pub objective: Option<ObjectiveKind>,
    /// exact, hutchinson [default: exact up to 8 dimensions]
    #[arg(long, value_name = "NAME", help_heading = OBJECTIVE, hide_possible_values = true,
        value_parser = names(DivergenceKind::NAMES, DivergenceKind::ALL))]
    pub divergence: Option<DivergenceKind>,
    /// Probes of the Hutchinson estimator [default: 1]
    #[arg(long, value_name = "K", help_heading = OBJECTIVE, allow_negative_numbers = true)]
    pub probes: Option<usize>,
    /// Weight of the path's kinetic energy [default: 0]
    #[arg(long, value_name = "X", visible_alias = "kinetic-weight", help_heading = OBJECTIVE,
        allow_hyphen_values = true)]
    pub kinetic: Option<f64>,
    /// Weight of the squared Jacobian norm [default: 0]
    #[arg(long, value_name = "X", visible_alias = "jacobian-weight", help_heading = OBJECTIVE,
        allow_hyphen_values = true)]
    pub jacobian: Option<f64>,

    /// Runge-Kutta method: tsit5, dopri5, vern7, rk4 ... [default: tsit5]
    #[arg(long, value_name = "NAME", visible_alias = "method", help_heading = SOLVER)]
    pub solver: Option<String>,
    /// Relative tolerance [default: 1e-3]
    #[arg(long, value_name = "X", help_heading = SOLVER, allow_hyphen_values = true)]
    pub rtol: Option<f64>,
    /// Absolute tolerance [default: 1e-3]
    #[arg(long, value_name = "X", help_heading = SOLVER, allow_hyphen_values = true)]
    pub atol: Option<f64>,
    /// N equal steps per vector field, without error control
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true)]
    pub fixed_steps: Option<usize>,
    /// Stored states per gradient [default: what fits into 32 MiB]
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true)]
    pub checkpoints: Option<usize>,

    /// adam, adamw, sgd, momentum, nesterov, rmsprop, adagrad, adabelief, nadam, radam, lion, lamb [default: adamw]
    #[arg(long, value_name = "NAME", help_heading = OPTIMIZER, hide_possible_values = true,
        value_parser = names(OptimizerKind::NAMES, OptimizerKind::ALL))]
    pub optimizer: Option<OptimizerKind>,
    /// Peak learning rate of the first phase; later phases scale with it [default: 6e-3; images 2e-3]
    #[arg(long, value_name = "X", help_heading = OPTIMIZER, allow_hyphen_values = true)]
    pub lr: Option<f64>,
    /// Points per update [default: 4096, then 512; points 2048, then 512; images 128]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Total updates [default: 16160; points 12160; images 4000]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub updates: Option<u64>,
    /// Stop after N validations without improvement, 10 per phase; points and images [default: never]
    #[arg(long, value_name = "N", help_heading = OPTIMIZER, allow_negative_numbers = true)]
    pub patience: Option<u64>,

    /// Parts of a batch, at least one per rank; the weights depend on it [default: 1]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub shards: Option<usize>,
    /// Quick first run: 15 seconds, coarse figures
    #[arg(long, help_heading = RUN, conflicts_with_all = ["updates", "time_limit"])]
    pub quick: bool,
    /// Time limit in seconds, including scores and figures
    #[arg(long, value_name = "SECONDS", help_heading = RUN, allow_hyphen_values = true)]
    pub time_limit: Option<f64>,
    /// Option set: default, points, images, diffrax [default: chosen by DATA]
    #[arg(long, value_name = "NAME", help_heading = RUN, hide_possible_values = true, value_parser = presets())]
    pub preset: Option<Preset>,
    /// Options from a TOML file; the command line takes precedence
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub config: Option<PathBuf>,
    /// Random seed [default: 0]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Threads; they do not change the results [default: all]
    #[arg(long, value_name = "N", help_heading = RUN, allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Continue the run in --out, bit for bit
    #[arg(long, help_heading = RUN, conflicts_with = "restart")]
    pub resume: bool,
    /// Start again; the old run moves to DIR.1
    #[arg(long, help_heading = RUN)]
    pub restart: bool,
    /// Dry run: print the cost per update
    #[arg(long, help_heading = RUN)]
    pub plan: bool,

    /// Run folder [default: runs/ and the name of DATA; -2, -3, ... if taken]
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Figures to draw: all, density, none [default: all]
    #[arg(long, value_name = "WHICH", help_heading = OUTPUT, hide_possible_values = true,
        value_parser = names(PlotsKind::NAMES, PlotsKind::ALL))]
    pub plots: Option<PlotsKind>,
    /// Progress as text or jsonl [default: text]
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
            field: self.field,
            pixels: self.pixels,
            kinetic: self.kinetic,
            jacobian: self.jacobian,
            patience: self.patience,
            shards: self.shards,
            plots: self.plots,
        }
    }
}
