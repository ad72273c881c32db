//! `Core`: Rosenbrock steps behind a pointer, compiled with this crate for each number type and, except for
//! dual numbers, for each SIMD level.

use super::rosenbrock::{Rosenbrock, StepOf};
use super::{Consistency, Counts, Diagnosis, FieldOn};
use crate::ode::dual::Part;
use crate::ode::linear::Matrix;
use crate::ode::{Dual, FieldFailure, Lanes, Real};
use crate::simd::{Work, is_fused, run_narrow};

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
    /// As [`StiffStages::solve_constraints`](super::StiffStages::solve_constraints), of the state in
    /// [`y_mut`](Self::y_mut).
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn solve_constraints(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<Consistency, FieldFailure<R::Clock>>;
    /// Whether some equations are algebraic.
    fn is_constrained(&self) -> bool;
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

/// [`Rosenbrock::prepare`], compiled for a SIMD level.
struct Prepare<'r, 'a, R: Real, const N: usize>(
    &'r mut Rosenbrock<R>,
    &'r mut dyn FieldOn<R>,
    &'r StepOf<'a, R::Clock>,
);

impl<R: Real, const N: usize> Work for Prepare<'_, '_, R, N> {
    type Output = Result<(), FieldFailure<R::Clock>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.0.prepare::<N>(self.1, self.2)
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
        self.prepare::<0>(field, of)?;
        self.stages::<0>(field, of)
    }

    /// A step compiled for the SIMD level. If N is not 0, it is the number of components as a compile-time constant.
    fn step_native<const N: usize>(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, R::Clock>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        run_narrow(self.level, Prepare::<R, N>(self, field, of))?;
        run_narrow(self.level, Stages::<R, N>(self, field, of))
    }
}

impl Rosenbrock<f64> {
    /// A step compiled for the SIMD level, with its loops unrolled for up to four components.
    fn step_of_few(
        &mut self,
        field: &mut dyn FieldOn<f64>,
        of: &StepOf<'_, f64>,
    ) -> Result<(), FieldFailure<f64>> {
        if !is_fused(self.level) {
            return self.step_portable(field, of);
        }
        match self.n {
            1 => self.step_native::<1>(field, of),
            2 => self.step_native::<2>(field, of),
            3 => self.step_native::<3>(field, of),
            4 => self.step_native::<4>(field, of),
            _ => self.step_native::<0>(field, of),
        }
    }
}

/// A number type in which linear systems are solved.
pub trait Solvable: Real<Wide = Self> {
    /// Rosenbrock steps in this number type.
    fn core(rosenbrock: Rosenbrock<Self>) -> Box<dyn Core<Self>>;
}

/// Implements [`Solvable`] and [`Core`] for a number type; `$step` computes a step, and `$solve` solves the
/// algebraic equations.
macro_rules! core {
    ({$($generics:tt)*} $t:ty, |$core:ident, $field:ident, $of:ident| $step:expr, $solve:expr) => {
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
            fn solve_constraints(
                &mut self,
                $field: &mut dyn FieldOn<$t>,
                $of: &StepOf<'_, <$t as Real>::Clock>,
            ) -> Result<Consistency, FieldFailure<<$t as Real>::Clock>> {
                let $core = self;
                $solve
            }
            fn is_constrained(&self) -> bool {
                self.constraints.is_some()
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
core!(
    {} f64,
    |core, field, of| core.step_of_few(field, of),
    Rosenbrock::solve_constraints(core, field, of)
);
core!(
    {T: Part, const P: usize} Dual<T, P>,
    |core, field, of| core.step_portable(field, of),
    Rosenbrock::solve_constraints(core, field, of)
);
// An ensemble has no mass matrix.
core!(
    {const W: usize} Lanes<f64, W>,
    |core, field, of| core.step_native::<0>(field, of),
    {
        let _ = (core, field, of);
        Ok(Consistency::Unknown)
    }
);
core!(
    {const W: usize} Lanes<f32, W>,
    |core, field, of| core.step_native::<0>(field, of),
    {
        let _ = (core, field, of);
        Ok(Consistency::Unknown)
    }
);
