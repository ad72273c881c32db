//! The parts that chains are made of, and the memory they share.

use super::adam::{Adam, zeros_like};
use super::{Optimiser, Schedule};
use crate::array::DType;
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A trained leaf on its way through a chain.
pub(super) struct Slot {
    pub path: String,
    pub weight: Tensor,
    /// The gradient at first, in the end what is added to the weight.
    pub update: Tensor,
}

/// The tensors of one part: names of a map under a prefix.
pub(super) struct Memory<'a> {
    pub leaves: &'a mut BTreeMap<String, Tensor>,
    pub prefix: String,
}

impl Memory<'_> {
    fn within(&mut self, name: &str) -> Memory<'_> {
        Memory { prefix: format!("{}{name}.", self.prefix), leaves: self.leaves }
    }

    pub fn put(&mut self, name: &str, x: Tensor) {
        self.leaves.insert(format!("{}{name}", self.prefix), x);
    }

    #[track_caller]
    pub fn take(&mut self, name: &str) -> Tensor {
        let name = format!("{}{name}", self.prefix);
        let found = self.leaves.remove(&name);
        found.unwrap_or_else(|| {
            panic!(
                "the optimiser's state has no `{name}`: it was made by another optimiser or for another model"
            )
        })
    }
}

/// Which optimiser of a partition a leaf belongs to, by its path.
#[derive(Clone)]
pub(super) struct GroupOf(pub Arc<dyn Fn(&str) -> usize + Send + Sync>);

impl fmt::Debug for GroupOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupOf")
    }
}

/// A map from updates to updates.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Scales all updates so that their joint 2-norm is at most `max`.
    Clip {
        max: f64,
    },
    Adam(Adam),
    /// `-r u` with `u = momentum u + g`.
    Sgd {
        rate: Schedule,
        momentum: f64,
        weight_decay: f64,
    },
    /// No update.
    Freeze,
    Partition {
        group_of: GroupOf,
        groups: Vec<Optimiser>,
    },
}

impl Part {
    pub fn init(&self, slots: Vec<Slot>, memory: &mut Memory) -> Vec<Slot> {
        match self {
            Part::Clip { .. } | Part::Freeze => {}
            Part::Adam(_) => Adam::init(&slots, memory),
            Part::Sgd { momentum, .. } => {
                memory.put("count", Tensor::from(0u32));
                for slot in slots.iter().filter(|_| *momentum != 0.0) {
                    memory.put(&format!("trace.{}", slot.path), zeros_like(&slot.weight));
                }
            }
            Part::Partition { group_of, groups } => {
                return split(slots, group_of, groups, memory, Optimiser::init_slots);
            }
        }
        slots
    }

    pub fn apply(&self, mut slots: Vec<Slot>, memory: &mut Memory) -> Vec<Slot> {
        match self {
            Part::Clip { max } => clip(&mut slots, *max),
            Part::Adam(adam) => adam.apply(&mut slots, memory),
            Part::Sgd { rate, momentum, weight_decay } => {
                sgd(&mut slots, memory, rate, *momentum, *weight_decay);
            }
            Part::Freeze => slots.iter_mut().for_each(|s| s.update = zeros_like(&s.weight)),
            Part::Partition { group_of, groups } => {
                return split(slots, group_of, groups, memory, Optimiser::apply_slots);
            }
        }
        slots
    }
}

fn clip(slots: &mut [Slot], max: f64) {
    let squares = slots.iter().map(|s| s.update.square().sum().cast(DType::F64));
    let Some(square) = squares.reduce(|a, b| a + b) else { return };
    let norm = square.sqrt();
    let one = Tensor::scalar(DType::F64, 1.0);
    // A NaN norm is not below max, so it reaches every update and is seen.
    let scale = norm.lt(Tensor::scalar(DType::F64, max)).select(&one, &(max / &norm));
    for slot in slots {
        slot.update = &slot.update * scale.cast(slot.update.dtype());
    }
}

fn sgd(slots: &mut [Slot], memory: &mut Memory, rate: &Schedule, momentum: f64, weight_decay: f64) {
    let count = memory.take("count");
    let rate = rate.at(&count);
    memory.put("count", count + 1);
    for slot in slots {
        let mut direction = slot.update.clone();
        if momentum != 0.0 {
            let name = format!("trace.{}", slot.path);
            direction = direction + memory.take(&name) * momentum;
            memory.put(&name, direction.clone());
        }
        if weight_decay != 0.0 {
            direction = direction + &slot.weight * weight_decay;
        }
        slot.update = -(direction * rate.cast(slot.weight.dtype()));
    }
}

/// Runs the optimiser of each group on its leaves, and puts the leaves back in their order.
fn split(
    slots: Vec<Slot>,
    group_of: &GroupOf,
    groups: &[Optimiser],
    memory: &mut Memory,
    run: fn(&Optimiser, Vec<Slot>, &mut Memory) -> Vec<Slot>,
) -> Vec<Slot> {
    let mut members: Vec<Vec<Slot>> = groups.iter().map(|_| Vec::new()).collect();
    let order: Vec<usize> = slots.iter().map(|s| (group_of.0)(&s.path)).collect();
    for (slot, &g) in slots.into_iter().zip(&order) {
        assert!(g < groups.len(), "leaf {} is of group {g}, there are {}", slot.path, groups.len());
        members[g].push(slot);
    }
    let done = members.into_iter().zip(groups).enumerate();
    let mut done: Vec<_> =
        done.map(|(i, (m, o))| run(o, m, &mut memory.within(&i.to_string())).into_iter()).collect();
    order.iter().map(|&g| done[g].next().expect("invariant: an optimiser keeps its leaves")).collect()
}

/// Runs the parts of a chain one after the other.
pub(super) fn each_part(
    parts: &[Part],
    slots: Vec<Slot>,
    memory: &mut Memory,
    run: fn(&Part, Vec<Slot>, &mut Memory) -> Vec<Slot>,
) -> Vec<Slot> {
    parts
        .iter()
        .enumerate()
        .fold(slots, |slots, (i, part)| run(part, slots, &mut memory.within(&i.to_string())))
}
