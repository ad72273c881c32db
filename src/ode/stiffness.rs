//! A cheap stiffness test: does stability limit the step size?
//!
//! For methods with two stages at c = 1, their difference estimates `|lambda|`, the magnitude of the
//! Jacobian's dominant eigenvalue. The test runs every 250 steps (every 20 steps if the method can switch),
//! and at each step after a positive test, until consecutive negative tests clear the suspicion. A solve of
//! plain states also makes [trials](super::trial) of a stiff method. If stiffness is detected,
//! `AutoTsit5Rodas5P` switches to its stiff method. Other methods only report a warning. Methods
//! without two such stages are not tested, because that would cost an extra evaluation. `ensemble/looks`
//! decides when trajectories in lanes are tested, and `adjoint/stiffness` when a recorded solve is tested;
//! both only compare `h |lambda|` with the stability interval.

use super::attempts::Driven;
use super::integrator::Integrator;
use super::switch::Schemes;
use super::trial::{FIRST_STEPS, SIZE_MIN, Trial, Trials};
use super::{
    ButcherTableau, Clock, Method, PlainState, Resolved, Scheme, SolveError, State, Tolerance, Warning,
};

/// Steps between two tests while no test is positive.
pub(crate) const EVERY: u64 = 250;
/// The same if the method switches when stiffness is detected: the explicit method should take only few steps
/// in a stiff part.
const EVERY_TO_SWITCH: u64 = 20;
/// Positive tests that raise a warning, and consecutive negative tests that clear the suspicion (15 and 6 in
/// DOPRI5).
const SUSPICIONS: f64 = 15.0;
const CLEARED: f64 = 6.0;
/// `h |lambda|` is suspicious from this fraction of the stability interval on: the controller keeps steps
/// somewhat inside the interval.
const PART: f64 = 0.85;

/// The counts of positive and negative tests of one solve.
///
/// # References
/// Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.2; the code DOPRI5.
#[derive(Clone, Copy)]
pub(crate) struct Suspicion<C> {
    suspicions: C,
    /// Consecutive negative tests.
    good: C,
    /// The time at which stiffness was detected, NaN until then.
    noticed: C,
}

impl<C: Clock> Suspicion<C> {
    /// The state before the first test.
    pub(crate) fn none(like: &C) -> Self {
        let zero = like.like(0.0);
        Suspicion { suspicions: zero.clone(), good: zero, noticed: like.like(f64::NAN) }
    }

    /// The state after a test of the step that ends at t.
    pub(crate) fn see(&self, is_suspicious: &C::Mask, t: &C) -> Self {
        let [zero, one, cleared, most] = [0.0, 1.0, CLEARED, SUSPICIONS].map(|x| t.like(x));
        let good = C::select(is_suspicious, &zero, &self.good.add(&one));
        let left = C::select(&cleared.le(&good), &zero, &self.suspicions);
        let suspicions = C::select(is_suspicious, &self.suspicions.add(&one), &left);
        let is_last = C::and(is_suspicious, &most.le(&suspicions));
        Suspicion { suspicions, good, noticed: C::select(&is_last, t, &self.noticed) }
    }

    /// Whether there is a suspicion, so that the next step is tested.
    pub(crate) fn is_raised(&self) -> C::Mask {
        self.suspicions.like(0.0).lt(&self.suspicions)
    }

    /// Whether stiffness was detected.
    pub(crate) fn has_noticed(&self) -> C::Mask {
        self.noticed.le(&self.noticed)
    }

    /// All its clocks, in a fixed order; the time of detection is last.
    #[cfg(feature = "autodiff")]
    pub(crate) fn clocks(&self) -> [C; 3] {
        let Suspicion { suspicions, good, noticed } = self.clone();
        [suspicions, good, noticed]
    }

    /// The inverse of [`clocks`](Self::clocks).
    #[cfg(feature = "autodiff")]
    pub(crate) fn of([suspicions, good, noticed]: [C; 3]) -> Self {
        Suspicion { suspicions, good, noticed }
    }
}

impl Suspicion<f64> {
    /// The warning, if stiffness was detected.
    pub(super) fn warning(&self) -> Option<Warning> {
        self.has_noticed().then_some(Warning::Stiff { t: self.noticed })
    }
}

