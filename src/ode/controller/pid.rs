//! `PidController`: control by the last three error ratios and the last two step sizes.

use super::{Clock, ErrorControl, History, Properties, Rule, between, factor_rules, finite};

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

impl PidController {
    /// Proportional-integral control, such as `PidController::pi(0.4, 0.3)`.
    #[doc(alias = "PIController")]
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

impl ErrorControl for PidController {
    const NAME: &'static str = "PidController";

    fn dt0(&self) -> Option<f64> {
        self.dt0
    }

    fn starting_with(self, dt0: f64) -> Self {
        PidController { dt0: Some(dt0), ..self }
    }

    fn rules(&self) -> impl Iterator<Item = Rule> {
        let (icoeff, sum) = (self.icoeff, self.pcoeff + self.icoeff + self.dcoeff);
        [
            finite("pcoeff", self.pcoeff),
            finite("icoeff", icoeff),
            finite("dcoeff", self.dcoeff),
            finite("ratio_coeff", self.ratio_coeff),
            // Minus I / k is the sum of the exponents of all errors, and minus the other sum / k the exponent of the
            // last one. If either is not above 0, an error below the tolerance does not lengthen steps.
            ("icoeff", icoeff, icoeff > 0.0, "above 0"),
            ("pcoeff + icoeff + dcoeff", sum, sum > 0.0, "above 0"),
        ]
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

    #[inline(always)]
    fn history<C: Clock>(&self, error_ratio: &C) -> C {
        PidController::history(self, error_ratio)
    }

    #[inline(always)]
    fn properties(&self) -> Properties {
        Properties {
            first_history: None,
            reads_last_size: self.ratio_coeff != 0.0,
            stretch: None,
            factor_after_failure: self.factor_min,
            counts_first_rejections: true,
            forgets_at_events: true,
        }
    }
}
