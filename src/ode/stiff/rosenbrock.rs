//! `Rosenbrock`: the stages of a Rosenbrock step on components.
//!
//! `(M / gamma - h J) k_i = f(t + c_i h, y + h sum_j a_ij k_j) + h d_i f_t + M sum_j C_ij k_j`, `y1 = y + h
//! sum_i b_i k_i`. The Jacobian and df/dt depend on (t, y); the LU factors depend also on h. An attempt after
//! a rejected attempt therefore factors again, but evaluates neither f(t, y) nor the Jacobian (SIMD lanes
//! evaluate both).

use super::differences::{self, Base};
use super::{Counts, Derivatives, Diagnosis, FieldOn, Known};
use crate::ode::dual::Part;
use crate::ode::linear::{Lu, Matrix, Plan};
use crate::ode::stages::Times;
use crate::ode::tableau::{self, ButcherTableau};
use crate::ode::{Clock, Dual, FieldFailure, Lanes, Real, Tolerance};
use crate::simd::{Level, Work, is_fused, run_narrow};

/// The inputs of a Rosenbrock step on components.
pub struct StepOf<'a, C> {
    pub(in crate::ode) tableau: &'a ButcherTableau<'a>,
    pub(in crate::ode) numbers: &'a tableau::Rosenbrock<'a>,
    pub(in crate::ode) tolerance: &'a Tolerance<'a>,
    pub(in crate::ode) times: &'a Times<C>,
    pub(in crate::ode) h: &'a C,
}

/// [`Rosenbrock`] behind a pointer, so that its code is compiled with this crate.
pub trait Core<R: Real>: Send + Sync {
    /// The slice into which the caller writes y before a step.
    fn y_mut(&mut self) -> &mut [R];
    /// Computes the stages and y1.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn step(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>>;
    /// Stage i.
    fn stage(&self, i: usize) -> &[R];
    /// y1.
    fn y1(&self) -> &[R];
    /// As [`StiffStages::take_counts`](super::StiffStages::take_counts).
    fn take_counts(&mut self) -> Counts;
    /// As [`StiffStages::diagnosis`](super::StiffStages::diagnosis).
    fn diagnosis(&self) -> Option<Diagnosis>;
    /// As [`StiffStages::jacobian_norm`](super::StiffStages::jacobian_norm).
    fn jacobian_norm(&self) -> f64;
    /// The last Jacobian.
    fn jacobian(&self) -> &Matrix<R>;
    /// A copy of the memory.
    fn boxed_clone(&self) -> Box<dyn Core<R>>;
}

/// The memory of a Rosenbrock step.
#[derive(Clone)]
pub struct Rosenbrock<R: Real> {
    n: usize,
    plan: Plan,
    mass: Option<Matrix<f64>>,
    /// The square root of the machine epsilon of the precision in which f is evaluated.
    part: f64,
    level: Level,
    jacobian: Matrix<R>,
    lu: Lu<R>,
    /// The t of the Jacobian; `None` if there is no valid Jacobian.
    t: Option<R::Clock>,
    /// The h of the factors.
    h: Option<R::Clock>,
    y: Vec<R>,
    /// The y of the Jacobian.
    y_of_jacobian: Vec<R>,
    f: Vec<R>,
    f_t: Vec<R>,
    k: Vec<R>,
    argument: Vec<R>,
    rhs: Vec<R>,
    counts: Counts,
    singular: Option<usize>,
}

