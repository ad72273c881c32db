//! The table of the options of a run.
//!
//! A row has the name of an option, its type, its range, its default, its help, what it needs to have an effect, and what
//! a resumed run may do with it. From the rows come [`TrainOptions`], the setters of [`Trainer`], the arguments of
//! `flowline train` with their help, the checks of ranges and of kinds of data, and the comparisons of a resumed run and of ranks. The rows have the order
//! of the help. A test of the command line compares `docs/reference/cli.md` with them.

use super::{
    DivergenceKind, InitialFlowKind, ModelKind, ObjectiveKind, OptimizerKind, PixelTransformKind, PlotsKind,
    Preset, TargetKind, TimesKind, in_range, in_short,
};
use crate::error::Error;
use crate::train::{TrainConfig, Trainer};
use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A row of [`OPTIONS`].
pub struct TrainOption {
    /// Its name in files, in messages and in [`TrainOptions`]. On the command line it has dashes.
    pub name: &'static str,
    /// Its heading in the help.
    pub heading: &'static str,
    /// Its help, with the default.
    pub help: &'static str,
    /// What stands for a value in the help; empty for a flag.
    pub value_name: &'static str,
    /// The kind of its values.
    pub values: Values,
    pub(in crate::train) needs: Needs,
    pub(in crate::train) resume: Resume,
    /// Its value in a configuration, for messages; `None` if a configuration does not have it.
    pub(in crate::train) value: Option<fn(&TrainConfig) -> Value>,
}

/// The kind of the values of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A number of seconds.
    Seconds,
    /// One of these names.
    Names(&'static [&'static str]),
    /// Any text.
    Text,
    /// No value: the option is given or not.
    Flag,
}

/// What an option needs to have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::train) enum Needs {
    Nothing,
    /// A phase of maximum likelihood.
    Solves,
    /// A phase of flow matching.
    Paths,
    /// The same, and for exact targets data whose density is known.
    Density,
    /// A set of images.
    Images,
    /// Points, a set of images or exact targets alone, whose best weights are kept.
    Checks,
    /// Points.
    Points,
    /// Points, and a phase of flow matching.
    Start,
}

/// What a resumed run may do with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::train) enum Resume {
    /// Change it: it does not affect the weights, and checkpoints do not store it.
    Change,
    /// Repeat the time limit.
    TimeLimit,
    /// Repeat the number of updates of the configuration, without a time limit.
    Updates,
    /// Name the preset of the configuration, or one with the same configuration.
    Preset,
    /// Set it, if the preset with this part has the same configuration.
    PartOfPreset,
    /// Set it, if the configuration does not change.
    Config,
}

/// Heading of the options of the data.
pub const INPUT: &str = "Input";
/// Heading of the options of the network.
pub const MODEL: &str = "Model";
/// Heading of the options of the loss.
pub const OBJECTIVE: &str = "Objective";
/// Heading of the options of solves.
pub const SOLVER: &str = "Solver (maximum likelihood)";
/// Heading of the options of updates.
pub const OPTIMIZER: &str = "Optimizer";
/// Heading of the options of a run as a whole.
pub const RUN: &str = "Run";
/// Heading of the options of files and figures.
pub const OUTPUT: &str = "Output";

