//! The named optimizers: builders that have setters only for their own hyper-parameters, so that a setting of
//! another rule does not compile.
//!
//! Each builder is a rule for the direction, weight decay, in LAMB a trust ratio, and a learning rate. The parts
//! other than the trust ratio are also available alone; all formulas are next to their code. Defaults are Optax's.
//! The [`Optimizer`] that a builder returns has no setters.
//!
//! Alternatives considered: setters on the chain that search for their part (a setting of another rule fails
//! only at run time, if at all), and one struct with all hyper-parameters (each rule ignores most of them).

use super::adam::{ScaleByAdam, scale_by_adam};
use super::belief::{ScaleByBelief, scale_by_belief};
use super::decay::DecayWeights;
use super::groups::Include;
use super::hyper::{Hyper, meaning};
use super::lion::{ScaleByLion, scale_by_lion};
use super::momentum::{ScaleByMomentum, scale_by_momentum};
use super::radam::{ScaleByRadam, scale_by_radam};
use super::rate::scale_by_learning_rate;
use super::rms::{ScaleByRms, ScaleByRss, scale_by_rms, scale_by_rss};
use super::trust::TrustRatio;
use super::{Optimizer, Schedule, chain};
use crate::tensor::Tensor;
use std::sync::Arc;

/// `p += -r (u + weight_decay p)`, where u is the direction.
#[derive(Clone, Debug)]
struct Descent<D> {
    direction: D,
    decay: DecayWeights,
    rate: Schedule,
}

/// Rules: the direction, the default weight decay, the setters of the direction, and a part between decay and
/// rate.
macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $rule:ident($direction:ty = $default:expr, $decay:expr) { $($setter:ident),* } $(then $then:expr)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $rule(Descent<$direction>);

        impl $rule {
            /// The rule with its defaults. The learning rate is a number, a tensor or a [`Schedule`].
            pub fn new(rate: impl Into<Schedule>) -> $rule {
                $rule(Descent { direction: $default, decay: DecayWeights::new($decay), rate: rate.into() })
            }

            $(
                #[doc = meaning!($setter)]
                #[track_caller]
                pub fn $setter(mut self, $setter: impl Into<Tensor>) -> $rule {
                    self.0.direction = self.0.direction.$setter($setter);
                    self
                }
            )*

            /// Builds the optimizer.
            pub fn build(self) -> Optimizer {
                let Descent { direction, decay, rate } = self.0;
                chain((direction, decay, $($then,)? scale_by_learning_rate(rate)))
            }
        }

        impl From<$rule> for Optimizer {
            fn from(rule: $rule) -> Optimizer {
                rule.build()
            }
        }
    )*};
}

