//! `Chebyshev`: steps of the Runge-Kutta-Chebyshev method of order 2.
//!
//! An explicit recursion of s stages, stable up to `(s^2 - 1) / 1.54` on the negative real axis. s is the
//! smallest number from 2 to 1,000 that covers h times the spectral radius of the Jacobian. The user gives
//! the radius, or a power iteration on differences of the vector field estimates it every 25 attempts and
//! after a rejected step. The recursion combines states by [`State::lincomb`] only, in memory that is
//! allocated once.
//!
//! # References
//! Sommeijer, Shampine, Verwer (1998), RKC: an explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88,
//! 315-326, and their Fortran code of the same name.

use super::plain::is_given;
use super::{Counts, Diagnosis, Request, StiffStages};
use crate::ode::shown::shown;
use crate::ode::solve_error::FunctionError;
use crate::ode::stages::eval;
use crate::ode::{FieldFailure, PlainState, Real, Stages, VectorField};

/// Attempts between two estimates of the spectral radius.
const RENEW: u64 = 25;
/// Safety factor of an estimate, because a power iteration approaches the radius from below.
const SAFETY: f64 = 1.2;
/// The maximum number of power iterations per estimate.
const ITERATIONS: usize = 50;
/// The relative change of the radius at which a power iteration ends.
const CHANGE: f64 = 0.01;
/// The damping of the stability polynomial.
const DAMPING: f64 = 2.0 / 13.0;
/// With s stages a step is stable up to `REACH (s^2 - 1)` on the negative real axis.
const REACH: f64 = 1.0 / 1.54;
/// The maximum number of stages. Rounding errors grow with the square of the number of stages.
const STAGES_MAX: usize = 1000;

/// The number of states that a step needs in addition to the tableau's stages: zeros, Y_{j-2}, Y_{j-1},
/// f(Y_{j-1}).
pub(super) const MEMORY: usize = 4;

/// A list of states that are not contiguous in memory.
struct Refs<'a, S, const N: usize>([&'a S; N]);

impl<S, const N: usize> Stages<S> for Refs<'_, S, N> {
    #[inline(always)]
    fn stage(&self, i: usize) -> &S {
        self.0[i]
    }
    #[inline(always)]
    fn count(&self) -> usize {
        N
    }
}

/// The memory between steps.
#[derive(Clone)]
pub struct Chebyshev<R> {
    /// The approximate eigenvector of the last estimate, not normalized.
    direction: Vec<R>,
    /// Scratch.
    numbers: Vec<R>,
    /// The last estimate of the spectral radius, without the safety factor.
    radius: f64,
    /// Attempts since the last estimate.
    age: u64,
    /// The time at which the last attempt started. If the next attempt starts at this time, the last one was
    /// rejected.
    t: f64,
    /// The number of stages of the last step.
    num_stages: usize,
    /// The number of stages of the next step, if it repeats a step.
    given: Option<usize>,
    counts: Counts,
}

impl<R: Real<Clock = f64>> Chebyshev<R> {
    /// Allocates memory for n components.
    pub fn new(n: usize) -> Self {
        let zeros = vec![R::constant(0.0); n];
        let (numbers, direction) = (zeros.clone(), zeros);
        Chebyshev {
            direction,
            numbers,
            radius: 0.0,
            age: RENEW,
            t: f64::NAN,
            num_stages: 0,
            given: None,
            counts: Counts::default(),
        }
    }

    /// The spectral radius for the attempted step: the user's, or an estimate with its safety factor. `f0` is
    /// f(t, y).
    fn radius<Y: PlainState<Number = R>>(
        &mut self,
        f: &dyn VectorField<Y>,
        request: &Request<'_, '_, Y>,
        (y, f0): (&Y, &Y),
        memory: &mut [Y],
    ) -> Result<f64, FieldFailure<f64>> {
        let t = request.times.first;
        if let Some(given) = request.scheme.functions.and_then(|functions| functions.spectral_radius.as_ref())
        {
            let radius = given(t, y);
            // The smallest step that is allowed must be stable.
            let most = REACH * (STAGES_MAX * STAGES_MAX - 1) as f64 / request.scheme.dt_min(&t);
            return match (0.0..=most).contains(&radius) {
                true => Ok(radius),
                false => Err(radius_error(t, radius, most)),
            };
        }
        if self.age >= RENEW || t == self.t {
            self.estimate(f, t, (y, f0), memory)?;
            self.age = 0;
        }
        self.age += 1;
        self.t = t;
        Ok(SAFETY * self.radius)
    }

