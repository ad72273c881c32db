//! `Outcome` and `Stats`: why a solve ended, and its counters.
//!
//! An early end is an outcome with a partial solution. The driver decides whether it is also an error. A
//! carry has the code of [`status`] instead of an enum, because a recorded solve has numbers only.

use super::Carry;
use super::State;
use super::stiff::Diagnosis;
use std::fmt;

/// The values of [`Carry::status`](super::Carry).
pub mod status {
    /// The solve is running.
    pub const RUNNING: f64 = 0.0;
    /// t1 is reached.
    pub const COMPLETED: f64 = 1.0;
    /// `max_steps` steps were attempted.
    pub const MAX_STEPS: f64 = 2.0;
    /// The step size, from the controller or dt0, is below dt_min or below 16 ulp of t.
    pub const STEP_SIZE_TOO_SMALL: f64 = 3.0;
    /// Numbers became NaN or infinite, and shorter steps did not help.
    pub const NON_FINITE: f64 = 4.0;
    /// A terminal event occurred.
    pub const EVENT: f64 = 5.0;
    /// The callback `on_step` ended the solve.
    pub const CANCELLED: f64 = 6.0;
    /// More events occurred than `max_events` allows.
    pub const MAX_EVENTS: f64 = 7.0;
    /// The two states of a reversible solve differ too much.
    pub const REVERSIBLE_UNSTABLE: f64 = 8.0;
    /// Events accumulate.
    pub const ZENO: f64 = 9.0;
    /// The vector field or an event failed.
    pub const FAILED: f64 = 10.0;
    /// A Jacobian is not finite. Only encoded outcomes have this code; a carry has [`NON_FINITE`] instead.
    pub const NON_FINITE_JACOBIAN: f64 = 11.0;
    /// A matrix of a method for stiff problems is singular. A carry has this code only where the algebraic
    /// equations are solved again; steps have [`NON_FINITE`] instead.
    pub const SINGULAR: f64 = 12.0;
    /// The custom error norm is not finite. Only encoded outcomes have this code.
    pub const NON_FINITE_NORM: f64 = 13.0;
    /// The algebraic equations have no solution near the state after a reset or a discontinuity.
    pub const INCONSISTENT: f64 = 14.0;
}

