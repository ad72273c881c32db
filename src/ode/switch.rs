//! `Switch`: a solve by two methods, an explicit one and one for stiff problems, each where it is the cheaper.
//!
//! It decides at accepted steps and must never know how they were attempted. From the explicit method it goes where the
//! stiffness test would warn; back where ten steps in a row are of a size that the explicit method could take too. A method
//! starts anew behind a switch: its controller remembers nothing, as at the start of a solve.

use super::integrator::Integrator;
use super::stiffness::{StiffnessTest, TSIT5_INTERVAL};
use super::{Method, Native, PlainState, Resolved, Scheme, SolveError, VectorField};

/// Steps in a row that the explicit method could take, before it is taken.
const CALM: u32 = 10;
/// The part of its stability interval that such steps keep to.
const PART: f64 = 0.5;

/// Which of two methods is stepped by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switch {
    is_stiff: bool,
    /// Steps in a row that the explicit method could have taken.
    calm: u32,
}

/// The methods of a solve: the one that it starts with, and the one for stiff parts if there are two.
pub(super) struct Schemes<'s, 'a, Y: PlainState> {
    pub first: &'s Scheme<'a, Y>,
    pub stiff: Option<&'s Scheme<'a, Y>>,
    pub resolved: &'s Resolved,
}

impl Switch {
    /// The method to step by.
    #[inline]
    pub fn scheme<'s, 'a, Y: PlainState>(&self, schemes: &Schemes<'s, 'a, Y>) -> &'s Scheme<'a, Y> {
        schemes.stiff.filter(|_| self.is_stiff).unwrap_or(schemes.first)
    }

    /// Whether the method for stiff parts is stepped by.
    #[inline]
    pub fn is_stiff(&self) -> bool {
        self.is_stiff
    }

    /// What loops may be compiled for: that of the default method inlines its numbers.
    #[inline]
    pub fn native(&self, resolved: &Resolved) -> Native {
        let native = resolved.native();
        if self.is_stiff { Native { method: Some(Method::Rodas5P), ..native } } else { native }
    }

    /// After an accepted step: goes over to the other method where it is time to.
    ///
    /// # Errors
    /// What the field said, which is evaluated for the explicit method's first stage.
    pub fn after_step<Y: PlainState>(
        &mut self,
        f: &dyn VectorField<Y>,
        schemes: &Schemes<'_, '_, Y>,
        integrator: &mut Integrator<Y>,
        stiffness: &mut StiffnessTest,
    ) -> Result<(), SolveError> {
        let Some(stiff) = schemes.stiff else { return Ok(()) };
        if !self.is_stiff {
            if stiffness.warning().is_some() {
                *self = Switch { is_stiff: true, calm: 0 };
                integrator.change_method(f, stiff, schemes.resolved)?;
            }
            return Ok(());
        }
        let size = integrator.carry.h.abs() * integrator.jacobian_norm();
        self.calm = if size < PART * TSIT5_INTERVAL { self.calm + 1 } else { 0 };
        if self.calm == CALM {
            *self = Switch::default();
            stiffness.forget();
            integrator.change_method(f, schemes.first, schemes.resolved)?;
        }
        Ok(())
    }
}
