//! A solve whose steps can be inverted, so that its gradient stores only the last state.
//!
//! Two states are carried, y and z, both equal to y0 at the start. With the coupling l and the increment
//! Psi_h(t, z) of the method's step from z,
//!
//! ```text
//! y' = l y + (1 - l) z + Psi_h(t, z)        z' = z - Psi_-h(t', y')
//! z  = z' + Psi_-h(t', y')                  y  = (y' - (1 - l) z - Psi_h(t, z)) / l
//! ```
//!
//! The second line solves the first one for the values before the step. It uses the same increments of the same
//! arguments, so it is exact up to the rounding of the sums and of the division, which each inverse step
//! amplifies by 1/l. If y and z separate, the solve ends ([`apart`](super::apart)). The error estimate is that of
//! the method's step from z. Steps are controlled by `ode`: an attempt of this map is `ode`'s attempt, followed by
//! the rest of the map. This module does not depend on how loops are differentiated.
//!
//! Saved times use the method's dense output, changed so that it goes from y to y' instead of from z to z + Psi:
//! y + h sum_i b_i(theta) (k_i - (1 - l)(y - z)/h) is y at theta = 0 and y' at theta = 1, because the b_i(theta) of
//! every interpolant add up to theta. Its order is that of the interpolant, because y - z is as small as a step's
//! error.
//!
//! # References
//! McCallum and Foster (2024), Efficient, accurate and stable gradients for neural ODEs, arXiv:2410.11648, section 3.

use super::Options;
use super::algorithm::{self, Carry, LeafField, Scheme, StepTimes};
use super::apart::{Bounds, farthest};
use super::bodies::{Bodies, body};
use super::curve::{Rows, Step, Trail};
use super::event::Events;
use super::leaves::{Layout, Leaves};
use super::problem::{Problem, failed, solution};
use super::solve::Recorded;
use crate::array::DType;
use crate::graph::Type;
use crate::ode::{
    Clock, ConfigError, Controller, FieldError, FieldFailure, SolveError, Span, VectorField, status,
};
use crate::tensor::{Tensor, Traced, Tree};

/// (y, z): the solution, and the state from which the method's stages start.
///
/// The method's stages depend on z alone, and only the error of z is measured. If y' is not finite, z' is not
/// either, so only z' is checked.
#[derive(Clone)]
struct Pair {
    y: Leaves,
    z: Leaves,
}

impl Pair {
    /// Splits a joined state; y and z have the layout of `like`.
    fn of(both: &Leaves, like: &Leaves) -> Pair {
        let (y, z) = both.tensors().split_at(like.tensors().len());
        Pair { y: like.with(y.to_vec()), z: like.with(z.to_vec()) }
    }

    fn join(self) -> Leaves {
        let (y, z) = (self.y.into_tensors(), self.z);
        let carried = (Layout::Carried(y.len()), y);
        Leaves::join([carried, (z.layout().clone(), z.into_tensors())])
    }
}

/// The map of one step, and its inverse.
struct Coupled<'a> {
    field: &'a LeafField<'a>,
    /// The method for a single state, y or z.
    scheme: &'a Scheme<'a>,
    coupling: f64,
    /// y0; y and z have its layout.
    like: &'a Leaves,
}

impl VectorField<Leaves> for Coupled<'_> {
    fn eval(&self, t: &Tensor, s: &Leaves, ds: &mut Leaves) -> Result<(), FieldError> {
        let mut rate = self.pair(ds);
        self.field.eval(t, &self.pair(s).z, &mut rate.z)?;
        *ds = rate.join();
        Ok(())
    }
}

/// sum c_i x_i, leaf by leaf.
fn combined(coeffs: [f64; 3], x: [&Leaves; 3]) -> Leaves {
    let [a, b, c] = x.map(Leaves::tensors);
    let leaf = |i: usize| Tensor::lincomb(&coeffs, &[&a[i], &b[i], &c[i]]);
    x[0].with((0..a.len()).map(leaf).collect())
}

