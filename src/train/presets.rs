//! From options to a configuration: the presets and how options change them. All tuned numbers are in this file.
//!
//! The default preset starts with flow matching, whose update costs one function evaluation. It ends with
//! maximum likelihood, whose update costs a solve and its adjoint and which still improves where flow matching
//! stalls. A configuration depends on options and on the shape of the data, not on the data themselves, so it
//! is a function of the checkpoint's header.

use super::config::DataShape;
use super::{
    ActivationKind, DivergenceKind, FieldConfig, Kept, ModelConfig, ModelKind, Objective, ObjectiveKind,
    OptimizerKind, Phase, PixelTransformKind, Preset, SolveConfig, Steps, TrainConfig, TrainOptions,
};
use crate::ode::Method;

/// Relative or absolute tolerance in training, if only the other one is given.
const DEFAULT_TOLERANCE: f64 = 1e-4;

/// Of the default model: number of Fourier features, logarithm of their largest frequency, width and number
/// of hidden layers.
const FEATURES: usize = 24;
const LOG_FREQUENCY_MAX: f64 = 2.6;
const WIDTH: usize = 80;
const DEPTH: usize = 3;
/// For points: features and width in the plane (at most 9,300 weights), features, frequency and width in
/// other dimensions, and the largest dimension with the exact divergence.
const POINTS_FEATURES: usize = 16;
const POINTS_WIDTH: usize = 56;
const SPACE_FEATURES: usize = 32;
const SPACE_LOG_FREQUENCY_MAX: f64 = 1.5;
const SPACE_WIDTH: usize = 96;
const EXACT_DIM: usize = 8;
const POINTS_FLOW_MATCHING: Phase = Phase { updates: 12_000, batch: 2048, ..FLOW_MATCHING };

pub(super) const FLOW_MATCHING: Phase =
    Phase { objective: Objective::FlowMatching, updates: 16_000, batch: 4096, lr: 6e-3, ema_decay: 0.999 };
pub(super) const MAXIMUM_LIKELIHOOD: Phase =
    Phase { objective: Objective::MaximumLikelihood, updates: 160, batch: 512, lr: 2e-4, ema_decay: 0.97 };
/// The default tolerance in maximum likelihood: 54 function evaluations per update, as accurate as 16 equal
/// steps with 96 evaluations. Ten equal steps (60 evaluations) lose 0.002 nats.
const TOLERANCE: f64 = 1e-3;
/// Number of steps of a method without an error estimate.
const FIXED_STEPS: usize = 16;
/// The share of maximum likelihood in the training time under a time limit.
pub(super) const MAXIMUM_LIKELIHOOD_TIME: f64 = 0.15;
const WEIGHT_DECAY: f64 = 1e-5;
/// Lion needs smaller learning rates, so its decay is larger.
const LION_WEIGHT_DECAY: f64 = 1e-3;
const CLIP_NORM: f64 = 1.0;
/// Momentum of SGD with momentum or Nesterov momentum.
pub(super) const MOMENTUM: f64 = 0.9;

/// Number of boundaries between a U-Net's ranges of pixel values; they are fitted to the images.
const LEVEL_ENDS: usize = 8;
/// For images: a U-Net on patches of 2 x 2 pixels, its channels doubled per level, or layers of one width.
const UNET_CHANNELS: usize = 32;
const UNET_LEVELS: usize = 2;
const IMAGES_WIDTH: usize = 1024;
const IMAGES_TOLERANCE: f64 = 1e-3;
const IMAGES_TILE: usize = 8;
const IMAGES_FLOW_MATCHING: Phase =
    Phase { objective: Objective::FlowMatching, updates: 4_000, batch: 128, lr: 2e-3, ema_decay: 0.999 };
const IMAGES_MAXIMUM_LIKELIHOOD: Phase =
    Phase { updates: 100, batch: 128, lr: 2e-4, ema_decay: 0.95, ..MAXIMUM_LIKELIHOOD };

