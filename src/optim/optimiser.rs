//! `Optimiser`: a chain of parts behind one front door, and its state.

use super::Schedule;
use super::adam::Adam;
use super::part::{GroupOf, Memory, Part, Slot, each_part};
use crate::nn::is_fixed;
use crate::tensor::{Path, Tensor, Tree};
use crate::tree;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How gradients become updates of weights: a chain of parts, immutable data.
///
/// Leaves that are no floats, or are [`Fixed`](crate::nn::Fixed), are left as they are.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let optimiser = chain([clip_global_norm(1.0), adamw(cosine(3e-3, 5_000)).weight_decay(1e-5)]);
/// let weights = Tensor::from([1.0, -2.0]);
/// let state = optimiser.init(&weights);
/// let (weights, _) = optimiser.update(&weights, Tensor::from([0.5, 0.5]), state);
/// assert!((weights.to_vec()[0] - (1.0 - 3e-3)).abs() < 1e-7);
/// ```
#[derive(Clone, Debug)]
pub struct Optimiser {
    parts: Vec<Part>,
}

tree! {
    /// What an [`Optimiser`] remembers, by part and path of the leaf: `1.mu.layers.0.weight`, `1.count`.
    pub struct OptState {
        /// Moments in the type of their leaf, counters as u32 of rank 0.
        pub leaves: BTreeMap<String, Tensor>,
    }
}

/// Adam: betas 0.9 and 0.999, eps 1e-8, no weight decay.
///
/// `p += -r m' / (sqrt(v') + eps)` with m' and v' the moments freed of their bias (Kingma and Ba 2015,
/// algorithm 1).
pub fn adam(rate: impl Into<Schedule>) -> Optimiser {
    Optimiser { parts: vec![Part::Adam(Adam::new(rate.into(), 0.0))] }
}

/// [`adam`] with a decoupled weight decay, 1e-4 where none is given: `p += -r weight_decay p` beside it
/// (Loshchilov and Hutter 2019, algorithm 2). It acts on every trained leaf.
pub fn adamw(rate: impl Into<Schedule>) -> Optimiser {
    Optimiser { parts: vec![Part::Adam(Adam::new(rate.into(), 1e-4))] }
}

/// Gradient descent, without momentum: `p += -r g`.
pub fn sgd(rate: impl Into<Schedule>) -> Optimiser {
    Optimiser { parts: vec![Part::Sgd { rate: rate.into(), momentum: 0.0, weight_decay: 0.0 }] }
}

/// Scales all gradients by one factor so that their joint 2-norm is at most `max`: below it they stay.
///
/// # References
/// Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks, algorithm 1.
pub fn clip_global_norm(max: f64) -> Optimiser {
    Optimiser { parts: vec![Part::Clip { max }] }
}

/// Leaves the weights as they are; for a group of a [`partition`].
pub fn freeze() -> Optimiser {
    Optimiser { parts: vec![Part::Freeze] }
}

/// One after the other: each gets the updates of the one before.
pub fn chain<const N: usize>(optimisers: [Optimiser; N]) -> Optimiser {
    Optimiser { parts: optimisers.into_iter().flat_map(|o| o.parts).collect() }
}

/// One optimiser for each group of leaves; `group_of` names the group of a leaf by its path.
pub fn partition<const N: usize>(
    group_of: impl Fn(&str) -> usize + Send + Sync + 'static,
    groups: [Optimiser; N],
) -> Optimiser {
    Optimiser {
        parts: vec![Part::Partition { group_of: GroupOf(Arc::new(group_of)), groups: groups.into() }],
    }
}

impl Optimiser {
    #[track_caller]
    fn adjust(mut self, what: &str, f: impl Fn(&mut Part) -> bool) -> Optimiser {
        let adjusted = self.parts.iter_mut().rev().any(f);
        assert!(adjusted, "no part of this optimiser has {what}");
        self
    }

    /// The decoupled weight decay of the last part that has one.
    ///
    /// # Panics
    /// When no part is `adam`, `adamw` or `sgd`.
    #[track_caller]
    pub fn weight_decay(self, x: f64) -> Optimiser {
        self.adjust("a weight decay", |part| match part {
            Part::Adam(Adam { weight_decay, .. }) | Part::Sgd { weight_decay, .. } => {
                *weight_decay = x;
                true
            }
            _ => false,
        })
    }

    #[track_caller]
    fn adjust_adam(self, what: &str, f: impl Fn(&mut Adam)) -> Optimiser {
        self.adjust(what, |part| match part {
            Part::Adam(adam) => {
                f(adam);
                true
            }
            _ => false,
        })
    }

    /// The decay rates of Adam's moments.
    ///
    /// # Panics
    /// When no part is `adam` or `adamw`.
    #[track_caller]
    pub fn betas(self, beta1: f64, beta2: f64) -> Optimiser {
        self.adjust_adam("betas", |adam| (adam.beta1, adam.beta2) = (beta1, beta2))
    }

    /// What Adam adds to the root of its second moment.
    ///
    /// # Panics
    /// When no part is `adam` or `adamw`.
    #[track_caller]
    pub fn eps(self, eps: f64) -> Optimiser {
        self.adjust_adam("an eps", |adam| adam.eps = eps)
    }

    /// The momentum of gradient descent: `u = momentum u + g`, `p += -r u`.
    ///
    /// # Panics
    /// When no part is `sgd`.
    #[track_caller]
    pub fn momentum(self, x: f64) -> Optimiser {
        self.adjust("a momentum", |part| match part {
            Part::Sgd { momentum, .. } => {
                *momentum = x;
                true
            }
            _ => false,
        })
    }

    /// The state before the first update.
    pub fn init<M: Tree>(&self, model: &M) -> OptState {
        let mut leaves = BTreeMap::new();
        let memory = &mut Memory { leaves: &mut leaves, prefix: String::new() };
        self.init_slots(slots(model, model), memory);
        OptState { leaves }
    }

    /// The model after an update by its gradients, and the state after it; traced or concrete alike.
    ///
    /// # Panics
    /// When the state was made by another optimiser or for another model.
    #[track_caller]
    pub fn update<M: Tree>(&self, model: &M, grads: M, mut state: OptState) -> (M, OptState) {
        let memory = &mut Memory { leaves: &mut state.leaves, prefix: String::new() };
        let mut done = self.apply_slots(slots(model, &grads), memory).into_iter().peekable();
        let model = model.map(&mut Path::default(), &mut |path, leaf| match done
            .next_if(|slot| slot.path == path.to_string())
        {
            Some(slot) => leaf + slot.update,
            None => leaf.clone(),
        });
        assert!(done.peek().is_none(), "invariant: every update has its leaf");
        (model, state)
    }

    pub(super) fn init_slots(&self, slots: Vec<Slot>, memory: &mut Memory) -> Vec<Slot> {
        each_part(&self.parts, slots, memory, Part::init)
    }

    pub(super) fn apply_slots(&self, slots: Vec<Slot>, memory: &mut Memory) -> Vec<Slot> {
        each_part(&self.parts, slots, memory, Part::apply)
    }
}

/// The leaves that are trained, in order.
fn slots<M: Tree>(model: &M, grads: &M) -> Vec<Slot> {
    let pairs = model.named_leaves().into_iter().zip(grads.leaves());
    let trained = pairs.filter(|((path, weight), _)| weight.dtype().is_float() && !is_fixed(path));
    trained.map(|((path, weight), update)| Slot { path, weight, update }).collect()
}
