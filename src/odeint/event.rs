//! Events of a traced solve: which attempt ends the search, and when in its step.
//!
//! An attempt looks at the signs along its curve and stops the loop at a change. The time is found outside the loop,
//! on the curve that the last step left: by a search of its own, of which no derivative is taken, and two steps of
//! Newton's method that change nothing but carry the derivative, dt = -dg / (dg/dt) by the implicit function theorem.
//! Two, so that second derivatives are right too. It must never know what is saved.

use super::curve::{Curve, Rows, choose};
use super::solve::body;
use super::state::TreeState;
use crate::array::{DType, Shape};
use crate::graph::{Op, Policy, Solve, Taps, Type};
use crate::ode::{Event, Gauge, OdeError, Span, Watch};
use crate::tensor::{Tensor, Tree, align, jvp, tuple};
use std::sync::Arc;

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

fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

fn is_nan(x: &Tensor) -> Tensor {
    x.abs().le(f64::INFINITY).not()
}

/// Whether going from `before` to `after` is a hit.
fn is_hit(event: &Event, before: &Tensor, after: &Tensor) -> Tensor {
    let rising = || before.lt(0.0).and(&after.ge(0.0));
    let falling = || before.gt(0.0).and(&after.le(0.0));
    match (event.rising, event.falling) {
        (true, false) => rising(),
        (false, true) => falling(),
        _ => rising().or(&falling()),
    }
}

