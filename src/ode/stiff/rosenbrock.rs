//! `Rosenbrock`: the stages of a Rosenbrock step on components.
//!
//! `(M / gamma - h J) k_i = f(t + c_i h, y + h sum_j a_ij k_j) + h d_i f_t + M sum_j C_ij k_j`, `y1 = y + h
//! sum_i b_i k_i`. The Jacobian and df/dt depend on (t, y); the LU factors depend also on h. An attempt after
//! a rejected attempt therefore factors again, but evaluates neither f(t, y) nor the Jacobian (SIMD lanes
//! evaluate both).

use super::differences::{self, Base, min_size};
use super::verify::Claim;
use super::{Counts, Derivatives, Diagnosis, FieldOn, Known};
use crate::ode::linear::{BLOCK, Coloring, Constraints, Lu, Matrix, row_of};
use crate::ode::stages::Times;
use crate::ode::tableau::{self, ButcherTableau};
use crate::ode::{Clock, FieldFailure, Real, Tolerance};
use crate::simd::Level;
use std::sync::Arc;

/// The inputs of a Rosenbrock step on components.
pub struct StepOf<'a, C> {
    pub(in crate::ode) tableau: &'a ButcherTableau<'a>,
    pub(in crate::ode) numbers: &'a tableau::Rosenbrock<'a>,
    pub(in crate::ode) tolerance: &'a Tolerance<'a>,
    pub(in crate::ode) times: &'a Times<C>,
    pub(in crate::ode) h: &'a C,
}

/// The memory of a Rosenbrock step.
#[derive(Clone)]
pub struct Rosenbrock<R: Real> {
    pub(super) n: usize,
    plan: Coloring,
    mass: Option<Matrix<f64>>,
    /// The algebraic equations, if the mass matrix is singular.
    pub(super) constraints: Option<Arc<Constraints>>,
    /// The machine epsilon of the precision in which f is evaluated.
    pub(super) epsilon: f64,
    pub(super) level: Level,
    /// Whether the Jacobian was compared with the vector field.
    is_verified: bool,
    pub(super) jacobian: Matrix<R>,
    lu: Lu<R>,
    /// The t of the Jacobian; `None` if there is no valid Jacobian.
    t: Option<R::Clock>,
    /// The h of the factors.
    h: Option<R::Clock>,
    pub(super) y: Vec<R>,
    /// The y of the Jacobian.
    y_of_jacobian: Vec<R>,
    pub(super) f: Vec<R>,
    f_t: Vec<R>,
    pub(super) k: Vec<R>,
    pub(super) argument: Vec<R>,
    pub(super) rhs: Vec<R>,
    /// Scratch of differences.
    far: Vec<R>,
    pub(super) counts: Counts,
    singular: Option<usize>,
}

/// Up to this number of components, weighted stages of single numbers are added up in registers. With more (15 and 20 were
/// measured), a loop over all components of a stage is faster.
const IN_REGISTERS: usize = 2 * BLOCK;

impl<R: Real> Rosenbrock<R> {
    /// Allocates memory for n components and a method of this many stages. `epsilon` is the machine epsilon
    /// of the precision in which f is evaluated.
    pub fn new(
        (n, num_stages): (usize, usize),
        plan: Coloring,
        mass: Option<Matrix<f64>>,
        epsilon: f64,
        level: Level,
    ) -> Self {
        let (lower, upper) = plan.band();
        let (lower, upper) = match &mass {
            None => (lower, upper),
            Some(mass) => (lower.max(mass.lower()), upper.max(mass.upper())),
        };
        let zeros = || vec![R::constant(0.0); n];
        Rosenbrock {
            n,
            jacobian: Matrix::zeros(n, plan.band().0, plan.band().1),
            plan,
            constraints: mass.as_ref().and_then(Constraints::of).map(Arc::new),
            mass,
            epsilon,
            level,
            is_verified: false,
            lu: Lu::new(n, lower, upper),
            t: None,
            h: None,
            y: zeros(),
            y_of_jacobian: zeros(),
            f: zeros(),
            f_t: zeros(),
            k: vec![R::constant(0.0); n * num_stages],
            argument: zeros(),
            rhs: zeros(),
            far: zeros(),
            counts: Counts::default(),
            singular: None,
        }
    }

    /// Whether the Jacobian was computed at (t, y).
    #[inline(always)]
    fn is_current(&self, t: &R::Clock) -> bool {
        let Some(at) = &self.t else { return false };
        is_equal(at, t) && self.y.iter().zip(&self.y_of_jacobian).all(|(&a, &b)| a.is_same(b))
    }

