//! `Controller`: how long the next step is.
//!
//! Data and one formula. A controller sees the error ratio and its own history, all of them values of a
//! [`Clock`]; it must never see the state or the field. A closed set, hence an enum.

use super::Clock;

/// How long the next step is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Controller {
    /// Steps of one size.
    Constant(Constant),
    /// Steps that end at given times.
    StepTo(StepTo),
    /// Steps that hold the error estimate at the tolerance.
    Pid(Pid),
}

/// Steps of one size: `t_n = t0 + n dt0`, the last one cut at t1.
///
/// A remainder under 100 ulp of t1 is merged into the step before, so rounding adds no step of size 1e-16. No
/// error is estimated and no step is rejected; a step that gives a non-finite number ends the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The step size: its magnitude, or signed as `t1 - t0` is.
    pub dt0: f64,
}

/// Steps that end at given times, such as those another solve accepted.
///
/// No error is estimated and no step is rejected; a step that gives a non-finite number ends the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTo {
    /// The ends of the steps: t0 first, t1 last, strictly monotone between them.
    pub ts: Vec<f64>,
}

/// Proportional-integral-derivative control of the error estimate.
///
/// With r the error ratio of the step, r' and r'' those of the two steps accepted before (1 at the start) and k
/// the method's `error_order`,
/// `factor = safety (1/r)^((P+I+D)/k) (1/r')^(-(P+2D)/k) (1/r'')^(D/k)`,
/// clipped to `[1, factor_max]` after an accepted step (r < 1) and to `[factor_min, safety]` after a rejected
/// one. An r of 0 enters the history as 1. A non-finite r gives `factor_min`.
///
/// The default is the I controller: P = 0, I = 1, D = 0.
///
/// # References
/// Soederlind (2003), Digital filters in adaptive time-stepping, ACM TOMS 29, 1-26. The clipping is that of
/// Kidger (2022), On neural differential equations, section 5.4.
#[derive(Clone, Debug, PartialEq)]
pub struct Pid {
    /// P: how much the trend of the error counts.
    pub pcoeff: f64,
    /// I: how much the error counts.
    pub icoeff: f64,
    /// D: how much the bend of the error counts.
    pub dcoeff: f64,
    /// What is left of the step size that would just be accepted: 0.9 (Hairer, Norsett, Wanner I, eq. II.4.12).
    pub safety: f64,
    /// The most that one rejection shrinks the step.
    pub factor_min: f64,
    /// The most that one step grows over the last.
    pub factor_max: f64,
    /// The first step size, its magnitude or signed as `t1 - t0` is; chosen from the field where `None`.
    pub dt0: Option<f64>,
}

impl Default for Pid {
    fn default() -> Self {
        Pid {
            pcoeff: 0.0,
            icoeff: 1.0,
            dcoeff: 0.0,
            safety: 0.9,
            factor_min: 0.2,
            factor_max: 10.0,
            dt0: None,
        }
    }
}

impl From<Constant> for Controller {
    fn from(controller: Constant) -> Self {
        Controller::Constant(controller)
    }
}
impl From<StepTo> for Controller {
    fn from(controller: StepTo) -> Self {
        Controller::StepTo(controller)
    }
}
impl From<Pid> for Controller {
    fn from(controller: Pid) -> Self {
        Controller::Pid(controller)
    }
}

impl Controller {
    /// The first step size asked for.
    pub fn dt0(&self) -> Option<f64> {
        match self {
            Controller::Constant(constant) => Some(constant.dt0),
            Controller::StepTo(_) => None,
            Controller::Pid(pid) => pid.dt0,
        }
    }
}

impl Pid {
    /// The factor from the last step size to the next. `inv_prev` and `inv_prev2` are 1/r' and 1/r''.
    #[inline(always)]
    pub fn factor<C: Clock>(&self, error_order: u32, error_ratio: &C, inv_prev: &C, inv_prev2: &C) -> C {
        let k = f64::from(error_order);
        let one = error_ratio.like(1.0);
        let inv = one.div(error_ratio);
        let mut factor = one.like(self.safety);
        for (base, exponent) in [
            (&inv, (self.pcoeff + self.icoeff + self.dcoeff) / k),
            (inv_prev, -(self.pcoeff + 2.0 * self.dcoeff) / k),
            (inv_prev2, self.dcoeff / k),
        ] {
            if exponent != 0.0 {
                factor = factor.mul(&base.powf(exponent));
            }
        }
        let accepted = error_ratio.lt(&one);
        let low = C::select(&accepted, &one, &one.like(self.factor_min));
        let high = C::select(&accepted, &one.like(self.factor_max), &one.like(self.safety));
        // In this order a NaN becomes `low`: every comparison with it is false.
        let raised = C::select(&low.lt(&factor), &factor, &low);
        let clipped = C::select(&raised.lt(&high), &raised, &high);
        C::select(&error_ratio.is_finite(), &clipped, &one.like(self.factor_min))
    }

    /// What an accepted error ratio leaves in the history: its inverse, 1 where that is infinite.
    #[inline(always)]
    pub fn history<C: Clock>(error_ratio: &C) -> C {
        let one = error_ratio.like(1.0);
        let inv = one.div(error_ratio);
        C::select(&inv.is_finite(), &inv, &one)
    }
}
