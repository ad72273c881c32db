//! A solve that can be run backward step by step, so that its gradient keeps no state but the last.
//!
//! Two states are carried, y and z, both y0 at first. With Psi_h(t, z) the increment of the method's step from z,
//!
//! ```text
//! y' = l y + (1 - l) z + Psi_h(t, z)        z' = z - Psi_-h(t', y')
//! z  = z' + Psi_-h(t', y')                  y  = (y' - (1 - l) z - Psi_h(t, z)) / l
//! ```
//!
//! where the second line is the first one solved for what stood before the step: by the same increments of the same
//! arguments, so it is exact but for the rounding of the sums and of the division, which each step back enlarges by
//! 1/l. The error estimate is that of the method's step from z, and everything that decides about steps is `ode`'s own:
//! one attempt, with the rest of the map behind its stages. It knows neither graphs nor how loops are differentiated.
//!
//! Saved times are on the method's own curve, moved to the knots of y: y + h sum_i b_i(theta) (k_i - (1 - l)(y - z)/h)
//! is y at theta = 0 and y' at theta = 1, because the b_i(theta) of every curve add up to theta. It has the order of
//! that curve, since y - z is of the size of a step's error.
//!
//! # References
//! McCallum and Foster (2024), Efficient, accurate and stable gradients for neural ODEs, arXiv:2410.11648, section 3.

use super::bodies::{Bodies, body};
use super::curve::{Rows, Step, Trail};
use super::solve::{Problem, failed, solution};
use super::state::TreeState;
use super::{Options, Solution};
use crate::array::DType;
use crate::graph::Type;
use crate::ode::{
    self, Carry, Clock, Controller, Field, FieldError, FieldFailure, OdeError, Part, Scheme, Span, Stages,
    State, Tolerance, status,
};
use crate::tensor::{Leaf, Path, Tensor, TensorTree, Traced, Tree};

/// (y, z): the solution, and the state that the method's stages start from.
#[derive(Clone, Debug)]
struct Pair<Y: TreeState>(Y, Y);

impl<Y: TreeState> Tree for Pair<Y> {
    fn each<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, Leaf<'a>)) {
        path.within("y", |p| self.0.each(p, f));
        path.within("z", |p| self.1.each(p, f));
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.0.each_mut(f);
        self.1.each_mut(f);
    }
    fn map(&self, path: &mut Path, f: &mut dyn FnMut(&Path, &Tensor) -> Tensor) -> Self {
        let y = path.within("y", |p| self.0.map(p, f));
        Pair(y, path.within("z", |p| self.1.map(p, f)))
    }
}
impl<Y: TreeState> TensorTree for Pair<Y> {}

/// The method sees z alone. Where y' is not finite z' is not, and both are what an error is measured against.
impl<Y: TreeState> State for Pair<Y> {
    type Clock = Tensor;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Tensor, a: &[f64], k: &K) {
        self.0 = y.0.clone();
        self.1.lincomb(&y.1, dt, a, &Part::new(k, |s: &Self| &s.1));
    }

    fn error_sum<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Tensor {
        self.1.error_sum(dt, b, &Part::new(k, |s: &Self| &s.1), &y0.1, &y1.1, tol)
    }

    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) {
        self.1.scaled_error(dt, b, &Part::new(k, |s: &Self| &s.1), &y0.1, &y1.1, tol);
    }

    fn num_components(&self) -> usize {
        self.1.num_components()
    }

    fn parts(&self) -> Vec<usize> {
        self.1.parts()
    }

    fn keep(&mut self, m: &Tensor, new: &mut Self) {
        self.0.keep(m, &mut new.0);
        self.1.keep(m, &mut new.1);
    }

    fn first_non_finite(&self, like: &Tensor) -> Tensor {
        self.1.first_non_finite(like)
    }

    fn conforms(&self, y: &Self) -> Result<(), FieldError> {
        self.1.conforms(&y.1)
    }
}