/// Why a solve ended.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[doc(alias = "RESULTS")]
#[doc(alias = "retcode")]
pub enum Outcome {
    /// t1 is reached.
    Completed,
    /// `max_steps` steps were attempted before t1 was reached.
    MaxSteps {
        /// The time reached.
        t: f64,
        /// Steps attempted.
        step: u64,
    },
    /// A terminal event ended the solve at t1 of the solution.
    Event {
        /// The index of the event, in the order of declaration.
        index: usize,
        /// Its time.
        t: f64,
    },
    /// The callback `on_step` ended the solve.
    StoppedByOnStep {
        /// The time reached.
        t: f64,
    },
    /// More events occurred than [`Ode::max_events`](super::Ode::max_events) allows. t1 and y1 of the
    /// solution belong to the first event beyond the limit, without its state reset.
    MaxEvents {
        /// The time of the first event beyond the limit.
        t: f64,
        /// The limit.
        max_events: usize,
    },
    /// The state resets of an event accumulate: infinitely many more would occur within a tiny fraction of
    /// the time of those so far; see [`Event`](super::Event). t1 and y1 are those after the last reset.
    Zeno {
        /// The index of the event, in the order of declaration.
        index: usize,
        /// The time reached.
        t: f64,
    },
    /// In a solve on tensors with `Adjoint::Reversible`, the two states of the method differ too much to
    /// determine the solution.
    ReversibleUnstable {
        /// The time reached.
        t: f64,
        /// The largest difference between the two states, in the unit of y.
        difference: f64,
        /// Steps attempted.
        step: u64,
    },
    /// The step size, from the controller or dt0, is below dt_min or below 16 ulp of t.
    StepSizeTooSmall {
        /// The time reached.
        t: f64,
        /// The step size needed, signed.
        dt: f64,
        /// The setting `dt_min`; 0 if only the limit of 16 ulp applies.
        dt_min: f64,
        /// Steps attempted.
        step: u64,
    },
    /// Numbers became NaN or infinite: in f(t0, y0), in the y0 of a trajectory of an ensemble, in one step of
    /// constant size or of `StepTo`, or in 20 consecutive adaptive steps. Fewer than 20 steps suffice if the
    /// next step would be below the smallest step size.
    NonFinite {
        /// The time reached; the failed step started here.
        t: f64,
        /// The size of the failed step, signed; 0 for f(t0, y0) and for y0.
        dt: f64,
        /// Steps attempted.
        step: u64,
        /// The first component that is not finite; `None` if none is known, for example if only the error
        /// norm is not finite.
        component: Option<usize>,
    },
    /// The Jacobian has an entry that is NaN or infinite, so that no step of a method for stiff problems is finite.
    NonFiniteJacobian {
        /// The time reached, at which the Jacobian was computed.
        t: f64,
        /// The row of the entry.
        row: usize,
        /// Its column.
        column: usize,
        /// `y[column]`.
        y: f64,
    },
    /// The matrix `M / gamma - h J` of a method for stiff problems is singular: in one step of constant size
    /// or of `StepTo`, or in as many adaptive steps as for [`Outcome::NonFinite`]. On tensors also before the first step, if
    /// the algebraic equations do not determine the component.
    SingularMatrix {
        /// The time reached; the steps that failed started here.
        t: f64,
        /// A component that the matrix does not determine.
        component: usize,
        /// Steps attempted.
        step: u64,
    },
    /// After a state reset, a change by the caller or a discontinuity, Newton's method found no state that
    /// satisfies the algebraic equations. On tensors also at the start, if y0 does not satisfy them.
    Inconsistent {
        /// The equation with the largest residual relative to its terms.
        equation: usize,
        /// The time reached.
        t: f64,
        /// Steps attempted.
        step: u64,
    },
    /// The function of an event is NaN: at the start, in one step of constant size or of `StepTo`, or in as
    /// many adaptive steps as for [`Outcome::NonFinite`].
    NonFiniteEvent {
        /// The index of the event, in the order of declaration.
        index: usize,
        /// The time reached; the failed step started here.
        t: f64,
        /// The size of the failed step, signed; 0 at the start.
        dt: f64,
        /// Steps attempted.
        step: u64,
    },
    /// The custom error norm is NaN, infinite or negative, in as many steps as for [`Outcome::NonFinite`].
    NonFiniteNorm {
        /// The time reached; the failed step started here.
        t: f64,
        /// The size of the failed step, signed.
        dt: f64,
        /// Steps attempted.
        step: u64,
    },
    /// The vector field or an event failed: see the [`SolveError`](super::SolveError).
    Failed {
        /// The time reached; the failed step started here.
        t: f64,
        /// Steps attempted.
        step: u64,
    },
}

