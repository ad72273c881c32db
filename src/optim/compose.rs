//! Optimizers built from other optimizers, and the parts before and after a rule.

use super::Optimizer;
use super::accumulate::Accumulate;
use super::clip::{ClipGlobalNorm, ClipValue};
use super::groups::{Freeze, GroupOf, Partition};
use super::hyper::Hyper;
use super::inject::Inject;
use super::skip::SkipNonFinite;
use crate::tensor::Tensor;
use std::sync::Arc;

/// A sequence of optimizers: a tuple of up to eight rules, parts and [`Optimizer`]s, or a `Vec` of one type
/// when the length is known only at run time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of optimizers",
    label = "pass a tuple of rules and parts: (clip_by_global_norm(1.0), Adam::new(1e-3))"
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

/// Applies optimizers in sequence: each receives the updates of the previous one.
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

/// Scales all gradients by one factor so that their joint 2-norm is at most `max`. Smaller gradients are
/// unchanged.
///
/// # References
/// Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks, algorithm 1.
#[track_caller]
#[doc(alias = "clip_grad_norm")]
pub fn clip_by_global_norm(max: impl Into<Tensor>) -> Optimizer {
    ClipGlobalNorm { max: Hyper::new("max", max) }.into()
}

/// Clips every element of the gradients to `[-max, max]`; NaN stays NaN.
#[track_caller]
pub fn clip(max: impl Into<Tensor>) -> Optimizer {
    ClipValue { max: Hyper::new("max", max) }.into()
}

/// Keeps the weights unchanged; use it for a group of a [`partition`].
pub fn set_to_zero() -> Optimizer {
    Freeze.into()
}

/// Applies one optimizer per group of leaves; `group_of` returns the group index of a leaf from its path,
/// counted from 0 in the order of `groups`. [`Optimizer::init`] and updates panic if there is no group of
/// this index.
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

/// Applies `inner` to the leaves whose path is included; other updates pass through unchanged.
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

/// Accumulates gradients: every `every` updates, applies `inner` once to their mean. In between, the weights
/// and the state of `inner` keep their bits. The choice is made inside the compiled program.
///
/// Schedules of `inner` count its own updates. A loss that `inner` reads is averaged too.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::accumulate_gradients;
/// let optimizer = accumulate_gradients(2, Sgd::new(1.0));
/// let x = Tensor::from(0.0);
/// let (x, state) = optimizer.update(&x, Tensor::from(1.0), optimizer.init(&x));
/// assert_eq!(x.item(), 0.0);
/// let (x, _) = optimizer.update(&x, Tensor::from(3.0), state);
/// assert_eq!(x.item(), -2.0);
/// ```
#[track_caller]
#[doc(alias = "MultiSteps")]
pub fn accumulate_gradients(every: impl Into<Tensor>, inner: impl Into<Optimizer>) -> Optimizer {
    Accumulate { every: Hyper::new("every", every), inner: inner.into() }.into()
}

/// Applies `inner` unless a gradient or an update of `inner` is infinite or NaN. In that case the weights and
/// the state of `inner` keep their bits, and the skipped update is counted.
///
/// `state.get("skipped")` is the number of skipped updates, `state.get("skipped_in_a_row")` the number since
/// the last finite one. If `skipped_in_a_row` keeps growing, training has failed.
pub fn apply_if_finite(inner: impl Into<Optimizer>) -> Optimizer {
    SkipNonFinite { inner: inner.into() }.into()
}

/// Stores the hyper-parameters of `inner`, including those of schedules, as leaves of the state:
/// `hyper.0.beta1` and `hyper.2.rate` for [`Adam`](super::Adam). They may be changed between updates, and are
/// saved and restored with the state. The numbers in `inner` itself are only initial values. The
/// `initial_accumulator` of AdaGrad is not stored, because only [`Optimizer::init`] reads it.
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
