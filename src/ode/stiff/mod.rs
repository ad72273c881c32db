//! Stages of methods for stiff problems: what such a step computes in place of [`stages`](super::stages).
//!
//! A Rosenbrock step needs the Jacobian and solves linear systems, a Chebyshev step chooses how many stages it takes; both need
//! memory of their own. It lies behind a pointer ([`StiffStages`]) in the [`Carry`](super::Carry), so that a loop over
//! steps has one branch and one call for them, whatever the state, and explicit methods have nothing. Underneath, all of it works
//! on slices of components ([`FieldOn`], [`Core`]) and is compiled with this crate once for f64. Nothing that is kept here
//! outlives a step in its results: a Jacobian is used again only where t and y are the same.

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

/// What a step is to compute.
pub struct Request<'r, 'a, S: State> {
    pub(super) scheme: &'r Scheme<'a, S>,
    /// Whether `k[0]` is f(t, y) already.
    pub(super) first: First,
    pub(super) times: &'r Times<S::Clock>,
    pub(super) h: &'r S::Clock,
}

/// The stages of a method for stiff problems, with the memory that they need between steps.
pub trait StiffStages<S: State>: Send + Sync {
    /// Computes the stages and y1; what `k` has beside the stages, one state or more, is scratch.
    ///
    /// # Errors
    /// What the field said, with the time it was evaluated at.
    fn stages(
        &mut self,
        f: &dyn VectorField<S>,
        request: &Request<'_, '_, S>,
        y: &S,
        k: &mut [S],
        y1: &mut S,
    ) -> Result<(), FieldFailure<S::Clock>>;

    /// What was counted since this was called last.
    fn take_counts(&mut self) -> Counts;

    /// Why the step last computed has numbers that are not finite, where that is known.
    fn diagnosis(&self) -> Option<Diagnosis>;

    /// `max_i sum_j |df_i/dy_j|` of the step last computed.
    fn jacobian_norm(&self) -> f64;

    /// A copy of it, with its memory.
    fn boxed_clone(&self) -> Box<dyn StiffStages<S>>;
}

impl<S: State> Clone for Box<dyn StiffStages<S>> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// What stages took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Evaluations of the field, those for differences included.
    pub evals: u64,
    /// Jacobians.
    pub jacobians: u64,
    /// Factorizations.
    pub factorizations: u64,
}

/// Why a step has numbers that are not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnosis {
    /// An entry of the Jacobian is not finite; `y` is the component that it differentiates by.
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

/// A vector field in terms of components.
pub trait FieldOn<R: Real> {
    /// `f(t, y)`.
    ///
    /// # Errors
    /// What the field said, with the time.
    fn eval(&mut self, t: &R::Clock, y: &[R], dy: &mut [R]) -> Result<(), FieldFailure<R::Clock>>;

    /// Writes what is known of df/dy and df/dt without differences, and says which of the two that is.
    ///
    /// # Errors
    /// What the field said, with the time.
    fn linearize(&mut self, t: &R::Clock, y: &[R], plan: &Plan, into: Derivatives<'_, R>) -> Known;
}

/// Where derivatives are written to: df/dy, zero before, and df/dt.
pub struct Derivatives<'a, R> {
    pub(super) jacobian: &'a mut Matrix<R>,
    pub(super) f_t: &'a mut [R],
    /// Scratch of a column.
    pub(super) column: &'a mut [R],
}

/// Which derivatives are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub(super) jacobian: bool,
    pub(super) f_t: bool,
}
