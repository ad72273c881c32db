//! `Sides`: on which side of a discontinuity the field is evaluated.
//!
//! An attempt knows how many stops it has passed and needs no search; a replay knows its two step times alone.

use super::Clock;

/// t0, the stops and t1 in ascending order, and where the field is evaluated next to each: an ulp below and above a
/// discontinuity, at any other of these times on it. Empty where there is no discontinuity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sides<'a> {
    /// The times.
    pub at: &'a [f64],
    /// Where a step that comes from below ends.
    pub below: &'a [f64],
    /// Where a step that comes from above ends.
    pub above: &'a [f64],
}

impl Sides<'_> {
    /// No discontinuity.
    pub const NONE: Sides<'static> = Sides { at: &[], below: &[], above: &[] };

    /// There is no discontinuity.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// `t`, or where the field is evaluated in its place if it is entry `index`: above it, else below it.
    #[inline(always)]
    pub(super) fn beside<C: Clock>(&self, t: &C, index: &C, above: &C::Mask) -> C {
        let at = index.lookup(self.at);
        let here = C::and(&t.le(&at), &at.le(t));
        let side = C::select(above, &index.lookup(self.above), &index.lookup(self.below));
        C::select(&here, &side, t)
    }

    /// The entry at t, or the last one below it.
    #[inline(always)]
    pub(super) fn index_of<C: Clock>(&self, t: &C) -> C {
        t.count_up_to(self.at).sub(&t.like(1.0)).max(&t.like(0.0))
    }

    /// The entry of the n-th of t0, the stops and t1 in the order of the solve.
    #[inline(always)]
    pub(super) fn nth<C: Clock>(&self, n: &C, ahead: &C::Mask) -> C {
        C::select(ahead, n, &n.like(self.at.len() as f64 - 1.0).sub(n))
    }
}

/// [`Sides`] of a solve's own.
#[derive(Clone, Debug, Default)]
pub struct OwnSides {
    at: Vec<f64>,
    below: Vec<f64>,
    above: Vec<f64>,
}

impl OwnSides {
    /// For `stops` in the order of the solve, `jumps` among them, t0 and t1.
    pub(crate) fn new(stops: &[f64], jumps: &[f64], (t0, t1): (f64, f64)) -> OwnSides {
        if jumps.is_empty() {
            return OwnSides::default();
        }
        let mut at: Vec<f64> = [&[t0], stops, &[t1]].concat();
        let mut jumps = jumps.to_vec();
        for times in [&mut at, &mut jumps] {
            // One of the two orders they come in, which the sort then only looks at.
            if times.first() > times.last() {
                times.reverse();
            }
            times.sort_by(f64::total_cmp);
        }
        let mut next = 0;
        let mut sides = OwnSides { below: at.clone(), above: at.clone(), at };
        for (i, &t) in sides.at.iter().enumerate() {
            while jumps.get(next).is_some_and(|jump| *jump < t) {
                next += 1;
            }
            if jumps.get(next) == Some(&t) {
                (sides.below[i], sides.above[i]) = (t.next_down(), t.next_up());
            }
        }
        sides
    }

    /// The same, lent.
    pub(crate) fn view(&self) -> Sides<'_> {
        Sides { at: &self.at, below: &self.below, above: &self.above }
    }
}
