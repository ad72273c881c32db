//! `Controller`: chooses the size of the next step.
//!
//! A controller is data and one formula. Its inputs are the error ratio, its history (values of a [`Clock`])
//! and constants of the method, never the state or the vector field. Users cannot add any, so it is an enum.
//! A controller of the error estimate is a file with an impl of [`ErrorControl`], which has all that other files ask of
//! it, and an arm of [`of_error!`].

mod hairer;
mod pid;

pub use hairer::HairerController;
pub use pid::PidController;

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

/// What a controller of the error estimate decides.
pub(super) trait ErrorControl: Sized {
    /// Its name, for errors.
    const NAME: &'static str;

    /// The first step size, if it is given.
    fn dt0(&self) -> Option<f64>;

    /// This controller with a first step size.
    fn starting_with(self, dt0: f64) -> Self;

    /// The rules that its numbers follow.
    fn rules(&self) -> impl Iterator<Item = Rule>;

    /// The factor from this step's size to the next. `EXPLICIT` states at compile time that the method is not one for
    /// stiff problems.
    fn next<const EXPLICIT: bool, C: Clock>(&self, error_order: u32, error_ratio: &C, past: &History<C>)
    -> C;

    /// The history entry of an accepted error ratio.
    fn history<C: Clock>(&self, error_ratio: &C) -> C;

    /// What else the steps of a solve ask of it.
    fn properties(&self) -> Properties;
}

/// What the steps of a solve ask of a controller besides its formula.
#[derive(Clone, Copy)]
pub(super) struct Properties {
    /// The history entry before the first step; `None` stands for 1.
    pub first_history: Option<f64>,
    /// Whether it reads the size of the last accepted step.
    pub reads_last_size: bool,
    /// A step ends at t1 or at a stop if this number times its size reaches it; `None` stands for 1.
    pub stretch: Option<f64>,
    /// The factor to the next step size after a step with non-finite numbers.
    pub factor_after_failure: f64,
    /// Whether rejections by the error estimate before the first accepted step are counted.
    pub counts_first_rejections: bool,
    /// Whether its history starts anew after an event that cuts a step of a stiff method short.
    pub forgets_at_events: bool,
}

/// A number of a controller: its name, its value, whether it is allowed, and what is allowed.
pub(super) type Rule = (&'static str, f64, bool, &'static str);

fn finite(name: &'static str, value: f64) -> Rule {
    (name, value, value.is_finite(), "finite")
}

fn factor_rules(safety: f64, low: f64, high: f64) -> [Rule; 3] {
    [
        ("safety", safety, safety > 0.0 && safety < 1.0, "above 0 and below 1"),
        ("factor_min", low, low > 0.0 && low <= safety, "above 0 and at most safety"),
        ("factor_max", high, high >= 1.0 && high.is_finite(), "finite and at least 1"),
    ]
}

/// `$then` with the controller of the error estimate, or `$otherwise` for equal steps and given times.
macro_rules! of_error {
    ($controller:expr, $control:ident => $then:expr, $otherwise:expr) => {
        match $controller {
            Controller::Pid($control) => $then,
            Controller::Hairer($control) => $then,
            Controller::Constant(_) | Controller::StepTo(_) => $otherwise,
        }
    };
}
pub(super) use of_error;

impl Controller {
    /// The first step size, if the controller has one.
    pub fn dt0(&self) -> Option<f64> {
        match self {
            Controller::Constant(constant) => Some(constant.dt0),
            other => of_error!(other, control => control.dt0(), None),
        }
    }

    /// Whether an error estimate accepts or rejects steps and sets their sizes.
    #[inline(always)]
    pub const fn is_adaptive(&self) -> bool {
        !matches!(self, Controller::Constant(_) | Controller::StepTo(_))
    }

    /// What the steps of a solve ask of it besides its formula.
    #[inline(always)]
    pub(super) fn properties(&self) -> Properties {
        let without_error_estimate = Properties {
            first_history: None,
            reads_last_size: false,
            stretch: None,
            factor_after_failure: 1.0,
            counts_first_rejections: true,
            forgets_at_events: false,
        };
        of_error!(self, control => control.properties(), without_error_estimate)
    }

    /// This controller with a first step size.
    ///
    /// # Errors
    /// For [`StepTo`], whose times set every step size, and for a controller that already has a first step size.
    pub(super) fn starting_with(self, dt0: f64) -> Result<Controller, ConfigError> {
        fn of<C: ErrorControl + Into<Controller>>(control: C, dt0: f64) -> Result<Controller, ConfigError> {
            match control.dt0() {
                Some(_) => Err(ConfigError::FirstStepTwice { dt0, controller: C::NAME }),
                None => Ok(control.starting_with(dt0).into()),
            }
        }
        match self {
            Controller::StepTo(_) => Err(ConfigError::FirstStepBesideTimes { dt0 }),
            other => {
                let twice = ConfigError::FirstStepTwice { dt0, controller: "ConstantStepSize" };
                of_error!(other, control => of(control, dt0), Err(twice))
            }
        }
    }

    /// Rejects numbers out of range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match of_error!(self, control => control.rules().find(|rule| !rule.2), None) {
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

/// Clips `factor` to `[low, high]`. Returns `low` where `factor` is NaN, `shrink` where the error ratio is
/// not finite.
#[inline(always)]
fn between<C: Clock>(factor: &C, low: &C, high: &C, error_ratio: &C, shrink: f64) -> C {
    // In this order a NaN becomes `low`: every comparison with it is false.
    let raised = C::select(&low.lt(factor), factor, low);
    let clipped = C::select(&raised.lt(high), &raised, high);
    C::select(&error_ratio.is_finite(), &clipped, &low.like(shrink))
}