    /// The recursion of s stages from y to y1.
    fn recurse<Y: PlainState<Number = R>>(
        &mut self,
        f: &dyn VectorField<Y>,
        request: &Request<'_, '_, Y>,
        s: usize,
        (y, f0): (&Y, &Y),
        (memory, y1): (&mut [Y], &mut Y),
    ) -> Result<(), FieldFailure<f64>> {
        let (times, &h) = (request.times, request.h);
        let [older, old, rate] = memory else { unreachable!("invariant: three states of memory") };
        let w0 = 1.0 + DAMPING / (s * s) as f64;
        let of_s =
            (1..s).fold((LINEAR(w0), CONSTANT), |(now, before), _| (following(w0, &now, &before), now)).0;
        let w1 = of_s[1] / of_s[2];
        let (mut before, mut now) = (LINEAR(w0), following(w0, &LINEAR(w0), &CONSTANT));
        // b_0 = b_1 = b_2.
        let (mut b_older, mut b_old) = (now[2] / now[1].powi(2), now[2] / now[1].powi(2));
        let mut c = w1 * now[2] / now[1] / (4.0 * w0);
        let mut a_old = 1.0 - b_old * w0;
        older.copy_of(y);
        old.lincomb(y, &h, &[b_old * w1], std::slice::from_ref(f0));
        for j in 2..=s {
            let b = now[2] / now[1].powi(2);
            let (mu, nu, mu_f) = (2.0 * b * w0 / b_old, -b / b_older, 2.0 * b * w1 / b_old);
            eval(&f, &(times.t + c * h), old, rate)?;
            self.counts.evals += 1;
            let weights = [-mu - nu, mu, nu, mu_f * h, -a_old * mu_f * h];
            y1.lincomb(y, &1.0, &weights, &Refs([y, old, older, rate, f0]));
            if j < s {
                (b_older, b_old, a_old) = (b_old, b, 1.0 - b * now[0]);
                c = w1 * now[2] / now[1];
                (before, now) = (now, following(w0, &now, &before));
                std::mem::swap(older, old);
                std::mem::swap(old, y1);
            }
        }
        Ok(())
    }

    /// Estimates the spectral radius by a nonlinear power iteration: `v = f(t, y + d v / |v|) - f(t, y)` with
    /// a small distance d. The radius is `|v| / d`.
    fn estimate<Y: PlainState<Number = R>>(
        &mut self,
        f: &dyn VectorField<Y>,
        t: f64,
        (y, f0): (&Y, &Y),
        memory: &mut [Y],
    ) -> Result<(), FieldFailure<f64>> {
        let Chebyshev { direction, numbers, radius, counts, .. } = self;
        let [moved, _, rate] = memory else { unreachable!("invariant: three states of memory") };
        let norm = |x: &[Y::Number]| x.iter().map(|x| x.value().powi(2)).sum::<f64>().sqrt();
        y.read(numbers);
        let distance = Y::EPSILON.sqrt() * norm(numbers).max(1e-5 * (numbers.len() as f64).sqrt());
        if norm(direction) == 0.0 {
            // f(t, y) has a component along every eigenvector that affects the solution.
            f0.read(direction);
            // Alternating signs add a fast oscillation on a grid, which a smooth f does not contain.
            let size = norm(direction).max(f64::MIN_POSITIVE) * 0.1 / (direction.len() as f64).sqrt();
            for (j, v) in direction.iter_mut().enumerate() {
                *v = *v + Y::Number::constant(if j % 2 == 0 { size } else { -size });
            }
        }
        let mut before = 0.0;
        for _ in 0..ITERATIONS {
            let scale = distance / norm(direction);
            if !scale.is_finite() {
                break;
            }
            y.read(numbers);
            for (y, &v) in numbers.iter_mut().zip(&*direction) {
                *y = *y + v.scale(scale);
            }
            moved.write(numbers);
            eval(&f, &t, moved, rate)?;
            counts.evals += 1;
            rate.read(direction);
            f0.read(numbers);
            for (v, &f0) in direction.iter_mut().zip(&*numbers) {
                *v = *v - f0;
            }
            *radius = norm(direction) / distance;
            if (*radius - before).abs() <= CHANGE * *radius {
                break;
            }
            before = *radius;
        }
        Ok(())
    }
}

