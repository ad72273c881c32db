//! The whole solve of plain Rust values: a loop over accepted steps with a recorder.

use super::attempts::Driven;
use super::check::Driver;
use super::given_times::Resets;
use super::integrator::Integrator;
use super::record::{Recorder, Selection};
use super::sensitivity::Tape;
use super::settings::Settings;
use super::stepper::Stepper;
use super::stiffness::StiffnessTest;
use super::switch::{Schemes, Switch};
use super::{
    ConfigError, Norm, Ode, OdeState, Outcome, Rate, Real, Resolved, SaveAt, Scheme, Solution, Solvable,
    SolveError, StateFunctions, Stats, VectorField,
};

/// A plain state, whose clock is f64. [`Ode::save_fn`], [`Ode::stepper`], [`Ode::in_place`] and figures need
/// a plain state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a plain state",
    label = "`save_fn`, `in_place` and `stepper` need a plain state",
    note = "such a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>, a nalgebra vector or matrix, an ndarray array (features `nalgebra`, `ndarray`), a tuple of these, or a struct of them made by `state!`"
)]
pub trait PlainState: OdeState<Clock = f64> + 'static {
    /// Whether loops are compiled for single methods; they are faster if a state fits into registers.
    #[doc(hidden)]
    const UNROLLED: bool;

    /// The number type in which linear systems of its components are solved.
    #[doc(hidden)]
    type Number: Solvable + Real<Clock = f64>;

    /// The distance from 1 to the next larger number, in the precision of the components.
    #[doc(hidden)]
    const EPSILON: f64;

    /// The smallest `EPSILON` of the parts.
    #[doc(hidden)]
    const EPSILON_MIN: f64 = Self::EPSILON;

    /// Copies the components, in order, to `out`, which has the same length.
    #[doc(hidden)]
    fn read(&self, out: &mut [Self::Number]);

    /// Replaces the components, in order, by `from`, which has the same length.
    #[doc(hidden)]
    fn write(&mut self, from: &[Self::Number]);

    /// Calls `f` with each component, in order.
    fn each_component(&self, f: &mut dyn FnMut(f64));

    /// The components, in order.
    fn components(&self) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.num_components());
        self.each_component(&mut |x| out.push(x));
        out
    }
}

/// Implements [`Ode`] solves for a type that is a [`State`](super::State) with an f64 clock.
macro_rules! plain_drive {
    ({$($generics:tt)*} $t:ty, |$of:ident| $tolerance:expr, $unrolled:expr, $number:ty, |$y:ident| $each:expr, |$to:ident| $each_mut:expr) => {
        impl<$($generics)*> $crate::ode::OdeState for $t {
            type Solution<O> = $crate::ode::Solution<Self, O>;
            type Options = ();

            fn default_tolerance(&self) -> $crate::ode::Tolerance<'static> {
                let $of = self;
                $tolerance
            }
            fn check<F, O>(
                ode: &$crate::ode::Ode<'_, Self, F, O>,
                t0: &f64,
                t1: &f64,
                y0: &Self,
            ) -> Result<(), $crate::ode::ConfigError> {
                $crate::ode::plain::check(ode, (*t0, *t1), y0)
            }
            fn drive<F: $crate::ode::VectorField<Self>, O>(
                ode: &$crate::ode::Ode<'_, Self, F, O>,
                t0: f64,
                t1: f64,
                y0: Self,
            ) -> Result<$crate::ode::Solution<Self, O>, $crate::ode::SolveError<$crate::ode::Solution<Self, O>>>
            {
                $crate::ode::plain::solve(ode, t0, t1, y0)
            }
        }
        impl<$($generics)*> $crate::ode::PlainState for $t {
            const UNROLLED: bool = $unrolled;

            type Number = <$number as $crate::ode::Real>::Wide;
            const EPSILON: f64 = <$number as $crate::ode::Real>::EPSILON;

            fn each_component(&self, f: &mut dyn FnMut(f64)) {
                let $y = self;
                $each.for_each(|x| f($crate::ode::Real::value(*x)));
            }
            #[inline]
            fn read(&self, out: &mut [Self::Number]) {
                let $y = self;
                for (i, x) in $each.enumerate() {
                    out[i] = $crate::ode::Real::widen(*x);
                }
            }
            #[inline]
            fn write(&mut self, from: &[Self::Number]) {
                let $to = self;
                for (i, x) in $each_mut.enumerate() {
                    *x = $crate::ode::Real::narrow(from[i]);
                }
            }
        }
    };
}
#[allow(unused_imports, reason = "states of optional crates use it")]
pub(crate) use plain_drive;

