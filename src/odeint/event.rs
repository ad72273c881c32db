//! Events of a traced solve: which attempt ends the search, and when in its step.
//!
//! An attempt looks at the signs along its curve and stops the loop at a change. The time is found outside the loop
//! ([`Bracket::root`]), on the curve that the last step left. It must never know what is saved, nor how a solve goes on
//! behind a hit.

use super::curve::{Curve, Rows, choose};
use super::leaves::Leaves;
use super::root::{Bracket, implicit};
use crate::array::{DType, Shape};
use crate::ode::{Event, Gauge, OdeError, Span};
use crate::tensor::{Tensor, Tree, cond};

/// The part of a step after which an event that starts on its root is taken to have left it.
const LEAVING: f64 = 1e-6;

/// A number whose sign counts, or a condition, of one element.
impl Gauge<Tensor> for Tensor {
    #[track_caller]
    fn gauge(self) -> Tensor {
        assert!(
            self.size() == 1,
            "an event's function gave {self:?}: it must be one number or one condition"
        );
        let one = self.reshape(Shape::scalar());
        match one.dtype() {
            DType::Bool => one.select(&number(1.0), &number(-1.0)),
            _ => one.cast(DType::F64),
        }
    }
}

pub(super) fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

fn is_nan(x: &Tensor) -> Tensor {
    x.abs().le(f64::INFINITY).not()
}

/// Whether going from `before` to `after` is a hit.
pub(super) fn is_hit(event: &Event, before: &Tensor, after: &Tensor) -> Tensor {
    let rising = || before.lt(0.0).and(&after.ge(0.0));
    let falling = || before.gt(0.0).and(&after.le(0.0));
    match (event.rising, event.falling) {
        (true, false) => rising(),
        (false, true) => falling(),
        _ => rising().or(&falling()),
    }
}

/// An event with its functions, of leaves.
pub(super) struct Watch<'a> {
    pub(super) event: Event,
    /// The number whose sign counts, at (t, y).
    pub(super) when: Box<dyn Fn(&Tensor, &Leaves) -> Tensor + 'a>,
    /// What it makes of y at t.
    pub(super) then: Option<Box<dyn Fn(&Tensor, &Leaves) -> Leaves + 'a>>,
}

