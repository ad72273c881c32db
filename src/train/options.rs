//! The options of a run as given by the user; options that are not given are `None`.
//!
//! The run folder stores the options with the resulting [`TrainConfig`](super::TrainConfig). A resumed run may repeat
//! any of them: see `agree`.

use super::{DivergenceKind, PixelTransformKind, TrainError};
use crate::error::Error;
use crate::names::names;
use crate::ode::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The options of a run; every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainOptions {
    /// The preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Total number of updates over all phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<u64>,
    /// Total time budget in seconds, in place of `updates`: training, evaluation and figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,
    /// Points or images per update, in every phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Width of the hidden layers; of a U-Net, the channels at its finest level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Number of hidden layers; of a U-Net, the number of levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Number of vector fields, composed in sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// How the divergence is computed in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divergence: Option<DivergenceKind>,
    /// Probes of the Hutchinson estimator, which this option selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<usize>,
    /// The ODE method in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<String>,
    /// Relative tolerance in training; 1e-4 if only `atol` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtol: Option<f64>,
    /// Absolute tolerance in training; 1e-4 if only `rtol` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atol: Option<f64>,
    /// Number of equal steps in training, instead of tolerances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_steps: Option<usize>,
    /// Maximum number of states stored for the gradient of a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<usize>,
    /// The optimizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// The training objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveKind>,
    /// The law of the times of flow matching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<TimesKind>,
    /// The target of flow matching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetKind>,
    /// The density from which the flow of a table starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartKind>,
    /// The model for image sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<ModelKind>,
    /// The pixel transform of image sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixels: Option<PixelTransformKind>,
    /// On points: whether columns that are rounded to a step get uniform noise of one step, in training and in scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dequantize: Option<bool>,
    /// Weight of the kinetic energy of the path in the maximum-likelihood loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinetic: Option<f64>,
    /// Weight of the squared Frobenius norm of the Jacobian along the path in the maximum-likelihood loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jacobian: Option<f64>,
    /// Early stopping, on points, image sets and exact targets alone: checks in a row without improvement that end the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// Peak learning rate of the first phase; later phases scale with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Number of parts of a batch, so that ranks can share an update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<usize>,
    /// The seed of all random numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Which figures to draw: without effect on the weights, except under a time limit; not in checkpoints.
    #[serde(skip)]
    pub plots: Option<PlotsKind>,
}

/// A set of defaults.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Preset {
    /// For one image.
    Default,
    /// For points and toy densities.
    Points,
    /// For sets of images.
    Images,
    /// A configuration given by the user, by its name: see [`Trainer::config`](super::Trainer::config).
    Given(String),
}

impl Preset {
    /// The names of the library's own presets, in order.
    pub const NAMES: &[&str] = &["default", "points", "images"];

    /// Its name on the command line and in files.
    pub fn name(&self) -> &str {
        match self {
            Preset::Default => "default",
            Preset::Points => "points",
            Preset::Images => "images",
            Preset::Given(name) => name,
        }
    }
}

impl From<String> for Preset {
    fn from(name: String) -> Preset {
        match &*name {
            "default" => Preset::Default,
            "points" => Preset::Points,
            "images" => Preset::Images,
            // Diffrax's CNF example; files use its older name.
            "diffrax" => Preset::Given("documented".to_owned()),
            _ => Preset::Given(name),
        }
    }
}

impl From<Preset> for String {
    fn from(preset: Preset) -> String {
        preset.name().to_owned()
    }
}

