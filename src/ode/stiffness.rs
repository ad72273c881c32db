//! A cheap stiffness test: does stability limit the step size?
//!
//! For methods with two stages at c = 1, their difference estimates `|lambda|`, the magnitude of the
//! Jacobian's dominant eigenvalue. The test runs every 250 steps (every 20 steps if the method can switch),
//! and at each step after a positive test, until consecutive negative tests clear the suspicion. If stiffness
//! is detected, `AutoTsit5Rodas5P` switches to its stiff method. Other methods only report a warning. Methods
//! without two such stages are not tested, because that would cost an extra evaluation. `ensemble/looks`
//! decides when trajectories in lanes are tested, and `adjoint/stiffness` when a recorded solve is tested.

use super::integrator::Integrator;
use super::{
    ButcherTableau, Clock, Method, PlainState, Resolved, Scheme, SolveError, State, Tolerance, VectorField,
    Warning,
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
pub(super) struct StiffnessTest {
    /// The indices of the last two stages at c = 1, if the method has two.
    pair: Option<(usize, usize)>,
    method: Option<Method>,
    /// Steps between two tests while no test is positive.
    every: u64,
    steps: u64,
    suspicion: Suspicion<f64>,
    look: Option<Look>,
}

/// The method's data for a test.
pub(crate) struct Look {
    /// The difference of the two stages, and the difference of their arguments divided by h, as weights of
    /// the stages.
    stages: Vec<f64>,
    arguments: Vec<f64>,
    /// The smallest suspicious `h |lambda|`.
    bound: f64,
}

impl StiffnessTest {
    /// The test of a solve.
    pub fn of<S: State>(scheme: &Scheme<S>, resolved: &Resolved) -> Self {
        let every = if resolved.switches() { EVERY_TO_SWITCH } else { EVERY };
        let (method, suspicion) = (resolved.native().method, Suspicion::none(&0.0));
        StiffnessTest { pair: pair(scheme), method, every, steps: 0, suspicion, look: None }
    }

    /// Allocates the memory of a test, so that no later step allocates unless the method switches.
    pub fn prepare<Y: PlainState>(&mut self, integrator: &mut Integrator<Y>, scheme: &Scheme<Y>) {
        if let Some(pair) = self.pair {
            integrator.reserve_stages();
            self.look = Some(Look::new(&scheme.tableau, self.method, pair));
        }
    }

    /// Whether the next step will be tested.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        let turn = self.suspicion.is_raised() || self.steps % self.every == self.every - 1;
        turn && self.pair.is_some() && !self.suspicion.has_noticed()
    }

    /// The number of steps before the next test that is due even without a suspicion, at least 1.
    pub fn steps_to_next(&self) -> u64 {
        self.every - 1 - (self.steps % self.every).min(self.every - 2)
    }

    /// Counts steps. Tests the last step if a test was due; `steps` is then 1.
    #[inline]
    pub fn after_steps<Y: PlainState>(
        &mut self,
        steps: u64,
        integrator: &mut Integrator<Y>,
        f: &dyn VectorField<Y>,
        scheme: &Scheme<Y>,
    ) -> Result<(), SolveError> {
        let due = self.is_due();
        self.steps += steps;
        if due { self.look(integrator, f, scheme) } else { Ok(()) }
    }

    fn look<Y: PlainState>(
        &mut self,
        integrator: &mut Integrator<Y>,
        f: &dyn VectorField<Y>,
        scheme: &Scheme<Y>,
    ) -> Result<(), SolveError> {
        let Some(pair) = self.pair else { return Ok(()) };
        integrator.keep_stages(f, scheme)?;
        let look = self.look.get_or_insert_with(|| Look::new(&scheme.tableau, self.method, pair));
        let is_suspicious = integrator.is_suspicious(scheme, look);
        self.suspicion = self.suspicion.see(&is_suspicious, &integrator.carry.t);
        Ok(())
    }

    /// Forgets the results of all tests so far.
    pub fn forget(&mut self) {
        self.suspicion = Suspicion::none(&0.0);
    }

    /// The warning, if stiffness was detected.
    pub fn warning(&self) -> Option<Warning> {
        self.suspicion.warning()
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

impl Look {
    /// The data for tests of steps with `method` (`None` for a custom tableau). Returns `None` if these steps
    /// cannot detect stiffness.
    pub(crate) fn of<S: State>(scheme: &Scheme<S>, method: Option<Method>) -> Option<Look> {
        pair(scheme).map(|pair| Look::new(&scheme.tableau, method, pair))
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
        Look { stages, arguments, bound: PART * interval }
    }

    /// Whether stability limits a step from y of length h with the stages k. The differences are measured by
    /// the RMS in units of the tolerance, even if the solve has a custom norm.
    pub(crate) fn is_suspicious<S: State>(
        &self,
        (y, h, k): (&S, &S::Clock, &[S]),
        tolerance: &Tolerance,
        scratch: &mut S,
    ) -> <S::Clock as Clock>::Mask {
        let mut size = |weights| scratch.error_ratio(h, weights, k, y, y, tolerance);
        let (stages, arguments) = (size(&self.stages), size(&self.arguments));
        h.like(self.bound).mul(&arguments).lt(&stages)
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

/// The stability interval of Tsit5.
pub(super) const TSIT5_INTERVAL: f64 = INTERVALS[Method::Tsit5 as usize];

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
