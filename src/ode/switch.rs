//! `Switch`: a solve with two methods, an explicit method and a method for stiff problems, each used where it
//! is cheaper.
//!
//! The decision is made after an accepted step and depends only on accepted steps. The solve leaves the
//! explicit method when a [trial](super::trial) of the stiff method passes, and returns to it after ten
//! consecutive steps that the explicit method could take at less cost. The controller forgets earlier steps at
//! a switch, as at the start of a solve.

use super::integrator::Integrator;
use super::stiffness::StiffnessTest;
use super::{Method, Native, PlainState, Resolved, Scheme, SolveError, VectorField};

/// Consecutive steps that the explicit method could take before the solve returns to it.
const CALM: u32 = 10;

/// The method in use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switch {
    is_stiff: bool,
    /// Steps with a smaller `|h| |J|` do not pay.
    bound: f64,
    /// Consecutive steps that the explicit method could have taken.
    calm: u32,
}

/// The methods of a solve: the first one and, with automatic switching, one for stiff parts.
pub(super) struct Schemes<'s, 'a, Y: PlainState> {
    pub first: &'s Scheme<'a, Y>,
    pub stiff: Option<&'s Scheme<'a, Y>>,
    pub resolved: &'s Resolved,
}

impl Switch {
    /// The method of the next step.
    #[inline]
    pub fn scheme<'s, 'a, Y: PlainState>(&self, schemes: &Schemes<'s, 'a, Y>) -> &'s Scheme<'a, Y> {
        schemes.stiff.filter(|_| self.is_stiff).unwrap_or(schemes.first)
    }

    /// Whether the method for stiff parts is in use.
    #[inline]
    pub fn is_stiff(&self) -> bool {
        self.is_stiff
    }

    /// The method in use and the CPU level, which select the compiled loop over steps.
    #[inline]
    pub fn native(&self, resolved: &Resolved) -> Native {
        let native = resolved.native();
        if self.is_stiff { Native { method: Some(Method::Rodas5P), ..native } } else { native }
    }

    /// Switches to the other method, if it is due, after an accepted step.
    ///
    /// # Errors
    /// An error of the vector field, which is evaluated for the explicit method's first stage.
    pub fn after_step<Y: PlainState>(
        &mut self,
        f: &dyn VectorField<Y>,
        schemes: &Schemes<'_, '_, Y>,
        integrator: &mut Integrator<Y>,
        stiffness: &mut StiffnessTest<Y>,
    ) -> Result<(), SolveError> {
        let Some(stiff) = schemes.stiff else { return Ok(()) };
        if !self.is_stiff {
            if let Some(trial) = stiffness.take_passed() {
                integrator.change_method(f, stiff, schemes.resolved)?;
                let bound = trial.adopt(integrator);
                *self = Switch { is_stiff: true, bound, calm: 0 };
            }
            return Ok(());
        }
        let size = integrator.carry.h.abs() * integrator.jacobian_norm();
        self.calm = if size < self.bound { self.calm + 1 } else { 0 };
        if self.calm == CALM {
            *self = Switch::default();
            stiffness.forget();
            integrator.change_method(f, schemes.first, schemes.resolved)?;
        }
        Ok(())
    }
}
