//! `Trials`: would a stiff method take much longer steps from here?
//!
//! A trial is one attempt of Rodas5P from the state of a solve with an explicit method, over several steps of
//! that method. If the attempt is accepted, one step of Rodas5P replaces these steps. The measure of stiffness
//! is therefore cost, not a stability interval: a trial also succeeds for eigenvalues near the imaginary axis,
//! and at tight tolerances, where the explicit method's steps stay far within its stability interval. It fails
//! for an oscillation that must be resolved, because the attempt's error estimate includes the oscillation.
//!
//! Errors of the explicit method excite an oscillation that is not part of the solution. Its amplitude is
//! `error / E(z)` with the explicit method's error function E and `z = h lambda`: on the imaginary axis some
//! tens of tolerances. Rodas5P's error function is largest, 0.6, at `|z| = 10`, and falls as `12 / |z|`. So a
//! failed attempt is repeated over longer steps if the error estimate may fall with the length.
//!
//! A trial has its own memory and does not change the solve.

use super::attempt::count_stiff;
use super::attempts::{Driven, Run};
use super::integrator::Integrator;
use super::linear::Coloring;
use super::stiff::make_memory;
use super::switch::Schemes;
use super::{Carry, Controller, Method, Native, PidController, PlainState, Resolved, Scheme, status};

/// A step of the stiff method must be this many times as long as would pay, to replace the explicit method and
/// for a warning.
const GAIN_TO_SWITCH: f64 = 1.5;
const GAIN_TO_WARN: f64 = 3.0;
/// The largest cost of a trial, as a part of the cost of the steps since the last trial, and of the steps so far. A
/// method that switches makes its first trial after the first rejected step, for a larger part: this trial decides most.
const PART_TO_SWITCH: f64 = 0.2;
const PART_TO_SWITCH_FIRST: f64 = 0.4;
const PART_TO_WARN: f64 = 0.01;
/// Lengths of the attempts of one trial, in units of the shortest.
const LENGTHS: [f64; 3] = [1.0, 10.0, 100.0];
/// A longer step is attempted only if the error ratio is below this.
const RATIO_MAX: f64 = 100.0;
/// A trial is made only if `h |lambda|` is above this.
pub(super) const SIZE_MIN: f64 = 0.25;
/// A trial is made only if the explicit method's next step is at most this many times as long as its last.
const SETTLED: f64 = 1.5;
/// Steps between the two trials that raise a warning.
const BETWEEN: u64 = 15;
/// The length of the shortest step of the stiff method that pays, as a fraction of the length at which both methods
/// cost the same. It is less while the stiff method has to damp an oscillation first.
const PAYS: f64 = 0.75;
const PAYS_LATER: f64 = 0.35;
/// The number of steps up to which a solve that switches is near its start.
const NEAR: u64 = 100;
/// The steps whose mean size a trial from the start of the solve compares with.
pub(super) const FIRST_STEPS: u64 = 50;

/// The trials of one solve.
pub(super) struct Trials<Y: PlainState> {
    switches: bool,
    /// `None` before the first trial, because most solves make none.
    how: Option<How>,
    /// The number of steps at the last trial.
    last: u64,
    /// No trial is made before this step, unless it is urgent.
    next: u64,
    /// The number of steps from a failed trial to the next one, which doubles with each failure.
    wait: u64,
    /// The start of a solve that cannot switch, until a trial is made from there.
    start: Option<Start<Y>>,
    /// Whether the last trial passed.
    has_passed: bool,
    /// The time at which the problem was found to be stiff.
    pub found: Option<f64>,
    /// The trial that passed, if the method switches.
    passed: Option<Trial<Y>>,
}

/// How trials are made.
struct How {
    controller: Controller,
    native: Native,
    /// The cost of a step of the stiff method, in steps of the explicit method.
    cost: f64,
}

/// The start of a solve. The errors of the explicit method have not excited any oscillation there.
struct Start<Y> {
    t: f64,
    y: Y,
    /// The mean size of the first steps, signed; NaN until they are taken.
    h: f64,
}

/// The state from which a trial is made, and the size of the explicit method's steps, signed.
struct From<'a, Y> {
    t: f64,
    y: &'a Y,
    num_stops: f64,
    h: f64,
}