    /// Computes f(t, y) and df/dy, and df/dt if it is available without differences. `is_exact`: whether
    /// differences use three points at every tolerance.
    #[inline(always)]
    pub(super) fn differentiate(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
        is_exact: bool,
    ) -> Result<Known, FieldFailure<R::Clock>> {
        (self.t, self.h) = (None, None);
        let t = &of.times.first;
        self.y_of_jacobian.copy_from_slice(&self.y);
        field.eval(t, &self.y, &mut self.f)?;
        let into = Derivatives { jacobian: &mut self.jacobian, f_t: &mut self.f_t, column: &mut self.rhs };
        let known: Known = field.linearize(t, &self.y, &self.plan, into)?;
        self.counts.evals += 1;
        if !known.jacobian {
            let (tolerance, epsilon) = (of.tolerance, self.epsilon);
            let base = Base { t, y: &self.y, f: &self.f, tolerance, is_exact, epsilon };
            let scratch = (&mut self.argument[..], &mut self.rhs[..], &mut self.far[..]);
            self.counts.evals +=
                differences::jacobian(field, &base, &self.plan, scratch, &mut self.jacobian)?;
        }
        self.counts.jacobians += 1;
        if !R::LOCKSTEP && !self.is_verified {
            self.is_verified = true;
            if known.is_given || self.plan.is_sparse() {
                self.verify(field, of, known)?;
            }
        }
        Ok(known)
    }

    /// Compares the Jacobian with the vector field.
    ///
    /// # Errors
    /// A [`ConfigError`](crate::ode::ConfigError) that names a wrong entry.
    fn verify(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
        known: Known,
    ) -> Result<(), FieldFailure<R::Clock>> {
        let t = &of.times.first;
        let Rosenbrock { y, f, argument, rhs, counts, jacobian, plan, epsilon, .. } = self;
        let values = |x: &[R]| x.iter().map(|x| x.value()).collect::<Vec<f64>>();
        let (y, f) = (values(y), values(f));
        let size = |(j, y): (usize, &f64)| {
            let least = min_size(of.tolerance.at(j));
            if y.abs() > least { *y } else { least }
        };
        let claim = Claim {
            t: R::constant(1.0).scale_by(t).value(),
            sizes: &y.iter().enumerate().map(size).collect::<Vec<f64>>(),
            y: &y,
            f: &f,
            epsilon: *epsilon,
            plan,
            is_given: known.is_given,
            row: &|i| row_of(jacobian, i),
        };
        let error = claim.verify(&mut |moved, out| {
            argument.iter_mut().zip(moved).for_each(|(argument, &x)| *argument = R::constant(x));
            counts.evals += 1;
            let is_good = field.eval(t, argument, rhs).is_ok();
            out.iter_mut().zip(rhs.iter()).for_each(|(out, rate)| *out = rate.value());
            is_good
        });
        match error {
            Some(error) => Err(FieldFailure { t: t.clone(), source: Box::new(error) }),
            None => Ok(()),
        }
    }

    /// Computes f(t, y), df/dy and df/dt.
    #[inline(always)]
    fn linearize(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        let known = self.differentiate(field, of, false)?;
        let t = &of.times.first;
        if !known.f_t {
            let (tolerance, epsilon) = (of.tolerance, self.epsilon);
            let base = Base { t, y: &self.y, f: &self.f, tolerance, is_exact: false, epsilon };
            differences::time_derivative(field, &base, of.h, &mut self.rhs, &mut self.f_t)?;
            self.counts.evals += 2;
        }
        self.t = Some(t.clone());
        Ok(())
    }

    /// Factors `M / gamma - h J`.
    #[inline(always)]
    fn factor<const N: usize>(&mut self, of: &StepOf<'_, R::Clock>) {
        let (jacobian, mass, inverse) = (&self.jacobian, self.mass.as_ref(), 1.0 / of.numbers.gamma);
        self.lu.clear();
        for j in 0..self.n {
            let rows = jacobian.rows(j);
            let column = self.lu.column_mut(j, rows.clone());
            for (entry, &derivative) in column.iter_mut().zip(jacobian.column(j, rows)) {
                *entry = -derivative.scale_by(of.h);
            }
            let Some(mass) = mass else {
                let diagonal = &mut self.lu.column_mut(j, j..j + 1)[0];
                *diagonal = *diagonal + R::constant(inverse);
                continue;
            };
            for (entry, &mass) in
                self.lu.column_mut(j, mass.rows(j)).iter_mut().zip(mass.column(j, mass.rows(j)))
            {
                *entry = *entry + R::constant(mass * inverse);
            }
        }
        self.singular = self.lu.factor::<N>();
        self.counts.factorizations += 1;
        self.h = Some(of.h.clone());
    }

