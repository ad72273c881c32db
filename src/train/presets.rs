//! From options to a configuration: the presets and how options change them. All tuned numbers are in this file.
//!
//! All presets use flow matching alone, whose update costs one function evaluation. Maximum likelihood, whose update costs
//! a solve and its adjoint, gains nothing after it. A configuration depends on options and on the shape of the data, not
//! on the data themselves, so it is a function of the checkpoint's header.

use super::config::DataShape;
use super::{
    ActivationKind, DivergenceKind, FieldConfig, InitialFlowKind, Kept, ModelConfig, ModelKind, Objective,
    ObjectiveKind, OptimizerKind, Phase, PixelTransformKind, Preset, SolveConfig, Steps, TargetKind,
    TimesKind, TrainConfig, TrainOptions,
};
use crate::ode::Method;

/// Relative or absolute tolerance in training, if only the other one is given.
const DEFAULT_TOLERANCE: f64 = 1e-4;

/// Of the default model: number of Fourier features, logarithm of their largest frequency, damping, width and number
/// of hidden layers.
const FEATURES: usize = 48;
const LOG_FREQUENCY_MAX: f64 = 3.4;
const DAMPING: f64 = 1.0;
const WIDTH: usize = 72;
const DEPTH: usize = 3;
/// The largest frequency for an image is this number over its smallest standard deviation. If its logarithm is larger than
/// `FEW_UP_TO`, the image has fine structures, and its network more features and wider layers.
const SCALED_FREQUENCY: f64 = 0.45;
const FEW_UP_TO: f64 = 3.6;
const FINE_FEATURES: usize = 64;
const FINE_WIDTH: usize = 128;
/// For points in the plane (9,518 weights): features, logarithm of their largest frequency, width.
const PLANE_FEATURES: usize = 32;
const PLANE_LOG_FREQUENCY_MAX: f64 = 3.0;
const PLANE_WIDTH: usize = 52;
/// The same for maximum likelihood alone, whose features have no damping.
const ALONE_FEATURES: usize = 16;
const ALONE_LOG_FREQUENCY_MAX: f64 = 2.6;
const ALONE_WIDTH: usize = 56;
/// The same for points in other dimensions.
const SPACE_FEATURES: usize = 32;
const SPACE_LOG_FREQUENCY_MAX: f64 = 1.5;
const SPACE_WIDTH: usize = 96;
/// The largest dimension with the exact divergence.
const EXACT_DIM: usize = 8;
const POINTS_FLOW_MATCHING: Phase = Phase { updates: 12_000, batch: 2048, ..FLOW_MATCHING };

pub(super) const FLOW_MATCHING: Phase =
    Phase { objective: Objective::FlowMatching, updates: 16_000, batch: 4096, lr: 6e-3, ema_decay: 0.999 };
/// With exact targets, a small batch has little noise.
const EXACT_FLOW_MATCHING: Phase = Phase { batch: 256, ..FLOW_MATCHING };
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