impl Outcome {
    /// Converts a status code and the numbers of a carry to an outcome; `None` while the solve runs.
    pub fn decode(status: f64, t: f64, dt: f64, step: f64, component: f64, dt_min: f64) -> Option<Outcome> {
        let step = step as u64;
        match status {
            status::COMPLETED => Some(Outcome::Completed),
            status::MAX_STEPS => Some(Outcome::MaxSteps { t, step }),
            status::STEP_SIZE_TOO_SMALL => Some(Outcome::StepSizeTooSmall { t, dt, dt_min, step }),
            // For this status, `component` is the index of the event.
            status::EVENT => Some(Outcome::Event { index: component.max(0.0) as usize, t }),
            status::CANCELLED => Some(Outcome::StoppedByOnStep { t }),
            // For this status, `component` is the limit.
            status::MAX_EVENTS => Some(Outcome::MaxEvents { t, max_events: component.max(0.0) as usize }),
            status::ZENO => Some(Outcome::Zeno { index: component.max(0.0) as usize, t }),
            status::FAILED => Some(Outcome::Failed { t, step }),
            status::REVERSIBLE_UNSTABLE => {
                Some(Outcome::ReversibleUnstable { t, difference: component, step })
            }
            status::NON_FINITE_JACOBIAN => {
                Some(Outcome::NonFiniteJacobian { t, row: step as usize, column: component as usize, y: dt })
            }
            status::SINGULAR => Some(Outcome::SingularMatrix { t, component: component as usize, step }),
            status::NON_FINITE_NORM => Some(Outcome::NonFiniteNorm { t, dt, step }),
            status::INCONSISTENT => Some(Outcome::Inconsistent { equation: component as usize, t, step }),
            status::NON_FINITE => {
                if component <= -2.0 {
                    let index = (-2.0 - component) as usize;
                    return Some(Outcome::NonFiniteEvent { index, t, dt, step });
                }
                let component = (component >= 0.0).then_some(component as usize);
                Some(Outcome::NonFinite { t, dt, step, component })
            }
            _ => None,
        }
    }

    /// This outcome as the arguments of [`Outcome::decode`], in their order.
    #[cfg(feature = "rayon")]
    pub(crate) fn encode(&self) -> [f64; 6] {
        let (none, count) = (0.0, |n: usize| n as f64);
        match *self {
            Outcome::Completed => [status::COMPLETED, none, none, none, none, none],
            Outcome::MaxSteps { t, step } => [status::MAX_STEPS, t, none, step as f64, none, none],
            Outcome::StepSizeTooSmall { t, dt, dt_min, step } => {
                [status::STEP_SIZE_TOO_SMALL, t, dt, step as f64, none, dt_min]
            }
            Outcome::Event { index, t } => [status::EVENT, t, none, none, count(index), none],
            Outcome::StoppedByOnStep { t } => [status::CANCELLED, t, none, none, none, none],
            Outcome::MaxEvents { t, max_events } => {
                [status::MAX_EVENTS, t, none, none, count(max_events), none]
            }
            Outcome::Zeno { index, t } => [status::ZENO, t, none, none, count(index), none],
            Outcome::Failed { t, step } => [status::FAILED, t, none, step as f64, none, none],
            Outcome::ReversibleUnstable { t, difference, step } => {
                [status::REVERSIBLE_UNSTABLE, t, none, step as f64, difference, none]
            }
            Outcome::NonFiniteJacobian { t, row, column, y } => {
                [status::NON_FINITE_JACOBIAN, t, y, count(row), count(column), none]
            }
            Outcome::SingularMatrix { t, component, step } => {
                [status::SINGULAR, t, none, step as f64, count(component), none]
            }
            Outcome::NonFiniteNorm { t, dt, step } => {
                [status::NON_FINITE_NORM, t, dt, step as f64, none, none]
            }
            Outcome::Inconsistent { equation, t, step } => {
                [status::INCONSISTENT, t, none, step as f64, count(equation), none]
            }
            Outcome::NonFiniteEvent { index, t, dt, step } => {
                [status::NON_FINITE, t, dt, step as f64, Self::code_of_event(index), none]
            }
            Outcome::NonFinite { t, dt, step, component } => {
                [status::NON_FINITE, t, dt, step as f64, component.map_or(-1.0, count), none]
            }
        }
    }

    /// The outcome of a carry of plain values; `None` while the solve runs.
    pub fn of<S: State<Clock = f64>>(carry: &Carry<S>, dt_min: f64) -> Option<Outcome> {
        let dt = if carry.status == status::NON_FINITE { carry.h } else { carry.dt };
        Outcome::decode(carry.status, carry.t, dt, carry.num_steps, carry.component, dt_min)
    }

