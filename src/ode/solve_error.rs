//! `SolveError`: why a solution is incomplete, with the part that was computed.
//!
//! It is generic over that part, so the errors of all drivers have the same form: plain states, ensembles,
//! sensitivities, tensors and steppers differ only in the type of `partial`. The operator `?` converts a
//! `SolveError` into a [`flowline::Error`](crate::Error), without this part.

use super::shown::shown;
use super::{ConfigError, FieldError, Outcome, Tol};
use std::error::Error;
use std::fmt;

/// The failure of a function of the caller other than the vector field, which the message names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct FunctionError(pub String);

/// Why a solve returned no complete solution.
///
/// A solution is complete if t1 was reached, or if a terminal event or `on_step` ended the solve.
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
pub enum SolveError<S = ()> {
    /// The problem or a setting is invalid, or the ranks of an ensemble cannot work together. There is no
    /// partial solution.
    Config(ConfigError),
    /// The vector field failed.
    Field {
        /// The time of the evaluation.
        t: f64,
        /// Number of attempts that were complete before this evaluation.
        step: u64,
        /// The vector field's own error.
        source: FieldError,
        /// The solution up to the last good step.
        partial: Box<S>,
    },
    /// The state reset of an event failed.
    Event {
        /// The index of the event, in the order of declaration.
        index: usize,
        /// Its time.
        t: f64,
        /// The reason.
        reason: String,
        /// The solution up to the step in which the state reset failed.
        partial: Box<S>,
    },
    /// A state reset of [`Ode::on_times`](super::Ode::on_times) failed.
    AtTime {
        /// Its time.
        t: f64,
        /// The reason.
        reason: String,
        /// The solution up to this time.
        partial: Box<S>,
    },
    /// The solve ended early.
    Incomplete {
        /// The reason.
        outcome: Outcome,
        /// The first row or trajectory that ended early, if there are several.
        row: Option<usize>,
        /// The relative and the absolute tolerance; `None` for constant steps and `StepTo`, which use neither,
        /// and for a solve inside a compiled program.
        tolerances: Option<Box<(Tol, Tol)>>,
        /// The partial solution, with all rows or trajectories.
        partial: Box<S>,
    },
}

impl<S> SolveError<S> {
    /// The partial solution; `None` for [`SolveError::Config`].
    pub fn partial(&self) -> Option<&S> {
        match self {
            SolveError::Config(_) => None,
            SolveError::Field { partial, .. }
            | SolveError::Event { partial, .. }
            | SolveError::AtTime { partial, .. }
            | SolveError::Incomplete { partial, .. } => Some(partial),
        }
    }

    /// The partial solution; `None` for [`SolveError::Config`].
    pub fn into_partial(self) -> Option<S> {
        match self {
            SolveError::Config(_) => None,
            SolveError::Field { partial, .. }
            | SolveError::Event { partial, .. }
            | SolveError::AtTime { partial, .. }
            | SolveError::Incomplete { partial, .. } => Some(*partial),
        }
    }

    /// The same error with `f` applied to the partial solution.
    pub(crate) fn map<T>(self, f: impl FnOnce(S) -> T) -> SolveError<T> {
        let f = |partial: Box<S>| Box::new(f(*partial));
        match self {
            SolveError::Config(error) => SolveError::Config(error),
            SolveError::Field { t, step, source, partial } => {
                SolveError::Field { t, step, source, partial: f(partial) }
            }
            SolveError::Event { index, t, reason, partial } => {
                SolveError::Event { index, t, reason, partial: f(partial) }
            }
            SolveError::AtTime { t, reason, partial } => {
                SolveError::AtTime { t, reason, partial: f(partial) }
            }
            SolveError::Incomplete { outcome, row, tolerances, partial } => {
                SolveError::Incomplete { outcome, row, tolerances, partial: f(partial) }
            }
        }
    }
}

impl<S> SolveError<S> {
    /// Creates the error of a solve that ended early. `is_adaptive`: whether it used the tolerances.
    pub(crate) fn incomplete(
        outcome: Outcome,
        row: Option<usize>,
        (rtol, atol, is_adaptive): (&Tol, &Tol, bool),
        partial: S,
    ) -> Self {
        let tolerances = is_adaptive.then(|| Box::new((rtol.clone(), atol.clone())));
        SolveError::Incomplete { outcome, row, tolerances, partial: Box::new(partial) }
    }
}

impl SolveError {
    /// Creates the error of a vector field that failed.
    pub(crate) fn of_field(t: f64, step: u64, source: FieldError) -> Self {
        SolveError::Field { t, step, source, partial: Box::new(()) }
    }

    /// Creates the error of a solve inside a compiled program that ended early.
    #[cfg(feature = "autodiff")]
    pub(crate) fn in_program(outcome: Outcome, row: Option<usize>) -> Self {
        SolveError::Incomplete { outcome, row, tolerances: None, partial: Box::new(()) }
    }
}

impl<S> From<ConfigError> for SolveError<S> {
    fn from(error: ConfigError) -> Self {
        SolveError::Config(error)
    }
}

/// Drops the partial solution.
impl<S> From<SolveError<S>> for crate::Error {
    fn from(error: SolveError<S>) -> Self {
        match error {
            SolveError::Config(error) => crate::Error::Config(error),
            other => crate::Error::Solve(other.map(|_| ())),
        }
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
            SolveError::Event { index, t, reason, .. } => f
                .debug_struct("Event")
                .field("index", index)
                .field("t", t)
                .field("reason", reason)
                .finish_non_exhaustive(),
            SolveError::AtTime { t, reason, .. } => {
                f.debug_struct("AtTime").field("t", t).field("reason", reason).finish_non_exhaustive()
            }
            SolveError::Incomplete { outcome, row, tolerances, .. } => f
                .debug_struct("Incomplete")
                .field("outcome", outcome)
                .field("row", row)
                .field("tolerances", tolerances)
                .finish_non_exhaustive(),
        }
    }
}

impl<S> fmt::Display for SolveError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveError::Config(error) => error.fmt(f),
            SolveError::Field { t, step, source, .. } => {
                let (t, of) =
                    (shown(*t), if source.is::<FunctionError>() { "the solve" } else { "the vector field" });
                write!(f, "{of} failed at t={t} (step {step}): {source}")
            }
            SolveError::Event { index, t, reason, .. } => {
                write!(f, "the state reset of event {index} at t={} {reason}", shown(*t))
            }
            SolveError::AtTime { t, reason, .. } => {
                write!(f, "the state reset of `on_times` at t={} {reason}", shown(*t))
            }
            SolveError::Incomplete { outcome, row, tolerances, .. } => {
                f.write_str("the solve")?;
                row.map_or(Ok(()), |row| write!(f, " of row {row}"))?;
                f.write_str(" ended early")?;
                if let Some((rtol, atol)) = tolerances.as_deref() {
                    write!(f, " with rtol={rtol:e}, atol={atol:e}")?;
                }
                write!(f, ": {outcome}")?;
                match (outcome, tolerances) {
                    (Outcome::MaxSteps { .. }, Some(_)) => f.write_str(", or loosen the tolerances"),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl<S> Error for SolveError<S> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SolveError::Config(error) => error.source(),
            SolveError::Field { source, .. } => Some(&**source),
            SolveError::Event { .. } | SolveError::AtTime { .. } | SolveError::Incomplete { .. } => None,
        }
    }
}