/// The map of one step, and its inverse.
struct Coupled<'a, Y: TreeState, F> {
    field: &'a F,
    /// The method on y or z alone.
    scheme: &'a Scheme<'a, Y>,
    coupling: f64,
}

impl<Y: TreeState, F: Field<Y>> Field<Pair<Y>> for Coupled<'_, Y, F> {
    fn eval(&self, t: &Tensor, s: &Pair<Y>, ds: &mut Pair<Y>) -> Result<(), FieldError> {
        self.field.eval(t, &s.1, &mut ds.1)
    }
}

type Knots<'a> = (&'a Tensor, &'a Tensor);

/// sum c_i x_i, leaf by leaf.
fn combined<Y: TreeState>(coeffs: [f64; 3], x: [&Y; 3]) -> Y {
    let leaves = x.map(Tree::leaves);
    let leaf = |i: usize| Tensor::lincomb(&coeffs, &[&leaves[0][i], &leaves[1][i], &leaves[2][i]]);
    x[0].with_leaves((0..leaves[0].len()).map(leaf).collect::<Vec<_>>())
}

impl<Y: TreeState, F: Field<Y>> Coupled<'_, Y, F> {
    /// `y + Psi_(to - from)(from, y)`
    fn advanced(&self, span: &Span<Tensor>, (from, to): Knots<'_>, y: &Y) -> Result<Y, FieldFailure<Tensor>> {
        let mut k = vec![y.clone(); self.scheme.tableau.num_stages()];
        let mut y1 = y.clone();
        ode::step(self.field, self.scheme, span, (from, to), y, &mut k, &mut y1)?;
        Ok(y1)
    }

    /// The same from the end of a step to its start: the sides of a jump change places with its ends.
    fn retreated(
        &self,
        span: &Span<Tensor>,
        (t, t_next): Knots<'_>,
        y: &Y,
    ) -> Result<Y, FieldFailure<Tensor>> {
        let back = Span::new(span.t1.clone(), span.t0.clone());
        self.advanced(&back, (t_next, t), y)
    }

    /// From `after.1 = z + Psi(z)` to (y', z').
    fn couple(
        &self,
        span: &Span<Tensor>,
        knots: Knots<'_>,
        before: &Pair<Y>,
        after: &mut Pair<Y>,
    ) -> Result<(), FieldFailure<Tensor>> {
        let l = self.coupling;
        after.0 = combined([1.0, l, -l], [&after.1, &before.0, &before.1]);
        let back = self.retreated(span, knots, &after.0)?;
        after.1 = combined([1.0, 1.0, -1.0], [&before.1, &after.0, &back]);
        Ok(())
    }

    /// (y, z) from (y', z').
    fn uncouple(
        &self,
        span: &Span<Tensor>,
        knots: Knots<'_>,
        after: &Pair<Y>,
    ) -> Result<Pair<Y>, FieldFailure<Tensor>> {
        let back = self.retreated(span, knots, &after.0)?;
        let z = combined([1.0, 1.0, -1.0], [&after.1, &back, &after.0]);
        let ahead = self.advanced(span, knots, &z)?;
        let inverse = 1.0 / self.coupling;
        Ok(Pair(combined([1.0, inverse, -inverse], [&z, &after.0, &ahead]), z))
    }

    /// What an accepted step leaves for what is saved, `ahead` being z + Psi(z) and `k` its stages.
    fn trail(
        &self,
        trail: &Trail,
        span: &Span<Tensor>,
        (t, t_next): Knots<'_>,
        (before, after): (&Pair<Y>, &Pair<Y>),
        (ahead, k): (&Y, Vec<Y>),
    ) -> Result<Rows<Y>, FieldFailure<Tensor>> {
        let has_last = self.scheme.tableau.is_fsal();
        let step = Step { t, t_next, y: &before.1, y1: ahead, k, has_last };
        let mut rows = trail.of(self.field, self.scheme, span, step)?;
        let (y, z) = (before.0.leaves(), before.1.leaves());
        let h = t_next - t;
        let apart = |i: usize| (&y[i] - &z[i]) * (1.0 - self.coupling) / h.cast(y[i].dtype());
        let apart: Vec<Tensor> = (0..y.len()).map(apart).collect();
        for k in &mut rows.stages {
            let moved: Vec<Tensor> = k.leaves().iter().zip(&apart).map(|(k, apart)| k - apart).collect();
            *k = k.with_leaves(moved);
        }
        rows.y = rows.y.map(|_| before.0.clone());
        rows.y1 = rows.y1.map(|_| after.0.clone());
        Ok(rows)
    }

    /// Evaluations of the field in one attempt beside those of the method's step.
    fn num_extra(&self) -> usize {
        self.scheme.tableau.num_stages() - usize::from(self.scheme.tableau.is_fsal())
    }
}