impl<R: Real> Rosenbrock<R> {
    /// Allocates memory for n components and a method of this many stages. `epsilon` is the machine epsilon
    /// of the precision in which f is evaluated.
    pub fn new(
        (n, num_stages): (usize, usize),
        plan: Plan,
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
            mass,
            part: epsilon.sqrt(),
            level,
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

    /// Computes f(t, y), df/dy and df/dt.
    #[inline(always)]
    fn linearize(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        (self.t, self.h) = (None, None);
        let t = &of.times.first;
        self.y_of_jacobian.copy_from_slice(&self.y);
        field.eval(t, &self.y, &mut self.f)?;
        let into = Derivatives { jacobian: &mut self.jacobian, f_t: &mut self.f_t, column: &mut self.rhs };
        let known: Known = field.linearize(t, &self.y, &self.plan, into)?;
        let base = Base { t, y: &self.y, f: &self.f, tolerance: of.tolerance, part: self.part };
        self.counts.evals += 1;
        if !known.jacobian {
            let scratch = (&mut self.argument[..], &mut self.rhs[..]);
            self.counts.evals +=
                differences::jacobian(field, &base, &self.plan, scratch, &mut self.jacobian)?;
        }
        if !known.f_t {
            differences::time_derivative(field, &base, of.h, &mut self.f_t)?;
            self.counts.evals += 1;
        }
        self.counts.jacobians += 1;
        self.t = Some(t.clone());
        Ok(())
    }

    /// Factors `M / gamma - h J`.
    #[inline(always)]
    fn factor(&mut self, of: &StepOf<'_, R::Clock>) {
        let (jacobian, mass, inverse) = (&self.jacobian, self.mass.as_ref(), 1.0 / of.numbers.gamma);
        self.singular = self.lu.factor(|j, rows, column| {
            let first = rows.start;
            for (entry, i) in column.iter_mut().zip(rows.clone()) {
                *entry =
                    if jacobian.contains(i, j) { -jacobian[(i, j)].scale_by(of.h) } else { R::constant(0.0) };
            }
            match mass {
                None => column[j - first] = column[j - first] + R::constant(inverse),
                Some(mass) => {
                    for i in mass.rows(j) {
                        column[i - first] = column[i - first] + R::constant(mass[(i, j)] * inverse);
                    }
                }
            }
        });
        self.counts.factorizations += 1;
        self.h = Some(of.h.clone());
    }

    /// Adds the weighted stages to `sum`.
    #[inline(always)]
    fn add_stages(k: &[R], weights: &[f64], sum: &mut [R]) {
        let n = sum.len();
        for (j, &weight) in weights.iter().enumerate() {
            if weight != 0.0 {
                for (sum, &k) in sum.iter_mut().zip(&k[j * n..][..n]) {
                    *sum = k.scale_add(false, weight, *sum);
                }
            }
        }
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

    /// Computes the Jacobian at (t, y) and the factors for h, unless the last attempt computed the same.
    #[inline(always)]
    fn prepare(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        if !self.is_current(&of.times.first) {
            self.linearize(field, of)?;
        }
        if !self.h.as_ref().is_some_and(|h| is_equal(h, of.h)) {
            self.factor(of);
        }
        Ok(())
    }

    /// Computes the stages and y1. If N is not 0, it is the number of components as a compile-time constant.
    #[inline(always)]
    fn stages<const N: usize>(
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
            self.lu.solve(rhs);
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
    /// As [`Core::diagnosis`].
    fn diagnose(&self) -> Option<Diagnosis> {
        for j in 0..self.n {
            for i in self.jacobian.rows(j) {
                if !self.jacobian[(i, j)].value().is_finite() {
                    let y = self.y_of_jacobian[j].value();
                    return Some(Diagnosis::Jacobian { row: i, column: j, y });
                }
            }
        }
        self.singular.map(|component| Diagnosis::Singular { component })
    }

    fn norm(&self) -> f64 {
        let mut sums = vec![0.0; self.n];
        for j in 0..self.n {
            for i in self.jacobian.rows(j) {
                sums[i] += self.jacobian[(i, j)].value().abs();
            }
        }
        sums.into_iter().fold(0.0, f64::max)
    }
}

/// [`Rosenbrock::prepare`], compiled for a SIMD level.
struct Prepare<'r, 'a, R: Real>(&'r mut Rosenbrock<R>, &'r mut dyn FieldOn<R>, &'r StepOf<'a, R::Clock>);

impl<R: Real> Work for Prepare<'_, '_, R> {
    type Output = Result<(), FieldFailure<R::Clock>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.0.prepare(self.1, self.2)
    }
}

/// [`Rosenbrock::stages`], compiled for a SIMD level.
struct Stages<'r, 'a, R: Real, const N: usize>(
    &'r mut Rosenbrock<R>,
    &'r mut dyn FieldOn<R>,
    &'r StepOf<'a, R::Clock>,
);

impl<R: Real, const N: usize> Work for Stages<'_, '_, R, N> {
    type Output = Result<(), FieldFailure<R::Clock>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.0.stages::<N>(self.1, self.2)
    }
}

impl<R: Real> Rosenbrock<R> {
    /// A step compiled for the target of the crate.
    fn step_portable(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        self.prepare(field, of)?;
        self.stages::<0>(field, of)
    }

