//! Learning rates as functions of the number of updates made.
//!
//! Every number of a schedule is a tensor. A rate that is adjusted by hand, or a number of updates that is
//! known only after training began, may be a leaf of the training state and change without a new trace.

use super::hyper::MapNumber;
use crate::array::DType;
use crate::tensor::Tensor;
use std::f64::consts::PI;

/// A learning rate as a function of the number n of updates already made (0 at the first).
#[derive(Clone, Debug)]
#[non_exhaustive]
#[doc(alias = "lr_scheduler")]
pub enum Schedule {
    /// A constant rate.
    Constant {
        /// The rate.
        rate: Tensor,
    },
    /// `start + (end - start) min(n, N) / N`
    Linear {
        /// The rate at n = 0.
        start: Tensor,
        /// N.
        updates: Tensor,
        /// The rate from n = N on.
        end: Tensor,
    },
    /// `end + (peak - end) (1 + cos(pi min(n, N) / N)) / 2`
    #[doc(alias = "CosineAnnealingLR")]
    Cosine {
        /// The rate at n = 0.
        peak: Tensor,
        /// N.
        updates: Tensor,
        /// The rate from n = N on.
        end: Tensor,
    },
    /// `rate factor^(n / N)`, clamped at `end`.
    Exponential {
        /// The rate at n = 0.
        rate: Tensor,
        /// The factor per N updates, above 0.
        factor: Tensor,
        /// N.
        updates: Tensor,
        /// The bound: a lower bound if the factor is below 1, else an upper bound.
        end: Option<Tensor>,
    },
    /// Half a cosine from `start` up to `peak` in the first 0.3 N updates (rounded down), then half a cosine
    /// down to `end`.
    OneCycle {
        /// The rate at n = 0.
        start: Tensor,
        /// The largest rate.
        peak: Tensor,
        /// N.
        updates: Tensor,
        /// The rate from n = N on.
        end: Tensor,
    },
    /// `rate` times the factor of each boundary that n has reached.
    Piecewise {
        /// The rate at n = 0.
        rate: Tensor,
        /// Pairs (n, factor).
        steps: Vec<(Tensor, Tensor)>,
    },
    /// `r(0) n / N` for n < N, then `r(n - N)`.
    Warmup {
        /// N.
        updates: Tensor,
        /// The schedule r.
        then: Box<Schedule>,
    },
    /// The first schedule until n reaches the first boundary, then the second, whose n counts from there, and
    /// so on.
    Join {
        /// The schedules, one more than there are boundaries.
        schedules: Vec<Schedule>,
        /// Numbers of updates, increasing.
        boundaries: Vec<Tensor>,
    },
}

/// The fraction of one cycle in which the rate rises, and the factors by which the peak exceeds the first and the last
/// rate.
const RISE: f64 = 0.3;
const START: f64 = 25.0;
const END: f64 = 25.0 * 1e4;

impl Schedule {
    /// The same rate at every update, a number or a tensor.
    pub fn constant(rate: impl Into<Tensor>) -> Schedule {
        Schedule::Constant { rate: rate.into() }
    }

    /// Linear from `start` to `end` over `updates` updates.
    pub fn linear(start: impl Into<Tensor>, end: impl Into<Tensor>, updates: impl Into<Tensor>) -> Schedule {
        Schedule::Linear { start: start.into(), updates: updates.into(), end: end.into() }
    }

    /// Half a cosine from `peak` to 0 over `updates` updates; numbers or tensors.
    ///
    /// # References
    /// Loshchilov and Hutter (2017), SGDR, eq. 5 with one period.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::optim::*;
    /// let rate = Schedule::cosine_decay(0.1, 100).at(&Tensor::from(50u32));
    /// assert!((rate.item() - 0.05).abs() < 1e-12);
    /// ```
    #[doc(alias("CosineAnnealingLR", "cosine_decay_schedule"))]
    pub fn cosine_decay(peak: impl Into<Tensor>, updates: impl Into<Tensor>) -> Schedule {
        Schedule::Cosine { peak: peak.into(), updates: updates.into(), end: real(0.0) }
    }

    /// `rate factor^(n / updates)`, for a factor above 0; bounded by [`Schedule::end`].
    pub fn exponential_decay(
        rate: impl Into<Tensor>,
        factor: impl Into<Tensor>,
        updates: impl Into<Tensor>,
    ) -> Schedule {
        Schedule::Exponential { rate: rate.into(), factor: factor.into(), updates: updates.into(), end: None }
    }

