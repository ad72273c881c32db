//! How a trained density is evaluated: tolerances, steps, noise and class, the same for every method.

use super::EvalError;
use super::fitted::check_tolerances;
use crate::error::Result;

/// The settings of a [`Fitted`](super::Fitted).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Relative tolerance; by default each method has its own.
    pub rtol: Option<f64>,
    /// Absolute tolerance, in standardized coordinates; by default each method has its own.
    pub atol: Option<f64>,
    /// The number of steps of a sample; by default as many as its tolerance needs.
    pub steps: Option<usize>,
    /// Draws of noise per row: for image sets 1 by default, for tables with noise on rounded columns none.
    pub noise_draws: Option<usize>,
    /// The seed of noise and probes.
    pub noise_seed: u64,
    /// The class of all samples and rows.
    pub class: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { rtol: None, atol: None, steps: None, noise_draws: None, noise_seed: 1, class: None }
    }
}

impl Settings {
    /// The relative and the absolute tolerance of a solve whose default is `tolerance` for both.
    ///
    /// # Errors
    /// As [`check_tolerances`].
    pub fn tolerances(&self, tolerance: f64) -> Result<(f64, f64)> {
        let (rtol, atol) = (self.rtol.unwrap_or(tolerance), self.atol.unwrap_or(tolerance));
        check_tolerances(rtol, atol)?;
        Ok((rtol, atol))
    }

    /// The number of steps of a sample, if it is fixed.
    ///
    /// # Errors
    /// [`EvalError::NoSteps`] if it is 0.
    pub fn steps(&self) -> Result<Option<usize>> {
        if self.steps == Some(0) { Err(EvalError::NoSteps.into()) } else { Ok(self.steps) }
    }

    /// Refuses a fixed number of steps, for results that are exact within a tolerance. `what` names them.
    ///
    /// # Errors
    /// [`EvalError::FixedSteps`].
    pub fn without_steps(&self, what: &'static str) -> Result<()> {
        match self.steps {
            Some(steps) => Err(EvalError::FixedSteps { what, steps }.into()),
            None => Ok(()),
        }
    }

    /// The number of draws of noise per row, if it is set.
    ///
    /// # Errors
    /// [`EvalError::NoDraws`] if it is 0.
    pub fn noise_draws(&self) -> Result<Option<usize>> {
        if self.noise_draws == Some(0) { Err(EvalError::NoDraws.into()) } else { Ok(self.noise_draws) }
    }

    /// The class of samples or rows of a run with this number of classes, `None` for a run without.
    ///
    /// # Errors
    /// [`EvalError::Class`] if the class does not exist, or if the run has classes and none is set.
    pub fn class(&self, classes: Option<usize>) -> Result<Option<usize>> {
        match (self.class, classes) {
            (None, None) => Ok(None),
            (Some(asked), Some(classes)) if asked < classes => Ok(Some(asked)),
            (asked, classes) => Err(EvalError::Class { asked, classes }.into()),
        }
    }
}