/// The stiffness test of a solve of plain states.
pub(super) struct StiffnessTest<Y: PlainState> {
    /// The indices of the last two stages at c = 1, if the method has two.
    pair: Option<(usize, usize)>,
    method: Option<Method>,
    /// Steps between two tests while no test is positive.
    every: u64,
    is_switching: bool,
    /// Whether the first rejected step brings the first test forward.
    is_early: bool,
    steps: u64,
    /// The number of the step to test next, counted from 1.
    next: u64,
    suspicion: Suspicion<f64>,
    look: Option<StiffnessCheck>,
    /// `None` if the method cannot detect stiffness.
    trials: Option<Trials<Y>>,
}

/// The method's data for a test.
pub(crate) struct StiffnessCheck {
    /// The difference of the two stages, and the difference of their arguments divided by h, as weights of
    /// the stages.
    stages: Vec<f64>,
    arguments: Vec<f64>,
    /// The smallest suspicious `h |lambda|`.
    bound: f64,
}

impl<Y: PlainState> StiffnessTest<Y> {
    /// The test of a solve that has not begun.
    pub fn of(integrator: &Integrator<Y>, scheme: &Scheme<Y>, resolved: &Resolved) -> Self {
        let (pair, switches) = (pair(scheme), resolved.switches());
        let every = if switches { EVERY_TO_SWITCH } else { EVERY };
        StiffnessTest {
            pair,
            method: resolved.native().method,
            every,
            is_switching: switches,
            is_early: switches,
            steps: 0,
            next: every,
            suspicion: Suspicion::none(&0.0),
            look: None,
            trials: pair.map(|_| Trials::of(integrator, switches, every)),
        }
    }

    /// Allocates the memory of a test, so that no later step allocates unless a trial is made or the method
    /// switches.
    pub fn prepare(&mut self, integrator: &mut Integrator<Y>, scheme: &Scheme<Y>) {
        if let Some(pair) = self.pair {
            integrator.reserve_stages(scheme);
            self.look = Some(StiffnessCheck::new(&scheme.tableau, self.method, pair));
        }
    }

    /// Whether the next step will be tested.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.steps + 1 >= self.next && self.pair.is_some() && self.warning().is_none()
    }

    /// The largest number of steps to take before the next call of [`after_steps`](Self::after_steps).
    pub fn steps_to_next(&self) -> u64 {
        let next = if self.steps < FIRST_STEPS { self.next.min(FIRST_STEPS + 1) } else { self.next };
        if self.is_early { 1 } else { next.saturating_sub(1 + self.steps).max(1) }
    }

    /// Counts steps. Tests the last step if a test was due; `steps` is then 1.
    #[inline]
    pub fn after_steps(
        &mut self,
        steps: u64,
        integrator: &mut Integrator<Y>,
        field: &dyn Driven<Y>,
        schemes: &Schemes<'_, '_, Y>,
    ) -> Result<(), SolveError> {
        let due = self.is_due();
        self.steps += steps;
        if let Some(trials) = self.trials.as_mut().filter(|_| self.steps == FIRST_STEPS) {
            trials.after_first_steps(integrator.carry.t);
        }
        if due {
            return self.look(integrator, field, schemes);
        }
        if self.is_early && integrator.carry.num_rejected > 0.0 {
            self.next = self.steps + 1;
        }
        Ok(())
    }

    fn look(
        &mut self,
        integrator: &mut Integrator<Y>,
        field: &dyn Driven<Y>,
        schemes: &Schemes<'_, '_, Y>,
    ) -> Result<(), SolveError> {
        let (Some(pair), Some(trials), scheme) = (self.pair, &mut self.trials, schemes.first) else {
            return Ok(());
        };
        self.next = (self.steps / self.every + 1) * self.every;
        integrator.keep_stages(field, scheme)?;
        let look = self.look.get_or_insert_with(|| StiffnessCheck::new(&scheme.tableau, self.method, pair));
        let size = integrator.stiffness(scheme, look);
        self.suspicion = self.suspicion.see(&(size > look.bound), &integrator.carry.t);
        // A method that switches does so only if a trial passes.
        let is_urgent = self.is_switching && self.suspicion.has_noticed();
        if is_urgent {
            self.suspicion = Suspicion::none(&0.0);
        }
        if size > SIZE_MIN {
            let sooner = trials.consider(field, schemes, integrator, (self.steps, is_urgent));
            self.next = sooner.unwrap_or(self.next);
        }
        self.is_early &= size > SIZE_MIN && self.steps < EVERY_TO_SWITCH && !trials.has_begun();
        if self.suspicion.is_raised() {
            self.next = self.steps + 1;
        }
        Ok(())
    }

    /// The trial of the stiff method that passed since the last call, if the method switches.
    pub fn take_passed(&mut self) -> Option<Trial<Y>> {
        self.trials.as_mut().and_then(Trials::take_passed)
    }

    /// Forgets the results of all tests so far.
    pub fn forget(&mut self) {
        self.suspicion = Suspicion::none(&0.0);
        self.next = self.steps + self.every;
        if let Some(trials) = &mut self.trials {
            trials.back_off(self.steps);
        }
    }

    /// The warning, if stiffness was detected.
    #[inline]
    pub fn warning(&self) -> Option<Warning> {
        let found = self.trials.as_ref().and_then(|trials| trials.found);
        found.map(|t| Warning::Stiff { t }).or_else(|| self.suspicion.warning())
    }
}