#[cold]
fn radius_error(t: f64, radius: f64, most: f64) -> FieldFailure<f64> {
    let source = FunctionError(format!(
        "`spectral_radius` returned {}: it must be at least 0, and at most {most:e} for a stable step",
        shown(radius)
    ));
    FieldFailure { t, source: source.into() }
}

/// The Chebyshev polynomial T_0 and its first two derivatives.
const CONSTANT: [f64; 3] = [1.0, 0.0, 0.0];

/// The Chebyshev polynomial T_1 and its first two derivatives.
const LINEAR: fn(f64) -> [f64; 3] = |x| [x, 1.0, 0.0];

/// `T_{j+1} = 2 x T_j - T_{j-1}` with two derivatives.
fn following(x: f64, now: &[f64; 3], before: &[f64; 3]) -> [f64; 3] {
    [
        2.0 * x * now[0] - before[0],
        2.0 * (now[0] + x * now[1]) - before[1],
        2.0 * (2.0 * now[1] + x * now[2]) - before[2],
    ]
}

impl<Y: PlainState> StiffStages<Y> for Chebyshev<Y::Number> {
    fn stages(
        &mut self,
        f: &dyn VectorField<Y>,
        request: &Request<'_, '_, Y>,
        y: &Y,
        k: &mut [Y],
        y1: &mut Y,
    ) -> Result<(), FieldFailure<f64>> {
        let (times, &h) = (request.times, request.h);
        let (k, memory) = k.split_at_mut(3);
        let [zero, memory @ ..] = memory else { unreachable!("invariant: the carry has memory") };
        if !is_given(request) {
            eval(&f, &times.first, y, &mut k[0])?;
            self.counts.evals += 1;
        }
        let s = if let Some(s) = self.given.take() {
            s
        } else {
            let radius = self.radius(f, request, (y, &k[0]), memory)?;
            // An estimated radius of NaN gives 2 stages, infinity the maximum. If the step is not finite, it
            // is rejected.
            let reach = (1.0 + h.abs() * radius / REACH).sqrt() as usize;
            reach.saturating_add(1).clamp(2, STAGES_MAX)
        };
        self.num_stages = s;
        self.recurse(f, request, s, (y, &k[0]), (memory, &mut *y1))?;
        zero.lincomb(y, &-1.0, &[1.0], std::slice::from_ref(y));
        k[1].lincomb(zero, &(1.0 / h), &[-1.0, 1.0], &Refs([y, &*y1]));
        if is_given(request) {
            eval(&f, &times.last, y1, &mut k[2])?;
            self.counts.evals += 1;
        }
        Ok(())
    }
    fn num_stages(&self) -> Option<usize> {
        Some(self.num_stages)
    }
    fn set_num_stages(&mut self, num_stages: usize) {
        self.given = Some(num_stages);
    }
    fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
    fn diagnosis(&self) -> Option<Diagnosis> {
        None
    }
    fn jacobian_norm(&self) -> f64 {
        self.radius
    }
    fn boxed_clone(&self) -> Box<dyn StiffStages<Y>> {
        Box::new(self.clone())
    }
}
