//! Ordinary differential equations: the stepping algorithm, written once over a clock and a state.
//!
//! `y' = f(t, y)`, `y(t0) = y0`. [`attempt`] is the algorithm: one attempted step of an explicit Runge-Kutta
//! method under a step size controller, without a loop and without output. It knows [`Clock`] (t, dt, counters)
//! and [`State`] (y) by their traits alone, so the same code runs on host numbers at the speed of a hand-written
//! loop, on lanes of trajectories, and on tracers that record it into a graph. Drivers, one for each way of
//! running, loop over it; [`Ode`] is the builder in front of all of them. This module knows no tensor.
//!
//! ```
//! use flowline::prelude::*;
//!
//! let lorenz = |_t: f64, y: &[f64; 3]| {
//!     [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
//! };
//! let solution = Ode::new(lorenz).rtol(1e-8).atol(1e-8).solve(0.0, 1.0, [1.0; 3])?;
//! assert!((solution.y1[2] - 29.3623253).abs() < 1e-5);
//! # Ok::<(), flowline::Error>(())
//! ```
//!
//! [`guide`] goes on from there: tolerances, methods, what is kept, events, jumps, stepping by hand, failures, and the
//! same program in other libraries.

mod attempt;
mod attempts;
mod builder;
mod carry;
mod check;
mod clock;
mod controller;
mod curve;
mod dense;
mod dual;
mod ensemble;
mod error;
mod event;
mod field;
mod field_macro;
pub mod guide {
    #![doc = include_str!("guide.md")]
    #![doc = include_str!("compare.md")]
}
mod host;
pub mod inline;
mod integrator;
mod interpolant;
mod knot;
mod lanes;
mod method;
mod number;
mod order;
mod outcome;
mod own_tableau;
mod real;
mod record;
mod retry;
mod save_at;
mod scheme;
mod sensitivity;
mod settings;
mod sides;
mod single;
mod solution;
mod solve_error;
mod stages;
mod start;
mod state;
mod states;
mod stepper;
mod stiffness;
mod tableau;
pub mod tableaux;
mod tolerance;

pub use attempt::{attempt, attempt_then, step};
pub use builder::{IntoState, Ode, OdeState};
pub use carry::Carry;
pub use clock::Clock;
pub use controller::{ConstantStepSize, Controller, HairerController, PidController, StepTo};
pub use curve::complete;
pub use dense::DenseOutput;
pub use dual::{DIRECTIONS, Dual};
pub use ensemble::{EnsembleBuilder, EnsembleProgress, EnsembleSolution};
pub use error::OdeError;
#[cfg(feature = "autodiff")]
pub(crate) use event::{Bracket, Mark, Rhythm, Watch};
pub use event::{Event, EventRecord, EventValue};
pub use field::{
    Closure, Done, FieldError, FieldFailure, InPlace, Inlined, Rate, Recoverable, VectorField, View,
};
pub use field_macro::GenericField;
#[doc(hidden)]
pub use field_macro::{F32Lanes, F64Lanes, FieldDual};
pub use host::{PlainState, odeint};
#[doc(hidden)]
pub use host::{check as check_on_host, solve as solve_on_host};
pub use interpolant::Interpolant;
pub use knot::Span;
#[cfg(feature = "autodiff")]
pub(crate) use knot::slack;
pub use lanes::{LANES, LaneClock, LaneMask, LaneNumber, Lanes, SINGLE_LANES, SingleClock};
pub use method::Method;
pub use number::{FieldNumber, Number};
pub use outcome::{Outcome, Stats, status};
pub use own_tableau::Tableau;
pub use real::Real;
#[cfg(feature = "autodiff")]
pub(crate) use retry::{Before, resume, take_back};
pub use save_at::SaveAt;
pub use scheme::{Limits, Norm, Scheme};
pub use sensitivity::{Sensitivity, SensitivityBuilder};
use settings::Native;
pub use settings::{Resolved, Settings};
pub use sides::{OwnSides, Sides};
pub use single::Single;
pub use solution::{Solution, Warning};
pub use solve_error::SolveError;
pub use start::start;
pub use state::{Compiled, Stages, State};
#[doc(hidden)]
pub use states::{DriveOn, Part};
pub use stepper::{Step, Stepper};
#[cfg(feature = "autodiff")]
pub(crate) use stiffness::{EVERY, Look, Suspicion};
pub use tableau::{ButcherTableau, DEGREE_MAX, DenseTableau};
pub use tolerance::{Tol, Tolerance};

#[cfg(test)]
mod tests;
