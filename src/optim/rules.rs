//! The optimizers by their names. Each is a rule for the direction, a decay of weights and a rate, parts that
//! also stand alone; their formulas stand beside the parts' code. Defaults are those of Optax.

use super::adam::Adam;
use super::belief::Belief;
use super::decay::DecayWeights;
use super::groups::Include;
use super::hyper::Hyper;
use super::lion::Lion;
use super::moments::Moments;
use super::momentum::Momentum;
use super::part::Part;
use super::radam::Radam;
use super::rate::ScaleByRate;
use super::rms::{Rms, Rss};
use super::trust::TrustRatio;
use super::{Optimizer, Schedule, chain};
use crate::tensor::Tensor;

pub(super) fn one(part: Part) -> Optimizer {
    Optimizer { parts: vec![part] }
}

/// `p += -r (u + weight_decay p)` with u of the rule.
fn descent(rule: Optimizer, weight_decay: f64, rate: impl Into<Schedule>) -> Optimizer {
    chain([rule, add_decayed_weights(weight_decay), scale_by_learning_rate(rate)])
}

/// Gradient descent: `p += -r g`.
///
/// With [`momentum`](Optimizer::momentum) b it is `m = b m + g`, `p += -r m` (Polyak 1964), with
/// [`nesterov`](Optimizer::nesterov) too `p += -r (g + b m)` (Sutskever et al. 2013, eq. 3 and 4).
pub fn sgd(rate: impl Into<Schedule>) -> Optimizer {
    descent(one(Part::Momentum(Momentum { decay: None, nesterov: false })), 0.0, rate)
}

/// RMSProp: decay 0.9, eps 1e-8 under the root.
///
/// `v = decay v + (1 - decay) g^2`, `p += -r g / sqrt(v + eps)` (Tieleman and Hinton 2012, lecture 6.5). With
/// momentum: `chain([rmsprop(r), scale_by_momentum(0.9)])`.
pub fn rmsprop(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_rms(), 0.0, rate)
}

/// AdaGrad: the sum starts at 0.1, eps 1e-7.
///
/// `s = s + g^2`, `p += -r g / sqrt(s + eps)` (Duchi, Hazan and Singer 2011, figure 1, diagonal form).
pub fn adagrad(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_rss(), 0.0, rate)
}

/// Adam: betas 0.9 and 0.999, eps 1e-8, no weight decay.
///
/// `p += -r m' / (sqrt(v') + eps)` with m' and v' the moments freed of their bias (Kingma and Ba 2015,
/// algorithm 1).
pub fn adam(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_adam(), 0.0, rate)
}

/// [`adam`] with a decoupled weight decay, 1e-4 where none is given: `p += -r weight_decay p` beside it
/// (Loshchilov and Hutter 2019, algorithm 2). It acts on every trained leaf unless
/// [`decay_where`](Optimizer::decay_where) says otherwise.
pub fn adamw(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_adam(), 1e-4, rate)
}

/// [`adam`] with Nesterov's momentum: m' is `b1 m / (1 - b1^(n + 1)) + (1 - b1) g / (1 - b1^n)` (Dozat 2016,
/// algorithm 2, with one beta1 for all updates).
pub fn nadam(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_adam().nesterov(), 0.0, rate)
}

/// AdaBelief: betas 0.9 and 0.999, eps 1e-16 beside the root, eps_root 1e-16.
///
/// As [`adam`] with the second moment s of `g - m` instead of g; every update adds eps_root to s itself, before the
/// bias is corrected (Zhuang et al. 2020, algorithm 2; Optax 0.2.8).
pub fn adabelief(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_belief(), 0.0, rate)
}

/// Rectified Adam: betas 0.9 and 0.999, eps 1e-8, threshold 5.
///
/// While the second moment is of too few gradients (the first 5 at these betas), `p += -r m'`; then [`adam`]
/// times a factor that tends to 1 (Liu et al. 2020, algorithm 2). The branch is chosen on the device.
pub fn radam(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_radam(), 0.0, rate)
}

/// Lion: betas 0.9 and 0.99, weight decay 1e-3.
///
/// `p += -r (sign(b1 m + (1 - b1) g) + weight_decay p)`, then `m = b2 m + (1 - b2) g` (Chen et al. 2023,
/// algorithm 2). Its updates are larger than Adam's: rates are 3 to 10 times smaller.
pub fn lion(rate: impl Into<Schedule>) -> Optimizer {
    descent(scale_by_lion(), 1e-3, rate)
}

/// LAMB: betas 0.9 and 0.999, eps 1e-6, no weight decay.
///
/// Adam's direction u, the decay included, scaled leaf by leaf: `p += -r u |p| / |u|` (You et al. 2020,
/// algorithm 2).
pub fn lamb(rate: impl Into<Schedule>) -> Optimizer {
    let trust = one(Part::TrustRatio(TrustRatio));
    chain([scale_by_adam().eps(1e-6), add_decayed_weights(0.0), trust, scale_by_learning_rate(rate)])
}

/// The direction of [`adam`]; `chain([scale_by_adam(), scale_by_learning_rate(r)])` is it.
pub fn scale_by_adam() -> Optimizer {
    one(Part::Adam(Adam { moments: Moments::new(0.9, 0.999, 1e-8), nesterov: false }))
}

/// The direction of [`adabelief`].
pub fn scale_by_belief() -> Optimizer {
    one(Part::Belief(Belief { moments: Moments::new(0.9, 0.999, 1e-16), eps_root: Hyper::new(1e-16) }))
}

/// The direction of [`radam`].
pub fn scale_by_radam() -> Optimizer {
    one(Part::Radam(Radam { moments: Moments::new(0.9, 0.999, 1e-8), threshold: Hyper::new(5.0) }))
}

/// The direction of [`rmsprop`].
pub fn scale_by_rms() -> Optimizer {
    one(Part::Rms(Rms { decay: Hyper::new(0.9), eps: Hyper::new(1e-8) }))
}

/// The direction of [`adagrad`].
pub fn scale_by_rss() -> Optimizer {
    one(Part::Rss(Rss { initial: Hyper::new(0.1), eps: Hyper::new(1e-7) }))
}

/// The direction of [`lion`].
pub fn scale_by_lion() -> Optimizer {
    one(Part::Lion(Lion { beta1: Hyper::new(0.9), beta2: Hyper::new(0.99) }))
}

/// `m = decay m + u`, which is what the next part gets; see [`sgd`].
pub fn scale_by_momentum(decay: impl Into<Tensor>) -> Optimizer {
    one(Part::Momentum(Momentum { decay: Some(Hyper::new(decay)), nesterov: false }))
}

/// `u + weight_decay p`: decoupled where it stands behind a rule and before the rate.
pub fn add_decayed_weights(weight_decay: impl Into<Tensor>) -> Optimizer {
    one(Part::DecayWeights(DecayWeights { decay: Hyper::new(weight_decay), include: Include::default() }))
}

/// `-r(n) u` with n the number of updates made before: the last part of a descent.
pub fn scale_by_learning_rate(rate: impl Into<Schedule>) -> Optimizer {
    one(Part::ScaleByRate(ScaleByRate { rate: rate.into() }))
}
