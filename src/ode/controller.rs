//! `Controller`: chooses the size of the next step.
//!
//! A controller is data and one formula. Its inputs are the error ratio, its history (values of a [`Clock`])
//! and constants of the method, never the state or the vector field. Users cannot add any, so it is an enum.

use super::{Clock, ConfigError};

/// The step size controller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Controller {
    /// Steps of equal size.
    Constant(ConstantStepSize),
    /// Steps that end at given times.
    StepTo(StepTo),
    /// PID control of the error estimate.
    Pid(PidController),
    /// The controller of the published codes dopri5 and dop853.
    Hairer(HairerController),
}

/// Steps of equal size: `t_n = t0 + n dt0`. The last step is shortened to end at t1.
///
/// A remainder below 100 ulp of t is merged into the last step, so that rounding adds no step of size 1e-16.
/// There is no error estimate and no rejection; a step that gives a non-finite number ends the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantStepSize {
    /// The step size: a magnitude, or with the sign of `t1 - t0`.
    pub dt0: f64,
}

/// Steps that end at given times, such as the step times of another solve.
///
/// There is no error estimate and no rejection; a step that gives a non-finite number ends the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTo {
    /// The ends of the steps: t0 first, t1 last, strictly monotone between them.
    pub ts: Vec<f64>,
}

/// Proportional-integral-derivative control of the error estimate.
///
/// Let r be the error ratio of this step, r' and r'' the error ratios of the two previously accepted steps (1
/// at the start), k the method's `error_order`, and dt/dt' the ratio of this step's size to the last accepted
/// step's size (1 at the start). The next step size is this step's size times
/// `factor = safety (1/r)^((P+I+D)/k) (1/r')^(-(P+2D)/k) (1/r'')^(D/k) (dt/dt')^(-ratio_coeff)`.
///
/// The factor is clipped to `[1, factor_max]` after an accepted step, else to `[factor_min, safety]`. So the
/// controller proposes a shorter step only after a rejection. An r of 0 enters the history as 1. A non-finite
/// r gives `factor_min`.
///
/// For stiff methods the controller may propose a shorter step after an accepted step, too: the factor is
/// then at most `safety (1/r)^(1/k)`, and it is clipped to `[factor_min, factor_max]`, or to
/// `[factor_min, 1]` right after a rejection. After a rejected step the factor is `safety (1/r)^(1/k)`,
/// clipped to `[factor_min, safety]`.
///
/// I and P + I + D must be above 0; otherwise small errors would not lead to longer steps.
///
/// The default is the I controller: P = 0, I = 1, D = 0; for stiff methods
/// [`PidController::predictive`]. Other controllers have constructors:
/// [`PidController::pi`], [`PidController::new`], [`PidController::h211pi`], [`PidController::h211b`],
/// [`PidController::h312pid`].
///
/// # References
/// Soederlind (2003), Digital filters in adaptive time-stepping, ACM TOMS 29, 1-26. The clipping follows Kidger
/// (2022), On neural differential equations, section 5.4.
#[derive(Clone, Debug, PartialEq)]
pub struct PidController {
    /// The proportional coefficient P.
    pub pcoeff: f64,
    /// The integral coefficient I.
    pub icoeff: f64,
    /// The derivative coefficient D.
    pub dcoeff: f64,
    /// Minus the exponent of dt/dt'. Of the constructors, only [`PidController::h211b`] and
    /// [`PidController::predictive`] set a value other than 0.
    pub ratio_coeff: f64,
    /// The factor applied to the step size for which the error ratio would be 1. The default is 0.9 (Hairer,
    /// Norsett, Wanner I, eq. II.4.12).
    pub safety: f64,
    /// The smallest factor. The default is 0.2.
    pub factor_min: f64,
    /// The largest factor. The default is 10.
    pub factor_max: f64,
    /// The first step size, a magnitude or with the sign of `t1 - t0`; `None` derives it from the vector field.
    pub dt0: Option<f64>,
}

