//! Stiff methods on plain states: conversion between states and slices of components.

use super::chebyshev::{self, Chebyshev};
use super::jacobian::{Jacobian, StateFunctions};
use super::rosenbrock::{Rosenbrock, StepOf};
use super::{
    Consistency, Core, Counts, Derivatives, Diagnosis, FieldOn, Known, Request, Solvable, StiffStages,
};
use crate::ode::linear::{Coloring, Matrix};
use crate::ode::solve_error::FunctionError;
use crate::ode::stages::{First, Times, eval};
use crate::ode::tableau::Kind;
use crate::ode::{Carry, FieldFailure, PlainState, Real, Resolved, Scheme, State, VectorField};

/// Computes the stages and y1 of a stiff method, with the memory that the carry holds.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
pub fn stiff_stages<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    first: First,
    times: &Times<S::Clock>,
    h: &S::Clock,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    let Carry { y, k, y1, stiff, .. } = carry;
    let stiff = stiff.as_mut().expect("invariant: the driver of a stiff method allocates its memory");
    stiff.stages(f, &Request { scheme, first, times, h }, y, k, y1)
}

/// Allocates the memory that the scheme's method needs, and stores it in the carry.
pub fn make_memory<Y: PlainState>(scheme: &Scheme<Y>, resolved: &Resolved, carry: &mut Carry<Y>) {
    let (n, stages) = (carry.y.num_components(), scheme.tableau.num_stages());
    if carry.k.len() <= stages {
        carry.k.resize(stages + 1, carry.y.clone());
    }
    carry.stiff = match scheme.tableau.kind {
        Kind::Explicit => None,
        Kind::Chebyshev => {
            carry.k.resize(stages + chebyshev::MEMORY, carry.y.clone());
            Some(Box::new(Chebyshev::<Y::Number>::new(n)))
        }
        Kind::Rosenbrock(_) => {
            let plan = Coloring::new(n, resolved.sparsity());
            let mass = resolved.mass().map(|mass| mass.matrix().clone());
            let level = resolved.native().level;
            let sizes = (n, stages);
            let core = Y::Number::core(Rosenbrock::new(sizes, plan, mass, Y::EPSILON, level));
            Some(Box::new(Plain::<Y> { core, written: None }))
        }
    };
}

/// Rosenbrock stages of a plain state.
struct Plain<Y: PlainState> {
    core: Box<dyn Core<Y::Number>>,
    /// The matrix into which the user's function writes the Jacobian; `None` before its first call.
    written: Option<Jacobian>,
}

impl<Y: PlainState> StiffStages<Y> for Plain<Y> {
    fn stages(
        &mut self,
        f: &dyn VectorField<Y>,
        request: &Request<'_, '_, Y>,
        y: &Y,
        k: &mut [Y],
        y1: &mut Y,
    ) -> Result<(), FieldFailure<f64>> {
        let Request { scheme, times, h, .. } = *request;
        let Kind::Rosenbrock(numbers) = &scheme.tableau.kind else {
            unreachable!("invariant: Rosenbrock stages of another method")
        };
        let (k, scratch) = k.split_at_mut(scheme.tableau.num_stages());
        y.read(self.core.y_mut());
        let (functions, rate) = (scheme.functions, &mut scratch[0]);
        let mut field = PlainField { f, functions, argument: &mut *y1, rate, written: &mut self.written };
        let of = StepOf { tableau: &scheme.tableau, numbers, tolerance: &scheme.tolerance, times, h };
        self.core.step(&mut field, &of)?;
        for (i, k) in k.iter_mut().enumerate() {
            k.write(self.core.stage(i));
        }
        y1.write(self.core.y1());
        Ok(())
    }
    fn solve_constraints(
        &mut self,
        f: &dyn VectorField<Y>,
        scheme: &Scheme<Y>,
        t: &f64,
        y: &mut Y,
        (argument, rate): (&mut Y, &mut Y),
    ) -> Result<Consistency, FieldFailure<f64>> {
        let Kind::Rosenbrock(numbers) = &scheme.tableau.kind else {
            unreachable!("invariant: Rosenbrock stages of another method")
        };
        y.read(self.core.y_mut());
        let functions = scheme.functions;
        let mut field = PlainField { f, functions, argument, rate, written: &mut self.written };
        let times = Times { first: *t, last: *t, t: *t };
        let tolerance = &scheme.tolerance;
        let of = StepOf { tableau: &scheme.tableau, numbers, tolerance, times: &times, h: &0.0 };
        let found = self.core.solve_constraints(&mut field, &of)?;
        if matches!(found, Consistency::Solved(_)) {
            y.write(self.core.y_mut());
        }
        Ok(found)
    }
    fn is_constrained(&self) -> bool {
        self.core.is_constrained()
    }
    fn take_counts(&mut self) -> Counts {
        self.core.take_counts()
    }
    fn diagnosis(&self) -> Option<Diagnosis> {
        self.core.diagnosis()
    }
    fn jacobian_norm(&self) -> f64 {
        self.core.jacobian_norm()
    }
    fn boxed_clone(&self) -> Box<dyn StiffStages<Y>> {
        Box::new(Plain::<Y> { core: self.core.boxed_clone(), written: self.written.clone() })
    }
}

