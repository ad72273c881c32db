//! Data-parallel training over ranks: the shards of each rank, the sum of their gradients, and the orders of rank 0.
//!
//! Rank 0 runs the [session](super::session) with the folder, the clock and the validation part. Every other rank
//! [follows](super::follow) its orders. All ranks hold the same state and apply the same sum, so the state is sent only
//! at the start, and the final flow at the end. An update sends an order, losses and counters, and the gradient.
//!
//! An error of a shard is sent in place of its sum, and all ranks return it.

use super::Flow;
use super::step::{Gradient, Means, Step};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::ode::{Outcome, SolveError};
use crate::tensor::{Tensor, Tree};
use crate::time_source::TimeSource;
use crate::train::state::TrainState;
use crate::world::sum::{Failure, Sum, local, subtrees};
use crate::world::{World, WorldError};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::time::Duration;

/// The deadline for an answer of a rank: `SILENT`, or `SILENT_UPDATES` times the longest update if that is
/// longer.
pub(super) const SILENT: Duration = Duration::from_secs(60);
const SILENT_UPDATES: f64 = 10.0;

/// An order of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Begin a phase, after `first` updates of earlier ones; `is_new` if it has no updates yet.
    Begin { phase: usize, first: u64, is_new: bool },
    /// Make an update; `updates` is the number of updates in the phase.
    Update { phase: usize, updates: f64 },
    /// Wait without a deadline: rank 0 validates, draws or writes.
    Wait,
    /// The run has ended; the final checkpoint follows.
    End,
    /// The run was stopped after this update.
    Stop { update: u64 },
    /// Rank 0 has failed.
    Fail { message: String },
}

/// The ranks of a run, as one of them sees them.
pub(super) struct Team<'a> {
    world: Option<&'a World>,
    shards: usize,
    /// The shortest deadline.
    silent: Duration,
    time: TimeSource,
    /// Seconds of the longest update.
    longest_s: Cell<f64>,
    /// Whether the last order to the other ranks was to wait.
    waits: Cell<bool>,
    /// Whether a rank has requested a stop.
    stop: Cell<bool>,
    /// Whether all ranks have returned the same error.
    has_failed: Cell<bool>,
}