    /// One cycle of `updates` updates: from `peak / 25` up to `peak` in the first 30 %, then down to
    /// `peak / 250,000`, along half cosines.
    ///
    /// # References
    /// Smith and Topin (2019), Super-convergence; cosines and divisors as in Optax and fastai.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::optim::*;
    /// let rate = |n: u32| Schedule::one_cycle(0.5, 100).at(&n.into()).item();
    /// assert_eq!((rate(30), rate(100)), (0.5, 2e-6));
    /// assert!((rate(0) - 0.02).abs() < 1e-15);
    /// ```
    pub fn one_cycle(peak: impl Into<Tensor>, updates: impl Into<Tensor>) -> Schedule {
        let peak = peak.into();
        let (start, end) = (&peak / START, &peak / END);
        Schedule::OneCycle { start, peak, updates: updates.into(), end }
    }

    /// `rate`, multiplied by the factor of each pair (n, factor) once n updates were made.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::optim::*;
    /// let rate = |n: u32| Schedule::piecewise_constant(1.0, [(10, 0.5), (20, 0.5)]).at(&n.into()).item();
    /// assert_eq!([9, 10, 20].map(rate), [1.0, 0.5, 0.25]);
    /// ```
    pub fn piecewise_constant<N: Into<Tensor>, F: Into<Tensor>, const K: usize>(
        rate: impl Into<Tensor>,
        steps: [(N, F); K],
    ) -> Schedule {
        let steps = steps.into_iter().map(|(n, factor)| (n.into(), factor.into())).collect();
        Schedule::Piecewise { rate: rate.into(), steps }
    }

    /// Schedules in sequence: each starts, at its own n = 0, when the number of updates reaches its boundary.
    ///
    /// # Panics
    /// When the number of boundaries is not one less than the number of schedules.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::optim::*;
    /// let schedule = Schedule::join([Schedule::linear(0.0, 1.0, 4), Schedule::constant(0.25)], [4]);
    /// let rate = |n: u32| schedule.at(&n.into()).item();
    /// assert_eq!([0, 2, 4, 100].map(rate), [0.0, 0.5, 0.25, 0.25]);
    /// ```
    #[track_caller]
    pub fn join<N: Into<Tensor>, const S: usize, const B: usize>(
        schedules: [Schedule; S],
        boundaries: [N; B],
    ) -> Schedule {
        assert!(S > 0, "give at least one schedule");
        assert!(S == B + 1, "{S} schedules need {} boundaries, got {B}", S - 1);
        let boundaries = boundaries.into_iter().map(Into::into).collect();
        Schedule::Join { schedules: schedules.into(), boundaries }
    }

    /// Sets the final rate. The default is 0 (`cosine_decay`), `peak / 250,000` (`one_cycle`), no bound
    /// (`exponential_decay`) or the given end (`linear`). After [`Schedule::warmup`] it applies to the
    /// schedule behind the warmup, in a joined schedule to the last schedule.
    ///
    /// # Panics
    /// When that schedule is constant or piecewise constant, because these have no final rate.
    #[track_caller]
    pub fn end(mut self, rate: impl Into<Tensor>) -> Schedule {
        match &mut self {
            Schedule::Linear { end, .. } | Schedule::Cosine { end, .. } | Schedule::OneCycle { end, .. } => {
                *end = rate.into();
            }
            Schedule::Exponential { end, .. } => *end = Some(rate.into()),
            Schedule::Warmup { then, .. } => **then = (**then).clone().end(rate),
            Schedule::Join { schedules, .. } => {
                if let Some(last) = schedules.pop() {
                    schedules.push(last.end(rate));
                }
            }
            Schedule::Constant { .. } | Schedule::Piecewise { .. } => {
                panic!(
                    "a constant or piecewise constant schedule has no end: use linear, cosine_decay, exponential_decay or one_cycle"
                )
            }
        }
        self
    }

    /// Precedes the schedule with a linear rise from 0 to its first rate over `updates` updates.
    #[doc(alias = "warmup_cosine_decay_schedule")]
    pub fn warmup(self, updates: impl Into<Tensor>) -> Schedule {
        Schedule::Warmup { updates: updates.into(), then: Box::new(self) }
    }

    /// The rate after n updates: f64, of rank 0.
    pub fn at(&self, n: &Tensor) -> Tensor {
        self.real_at(&n.cast(DType::F64))
    }