impl<Y: PlainState, F: VectorField<Y>, O> Ode<'_, Y, F, O> {
    /// Creates a stepper from t0 to t1, which returns one accepted step per call. The state may be modified
    /// between steps.
    ///
    /// # Errors
    /// As [`Ode::solve`]; also an error for saved values, events and `on_step`, because the caller sees every step.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
    /// let mut stepper = decay.stepper(0.0, 1.0, [1.0])?;
    /// let mut last = 0.0;
    /// while let Some(step) = stepper.step()? {
    ///     assert!(step.t > last);
    ///     last = step.t;
    /// }
    /// assert!(last == 1.0 && (stepper.y()[0] - (-1.0_f64).exp()).abs() < 1e-6);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn stepper(&self, t0: f64, t1: f64, y0: Y) -> Result<Stepper<'_, Y, F>, SolveError<()>> {
        self.requested().check(Driver::Steps)?;
        let resolved = resolved(&self.settings, &self.save_at, ((t0, t1), true), &y0)?;
        let options = (self.norm.as_deref(), &self.functions, self.settings.allow_incomplete);
        Stepper::new(&self.field, options, resolved, (t0, t1), y0)
    }
}

/// Runs the checks of [`solve`] without solving.
///
/// # Errors
/// As [`Ode::check`].
pub fn check<Y: PlainState, F, O>(
    ode: &Ode<'_, Y, F, O>,
    (t0, t1): (f64, f64),
    y0: &Y,
) -> Result<(), ConfigError> {
    ode.requested().check(Driver::Solve)?;
    let span = ((t0, t1), ode.requested().can_end());
    resolved(&ode.settings, &ode.save_at, span, y0).map(|_| ())
}

/// Solves, and saves what the settings select.
///
/// # Errors
/// As [`Ode::solve`].
pub fn solve<Y: PlainState, F: VectorField<Y>, O>(
    ode: &Ode<'_, Y, F, O>,
    t0: f64,
    t1: f64,
    y0: Y,
) -> Result<Solution<Y, O>, SolveError<Solution<Y, O>>> {
    ode.requested().check(Driver::Solve)?;
    let Ran { solution, failure, .. } = run(ode, (t0, t1), y0, false)?;
    if let Some(error) = failure {
        return Err(error.map(|()| solution));
    }
    if solution.outcome.is_success() || ode.settings.allow_incomplete {
        return Ok(solution);
    }
    let (rtol, atol) = (solution.rtol.clone(), solution.atol.clone());
    let tolerances = (&rtol, &atol, ode.settings.is_adaptive());
    Err(SolveError::incomplete(solution.outcome, None, tolerances, solution))
}

/// The solution so far, and the failure if there was one.
pub(super) struct Ran<Y: PlainState, O> {
    pub solution: Solution<Y, O>,
    pub failure: Option<SolveError>,
    /// Empty unless it was asked for.
    pub tape: Tape,
    pub resolved: Resolved,
}

/// Solves as far as possible. `tapes`: whether the result has a tape.
///
/// # Errors
/// The errors of the checks before a solve.
pub(super) fn run<Y: PlainState, F: VectorField<Y>, O>(
    ode: &Ode<'_, Y, F, O>,
    span: (f64, f64),
    y0: Y,
    tapes: bool,
) -> Result<Ran<Y, O>, ConfigError> {
    let open_span = (span, ode.requested().can_end());
    let resolved = resolved(&ode.settings, &ode.save_at, open_span, &y0)?;
    let save_at = ode.save_at.in_order(span.0, span.1);
    let selection = Selection::of(ode, &save_at);
    let resolved = resolved.keeping_first(selection.needs_curve());
    let mut tape = Tape::default();
    let used = tapes.then_some(&mut tape);
    let how = (&resolved, ode.norm.as_deref(), &ode.functions);
    let (solution, failure) = run_any(&ode.field, selection, how, span, (y0, used));
    Ok(Ran { solution, failure, tape, resolved })
}