impl Default for PidController {
    fn default() -> Self {
        PidController {
            pcoeff: 0.0,
            icoeff: 1.0,
            dcoeff: 0.0,
            ratio_coeff: 0.0,
            safety: 0.9,
            factor_min: 0.2,
            factor_max: 10.0,
            dt0: None,
        }
    }
}

/// The step size control of the published codes dopri5 and dop853.
///
/// Let r be the error ratio, r' the error ratio of the last accepted step (at least 1e-4, and 1e-4 at the
/// start) and `e = 1/k - 0.75 beta` (`1/k - 0.2 beta` for k >= 8, as in dop853).
///
/// - After an accepted step, the next step size is the step's size times `safety (1/r)^e r'^beta`. This
///   factor is clipped to `[factor_min, factor_max]`, or to `[factor_min, 1]` right after a rejection.
/// - After a rejected step, the factor is `safety (1/r)^e`, clipped to `[factor_min, 1]`.
/// - A step that would leave less than 1 % of its size before t1, one of the `tstops` or a discontinuity is
///   extended to end there.
/// - Rejections by the error estimate before the first accepted step are not counted in `num_rejected`.
///
/// # References
/// Hairer, Norsett, Wanner (1993), Solving Ordinary Differential Equations I, section II.4, and the Fortran codes
/// DOPRI5 and DOP853 printed in its appendix; beta: Gustafsson (1991), ACM TOMS 17, 533-554.
#[derive(Clone, Debug, PartialEq)]
pub struct HairerController {
    /// The exponent of r', which stabilizes the step sizes: 0.04 in dopri5, 0 in dop853.
    pub beta: f64,
    /// The factor applied to the step size for which the error ratio would be 1.
    pub safety: f64,
    /// The smallest factor from one step to the next.
    pub factor_min: f64,
    /// The largest growth factor from one step to the next.
    pub factor_max: f64,
    /// The first step size, a magnitude or with the sign of `t1 - t0`; `None` derives it from the vector field.
    pub dt0: Option<f64>,
}

impl HairerController {
    /// The values of dopri5: beta 0.04, factors from 0.2 to 10.
    pub const fn dopri5() -> Self {
        HairerController { beta: 0.04, safety: 0.9, factor_min: 0.2, factor_max: 10.0, dt0: None }
    }
    /// The values of dop853: beta 0, factors from 0.333 to 6.
    pub const fn dop853() -> Self {
        HairerController { beta: 0.0, safety: 0.9, factor_min: 0.333, factor_max: 6.0, dt0: None }
    }
}

impl Default for HairerController {
    fn default() -> Self {
        HairerController::dopri5()
    }
}

impl From<HairerController> for Controller {
    fn from(controller: HairerController) -> Self {
        Controller::Hairer(controller)
    }
}
impl From<ConstantStepSize> for Controller {
    fn from(controller: ConstantStepSize) -> Self {
        Controller::Constant(controller)
    }
}
impl From<StepTo> for Controller {
    fn from(controller: StepTo) -> Self {
        Controller::StepTo(controller)
    }
}
impl From<PidController> for Controller {
    fn from(controller: PidController) -> Self {
        Controller::Pid(controller)
    }
}

impl Controller {
    /// The first step size, if the controller has one.
    pub fn dt0(&self) -> Option<f64> {
        match self {
            Controller::Constant(constant) => Some(constant.dt0),
            Controller::StepTo(_) => None,
            Controller::Pid(pid) => pid.dt0,
            Controller::Hairer(hairer) => hairer.dt0,
        }
    }

    /// Whether an error estimate accepts or rejects steps and sets their sizes.
    #[inline(always)]
    pub const fn is_adaptive(&self) -> bool {
        matches!(self, Controller::Pid(_) | Controller::Hairer(_))
    }