/// The result of a trial.
pub(super) struct Trial<Y: PlainState> {
    has_passed: bool,
    /// Its stiff memory holds the Jacobian at the start of the attempt.
    carry: Carry<Y>,
    /// The size of the stiff method's next step, signed.
    next: f64,
    /// Shorter steps of the stiff method do not pay.
    least: f64,
}

impl<Y: PlainState> Trials<Y> {
    /// The trials of a solve; `every` is the number of steps between two tests.
    pub fn of(integrator: &Integrator<Y>, switches: bool, every: u64) -> Self {
        let Carry { t, ref y, .. } = integrator.carry;
        let start = Some(Start { t, y: y.clone(), h: f64::NAN });
        Trials {
            switches,
            how: None,
            last: 0,
            next: 0,
            wait: every,
            start,
            has_passed: false,
            found: None,
            passed: None,
        }
    }

    /// Stores the mean size of the first [`FIRST_STEPS`] steps.
    pub fn after_first_steps(&mut self, t: f64) {
        if let Some(start) = &mut self.start {
            start.h = (t - start.t) / FIRST_STEPS as f64;
        }
    }

    /// Makes a trial after a tested step of the explicit method, if it is due or urgent, and cheap
    /// compared with the steps so far. Returns the step to test next if the next regular test is too late.
    pub fn consider(
        &mut self,
        field: &dyn Driven<Y>,
        schemes: &Schemes<'_, '_, Y>,
        integrator: &mut Integrator<Y>,
        (steps, is_urgent): (u64, bool),
    ) -> Option<u64> {
        let Carry { t, dt, h, num_stops, status, ref y, .. } = integrator.carry;
        let is_settled = dt.abs() < SETTLED * h.abs();
        let is_due = is_urgent || steps >= self.next && is_settled;
        if !is_due || status != status::RUNNING {
            return None;
        }
        let how = self.how.get_or_insert_with(|| How::of(y, schemes.first, schemes.resolved));
        let part = if self.last == 0 { PART_TO_SWITCH_FIRST } else { PART_TO_SWITCH };
        let most =
            if self.switches { part * (steps - self.last) as f64 } else { PART_TO_WARN * steps as f64 };
        if how.cost > most {
            return None;
        }
        self.last = steps;
        let start = self.start.take();
        // The step size must still be that of the first steps: these were then as limited as the last ones.
        let is_alike = |start: &&Start<Y>| (0.33..1.5).contains(&(dt / start.h));
        if let Some(start) = start.as_ref().filter(is_alike).filter(|_| !self.switches) {
            let from = From { t: start.t, y: &start.y, num_stops: 0.0, h: start.h };
            if how.run(field, schemes, integrator, &from).has_passed {
                self.found = Some(t);
                return None;
            }
            self.next = steps + self.wait;
            return None;
        }
        let mut trial = how.run(field, schemes, integrator, &From { t, y, num_stops, h: dt });
        if self.switches {
            trial.count_in(&mut integrator.carry);
            let is_near = |start: &Start<Y>| steps <= NEAR && (t - start.t).abs() < NEAR as f64 * dt.abs();
            if let Some(start) = start.filter(is_near).filter(|_| !trial.has_passed) {
                // The stiff method damps what the explicit method has excited since the start.
                let from = From { t: start.t, y: &start.y, num_stops: 0.0, h: dt };
                trial = how.run(field, schemes, integrator, &from);
                trial.count_in(&mut integrator.carry);
                (trial.next, trial.least) = (dt, PAYS_LATER * how.cost * dt.abs());
            }
        }
        let had_passed = std::mem::replace(&mut self.has_passed, trial.has_passed);
        match (trial.has_passed, self.switches) {
            (false, _) => self.back_off(steps),
            (true, true) => self.passed = Some(trial),
            (true, false) if had_passed => self.found = Some(t),
            (true, false) => {
                self.next = steps + BETWEEN;
                return Some(self.next);
            }
        }
        None
    }

    /// Whether a trial was made.
    pub fn has_begun(&self) -> bool {
        self.next > 0 || self.passed.is_some()
    }

    /// Makes the next trial later.
    pub fn back_off(&mut self, steps: u64) {
        self.next = steps + self.wait;
        self.wait *= 2;
    }

    /// The trial that passed since the last call, if the method switches.
    pub fn take_passed(&mut self) -> Option<Trial<Y>> {
        self.passed.take()
    }
}