/// The indices of the last two stages at c = 1, if steps are adaptive and the method is explicit and has two.
fn pair<S: State>(scheme: &Scheme<S>) -> Option<(usize, usize)> {
    let tableau = &scheme.tableau;
    if !tableau.is_explicit() {
        return None;
    }
    let mut at_end = (1..tableau.num_stages()).rev().filter(|&i| tableau.c[i] == 1.0);
    let pair = at_end.next().and_then(|last| at_end.next().map(|other| (other, last)));
    pair.filter(|_| scheme.is_adaptive())
}

impl StiffnessCheck {
    /// The data for tests of steps with `method` (`None` for a custom tableau). Returns `None` if these steps
    /// cannot detect stiffness.
    pub(crate) fn of<S: State>(scheme: &Scheme<S>, method: Option<Method>) -> Option<StiffnessCheck> {
        pair(scheme).map(|pair| StiffnessCheck::new(&scheme.tableau, method, pair))
    }

    fn new(tableau: &ButcherTableau, method: Option<Method>, (first, second): (usize, usize)) -> Self {
        let s = tableau.num_stages();
        let interval = match method {
            Some(method) => INTERVALS[method as usize],
            None => stability_interval(tableau, &mut vec![0.0; s], &mut vec![0.0; s]),
        };
        let mut stages = vec![0.0; s];
        (stages[second], stages[first]) = (1.0, -1.0);
        let weight = |i: usize, j: usize| tableau.row(i).get(j).copied().unwrap_or(0.0);
        let arguments = (0..s).map(|j| weight(second, j) - weight(first, j)).collect();
        StiffnessCheck { stages, arguments, bound: PART * interval }
    }

    /// Whether stability limits a step from y of length h with the stages k. The differences are measured by
    /// the RMS in units of the tolerance, even if the solve has a custom norm.
    #[cfg(feature = "autodiff")]
    pub(crate) fn is_suspicious<S: State>(
        &self,
        (y, h, k): (&S, &S::Clock, &[S]),
        tolerance: &Tolerance,
        scratch: &mut S,
    ) -> <S::Clock as Clock>::Mask {
        let (stages, arguments) = self.sizes((y, h, k), tolerance, scratch);
        h.like(self.bound).mul(&arguments).lt(&stages)
    }

    /// `h` times the difference of the two stages, and the difference of their arguments; the ratio of these
    /// sizes estimates `h |lambda|`.
    pub(super) fn sizes<S: State>(
        &self,
        (y, h, k): (&S, &S::Clock, &[S]),
        tolerance: &Tolerance,
        scratch: &mut S,
    ) -> (S::Clock, S::Clock) {
        let mut size = |weights| scratch.error_ratio(h, weights, k, y, y, tolerance);
        (size(&self.stages), size(&self.arguments))
    }