    /// This controller with a first step size.
    ///
    /// # Errors
    /// For [`StepTo`], whose times set every step size, and for a controller that already has a first step size.
    pub(super) fn starting_with(self, dt0: f64) -> Result<Controller, ConfigError> {
        match self {
            Controller::StepTo(_) => Err(ConfigError::FirstStepBesideTimes { dt0 }),
            Controller::Constant(_) => {
                Err(ConfigError::FirstStepTwice { dt0, controller: "ConstantStepSize" })
            }
            Controller::Pid(PidController { dt0: Some(_), .. }) => {
                Err(ConfigError::FirstStepTwice { dt0, controller: "PidController" })
            }
            Controller::Hairer(HairerController { dt0: Some(_), .. }) => {
                Err(ConfigError::FirstStepTwice { dt0, controller: "HairerController" })
            }
            Controller::Pid(pid) => Ok(PidController { dt0: Some(dt0), ..pid }.into()),
            Controller::Hairer(hairer) => Ok(HairerController { dt0: Some(dt0), ..hairer }.into()),
        }
    }

    /// Rejects numbers out of range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let finite = |name, value: f64| (name, value, value.is_finite(), "finite");
        let factors = |safety: f64, low: f64, high: f64| {
            [
                ("safety", safety, safety > 0.0 && safety < 1.0, "above 0 and below 1"),
                ("factor_min", low, low > 0.0 && low <= safety, "above 0 and at most safety"),
                ("factor_max", high, high >= 1.0 && high.is_finite(), "finite and at least 1"),
            ]
        };
        let mut rules = Vec::new();
        match self {
            Controller::Constant(_) | Controller::StepTo(_) => {}
            Controller::Pid(pid) => {
                let (icoeff, sum) = (pid.icoeff, pid.pcoeff + pid.icoeff + pid.dcoeff);
                rules.extend([finite("pcoeff", pid.pcoeff), finite("icoeff", icoeff)]);
                rules.extend([finite("dcoeff", pid.dcoeff), finite("ratio_coeff", pid.ratio_coeff)]);
                // Minus I / k is the sum of the exponents of all errors, and minus the other sum / k the exponent
                // of the last one. If either is not above 0, an error below the tolerance does not lengthen steps.
                rules.push(("icoeff", icoeff, icoeff > 0.0, "above 0"));
                rules.push(("pcoeff + icoeff + dcoeff", sum, sum > 0.0, "above 0"));
                rules.extend(factors(pid.safety, pid.factor_min, pid.factor_max));
            }
            Controller::Hairer(hairer) => {
                let beta = hairer.beta;
                rules.push(("beta", beta, (0.0..=0.2).contains(&beta), "between 0 and 0.2"));
                rules.extend(factors(hairer.safety, hairer.factor_min, hairer.factor_max));
            }
        }
        match rules.into_iter().find(|rule| !rule.2) {
            Some((parameter, value, _, range)) => Err(ConfigError::Controller { parameter, value, range }),
            None => Ok(()),
        }
    }
}

/// The inputs of a controller in addition to the error ratio of this step.
pub(super) struct History<'a, C> {
    /// 1/r' and 1/r''.
    pub inv_prev: &'a C,
    pub inv_prev2: &'a C,
    /// The size of this step, and of the last accepted step before it; the latter is 0 before the first.
    pub h: &'a C,
    pub h_prev: &'a C,
    /// `Carry::slack`: 0 right after a rejection, else above 0.
    pub slack: &'a C,
    /// Whether the method is for stiff problems: an accepted step may then be followed by a shorter one.
    pub is_stiff: bool,
}