impl Coupled<'_> {
    fn pair(&self, both: &Leaves) -> Pair {
        Pair::of(both, self.like)
    }

    /// `y + Psi_(to - from)(from, y)`
    fn advanced(
        &self,
        span: &Span<Tensor>,
        (from, to): StepTimes<'_>,
        y: &Leaves,
    ) -> Result<Leaves, FieldFailure<Tensor>> {
        let mut k = vec![y.clone(); self.scheme.tableau.num_stages()];
        let mut y1 = y.clone();
        algorithm::step(self.field, self.scheme, span, (from, to), (y, &mut y1), &mut k, None)?;
        Ok(y1)
    }

    /// [`advanced`](Self::advanced) from the end of a step to its start. At a discontinuity, the vector field is
    /// evaluated on the same sides as in the forward step.
    fn retreated(
        &self,
        span: &Span<Tensor>,
        (t, t_next): StepTimes<'_>,
        y: &Leaves,
    ) -> Result<Leaves, FieldFailure<Tensor>> {
        let back = Span::new(span.t1.clone(), span.t0.clone());
        self.advanced(&back, (t_next, t), y)
    }

    /// (y', z') from (y, z) and `ahead = z + Psi(z)`.
    fn couple(
        &self,
        span: &Span<Tensor>,
        step_times: StepTimes<'_>,
        before: &Pair,
        ahead: &Leaves,
    ) -> Result<Pair, FieldFailure<Tensor>> {
        let l = self.coupling;
        let y = combined([1.0, l, -l], [ahead, &before.y, &before.z]);
        let back = self.retreated(span, step_times, &y)?;
        let z = combined([1.0, 1.0, -1.0], [&before.z, &y, &back]);
        Ok(Pair { y, z })
    }

    /// (y, z) from (y', z').
    fn uncouple(
        &self,
        span: &Span<Tensor>,
        step_times: StepTimes<'_>,
        after: &Pair,
    ) -> Result<Pair, FieldFailure<Tensor>> {
        let back = self.retreated(span, step_times, &after.y)?;
        let z = combined([1.0, 1.0, -1.0], [&after.z, &back, &after.y]);
        let ahead = self.advanced(span, step_times, &z)?;
        let inverse = 1.0 / self.coupling;
        Ok(Pair { y: combined([1.0, inverse, -inverse], [&z, &after.y, &ahead]), z })
    }

    fn bounds(&self) -> Bounds<'_> {
        Bounds { scheme: self.scheme, y0: self.like }
    }

    /// `found`, a pair from a backward pass; NaN if it belongs to the start of the solve and differs from y0.
    fn start_or_nan(&self, is_start: &Tensor, found: Pair) -> Pair {
        let bounds = self.bounds();
        let lost = is_start.and(&bounds.is_lost(&found.y).or(&bounds.is_lost(&found.z)));
        let guard = |of: &Leaves| {
            let leaf = |x: &Tensor| lost.select(&Tensor::scalar(x.dtype(), f64::NAN), x);
            of.with(of.tensors().iter().map(leaf).collect())
        };
        Pair { y: guard(&found.y), z: guard(&found.z) }
    }

    /// The data that an accepted step stores for saved values; `ahead` is z + Psi(z), and `k` are the stages of the
    /// step, as pairs.
    fn trail(
        &self,
        trail: &Trail,
        span: &Span<Tensor>,
        (t, t_next): StepTimes<'_>,
        (before, after): (&Pair, &Pair),
        (ahead, k): (&Leaves, &[Leaves]),
    ) -> Result<Rows, FieldFailure<Tensor>> {
        let has_last = self.scheme.tableau.is_fsal();
        let k = k[..self.scheme.tableau.num_stages()].iter().map(|k| self.pair(k).z).collect();
        let step = Step { t, t_next, y: &before.z, y1: ahead, k, has_last };
        let mut rows = trail.of(self.field, self.scheme, span, step)?;
        let (y, z) = (before.y.tensors(), before.z.tensors());
        let h = t_next - t;
        let apart = |i: usize| (&y[i] - &z[i]) * (1.0 - self.coupling) / h.cast(y[i].dtype());
        let apart: Vec<Tensor> = (0..y.len()).map(apart).collect();
        for k in &mut rows.stages {
            *k = k.with(k.tensors().iter().zip(&apart).map(|(k, apart)| k - apart).collect());
        }
        rows.y = rows.y.map(|_| before.y.clone());
        rows.y1 = rows.y1.map(|_| after.y.clone());
        Ok(rows)
    }

    /// Function evaluations per attempt besides those of the method's step from z.
    fn num_extra(&self) -> usize {
        self.scheme.tableau.num_stages() - usize::from(self.scheme.tableau.is_fsal())
    }
}

