//! Optimizers made of optimizers, and the parts that stand before and behind a rule.

use super::Optimizer;
use super::accumulate::Accumulate;
use super::clip::{ClipGlobalNorm, ClipValue};
use super::groups::{Freeze, GroupOf, Partition};
use super::hyper::Hyper;
use super::inject::Inject;
use super::part::Part;
use super::plateau::Plateau;
use super::rules::one;
use super::skip::SkipNonFinite;
use crate::tensor::Tensor;
use std::sync::Arc;

/// One after the other: each gets the updates of the one before.
pub fn chain<const N: usize>(optimizers: [Optimizer; N]) -> Optimizer {
    joined(optimizers.into())
}

fn joined(optimizers: Vec<Optimizer>) -> Optimizer {
    Optimizer { parts: optimizers.into_iter().flat_map(|o| o.parts).collect() }
}

/// Scales all gradients by one factor so that their joint 2-norm is at most `max`: below it they stay.
///
/// # References
/// Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks, algorithm 1.
pub fn clip_by_global_norm(max: impl Into<Tensor>) -> Optimizer {
    one(Part::ClipGlobalNorm(ClipGlobalNorm { max: Hyper::new(max) }))
}

/// Every element of the gradients into `[-max, max]`; a NaN stays one.
pub fn clip(max: impl Into<Tensor>) -> Optimizer {
    one(Part::ClipValue(ClipValue { max: Hyper::new(max) }))
}

/// Leaves the weights as they are; for a group of a [`partition`].
pub fn set_to_zero() -> Optimizer {
    one(Part::Freeze(Freeze))
}

/// One optimizer for each group of leaves; `group_of` names the group of a leaf by its path.
pub fn partition<const N: usize>(
    group_of: impl Fn(&str) -> usize + Send + Sync + 'static,
    groups: [Optimizer; N],
) -> Optimizer {
    one(Part::Partition(Partition { group_of: GroupOf(Arc::new(group_of)), groups: groups.into() }))
}

/// `inner` for the leaves whose path is included; the updates of the others pass as they are.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let clip = masked(|path| path.ends_with("weight"), clip(0.1));
/// let optimizer = chain([clip, sgd(1.0)]);
/// # let x = Tensor::from(0.0);
/// # assert_eq!(optimizer.update(&x, Tensor::from(-2.0), optimizer.init(&x)).0.item(), 2.0);
/// ```
pub fn masked(include: impl Fn(&str) -> bool + Send + Sync + 'static, inner: Optimizer) -> Optimizer {
    partition(move |path| usize::from(!include(path)), [inner, chain([])])
}

/// Every `every` updates one of `inner`, by the mean of their gradients. In between the weights and the state
/// of `inner` stay bit for bit as they are; the choice is made on the device.
///
/// Schedules of `inner` count its own updates. A loss that it watches is the mean too.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let optimizer = multi_steps(2, sgd(1.0));
/// let x = Tensor::from(0.0);
/// let (x, state) = optimizer.update(&x, Tensor::from(1.0), optimizer.init(&x));
/// assert_eq!(x.item(), 0.0);
/// let (x, _) = optimizer.update(&x, Tensor::from(3.0), state);
/// assert_eq!(x.item(), -2.0);
/// ```
pub fn multi_steps(every: impl Into<Tensor>, inner: Optimizer) -> Optimizer {
    one(Part::Accumulate(Accumulate { every: Hyper::new(every), inner }))
}

/// `inner`, unless a gradient or what `inner` makes of it is infinite or NaN: then the weights and the state
/// of `inner` stay bit for bit, and the update is counted.
///
/// `state.get("skipped")` is their number, `state.get("skipped_in_a_row")` that since the last good one: where
/// it grows, training is over.
pub fn apply_if_finite(inner: Optimizer) -> Optimizer {
    one(Part::SkipNonFinite(SkipNonFinite { inner }))
}

/// Scales updates by s, 1 at first and `factor s` whenever the loss was for `patience` updates in a row not
/// below `(1 - rtol)` times the best, rtol 1e-4; see [`Optimizer::cooldown`], [`Optimizer::min_scale`] and
/// [`Optimizer::plateau_rtol`].
///
/// It stands behind a rule, `chain([adam(1e-3), reduce_on_plateau(0.1, 10)])`, since most rules undo a scale
/// of gradients. The loss comes by [`Optimizer::update_with_value`]: that of the batch, or a smoothed one, or
/// the last held-out loss. `state.get("scale")` is s.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let optimizer = chain([sgd(1.0), reduce_on_plateau(0.5, 1)]);
/// let (mut x, mut state) = (Tensor::from(0.0), optimizer.init(&Tensor::from(0.0)));
/// for loss in [3.0, 3.0] {
///     (x, state) = optimizer.update_with_value(&x, Tensor::from(-1.0), state, &Tensor::from(loss));
/// }
/// assert_eq!((x.item(), state.get("scale").unwrap().item()), (1.5, 0.5));
/// ```
pub fn reduce_on_plateau(factor: impl Into<Tensor>, patience: impl Into<Tensor>) -> Optimizer {
    one(Part::Plateau(Plateau {
        factor: Hyper::new(factor),
        patience: Hyper::new(patience),
        rtol: Hyper::new(1e-4),
        cooldown: Hyper::new(0.0),
        min_scale: Hyper::new(0.0),
    }))
}

/// `inner` with its hyper-parameters, those of schedules too, as leaves of the state: `hyper.2.rate`,
/// `hyper.0.beta1`. They may be changed between updates, and are saved and restored with the state. What the
/// optimizer says after the state was made is not looked at.
///
/// # Examples
/// ```
/// use flowline::{optim::*, prelude::*};
/// let optimizer = inject_hyperparams(sgd(1.0));
/// let x = Tensor::from(0.0);
/// let mut state = optimizer.init(&x);
/// state.set("rate", 0.25);
/// assert_eq!(optimizer.update(&x, Tensor::from(-1.0), state).0.item(), 0.25);
/// ```
pub fn inject_hyperparams(inner: Optimizer) -> Optimizer {
    one(Part::Inject(Inject { inner }))
}
