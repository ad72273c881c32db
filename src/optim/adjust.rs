//! Hyper-parameters other than the defaults. A method adjusts the last part that has what it names.

use super::Optimizer;
use super::groups::Include;
use super::hyper::Hyper;
use super::moments::Moments;
use super::part::Part;
use super::plateau::Plateau;
use crate::tensor::Tensor;
use std::sync::Arc;

/// The moments of a part that has two.
fn moments(part: &mut Part) -> Option<&mut Moments> {
    match part {
        Part::Adam(x) => Some(&mut x.moments),
        Part::Belief(x) => Some(&mut x.moments),
        Part::Radam(x) => Some(&mut x.moments),
        _ => None,
    }
}

impl Optimizer {
    #[track_caller]
    fn adjust<'a, T>(&'a mut self, what: &str, find: impl Fn(&'a mut Part) -> Option<T>) -> T {
        let found = self.parts.iter_mut().rev().find_map(find);
        found.unwrap_or_else(|| panic!("no part of this optimizer has {what}"))
    }

    /// The decoupled weight decay: `p += -r weight_decay p` beside the rule.
    ///
    /// # Panics
    /// When no part is an optimizer that is made of a rule and a rate, or `add_decayed_weights`.
    #[track_caller]
    pub fn weight_decay(mut self, x: impl Into<Tensor>) -> Optimizer {
        *self.adjust("a weight decay", |part| match part {
            Part::DecayWeights(x) => Some(&mut x.decay),
            _ => None,
        }) = Hyper::new(x);
        self
    }

    /// Which leaves the weight decay acts on, by their paths.
    ///
    /// # Panics
    /// As [`Optimizer::weight_decay`].
    ///
    /// # Examples
    /// ```
    /// use flowline::optim::*;
    /// let optimizer = adamw(1e-3).weight_decay(0.01).decay_where(|path| !path.ends_with("bias"));
    /// ```
    #[track_caller]
    pub fn decay_where(mut self, include: impl Fn(&str) -> bool + Send + Sync + 'static) -> Optimizer {
        *self.adjust("a weight decay", |part| match part {
            Part::DecayWeights(x) => Some(&mut x.include),
            _ => None,
        }) = Include(Some(Arc::new(include)));
        self
    }

    /// The decay rates of the moments.
    ///
    /// # Panics
    /// When no part is a form of Adam, or Lion.
    #[track_caller]
    pub fn betas(mut self, beta1: impl Into<Tensor>, beta2: impl Into<Tensor>) -> Optimizer {
        let (first, second) = self.adjust("betas", |part| match part {
            Part::Lion(x) => Some((&mut x.beta1, &mut x.beta2)),
            part => moments(part).map(|x| (&mut x.beta1, &mut x.beta2)),
        });
        (*first, *second) = (Hyper::new(beta1), Hyper::new(beta2));
        self
    }

    /// What keeps a root in a denominator from zero: beside it in forms of Adam, under it in RMSProp and
    /// AdaGrad.
    ///
    /// # Panics
    /// When no part is one of these.
    #[track_caller]
    pub fn eps(mut self, eps: impl Into<Tensor>) -> Optimizer {
        *self.adjust("an eps", |part| match part {
            Part::Rms(x) => Some(&mut x.eps),
            Part::Rss(x) => Some(&mut x.eps),
            part => moments(part).map(|x| &mut x.eps),
        }) = Hyper::new(eps);
        self
    }

    /// What AdaBelief adds to its second moment at every update.
    ///
    /// # Panics
    /// When no part is `adabelief`.
    #[track_caller]
    pub fn eps_root(mut self, eps: impl Into<Tensor>) -> Optimizer {
        *self.adjust("an eps_root", |part| match part {
            Part::Belief(x) => Some(&mut x.eps_root),
            _ => None,
        }) = Hyper::new(eps);
        self
    }

    /// The decay rate of RMSProp's average.
    ///
    /// # Panics
    /// When no part is `rmsprop`.
    #[track_caller]
    pub fn decay(mut self, x: impl Into<Tensor>) -> Optimizer {
        *self.adjust("a decay", |part| match part {
            Part::Rms(x) => Some(&mut x.decay),
            _ => None,
        }) = Hyper::new(x);
        self
    }

    /// What AdaGrad's sum of squares is before the first update.
    ///
    /// # Panics
    /// When no part is `adagrad`.
    #[track_caller]
    pub fn initial_accumulator(mut self, x: impl Into<Tensor>) -> Optimizer {
        *self.adjust("an initial accumulator", |part| match part {
            Part::Rss(x) => Some(&mut x.initial),
            _ => None,
        }) = Hyper::new(x);
        self
    }

    /// The momentum of gradient descent: `m = momentum m + g`, `p += -r m`; 0 is none.
    ///
    /// # Panics
    /// When no part is `sgd`.
    #[track_caller]
    pub fn momentum(mut self, x: impl Into<Tensor>) -> Optimizer {
        *self.adjust("a momentum", |part| match part {
            Part::Momentum(x) => Some(&mut x.decay),
            _ => None,
        }) = Some(Hyper::new(x)).filter(|x| !x.is_zero());
        self
    }

    /// Nesterov's form of the momentum, of gradient descent or Adam.
    ///
    /// # Panics
    /// When no part is `sgd` or `adam`.
    #[track_caller]
    pub fn nesterov(mut self) -> Optimizer {
        *self.adjust("a momentum", |part| match part {
            Part::Momentum(x) => Some(&mut x.nesterov),
            Part::Adam(x) => Some(&mut x.nesterov),
            _ => None,
        }) = true;
        self
    }

    /// The length above which RAdam uses the second moment.
    ///
    /// # Panics
    /// When no part is `radam`.
    #[track_caller]
    pub fn threshold(mut self, x: impl Into<Tensor>) -> Optimizer {
        *self.adjust("a threshold", |part| match part {
            Part::Radam(x) => Some(&mut x.threshold),
            _ => None,
        }) = Hyper::new(x);
        self
    }

    #[track_caller]
    fn plateau(&mut self) -> &mut Plateau {
        self.adjust("a plateau to watch for", |part| match part {
            Part::Plateau(x) => Some(x),
            _ => None,
        })
    }

    /// For how many updates after a reduction `reduce_on_plateau` does not count; 0 where none is given.
    ///
    /// # Panics
    /// When no part is `reduce_on_plateau`.
    #[track_caller]
    pub fn cooldown(mut self, updates: impl Into<Tensor>) -> Optimizer {
        self.plateau().cooldown = Hyper::new(updates);
        self
    }

    /// The scale below which `reduce_on_plateau` does not go; 0 where none is given.
    ///
    /// # Panics
    /// When no part is `reduce_on_plateau`.
    #[track_caller]
    pub fn min_scale(mut self, x: impl Into<Tensor>) -> Optimizer {
        self.plateau().min_scale = Hyper::new(x);
        self
    }

    /// By which part of itself the best loss has to be beaten for `reduce_on_plateau`.
    ///
    /// # Panics
    /// When no part is `reduce_on_plateau`.
    #[track_caller]
    pub fn plateau_rtol(mut self, x: impl Into<Tensor>) -> Optimizer {
        self.plateau().rtol = Hyper::new(x);
        self
    }
}