/// The phases of a preset for an objective.
fn phases(preset: &Preset, asked: ObjectiveKind) -> Vec<Phase> {
    let (first, second) = match preset {
        Preset::Default | Preset::Given(_) => (FLOW_MATCHING, MAXIMUM_LIKELIHOOD),
        Preset::Points => (POINTS_FLOW_MATCHING, MAXIMUM_LIKELIHOOD),
        Preset::Images => (IMAGES_FLOW_MATCHING, IMAGES_MAXIMUM_LIKELIHOOD),
    };
    match asked {
        ObjectiveKind::FlowMatching => vec![first],
        // Maximum likelihood alone starts from random weights, so its learning rate is larger.
        ObjectiveKind::MaximumLikelihood => vec![Phase { lr: ALONE_LR, ..second }],
        ObjectiveKind::Both => vec![first, second],
    }
}

/// Peak learning rate of maximum likelihood without flow matching before it.
const ALONE_LR: f64 = 1e-3;

/// Sizes of hidden layers: one width for all; for a U-Net the width of the finest level, doubled per level,
/// but at most 8 times that of the finest.
fn layers(field: &FieldConfig, width: usize, depth: usize) -> Vec<usize> {
    match field {
        FieldConfig::UNet { .. } => (0..depth).map(|level| width << level.min(3)).collect(),
        _ => vec![width; depth],
    }
}

/// The relative and absolute tolerance, if at least one is given; the other one is the default.
pub(super) fn tolerances(options: &TrainOptions) -> (f64, f64) {
    (options.rtol.unwrap_or(DEFAULT_TOLERANCE), options.atol.unwrap_or(DEFAULT_TOLERANCE))
}

/// Applies the options to a solve. A method without an error estimate takes equal steps, unless the options set a
/// tolerance.
fn apply(solve: &mut SolveConfig, options: &TrainOptions) {
    solve.divergence = options.divergence.unwrap_or(solve.divergence);
    if options.probes.is_some() {
        solve.divergence = DivergenceKind::Hutchinson;
    }
    for (weight, given) in solve.path_regularization.iter_mut().zip([options.kinetic, options.jacobian]) {
        *weight = given.unwrap_or(*weight);
    }
    solve.probes = options.probes.unwrap_or(solve.probes);
    solve.solver = options.solver.as_ref().map_or_else(|| solve.solver.clone(), |s| s.to_lowercase());
    if let Some(n) = options.checkpoints {
        solve.kept = Kept::Count(n);
    }
    let estimates = solve.solver.parse().map_or(true, |method: Method| method.tableau().b_err.is_some());
    if matches!(solve.steps, Steps::Adaptive { .. }) && !estimates {
        solve.steps = Steps::Fixed { steps: FIXED_STEPS };
    }
    if let Some(steps) = options.fixed_steps {
        solve.steps = Steps::Fixed { steps };
    }
    if options.rtol.is_some() || options.atol.is_some() {
        let (rtol, atol) = tolerances(options);
        solve.steps = Steps::Adaptive { rtol, atol };
    }
}

impl TrainConfig {
    /// The configuration for these options and data in the plane; under a time limit it still has the default
    /// number of updates.
    pub fn new(options: &TrainOptions) -> TrainConfig {
        TrainConfig::of(options, DataShape::PLANE)
    }

    /// [`TrainConfig::new`] for data of any shape: points with other than two coordinates need [`Preset::Points`],
    /// images need [`Preset::Images`].
    pub(super) fn of(options: &TrainOptions, shape: DataShape) -> TrainConfig {
        let mut config = TrainConfig::preset(options.preset.clone().unwrap_or(Preset::Default));
        config.model.dim = shape.dim;
        match shape.image {
            Some(image) => config.set_images(options, image, shape.classes),
            None if shape.dim != 2 => {
                config.model.field = FieldConfig::Fourier {
                    features: SPACE_FEATURES,
                    log_frequency_max: SPACE_LOG_FREQUENCY_MAX,
                };
                config.model.hidden = vec![SPACE_WIDTH; DEPTH];
            }
            None => {}
        }
        if shape.dim > EXACT_DIM {
            config.model.solve.divergence = DivergenceKind::Hutchinson;
        }
        config.with(options)
    }