    fn real_at(&self, n: &Tensor) -> Tensor {
        let f64 = |x: &Tensor| x.cast(DType::F64);
        match self {
            Schedule::Constant { rate } => f64(rate),
            Schedule::Linear { start, updates, end } => {
                let start = f64(start);
                &start + (f64(end) - &start) * share(n, updates)
            }
            Schedule::Cosine { peak, updates, end } => {
                let (peak, end) = (f64(peak), f64(end));
                &end + (peak - &end) * ((share(n, updates) * PI).cos() + 1.0) * 0.5
            }
            Schedule::Exponential { rate, factor, updates, end } => {
                let factor = f64(factor).ln();
                let rate = f64(rate) * (&factor * n / f64(updates)).exp();
                let Some(end) = end.as_ref().map(f64) else { return rate };
                factor.lt(real(0.0)).select(&rate.maximum(&end), &rate.minimum(&end))
            }
            Schedule::OneCycle { start, peak, updates, end } => {
                let (peak, updates) = (f64(peak), f64(updates));
                let up = (&updates * RISE).floor();
                let down = updates - &up;
                let rise = Schedule::Cosine { peak: f64(start), updates: up.clone(), end: peak.clone() };
                let fall = Schedule::Cosine { peak, updates: down, end: f64(end) };
                n.lt(&up).select(&rise.real_at(n), &fall.real_at(&(n - &up)))
            }
            Schedule::Piecewise { rate, steps } => steps
                .iter()
                .fold(f64(rate), |rate, (at, factor)| n.lt(f64(at)).select(&rate, &(&rate * f64(factor)))),
            Schedule::Warmup { updates, then } => {
                let updates = f64(updates);
                let rising = then.real_at(&real(0.0)) * n / updates.maximum(&real(1.0));
                n.lt(&updates).select(&rising, &then.real_at(&(n - &updates)))
            }
            Schedule::Join { schedules, boundaries } => {
                let first = schedules.first().expect("invariant: one schedule more than boundaries");
                boundaries.iter().zip(&schedules[1..]).fold(first.real_at(n), |rate, (at, next)| {
                    let at = f64(at);
                    n.lt(&at).select(&rate, &next.real_at(&(n - &at)))
                })
            }
        }
    }

    /// The same schedule with other numbers, each named `name.number`; a constant rate is named `name`.
    pub(super) fn map_numbers(&self, name: &str, f: &mut MapNumber) -> Schedule {
        let mut g = |what: &str, x: &Tensor| f(&format!("{name}.{what}"), x);
        match self {
            Schedule::Constant { rate } => Schedule::Constant { rate: f(name, rate) },
            Schedule::Linear { start, updates, end } => {
                let (start, updates) = (g("start", start), g("updates", updates));
                Schedule::Linear { start, updates, end: g("end", end) }
            }
            Schedule::Cosine { peak, updates, end } => {
                let (peak, updates) = (g("peak", peak), g("updates", updates));
                Schedule::Cosine { peak, updates, end: g("end", end) }
            }
            Schedule::Exponential { rate, factor, updates, end } => {
                let (rate, factor, updates) = (g("start", rate), g("factor", factor), g("updates", updates));
                Schedule::Exponential { rate, factor, updates, end: end.as_ref().map(|x| g("end", x)) }
            }
            Schedule::OneCycle { start, peak, updates, end } => {
                let (start, peak, updates) = (g("start", start), g("peak", peak), g("updates", updates));
                Schedule::OneCycle { start, peak, updates, end: g("end", end) }
            }
            Schedule::Piecewise { rate, steps } => {
                let rate = g("start", rate);
                let steps = steps.iter().enumerate().map(|(i, (n, factor))| {
                    (g(&format!("boundary{i}"), n), g(&format!("factor{i}"), factor))
                });
                Schedule::Piecewise { rate, steps: steps.collect() }
            }
            Schedule::Warmup { updates, then } => {
                let updates = g("warmup", updates);
                Schedule::Warmup { updates, then: Box::new(then.map_numbers(name, f)) }
            }
            Schedule::Join { schedules, boundaries } => {
                let boundaries = boundaries.iter().enumerate();
                let boundaries = boundaries.map(|(i, n)| g(&format!("boundary{i}"), n)).collect();
                let schedules = schedules.iter().enumerate();
                let schedules = schedules.map(|(i, s)| s.map_numbers(&format!("{name}.{i}"), f)).collect();
                Schedule::Join { schedules, boundaries }
            }
        }
    }
}

/// `min(n, N) / N`; an N below 1 counts as 1.
fn share(n: &Tensor, updates: &Tensor) -> Tensor {
    let updates = updates.cast(DType::F64).maximum(&real(1.0));
    n.minimum(&updates) / updates
}

fn real(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        Schedule::constant(rate)
    }
}
impl From<Tensor> for Schedule {
    fn from(rate: Tensor) -> Self {
        Schedule::constant(rate)
    }
}
impl From<&Tensor> for Schedule {
    fn from(rate: &Tensor) -> Self {
        Schedule::constant(rate)
    }
}