    /// The same for a step of `dim` components: `stage(i, j)` is component j of stage i, `scale(j)` its
    /// tolerance.
    pub fn is_suspicious_at(
        &self,
        dim: usize,
        stage: impl Fn(usize, usize) -> f64,
        scale: impl Fn(usize) -> f64,
    ) -> bool {
        let (mut stages, mut arguments) = (0.0, 0.0);
        for j in 0..dim {
            let sum = |weights: &[f64]| -> f64 {
                let terms = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
                terms.map(|(i, w)| w * stage(i, j)).sum::<f64>() / scale(j)
            };
            stages += sum(&self.stages).powi(2);
            arguments += sum(&self.arguments).powi(2);
        }
        stages.sqrt() > self.bound * arguments.sqrt()
    }
}

/// The stability interval of each explicit method, 0 for the others; computed at compile time, because this
/// takes as long as a hundred steps.
const INTERVALS: [f64; Method::ALL.len()] = {
    let mut intervals = [0.0; Method::ALL.len()];
    let mut i = 0;
    while i < intervals.len() {
        let tableau = Method::ALL[i].tableau();
        if !tableau.is_explicit() {
            i += 1;
            continue;
        }
        let (mut power, mut coefficients) = ([0.0; 16], [0.0; 16]);
        let s = tableau.num_stages();
        let (power, coefficients) = (power.split_at_mut(s).0, coefficients.split_at_mut(s).0);
        intervals[i] = stability_interval(tableau, power, coefficients);
        i += 1;
    }
    intervals
};

/// The largest x up to which |y| does not grow in a step of y' = -x y / h: the stability interval on the
/// negative real axis.
///
/// Both slices are scratch with one entry per stage. With R(-x) = 1 - c_1 x + c_2 x^2 - ..., c_j = b A^(j-1) 1,
/// this finds the first sign change of 1 - |R| on a grid, then bisects.
const fn stability_interval(tableau: &ButcherTableau, power: &mut [f64], coefficients: &mut [f64]) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    stability_coefficients(tableau, power, coefficients);
    let (mut low, mut high) = (0.0, STEP);
    while !grows(coefficients, high) && high < 100.0 {
        low = high;
        high += STEP;
    }
    let mut halvings = 0;
    while halvings < 20 {
        let middle = 0.5 * (low + high);
        if grows(coefficients, middle) {
            high = middle;
        } else {
            low = middle;
        }
        halvings += 1;
    }
    low
}

/// Whether `|R(-x)| > 1` beyond rounding, which dominates near 0.
const fn grows(coefficients: &[f64], x: f64) -> bool {
    let (mut value, mut j) = (0.0, coefficients.len());
    while j > 0 {
        j -= 1;
        value = coefficients[j] - x * value;
    }
    (1.0 - x * value).abs() > 1.0 + 1e-12
}

/// Computes `b A^j 1` for each j, the coefficients of the stability function.
const fn stability_coefficients(tableau: &ButcherTableau, power: &mut [f64], coefficients: &mut [f64]) {
    let s = tableau.num_stages();
    let mut j = 0;
    while j < s {
        power[j] = 1.0;
        coefficients[j] = 0.0;
        j += 1;
    }
    j = 0;
    while j < s {
        // power = A^j 1; rows are lower triangular, so it is replaced from the last entry on.
        let mut i = s;
        while i > 0 {
            i -= 1;
            coefficients[j] += tableau.b[i] * power[i];
            let (mut sum, mut l) = (0.0, 0);
            while l < i {
                sum += tableau.row(i)[l] * power[l];
                l += 1;
            }
            power[i] = sum;
        }
        j += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::INTERVALS;
    use crate::ode::Method;

    #[test]
    fn stability_intervals_are_those_of_the_literature() {
        // Hairer, Wanner II, section IV.2: 2 and 2.785 for the classical methods, 3.31 for DOPRI5.
        for (method, expected) in [(Method::Euler, 2.0), (Method::Rk4, 2.785), (Method::Dopri5, 3.307)] {
            let ours = INTERVALS[method as usize];
            assert!((ours - expected).abs() < 0.005, "{method}: {ours}");
        }
    }
}