/// The phases of a preset for an objective and a target of flow matching.
fn phases(preset: &Preset, asked: ObjectiveKind, target: TargetKind) -> Vec<Phase> {
    let (first, second) = match (preset, target) {
        (Preset::Images, _) => (IMAGES_FLOW_MATCHING, IMAGES_MAXIMUM_LIKELIHOOD),
        (_, TargetKind::Exact) => (EXACT_FLOW_MATCHING, MAXIMUM_LIKELIHOOD),
        (Preset::Default | Preset::Given { .. }, TargetKind::Drawn) => (FLOW_MATCHING, MAXIMUM_LIKELIHOOD),
        (Preset::Points, TargetKind::Drawn) => (POINTS_FLOW_MATCHING, MAXIMUM_LIKELIHOOD),
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

/// A network of Fourier features without damping, whose output is the velocity.
fn plain_features(features: usize, log_frequency_max: f64) -> FieldConfig {
    FieldConfig::Fourier {
        features,
        log_frequency_max,
        damping: 0.0,
        preconditioned: false,
        normals: 0,
        classes: 0,
    }
}

/// A network of damped Fourier features, added to the velocity of a normal density.
fn damped_features(features: usize, log_frequency_max: f64) -> FieldConfig {
    FieldConfig::Fourier {
        features,
        log_frequency_max,
        damping: DAMPING,
        preconditioned: true,
        normals: 0,
        classes: 0,
    }
}

/// The field and the width of its layers for points in `dim` dimensions. The damped form is a formula for the points of
/// paths, which maximum likelihood alone does not draw.
fn points_model(dim: usize, draws_paths: bool) -> (FieldConfig, usize) {
    match (dim, draws_paths) {
        (2, true) => (damped_features(PLANE_FEATURES, PLANE_LOG_FREQUENCY_MAX), PLANE_WIDTH),
        (2, false) => (plain_features(ALONE_FEATURES, ALONE_LOG_FREQUENCY_MAX), ALONE_WIDTH),
        (_, true) => (damped_features(SPACE_FEATURES, SPACE_LOG_FREQUENCY_MAX), SPACE_WIDTH),
        (_, false) => (plain_features(SPACE_FEATURES, SPACE_LOG_FREQUENCY_MAX), SPACE_WIDTH),
    }
}

/// The field and the width of its layers for an image. The features go up to the frequency at which its finest structures
/// appear.
fn image_model(smallest_scale: Option<f64>) -> (FieldConfig, usize) {
    let wanted = smallest_scale.map_or(LOG_FREQUENCY_MAX, |s| (SCALED_FREQUENCY / s).ln());
    let log_frequency_max = wanted.max(LOG_FREQUENCY_MAX);
    let is_fine = log_frequency_max > FEW_UP_TO;
    let (features, width) = if is_fine { (FINE_FEATURES, FINE_WIDTH) } else { (FEATURES, WIDTH) };
    (damped_features(features, log_frequency_max), width)
}

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
        let mut config =
            TrainConfig::preset(options.preset.clone().unwrap_or(Preset::Default), shape.smallest_scale);
        config.model.dim = shape.dim;
        let draws_paths = options.objective != Some(ObjectiveKind::MaximumLikelihood);
        match shape.image {
            Some(image) => config.set_images(options, image, shape.classes),
            None if config.preset == Preset::Points || shape.dim != 2 => {
                let (field, width) = points_model(shape.dim, draws_paths);
                (config.model.field, config.model.hidden) = (field, vec![width; DEPTH]);
            }
            None => {}
        }
        if let FieldConfig::Fourier { classes, .. } = &mut config.model.field {
            *classes = shape.classes;
        }
        config.decorrelate = shape.is_table;
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
        config.dequantize = options.dequantize.unwrap_or(config.dequantize);
        config.times = options.times.unwrap_or(config.times);
        let was = config.target;
        config.target = options.target.unwrap_or(was);
        config.start = options.start.unwrap_or(config.start);
        config.phases = match (options.objective, options.target) {
            (Some(asked), _) => phases(&config.preset, asked, config.target),
            // A run of an earlier version keeps its phases.
            (None, Some(target)) if target != was && !matches!(config.preset, Preset::Given { .. }) => {
                phases(&config.preset, ObjectiveKind::FlowMatching, target)
            }
            _ => config.phases,
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
            // The same rate again changes nothing, not even by a rounding error.
            phase.lr = options.lr.filter(|&lr| lr != first).map_or(phase.lr, |lr| lr * (phase.lr / first));
        }
        let model = &mut config.model;
        if options.width.is_some() || options.depth.is_some() {
            let width = options.width.unwrap_or(model.hidden[0]);
            let depth = options.depth.unwrap_or(model.hidden.len());
            model.hidden = layers(&model.field, width, depth);
        }
        model.blocks = options.blocks.unwrap_or(model.blocks);
        if let (FieldConfig::Fourier { damping, preconditioned, .. }, true) =
            (&mut model.field, model.blocks > 1)
        {
            // Both are formulas for the times of a path, which a single block has.
            (*damping, *preconditioned) = (0.0, false);
        }
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

    fn preset(preset: Preset, smallest_scale: Option<f64>) -> TrainConfig {
        let solve = match preset {
            Preset::Images => {
                SolveConfig { rows_per_tile: IMAGES_TILE, ..SolveConfig::adaptive(IMAGES_TOLERANCE) }
            }
            Preset::Default | Preset::Points | Preset::Given { .. } => SolveConfig::adaptive(TOLERANCE),
        };
        let (times, target) = match preset {
            Preset::Default if smallest_scale.is_some() => (TimesKind::Half, TargetKind::Exact),
            Preset::Default | Preset::Points => (TimesKind::Half, TargetKind::Drawn),
            Preset::Images | Preset::Given { .. } => (TimesKind::Uniform, TargetKind::Drawn),
        };
        let (field, width) = image_model(smallest_scale);
        TrainConfig {
            phases: phases(&preset, ObjectiveKind::FlowMatching, target),
            preset,
            times,
            target,
            model: ModelConfig {
                field,
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
            start: InitialFlowKind::Normal,
            pixels: None,
            dequantize: false,
            decorrelate: false,
            patience: None,
            shards: 1,
        }
    }
}
