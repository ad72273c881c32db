//! Rosenbrock stages of trajectories in lanes.
//!
//! Each lane pivots independently, with masks. Its Jacobian is computed by finite differences at every
//! attempt, even after a rejected attempt. The results of a trajectory, including its counters, therefore do
//! not depend on other lanes.

use super::components::Components;
use crate::ode::linear::Coloring;
use crate::ode::stiff::{
    Core, Counts, Derivatives, Diagnosis, FieldOn, Known, Request, Rosenbrock, Solvable, StepOf, StiffStages,
};
use crate::ode::tableau::Kind;
use crate::ode::{FieldFailure, Real, Scheme, VectorField};
use crate::simd::Level;

/// The memory of a Rosenbrock method for `dim` components; `None` for other methods.
pub(super) fn memory_of<R: Real>(
    scheme: &Scheme<Components<R>>,
    dim: usize,
    level: Level,
) -> Option<Box<dyn StiffStages<Components<R>>>> {
    let Kind::Rosenbrock(_) = scheme.tableau.kind else { return None };
    let sizes = (dim, scheme.tableau.num_stages());
    let core = R::Wide::core(Rosenbrock::new(sizes, Coloring::new(dim, None), None, R::EPSILON, level));
    Some(Box::new(LaneStages::<R>(core)))
}

struct LaneStages<R: Real>(Box<dyn Core<R::Wide>>);

impl<R: Real> StiffStages<Components<R>> for LaneStages<R> {
    fn stages(
        &mut self,
        f: &dyn VectorField<Components<R>>,
        request: &Request<'_, '_, Components<R>>,
        y: &Components<R>,
        k: &mut [Components<R>],
        y1: &mut Components<R>,
    ) -> Result<(), FieldFailure<R::Clock>> {
        let Request { scheme, times, h, .. } = *request;
        let Kind::Rosenbrock(numbers) = &scheme.tableau.kind else {
            unreachable!("invariant: Rosenbrock stages of another method")
        };
        let (k, scratch) = k.split_at_mut(scheme.tableau.num_stages());
        read(y, self.0.y_mut());
        let mut field = LaneField { f, argument: &mut *y1, rate: &mut scratch[0] };
        let of = StepOf { tableau: &scheme.tableau, numbers, tolerance: &scheme.tolerance, times, h };
        self.0.step(&mut field, &of)?;
        for (i, k) in k.iter_mut().enumerate() {
            write(k, self.0.stage(i));
        }
        write(y1, self.0.y1());
        Ok(())
    }
    fn take_counts(&mut self) -> Counts {
        self.0.take_counts()
    }
    fn diagnosis(&self) -> Option<Diagnosis> {
        None
    }
    fn jacobian_norm(&self) -> f64 {
        self.0.jacobian_norm()
    }
    fn boxed_clone(&self) -> Box<dyn StiffStages<Components<R>>> {
        Box::new(LaneStages::<R>(self.0.boxed_clone()))
    }
}

fn read<R: Real>(y: &Components<R>, out: &mut [R::Wide]) {
    for (out, y) in out.iter_mut().zip(&y.0) {
        *out = y.widen();
    }
}

fn write<R: Real>(y: &mut Components<R>, from: &[R::Wide]) {
    for (y, &from) in y.0.iter_mut().zip(from) {
        *y = R::narrow(from);
    }
}

/// A vector field on lanes, evaluated on slices of components.
struct LaneField<'a, R: Real> {
    f: &'a dyn VectorField<Components<R>>,
    argument: &'a mut Components<R>,
    rate: &'a mut Components<R>,
}

impl<R: Real> FieldOn<R::Wide> for LaneField<'_, R> {
    fn eval(
        &mut self,
        t: &R::Clock,
        y: &[R::Wide],
        dy: &mut [R::Wide],
    ) -> Result<(), FieldFailure<R::Clock>> {
        write(self.argument, y);
        self.f.eval(t, self.argument, self.rate).map_err(|source| FieldFailure { t: t.clone(), source })?;
        read(self.rate, dy);
        Ok(())
    }

    fn linearize(
        &mut self,
        _t: &R::Clock,
        _y: &[R::Wide],
        _plan: &Coloring,
        _into: Derivatives<'_, R::Wide>,
    ) -> Result<Known, FieldFailure<R::Clock>> {
        Ok(Known::default())
    }
}
