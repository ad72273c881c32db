//! The search for the time at which an event's function changes its sign.

use super::Event;
use crate::ode::Clock;
use crate::ode::step_end::ulps;

/// Two times at which the function has different signs, and the `reach` of the next evaluation: its distance
/// from their middle, plus half their distance from each other, is at most this.
#[derive(Clone, Debug)]
pub(crate) struct Bracket<C> {
    /// The end that comes first in the solve, and the function's value there.
    pub(crate) a: [C; 2],
    /// The other end, at which the function has the new sign (0 counts as new), and its value there.
    pub(crate) b: [C; 2],
    reach: C,
}

impl<C: Clock> Bracket<C> {
    /// A bracket between two samples.
    #[inline]
    pub(crate) fn new(a: [C; 2], b: [C; 2]) -> Self {
        let reach = b[0].sub(&a[0]).abs().mul(&a[0].like(2.0));
        Bracket { a, b, reach }
    }

    /// All its clocks, in a fixed order.
    #[cfg(feature = "autodiff")]
    pub(crate) fn clocks(&self) -> [C; 5] {
        let Bracket { a: [a, ga], b: [b, gb], reach } = self.clone();
        [a, ga, b, gb, reach]
    }

    /// The inverse of [`clocks`](Self::clocks).
    #[cfg(feature = "autodiff")]
    pub(crate) fn of([a, ga, b, gb, reach]: [C; 5]) -> Self {
        Bracket { a: [a, ga], b: [b, gb], reach }
    }

    /// Whether the search continues: the ends are farther apart than the event's tolerance, there is a time
    /// between them, and the later one is not a root.
    #[inline]
    pub(crate) fn is_open(&self, event: &Event) -> C::Mask {
        let Bracket { a: [a, _], b: [b, gb], .. } = self;
        let zero = b.like(0.0);
        let is_wide = event.resolution(&a.abs().max(&b.abs())).lt(&b.sub(a).abs());
        let is_root = C::and(&gb.le(&zero), &zero.le(gb));
        C::and(&C::and(&is_wide, &self.is_inside(&self.middle())), &C::not(&is_root))
    }

    fn middle(&self) -> C {
        // The sum of two large times may overflow. Their difference does not.
        let [[a, _], [b, _]] = [&self.a, &self.b];
        a.add(&b.sub(a).mul(&a.like(0.5)))
    }

    fn is_inside(&self, t: &C) -> C::Mask {
        t.sub(&self.a[0]).mul(&t.sub(&self.b[0])).lt(&t.like(0.0))
    }

    /// The next time to evaluate: near the root of the secant, and close enough to the middle that the search
    /// takes at most about as many evaluations as bisection.
    ///
    /// # References
    /// Oliveira, Takahashi (2020), An enhancement of the bisection method average performance preserving minmax
    /// optimality, ACM TOMS 47, algorithm ITP, with kappa_1 = 0.2 / (b - a), kappa_2 = 2.
    #[inline]
    pub(crate) fn proposal(&self, width: &C) -> C {
        let Bracket { a: [a, ga], b: [b, gb], reach } = self;
        let (middle, apart) = (self.middle(), b.sub(a));
        let secant = a.sub(&ga.mul(&apart.div(&gb.sub(ga))));
        let to_middle = middle.sub(&secant);
        let is_below = a.like(0.0).lt(&to_middle);
        let signed = |x: &C| C::select(&is_below, x, &x.like(0.0).sub(x));
        let delta = apart.mul(&apart).mul(&a.like(0.2)).div(width);
        let truncated = C::select(&delta.le(&to_middle.abs()), &secant.add(&signed(&delta)), &middle);
        let radius = reach.sub(&apart.abs().mul(&a.like(0.5)));
        let is_near = truncated.sub(&middle).abs().le(&radius);
        let t = C::select(&is_near, &truncated, &middle.sub(&signed(&radius)));
        C::select(&self.is_inside(&t), &t, &middle)
    }

    /// The part of the bracket that contains the sign change; `g` is the function's value at `t`.
    #[inline]
    pub(crate) fn narrowed(&self, t: &C, g: &C) -> Self {
        let zero = g.like(0.0);
        let Bracket { a, b, reach } = self;
        let is_root = C::and(&g.le(&zero), &zero.le(g));
        let same = C::or(
            &C::and(&zero.lt(g), &zero.lt(&b[1])),
            &C::and(&C::not(&zero.lt(g)), &C::not(&zero.lt(&b[1]))),
        );
        let is_new = C::or(&is_root, &same);
        let either = |new: &C, old: &C, m: &C::Mask| C::select(m, new, old);
        let is_old = C::not(&is_new);
        Bracket {
            a: [either(t, &a[0], &is_old), either(g, &a[1], &is_old)],
            b: [either(t, &b[0], &is_new), either(g, &b[1], &is_new)],
            reach: reach.mul(&zero.like(0.5)),
        }
    }

    /// Narrows the bracket until it is closed, and returns its later end. Returns `None` if a value of `g` is
    /// NaN.
    pub(crate) fn search(mut self, event: &Event, mut g: impl FnMut(&C) -> C) -> Option<C>
    where
        C: Clock<Mask = bool>,
    {
        let width = self.b[0].sub(&self.a[0]).abs();
        while self.is_open(event) {
            let t = self.proposal(&width);
            let value = g(&t);
            if !value.le(&value) {
                return None;
            }
            self = self.narrowed(&t, &value);
        }
        Some(self.b[0].clone())
    }
}

impl Event {
    /// The resolution of the event's time near `t`: its tolerance, but at least 4 ulp of t.
    #[inline]
    pub(crate) fn resolution<C: Clock>(&self, t: &C) -> C {
        ulps(4.0, t).max(&t.like(self.tolerance.max(f64::MIN_POSITIVE)))
    }
}