impl PidController {
    /// Proportional-integral control, such as `PidController::pi(0.4, 0.3)`.
    pub fn pi(pcoeff: f64, icoeff: f64) -> PidController {
        PidController { pcoeff, icoeff, ..PidController::default() }
    }
    /// A controller with all three coefficients.
    pub fn new(pcoeff: f64, icoeff: f64, dcoeff: f64) -> PidController {
        PidController { pcoeff, icoeff, dcoeff, ..PidController::default() }
    }
    /// The coefficients of the H211PI filter: exponents 1/6, 1/6 on the last two errors. The factor is clipped
    /// as in [`PidController`]; unlike in the published filter, explicit methods shrink only rejected steps.
    ///
    /// # References
    /// Soederlind (2003), table I.
    pub fn h211pi() -> PidController {
        PidController::pi(-1.0 / 6.0, 1.0 / 3.0)
    }
    /// The coefficients of the H211b filter: exponents 1/b, 1/b on the last two errors and -1/b on the ratio of
    /// the last two step sizes. b = 4 is usual; a larger b reacts more slowly. The factor is clipped as in
    /// [`PidController::h211pi`].
    ///
    /// # References
    /// Soederlind (2003), table I.
    pub fn h211b(b: f64) -> PidController {
        PidController { ratio_coeff: 1.0 / b, ..PidController::pi(-1.0 / b, 2.0 / b) }
    }
    /// The coefficients of the H312PID filter: exponents 1/18, 1/9, 1/18 on the last three errors. The factor
    /// is clipped as in [`PidController::h211pi`].
    ///
    /// # References
    /// Soederlind (2003), table I.
    pub fn h312pid() -> PidController {
        PidController::new(-2.0 / 9.0, 2.0 / 9.0, 1.0 / 18.0)
    }

    /// The factor from this step's size to the next. `inv_prev` and `inv_prev2` are 1/r' and 1/r''; the ratio
    /// of the step sizes is taken as 1.
    #[inline(always)]
    pub fn factor<C: Clock>(&self, error_order: u32, error_ratio: &C, inv_prev: &C, inv_prev2: &C) -> C {
        self.clipped(error_ratio, &self.wanted(error_order, error_ratio, inv_prev, inv_prev2))
    }

    /// [`PidController::factor`] with the ratio of the step sizes, and with the rule of stiff methods for
    /// these. `EXPLICIT` states at compile time that the method is none of them.
    #[inline(always)]
    pub(super) fn next<const EXPLICIT: bool, C: Clock>(
        &self,
        error_order: u32,
        error_ratio: &C,
        past: &History<C>,
    ) -> C {
        let factor = self.wanted_after(error_order, error_ratio, past);
        if EXPLICIT || !past.is_stiff {
            return self.clipped(error_ratio, &factor);
        }
        // A predicted factor above the factor from this error alone is reduced to it. A rejected step uses
        // only the latter.
        let alone = error_ratio.powf(-1.0 / f64::from(error_order)).mul(&error_ratio.like(self.safety));
        let one = error_ratio.like(1.0);
        let accepted = error_ratio.lt(&one);
        let factor = C::select(&accepted, &factor.min(&alone), &alone);
        let may_grow = C::and(&accepted, &one.like(0.0).lt(past.slack));
        let high = C::select(&accepted, &one, &one.like(self.safety));
        let high = C::select(&may_grow, &one.like(self.factor_max), &high);
        between(&factor, &one.like(self.factor_min), &high, error_ratio, self.factor_min)
    }

    /// The factor before it is clipped.
    #[inline(always)]
    fn wanted_after<C: Clock>(&self, error_order: u32, error_ratio: &C, past: &History<C>) -> C {
        let factor = self.wanted(error_order, error_ratio, past.inv_prev, past.inv_prev2);
        if self.ratio_coeff == 0.0 {
            return factor;
        }
        let (zero, one) = (error_ratio.like(0.0), error_ratio.like(1.0));
        let grown = past.h.div(past.h_prev);
        let grown = C::select(&zero.lt(&past.h_prev.abs()), &grown, &one);
        factor.mul(&grown.powf(-self.ratio_coeff))
    }

