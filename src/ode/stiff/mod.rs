//! Stages of methods for stiff problems; such a step computes them in place of [`stages`](super::stages).
//!
//! A Rosenbrock step needs the Jacobian and solves linear systems; a Chebyshev step chooses its number of stages. Both
//! keep memory between steps, behind a pointer ([`StiffStages`]) in the [`Carry`](super::Carry): a loop over steps has
//! one branch and one call for them, whatever the state, and explicit methods pay nothing. The implementation works on
//! slices of components ([`FieldOn`], [`Core`]) and is compiled with this crate once for f64. Cached values never
//! change results: a Jacobian is reused only at the same t and y.

mod chebyshev;
mod differences;
mod jacobian;
mod options;
mod plain;
mod rosenbrock;

pub use jacobian::{Jacobian, Linearize, StateFunctions, dual_columns};
pub use plain::{make_memory, stiff_stages};
pub use rosenbrock::{Core, Rosenbrock, Solvable, StepOf};

use super::linear::{Matrix, Plan};
use super::stages::{First, Times};
use super::{FieldFailure, Real, Scheme, State, VectorField};

/// The inputs of a step.
pub struct Request<'r, 'a, S: State> {
    pub(super) scheme: &'r Scheme<'a, S>,
    /// Whether `k[0]` already is f(t, y).
    pub(super) first: First,
    pub(super) times: &'r Times<S::Clock>,
    pub(super) h: &'r S::Clock,
}

/// The stages of a method for stiff problems, with the memory that they keep between steps.
pub trait StiffStages<S: State>: Send + Sync {
    /// Computes the stages and y1; `k` has at least one state beyond the stages, as scratch.
    ///
    /// # Errors
    /// An error of the vector field, with its time.
    fn stages(
        &mut self,
        f: &dyn VectorField<S>,
        request: &Request<'_, '_, S>,
        y: &S,
        k: &mut [S],
        y1: &mut S,
    ) -> Result<(), FieldFailure<S::Clock>>;

    /// The counts since the last call.
    fn take_counts(&mut self) -> Counts;

    /// Why the last step is not finite, where that is known.
    fn diagnosis(&self) -> Option<Diagnosis>;

    /// `max_i sum_j |df_i/dy_j|` of the last step.
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
    /// Jacobians.
    pub jacobians: u64,
    /// Factorizations.
    pub factorizations: u64,
}

/// Why a step is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnosis {
    /// An entry of the Jacobian is not finite; `y` is the component that it is a derivative by.
    Jacobian {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// `y[column]`.
        y: f64,
    },
    /// `M / gamma - h J` is singular: it does not determine this component.
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
    /// An error of the vector field, with its time.
    fn eval(&mut self, t: &R::Clock, y: &[R], dy: &mut [R]) -> Result<(), FieldFailure<R::Clock>>;

    /// Writes what is known of df/dy and df/dt without differences, and returns which of the two that is.
    ///
    /// # Errors
    /// An error of the vector field, with its time.
    fn linearize(&mut self, t: &R::Clock, y: &[R], plan: &Plan, into: Derivatives<'_, R>) -> Known;
}

/// The output of derivatives: df/dy, initially zero, and df/dt.
pub struct Derivatives<'a, R> {
    pub(super) jacobian: &'a mut Matrix<R>,
    pub(super) f_t: &'a mut [R],
    /// Scratch for a column.
    pub(super) column: &'a mut [R],
}

/// Which derivatives are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub(super) jacobian: bool,
    pub(super) f_t: bool,
}
