//! One update: the gradient of each shard of its batch, their sum, and the new state.
//!
//! A phase has two programs, each traced once, and a third one that draws the points of exact targets. `gradient` samples the rows of a shard and differentiates their part of
//! the loss; every shard of every rank runs the same program. `apply` computes the new state from the sum: optimizer
//! and EMA. Gradients are summed in an order that depends on the number of shards alone ([`team`](super::team)).
//!
//! Everything that changes between the updates of a phase is in the state or an input. One such input is the
//! number by which the schedule divides the updates done: under a time limit it is an estimate that changes.

use super::presets::MOMENTUM;
use super::state::{Batch, Source, Tables, TrainState};
use super::{Flow, Objective, OptimizerKind, Phase, TrainConfig, TrainError};
use crate::array::DType;
use crate::backend::{BodyKind, PlanReport};
use crate::cnf::{FlowMatching, PathPoints};
use crate::error::{Error, Result};
use crate::ode::SolveError;
use crate::optim::{
    AdaBelief, AdaGrad, AdamW, Ema, Lamb, Lion, NAdam, Optimizer, RAdam, RmsProp, Schedule, Sgd, chain,
    clip_by_global_norm,
};
use crate::tensor::{Jit, Key, RunReport, Tensor, jit, value_and_grad};
use crate::tree;
use std::ops::Range;

tree! {
/// The inputs of a shard's gradient besides the model.
pub struct Inputs {
    /// The data.
    pub tables: Tables,
    /// The key of all random numbers.
    pub key: Key,
    /// Updates done, u32.
    pub update: Tensor,
    /// The index of the shard, u32.
    pub shard: Tensor,
    /// With exact targets, the points of the shard.
    pub points: Option<PathPoints>,
}
}

tree! {
/// The gradient of a shard's part of the loss; after summation, of the batch.
pub struct Gradient {
    /// The loss, steps attempted and function evaluations, as parts of means over the batch: f64 `[3]`.
    pub means: Tensor,
    /// The gradient of the loss.
    pub of: Flow,
}
}

tree! {
/// The inputs of an update besides the state.
pub struct Change {
    /// The sum over all shards.
    pub gradient: Flow,
    /// The number of updates before the phase, u32.
    pub first: Tensor,
    /// The number of updates in the phase, f64, by which the schedule divides the updates done.
    pub updates: Tensor,
}
}

/// The result of an update.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The loss of its batch.
    pub loss: f64,
    /// Steps attempted, mean over the rows.
    pub steps: f64,
    /// Function evaluations, mean over the rows.
    pub field_evals: f64,
}

impl Means {
    /// The means from the sum of [`Gradient::means`] over all shards.
    pub fn of(sums: &[f64]) -> Means {
        Means { loss: sums[0], steps: sums[1], field_evals: sums[2] }
    }
}

/// The programs of a phase.
pub struct Step {
    gradient: Jit<'static, (Flow, Inputs), Gradient>,
    /// Draws the points of exact targets.
    draw: Option<Jit<'static, (Inputs,), PathPoints>>,
    matching: FlowMatching,
    apply: Jit<'static, (TrainState, Change), (TrainState, ())>,
    source: Source,
    first: Tensor,
    /// Rows per shard.
    rows: usize,
    shards: usize,
}

impl Step {
    /// The programs of a phase that begins after `first` updates.
    pub fn new(
        config: &TrainConfig,
        phase: &Phase,
        (source, matching): (&Source, &FlowMatching),
        first: u64,
    ) -> Step {
        let (config, phase, shards) = (config.clone(), *phase, config.shards);
        let (rows, matching) = (phase.batch / shards, matching.clone());
        let is_exact = phase.objective == Objective::FlowMatching && matching.is_exact();
        let drawn = matching.clone();
        let draw = move |inputs: Inputs| {
            let [draw, noise] = inputs.key.fold_in(&inputs.update).split();
            let part = Part { shard: inputs.shard, shards, rows };
            part.points(&drawn, &inputs.tables.draw(rows, &part.key(&draw)).points, &noise)
        };
        let drawn = matching.clone();
        let gradient = move |model: Flow, inputs: Inputs| {
            let [draw, noise] = inputs.key.fold_in(&inputs.update).split();
            let part = Part { shard: inputs.shard, shards, rows };
            if let Some(points) = &inputs.points {
                let loss = |model: &Flow| matching_loss(model, points, &part);
                return Ok(gradient(value_and_grad(loss, &model)?));
            }
            let batch = inputs.tables.draw(rows, &part.key(&draw));
            let loss = |model: &Flow| loss((phase.objective, &drawn), model, &batch, &noise, &part);
            Ok(gradient(value_and_grad(loss, &model)?))
        };
        let apply = move |state: TrainState, change: Change| {
            let optimizer = optimizer(&config, &phase, &change.updates);
            let (model, optimizer) = optimizer.update(&state.model, change.gradient, state.optimizer);
            let done = &state.update - &change.first;
            let ema = Ema::new(phase.ema_decay).update(&state.ema, &model, &done);
            let update = &state.update + 1;
            (TrainState { model, ema, optimizer, key: state.key, update }, ())
        };
        Step {
            gradient: jit(gradient).max_traces(1),
            draw: is_exact.then(|| jit(draw).max_traces(1)),
            matching,
            apply: jit(apply).max_traces(1),
            source: source.clone(),
            first: Tensor::from(first as u32),
            rows,
            shards,
        }
    }

