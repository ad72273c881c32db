//! `Optimizer`, a chain of parts, and its state.

use super::hyper::MapNumber;
use super::part::{Memory, Part, Slot};
use crate::nn::is_fixed;
use crate::tensor::{Tensor, Tree};
use crate::tree;
use std::collections::BTreeMap;

/// Turns gradients into updates of the weights: an immutable chain of parts.
///
/// Leaves that are not floats, and leaves in a [`Buffer`](crate::nn::extra::Buffer) or
/// [`Frozen`](crate::nn::Frozen), are unchanged.
///
/// A hyper-parameter is a number or a tensor. A number is a constant of the program. A tensor from the
/// caller's state, `AdamW::new(&state.rate)`, may change between calls of a jitted update without a new
/// trace. See [`inject_hyperparams`](super::inject_hyperparams) for hyper-parameters in the optimizer's own
/// state.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// let rate = Schedule::cosine_decay(3e-3, 5_000);
/// let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(rate).weight_decay(1e-5)));
/// let weights = Tensor::from([1.0, -2.0]);
/// let state = optimizer.init(&weights);
/// let (weights, _) = optimizer.update(&weights, Tensor::from([0.5, 0.5]), state);
/// assert!((weights.to_vec()[0] - (1.0 - 3e-3)).abs() < 1e-7);
/// ```
#[derive(Clone, Debug)]
pub struct Optimizer {
    pub(super) parts: Vec<Part>,
}

tree! {
    /// The state of an [`Optimizer`], by index of the part and path of the leaf: `1.mu.layers.0.weight` and
    /// `1.count` if part 1 is a direction of Adam.
    pub struct OptState {
        /// Moments and sums of gradients have the type and shape of their weight; counters are u32 of rank 0;
        /// other numbers, such as the scale of `reduce_on_plateau`, have rank 0.
        pub leaves: BTreeMap<String, Tensor>,
    }
}

impl OptState {
    /// The leaf with this name, or the only leaf whose name ends in a dot and this name:
    /// `state.get("skipped")`. `None` if there is no such leaf or several.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.full_name(name).map(|name| &self.leaves[&name])
    }

    /// Sets a leaf, selected as in [`OptState::get`], to a value, which is cast to the leaf's type.
    ///
    /// # Panics
    /// When there is no such leaf or several, or the shapes differ.
    #[track_caller]
    pub fn set(&mut self, name: &str, x: impl Into<Tensor>) {
        let Some(full) = self.full_name(name) else {
            let names: Vec<&str> = self.leaves.keys().map(String::as_str).collect();
            panic!(
                "the optimizer state has no leaf `{name}`, or several; use the full name of one of its leaves: {}",
                names.join(", ")
            );
        };
        let (old, new) = (&self.leaves[&full], x.into());
        assert!(old.shape() == new.shape(), "`{full}` has shape {}, got shape {}", old.shape(), new.shape());
        let new = new.cast(old.dtype());
        self.leaves.insert(full, new);
    }

    fn full_name(&self, name: &str) -> Option<String> {
        if self.leaves.contains_key(name) {
            return Some(name.to_owned());
        }
        let ending = format!(".{name}");
        let mut found = self.leaves.keys().filter(|full| full.ends_with(&ending));
        found.next().filter(|_| found.next().is_none()).cloned()
    }
}

impl From<&Optimizer> for Optimizer {
    fn from(optimizer: &Optimizer) -> Optimizer {
        optimizer.clone()
    }
}

impl Optimizer {
    /// The state before the first update.
    pub fn init<M: Tree>(&self, model: &M) -> OptState {
        let mut leaves = BTreeMap::new();
        let memory = &mut Memory { leaves: &mut leaves, prefix: String::new(), value: None };
        self.init_slots(&slots(&model.named_leaves(), &model.leaves()), memory);
        OptState { leaves }
    }

    /// Returns the model and the state after one update by `grads`, traced or concrete.
    ///
    /// # Panics
    /// When the state has no leaf of a required name (it is of another optimizer or model), or a part needs the loss.
    #[track_caller]
    pub fn update<M: Tree>(&self, model: &M, grads: M, state: OptState) -> (M, OptState) {
        let (weights, state) = self.run(&model.named_leaves(), &grads.leaves(), state, None);
        (model.with_leaves(weights), state)
    }

    /// [`Optimizer::update`] with the loss, of rank 0, for parts that read it:
    /// [`reduce_on_plateau`](super::reduce_on_plateau). Other parts ignore it.
    ///
    /// # Panics
    /// When the state has no leaf of a required name (it is of another optimizer or model), or the loss is not a
    /// single number.
    #[track_caller]
    pub fn update_with_value<M: Tree>(
        &self,
        model: &M,
        grads: M,
        state: OptState,
        value: &Tensor,
    ) -> (M, OptState) {
        let value = Some(value.reshape([]));
        let (weights, state) = self.run(&model.named_leaves(), &grads.leaves(), state, value);
        (model.with_leaves(weights), state)
    }

    #[track_caller]
    fn run(
        &self,
        model: &[(String, Tensor)],
        grads: &[Tensor],
        mut state: OptState,
        value: Option<Tensor>,
    ) -> (Vec<Tensor>, OptState) {
        let memory = &mut Memory { leaves: &mut state.leaves, prefix: String::new(), value };
        let mut slots = slots(model, grads);
        self.apply_slots(&mut slots, memory);
        let mut done = slots.into_iter().peekable();
        let weight = |(path, leaf): &(String, Tensor)| match done.next_if(|slot| slot.path == *path) {
            Some(slot) => leaf + slot.update,
            None => leaf.clone(),
        };
        let weights = model.iter().map(weight).collect();
        assert!(done.peek().is_none(), "invariant: every update belongs to a leaf");
        (weights, state)
    }

    pub(super) fn init_slots(&self, slots: &[Slot], memory: &mut Memory) {
        for (i, part) in self.parts.iter().enumerate() {
            part.transform().init(slots, &mut memory.within(&i.to_string()));
        }
    }

    pub(super) fn apply_slots(&self, slots: &mut [Slot], memory: &mut Memory) {
        for (i, part) in self.parts.iter().enumerate() {
            part.transform().apply(slots, &mut memory.within(&i.to_string()));
        }
    }

    /// The same chain with other hyper-parameters, named `prefix.part.name`.
    pub(super) fn map_numbers(&self, prefix: &str, f: &mut MapNumber) -> Optimizer {
        let parts = self.parts.iter().enumerate().map(|(i, part)| {
            part.transform().map_numbers(&mut |name, x| f(&format!("{prefix}.{i}.{name}"), x))
        });
        Optimizer { parts: parts.collect() }
    }

    pub(super) fn needs_value(&self) -> bool {
        self.parts.iter().any(|part| part.transform().needs_value())
    }
}

/// The trained leaves, in order.
fn slots(model: &[(String, Tensor)], grads: &[Tensor]) -> Vec<Slot> {
    let trained = model.iter().zip(grads).filter(|((path, x), _)| x.dtype().is_float() && !is_fixed(path));
    let slot = |((path, weight), update): (&(String, Tensor), &Tensor)| Slot {
        path: path.clone(),
        weight: weight.clone(),
        update: update.clone(),
    };
    trained.map(slot).collect()
}
