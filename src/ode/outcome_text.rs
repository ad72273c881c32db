//! The text of an [`Outcome`]: where the solve ended, with which numbers, and what to do.

use super::Outcome;
use super::shown::shown;
use std::fmt;

impl Outcome {
    /// Prints an outcome of numbers that are not finite, or of a singular matrix.
    fn write_non_finite(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Outcome::NonFiniteEvent { index, t, step: 0, .. } => {
                write!(f, "event {index} is NaN at the start, t={}", shown(t))
            }
            Outcome::NonFiniteEvent { index, t, dt, step } => {
                write!(
                    f,
                    "event {index} is NaN from t={} with step size {:e} (step {step})",
                    shown(t),
                    dt.abs()
                )
            }
            Outcome::NonFiniteJacobian { t, row, column, y } => write!(
                f,
                "the Jacobian is not finite at t={}: row {row}, column {column} (df[{row}]/dy[{column}]); y[{column}]={}; keep \
                 y inside the field's domain, or, on plain states, give `jacobian`",
                shown(t),
                shown(y)
            ),
            Outcome::SingularMatrix { t, component, step: 0 } => write!(
                f,
                "the algebraic equations do not determine y[{component}] at t0={}: their index is above 1; replace them by \
                 their derivatives with respect to t",
                shown(t)
            ),
            Outcome::SingularMatrix { t, component, step } => write!(
                f,
                "M/gamma - hJ is singular at t={} (step {step}) and does not determine y[{component}]: check that the \
                 algebraic equations have index 1; with constant steps, try another dt0",
                shown(t)
            ),
            Outcome::NonFinite { t, step: 0, component, .. } => {
                write!(f, "the vector field is not finite at the start")?;
                write_component(f, component)?;
                write!(f, ", t={}", shown(t))
            }
            Outcome::NonFinite { t, dt, step, component } => {
                write!(f, "non-finite numbers")?;
                write_component(f, component)?;
                write!(f, " from t={} with step size {:e} (step {step})", shown(t), dt.abs())
            }
            Outcome::NonFiniteNorm { t, dt, step } => write!(
                f,
                "`norm` returned NaN, infinity or a negative number from t={} with step size {:e} (step {step}): it must \
                 return a finite number of at least 0",
                shown(t),
                dt.abs()
            ),
            _ => unreachable!("invariant: {self:?} has numbers that are not finite"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Outcome::Completed => write!(f, "completed"),
            Outcome::MaxSteps { t, step } => {
                write!(f, "max_steps={step} reached at t={}; allow more with `max_steps`", shown(t))
            }
            Outcome::Event { index, .. } => write!(f, "stopped by event {index}"),
            Outcome::StoppedByOnStep { .. } => write!(f, "ended by `on_step`"),
            Outcome::MaxEvents { t, max_events } => {
                write!(
                    f,
                    "more than max_events={max_events} events, the next at t={}; allow more with `max_events`",
                    shown(t)
                )
            }
            Outcome::Zeno { index, t } => write!(
                f,
                "event {index} accumulates at t={} (Zeno behavior): infinitely many resets follow within rounding of t; \
                 end the solve earlier with `terminal_after`, or let a slow reset set a component that holds the state at rest",
                shown(t)
            ),
            Outcome::ReversibleUnstable { t, difference, step } => write!(
                f,
                "the two states of `Adjoint::Reversible` differ by {difference:e} at t={} (step {step}), too much \
                 to determine the solution: the method is unstable for damped solutions; lower the coupling, tighten \
                 the tolerances (reduce dt0 if steps are constant), or use `Adjoint::Direct` or `RecursiveCheckpoint`",
                shown(t)
            ),
            Outcome::StepSizeTooSmall { t, dt, dt_min, step } => {
                write!(f, "step size {:e} fell below ", dt.abs())?;
                if dt_min > 0.0 {
                    write!(f, "dt_min={dt_min:e}")?;
                } else {
                    write!(f, "16 ulp of t")?;
                }
                write!(f, " at t={} (step {step})", shown(t))
            }
            Outcome::Inconsistent { equation, t, step: 0 } => write!(
                f,
                "y0 violates algebraic equation {equation} at t0={}: no state within 10 tolerances satisfies the algebraic \
                 equations; choose y0 such that they hold",
                shown(t)
            ),
            Outcome::Inconsistent { equation, t, step } => write!(
                f,
                "no state near that at t={} (step {step}) satisfies algebraic equation {equation}: check the state reset, or \
                 the vector field after the discontinuity",
                shown(t)
            ),
            Outcome::NonFiniteEvent { .. }
            | Outcome::NonFiniteJacobian { .. }
            | Outcome::SingularMatrix { .. }
            | Outcome::NonFiniteNorm { .. }
            | Outcome::NonFinite { .. } => self.write_non_finite(f),
            Outcome::Failed { t, step } => write!(f, "failed in the step from t={} (step {step})", shown(t)),
        }
    }
}

fn write_component(f: &mut fmt::Formatter<'_>, component: Option<usize>) -> fmt::Result {
    component.map_or(Ok(()), |j| write!(f, " in component {j}"))
}