    /// Prepares the rows of the shards `which` of the next update; returns the inputs of their gradients.
    ///
    /// # Errors
    /// A file of images cannot be read.
    pub fn inputs(&self, state: &TrainState, which: Range<usize>) -> Result<Vec<Inputs>> {
        let batch = self.rows * self.shards;
        let tables = self.source.shards(|| state.update.item() as u64, batch, self.shards, which.clone())?;
        let inputs = |(shard, tables): (usize, Tables)| {
            let (key, update) = (state.key.clone(), state.update.clone());
            let mut inputs = Inputs { tables, key, update, shard: Tensor::from(shard as u32), points: None };
            if let Some(draw) = &self.draw {
                inputs.points = Some(self.matching.with_target(draw.call(inputs.clone())?));
            }
            Ok(inputs)
        };
        which.zip(tables).map(inputs).collect()
    }

    /// Computes the gradient of a shard.
    ///
    /// # Errors
    /// A solve that ended early, with its t and number of steps.
    pub fn gradient(&self, model: &Flow, inputs: Inputs) -> Result<Gradient> {
        self.gradient.call(model.clone(), inputs)
    }

    /// Updates the state with the sum over all shards; `updates` is the number of updates in the phase.
    ///
    /// # Errors
    /// An error of tracing.
    pub fn apply(&self, state: &mut TrainState, gradient: Flow, updates: f64) -> Result<()> {
        self.apply.step(state, self.change(gradient, updates))
    }

    fn change(&self, gradient: Flow, updates: f64) -> Change {
        Change { gradient, first: self.first.clone(), updates: Tensor::from(updates) }
    }

    /// Number of traces of the gradient.
    pub fn traces(&self) -> usize {
        self.gradient.num_traces()
    }

    /// Counters of the last gradient.
    pub fn last_run(&self) -> RunReport {
        self.gradient.last_run()
    }

    /// The cost of an update with `shards` shards; compiles its programs if they have not run.
    ///
    /// # Errors
    /// An error of tracing.
    pub fn plan(&self, state: &TrainState, shards: usize) -> Result<PlanReport> {
        let points = self.draw.is_some().then(|| {
            let [t, x, velocity] =
                [1, 2, 2].map(|columns| Tensor::full(DType::F32, [self.rows, columns], 0.0));
            PathPoints { t, x, velocity }
        });
        let inputs = Inputs {
            tables: self.source.tables(self.rows),
            key: state.key.clone(),
            update: state.update.clone(),
            shard: Tensor::from(0u32),
            points,
        };
        let gradient = self.gradient.plan(&(state.model.clone(), inputs))?;
        let apply = self.apply.plan(&(state.clone(), self.change(state.model.clone(), 1.0)))?;
        Ok(apply.after(BodyKind::Gradient, gradient, shards))
    }
}

/// Checks the result of an update. On an error the caller must leave the state unchanged.
///
/// # Errors
/// [`TrainError::Diverged`] if a solve ended early, [`TrainError::Loss`] if the loss is not finite.
pub fn checked(found: Result<(Means, Flow)>, update: u64, phase: &Phase) -> Result<(Means, Flow)> {
    let (objective, lr) = (phase.objective.name(), phase.lr);
    let (means, gradient) = found.map_err(|e| match e {
        Error::Solve(SolveError::Incomplete { outcome, .. }) => {
            TrainError::Diverged { outcome, update, objective, lr }.into()
        }
        e => e,
    })?;
    if !means.loss.is_finite() {
        return Err(TrainError::Loss { loss: means.loss, update, objective, lr }.into());
    }
    Ok((means, gradient))
}