/// A reversible solve: the coupled map, the problem over pairs, and the trail of saved values.
struct Reversible<'a> {
    coupled: &'a Coupled<'a>,
    problem: Problem<'a>,
    trail: &'a Trail,
}

impl Reversible<'_> {
    /// Whether steps store data.
    fn is_tapped(&self) -> bool {
        self.trail.has_ends || self.trail.curve.is_some()
    }

    fn attempt(&self, span: &Span<Tensor>, start: &mut Carry) -> Result<Traced, SolveError> {
        let Problem { scheme, .. } = self.problem;
        let mut types = vec![Type::scalar(DType::F64)];
        types.extend(self.problem.carried(start).iter().map(Tensor::ty));
        body(&types, &mut |x| {
            let mut carry = Carry::new(x[0].clone(), start.y.clone(), scheme.tableau.num_stages());
            self.problem.load(&mut carry, &x[1..]);
            carry.k[1..].fill(carry.y.clone());
            carry.y1 = carry.y.clone();
            let (before, running, mut ahead) = (carry.clone(), carry.is_running(), None);
            algorithm::attempt_then(self.coupled, scheme, span, &mut carry, &mut |step_times, y, y1| {
                let z1 = ahead.insert(self.coupled.pair(y1).z);
                *y1 = self.coupled.couple(span, step_times, &self.coupled.pair(y), z1)?.join();
                Ok(())
            })?;
            let mut extra = self.coupled.num_extra() as f64;
            let mut taps = vec![];
            if let (true, Some(ahead)) = (self.is_tapped(), &ahead) {
                let mut k = carry.k.clone();
                if scheme.carries_first() {
                    // At this point carry.k[0] is already the next step's first stage.
                    k[0] = before.k[0].clone();
                }
                let ends = (&self.coupled.pair(&before.y), &self.coupled.pair(&carry.y1));
                let step_times = (&before.t, &carry.t);
                taps = self.coupled.trail(self.trail, span, step_times, ends, (ahead, &k))?.leaves();
                extra += self.trail.num_extra() as f64;
            }
            let extra = running.select(&carry.t.like(extra), &carry.t.like(0.0));
            carry.num_fn_evals = &carry.num_fn_evals + extra;
            let reached = carry.status.eq(Clock::like(&carry.t, status::COMPLETED));
            self.check_states(&before.y, &mut carry);
            let mut out = vec![carry.accepted.clone(), carry.is_running(), reached, carry.t.clone()];
            out.extend(self.problem.carried(&mut carry));
            out.extend(taps);
            Ok(out)
        })
    }

    /// Ends the search after an accepted step from `from` if its states are too far apart.
    fn check_states(&self, from: &Leaves, after: &mut Carry) {
        let (from, to) = (self.coupled.pair(from), self.coupled.pair(&after.y1));
        let apart = self.coupled.bounds().are_apart(&from.y, (&to.y, &to.z), &after.num_accepted);
        let apart = after.accepted.and(&apart);
        after.status = apart.select(&Clock::like(&after.t, status::REVERSIBLE_UNSTABLE), &after.status);
        after.component = apart.select(&farthest(&to.y, &to.z), &after.component);
    }

    /// The body of the replay, from first, last, t, t_next, carry.. to carry'.., tap..; or of its inverse, which
    /// has no taps.
    fn trip(&self, span: &Span<Tensor>, start: &Leaves, is_inverse: bool) -> Result<Traced, SolveError> {
        let Problem { scheme, .. } = self.problem;
        let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
        let mut types = vec![flag.clone(), flag, time.clone(), time];
        types.extend(start.tensors().iter().map(Tensor::ty));
        body(&types, &mut |x| {
            let t = x[0].select(&span.t0, &x[2].stop_gradient());
            let t_next = x[1].select(&span.t1, &x[3].stop_gradient());
            let (step_times, both) = ((&t, &t_next), start.with(x[4..].to_vec()));
            let from = self.coupled.pair(&both);
            if is_inverse {
                let found = self.coupled.uncouple(span, step_times, &from)?;
                return Ok(self.coupled.start_or_nan(&x[0], found).join().into_tensors());
            }
            let (mut k, mut y1) = (vec![both.clone(); scheme.tableau.num_stages()], both.clone());
            algorithm::step(self.coupled, scheme, span, step_times, (&both, &mut y1), &mut k, None)?;
            let ahead = self.coupled.pair(&y1).z;
            let to = self.coupled.couple(span, step_times, &from, &ahead)?;
            let mut out = [to.y.tensors(), to.z.tensors()].concat();
            if self.is_tapped() {
                out.extend(
                    self.coupled.trail(self.trail, span, step_times, (&from, &to), (&ahead, &k))?.leaves(),
                );
            }
            Ok(out)
        })
    }
}