fn seconds<Y: TreeState>(k: &[Pair<Y>], num: usize) -> Vec<Y> {
    k[..num].iter().map(|s| s.1.clone()).collect()
}

/// A reversible solve: the coupled map, the problem over pairs, and what saved times are taken from.
struct Reversible<'a, Y: TreeState, F> {
    coupled: &'a Coupled<'a, Y, F>,
    problem: Problem<'a, Pair<Y>, Coupled<'a, Y, F>>,
    trail: &'a Trail,
}

impl<Y: TreeState, F: Field<Y>> Reversible<'_, Y, F> {
    /// Whether steps leave anything behind.
    fn is_tapped(&self) -> bool {
        self.trail.has_ends || self.trail.curve.is_some()
    }

    fn attempt(&self, span: &Span<Tensor>, start: &mut Carry<Pair<Y>>) -> Result<Traced<()>, OdeError> {
        let Problem { scheme, .. } = self.problem;
        let mut types = vec![Type::scalar(DType::F64)];
        types.extend(self.problem.carried(start).iter().map(Tensor::ty));
        let stages = scheme.tableau.num_stages();
        body(&types, |x| {
            let mut carry = Carry::new(x[0].clone(), start.y.clone(), stages);
            self.problem.load(&mut carry, &x[1..]);
            carry.k[1..].fill(carry.y.clone());
            carry.y1 = carry.y.clone();
            let (before, running, mut ahead) = (carry.clone(), carry.is_running(), None);
            ode::attempt_then::<false, false, _, _>(
                self.coupled,
                scheme,
                span,
                &mut carry,
                |knots, y, y1| {
                    ahead = Some(y1.1.clone());
                    self.coupled.couple(span, knots, y, y1)
                },
            )?;
            let mut extra = self.coupled.num_extra() as f64;
            let mut taps = vec![];
            if let (true, Some(ahead)) = (self.is_tapped(), &ahead) {
                let mut k = seconds(&carry.k, stages);
                if scheme.carries_first() {
                    // By now it is the next step's.
                    k[0] = before.k[0].1.clone();
                }
                let (knots, ends) = ((&before.t, &carry.t), (&before.y, &carry.y1));
                taps = self.coupled.trail(self.trail, span, knots, ends, (ahead, k))?.leaves();
                extra += self.trail.num_extra() as f64;
            }
            let extra = running.select(&carry.t.like(extra), &carry.t.like(0.0));
            carry.num_field_evals = &carry.num_field_evals + extra;
            let reached = carry.status.eq(Clock::like(&carry.t, status::COMPLETED));
            let mut out = vec![carry.accepted.clone(), carry.is_running(), reached, carry.t.clone()];
            out.extend(self.problem.carried(&mut carry));
            out.extend(taps);
            Ok(out)
        })
    }

    /// Body of the replay, or of its inverse: first, last, t, t_next, carry.. to carry.., tap..
    fn trip(&self, span: &Span<Tensor>, start: &Pair<Y>, is_inverse: bool) -> Result<Traced<()>, OdeError> {
        let Problem { scheme, .. } = self.problem;
        let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
        let mut types = vec![flag.clone(), flag, time.clone(), time];
        types.extend(start.leaves().iter().map(Tensor::ty));
        body(&types, |x| {
            let t = x[0].select(&span.t0, &x[2].stop_gradient());
            let t_next = x[1].select(&span.t1, &x[3].stop_gradient());
            let (knots, from) = ((&t, &t_next), start.with_leaves(x[4..].to_vec()));
            if is_inverse {
                return Ok(self.coupled.uncouple(span, knots, &from)?.leaves());
            }
            let (mut k, mut y1) = (vec![from.clone(); scheme.tableau.num_stages()], from.clone());
            ode::step(self.coupled, scheme, span, knots, &from, &mut k, &mut y1)?;
            let ahead = y1.1.clone();
            self.coupled.couple(span, knots, &from, &mut y1)?;
            let mut out = y1.leaves();
            if self.is_tapped() {
                let k = seconds(&k, scheme.tableau.num_stages());
                out.extend(self.coupled.trail(self.trail, span, knots, (&from, &y1), (&ahead, k))?.leaves());
            }
            Ok(out)
        })
    }
}

