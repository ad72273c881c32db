//! `ShapeMismatch`: two states of a solve that differ in shape.
//!
//! The shape of y is fixed when a solve starts, because stages and scratch states are allocated then. The
//! caller's code can change the shape of a state on the heap: a vector field that of dy, a state reset and
//! [`Stepper::y_mut`](super::Stepper::y_mut) that of y, `time_derivative` that of df/dt.
//! [`State::conforms`](super::State::conforms) compares the shapes after each of them.

use super::{ConfigError, FieldError};
use std::fmt;

/// A difference in shape between two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeMismatch {
    /// The part of the state, outermost first.
    parts: Vec<String>,
    /// Its shape, such as `size 2 x 3`.
    found: String,
    expected: String,
}

impl ShapeMismatch {
    /// Creates a mismatch of a state that is not a part of another.
    #[cold]
    pub(crate) fn new(found: String, expected: String) -> Self {
        ShapeMismatch { parts: Vec::new(), found, expected }
    }

    /// The same mismatch in the part `name` of a state.
    #[cold]
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        self.parts.insert(0, format!("part {name}"));
        self
    }

    /// The same mismatch in the leaf at a path, which may be empty or end in the name of a part and `: `.
    #[cfg(feature = "autodiff")]
    pub(crate) fn at(mut self, path: &str) -> Self {
        let path = path.trim_end_matches(": ");
        if !path.is_empty() {
            self.parts.push(path.to_owned());
        }
        self
    }

    /// The error of a vector field or another function of the caller, `of`, that returned a derivative of
    /// this shape.
    #[cold]
    pub(crate) fn of_derivative(&self, of: &str) -> FieldError {
        let ShapeMismatch { parts, found, expected } = self;
        let parts: String = parts.iter().map(|part| format!("{part}: ")).collect();
        format!("{parts}{of} returned a derivative of {found} for a state of {expected}").into()
    }

    /// The error of a change of y between two steps.
    pub(super) fn between_steps(&self) -> ConfigError {
        ConfigError::StateShape { change: self.to_string() }
    }
}

/// What a change of the state did, such as `part 1 from size 3 to size 2`.
impl fmt::Display for ShapeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShapeMismatch { parts, found, expected } = self;
        if !parts.is_empty() {
            write!(f, "{} ", parts.join(": "))?;
        }
        write!(f, "from {expected} to {found}")
    }
}