    #[inline(always)]
    fn wanted<C: Clock>(&self, error_order: u32, error_ratio: &C, inv_prev: &C, inv_prev2: &C) -> C {
        let k = f64::from(error_order);
        let mut factor = error_ratio.like(self.safety);
        for (base, exponent) in [
            (error_ratio, -(self.pcoeff + self.icoeff + self.dcoeff) / k),
            (inv_prev, -(self.pcoeff + 2.0 * self.dcoeff) / k),
            (inv_prev2, self.dcoeff / k),
        ] {
            if exponent != 0.0 {
                factor = factor.mul(&base.powf(exponent));
            }
        }
        factor
    }

    #[inline(always)]
    fn clipped<C: Clock>(&self, error_ratio: &C, factor: &C) -> C {
        let one = error_ratio.like(1.0);
        let accepted = error_ratio.lt(&one);
        let low = C::select(&accepted, &one, &one.like(self.factor_min));
        let high = C::select(&accepted, &one.like(self.factor_max), &one.like(self.safety));
        between(factor, &low, &high, error_ratio, self.factor_min)
    }

    /// Gustafsson's predictive control, which extrapolates the change of the error between the last two steps.
    /// It is the default of methods for stiff problems.
    ///
    /// # References
    /// Gustafsson (1994), Control-theoretic techniques for stepsize selection in implicit Runge-Kutta
    /// methods, ACM TOMS 20, 496-517; Hairer, Wanner II, eq. (IV.8.25).
    pub fn predictive() -> PidController {
        PidController { ratio_coeff: -1.0, ..PidController::pi(1.0, 1.0) }
    }

    /// The history entry of an accepted error ratio: its inverse, or 1 if that is infinite or the controller
    /// uses no history.
    #[inline(always)]
    pub fn history<C: Clock>(&self, error_ratio: &C) -> C {
        let one = error_ratio.like(1.0);
        if self.pcoeff == 0.0 && self.dcoeff == 0.0 {
            return one;
        }
        let inv = one.div(error_ratio);
        C::select(&inv.is_finite(), &inv, &one)
    }
}

impl HairerController {
    /// The largest stored 1/r', and its initial value.
    pub(super) const INV_PREV_MAX: f64 = 1e4;

    #[inline(always)]
    pub(super) fn next<C: Clock>(&self, error_order: u32, error_ratio: &C, past: &History<C>) -> C {
        let k = f64::from(error_order);
        let exponent = 1.0 / k - if error_order < 8 { 0.75 } else { 0.2 } * self.beta;
        let one = error_ratio.like(1.0);
        let alone = one.div(error_ratio).powf(exponent).mul(&one.like(self.safety));
        let damped =
            if self.beta == 0.0 { alone.clone() } else { alone.mul(&past.inv_prev.powf(-self.beta)) };
        let accepted = error_ratio.lt(&one);
        let may_grow = one.like(0.0).lt(past.slack);
        let may_grow = C::and(&accepted, &may_grow);
        let high = C::select(&may_grow, &one.like(self.factor_max), &one);
        let factor = C::select(&accepted, &damped, &alone);
        between(&factor, &one.like(self.factor_min), &high, error_ratio, self.factor_min)
    }

    #[inline(always)]
    pub(super) fn history<C: Clock>(error_ratio: &C) -> C {
        let most = error_ratio.like(Self::INV_PREV_MAX);
        let inv = error_ratio.like(1.0).div(error_ratio);
        C::select(&inv.lt(&most), &inv, &most)
    }
}

/// Clips `factor` to `[low, high]`. Returns `low` where `factor` is NaN, `shrink` where the error ratio is
/// not finite.
#[inline(always)]
fn between<C: Clock>(factor: &C, low: &C, high: &C, error_ratio: &C, shrink: f64) -> C {
    // In this order a NaN becomes `low`: every comparison with it is false.
    let raised = C::select(&low.lt(factor), factor, low);
    let clipped = C::select(&raised.lt(high), &raised, high);
    C::select(&error_ratio.is_finite(), &clipped, &low.like(shrink))
}
