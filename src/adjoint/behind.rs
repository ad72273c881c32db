//! Which sign an event's function has behind an instant, on tensors, by the rules of plain states.
//!
//! The errors of the time and the state at an instant displace both ([`pattern`]); a sign is certain if it is the
//! same at all displaced points. This module must not depend on how a solve continues after an event.

use super::curve::{Curve, Rows};
use super::event::{Along, Events, Mark, number};
use super::event_records::Cut;
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{NUM_PATTERNS, ROUNDING, TANGENT, pattern};
use crate::tensor::{Searches, Tensor, Tree, cond, over_rows};
use crate::tree;

tree! {
/// The errors of the time and the state at an instant.
pub(super) struct Errors {
    /// The resolution of the time, with the sign of the direction of the solve.
    dt: Tensor,
    /// The change of the state over this time, by the solution before the instant.
    moved: Leaves,
    /// The bounds of the rounding errors of the state.
    rounding: Leaves,
}
}

/// The state of a search for the first certain sign behind an open mark.
pub(super) struct Opened {
    /// The first certain sample: its time, and its value; 0 if there is none.
    pub(super) left: [Tensor; 2],
    /// The index of this sample among the looks and the later samples: -1 if the mark is not open, their number
    /// if none is certain.
    first: Tensor,
    num_looks: usize,
}

impl Opened {
    /// Whether the sign is still open at sample `part` of the step.
    pub(super) fn is_open_at(&self, part: usize) -> Tensor {
        self.first.gt((self.num_looks - 1 + part) as f64)
    }

    /// Whether a look is the first certain sample.
    pub(super) fn by_look(&self) -> Tensor {
        self.first.ge(0.0).and(&self.first.lt(self.num_looks as f64))
    }

    /// Whether the mark was open.
    pub(super) fn was_open(&self) -> Tensor {
        self.first.ge(0.0)
    }
}

/// `x` with the sign of `of`.
fn copysign(x: &Tensor, of: &Tensor) -> Tensor {
    of.lt(0.0).select(&-x, x)
}

fn map2(a: &Leaves, b: &Leaves, f: impl Fn(&Tensor, &Tensor) -> Tensor) -> Leaves {
    a.with(a.tensors().iter().zip(b.tensors()).map(|(a, b)| f(a, b)).collect())
}