/// The vector field of a plain state, evaluated on slices of components.
pub(super) struct PlainField<'a, Y: PlainState> {
    pub f: &'a dyn VectorField<Y>,
    pub functions: Option<&'a StateFunctions<'a, Y>>,
    /// Scratch: the argument and the result of an evaluation.
    pub argument: &'a mut Y,
    pub rate: &'a mut Y,
    pub written: &'a mut Option<Jacobian>,
}

impl<Y: PlainState> FieldOn<Y::Number> for PlainField<'_, Y> {
    fn eval(&mut self, t: &f64, y: &[Y::Number], dy: &mut [Y::Number]) -> Result<(), FieldFailure<f64>> {
        self.argument.write(y);
        eval(&self.f, t, self.argument, self.rate)?;
        self.rate.read(dy);
        Ok(())
    }

    fn linearize(
        &mut self,
        t: &f64,
        y: &[Y::Number],
        plan: &Coloring,
        into: Derivatives<'_, Y::Number>,
    ) -> Result<Known, FieldFailure<f64>> {
        let Derivatives { jacobian, f_t, column } = into;
        let given = self.functions;
        let mut known = Known::default();
        if let Some(given) = given.and_then(|given| given.jacobian.as_ref()) {
            self.argument.write(y);
            let zeros = || Jacobian(Matrix::zeros(y.len(), jacobian.lower(), jacobian.upper()));
            let written = self.written.get_or_insert_with(zeros);
            written.0.fill(0.0);
            given(*t, self.argument, written);
            for j in 0..y.len() {
                for i in jacobian.rows(j) {
                    jacobian[(i, j)] = Y::Number::constant(written.0[(i, j)]);
                }
            }
            (known.jacobian, known.is_given) = (true, true);
        }
        if let Some(given) = given.and_then(|given| given.time_derivative.as_ref()) {
            self.argument.write(y);
            given(*t, self.argument, self.rate);
            self.rate.conforms(self.argument).map_err(|mismatch| FieldFailure {
                t: *t,
                source: FunctionError(mismatch.of_derivative("`time_derivative`").to_string()).into(),
            })?;
            self.rate.read(f_t);
            known.f_t = true;
        }
        if known.jacobian && known.f_t {
            return Ok(known);
        }
        let Some(itself) = self.f.linearize() else { return Ok(known) };
        self.argument.write(y);
        let num_colors = plan.num_colors();
        itself.columns(t, self.argument, plan.colors(), num_colors, &mut |color, dy: &Y| {
            if color == num_colors {
                if !known.f_t {
                    dy.read(f_t);
                }
            } else if !known.jacobian {
                dy.read(column);
                plan.each_entry(color, jacobian, |i, _| column[i]);
            }
        });
        Ok(Known { jacobian: true, f_t: true, ..known })
    }
}

/// Whether `k[0]` already holds f(t, y).
pub(super) fn is_given<S: State>(request: &Request<'_, '_, S>) -> bool {
    request.first == First::Given
}
