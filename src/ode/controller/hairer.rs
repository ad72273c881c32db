//! `HairerController`: the controller of dopri5 and dop853.

use super::{Clock, ErrorControl, History, Properties, Rule, between, factor_rules};

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

/// The largest stored 1/r', and its initial value.
const INV_PREV_MAX: f64 = 1e4;

impl ErrorControl for HairerController {
    const NAME: &'static str = "HairerController";

    fn dt0(&self) -> Option<f64> {
        self.dt0
    }

    fn starting_with(self, dt0: f64) -> Self {
        HairerController { dt0: Some(dt0), ..self }
    }

    fn rules(&self) -> impl Iterator<Item = Rule> {
        [("beta", self.beta, (0.0..=0.2).contains(&self.beta), "between 0 and 0.2")]
            .into_iter()
            .chain(factor_rules(self.safety, self.factor_min, self.factor_max))
    }

    #[inline(always)]
    fn next<const EXPLICIT: bool, C: Clock>(
        &self,
        error_order: u32,
        error_ratio: &C,
        past: &History<C>,
    ) -> C {
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
    fn history<C: Clock>(&self, error_ratio: &C) -> C {
        let most = error_ratio.like(INV_PREV_MAX);
        let inv = error_ratio.like(1.0).div(error_ratio);
        C::select(&inv.lt(&most), &inv, &most)
    }

    #[inline(always)]
    fn properties(&self) -> Properties {
        Properties {
            first_history: Some(INV_PREV_MAX),
            reads_last_size: false,
            // The published codes extend a step by up to 1 % to avoid a remainder of this size.
            stretch: Some(1.01),
            factor_after_failure: self.factor_min,
            counts_first_rejections: false,
            forgets_at_events: false,
        }
    }
}