rules! {
    /// Gradient descent: `p += -r g`, optionally with momentum.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let optimizer = Sgd::new(0.1).momentum(0.9).build();
    /// let x = Tensor::from(1.0);
    /// let (x, state) = optimizer.update(&x, Tensor::from(1.0), optimizer.init(&x));
    /// let (x, _) = optimizer.update(&x, Tensor::from(1.0), state);
    /// assert!((x.item() - (1.0 - 0.1 - 0.19)).abs() < 1e-15);
    /// ```
    Sgd(ScaleByMomentum = ScaleByMomentum::none(), 0.0) {};

    /// RMSProp: decay 0.9, eps 1e-8 inside the square root.
    ///
    /// `v = decay v + (1 - decay) g^2`, `p += -r g / sqrt(v + eps)` (Tieleman and Hinton 2012, lecture 6.5). With
    /// momentum: `chain((RmsProp::new(r), scale_by_momentum(0.9)))`.
    RmsProp(ScaleByRms = scale_by_rms(), 0.0) { decay, eps };

    /// AdaGrad: the sum starts at 0.1, eps 1e-7.
    ///
    /// `s = s + g^2`, `p += -r g / sqrt(s + eps)` (Duchi, Hazan and Singer 2011, figure 1, diagonal form).
    AdaGrad(ScaleByRss = scale_by_rss(), 0.0) { initial_accumulator, eps };

    /// Adam: betas 0.9 and 0.999, eps 1e-8. [`AdamW`] is Adam with weight decay.
    ///
    /// `p += -r m' / (sqrt(v') + eps)`, where m' and v' are the bias-corrected moments (Kingma and Ba 2015,
    /// algorithm 1).
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let optimizer = Adam::new(0.05).beta2(0.99).build();
    /// let x = Tensor::from([1.0, -2.0]);
    /// let (x, _) = optimizer.update(&x, Tensor::from([0.5, -3.0]), optimizer.init(&x));
    /// assert!((x.to_vec()[0] - 0.95).abs() < 1e-8 && (x.to_vec()[1] + 1.95).abs() < 1e-8);
    /// ```
    /// A setting of another rule does not compile:
    /// ```compile_fail
    /// use flowline::nn::prelude::*;
    /// let optimizer = Adam::new(0.05).momentum(0.9);
    /// ```
    Adam(ScaleByAdam = scale_by_adam(), 0.0) { beta1, beta2, eps };

    /// [`Adam`] with decoupled weight decay, 1e-4 by default: adds `-r weight_decay p` (Loshchilov and Hutter
    /// 2019, algorithm 2).
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let rate = Schedule::cosine_decay(3e-3, 5_000).warmup(100);
    /// let optimizer = AdamW::new(rate).weight_decay(0.01).decay_where(|path| !path.ends_with("bias")).build();
    /// # let x = Tensor::from(1.0);
    /// # assert_eq!(optimizer.update(&x, x.clone(), optimizer.init(&x)).0.item(), 1.0);
    /// ```
    AdamW(ScaleByAdam = scale_by_adam(), 1e-4) { beta1, beta2, eps };

    /// [`Adam`] with Nesterov momentum: m' is `b1 m / (1 - b1^(n + 1)) + (1 - b1) g / (1 - b1^n)` (Dozat
    /// 2016, algorithm 2, with one beta1 for all updates).
    NAdam(ScaleByAdam = scale_by_adam().nesterov(), 0.0) { beta1, beta2, eps };

    /// AdaBelief: betas 0.9 and 0.999, eps 1e-16 outside the square root, eps_root 1e-16.
    ///
    /// Like [`Adam`], but with the second moment s of `g - m` instead of g. Every update adds eps_root to s
    /// itself, before bias correction (Zhuang et al. 2020, algorithm 2; Optax 0.2.8).
    AdaBelief(ScaleByBelief = scale_by_belief(), 0.0) { beta1, beta2, eps, eps_root };

    /// Rectified Adam: betas 0.9 and 0.999, eps 1e-8, threshold 5.
    ///
    /// While the second moment averages too few gradients (the first 5 updates at these betas), `p += -r m'`;
    /// then [`Adam`] times a factor that tends to 1 (Liu et al. 2020, algorithm 2). The compiled program
    /// selects the branch.
    RAdam(ScaleByRadam = scale_by_radam(), 0.0) { beta1, beta2, eps, threshold };

    /// Lion: betas 0.9 and 0.99, weight decay 1e-3.
    ///
    /// `p += -r (sign(b1 m + (1 - b1) g) + weight_decay p)`, then `m = b2 m + (1 - b2) g` (Chen et al. 2023,
    /// algorithm 2). Its updates are larger than Adam's, so use a rate that is 3 to 10 times smaller.
    Lion(ScaleByLion = scale_by_lion(), 1e-3) { beta1, beta2 };

    /// LAMB: betas 0.9 and 0.999, eps 1e-6, no weight decay.
    ///
    /// Adam's direction u, including the decay, scaled per leaf: `p += -r u |p| / |u|`, or `p += -r u` where
    /// p or u is 0 (You et al. 2020, algorithm 2).
    Lamb(ScaleByAdam = scale_by_adam().eps(1e-6), 0.0) { beta1, beta2, eps } then TrustRatio;
}

impl Sgd {
    /// Momentum b: `m = b m + g`, `p += -r m` (Polyak 1964); 0 disables it.
    #[track_caller]
    pub fn momentum(mut self, momentum: impl Into<Tensor>) -> Sgd {
        let momentum = momentum.into();
        let is_none = Hyper::new("momentum", &momentum).is_zero();
        self.0.direction = if is_none { ScaleByMomentum::none() } else { scale_by_momentum(momentum) };
        self
    }

    /// Nesterov momentum b: `m = b m + g`, `p += -r (g + b m)` (Sutskever et al. 2013, eq. 3 and 4); 0
    /// disables it.
    #[track_caller]
    pub fn nesterov(mut self, momentum: impl Into<Tensor>) -> Sgd {
        self = self.momentum(momentum);
        self.0.direction = self.0.direction.nesterov();
        self
    }
}

/// The setters of weight decay, for every rule except [`Adam`]: [`AdamW`] is Adam with weight decay.
macro_rules! decays {
    ($($rule:ident)*) => {$(
        impl $rule {
            /// Decoupled weight decay: adds `-r weight_decay p` to the rule's update. LAMB adds `weight_decay
            /// p` to its direction before scaling it. The default is 1e-4 for AdamW, 1e-3 for Lion, and 0 for
            /// the other rules.
            #[track_caller]
            pub fn weight_decay(mut self, weight_decay: impl Into<Tensor>) -> $rule {
                self.0.decay.decay = Hyper::new("weight_decay", weight_decay);
                self
            }

            /// Restricts the weight decay to leaves selected by path. By default it acts on all trained leaves.
            pub fn decay_where(mut self, include: impl Fn(&str) -> bool + Send + Sync + 'static) -> $rule {
                self.0.decay.include = Include(Some(Arc::new(include)));
                self
            }
        }
    )*};
}
decays! { Sgd RmsProp AdaGrad AdamW NAdam AdaBelief RAdam Lion Lamb }