/// The events of a solve.
#[derive(Clone, Copy)]
pub(super) struct Events<'a>(pub(super) &'a [Watch<'a>]);

/// What an attempt saw.
pub(super) struct Seen {
    /// The sign of each event's function at the step's end, as a number.
    pub(super) signs: Vec<Tensor>,
    /// Whether an event ends the solve.
    pub(super) is_hit: Tensor,
    /// Which.
    pub(super) index: Tensor,
    /// Whether a function gave NaN.
    pub(super) is_nan: Tensor,
}

impl Events<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a solve may go on behind a hit, or end with another state than that of the hit.
    pub(super) fn go_on(&self) -> bool {
        self.0.iter().any(|watch| !watch.event.stop || watch.then.is_some())
    }

    /// What event `index` makes of the state at t, where it is `hit`. One branch runs: the functions of the others see
    /// no state that is not theirs.
    pub(super) fn then(&self, (hit, index): (&Tensor, &Tensor), t: &Tensor, y: Leaves) -> Leaves {
        let changes = self.0.iter().enumerate().filter_map(|(i, watch)| Some((i, watch.then.as_ref()?)));
        changes.fold(y, |y, (i, then)| {
            let changed = |(t, y): &(Tensor, Leaves)| then(t, y);
            cond(&hit.and(&index.eq(i as f64)), &(t.clone(), y), changed, |(_, y)| y.clone())
        })
    }

    /// The functions' values at (t, y).
    pub(super) fn signs(&self, t: &Tensor, y: &Leaves) -> Vec<Tensor> {
        self.0.iter().map(|watch| (watch.when)(t, y)).collect()
    }

    /// An event's function at the places of one step where its sign is looked at: the time and the value of each, the
    /// step's start first, of which `start` is the value.
    pub(super) fn samples(
        &self,
        i: usize,
        curve: &Curve,
        step: &Rows,
        (start, y1): (&Tensor, &Leaves),
    ) -> Vec<[Tensor; 2]> {
        let Watch { event, when, .. } = &self.0[i];
        let h = &step.t_next - &step.t;
        let at = |part: f64| {
            let t = &step.t + &h * part;
            let value = when(&t, &curve.at_part(part, step));
            [t, value]
        };
        // On the root already: the side it leaves to is its sign.
        let [left, leaving] = at(LEAVING);
        let on_root = start.eq(0.0);
        let mut samples = vec![[on_root.select(&left, &step.t), on_root.select(&leaving, start)]];
        samples.extend((1..event.samples).map(|j| at(j as f64 / event.samples as f64)));
        samples.push([step.t_next.clone(), when(&step.t_next, y1)]);
        samples
    }

    /// Looks at an attempted step that led to `y1`.
    pub(super) fn look(&self, curve: &Curve, step: &Rows, y1: &Leaves, signs: &[Tensor]) -> Seen {
        let no = number(0.0).lt(0.0);
        let mut seen = Seen { signs: vec![], is_hit: no.clone(), index: number(-1.0), is_nan: no };
        for (i, watch) in self.0.iter().enumerate().rev() {
            let samples = self.samples(i, curve, step, (&signs[i], y1));
            for pair in samples.windows(2) {
                let hit = is_hit(&watch.event, &pair[0][1], &pair[1][1]);
                seen.index = hit.select(&number(i as f64), &seen.index);
                seen.is_hit = seen.is_hit.or(&hit);
                seen.is_nan = seen.is_nan.or(&is_nan(&pair[1][1]));
            }
            let [_, end] = &samples[samples.len() - 1];
            seen.signs.insert(0, end.clone());
        }
        seen
    }

    /// The end of a solve whose last step is `step`, all events ending it: the earliest one's time, its state and its
    /// index where `is_cut`, else `end` and `index`.
    pub(super) fn end(
        &self,
        curve: &Curve,
        span: &Span<Tensor>,
        step: &Rows,
        (is_cut, index): (&Tensor, &Tensor),
        (t1, y1): (&Tensor, &Leaves),
    ) -> Result<(Tensor, Leaves, Tensor), OdeError> {
        let still = step.map_leaves(Tensor::stop_gradient);
        let still_y1 = y1.map_leaves(Tensor::stop_gradient);
        let (mut best, mut which) = (t1.clone(), index.clone());
        let mut found = number(0.0).lt(0.0);
        for (i, watch) in self.0.iter().enumerate() {
            let (bracket, is_found) = self.bracket(i, curve, &still, &still_y1);
            let hit = is_found.and(is_cut);
            let root = bracket.root(watch, curve, span, &still)?;
            // Where there is no event the step may be none: then the function is looked at where it makes sense.
            let state = |t: &Tensor| choose(is_cut, &curve.eval(t, step), y1);
            let gauge = |t: &Tensor| (watch.when)(t, &state(t));
            let t = implicit(&gauge, &root, &hit);
            let ahead = ((&t - &best) * &span.direction).lt(0.0);
            let earlier = hit.and(&found.not().or(&ahead));
            best = earlier.select(&t, &best);
            which = earlier.select(&number(i as f64), &which);
            found = found.or(&hit);
        }
        let y = choose(&found, &curve.eval(&best, step), y1);
        Ok((best, y, which))
    }

    /// Where event `i` changes its sign first, and whether it does.
    fn bracket(&self, i: usize, curve: &Curve, step: &Rows, y1: &Leaves) -> (Bracket, Tensor) {
        let Watch { event, when, .. } = &self.0[i];
        let y = step.y.as_ref().expect("invariant: a step with a curve has its start");
        let samples = self.samples(i, curve, step, (&when(&step.t, y), y1));
        let [t, value] = samples[samples.len() - 1].clone();
        let mut bracket = Bracket { ends: [t.clone(), t], values: [value.clone(), value] };
        let mut found = number(0.0).lt(0.0);
        for pair in samples.windows(2).rev() {
            let ([a, ga], [b, gb]) = (&pair[0], &pair[1]);
            let hit = is_hit(event, ga, gb);
            let [p, q] = &bracket.ends;
            let [gp, gq] = &bracket.values;
            bracket = Bracket {
                ends: [hit.select(a, p), hit.select(b, q)],
                values: [hit.select(ga, gp), hit.select(gb, gq)],
            };
            found = found.or(&hit);
        }
        (bracket, found)
    }
}