names! {
    /// The objectives of a run, in order.
    ObjectiveKind {
        /// Flow matching only.
        FlowMatching = "flow-matching",
        /// Maximum likelihood only, through the solver.
        MaximumLikelihood = "maximum-likelihood",
        /// Flow matching, then maximum likelihood.
        Both = "both",
    }
}
names! {
    /// The law of the times of flow matching ([`Times`](crate::cnf::extra::Times)).
    #[derive(Default)]
    TimesKind {
        /// Uniform.
        #[default]
        Uniform = "uniform",
        /// Half uniform, half in proportion to their weight in the likelihood.
        Half = "half",
        /// In proportion to their weight in the likelihood.
        Likelihood = "likelihood",
    }
}
names! {
    /// The target of flow matching.
    #[derive(Default)]
    TargetKind {
        /// The velocity of the drawn path.
        #[default]
        Drawn = "drawn",
        /// The mean velocity at the point, by the formula of a known density: an image or a toy.
        Exact = "exact",
    }
}
names! {
    /// The density from which a flow starts.
    #[derive(Default)]
    StartKind {
        /// A normal density, or random weights if the field is not preconditioned.
        #[default]
        Normal = "normal",
        /// A mixture of normal densities, fitted to the training rows of a table.
        Mixture = "mixture",
    }
}
names! {
    /// The model of a flow of images.
    ModelKind {
        /// Convolutions at several scales ([`UNet`](crate::nn::UNet)).
        UNet = "unet",
        /// An MLP of pixels and time ([`Mlp`](crate::nn::Mlp)).
        Mlp = "mlp",
        /// Layers scaled and shifted by functions of time ([`ConcatSquash`](crate::nn::ConcatSquash)).
        ConcatSquash = "concatsquash",
    }
}
names! {
    /// Which figures a run draws.
    PlotsKind {
        /// All figures, during training and at the end.
        All = "all",
        /// Only `loss.png` and, except for image sets, one more: `density.png`, or `corner.png` for points with
        /// more than two coordinates.
        Density = "density",
        /// No figures.
        None = "none",
    }
}
names! {
    /// The optimizer of a run.
    OptimizerKind {
        /// Adam.
        Adam = "adam",
        /// Adam with decoupled weight decay.
        AdamW = "adamw",
        /// Stochastic gradient descent.
        Sgd = "sgd",
        /// SGD with momentum 0.9.
        Momentum = "momentum",
        /// SGD with Nesterov momentum 0.9.
        Nesterov = "nesterov",
        /// RMSProp: gradients over the square root of the average of their squares.
        RmsProp = "rmsprop",
        /// Adagrad: gradients over the square root of the sum of their squares.
        AdaGrad = "adagrad",
        /// AdaBelief: Adam with the second moment of the gradient's distance from its average.
        AdaBelief = "adabelief",
        /// NAdam: Adam with Nesterov momentum.
        NAdam = "nadam",
        /// RAdam: Adam whose first updates use only momentum.
        RAdam = "radam",
        /// Lion: the sign of a momentum, with decoupled weight decay.
        Lion = "lion",
        /// LAMB: Adam scaled leaf by leaf to the norm of the weights.
        Lamb = "lamb",
    }
}

/// Allowed time limits in seconds: up to three years.
const TIME_LIMITS_S: (f64, f64) = (1e-3, 1e8);
/// Allowed relative tolerances: from the precision of f32 to below 1.
const RTOLS: (f64, f64) = (f32::EPSILON as f64, 1.0 - f64::EPSILON);

/// Options of the model and its solver: field name and command-line option.
const OF_A_FLOW: [(&str, &str); 14] = [
    ("width", "--width"),
    ("depth", "--depth"),
    ("blocks", "--blocks"),
    ("field", "--field"),
    ("start", "--start"),
    ("divergence", "--divergence"),
    ("probes", "--probes"),
    ("solver", "--solver"),
    ("rtol", "--rtol"),
    ("atol", "--atol"),
    ("fixed_steps", "--fixed-steps"),
    ("checkpoints", "--checkpoints"),
    ("kinetic", "--kinetic"),
    ("jacobian", "--jacobian"),
];

impl TrainOptions {
    /// Refuses values out of range and options that exclude each other.
    ///
    /// # Errors
    /// [`TrainError::Option`], [`TrainError::Exclusive`], or an error of the solver's settings.
    pub fn check(&self) -> Result<(), Error> {
        let count = |value: Option<usize>| value.map(|x| x as u64);
        let counts = [
            ("--updates", self.updates, u64::from(u32::MAX), "a whole number from 1 to 4294967295"),
            ("--batch", count(self.batch), 1 << 20, "a whole number from 1 to 1048576"),
            ("--width", count(self.width), 4096, "a whole number from 1 to 4096"),
            ("--depth", count(self.depth), 64, "a whole number from 1 to 64"),
            ("--blocks", count(self.blocks), 64, "a whole number from 1 to 64"),
            ("--probes", count(self.probes), 64, "a whole number from 1 to 64"),
            ("--fixed-steps", count(self.fixed_steps), 10_000, "a whole number from 1 to 10000"),
            ("--shards", count(self.shards), 1 << 20, "a whole number from 1 to 1048576"),
            ("--checkpoints", count(self.checkpoints), 1 << 20, "a whole number from 1 to 1048576"),
        ];
        for (option, value, most, range) in counts {
            if value.is_some_and(|x| x == 0 || x > most) {
                return Err(out_of_range(option, value, range));
            }
        }
        let sizes = [
            ("--lr", self.lr, (f64::MIN_POSITIVE, f64::MAX), "finite and above 0"),
            ("--time-limit", self.time_limit, TIME_LIMITS_S, "from 0.001 to 1e8 seconds"),
            ("--rtol", self.rtol, RTOLS, "at least 1.2e-7, the precision of the weights, and below 1"),
            ("--atol", self.atol, (0.0, 1.0), "at least 0 and at most 1, in standard deviations of the data"),
        ];
        for (option, value, (least, most), range) in sizes {
            if value.is_some_and(|x| !(least..=most).contains(&x)) {
                return Err(out_of_range(option, value.map(in_short), range));
            }
        }
        for (option, value) in [("--kinetic", self.kinetic), ("--jacobian", self.jacobian)] {
            if value.is_some_and(|x| !(x.is_finite() && x >= 0.0)) {
                return Err(out_of_range(option, value.map(in_short), "finite and at least 0"));
            }
        }
        if self.patience == Some(0) {
            return Err(out_of_range("--patience", self.patience, "at least 1"));
        }
        self.check_pairs()?;
        self.check_solver()
    }

