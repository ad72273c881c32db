//! Ordinary differential equations: the stepping algorithm, written once over a clock and a state.
//!
//! `y' = f(t, y)`, `y(t0) = y0`. `attempt` is the algorithm: one attempted step of a method under a step size
//! controller, without a loop over steps and without output. It uses the clock (t, dt, counters) and the
//! state (y) only through the traits `Clock` and `State`. So the same code runs on plain Rust numbers at the
//! speed of a hand-written loop, on lanes of trajectories, and on tracers that record it into a graph. Each
//! kind of state has a driver that calls `attempt` in a loop; [`Ode`] is the builder in front of all drivers.
//! This module does not use tensors.
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
//! The how-to guides of the book (`docs/` of the repository) explain saved times, events, ensembles,
//! sensitivities, steps by hand and failures.

mod as_numbers;
mod attempt;
mod attempts;
mod builder;
mod callbacks;
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
mod field_function;
mod field_macro;
mod given_times;
#[doc(hidden)]
pub mod inline;
mod integrator;
mod interpolant;
mod interpolation;
mod lanes;
mod linear;
mod method;
mod number;
mod order;
mod outcome;
mod outcome_text;
mod own_tableau;
mod plain;
mod real;
mod record;
mod retry;
mod save_at;
mod scheme;
mod sensitivity;
mod settings;
mod shape;
mod shown;
mod sides;
mod single;
mod solution;
mod solve_error;
mod stages;
mod start;
mod state;
mod states;
mod step_end;
mod stepper;
mod stiff;
mod stiffness;
mod switch;
mod tableau;
#[doc(hidden)]
pub mod tableaux;
mod tolerance;
mod trial;

pub use builder::{Ode, OdeState};
pub use controller::{ConstantStepSize, Controller, HairerController, PidController, StepTo};
pub use dense::DenseOutput;
pub use ensemble::{EnsembleBuilder, EnsembleProgress, EnsembleSolution, ensemble};
pub use error::ConfigError;
pub use event::{Event, EventRecord};
pub use field::{Recoverable, VectorField};
pub use given_times::Times;
pub use interpolation::{Interpolation, InterpolationError, fill_missing};
pub use linear::{Mass, Sparsity};
pub use method::Method;
pub use outcome::{Outcome, Stats};
pub use own_tableau::Tableau;
pub use plain::odeint;
pub use save_at::SaveAt;
pub use sensitivity::{EventSensitivity, Sensitivity, SensitivityBuilder};
pub use solution::{Solution, Warning};
pub use solve_error::SolveError;
pub use stepper::{Step, Stepper};
pub use tolerance::Tol;

pub mod extra {
    //! Names that few programs need: for custom types of vector fields, generic helper functions, inlined
    //! loops and user-defined Jacobians.
    pub use super::field::FieldError;
    pub use super::field_function::{NumberFn, StateFn, TimeFn};
    #[doc(inline)]
    pub use super::inline;
    pub use super::number::{FieldNumber, Number};
    pub use super::stiff::Jacobian;
}
pub(crate) use extra::*;
#[cfg(feature = "autodiff")]
pub(crate) use interpolation::Between;
pub(crate) use interpolation::InputRows;
#[cfg(feature = "autodiff")]
pub(crate) use save_at::linspace;
pub(crate) use shown::shown;

// Bounds of public items, and names in the expansions of public macros. Users do not need these names.
#[doc(hidden)]
pub use self::{
    as_numbers::{AsNumbers, AtTime},
    builder::IntoState,
    clock::Clock,
    dual::{DIRECTIONS, Dual, JACOBIAN_DIRECTIONS},
    event::EventValue,
    field::{Closure, Done, FieldFailure, InPlace, Inlined, Rate, View},
    field_macro::{F32Lanes, F64Lanes, FieldDual, FieldParam, GenericField, NestedDual},
    given_times::TimeEntry,
    lanes::{LANES, LaneClock, LaneMask, LaneNumber, Lanes, SINGLE_LANES, SingleClock},
    plain::{PlainState, check as check_plain, solve as solve_plain},
    real::Real,
    save_at::IntoSaveAt,
    sensitivity::IntoStart,
    shape::ShapeMismatch,
    single::Single,
    state::{Stages, State},
    states::{DriveOn, Part},
    stiff::{Linearize, Solvable, StateFunctions, StiffStages, dual_columns},
    tolerance::Tolerance,
};

// The algorithm, for the crate's own drivers; benches and tests import it from `__internal`.
#[doc(hidden)]
pub use self::{
    attempt::{attempt, attempt_then, step},
    carry::Carry,
    curve::complete,
    interpolant::Interpolant,
    outcome::status,
    scheme::{Limits, Norm, Scheme},
    settings::{Resolved, Settings},
    sides::{OwnSides, Sides},
    start::start,
    state::Compiled,
    step_end::Span,
    tableau::{ButcherTableau, DEGREE_MAX, DenseTableau},
};
use settings::Native;

#[cfg(feature = "autodiff")]
pub(crate) use self::{
    builder::locked,
    check::check_event,
    event::{
        Bracket, Mark, NUM_PATTERNS, ROUNDING, Rhythm, SPEED_PART, TANGENT, TURNED_BACK, Watch, pattern,
    },
    linear::Elimination,
    retry::{Before, resume, take_back},
    stages::eval,
    step_end::{slack, ulps},
    stiff::{Counts, Diagnosis, Request},
    stiffness::{EVERY, StiffnessCheck, Suspicion},
    tableau::Kind as MethodKind,
};

#[cfg(test)]
pub(crate) mod tests;
