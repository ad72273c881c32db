//! `Sides`: on which side of a discontinuity the vector field is evaluated.
//!
//! An attempt has a counter of passed stops, so it needs no search. A replay has only the two times of a
//! step, so it searches.

use super::Clock;

/// t0, the stops and t1 in ascending order, and where the vector field is evaluated next to each: an ulp below
/// and above a discontinuity, and exactly at any other of these times. Empty without discontinuities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sides<'a> {
    /// The times.
    pub at: &'a [f64],
    /// Where the vector field is evaluated for a step on the lower side of each time.
    pub below: &'a [f64],
    /// Where the vector field is evaluated for a step on the upper side of each time.
    pub above: &'a [f64],
}

impl Sides<'_> {
    /// No discontinuity.
    pub const NONE: Sides<'static> = Sides { at: &[], below: &[], above: &[] };

    /// Whether there is no discontinuity.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Where the vector field is evaluated for a step that starts or ends at `t`: if `t` is entry `index`,
    /// the entry of `above` where the mask `above` holds, else of `below`; otherwise `t` itself.
    #[inline(always)]
    pub(super) fn beside<C: Clock>(&self, t: &C, index: &C, above: &C::Mask) -> C {
        let at = index.lookup(self.at);
        let here = C::and(&t.le(&at), &at.le(t));
        let side = C::select(above, &index.lookup(self.above), &index.lookup(self.below));
        C::select(&here, &side, t)
    }

    /// The index of the entry at t, or of the last entry below t.
    #[inline(always)]
    pub(super) fn index_of<C: Clock>(&self, t: &C) -> C {
        t.count_up_to(self.at).sub(&t.like(1.0)).max(&t.like(0.0))
    }

    /// The index of the n-th of t0, the stops and t1, counted from 0 in the order of the solve. `ahead`:
    /// whether t increases.
    #[inline(always)]
    pub(super) fn nth<C: Clock>(&self, n: &C, ahead: &C::Mask) -> C {
        C::select(ahead, n, &n.like(self.at.len() as f64 - 1.0).sub(n))
    }
}

/// An owned [`Sides`].
#[derive(Clone, Debug, Default)]
pub struct OwnSides {
    at: Vec<f64>,
    below: Vec<f64>,
    above: Vec<f64>,
}

impl OwnSides {
    /// The sides for t0, `stops` and t1. `stops` are in the order of the solve, and include the
    /// discontinuities strictly between t0 and t1.
    pub(crate) fn new(stops: &[f64], discontinuities: &[f64], (t0, t1): (f64, f64)) -> OwnSides {
        if discontinuities.is_empty() {
            return OwnSides::default();
        }
        let mut at: Vec<f64> = [&[t0], stops, &[t1]].concat();
        let mut discontinuities = discontinuities.to_vec();
        for times in [&mut at, &mut discontinuities] {
            // `at` is monotone, so reversing it is enough. The discontinuities may be in any order.
            if times.first() > times.last() {
                times.reverse();
            }
            times.sort_by(f64::total_cmp);
        }
        let mut next = 0;
        let mut sides = OwnSides { below: at.clone(), above: at.clone(), at };
        for (i, &t) in sides.at.iter().enumerate() {
            while discontinuities.get(next).is_some_and(|discontinuity| *discontinuity < t) {
                next += 1;
            }
            if discontinuities.get(next) == Some(&t) {
                (sides.below[i], sides.above[i]) = (t.next_down(), t.next_up());
            }
        }
        sides
    }

    /// The sides for vector fields that receive the time as an f32: next to a discontinuity, the nearest numbers of f32.
    pub(crate) fn in_single(mut self) -> OwnSides {
        for (i, &t) in self.at.iter().enumerate() {
            if self.above[i] > t {
                let near = t as f32;
                let [is_below, is_above] = [f64::from(near) < t, f64::from(near) > t];
                self.below[i] = f64::from(if is_below { near } else { near.next_down() });
                self.above[i] = f64::from(if is_above { near } else { near.next_up() });
            }
        }
        self
    }

    /// The borrowed form.
    pub(crate) fn view(&self) -> Sides<'_> {
        Sides { at: &self.at, below: &self.below, above: &self.above }
    }
}