impl How {
    fn of<Y: PlainState>(y: &Y, scheme: &Scheme<Y>, resolved: &Resolved) -> How {
        let plan = Coloring::new(y.num_components(), resolved.sparsity());
        let cost = relative_cost(y.num_components(), scheme.evals_per_attempt(), &plan);
        let native = Native { method: Some(Method::Rodas5P), ..resolved.native() };
        How { controller: PidController::predictive().into(), native, cost }
    }

    /// Makes a trial.
    fn run<Y: PlainState>(
        &self,
        field: &dyn Driven<Y>,
        schemes: &Schemes<'_, '_, Y>,
        integrator: &Integrator<Y>,
        from: &From<'_, Y>,
    ) -> Trial<Y> {
        let (scheme, resolved) = (schemes.first, schemes.resolved);
        let mut stiff = resolved.stiff_scheme_by(&self.controller, scheme.norm);
        stiff.limits.max_steps = 1;
        let stiff = stiff.differentiated_by(scheme.functions);
        let mut carry = Carry::new(from.t, from.y.clone(), stiff.tableau.num_stages());
        carry.num_stops = from.num_stops;
        make_memory(&stiff, resolved, &mut carry);
        let mut trial =
            Trial { has_passed: false, carry, next: from.h, least: PAYS * self.cost * from.h.abs() };
        let (mut step_times, mut ratio) = (vec![], RATIO_MAX);
        let gain = if resolved.switches() { GAIN_TO_SWITCH } else { GAIN_TO_WARN };
        for length in LENGTHS {
            let carry = &mut trial.carry;
            let dt = from.h * gain * self.cost * length;
            if dt.abs() > (integrator.span.t1 - from.t).abs() {
                break;
            }
            (carry.dt, carry.status, carry.num_steps) = (dt, status::RUNNING, 0.0);
            let run =
                Run { scheme: &stiff, span: &integrator.span, carry, most: 1, step_times: &mut step_times };
            if field.attempts(self.native, run).is_err() {
                // An attempt that failed has not counted its evaluations.
                count_stiff(&true, carry);
                break;
            }
            // A stop may have cut the step short.
            trial.has_passed = carry.accepted && carry.h.abs() > 0.99 * dt.abs();
            trial.next = carry.h;
            // A NaN ends the trial, too.
            let is_less = carry.error_ratio < ratio;
            if carry.accepted || !is_less {
                break;
            }
            ratio = 2.0 * carry.error_ratio;
        }
        trial
    }
}

impl<Y: PlainState> Trial<Y> {
    /// Adds the trial's counts to those of the solve.
    fn count_in(&self, carry: &mut Carry<Y>) {
        carry.num_fn_evals += self.carry.num_fn_evals;
        carry.num_jac_evals += self.carry.num_jac_evals;
        carry.num_factorizations += self.carry.num_factorizations;
    }

    /// Continues the solve with the trial's memory, which computes nothing twice at the same t and y. Returns the
    /// size `|h| |J|` of the shortest steps of the stiff method that pay.
    pub fn adopt(self, integrator: &mut Integrator<Y>) -> f64 {
        integrator.carry.dt = self.next;
        integrator.carry.stiff = self.carry.stiff;
        self.least * integrator.jacobian_norm()
    }
}

/// The cost of a step of Rodas5P with a Jacobian by differences, in steps of an explicit method with this
/// many evaluations.
///
/// This is a rough model, because the cost of the vector field is unknown. An evaluation is assumed to take 20
/// operations per component. Operations on a matrix take twice the time of others, and an evaluation for a Jacobian takes
/// half the time of another, because dual numbers share most of the work. For Tsit5 and a dense Jacobian the
/// model gives 2 for two components, 10 for 20 and 110 for 100.
fn relative_cost(n: usize, evals: usize, plan: &Coloring) -> f64 {
    let (lower, upper) = plan.band();
    let (n, colors) = (n as f64, plan.num_colors() as f64);
    let field = 20.0 * n;
    let (lower, width) = ((lower as f64).min(n), ((lower + upper) as f64).min(n));
    // A dense matrix has lower = upper = n: n^3 / 3 operations of two flops.
    let factor = if lower < n { 2.0 * n * lower * width } else { n * n * n * 2.0 / 3.0 };
    let solve = 2.0 * n * (lower + width).min(n);
    let stiff = (9.0 + 0.5 * colors) * field + 2.0 * (factor + 8.0 * solve) + 64.0 * n;
    let evals = evals.max(1) as f64;
    stiff / (evals * (field + 7.0 * n))
}
