//! One update as one jitted call: draw, loss, gradient, optimizer, average.
//!
//! A phase has one step function, traced once. What differs between the updates of a phase is in the state, or in its
//! [`Inputs`]: under a time limit nobody knows how many updates there will be, and what its schedule takes for their number
//! changes from update to update.

use super::presets::MOMENTUM;
use super::state::{Batch, Source, Tables, TrainState};
use super::{Flow, Objective, OptimizerKind, Phase, TrainConfig};
use crate::array::DType;
use crate::backend::PlanReport;
use crate::error::Result;
use crate::optim::{
    AdaBelief, AdaGrad, AdamW, Ema, Lamb, Lion, NAdam, Optimizer, RAdam, RmsProp, Schedule, Sgd, chain,
    clip_by_global_norm,
};
use crate::tensor::{Jit, Key, RunReport, Tensor, jit, value_and_grad};
use crate::tree;

tree! {
/// What a step reads beside the state.
pub struct Inputs {
    /// The data.
    pub tables: Tables,
    /// The number of updates before the phase, u32.
    pub first: Tensor,
    /// The updates of the phase, f64: what its schedule divides the number of those done by.
    pub updates: Tensor,
}
}

/// What an update returns beside the new state.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The loss of its batch.
    pub loss: f64,
    /// Steps attempted, a mean over the rows.
    pub steps: f64,
    /// Evaluations of the field, a mean over the rows.
    pub field_evals: f64,
}

/// The step function of a phase.
pub struct Step {
    program: Jit<'static, (TrainState, Inputs), (TrainState, Tensor)>,
    inputs: Inputs,
    source: Source,
    batch: usize,
}

impl Step {
    /// The step of a phase that begins after `first` updates.
    pub fn new(config: &TrainConfig, phase: &Phase, source: &Source, first: u64) -> Step {
        let (config, phase) = (config.clone(), *phase);
        let inputs = Inputs {
            tables: source.tables(phase.batch),
            first: Tensor::from(first as u32),
            updates: Tensor::from(phase.updates as f64),
        };
        let update = move |state: TrainState, inputs: Inputs| {
            let [draw, noise] = state.key.fold_in(&state.update).split();
            let batch = inputs.tables.draw(phase.batch, &draw);
            let optimizer = optimizer(&config, &phase, &inputs.updates);
            let loss = |model: &Flow| loss(phase.objective, model, &batch, &noise);
            let ((value, counts), grads) = value_and_grad(loss, &state.model)?;
            let (model, optimizer) = optimizer.update(&state.model, grads, state.optimizer);
            let done = &state.update - &inputs.first;
            let ema = Ema::new(phase.ema_decay).update(&state.ema, &model, &done);
            let update = &state.update + 1;
            let told = Tensor::concat(&[&value.cast(DType::F64).expand_dims(0), &counts], 0);
            Ok((TrainState { model, ema, optimizer, key: state.key, update }, told))
        };
        Step { program: jit(update).max_traces(1), inputs, source: source.clone(), batch: phase.batch }
    }

    /// Runs an update as one of `updates`. A failed one leaves the state as it was.
    ///
    /// # Errors
    /// A solve that ended early, with its t and step; a file of images that has gone or shrunk.
    pub fn run(&self, state: &mut TrainState, updates: f64) -> Result<Told> {
        let mut inputs = Inputs { updates: Tensor::from(updates), ..self.inputs.clone() };
        if let Some(rows) = self.source.next(|| state.update.item() as u64, self.batch)? {
            inputs.tables = rows;
        }
        let told = self.program.step(state, inputs)?.to_vec();
        Ok(Told { loss: told[0], steps: told[1], field_evals: told[2] })
    }

    /// Times that the step was traced.
    pub fn traces(&self) -> usize {
        self.program.num_traces()
    }

    /// Counters of the last update.
    pub fn last_run(&self) -> RunReport {
        self.program.last_run()
    }

    /// What an update does and needs; compiles it if it has not run.
    ///
    /// # Errors
    /// As tracing.
    pub fn plan(&self, state: &TrainState) -> Result<PlanReport> {
        self.program.plan(&(state.clone(), self.inputs.clone()))
    }
}

/// The state before the first update.
pub fn begin(config: &TrainConfig, model: Flow, key: &Key) -> TrainState {
    let optimizer = optimizer(config, &config.phases[0], &Tensor::from(1.0)).init(&model);
    TrainState { ema: model.clone(), model, optimizer, key: key.clone(), update: Tensor::from(0u32) }
}

/// The state with which a later phase begins: the averaged weights, a new optimizer.
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

/// The loss of a batch, and steps and evaluations of the field [2].
fn loss(objective: Objective, model: &Flow, batch: &Batch, key: &Key) -> Result<(Tensor, Tensor)> {
    let model = &batch.labels.as_ref().map_or_else(|| model.clone(), |labels| model.condition_on(labels));
    match objective {
        Objective::FlowMatching => {
            let counts = Tensor::from([0.0, model.blocks.len() as f64]);
            Ok((model.flow_matching_loss(&batch.points, key)?, counts))
        }
        Objective::MaximumLikelihood => {
            let (loss, stats) = model.nll_loss_with_stats(&batch.points, Some(&batch.weight), key)?;
            Ok((loss, Tensor::stack(&[&stats.num_steps, &stats.num_fn_evals])))
        }
    }
}