/// Records a solve by the reversible map.
///
/// # Errors
/// What the field said while it was recorded; a coupling that is not between 0 and 1; events.
pub(super) fn record<Y: TreeState, F: Field<Y>>(
    of: &Problem<'_, Y, F>,
    coupling: f64,
    (t0, t1): (&Tensor, &Tensor),
    y0: &Y,
) -> Result<Solution<Y>, OdeError> {
    if !(coupling > 0.0 && coupling < 1.0) {
        let why = format!("its coupling is {coupling}: it must be above 0 and below 1");
        return Err(OdeError::Adjoint { adjoint: "Reversible", why });
    }
    if !of.events.is_empty() {
        let why =
            "it has no events: a step that one cuts short cannot be run backward; take RecursiveCheckpoint";
        return Err(OdeError::Adjoint { adjoint: "Reversible", why: why.into() });
    }
    let Scheme { tableau, tolerance, limits, .. } = *of.scheme;
    let controller: &Controller = of.scheme.controller;
    let mut scheme: Scheme<'_, Pair<Y>> = Scheme::new(&tableau, controller, tolerance, limits.max_steps)?;
    scheme.limits = limits;
    let scheme = scheme.without_fsal();
    let coupled = Coupled { field: of.field, scheme: of.scheme, coupling };
    let options: &Options = of.options;
    let problem = Problem::new(&coupled, &scheme, options, (of.saved, &[]));
    let solve = Reversible { coupled: &coupled, problem, trail: &of.trail };

    let span = Span::new(t0.clone(), t1.clone());
    let both = Pair(y0.clone(), y0.clone());
    let mut start = ode::start(&coupled, &scheme, &span, both.clone()).map_err(failed)?;
    let attempt = solve.attempt(&span, &mut start)?;
    let (step, inverse) = (solve.trip(&span, &both, false)?, solve.trip(&span, &both, true)?);
    let like = of.trail.like(t0, y0);
    let taps = of.saved.taps(false, &like)?;
    let bodies = Bodies { attempt, step, inverse: Some(inverse) };
    let (end, _, tapped) = solve.problem.search(&span, start, bodies, (&[], taps));
    let tapped = if taps.num_rows() == 0 { like } else { like.with_leaves(tapped) };
    let Solution { t1, y1, ts, ys, num_saved, stats, verdict, .. } = solution(&end, limits.dt_min);
    let mut solution =
        Solution { t1, y1: y1.0, ts, ys: ys.0, num_saved, stats, events: None, verdict, dense: None };
    of.save(&mut solution, (t0, y0), &tapped, &span);
    Ok(solution)
}