    /// Replaces `NonFinite` by the cause: the diagnosis of a method for stiff problems, or the custom norm if
    /// there is one and all components of a step are finite.
    pub(crate) fn diagnosed(self, diagnosis: Option<Diagnosis>, has_norm: bool) -> Outcome {
        match (self, diagnosis) {
            (Outcome::NonFinite { t, dt, step, component: None }, None) if has_norm && step > 0 => {
                Outcome::NonFiniteNorm { t, dt, step }
            }
            (Outcome::NonFinite { t, .. }, Some(Diagnosis::Jacobian { row, column, y })) => {
                Outcome::NonFiniteJacobian { t, row, column, y }
            }
            (Outcome::NonFinite { t, step, .. }, Some(Diagnosis::Singular { component })) => {
                Outcome::SingularMatrix { t, component, step }
            }
            _ => self,
        }
    }

    /// The value of `Carry::component` if the function of event `index` is NaN.
    pub(crate) fn code_of_event(index: usize) -> f64 {
        -2.0 - index as f64
    }

    /// Whether t1 was reached.
    pub fn reached_t1(&self) -> bool {
        matches!(self, Outcome::Completed)
    }

    /// Whether the solve ended as intended: at t1, by a terminal event or by `on_step`.
    pub fn is_success(&self) -> bool {
        matches!(self, Outcome::Completed | Outcome::Event { .. } | Outcome::StoppedByOnStep { .. })
    }
}

/// The counters of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Steps attempted: accepted and rejected.
    pub num_steps: u64,
    /// Steps accepted.
    #[doc(alias = "naccept")]
    pub num_accepted: u64,
    /// Steps rejected. With [`HairerController`](super::HairerController), steps that the error estimate
    /// rejects before the first accepted step are not counted.
    pub num_rejected: u64,
    /// Function evaluations: calls of the vector field.
    pub num_fn_evals: u64,
    /// Jacobians that were computed; 0 for explicit methods and `Rkc2`.
    pub num_jac_evals: u64,
    /// Matrices that were factored; 0 for explicit methods and `Rkc2`.
    pub num_factorizations: u64,
}

impl Stats {
    /// The counters of a carry of plain values.
    pub fn of<S: State<Clock = f64>>(carry: &Carry<S>) -> Stats {
        Stats {
            num_steps: carry.num_steps as u64,
            num_accepted: carry.num_accepted as u64,
            num_rejected: carry.num_rejected as u64,
            num_fn_evals: carry.num_fn_evals as u64,
            num_jac_evals: carry.num_jac_evals as u64,
            num_factorizations: carry.num_factorizations as u64,
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { num_steps, num_rejected, num_fn_evals, .. } = self;
        write!(f, "{num_steps} steps ({num_rejected} rejected), {num_fn_evals} function evaluations")
    }
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::Outcome;

    #[test]
    fn an_outcome_comes_back_from_its_numbers() {
        let (t, dt, dt_min, step) = (1.5, -0.25, 1e-16, 7);
        let all = [
            Outcome::Completed,
            Outcome::MaxSteps { t, step },
            Outcome::StepSizeTooSmall { t, dt, dt_min, step },
            Outcome::Event { index: 2, t },
            Outcome::StoppedByOnStep { t },
            Outcome::MaxEvents { t, max_events: 9 },
            Outcome::Zeno { index: 1, t },
            Outcome::Failed { t, step },
            Outcome::ReversibleUnstable { t, difference: 0.5, step },
            Outcome::NonFinite { t, dt, step, component: Some(3) },
            Outcome::NonFinite { t, dt, step, component: None },
            Outcome::NonFiniteEvent { index: 4, t, dt, step },
            Outcome::NonFiniteJacobian { t, row: 1, column: 2, y: dt },
            Outcome::NonFiniteNorm { t, dt, step },
            Outcome::SingularMatrix { t, component: 3, step },
            Outcome::Inconsistent { equation: 2, t, step },
        ];
        for outcome in all {
            let [status, t, dt, step, component, dt_min] = outcome.encode();
            assert_eq!(Outcome::decode(status, t, dt, step, component, dt_min), Some(outcome));
        }
    }
}
