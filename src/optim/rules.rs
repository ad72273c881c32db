//! The optimizers by their names: builders whose setters are their own hyper-parameters, so that another rule's setting
//! does not compile.
//!
//! Each is a rule for the direction, a decay of weights and a rate, parts that also stand alone; their formulas stand beside
//! the parts' code. Defaults are those of Optax. What a builder becomes, an [`Optimizer`], has no settings any more.
//!
//! Alternatives considered: setters of the chain that look for the part they mean (another rule's setting is found when the
//! program runs, if at all), and one struct with every hyper-parameter (most of them ignored by most rules).

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

/// `p += -r (u + weight_decay p)` with u of the direction.
#[derive(Clone, Debug)]
struct Descent<D> {
    direction: D,
    decay: DecayWeights,
    rate: Schedule,
}

/// Rules: the direction and weight decay by default, the setters of the direction, what stands between decay and rate.
macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $rule:ident($direction:ty = $default:expr, $decay:expr) { $($setter:ident),* } $(then $then:expr)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $rule(Descent<$direction>);

        impl $rule {
            /// The rule with its defaults, at a rate: a number, a tensor, or a [`Schedule`].
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

            /// The optimizer.
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
    /// Gradient descent: `p += -r g`, with or without a momentum.
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

    /// RMSProp: decay 0.9, eps 1e-8 under the root.
    ///
    /// `v = decay v + (1 - decay) g^2`, `p += -r g / sqrt(v + eps)` (Tieleman and Hinton 2012, lecture 6.5). With
    /// momentum: `chain((RmsProp::new(r), scale_by_momentum(0.9)))`.
    RmsProp(ScaleByRms = scale_by_rms(), 0.0) { decay, eps };

    /// AdaGrad: the sum starts at 0.1, eps 1e-7.
    ///
    /// `s = s + g^2`, `p += -r g / sqrt(s + eps)` (Duchi, Hazan and Singer 2011, figure 1, diagonal form).
    AdaGrad(ScaleByRss = scale_by_rss(), 0.0) { initial_accumulator, eps };

    /// Adam: betas 0.9 and 0.999, eps 1e-8. With a decay of weights it is [`AdamW`].
    ///
    /// `p += -r m' / (sqrt(v') + eps)` with m' and v' the moments freed of their bias (Kingma and Ba 2015,
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

    /// [`Adam`] with a decoupled weight decay, 1e-4 where none is given: `p += -r weight_decay p` beside it
    /// (Loshchilov and Hutter 2019, algorithm 2).
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

    /// [`Adam`] with Nesterov's momentum: m' is `b1 m / (1 - b1^(n + 1)) + (1 - b1) g / (1 - b1^n)` (Dozat 2016,
    /// algorithm 2, with one beta1 for all updates).
    NAdam(ScaleByAdam = scale_by_adam().nesterov(), 0.0) { beta1, beta2, eps };

    /// AdaBelief: betas 0.9 and 0.999, eps 1e-16 beside the root, eps_root 1e-16.
    ///
    /// As [`Adam`] with the second moment s of `g - m` instead of g; every update adds eps_root to s itself, before the
    /// bias is corrected (Zhuang et al. 2020, algorithm 2; Optax 0.2.8).
    AdaBelief(ScaleByBelief = scale_by_belief(), 0.0) { beta1, beta2, eps, eps_root };

    /// Rectified Adam: betas 0.9 and 0.999, eps 1e-8, threshold 5.
    ///
    /// While the second moment is of too few gradients (the first 5 at these betas), `p += -r m'`; then [`Adam`]
    /// times a factor that tends to 1 (Liu et al. 2020, algorithm 2). The branch is chosen on the device.
    RAdam(ScaleByRadam = scale_by_radam(), 0.0) { beta1, beta2, eps, threshold };

    /// Lion: betas 0.9 and 0.99, weight decay 1e-3.
    ///
    /// `p += -r (sign(b1 m + (1 - b1) g) + weight_decay p)`, then `m = b2 m + (1 - b2) g` (Chen et al. 2023,
    /// algorithm 2). Its updates are larger than Adam's: rates are 3 to 10 times smaller.
    Lion(ScaleByLion = scale_by_lion(), 1e-3) { beta1, beta2 };

    /// LAMB: betas 0.9 and 0.999, eps 1e-6, no weight decay.
    ///
    /// Adam's direction u, the decay included, scaled leaf by leaf: `p += -r u |p| / |u|` (You et al. 2020,
    /// algorithm 2).
    Lamb(ScaleByAdam = scale_by_adam().eps(1e-6), 0.0) { beta1, beta2, eps } then TrustRatio;
}

impl Sgd {
    /// Momentum b: `m = b m + g`, `p += -r m` (Polyak 1964); 0 is none.
    #[track_caller]
    pub fn momentum(mut self, momentum: impl Into<Tensor>) -> Sgd {
        let momentum = momentum.into();
        let is_none = Hyper::new("momentum", &momentum).is_zero();
        self.0.direction = if is_none { ScaleByMomentum::none() } else { scale_by_momentum(momentum) };
        self
    }

    /// Nesterov's momentum b: `m = b m + g`, `p += -r (g + b m)` (Sutskever et al. 2013, eq. 3 and 4); 0 is none.
    #[track_caller]
    pub fn nesterov(mut self, momentum: impl Into<Tensor>) -> Sgd {
        self = self.momentum(momentum);
        self.0.direction = self.0.direction.nesterov();
        self
    }
}

/// Weight decay, of every rule but [`Adam`], which is [`AdamW`] with it.
macro_rules! decays {
    ($($rule:ident)*) => {$(
        impl $rule {
            /// The decoupled weight decay: `p += -r weight_decay p` beside the rule.
            #[track_caller]
            pub fn weight_decay(mut self, weight_decay: impl Into<Tensor>) -> $rule {
                self.0.decay.decay = Hyper::new("weight_decay", weight_decay);
                self
            }

            /// Which leaves the weight decay acts on, by their paths; all that are trained where nothing is said.
            pub fn decay_where(mut self, include: impl Fn(&str) -> bool + Send + Sync + 'static) -> $rule {
                self.0.decay.include = Include(Some(Arc::new(include)));
                self
            }
        }
    )*};
}
decays! { Sgd RmsProp AdaGrad AdamW NAdam AdaBelief RAdam Lion Lamb }
