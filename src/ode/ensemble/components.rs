//! `Components`: a state of lanes whose number of components is a run-time value.
//!
//! The loop over an ensemble is compiled once, with this crate, for this type of state. Sums add the same
//! terms in the same order as those of [arrays](crate::ode::states), whose size is a compile-time constant.
//! Both therefore give the same bits.

use crate::ode::states::{MOST_TERMS, PARTIAL_SUMS};
use crate::ode::{Clock, LaneNumber, Real, Scheme, Stages, State, StiffStages, Tolerance};
use crate::simd::Level;

/// The states of as many trajectories as `R` has lanes, component by component.
#[derive(Clone, Debug)]
pub struct Components<R>(pub(super) Box<[R]>);

/// Keeps the optimizer from vectorizing a loop over components of lanes. Each pass computes with vectors of lanes
/// already; a loop over several passes at once would gather lanes with a stride, in twice the code.
#[inline(always)]
fn one_at_a_time<R: Real>() {
    if R::LOCKSTEP {
        std::hint::black_box(());
    }
}

/// The terms of a weighted sum of stages, without those of weight 0.
struct Terms<'a, K: ?Sized> {
    weights: &'a [f64],
    stages: &'a K,
    /// The stages whose weight is not 0. A reference, because a copy of bytes that were just written takes some processors
    /// longer than the sum.
    places: &'a [u8; MOST_TERMS],
    count: usize,
}