/// The initial state.
pub fn begin(config: &TrainConfig, model: Flow, key: &Key) -> TrainState {
    let optimizer = optimizer(config, &config.phases[0], &Tensor::from(1.0)).init(&model);
    TrainState { ema: model.clone(), model, optimizer, key: key.clone(), update: Tensor::from(0u32) }
}

/// The initial state of a later phase: the averaged weights, a new optimizer.
pub fn begin_phase(config: &TrainConfig, phase: &Phase, state: TrainState) -> TrainState {
    let optimizer = optimizer(config, phase, &Tensor::from(1.0)).init(&state.ema);
    TrainState { model: state.ema.clone(), optimizer, ..state }
}

fn optimizer(config: &TrainConfig, phase: &Phase, updates: &Tensor) -> Optimizer {
    let rate = match config.cosine {
        true => Schedule::cosine_decay(phase.lr, updates),
        false => Schedule::constant(phase.lr),
    };
    let last = rule(config.optimizer, rate, config.weight_decay);
    match config.clip_norm {
        Some(max) => chain((clip_by_global_norm(max), last)),
        None => last,
    }
}

fn rule(kind: OptimizerKind, rate: Schedule, weight_decay: f64) -> Optimizer {
    match kind {
        OptimizerKind::Adam | OptimizerKind::AdamW => AdamW::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::Sgd => Sgd::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::Momentum => Sgd::new(rate).momentum(MOMENTUM).weight_decay(weight_decay).build(),
        OptimizerKind::Nesterov => Sgd::new(rate).nesterov(MOMENTUM).weight_decay(weight_decay).build(),
        OptimizerKind::RmsProp => RmsProp::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::AdaGrad => AdaGrad::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::AdaBelief => AdaBelief::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::NAdam => NAdam::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::RAdam => RAdam::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::Lion => Lion::new(rate).weight_decay(weight_decay).build(),
        OptimizerKind::Lamb => Lamb::new(rate).weight_decay(weight_decay).build(),
    }
}

/// The rows of a batch that belong to a shard.
struct Part {
    /// The index of the shard, u32.
    shard: Tensor,
    shards: usize,
    rows: usize,
}

impl Part {
    /// The key of this shard, derived from the key of the batch. If the batch has only one shard, it is the
    /// key of the batch.
    fn key(&self, of_batch: &Key) -> Key {
        if self.shards == 1 { of_batch.clone() } else { of_batch.fold_in(&self.shard) }
    }

    /// The points of this shard on paths to the data `x1`.
    fn points(&self, matching: &FlowMatching, x1: &Tensor, key: &Key) -> PathPoints {
        let [noise, time] = key.split();
        let first = self.shard.cast(DType::F32) * self.rows as f64;
        matching.draw_part(x1, &self.key(&noise), &time, (&first, self.rows * self.shards))
    }
}

/// A gradient from the value and the counts of a shard.
fn gradient(((value, counts), of): ((Tensor, Tensor), Flow)) -> Gradient {
    let means = Tensor::concat(&[&value.cast(DType::F64).expand_dims(0), &counts], 0);
    Gradient { means, of }
}

/// A shard's part of the loss of flow matching, and of steps and function evaluations `[2]`.
fn matching_loss(model: &Flow, points: &PathPoints, part: &Part) -> Result<(Tensor, Tensor)> {
    let counts = Tensor::from([0.0, model.blocks.len() as f64 / part.shards as f64]);
    Ok((model.matching_loss_of(points, part.rows * part.shards)?, counts))
}

/// A shard's part of the batch loss, and of steps and function evaluations `[2]`. The parts add up to means over the
/// rows.
fn loss(
    (objective, matching): (Objective, &FlowMatching),
    model: &Flow,
    batch: &Batch,
    key: &Key,
    part: &Part,
) -> Result<(Tensor, Tensor)> {
    let model =
        &batch.labels.as_ref().map_or_else(|| model.clone(), |labels| model.condition_on_classes(labels));
    let share = 1.0 / part.shards as f64;
    match objective {
        Objective::FlowMatching => {
            matching_loss(model, &part.points(matching, &batch.points.cast(model.dtype()), key), part)
        }
        Objective::MaximumLikelihood => {
            let (loss, stats) =
                model.nll_loss_with_stats(&batch.points, Some(&batch.weight), &part.key(key))?;
            Ok((loss * share, Tensor::stack(&[&stats.num_steps, &stats.num_fn_evals]) * share))
        }
    }
}