/// [`run`] for any vector field; it is compiled once per kind of state.
fn run_any<Y: PlainState, O>(
    field: &dyn Driven<Y>,
    selection: Selection<'_, '_, Y, O>,
    (resolved, norm, functions): (&Resolved, Option<&Norm<'_, Y>>, &StateFunctions<'_, Y>),
    span: (f64, f64),
    (y0, tape): (Y, Option<&mut Tape>),
) -> (Solution<Y, O>, Option<SolveError>) {
    let needs_curve = selection.needs_curve();
    let scheme: Scheme<Y> = resolved.scheme(norm).differentiated_by(Some(functions));
    let stiff = resolved.stiff_scheme(norm).map(|scheme| scheme.differentiated_by(Some(functions)));
    let schemes = Schemes { first: &scheme, stiff: stiff.as_ref(), resolved };
    let (mut resets, mut first) = (Resets::new(selection.times, span), y0.clone());
    let begun = resets.act(span.0, &mut first);
    let begun =
        begun.and_then(|()| begin(field, (&scheme, resolved), span, (&y0, first, resets.num_done > 0)));
    let mut integrator = match begun {
        Ok(integrator) => integrator,
        Err(error) => return (unstarted(span.0, y0, resolved, &scheme), Some(error)),
    };
    let mut recorder = Recorder::new(selection, (&y0, resets), (&mut integrator, &scheme));
    let mut stiffness = StiffnessTest::of(&integrator, &scheme, resolved);
    let mut tape = tape;
    let (how, observers) = ((&schemes, needs_curve), (&mut recorder, &mut stiffness, tape.as_deref_mut()));
    let failure = follow(field, how, &mut integrator, observers).err();
    recorder.finish(&integrator);
    if let Some(tape) = tape {
        tape.num_resets = recorder.num_resets();
        (tape.cuts, tape.event_steps) = (recorder.cuts, recorder.event_steps);
    }
    let outcome = match failure {
        Some(_) => Outcome::Failed { t: integrator.carry.t, step: integrator.carry.num_steps as u64 },
        None => recorder
            .stopped
            .or_else(|| integrator.outcome(&scheme))
            .expect("invariant: the loop ends only with an outcome"),
    };
    let stats = Stats::of(&integrator.carry);
    let Recorder { ts, ys, step_times, events, dense, .. } = recorder;
    let solution = Solution {
        t1: integrator.carry.t,
        ts,
        ys,
        step_times,
        events,
        stats,
        outcome,
        // A method that switches has already done what the warning recommends.
        warnings: stiffness.warning().filter(|_| stiff.is_none()).into_iter().collect(),
        dense,
        ..unstarted(span.0, integrator.carry.y, resolved, &scheme)
    };
    (solution, failure)
}

/// The solve at its start, from `first`, the state that resets at t0 have made of `y0`.
fn begin<Y: PlainState>(
    field: &dyn VectorField<Y>,
    how: (&Scheme<Y>, &Resolved),
    span: (f64, f64),
    (y0, first, has_reset): (&Y, Y, bool),
) -> Result<Integrator<Y>, SolveError> {
    if !has_reset || how.1.mass().is_none() {
        return Integrator::new(field, how, span, first);
    }
    // Algebraic equations must hold for y0. After the resets they are solved again.
    let mut integrator = Integrator::new(field, how, span, y0.clone())?;
    integrator.start_again(field, how, first)?;
    Ok(integrator)
}