/// Refuses a coupling outside (0, 1), and events.
pub(super) fn check(coupling: f64, events: &Events<'_>) -> Result<(), ConfigError> {
    let why = if !(coupling > 0.0 && coupling < 1.0) {
        format!("its coupling is {coupling}, which must be in (0, 1); the default is 0.99")
    } else if !events.is_empty() {
        "it does not support events: a step that an event cut short cannot be inverted; use RecursiveCheckpoint".into()
    } else {
        return Ok(());
    };
    Err(ConfigError::Adjoint { adjoint: "Reversible", why })
}

/// Records a solve with the reversible map.
///
/// # Errors
/// The field's error while it was recorded.
pub(super) fn record(of: &Problem<'_>, coupling: f64, (t0, t1): (&Tensor, &Tensor), y0: &Leaves) -> Recorded {
    let Scheme { tableau, tolerance, limits, .. } = *of.scheme;
    let controller: &Controller = of.scheme.controller;
    let mut scheme: Scheme<'_> = Scheme::new(&tableau, controller, tolerance, limits.max_steps)?;
    scheme.limits = limits;
    let scheme = scheme.without_fsal();
    let coupled = Coupled { field: of.field, scheme: of.scheme, coupling, like: y0 };
    let options: &Options = of.options;
    let problem = Problem::new(&coupled, &scheme, options, (of.saved, Events::NONE));
    let solve = Reversible { coupled: &coupled, problem, trail: &of.trail };

    let span = Span::new(t0.clone(), t1.clone());
    let both = Pair { y: y0.clone(), z: y0.clone() }.join();
    let mut start = algorithm::start(&coupled, &scheme, &span, both.clone()).map_err(failed)?;
    let attempt = solve.attempt(&span, &mut start)?;
    let (step, inverse) = (solve.trip(&span, &both, false)?, solve.trip(&span, &both, true)?);
    let like = of.trail.like(t0, y0);
    let taps = of.saved.taps(false, &like)?;
    let bodies = Bodies { attempt, step, inverse: Some(inverse), num_own: 0, first: vec![] };
    let (end, _, tapped) = solve.problem.search(&span, start, bodies, (&[], taps));
    let tapped = if taps.num_rows() == 0 { like } else { like.with_leaves(tapped) };
    let mut solution = solution(&end, limits.dt_min);
    solution.y1 = coupled.pair(&solution.y1).y;
    of.save(&mut solution, (t0, y0), &tapped, &span);
    Ok(solution)
}
