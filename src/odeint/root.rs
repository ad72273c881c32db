//! The time of an event in its step: a search in the graph, and the derivative of what it found.
//!
//! The search is a loop of its own that carries a bracket and has no derivative. Two steps of Newton's method at its end
//! change nothing but carry the derivative, dt = -dg / (dg/dt) by the implicit function theorem; two, so that second
//! derivatives are right too. It must never know which events there are or what follows from a hit.

use super::bodies::body;
use super::curve::{Curve, Rows};
use super::event::{Watch, number};
use crate::array::DType;
use crate::graph::{Op, Policy, Solve, Taps, Type};
use crate::ode::{OdeError, Span};
use crate::tensor::{Tensor, align, jvp, tuple};
use std::sync::Arc;

/// Two times, between which a root lies unless they are equal, and the values there.
pub(super) struct Bracket {
    pub(super) ends: [Tensor; 2],
    pub(super) values: [Tensor; 2],
}

impl Bracket {
    /// The end of a bracket of at most the event's tolerance, on which the sign is the new one: the host's search as a
    /// loop of its own, which carries a bracket and nothing that has a derivative.
    ///
    /// # References
    /// As on the host: Oliveira, Takahashi (2020), algorithm ITP.
    pub(super) fn root(
        self,
        watch: &Watch<'_>,
        curve: &Curve,
        span: &Span<Tensor>,
        step: &Rows,
    ) -> Result<Tensor, OdeError> {
        let Watch { event, when, .. } = watch;
        let scale = span.t0.abs().maximum(&span.t1.abs()).stop_gradient();
        let tolerance =
            (scale * (4.0 * f64::EPSILON)).maximum(&number(event.tolerance.max(f64::MIN_POSITIVE)));
        let Bracket { ends: [a, b], values: [ga, gb] } = self;
        let width = (&b - &a).abs();
        let slack = &width * 2.0;
        let start = [a, ga, b, gb, slack];
        let time = Type::scalar(DType::F64);
        let attempt = body(&vec![time.clone(); 6], &mut |x| {
            let [a, ga, b, gb, reach] = [1, 2, 3, 4, 5].map(|k| &x[k]);
            let middle = (a + b) * 0.5;
            let t = proposal([a, ga, b, gb, reach], &middle, &width);
            let g = when(&t, &curve.eval(&t, step));
            // An end that is the root has no sign for others to be compared with.
            let is_split = ((&middle - a) * (&middle - b)).lt(0.0).and(&gb.ne(0.0));
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
        let step = body(&[flag.clone(), flag, time.clone(), time], &mut |_| Ok(vec![]))?;
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
pub(super) fn implicit(gauge: &dyn Fn(&Tensor) -> Tensor, root: &Tensor, hit: &Tensor) -> Tensor {
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
