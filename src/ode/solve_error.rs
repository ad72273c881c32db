//! `SolveError`: why there is no whole solution, with as much of one as there is.
//!
//! It knows nothing of what it carries, so every driver fails alike: host values, ensembles, sensitivities, tensors and
//! stepping by hand differ in the type of `partial` alone. Who does not want that part loses it with `?`: every
//! `SolveError` turns into an [`OdeError`] and a [`flowline::Error`](crate::Error).

use super::{FieldError, OdeError, Outcome, Tol};
use std::error::Error;
use std::fmt;

/// Why a solve gave no whole solution.
///
/// A solution is whole where t1 was reached, an event ended the solve, or `on_step` broke it off.
///
/// # Examples
/// ```
/// use flowline::ode::{Ode, Outcome, SolveError};
/// let explodes = Ode::new(|_t, y: &f64| y * y);
/// let Err(SolveError::Incomplete { outcome, partial, .. }) = explodes.solve(0.0, 2.0, 1.0) else { panic!() };
/// assert!(matches!(outcome, Outcome::StepSizeTooSmall { .. } | Outcome::NonFinite { .. }));
/// assert!((partial.t1 - 1.0).abs() < 1e-4);
/// ```
#[non_exhaustive]
pub enum SolveError<S> {
    /// The problem or a setting was refused. Nothing ran.
    Config(OdeError),
    /// The vector field failed.
    Field {
        /// The time it was evaluated at.
        t: f64,
        /// Steps attempted before.
        step: u64,
        /// What the field said.
        source: FieldError,
        /// What was computed up to the last good step.
        partial: Box<S>,
    },
    /// An event failed.
    Event {
        /// Which event, and how.
        source: OdeError,
        /// What was computed up to the step in which it failed.
        partial: Box<S>,
    },
    /// The solve ended early.
    Incomplete {
        /// Why.
        outcome: Outcome,
        /// Where rows or trajectories take steps of their own: the first that ended early.
        row: Option<usize>,
        /// The relative tolerance it ran with.
        rtol: Tol,
        /// The absolute tolerance it ran with.
        atol: Tol,
        /// What was computed; of several rows or trajectories all.
        partial: Box<S>,
    },
}

impl<S> SolveError<S> {
    /// What was computed; `None` where nothing ran.
    pub fn partial(&self) -> Option<&S> {
        match self {
            SolveError::Config(_) => None,
            SolveError::Field { partial, .. }
            | SolveError::Event { partial, .. }
            | SolveError::Incomplete { partial, .. } => Some(partial),
        }
    }

    /// What was computed; `None` where nothing ran.
    pub fn into_partial(self) -> Option<S> {
        match self {
            SolveError::Config(_) => None,
            SolveError::Field { partial, .. }
            | SolveError::Event { partial, .. }
            | SolveError::Incomplete { partial, .. } => Some(*partial),
        }
    }

    /// Of a solve that went as far as `partial` and then failed by `error`.
    pub(crate) fn failed(error: OdeError, partial: S) -> Self {
        let partial = Box::new(partial);
        match error {
            OdeError::Field { t, step, source } => SolveError::Field { t, step, source, partial },
            source => SolveError::Event { source, partial },
        }
    }

    /// The same with `f` of what was computed.
    #[cfg(feature = "autodiff")]
    pub(crate) fn map<T>(self, f: impl FnOnce(S) -> T) -> SolveError<T> {
        let f = |partial: Box<S>| Box::new(f(*partial));
        match self {
            SolveError::Config(error) => SolveError::Config(error),
            SolveError::Field { t, step, source, partial } => {
                SolveError::Field { t, step, source, partial: f(partial) }
            }
            SolveError::Event { source, partial } => SolveError::Event { source, partial: f(partial) },
            SolveError::Incomplete { outcome, row, rtol, atol, partial } => {
                SolveError::Incomplete { outcome, row, rtol, atol, partial: f(partial) }
            }
        }
    }
}

impl<S> From<OdeError> for SolveError<S> {
    fn from(error: OdeError) -> Self {
        SolveError::Config(error)
    }
}

/// Drops what was computed.
impl<S> From<SolveError<S>> for OdeError {
    fn from(error: SolveError<S>) -> Self {
        match error {
            SolveError::Config(error) | SolveError::Event { source: error, .. } => error,
            SolveError::Field { t, step, source, .. } => OdeError::Field { t, step, source },
            SolveError::Incomplete { outcome, row, rtol, atol, .. } => {
                OdeError::Stopped { outcome, row, rtol, atol }
            }
        }
    }
}

/// Drops what was computed.
impl<S> From<SolveError<S>> for crate::Error {
    fn from(error: SolveError<S>) -> Self {
        OdeError::from(error).into()
    }
}

impl<S> fmt::Debug for SolveError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveError::Config(error) => f.debug_tuple("Config").field(error).finish(),
            SolveError::Field { t, step, source, .. } => f
                .debug_struct("Field")
                .field("t", t)
                .field("step", step)
                .field("source", source)
                .finish_non_exhaustive(),
            SolveError::Event { source, .. } => {
                f.debug_struct("Event").field("source", source).finish_non_exhaustive()
            }
            SolveError::Incomplete { outcome, row, rtol, atol, .. } => f
                .debug_struct("Incomplete")
                .field("outcome", outcome)
                .field("row", row)
                .field("rtol", rtol)
                .field("atol", atol)
                .finish_non_exhaustive(),
        }
    }
}

impl<S> fmt::Display for SolveError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveError::Config(error) | SolveError::Event { source: error, .. } => error.fmt(f),
            SolveError::Field { t, step, source, .. } => f.write_str(&field_failed(*t, *step, source)),
            SolveError::Incomplete { outcome, row, rtol, atol, .. } => {
                f.write_str(&stopped(outcome, *row, rtol, atol))
            }
        }
    }
}

impl<S> Error for SolveError<S> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SolveError::Config(error) | SolveError::Event { source: error, .. } => error.source(),
            SolveError::Field { source, .. } => Some(&**source),
            SolveError::Incomplete { .. } => None,
        }
    }
}

/// The words of [`OdeError::Field`] and [`SolveError::Field`].
pub(super) fn field_failed(t: f64, step: u64, source: &FieldError) -> String {
    format!("the vector field failed at t={t} (step {step}): {source}")
}

/// The words of [`OdeError::Stopped`] and [`SolveError::Incomplete`].
pub(super) fn stopped(outcome: &Outcome, row: Option<usize>, rtol: &Tol, atol: &Tol) -> String {
    let whose = row.map_or_else(String::new, |row| format!(" of row {row}"));
    format!("the solve{whose} stopped early with rtol={rtol:e}, atol={atol:e}: {outcome}")
}
