//! The stages of stiff methods. They replace [`stages`](super::stages) in a step of such a method.
//!
//! A Rosenbrock step needs the Jacobian and solves linear systems. A Chebyshev step chooses its number of
//! stages. Both store memory between steps behind a pointer ([`StiffStages`]) in the [`Carry`](super::Carry).
//! For stiff methods, the code of a loop over steps therefore has only one branch and one call, for every
//! type of state. Rosenbrock steps work on slices of components ([`FieldOn`], [`Core`]), so their code for
//! f64 is compiled only once, with this crate. A Jacobian is reused only at the same t and y.

mod chebyshev;
mod consistent;
mod core;
mod differences;
mod jacobian;
mod options;
mod plain;
mod rosenbrock;
mod verify;

pub use consistent::{Consistency, Correction};
pub use core::{Core, Solvable};
pub use jacobian::{Jacobian, Linearize, StateFunctions, dual_columns};
pub use plain::{make_memory, stiff_stages};
pub use rosenbrock::{Rosenbrock, StepOf};

use super::linear::{Coloring, Matrix};
use super::stages::{First, Times};
use super::{FieldFailure, Real, Scheme, State, VectorField};

/// The inputs of a step.
pub struct Request<'r, 'a, S: State> {
    pub(crate) scheme: &'r Scheme<'a, S>,
    /// Whether `k[0]` already holds f(t, y).
    pub(super) first: First,
    pub(crate) times: &'r Times<S::Clock>,
    pub(crate) h: &'r S::Clock,
}

/// A stiff method: computes the stages of a step, and stores memory between steps.
pub trait StiffStages<S: State>: Send + Sync {
    /// Computes the stages and y1; `k` has at least one state beyond the stages, as scratch.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn stages(
        &mut self,
        f: &dyn VectorField<S>,
        request: &Request<'_, '_, S>,
        y: &S,
        k: &mut [S],
        y1: &mut S,
    ) -> Result<(), FieldFailure<S::Clock>>;

    /// Solves the algebraic equations at t with Newton's method, from the state y, and replaces y by the
    /// solution. `M y` does not change. `scratch` has two states. If y consists of dual numbers, it
    /// gets the derivatives of the solution, even if its value hardly changes.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn solve_constraints(
        &mut self,
        _f: &dyn VectorField<S>,
        _scheme: &Scheme<S>,
        _t: &S::Clock,
        _y: &mut S,
        _scratch: (&mut S, &mut S),
    ) -> Result<Consistency, FieldFailure<S::Clock>> {
        Ok(Consistency::Unknown)
    }

    /// Whether some equations are algebraic.
    fn is_constrained(&self) -> bool {
        false
    }

    /// The number of stages of the last step, if it differs between steps.
    fn num_stages(&self) -> Option<usize> {
        None
    }

    /// Computes the next step with this number of stages, if it differs between steps.
    fn set_num_stages(&mut self, _num_stages: usize) {}

    /// Returns the counts since the last call of this function, and resets them.
    fn take_counts(&mut self) -> Counts;

    /// Why the last step is not finite; `None` if the reason is unknown.
    fn diagnosis(&self) -> Option<Diagnosis>;

    /// `max_i sum_j |df_i/dy_j|` of the last step; for `Rkc2`, the last estimate of the spectral radius.
    fn jacobian_norm(&self) -> f64;

    /// A copy, with its memory.
    fn boxed_clone(&self) -> Box<dyn StiffStages<S>>;
}

impl<S: State> Clone for Box<dyn StiffStages<S>> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// The cost of the stages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Evaluations of the vector field, including those for differences.
    pub evals: u64,
    /// Jacobians computed.
    pub jacobians: u64,
    /// LU factorizations.
    pub factorizations: u64,
}

/// Why a step is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnosis {
    /// An entry of the Jacobian is not finite.
    Jacobian {
        /// The row of the entry.
        row: usize,
        /// The column of the entry.
        column: usize,
        /// `y[column]`, the component with respect to which the entry is a derivative.
        y: f64,
    },
    /// `M / gamma - h J` is singular, so the step does not determine this component.
    Singular {
        /// The component.
        component: usize,
    },
}

/// A vector field on slices of components.
pub trait FieldOn<R: Real> {
    /// `f(t, y)`.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn eval(&mut self, t: &R::Clock, y: &[R], dy: &mut [R]) -> Result<(), FieldFailure<R::Clock>>;

    /// Writes df/dy and df/dt if they are available without finite differences, and returns which of them it
    /// wrote.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    fn linearize(
        &mut self,
        t: &R::Clock,
        y: &[R],
        plan: &Coloring,
        into: Derivatives<'_, R>,
    ) -> Result<Known, FieldFailure<R::Clock>>;
}

/// Where derivatives are written: df/dy, which is zero outside of the sparsity pattern, and df/dt.
pub struct Derivatives<'a, R> {
    pub(super) jacobian: &'a mut Matrix<R>,
    pub(super) f_t: &'a mut [R],
    /// Scratch for a column.
    pub(super) column: &'a mut [R],
}

/// Which derivatives were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub(super) jacobian: bool,
    pub(super) f_t: bool,
    /// Whether the user's function wrote df/dy.
    pub(super) is_given: bool,
}