    /// This configuration, changed by the options.
    pub(super) fn with(self, options: &TrainOptions) -> TrainConfig {
        let mut config = self;
        config.shards = options.shards.unwrap_or(config.shards);
        config.patience = options.patience.or(config.patience);
        config.phases = match options.objective {
            None => config.phases,
            Some(asked) => phases(&config.preset, asked),
        };
        config.seed = options.seed.unwrap_or(config.seed);
        if let Some(optimizer) = options.optimizer {
            config.optimizer = optimizer;
            config.weight_decay = match optimizer {
                OptimizerKind::AdamW => config.weight_decay,
                OptimizerKind::Lion => LION_WEIGHT_DECAY,
                _ => 0.0,
            };
        }
        let first = config.phases[0].lr;
        for phase in &mut config.phases {
            phase.batch = options.batch.unwrap_or(phase.batch);
            phase.lr = options.lr.map_or(phase.lr, |lr| lr * (phase.lr / first));
        }
        let model = &mut config.model;
        if options.width.is_some() || options.depth.is_some() {
            let width = options.width.unwrap_or(model.hidden[0]);
            let depth = options.depth.unwrap_or(model.hidden.len());
            model.hidden = layers(&model.field, width, depth);
        }
        model.blocks = options.blocks.unwrap_or(model.blocks);
        apply(&mut model.solve, options);
        match options.updates {
            Some(updates) => config.with_updates(updates),
            None => config,
        }
    }

    /// Sets the model and the pixel transform for images.
    fn set_images(&mut self, options: &TrainOptions, image: [usize; 3], classes: usize) {
        self.pixels = Some(options.pixels.unwrap_or(PixelTransformKind::Marginals));
        let (field, hidden) = match options.field.unwrap_or(ModelKind::UNet) {
            ModelKind::UNet => {
                let weighed = self.pixels == Some(PixelTransformKind::Marginals);
                let field = FieldConfig::UNet {
                    ends: if weighed { LEVEL_ENDS } else { 0 },
                    image,
                    patch: 2,
                    blocks_down: 1,
                    blocks_middle: 2,
                    blocks_up: 1,
                    time: 128,
                    classes,
                };
                (field, layers(&field, UNET_CHANNELS, UNET_LEVELS))
            }
            ModelKind::Mlp => {
                let activation = ActivationKind::Silu;
                (FieldConfig::Mlp { activation, time: true, classes }, vec![IMAGES_WIDTH; DEPTH])
            }
            ModelKind::ConcatSquash => (FieldConfig::ConcatSquash, vec![IMAGES_WIDTH; DEPTH]),
        };
        (self.model.field, self.model.hidden) = (field, hidden);
    }

    fn preset(preset: Preset) -> TrainConfig {
        let (features, width) = match preset {
            Preset::Points => (POINTS_FEATURES, POINTS_WIDTH),
            Preset::Default | Preset::Images | Preset::Given(_) => (FEATURES, WIDTH),
        };
        let (solve, asked) = match preset {
            Preset::Images => {
                let solve =
                    SolveConfig { rows_per_tile: IMAGES_TILE, ..SolveConfig::adaptive(IMAGES_TOLERANCE) };
                (solve, ObjectiveKind::FlowMatching)
            }
            Preset::Default | Preset::Points | Preset::Given(_) => {
                (SolveConfig::adaptive(TOLERANCE), ObjectiveKind::Both)
            }
        };
        TrainConfig {
            phases: phases(&preset, asked),
            preset,
            model: ModelConfig {
                field: FieldConfig::Fourier { features, log_frequency_max: LOG_FREQUENCY_MAX },
                hidden: vec![width; DEPTH],
                blocks: 1,
                dim: 2,
                t1: 1.0,
                solve,
                unlike: vec![],
            },
            seed: 0,
            optimizer: OptimizerKind::AdamW,
            weight_decay: WEIGHT_DECAY,
            clip_norm: Some(CLIP_NORM),
            cosine: true,
            pixels: None,
            patience: None,
            shards: 1,
        }
    }
}