/// Defines [`TrainOptions`], [`OPTIONS`] and the setters of [`Trainer`].
macro_rules! options {
    ($($heading:ident {$(
        $(#[doc = $help:literal])+ $(#[serde($skip:ident)])?
        $name:ident: $type:ty,
        $kind:ident $(<$value_name:ident>)? $(($($range:tt)*))? $(default $default:literal)?,
        needs: $needs:ident, resume: $resume:ident, value: $value:expr;
    )+})+) => {
        /// The options of a run, which the setters of [`Trainer`] fill; every field is optional. A field has the help of the
        /// command line, where `DATA` are the data of the run. The batch size is that of every phase; fixed steps replace the tolerances. `plots` has no
        /// effect on the weights, except under a time limit, and is not in checkpoints.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct TrainOptions {$($(
            #[doc = concat!($($help,)+ ".", $("\n\nDefault: ", $default, ".")?)]
            #[serde(skip_serializing_if = "Option::is_none" $(, $skip)?)]
            pub $name: Option<$type>,
        )+)+}

        /// Every option of a run, in the order of the help.
        pub const OPTIONS: &[TrainOption] = &[$($(TrainOption {
            name: stringify!($name),
            heading: $heading,
            help: concat!($($help,)+ $(" [default: ", $default, "]")?),
            value_name: concat!($(stringify!($value_name))?),
            values: values!($kind $type),
            needs: Needs::$needs,
            resume: Resume::$resume,
            value: $value,
        },)+)+];

        impl TrainOptions {
            /// Sets the option of this name, for the command line.
            ///
            /// # Errors
            /// A value of another type.
            #[doc(hidden)]
            pub fn set<'de, V: IntoDeserializer<'de, value::Error>>(
                &mut self,
                name: &str,
                value: V,
            ) -> Result<(), value::Error> {
                match name {
                    $($(stringify!($name) => {
                        self.$name = Some(Deserialize::deserialize(value.into_deserializer())?);
                    })+)+
                    _ => unreachable!("invariant: {name} is an option"),
                }
                Ok(())
            }

            /// These options, overridden by those given in `others`.
            pub(in crate::train) fn with(&self, others: &TrainOptions) -> TrainOptions {
                TrainOptions { $($($name: others.$name.clone().or_else(|| self.$name.clone()),)+)+ }
            }

            /// Refuses values out of their ranges.
            pub(super) fn check_ranges(&self) -> Result<(), Error> {
                $($($(check_range!(self.$name, stringify!($name), $kind $($range)*);)?)+)+
                Ok(())
            }
        }

        /// One setter per field of [`TrainOptions`].
        impl Trainer<'_> {$($(
            setter! {
                #[doc = concat!("Sets [`TrainOptions::", stringify!($name), "`].\n\n", $($help,)+ ".",
                    $("\n\nDefault: ", $default, ".")?)]
                $name: $kind $type
            }
        )+)+}
    };
}