    /// A step compiled for the SIMD level.
    fn step_native(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        run_narrow(self.level, Prepare(self, field, of))?;
        run_narrow(self.level, Stages::<R, 0>(self, field, of))
    }
}

impl Rosenbrock<f64> {
    /// A step compiled for the SIMD level, with its loops unrolled for up to four components.
    fn step_of_few(
        &mut self,
        field: &mut dyn FieldOn<f64>,
        of: &StepOf<'_, f64>,
    ) -> Result<(), FieldFailure<f64>> {
        let level = self.level;
        if !is_fused(level) {
            return self.step_portable(field, of);
        }
        run_narrow(level, Prepare(self, field, of))?;
        macro_rules! stages {
            ($($n:literal)*) => {
                match self.n {
                    $($n => run_narrow(level, Stages::<f64, $n>(self, field, of)),)*
                    _ => run_narrow(level, Stages::<f64, 0>(self, field, of)),
                }
            };
        }
        stages!(1 2 3 4)
    }
}

/// A number type in which linear systems are solved.
pub trait Solvable: Real<Wide = Self> {
    /// Rosenbrock steps in this number type.
    fn core(rosenbrock: Rosenbrock<Self>) -> Box<dyn Core<Self>>;
}

/// Implements [`Solvable`] and [`Core`] for a number type; `$step` computes a step.
macro_rules! core {
    ({$($generics:tt)*} $t:ty, |$core:ident, $field:ident, $of:ident| $step:expr) => {
        impl<$($generics)*> Solvable for $t {
            fn core(rosenbrock: Rosenbrock<Self>) -> Box<dyn Core<Self>> {
                Box::new(rosenbrock)
            }
        }
        impl<$($generics)*> Core<$t> for Rosenbrock<$t> {
            fn y_mut(&mut self) -> &mut [$t] {
                &mut self.y
            }
            fn step(
                &mut self,
                $field: &mut dyn FieldOn<$t>,
                $of: &StepOf<'_, <$t as Real>::Clock>,
            ) -> Result<(), FieldFailure<<$t as Real>::Clock>> {
                let $core = self;
                $step
            }
            fn stage(&self, i: usize) -> &[$t] {
                &self.k[i * self.n..][..self.n]
            }
            fn y1(&self) -> &[$t] {
                &self.argument
            }
            fn take_counts(&mut self) -> Counts {
                std::mem::take(&mut self.counts)
            }
            fn diagnosis(&self) -> Option<Diagnosis> {
                self.diagnose()
            }
            fn jacobian_norm(&self) -> f64 {
                self.norm()
            }
            fn jacobian(&self) -> &Matrix<$t> {
                &self.jacobian
            }
            fn boxed_clone(&self) -> Box<dyn Core<$t>> {
                Box::new(self.clone())
            }
        }
    };
}
core!({} f64, |core, field, of| core.step_of_few(field, of));
core!({T: Part, const P: usize} Dual<T, P>, |core, field, of| core.step_portable(field, of));
core!({const W: usize} Lanes<f64, W>, |core, field, of| core.step_native(field, of));
core!({const W: usize} Lanes<f32, W>, |core, field, of| core.step_native(field, of));