    fn check_pairs(&self) -> Result<(), Error> {
        let given = |x: bool, name: &'static str| x.then_some(name);
        let pairs = [
            (given(self.updates.is_some(), "--updates"), given(self.time_limit.is_some(), "--time-limit")),
            (given(self.fixed_steps.is_some(), "--fixed-steps"), given(self.rtol.is_some(), "--rtol")),
            (given(self.fixed_steps.is_some(), "--fixed-steps"), given(self.atol.is_some(), "--atol")),
            (
                given(self.divergence == Some(DivergenceKind::Exact), "--divergence exact"),
                given(self.probes.is_some(), "--probes"),
            ),
        ];
        match pairs.into_iter().find_map(|(a, b)| a.zip(b)) {
            Some((first, second)) => Err(TrainError::Exclusive { first, second }.into()),
            None => Ok(()),
        }
    }

    fn check_solver(&self) -> Result<(), Error> {
        let Some(name) = &self.solver else { return Ok(()) };
        // Solves on tensors have explicit methods only.
        let Some(method) = name.parse().ok().filter(|method: &Method| method.is_explicit()) else {
            let explicit = Method::ALL.into_iter().filter(|method| method.is_explicit());
            let known = explicit.map(|method| method.tableau().name).collect::<Vec<_>>().join(", ");
            return Err(TrainError::Solver { name: name.clone(), known }.into());
        };
        let adaptive = self.rtol.map(|_| "--rtol").or(self.atol.map(|_| "--atol"));
        if let (Some(option), None) = (adaptive, method.tableau().b_err) {
            return Err(TrainError::NoErrorEstimate { method: method.tableau().name, option }.into());
        }
        Ok(())
    }

    /// These options, overridden by those given in `others`.
    pub(super) fn with(&self, others: &TrainOptions) -> TrainOptions {
        macro_rules! either {
            ($($field:ident)*) => {
                TrainOptions { $($field: others.$field.clone().or_else(|| self.$field.clone())),* }
            };
        }
        either! {
            preset updates time_limit batch width depth blocks divergence probes solver rtol atol fixed_steps checkpoints
            optimizer objective times target start field pixels dequantize kinetic jacobian patience shards lr seed plots
        }
    }

    /// Refuses options of the model and its solver when a flow is given.
    ///
    /// # Errors
    /// [`TrainError::Useless`] for the first such option.
    pub(super) fn check_given_flow(&self) -> Result<(), Error> {
        let given = self.to_map();
        let found = OF_A_FLOW.iter().find_map(|(name, flag)| Some((*flag, given.get(*name)?)));
        match found {
            None => Ok(()),
            Some((option, value)) => {
                let (value, reason) = (plain(value), "the given flow has its own");
                Err(TrainError::Useless { option, value, reason }.into())
            }
        }
    }

    pub(super) fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            other => unreachable!("invariant: options are an object, not {other:?}"),
        }
    }

    pub(super) fn from_map(map: Map<String, Value>) -> TrainOptions {
        serde_json::from_value(Value::Object(map)).expect("invariant: the values were options' own")
    }
}

fn out_of_range<T: std::fmt::Display>(option: &'static str, value: Option<T>, range: &'static str) -> Error {
    let value = value.map_or_else(String::new, |x| x.to_string());
    TrainError::Option { option, value, range }.into()
}

/// A number of any magnitude in a few digits.
fn in_short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (1e-4..1e9).contains(&x.abs()) {
        x.to_string()
    } else {
        format!("{x:e}")
    }
}

/// A value as on the command line.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
