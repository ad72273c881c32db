//! Optimizers made of optimizers, and the parts that stand before and behind a rule.

use super::Optimizer;
use super::accumulate::Accumulate;
use super::clip::{ClipGlobalNorm, ClipValue};
use super::groups::{Freeze, GroupOf, Partition};
use super::hyper::Hyper;
use super::inject::Inject;
use super::skip::SkipNonFinite;
use crate::tensor::Tensor;
use std::sync::Arc;

/// Optimizers in an order: a tuple of up to eight rules, parts and [`Optimizer`]s, or a `Vec` of one type where their number
/// is known at run time alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of optimizers",
    label = "a tuple of rules and parts: (clip_by_global_norm(1.0), Adam::new(1e-3))"
)]
pub trait OptimizerList {
    #[doc(hidden)]
    fn into_optimizers(self) -> Vec<Optimizer>;
}

impl<O: Into<Optimizer>> OptimizerList for Vec<O> {
    fn into_optimizers(self) -> Vec<Optimizer> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($(($($O:ident $i:tt)+))*) => {$(
        impl<$($O: Into<Optimizer>),+> OptimizerList for ($($O,)+) {
            fn into_optimizers(self) -> Vec<Optimizer> {
                vec![$(self.$i.into()),+]
            }
        }
    )*};
}
tuples! {
    (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6) (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}

/// One after the other: each gets the updates of the one before.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// let optimizer = chain((clip_by_global_norm(1.0), Adam::new(1e-3).beta2(0.99)));
/// # let x = Tensor::from(0.0);
/// # assert!((optimizer.update(&x, Tensor::from(9.0), optimizer.init(&x)).0.item() + 1e-3).abs() < 1e-9);
/// ```
pub fn chain(optimizers: impl OptimizerList) -> Optimizer {
    Optimizer { parts: optimizers.into_optimizers().into_iter().flat_map(|o| o.parts).collect() }
}

/// Scales all gradients by one factor so that their joint 2-norm is at most `max`: below it they stay.
///
/// # References
/// Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks, algorithm 1.
#[track_caller]
pub fn clip_by_global_norm(max: impl Into<Tensor>) -> Optimizer {
    ClipGlobalNorm { max: Hyper::new("max", max) }.into()
}

/// Every element of the gradients into `[-max, max]`; a NaN stays one.
#[track_caller]
pub fn clip(max: impl Into<Tensor>) -> Optimizer {
    ClipValue { max: Hyper::new("max", max) }.into()
}

/// Leaves the weights as they are; for a group of a [`partition`].
pub fn set_to_zero() -> Optimizer {
    Freeze.into()
}

/// One optimizer for each group of leaves; `group_of` names the group of a leaf by its path.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::{partition, set_to_zero};
/// let groups = (AdamW::new(1e-3), set_to_zero());
/// let optimizer = partition(|path| usize::from(path.starts_with("encoder")), groups);
/// ```
pub fn partition(
    group_of: impl Fn(&str) -> usize + Send + Sync + 'static,
    groups: impl OptimizerList,
) -> Optimizer {
    Partition { group_of: GroupOf(Arc::new(group_of)), groups: groups.into_optimizers() }.into()
}

/// `inner` for the leaves whose path is included; the updates of the others pass as they are.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::{clip, masked};
/// let clip = masked(|path| path.ends_with("weight"), clip(0.1));
/// let optimizer = chain((clip, Sgd::new(1.0)));
/// # let x = Tensor::from(0.0);
/// # assert_eq!(optimizer.update(&x, Tensor::from(-2.0), optimizer.init(&x)).0.item(), 2.0);
/// ```
pub fn masked(
    include: impl Fn(&str) -> bool + Send + Sync + 'static,
    inner: impl Into<Optimizer>,
) -> Optimizer {
    let pass = Optimizer { parts: vec![] };
    partition(move |path| usize::from(!include(path)), (inner, pass))
}

/// Every `every` updates one of `inner`, by the mean of their gradients. In between the weights and the state
/// of `inner` stay bit for bit as they are; the choice is made on the device.
///
/// Schedules of `inner` count its own updates. A loss that it watches is the mean too.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::multi_steps;
/// let optimizer = multi_steps(2, Sgd::new(1.0));
/// let x = Tensor::from(0.0);
/// let (x, state) = optimizer.update(&x, Tensor::from(1.0), optimizer.init(&x));
/// assert_eq!(x.item(), 0.0);
/// let (x, _) = optimizer.update(&x, Tensor::from(3.0), state);
/// assert_eq!(x.item(), -2.0);
/// ```
#[track_caller]
pub fn multi_steps(every: impl Into<Tensor>, inner: impl Into<Optimizer>) -> Optimizer {
    Accumulate { every: Hyper::new("every", every), inner: inner.into() }.into()
}

/// `inner`, unless a gradient or what `inner` makes of it is infinite or NaN: then the weights and the state
/// of `inner` stay bit for bit, and the update is counted.
///
/// `state.get("skipped")` is their number, `state.get("skipped_in_a_row")` that since the last good one: where
/// it grows, training is over.
pub fn apply_if_finite(inner: impl Into<Optimizer>) -> Optimizer {
    SkipNonFinite { inner: inner.into() }.into()
}

/// `inner` with its hyper-parameters, those of schedules too, as leaves of the state: `hyper.2.rate`,
/// `hyper.0.beta1`. They may be changed between updates, and are saved and restored with the state. What the
/// optimizer says after the state was made is not looked at.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::inject_hyperparams;
/// let optimizer = inject_hyperparams(Sgd::new(1.0));
/// let x = Tensor::from(0.0);
/// let mut state = optimizer.init(&x);
/// state.set("rate", 0.25);
/// assert_eq!(optimizer.update(&x, Tensor::from(-1.0), state).0.item(), 0.25);
/// ```
pub fn inject_hyperparams(inner: impl Into<Optimizer>) -> Optimizer {
    Inject { inner: inner.into() }.into()
}