    /// Adds the weighted stages to `sum`.
    #[inline(always)]
    fn add_stages(k: &[R], weights: &[f64], sum: &mut [R]) {
        let n = sum.len();
        if n > IN_REGISTERS {
            for (j, &weight) in weights.iter().enumerate() {
                if weight != 0.0 {
                    for (sum, &k) in sum.iter_mut().zip(&k[j * n..][..n]) {
                        *sum = k.scale_add(false, weight, *sum);
                    }
                }
            }
            return;
        }
        let (blocks, rest) = sum.as_chunks_mut::<BLOCK>();
        for b in 0..blocks.len() {
            Self::add_rows(k, (n, BLOCK * b), weights, &mut blocks[b]);
        }
        let first = n - rest.len();
        for i in 0..rest.len() {
            Self::add_rows(k, (n, first + i), weights, std::array::from_mut(&mut rest[i]));
        }
    }

    /// Adds M rows of the weighted stages of n rows, from row `first` on, to `sum`. Single numbers stay in registers.
    #[inline(always)]
    fn add_rows<const M: usize>(k: &[R], (n, first): (usize, usize), weights: &[f64], sum: &mut [R; M]) {
        let mut rows = *sum;
        for j in 0..weights.len() {
            let weight = weights[j];
            if weight != 0.0 {
                let k = &k[j * n + first..][..M];
                for i in 0..M {
                    rows[i] = k[i].scale_add(false, weight, rows[i]);
                }
            }
        }
        *sum = rows;
    }

    /// `argument = y + h sum_j weights_j k_j`.
    #[inline(always)]
    fn combine(&mut self, weights: &[f64], h: &R::Clock, n: usize) {
        let argument = &mut self.argument[..n];
        argument.iter_mut().for_each(|x| *x = R::constant(0.0));
        Self::add_stages(&self.k, weights, argument);
        for (argument, &y) in argument.iter_mut().zip(&self.y[..n]) {
            *argument = argument.scale_by_add(false, h, y);
        }
    }

    /// Computes the Jacobian at (t, y) and the factors for h, unless the last attempt computed the same. For N,
    /// see [`stages`](Self::stages).
    #[inline(always)]
    pub(super) fn prepare<const N: usize>(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        if !self.is_current(&of.times.first) {
            self.linearize(field, of)?;
        }
        if !self.h.as_ref().is_some_and(|h| is_equal(h, of.h)) {
            self.factor::<N>(of);
        }
        Ok(())
    }

    /// Computes the stages and y1. If N is not 0, it is the number of components as a compile-time constant.
    #[inline(always)]
    pub(super) fn stages<const N: usize>(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        let n = if N > 0 { N } else { self.n };
        let StepOf { tableau, numbers, times, h, .. } = *of;
        for i in 0..tableau.num_stages() {
            if i == 0 {
                self.rhs[..n].copy_from_slice(&self.f[..n]);
            } else {
                self.combine(tableau.row(i), h, n);
                field.eval(&times.at(tableau.c[i], h), &self.argument, &mut self.rhs)?;
                self.counts.evals += 1;
            }
            let rhs = &mut self.rhs[..n];
            if numbers.d[i] != 0.0 {
                for (rhs, &f_t) in rhs.iter_mut().zip(&self.f_t[..n]) {
                    *rhs = f_t.scale(numbers.d[i]).scale_by_add(false, h, *rhs);
                }
            }
            match &self.mass {
                None => Self::add_stages(&self.k, numbers.row(i), rhs),
                Some(mass) => {
                    let sum = &mut self.argument[..n];
                    sum.iter_mut().for_each(|x| *x = R::constant(0.0));
                    Self::add_stages(&self.k, numbers.row(i), sum);
                    mass.add_product(sum, rhs, R::scale);
                }
            }
            self.lu.solve::<N>(rhs);
            self.k[i * n..][..n].copy_from_slice(rhs);
        }
        self.combine(tableau.b, h, n);
        Ok(())
    }
}

/// Whether two clocks are equal, in all lanes.
#[inline(always)]
fn is_equal<C: Clock>(a: &C, b: &C) -> bool {
    C::known(&C::and(&a.le(b), &b.le(a))) == Some(true)
}

impl<R: Real> Rosenbrock<R> {
    /// As [`Core::diagnosis`](super::Core::diagnosis).
    pub(super) fn diagnose(&self) -> Option<Diagnosis> {
        let places = || (0..self.n).flat_map(|j| self.jacobian.rows(j).map(move |i| (i, j)));
        let entry = |place: &(usize, usize)| self.jacobian[*place].value();
        // Derivatives along other components multiply an infinite derivative by 0, which gives NaN.
        let infinite = places().find(|place| entry(place).is_infinite());
        if let Some((row, column)) = infinite.or_else(|| places().find(|place| entry(place).is_nan())) {
            return Some(Diagnosis::Jacobian { row, column, y: self.y_of_jacobian[column].value() });
        }
        self.singular.map(|component| Diagnosis::Singular { component })
    }

    pub(super) fn norm(&self) -> f64 {
        let mut sums = vec![0.0; self.n];
        for j in 0..self.n {
            for i in self.jacobian.rows(j) {
                sums[i] += self.jacobian[(i, j)].value().abs();
            }
        }
        sums.into_iter().fold(0.0, f64::max)
    }
}
