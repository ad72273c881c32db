//! The options of a run as given by the user; options that are not given are `None`. The [`table`] lists them.
//!
//! The run folder stores the options with the resulting [`TrainConfig`](super::TrainConfig). A resumed run may repeat
//! any of them: see `agree`.

mod table;

pub use table::{
    INPUT, MODEL, OBJECTIVE, OPTIMIZER, OPTIONS, OUTPUT, RUN, SOLVER, TrainOption, TrainOptions, Values,
};
pub(super) use table::{Needs, Resume, causes_first};

use super::{DivergenceKind, PixelTransformKind, TrainError};
use crate::error::Error;
use crate::names::names;
use crate::ode::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::ops::RangeBounds;

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
    Given {
        /// Its name.
        name: String,
    },
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
            Preset::Given { name } => name,
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
            "diffrax" => Preset::Given { name: "documented".to_owned() },
            _ => Preset::Given { name },
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
    InitialFlowKind {
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

impl TrainOptions {
    /// Refuses values out of range and options that exclude each other.
    ///
    /// # Errors
    /// [`TrainError::Option`], [`TrainError::Exclusive`], or an error of the solver's settings.
    pub fn check(&self) -> Result<(), Error> {
        self.check_ranges()?;
        self.check_pairs()?;
        self.check_solver()
    }

    fn check_pairs(&self) -> Result<(), Error> {
        let given = |x: bool, name: &'static str| x.then_some(name);
        let pairs = [
            (given(self.updates.is_some(), "updates"), given(self.time_limit.is_some(), "time_limit")),
            (given(self.fixed_steps.is_some(), "fixed_steps"), given(self.rtol.is_some(), "rtol")),
            (given(self.fixed_steps.is_some(), "fixed_steps"), given(self.atol.is_some(), "atol")),
        ];
        if let Some((first, second)) = pairs.into_iter().find_map(|(a, b)| a.zip(b)) {
            return Err(TrainError::Exclusive { first, second }.into());
        }
        let probes = self.probes.filter(|_| self.divergence == Some(DivergenceKind::Exact));
        probes.map_or(Ok(()), |probes| {
            let (option, reason) = ("probes", "`divergence` is exact, which draws no probes");
            Err(TrainError::Useless { option, value: probes.to_string(), reason }.into())
        })
    }

    fn check_solver(&self) -> Result<(), Error> {
        let Some(name) = &self.solver else { return Ok(()) };
        // A velocity field is not stiff, and its Jacobian is large.
        let Some(method) = name.parse().ok().filter(|method: &Method| method.is_explicit()) else {
            let explicit = Method::ALL.into_iter().filter(|method| method.is_explicit());
            let known = explicit.map(|method| method.tableau().name).collect::<Vec<_>>().join(", ");
            return Err(TrainError::Solver { name: name.clone(), known }.into());
        };
        let adaptive = self.rtol.map(|_| "rtol").or(self.atol.map(|_| "atol"));
        if let (Some(option), None) = (adaptive, method.tableau().b_err) {
            return Err(TrainError::NoErrorEstimate { method: method.tableau().name, option }.into());
        }
        Ok(())
    }

    /// Refuses options of the model and its solver when a flow is given.
    ///
    /// # Errors
    /// [`TrainError::Useless`] for the first such option.
    pub(super) fn check_given_flow(&self) -> Result<(), Error> {
        let given = self.to_map();
        let mut of_a_flow = OPTIONS.iter().filter(|option| option.is_of_a_flow());
        let found = of_a_flow.find_map(|option| Some((option.name, given.get(option.name)?)));
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

/// Refuses a value out of a range; `allowed` names the range, `text` formats the value.
fn in_range<T: PartialOrd>(
    given: Option<T>,
    range: &impl RangeBounds<T>,
    option: &'static str,
    allowed: &'static str,
    text: fn(T) -> String,
) -> Result<(), Error> {
    match given.filter(|x| !range.contains(x)) {
        None => Ok(()),
        Some(x) => Err(TrainError::Option { option, value: text(x), range: allowed }.into()),
    }
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