impl<'a> Team<'a> {
    pub(super) fn new(
        world: Option<&'a World>,
        shards: usize,
        silent: Duration,
        time: TimeSource,
    ) -> Team<'a> {
        Team {
            world: world.filter(|world| world.size() > 1),
            shards,
            silent,
            time,
            longest_s: Cell::default(),
            waits: Cell::new(false),
            stop: Cell::new(false),
            has_failed: Cell::new(false),
        }
    }

    /// Number of shards of this rank.
    pub(super) fn own_shards(&self) -> usize {
        self.world.map_or(self.shards, |world| world.part(self.shards).len())
    }

    /// Whether another rank requested a stop in the last update.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.get()
    }

    /// Records an error that every rank detects itself.
    pub(super) fn fail(&self) {
        self.has_failed.set(true);
    }

    /// Whether an error was recorded.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// The error of a rank, as the other ranks return it.
    pub(super) fn error_of(&self, rank: usize, message: String) -> Error {
        let host = self.world.map_or_else(String::new, |world| world.host(rank));
        WorldError::Rank { rank, host, message }.into()
    }

    /// Sends an order of rank 0.
    pub(super) fn order(&self, order: &Order) -> Result<()> {
        let Some(world) = self.world else { return Ok(()) };
        let is_wait = matches!(order, Order::Wait);
        if is_wait && self.waits.replace(true) {
            return Ok(());
        }
        self.waits.set(is_wait);
        let mut text = serde_json::to_vec(order).expect("invariant: orders are plain values");
        Ok(world.broadcast(&mut text)?)
    }

    /// Receives the next order of rank 0.
    pub(super) fn next_order(&self) -> Result<Order> {
        let world = self.world.expect("invariant: a rank that follows has others");
        if self.waits.get() {
            world.set_deadline(None);
        }
        let mut text = Vec::new();
        world.broadcast(&mut text)?;
        let order: Order = serde_json::from_slice(&text).expect("invariant: orders are plain values");
        self.waits.set(matches!(order, Order::Wait));
        self.set_deadline();
        Ok(order)
    }

    /// Broadcasts bytes of rank 0.
    pub(super) fn share(&self, bytes: &mut Vec<u8>) -> Result<()> {
        match self.world {
            Some(world) => Ok(world.broadcast(bytes)?),
            None => Ok(()),
        }
    }

    fn set_deadline(&self) {
        if let Some(world) = self.world {
            let updates = Duration::from_secs_f64(SILENT_UPDATES * self.longest_s.get());
            world.set_deadline(Some(self.silent.max(updates)));
        }
    }

    /// The summed gradient of all shards, with losses and counters; `step` is an error if this rank could not compile
    /// its program.
    ///
    /// # Errors
    /// On all ranks the error of the first shard that failed; or a rank cannot be reached.
    pub(super) fn gradient(
        &self,
        step: Result<&Step>,
        state: &TrainState,
        stop: bool,
        on_silent: &mut dyn FnMut(&WorldError),
    ) -> Result<(Means, Flow)> {
        let since_s = self.time.now_s();
        let Some(world) = self.world else {
            return self.alone(step?, state);
        };
        self.set_deadline();
        let mine = match step.and_then(|step| self.own(world, step, state)) {
            Ok(mut sums) => {
                // The stop flag is summed with the losses; one subtree per rank carries it.
                sums.iter_mut()
                    .enumerate()
                    .for_each(|(i, sum)| sum.few.push(f64::from(u8::from(stop && i == 0))));
                Ok(sums)
            }
            Err(e) => Err(Message::of(&e).bytes()),
        };
        let sum = world.sum(self.shards, mine, on_silent)?.map_err(|failure| self.received(&failure))?;
        self.longest_s.set(self.longest_s.get().max(self.time.now_s() - since_s));
        self.stop.set(sum.few[3] > 0.0);
        Ok((Means::of(&sum.few), flow(&state.model, &sum.many)))
    }

    /// The error of the first rank that failed, as every rank returns it.
    fn received(&self, Failure { rank, message }: &Failure) -> Error {
        let text = |message: String| self.error_of(*rank, message);
        match serde_json::from_slice(message) {
            Ok(Message::Ended(bits, row)) => {
                let [status, t, dt, step, component, dt_min] = bits.map(f64::from_bits);
                match Outcome::decode(status, t, dt, step, component, dt_min) {
                    Some(outcome) => Error::Solve(SolveError::in_program(outcome, row)),
                    None => text("a solve ended early".to_owned()),
                }
            }
            Ok(Message::Text(message)) => text(message),
            Err(_) => text(String::from_utf8_lossy(message).into_owned()),
        }
    }

    /// All shards on a single rank. One shard needs no sum, and its gradient is not copied.
    fn alone(&self, step: &Step, state: &TrainState) -> Result<(Means, Flow)> {
        let mut inputs = step.inputs(state, 0..self.shards)?;
        if self.shards == 1 {
            let Gradient { means, of } = step.gradient(&state.model, inputs.remove(0))?;
            return Ok((Means::of(&means.to_vec()), of));
        }
        let sum = local(0..self.shards, &|shard: usize| shard_sum(step, state, &inputs[shard]))?;
        Ok((Means::of(&sum.few), flow(&state.model, &sum.many)))
    }

    /// The sums of the subtrees of this rank's shards.
    fn own(&self, world: &World, step: &Step, state: &TrainState) -> Result<Vec<Sum>> {
        let part = world.part(self.shards);
        let inputs = step.inputs(state, part.clone())?;
        let one = |shard: usize| shard_sum(step, state, &inputs[shard - part.start]);
        subtrees(world, self.shards).into_iter().map(|node| local(node, &one)).collect()
    }
}

fn shard_sum(step: &Step, state: &TrainState, inputs: &super::step::Inputs) -> Result<Sum> {
    let Gradient { means, of } = step.gradient(&state.model, inputs.clone())?;
    let leaves = of.leaves();
    let mut many = Vec::with_capacity(leaves.iter().map(Tensor::size).sum());
    for leaf in &leaves {
        match leaf.array().data() {
            Data::F32(x) => many.extend_from_slice(x),
            other => unreachable!("invariant: weights that train are f32, not {}", other.dtype()),
        }
    }
    Ok(Sum { few: means.to_vec(), many })
}

/// A gradient with the leaves of `like`, from its values in order.
fn flow(like: &Flow, numbers: &[f32]) -> Flow {
    let mut at = 0;
    like.map_leaves(|leaf| {
        let leaf_numbers = numbers[at..at + leaf.size()].to_vec();
        at += leaf.size();
        Tensor::from_vec(leaf.shape().clone(), leaf_numbers)
    })
}

/// An error as sent between ranks: enough for every rank to return the same error.
#[derive(Serialize, Deserialize)]
enum Message {
    /// A solve that ended early, as bits of its values, which may be infinite.
    Ended([u64; 6], Option<usize>),
    /// Anything else, by its text.
    Text(String),
}

impl Message {
    fn of(e: &Error) -> Message {
        match e {
            Error::Solve(SolveError::Incomplete { outcome, row, .. }) => {
                Message::Ended(outcome.encode().map(f64::to_bits), *row)
            }
            e => Message::Text(e.to_string()),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("invariant: messages are plain values")
    }
}