/// Takes steps until the solve has ended.
fn follow<Y: PlainState, O>(
    field: &dyn Driven<Y>,
    (schemes, needs_curve): (&Schemes<'_, '_, Y>, bool),
    integrator: &mut Integrator<Y>,
    (recorder, stiffness, mut tape): (&mut Recorder<'_, '_, Y, O>, &mut StiffnessTest<Y>, Option<&mut Tape>),
) -> Result<(), SolveError> {
    let (plain, mut switch) = (recorder.keeps_ends_alone(), Switch::default());
    let plain = plain && (tape.is_none() || schemes.first.tableau.is_explicit());
    loop {
        let (scheme, native) = (switch.scheme(schemes), switch.native(schemes.resolved));
        let is_tested = !switch.is_stiff() && stiffness.is_due();
        let most = if plain && !is_tested && !switch.is_stiff() { stiffness.steps_to_next() } else { 1 };
        let (remember, step_times) = (needs_curve || is_tested, &mut recorder.step_times);
        let num_steps = step_times.len();
        let accepted = integrator.advance(field, scheme, native, (remember, most), step_times)?;
        if accepted == 0 {
            return Ok(());
        }
        if !switch.is_stiff() {
            stiffness.after_steps(accepted, integrator, field, schemes)?;
        }
        let handled = if plain { Ok(()) } else { recorder.after_step(integrator, scheme) };
        if let Some(tape) = &mut tape {
            let num_stages = integrator.carry.stiff.as_ref().and_then(|stiff| stiff.num_stages());
            tape.num_stages.extend(num_stages.filter(|_| recorder.step_times.len() > num_steps));
        }
        handled?;
        let was_stiff = switch.is_stiff();
        switch.after_step(field, schemes, integrator, stiffness)?;
        if let Some(tape) = tape.as_deref_mut().filter(|_| switch.is_stiff() != was_stiff) {
            tape.switches.push(recorder.step_times.len() - 1);
        }
    }
}

/// The solution of a solve that failed before its first step.
fn unstarted<Y, O>(t0: f64, y0: Y, resolved: &Resolved, scheme: &Scheme<Y>) -> Solution<Y, O>
where
    Y: PlainState,
{
    Solution {
        t1: t0,
        y1: y0,
        ts: Vec::new(),
        ys: Vec::new(),
        step_times: Vec::new(),
        events: Vec::new(),
        stats: Stats::default(),
        outcome: Outcome::Failed { t: t0, step: 0 },
        warnings: Vec::new(),
        method: scheme.tableau.name.to_owned(),
        rtol: resolved.rtol.clone(),
        atol: resolved.atol.clone(),
        dense: None,
    }
}

/// Fills in the defaults of all settings, and checks the settings, the interval and y0.
///
/// # Errors
/// A setting out of range, saved times out of order or outside the interval, an interval or a y0 that is not
/// finite.
fn resolved<Y: PlainState>(
    settings: &Settings,
    save_at: &SaveAt,
    ((t0, t1), is_open): ((f64, f64), bool),
    y0: &Y,
) -> Result<Resolved, ConfigError> {
    let resolved = settings.resolve((y0.default_tolerance(), Y::EPSILON_MIN), &y0.parts(), Some((t0, t1)))?;
    resolved.scheme::<Y>(None).check_span(t0, t1, is_open)?;
    save_at.check(t0, t1)?;
    check_state(y0)?;
    Ok(resolved)
}

fn check_state<Y: PlainState>(y0: &Y) -> Result<(), ConfigError> {
    let component = y0.first_non_finite(&0.0);
    if component < 0.0 {
        return Ok(());
    }
    Err(ConfigError::InitialState { component: component as usize })
}

/// Solves with the defaults of [`Ode`], and returns y at each of `ts`; `y0` is the state at the first time.
///
/// # Errors
/// Times that are not monotone (equal neighbors are allowed) or not finite, a y0 that is not finite, a vector
/// field that failed, and [`SolveError::Incomplete`] if the solve ended before the last time.
///
/// # Examples
/// ```
/// let ys = flowline::ode::odeint(|_t, y| [y[1], -y[0]], [1.0, 0.0], &[0.0, 1.0, 2.0])?;
/// assert!((ys[2][0] - 2.0_f64.cos()).abs() < 1e-5);
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn odeint<Y: PlainState, R: Rate<Y>>(
    f: impl Fn(f64, &Y) -> R,
    y0: Y,
    ts: &[f64],
) -> Result<Vec<Y>, SolveError<Solution<Y>>> {
    let (Some(&t0), Some(&t1)) = (ts.first(), ts.last()) else {
        return Ok(Vec::new());
    };
    if let Some(&value) = ts.iter().find(|t| !t.is_finite()) {
        return Err(ConfigError::Time { name: "ts", value }.into());
    }
    let mut saved = solve(&Ode::new(f).save_at(SaveAt::ts(ts)), t0, t1, y0)?.ys.into_iter();
    let mut ys: Vec<Y> = Vec::with_capacity(ts.len());
    for (i, t) in ts.iter().enumerate() {
        // Equal times are saved once.
        let again = ys.last().filter(|_| i > 0 && ts[i - 1] == *t).cloned();
        ys.extend(again.or_else(|| saved.next()));
    }
    Ok(ys)
}