/// The events of a solve.
pub(super) struct Events<'a, Y: TreeState>(pub(super) &'a [Watch<'a, Y>]);

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

/// A bracket of a root, and whether there is one.
struct Bracket {
    ends: [Tensor; 2],
    values: [Tensor; 2],
    found: Tensor,
}

impl<Y: TreeState> Events<'_, Y> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what only a solve of host values does.
    ///
    /// # Errors
    /// An event that does not end the solve.
    pub(super) fn check(&self) -> Result<(), OdeError> {
        let goes_on = |watch: &Watch<Y>| !watch.event.stop || watch.then.is_some();
        match self.0.iter().position(goes_on) {
            Some(index) => Err(OdeError::EventOnTensors { index }),
            None => Ok(()),
        }
    }

    /// The functions' values at (t, y).
    pub(super) fn signs(&self, t: &Tensor, y: &Y) -> Vec<Tensor> {
        self.0.iter().map(|watch| (watch.when)(t.clone(), y)).collect()
    }

    /// An event's function at the places of one step where its sign is looked at: the time and the value of each, the
    /// step's start first, of which `start` is the value.
    fn samples(
        &self,
        i: usize,
        curve: &Curve,
        step: &Rows<Y>,
        (start, y1): (&Tensor, &Y),
    ) -> Vec<[Tensor; 2]> {
        let Watch { event, when, .. } = &self.0[i];
        let h = &step.t_next - &step.t;
        let at = |part: f64| {
            let t = &step.t + &h * part;
            let value = when(t.clone(), &curve.at_part(part, step));
            [t, value]
        };
        // On the root already: the side it leaves to is its sign.
        let [left, leaving] = at(LEAVING);
        let on_root = start.eq(0.0);
        let mut samples = vec![[on_root.select(&left, &step.t), on_root.select(&leaving, start)]];
        samples.extend((1..event.samples).map(|j| at(j as f64 / event.samples as f64)));
        samples.push([step.t_next.clone(), when(step.t_next.clone(), y1)]);
        samples
    }

    /// Looks at an attempted step that led to `y1`.
    pub(super) fn look(&self, curve: &Curve, step: &Rows<Y>, y1: &Y, signs: &[Tensor]) -> Seen {
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

    /// The end of a solve whose last step is `step`: the earliest event's time, its state and its index where `is_cut`,
    /// else `end` and `index`.
    pub(super) fn end(
        &self,
        curve: &Curve,
        span: &Span<Tensor>,
        step: &Rows<Y>,
        (is_cut, index): (&Tensor, &Tensor),
        (t1, y1): (&Tensor, &Y),
    ) -> Result<(Tensor, Y, Tensor), OdeError> {
        let still = step.map_leaves(Tensor::stop_gradient);
        let still_y1 = y1.map_leaves(Tensor::stop_gradient);
        let (mut best, mut which) = (t1.clone(), index.clone());
        let mut found = number(0.0).lt(0.0);
        for (i, watch) in self.0.iter().enumerate() {
            let bracket = self.bracket(i, curve, &still, &still_y1);
            let hit = bracket.found.and(is_cut);
            let root = self.root(i, curve, span, &still, bracket)?;
            // Where there is no event the step may be none: then the function is looked at where it makes sense.
            let state = |t: &Tensor| choose(is_cut, &curve.eval(t, step), y1);
            let gauge = |t: &Tensor| (watch.when)(t.clone(), &state(t));
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

    /// Where event `i` changes its sign first.
    fn bracket(&self, i: usize, curve: &Curve, step: &Rows<Y>, y1: &Y) -> Bracket {
        let Watch { event, when, .. } = &self.0[i];
        let y = step.y.as_ref().expect("invariant: a step with a curve has its start");
        let samples = self.samples(i, curve, step, (&when(step.t.clone(), y), y1));
        let [t, value] = samples[samples.len() - 1].clone();
        let mut bracket =
            Bracket { ends: [t.clone(), t], values: [value.clone(), value], found: number(0.0).lt(0.0) };
        for pair in samples.windows(2).rev() {
            let ([a, ga], [b, gb]) = (&pair[0], &pair[1]);
            let hit = is_hit(event, ga, gb);
            let [p, q] = &bracket.ends;
            let [gp, gq] = &bracket.values;
            bracket = Bracket {
                ends: [hit.select(a, p), hit.select(b, q)],
                values: [hit.select(ga, gp), hit.select(gb, gq)],
                found: bracket.found.or(&hit),
            };
        }
        bracket
    }

    /// The end of a bracket of at most the event's tolerance, on which the sign is the new one: the host's search as a
    /// loop of its own, which carries a bracket and nothing that has a derivative.
    ///
    /// # References
    /// As [`Event`]'s on the host: Oliveira, Takahashi (2020), algorithm ITP.
    fn root(
        &self,
        i: usize,
        curve: &Curve,
        span: &Span<Tensor>,
        step: &Rows<Y>,
        bracket: Bracket,
    ) -> Result<Tensor, OdeError> {
        let Watch { event, when, .. } = &self.0[i];
        let scale = span.t0.abs().maximum(&span.t1.abs()).stop_gradient();
        let tolerance =
            (scale * (4.0 * f64::EPSILON)).maximum(&number(event.tolerance.max(f64::MIN_POSITIVE)));
        let Bracket { ends: [a, b], values: [ga, gb], .. } = bracket;
        let width = (&b - &a).abs();
        let slack = &width * 2.0;
        let start = [a, ga, b, gb, slack];
        let time = Type::scalar(DType::F64);
        let attempt = body(&vec![time.clone(); 6], |x| {
            let [a, ga, b, gb, reach] = [1, 2, 3, 4, 5].map(|k| &x[k]);
            let middle = (a + b) * 0.5;
            let t = proposal([a, ga, b, gb, reach], &middle, &width);
            let g = when(t.clone(), &curve.eval(&t, step));
            let is_split = ((&middle - a) * (&middle - b)).lt(0.0);
            let is_new = g.eq(0.0).or(&g.gt(0.0).eq(gb.gt(0.0)));
            let (right, left) = (is_split.and(&is_new), is_split.and(&is_new.not()));
            let (a, ga) = (left.select(&t, a), left.select(&g, ga));
            let (b, gb) = (right.select(&t, b), right.select(&g, gb));
            let wide = (&b - &a).abs().gt(&tolerance);
            let running = is_split.and(&wide).and(&gb.ne(0.0));
            let no = number(0.0).lt(0.0);
            Ok(vec![no.clone(), running, no, x[0].clone(), a, ga, b, gb, reach * 0.5])
        })?;
        let flag = Type::scalar(DType::Bool);
        let step = body(&[flag.clone(), flag, time.clone(), time], |_| Ok(vec![]))?;
        let (bodies, captures) = align(&[&attempt, &step]);
        let [attempt, step]: [_; 2] = bodies.try_into().expect("invariant: a body for each trace");
        let (taps, policy) = (Taps::default(), Policy::Direct);
        let op = Solve { attempt, step, inverse: None, num_carry: 0, num_ext: 5, taps, policy };
        let args = [&[Tensor::scalar(DType::U32, 0.0), number(0.0)], &start[..], &captures].concat();
        Ok(tuple(Op::Solve(Arc::new(op)), args.iter()).swap_remove(2))
    }
}

/// Where ITP looks next: between the ends, near the secant's root, no farther from the middle than `reach` allows.
fn proposal([a, ga, b, gb, reach]: [&Tensor; 5], middle: &Tensor, width: &Tensor) -> Tensor {
    let secant = (gb * a - ga * b) / (gb - ga);
    let sigma = (middle - &secant).sign();
    let delta = 0.2 * (b - a).square() / width;
    let away = (middle - &secant).abs();
    let truncated = delta.le(&away).select(&(&secant + &sigma * &delta), middle);
    let radius = reach - (b - a).abs() * 0.5;
    let t = (&truncated - middle).abs().le(&radius).select(&truncated, &(middle - sigma * radius));
    let is_inside = ((&t - a) * (&t - b)).lt(0.0);
    is_inside.select(&t, middle)
}

/// `root` with the derivatives of the time at which `gauge` is 0; of none where not `hit` or where `gauge` does not
/// cross there.
fn implicit(gauge: &dyn Fn(&Tensor) -> Tensor, root: &Tensor, hit: &Tensor) -> Tensor {
    let newton = |t: &Tensor| {
        let (g, slope) = jvp(gauge, t, &number(1.0));
        let is_crossing = hit.and(&slope.ne(0.0)).and(&(&g / &slope).is_finite());
        let slope = is_crossing.select(&slope, &number(1.0));
        t - is_crossing.select(&(g / slope), &number(0.0))
    };
    let root = root.stop_gradient();
    let t = newton(&newton(&root));
    root + (&t - t.stop_gradient())
}