/// Epsilon of the components of `y`.
fn epsilon(y: &Tensor) -> f64 {
    if y.dtype() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

impl Errors {
    /// No errors, for states like `y`.
    pub(super) fn none(y: &Leaves) -> Self {
        let zeros = y.map_leaves(|y| Tensor::full(y.dtype(), y.shape().clone(), 0.0));
        Errors { dt: number(0.0), moved: zeros.clone(), rounding: zeros }
    }

    /// The errors at an instant whose time has the resolution `dt`. The state moved by `moved` in this time, and is
    /// a sum of terms with these `sizes`. If `keeps_larger`, no error becomes smaller than in `old`.
    pub(super) fn measured(
        dt: &Tensor,
        moved: &Leaves,
        sizes: &Leaves,
        (keeps_larger, old): (&Tensor, &Errors),
    ) -> Self {
        let larger = |new: &Tensor, old: &Tensor| {
            let old = copysign(&new.abs().maximum(&old.abs()), new);
            keeps_larger.select(&old, new)
        };
        let rounding = sizes.map_leaves(|size| size * (ROUNDING * epsilon(size)));
        let errors = Errors {
            dt: larger(dt, &old.dt),
            moved: map2(moved, &old.moved, larger),
            rounding: map2(&rounding, &old.rounding, larger),
        };
        errors.map_leaves(Tensor::stop_gradient)
    }

    /// The errors behind the instant, where the state is `y`.
    pub(super) fn of(&self, y: &Leaves) -> Self {
        let rounding = |y: &Tensor, before: &Tensor| (y.abs() * (ROUNDING * epsilon(y))).maximum(before);
        let rounding = map2(&y.map_leaves(Tensor::stop_gradient), &self.rounding, rounding);
        Errors { rounding, ..self.clone() }
    }

    /// (t, y) displaced in the direction `sign`: along the solution, or by rounding in one of the patterns.
    fn displaced(&self, which: Option<usize>, sign: f64, (t, y): (&Tensor, &Leaves)) -> (Tensor, Leaves) {
        let Errors { dt, moved, rounding } = self;
        let Some(of) = which else {
            let along = map2(moved, rounding, |moved, rounding| moved + copysign(rounding, moved));
            return (t + dt * sign, map2(y, &along, |y, along| y + along * sign));
        };
        let mut next = 0;
        let signed = rounding.map_leaves(|rounding| {
            let flips = (next..next + rounding.size()).map(|i| if pattern(of, i) { -sign } else { sign });
            next += rounding.size();
            let flips = Tensor::from_vec(rounding.shape().clone(), flips.collect::<Vec<f64>>());
            rounding * flips.cast(rounding.dtype())
        });
        (t + copysign(&(t.abs() * f64::EPSILON), dt) * sign, map2(y, &signed, |y, signed| y + signed))
    }
}

/// The value of `g` at (t, y), and whether its sign is certain: the value is not 0, and neither changes its sign
/// nor becomes 0 at a displaced point. Behind an event that has changed its sign to `side`, the other sign is
/// certain up to rounding.
pub(super) fn certain(
    g: &dyn Fn(&Tensor, &Leaves) -> Tensor,
    (t, y): (&Tensor, &Leaves),
    errors: &Errors,
    side: &Tensor,
) -> (Tensor, Tensor) {
    let value = g(t, y);
    let is_number = value.lt(0.0).or(&value.gt(0.0));
    let keeps = |which: Option<usize>| {
        let [a, b] = [1.0, -1.0].map(|sign| {
            let (t, y) = errors.displaced(which, sign, (t, y));
            let displaced = g(&t, &y);
            value.lt(0.0).select(&displaced.lt(0.0), &displaced.gt(0.0))
        });
        a.and(&b)
    };
    let rounded = (0..NUM_PATTERNS).fold(is_number, |all, of| all.and(&keeps(Some(of))));
    let has_returned = (&value * side).lt(0.0);
    let is_certain = rounded.and(&has_returned.or(&keeps(None)));
    (value, is_certain)
}

/// The first of `times` at which the sign of `g` is certain on the states `at`: its index (their number if there
/// is none), and the value there, or 0.
fn first_certain(
    times: &Tensor,
    at: &dyn Fn(&Tensor) -> Leaves,
    g: &dyn Fn(&Tensor, &Leaves) -> Tensor,
    (errors, side): (&Errors, &Tensor),
) -> [Tensor; 2] {
    let n = times.size();
    let mut one = |x: &[Tensor]| {
        let (value, is_certain) = certain(g, (&x[0], &at(&x[0])), errors, side);
        Ok::<_, std::convert::Infallible>(vec![value, is_certain])
    };
    let Ok(found) = over_rows(vec![times.clone()], &[], (n, Searches::Lockstep), &mut one);
    let first = found[1].select(&Tensor::iota(DType::F64, [n], 0), &number(n as f64)).min();
    let value = first.lt(n as f64).select(&found[0].take_clamped(&first), &number(0.0));
    [first, value]
}

impl Events<'_> {
    /// The mark of event i behind an instant at t, where its function has this value, and the state changed from
    /// `before` to `after`: by the rules of plain states. `is_in_group`: whether the event occurred at the instant.
    pub(super) fn mark_behind(
        &self,
        i: usize,
        (is_in_group, cut): (&Tensor, &Cut),
        (t, value): (&Tensor, &Tensor),
        [before, after]: [&Leaves; 2],
        errors: &Errors,
    ) -> Mark {
        let zero = number(0.0);
        let is_certain = |y: &Leaves| {
            certain(&self.watches[i].when, (t, &y.map_leaves(Tensor::stop_gradient)), errors, &zero).1
        };
        let is_known = is_in_group.not().and(&is_certain(after));
        let (side, prior) = (&cut.sides[i], &cut.priors[i]);
        let was_known = is_certain(before);
        let least = copysign(&number(f64::MIN_POSITIVE), prior);
        let least = prior.lt(0.0).or(&prior.gt(0.0)).select(&least, &zero);
        let kept = was_known.select(&zero, &least);
        let has_occurred = is_in_group.or(&was_known.not().and(&side.ne(0.0)));
        let side = is_known.select(&zero, &has_occurred.select(side, &zero));
        let value = is_known.or(&has_occurred).select(value, &kept);
        Mark { value, side }
    }
}

impl Along<'_> {
    /// Searches the first certain sign behind an open mark, at looks and then at the samples of the step.
    pub(super) fn opened(&self, mark: &Mark, parts: &[[Tensor; 2]]) -> Opened {
        let looks: Vec<Tensor> = self.watch.event.looks(&self.step.t, &parts[0][0]).collect();
        let num_looks = looks.len();
        let times: Vec<&Tensor> = looks.iter().chain(parts[1..].iter().map(|part| &part[0])).collect();
        let search = |times: &Tensor| {
            let at = |t: &Tensor| self.curve.eval(t, self.step);
            let [first, value] = first_certain(times, &at, &self.watch.when, (self.errors, &mark.side));
            (times.take_clamped(&first), value, first)
        };
        let closed = |_: &Tensor| (self.step.t.clone(), number(0.0), number(-1.0));
        let (t, value, first) = cond(&mark.is_open(), &Tensor::stack(&times), search, closed);
        Opened { left: [t, value], first, num_looks }
    }

    /// Whether the tangent of the solution at the start of the step leads to the side that the mark's event came
    /// from, within `TANGENT` times `interval`.
    pub(super) fn returns_at_first(&self, mark: &Mark, interval: &Tensor) -> Tensor {
        let Rows { t: t0, t_next, y, .. } = self.step;
        let y0 = y.as_ref().expect("invariant: a step with a curve has its start");
        let slope = Curve::derivative(self.curve, t0, self.step);
        let end = t0 + copysign(&(interval * TANGENT), &(t_next - t0));
        let looks: Vec<Tensor> = self.watch.event.looks(t0, &end).collect();
        let at = |t: &Tensor| map2(y0, &slope, |y, slope| y + slope * (t - t0).cast(y.dtype()));
        let times = Tensor::stack(&looks.iter().collect::<Vec<_>>());
        let [_, value] = first_certain(&times, &at, &self.watch.when, (self.errors, &mark.side));
        mark.has_returned(&value)
    }
}