macro_rules! setter {
    ($(#[$doc:meta])+ $name:ident: flag $type:ty) => {
        $(#[$doc])+
        pub fn $name(mut self) -> Self {
            self.options.$name = Some(true);
            self
        }
    };
    ($(#[$doc:meta])+ $name:ident: text $type:ty) => {
        $(#[$doc])+
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.options.$name = Some($name.into());
            self
        }
    };
    ($(#[$doc:meta])+ $name:ident: $kind:ident $type:ty) => {
        $(#[$doc])+
        pub fn $name(mut self, $name: $type) -> Self {
            self.options.$name = Some($name);
            self
        }
    };
}

macro_rules! values {
    (whole $type:ty) => {
        Values::Whole
    };
    (number $type:ty) => {
        Values::Number
    };
    (seconds $type:ty) => {
        Values::Seconds
    };
    (names $type:ty) => {
        Values::Names(<$type>::NAMES)
    };
    (text $type:ty) => {
        Values::Text
    };
    (flag $type:ty) => {
        Values::Flag
    };
}

macro_rules! check_range {
    ($given:expr, $name:expr, whole $least:literal ..= $most:literal) => {
        let range = concat!("a whole number from ", $least, " to ", $most);
        in_range($given, &($least..=$most), $name, range, |x| x.to_string())?
    };
    ($given:expr, $name:expr, whole $least:literal ..) => {
        in_range($given, &($least..), $name, concat!("at least ", $least), |x| x.to_string())?
    };
    ($given:expr, $name:expr, $number:ident $range:expr, $text:literal) => {
        in_range($given, &($range), $name, $text, in_short)?
    };
}

options! {
    INPUT {
        /// For tables: add uniform noise of one step to columns whose values are rounded to a step, in training and in
        /// scores
        dequantize: bool, flag,
            needs: Points, resume: Config, value: Some(|config| config.dequantize.into());
        /// For image sets: transform of pixel values, marginals (by the distribution of each pixel) or logit
        pixels: PixelTransformKind, names <NAME> default "marginals",
            needs: Images, resume: PartOfPreset,
            value: Some(|config| config.pixels.map_or("none".into(), |kind| kind.name().into()));
    }
    MODEL {
        /// Network for image sets: unet, mlp, concatsquash
        field: ModelKind, names <NAME> default "unet",
            needs: Images, resume: PartOfPreset, value: Some(|config| config.field().into());
        /// For tables: density from which the flow starts, mixture (normal densities fitted to the training rows) or
        /// normal
        start: InitialFlowKind, names <NAME> default "mixture for at most 64 columns and a single block",
            needs: Start, resume: Config, value: Some(|config| config.start.name().into());
        /// Width of the hidden layers; for unet, channels of the finest level
        width: usize, whole <N> (1..=4096)
            default "72, or 128 for an image with fine structures; tables, toy densities 52, or 96 if not 2-D; image sets 32 for unet, otherwise 1024",
            needs: Nothing, resume: Config, value: Some(|config| config.model.hidden[0].into());
        /// Number of hidden layers; for unet, number of levels
        depth: usize, whole <N> (1..=64) default "3; unet 2",
            needs: Nothing, resume: Config, value: Some(|config| config.model.hidden.len().into());
        /// Number of vector fields, applied in sequence
        blocks: usize, whole <N> (1..=64) default "1",
            needs: Nothing, resume: Config, value: Some(|config| config.model.blocks.into());
    }
    OBJECTIVE {
        /// Loss: flow-matching, maximum-likelihood, or both in this order
        objective: ObjectiveKind, names <NAME> default "flow-matching",
            needs: Nothing, resume: Config, value: Some(|config| config.objective().into());
        /// Times of flow matching: uniform; likelihood, in proportion to their weight in the likelihood; half, one
        /// half of each
        times: TimesKind, names <NAME> default "uniform for image sets, otherwise half",
            needs: Paths, resume: Config, value: Some(|config| config.times.name().into());
        /// Target of flow matching: drawn, the velocity of a drawn path; exact, its mean by a formula, for one image
        /// or a toy density
        target: TargetKind, names <NAME> default "exact for one image, otherwise drawn",
            needs: Density, resume: Config, value: Some(|config| config.target.name().into());
        /// Divergence in maximum likelihood: exact, hutchinson
        divergence: DivergenceKind, names <NAME>
            default "exact up to 8 dimensions, otherwise hutchinson",
            needs: Solves, resume: Config, value: Some(|config| config.model.solve.divergence.name().into());
        /// Number of random probes of the Hutchinson estimator; implies `divergence` hutchinson
        probes: usize, whole <K> (1..=64) default "1",
            needs: Solves, resume: Config, value: Some(TrainConfig::probes);
        /// Weight of the kinetic energy of the paths in the maximum-likelihood loss
        kinetic: f64,
            number <X> (0.0..=f64::MAX, "finite and at least 0") default "0",
            needs: Solves, resume: Config, value: Some(|config| config.model.solve.path_regularization[0].into());
        /// Weight of the squared Frobenius norm of the Jacobian in the maximum-likelihood loss
        jacobian: f64,
            number <X> (0.0..=f64::MAX, "finite and at least 0") default "0",
            needs: Solves, resume: Config, value: Some(|config| config.model.solve.path_regularization[1].into());
    }
    SOLVER {
        /// Explicit Runge-Kutta method, for example tsit5, dopri5, vern7, rk4
        solver: String, text <NAME> default "tsit5",
            needs: Solves, resume: Config, value: Some(|config| config.model.solve.solver.clone().into());
        /// Relative tolerance
        rtol: f64,
            number <X> (f32::EPSILON as f64..=1.0 - f64::EPSILON, "at least 1.2e-7, the precision of the weights, and below 1")
            default "1e-3; 1e-4 if `atol` is given",
            needs: Solves, resume: Config, value: Some(|config| config.tolerance(|rtol, _| rtol));
        /// Absolute tolerance in standardized coordinates
        atol: f64,
            number <X> (0.0..=1.0, "at least 0 and at most 1, in standard deviations of the data")
            default "1e-3; 1e-4 if `rtol` is given",
            needs: Solves, resume: Config, value: Some(|config| config.tolerance(|_, atol| atol));
        /// Take N equal steps per vector field, without error control
        fixed_steps: usize, whole <N> (1..=10_000)
            default "16 for methods without an error estimate",
            needs: Solves, resume: Config, value: Some(TrainConfig::fixed_steps);
        /// Number of states that a gradient stores; the others are recomputed
        checkpoints: usize, whole <N> (1..=1_048_576) default "as many as fit into 32 MiB",
            needs: Solves, resume: Config, value: Some(TrainConfig::checkpoints);
    }
    OPTIMIZER {
        /// Optimizer: adam, adamw, sgd, momentum, nesterov, rmsprop, adagrad, adabelief, nadam, radam, lion, lamb
        optimizer: OptimizerKind, names <NAME> default "adamw",
            needs: Nothing, resume: Config, value: Some(|config| config.optimizer.name().into());
        /// Peak learning rate of the first phase; later phases scale with it
        lr: f64, number <X> (f64::MIN_POSITIVE..=f64::MAX, "finite and above 0")
            default "6e-3; image sets 2e-3; maximum-likelihood alone 1e-3",
            needs: Nothing, resume: Config, value: Some(|config| config.phases[0].lr.into());
        /// Points or images per update
        batch: usize, whole <N> (1..=1_048_576)
            default "256 for one image, 4096 for it with drawn targets, 2048 for tables and toy densities; 512 in maximum likelihood; image sets 128",
            needs: Nothing, resume: Config, value: Some(|config| config.batches().into());
        /// Number of updates of all phases together
        updates: u64, whole <N> (1..=4_294_967_295)
            default "flow matching 16000 (tables, toy densities 12000; image sets 4000); with `objective`, maximum likelihood 160 (image sets 100)",
            needs: Nothing, resume: Updates, value: Some(|config| config.updates().into());
        /// For tables and image sets: stop after N validations in a row without improvement. A phase has 10 on image
        /// sets and 30 on tables, each after a quarter more updates than the one before. For exact targets: after N
        /// estimates of the KL divergence, of 50
        patience: u64, whole <N> (1..) default "never",
            needs: Checks, resume: Config, value: Some(|config| config.patience.map_or("none".into(), Value::from));
    }
    RUN {
        /// Divide each batch into N equal parts, so that up to N MPI ranks share an update; the weights depend on N
        shards: usize, whole <N> (1..=1_048_576) default "1",
            needs: Nothing, resume: Config, value: Some(|config| config.shards.into());
        /// Time limit of the whole run, including scores and figures: seconds, or 90s, 10m, 1h30m; replaces the number
        /// of updates
        time_limit: f64, seconds <TIME> (1e-3..=1e8, "from 0.001 to 1e8 seconds"),
            needs: Nothing, resume: TimeLimit, value: None;
        /// Set of defaults: default, points, images or, for a single image, diffrax (the CNF example of diffrax)
        preset: Preset, names <NAME> default "chosen by DATA",
            needs: Nothing, resume: Preset, value: Some(|config| config.preset.name().into());
        /// Random seed of the split of DATA, of initial weights, batches and noise
        seed: u64, whole <N> default "0",
            needs: Nothing, resume: Config, value: Some(|config| config.seed.into());
    }
    OUTPUT {
        /// Figures to draw: all, density (only the density and the loss curve), none
        #[serde(skip)]
        plots: PlotsKind, names <WHICH> default "all",
            needs: Nothing, resume: Change, value: None;
    }
}

/// The options in the order in which messages look for a difference: first those that set others, and last the start, which
/// others set.
pub(in crate::train) fn causes_first() -> Vec<&'static TrainOption> {
    let mut options: Vec<&TrainOption> = OPTIONS.iter().collect();
    options.sort_by_key(|option| match option.name {
        "preset" => 0,
        "objective" => 1,
        "start" => 3,
        _ => 2,
    });
    options
}

impl TrainOption {
    /// The option of this name.
    pub(in crate::train) fn named(name: &str) -> &'static TrainOption {
        OPTIONS.iter().find(|option| option.name == name).expect("invariant: every option has a row")
    }

    /// Whether it is an option of the model or of its solves, which a given flow has.
    pub(in crate::train) fn is_of_a_flow(&self) -> bool {
        self.heading == MODEL || self.needs == Needs::Solves
    }

    /// Its value in a configuration, for messages.
    pub(in crate::train) fn value_in(&self, config: &TrainConfig) -> Value {
        self.value.map_or_else(|| "none".into(), |value| value(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_has_one_name() {
        for option in OPTIONS {
            assert!(OPTIONS.iter().filter(|other| other.name == option.name).count() == 1, "{}", option.name);
            // A configuration has every option that a checkpoint stores, but for the time limit.
            let is_in_config = !matches!(option.resume, Resume::Change | Resume::TimeLimit);
            assert_eq!(option.value.is_some(), is_in_config, "{}", option.name);
        }
        // All rows are there, each once.
        assert_eq!(causes_first().len(), OPTIONS.len());
    }

    #[test]
    fn a_flow_has_the_options_of_its_model_and_of_its_solves() {
        let of_a_flow = OPTIONS.iter().filter(|option| option.is_of_a_flow()).map(|option| option.name);
        let names = [
            "field",
            "start",
            "width",
            "depth",
            "blocks",
            "divergence",
            "probes",
            "kinetic",
            "jacobian",
            "solver",
            "rtol",
            "atol",
            "fixed_steps",
            "checkpoints",
        ];
        assert_eq!(of_a_flow.collect::<Vec<_>>(), names);
    }
}