/// Calls a macro with the index of each term that a method can have.
macro_rules! each_term {
    ($f:ident) => {
        $f!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
}

impl<'a, K: ?Sized> Terms<'a, K> {
    /// The terms of sums. If the weights are [compile-time constants](Stages::KNOWN), the compiler evaluates this
    /// function.
    #[inline(always)]
    fn new<R: Real>(weights: &'a [f64], stages: &'a K, places: &'a mut [u8; MOST_TERMS]) -> Self
    where
        K: Stages<Components<R>>,
    {
        let mut count = 0;
        macro_rules! push {
            ($($i:expr)*) => { $(
                if $i < weights.len() && weights[$i] != 0.0 {
                    places[count] = $i as u8;
                    count += 1;
                }
            )* };
        }
        if K::KNOWN {
            each_term!(push);
        } else {
            for i in 0..weights.len() {
                push!(i);
            }
        }
        Terms { weights, stages, places, count }
    }

    /// The weight of term i, and component j of its stage.
    #[inline(always)]
    fn at<R: Real>(&self, i: usize, j: usize) -> (f64, R)
    where
        K: Stages<Components<R>>,
    {
        let place = usize::from(self.places[i]);
        (self.weights[place], self.stages.stage(place).0[j])
    }

    /// `sum_i a_i k_i[j]`, added from left to right. There must be at least one term.
    #[inline(always)]
    fn sum<R: Real>(&self, j: usize) -> R
    where
        K: Stages<Components<R>>,
    {
        let (weight, k) = self.at(0, j);
        let mut sum: R = k.scale(weight);
        macro_rules! add {
            ($($i:expr)*) => { $(
                if $i > 0 && $i < self.count {
                    let (weight, k): (f64, R) = self.at($i, j);
                    sum = k.scale_add(K::FUSED, weight, sum);
                }
            )* };
        }
        if K::KNOWN {
            each_term!(add);
        } else {
            for i in 1..self.count {
                add!(i);
            }
        }
        sum
    }
}

impl<R: Real> State for Components<R> {
    type Clock = R::Clock;

    #[inline(always)]
    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &R::Clock, a: &[f64], k: &K) {
        let n = self.0.len();
        let mut places = [0; MOST_TERMS];
        let (terms, y) = (Terms::new(a, k, &mut places), &y.0[..n]);
        if terms.count == 0 {
            return self.0.copy_from_slice(y);
        }
        for j in 0..n {
            one_at_a_time::<R>();
            self.0[j] = terms.sum(j).scale_by_add(K::FUSED, dt, y[j]);
        }
    }

    #[inline(always)]
    fn error_ratio<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &R::Clock,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> R::Clock {
        let n = self.0.len();
        let mut places = [0; MOST_TERMS];
        let (terms, y0, y1) = (Terms::new(b, k, &mut places), &y0.0[..n], &y1.0[..n]);
        let mut total = dt.like(0.0);
        if terms.count == 0 {
            return total;
        }
        // Adds each partial sum to the total when it is complete, so that no array of partial sums is needed.
        for first in 0..n.min(PARTIAL_SUMS) {
            let mut partial = dt.like(0.0);
            for j in (first..n).step_by(PARTIAL_SUMS) {
                one_at_a_time::<R>();
                let (rtol, atol) = tol.at(j);
                let error: R = terms.sum(j);
                let error = error.scale_by(dt);
                partial = partial.add(&error.squared_ratio(y0[j], y1[j], rtol, atol));
            }
            total = total.add(&partial);
        }
        total.mul(&total.like(1.0 / n.max(1) as f64)).sqrt()
    }

    #[inline(always)]
    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &R::Clock,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) {
        let mut places = [0; MOST_TERMS];
        let terms = Terms::new(b, k, &mut places);
        for (j, out) in self.0.iter_mut().enumerate() {
            one_at_a_time::<R>();
            let (rtol, atol) = tol.at(j);
            let sum = if terms.count == 0 { y0.0[j].scale(0.0) } else { terms.sum(j) };
            let error = sum.scale_by(dt);
            *out = error.ratio(y0.0[j], y1.0[j], rtol, atol);
        }
    }

    fn num_components(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn keep(&mut self, m: &<R::Clock as Clock>::Mask, new: &mut Self) {
        for (out, &new) in self.0.iter_mut().zip(&new.0) {
            one_at_a_time::<R>();
            *out = R::select(m, new, *out);
        }
    }

    #[inline(always)]
    fn first_non_finite(&self, like: &R::Clock) -> R::Clock {
        let mut first = like.like(-1.0);
        for j in (0..self.0.len()).rev() {
            one_at_a_time::<R>();
            first = R::Clock::select(&self.0[j].is_finite(), &first, &like.like(j as f64));
        }
        first
    }
}

/// A state whose components are lanes.
pub(super) trait LaneState<T>: State {
    /// A state of `n` components, all 0 in all lanes.
    fn zeros(n: usize) -> Self;
    /// Component `j` in one lane.
    fn lane(&self, j: usize, lane: usize) -> T;
    /// Sets component `j` in one lane.
    fn set_lane(&mut self, j: usize, lane: usize, x: T);
    /// The memory that a stiff method needs for `n` components; `None` for an explicit method. Arrays return
    /// `None`, because their attempts are compiled for explicit methods only.
    fn stiff(_scheme: &Scheme<Self>, _n: usize, _level: Level) -> Option<Box<dyn StiffStages<Self>>> {
        None
    }
}

impl<T, R: LaneNumber<T>> LaneState<T> for Components<R> {
    fn zeros(n: usize) -> Self {
        Components(vec![R::from(0.0); n].into())
    }
    fn lane(&self, j: usize, lane: usize) -> T {
        self.0[j].lane(lane)
    }
    fn set_lane(&mut self, j: usize, lane: usize, x: T) {
        self.0[j].set_lane(lane, x);
    }
    fn stiff(scheme: &Scheme<Self>, n: usize, level: Level) -> Option<Box<dyn StiffStages<Self>>> {
        super::stiff::memory_of(scheme, n, level)
    }
}

impl<T, R: LaneNumber<T>, const N: usize> LaneState<T> for [R; N] {
    fn zeros(_n: usize) -> Self {
        [R::from(0.0); N]
    }
    fn lane(&self, j: usize, lane: usize) -> T {
        self[j].lane(lane)
    }
    fn set_lane(&mut self, j: usize, lane: usize, x: T) {
        self[j].set_lane(lane, x);
    }
}
