//! The driver for host values: one accepted step at a time.
//!
//! [`Stepper`] owns what a solve changes and loops over [`attempt`](super::attempt) until a step is accepted;
//! [`Steps`] lends that to the user. The whole solve in `host` is the same loop with a recorder behind it. It knows
//! the carry and the step just taken; what is kept of a step is the recorder's business.
//!
//! Only the attempts ([`Driven`]) are compiled for each field, with the field inlined. All else asks the field through a
//! pointer, a call or two a solve, and is compiled once a kind of state.

use super::attempt::{attempt_with, eval};
use super::dense::Segment;
use super::{
    Carry, Field, FieldFailure, HostState, Interpolant, Method, Native, Norm, OdeError, Outcome, Resolved,
    Scheme, Span, Stats, start, status,
};
use crate::simd::{Work, is_fused, run_narrow};
use std::sync::Arc;

/// Whether optimised loops are built for each method: not in builds for debugging, where compiling counts more
/// and the plain loop gives the same bits.
pub(super) const UNROLL: bool = !cfg!(debug_assertions);

/// Which stages of the step last accepted are at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ready {
    Nothing,
    /// Those of the method.
    OwnStages,
    /// Those of its dense output too.
    Curve,
}

/// A solve between two steps.
pub(super) struct Stepper<Y: HostState> {
    pub carry: Carry<Y>,
    pub span: Span<f64>,
    /// The start of the step last accepted; of meaning where it was to be remembered.
    t: f64,
    y: Y,
    k0: Y,
    /// The step's size, which its stages belong to also where an event cuts it short.
    h: f64,
    /// Stops off the grid before it.
    num_off_grid: f64,
    pub interpolant: Arc<Interpolant>,
    /// Stages of the step last accepted, those for dense output included, once they were asked for.
    stages: Vec<Y>,
    ready: Ready,
    weights: Vec<f64>,
}

impl<Y: HostState> Stepper<Y> {
    pub fn new(f: &dyn Field<Y>, scheme: &Scheme<Y>, (t0, t1): (f64, f64), y0: Y) -> Result<Self, OdeError> {
        let span = Span::new(t0, t1);
        let (y, k0) = (y0.clone(), y0.clone());
        let carry = start(&f, scheme, &span, y0).map_err(|failure| field_error(failure, 0.0))?;
        let interpolant = Arc::new(Interpolant::of(&scheme.tableau));
        let weights = vec![0.0; interpolant.num_stages()];
        Ok(Stepper {
            carry,
            span,
            t: t0,
            y,
            k0,
            h: 0.0,
            num_off_grid: 0.0,
            interpolant,
            stages: vec![],
            ready: Ready::Nothing,
            weights,
        })
    }

    /// Attempts steps until `most` are accepted or the solve has ended; gives how many were, and adds their ends to
    /// `knots`. `remember`: whether the curve of the last may be asked for; then `most` is 1.
    pub fn advance(
        &mut self,
        f: &dyn Driven<Y>,
        scheme: &Scheme<Y>,
        native: Native,
        (remember, most): (bool, u64),
        knots: &mut Vec<f64>,
    ) -> Result<u64, OdeError> {
        let carry = &mut self.carry;
        if remember {
            self.t = carry.t;
            self.y.copy_of(&carry.y);
            self.k0.copy_of(&carry.k[0]);
        }
        self.ready = Ready::Nothing;
        self.num_off_grid = carry.num_off_grid;
        let run = Run { scheme, span: &self.span, carry, most, knots };
        let accepted = f.attempts(native, run).map_err(|failure| field_error(failure, carry.num_steps))?;
        self.h = carry.h;
        Ok(accepted)
    }

    /// Where the step last accepted starts.
    pub fn t(&self) -> f64 {
        self.t
    }

    /// Copies the method's own stages of the step last accepted, which must have been remembered.
    pub fn keep_stages(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        if self.ready != Ready::Nothing {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        if self.stages.is_empty() {
            self.stages = vec![self.y.clone(); self.interpolant.num_stages()];
        }
        self.stages[0].copy_of(&self.k0);
        for (stage, k) in self.stages[1..s].iter_mut().zip(&self.carry.k[1..s]) {
            stage.copy_of(k);
        }
        if scheme.tableau.is_fsal() {
            if self.knows_f1(scheme) {
                self.stages[s - 1].copy_of(&self.carry.k[0]);
            } else {
                self.carry.num_field_evals += 1.0;
                let t = scheme.before(&self.span, &self.carry.t);
                eval(&f, &t, &self.carry.y, &mut self.stages[s - 1])
                    .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            }
        }
        self.ready = Ready::OwnStages;
        Ok(())
    }

    /// Where the step ended, f is known unless a jump has replaced it.
    fn knows_f1(&self, scheme: &Scheme<Y>) -> bool {
        scheme.carries_first() && scheme.jumps_at(&self.carry.t) == 0.0
    }

    /// The step last accepted, with every stage that its curve needs; it must have been remembered.
    pub fn complete(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        self.keep_stages(f, scheme)?;
        if self.ready == Ready::Curve {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        let renewed = self.knows_f1(scheme) && self.carry.status != status::COMPLETED;
        for (i, (c, row)) in self.interpolant.clone().extra().enumerate() {
            let at = s + i;
            if i == 0 && self.interpolant.starts_with_f1() && renewed {
                self.stages[at].copy_of(&self.carry.k[0]);
                continue;
            }
            let (before, after) = self.stages.split_at_mut(at);
            self.carry.y1.lincomb(&self.y, &self.h, row, before);
            let t = if c == 1.0 { scheme.before(&self.span, &self.carry.t) } else { self.t + c * self.h };
            eval(&f, &t, &self.carry.y1, &mut after[0])
                .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            self.carry.num_field_evals += 1.0;
        }
        self.ready = Ready::Curve;
        Ok(())
    }

    /// The step last accepted; complete.
    pub fn segment(&self) -> Segment<'_, Y> {
        Segment { t: self.t, h: self.h, y: &self.y, k: &self.stages }
    }

    /// `|h sum_i a_i k_i|` and `|h sum_i b_i k_i|` over the method's stages of the step last accepted, which were kept, in
    /// units of the tolerance.
    pub fn sizes(&mut self, scheme: &Scheme<Y>, a: &[f64], b: &[f64]) -> (f64, f64) {
        let (k, y, scratch) = (&self.stages[..a.len()], &self.y, &mut self.carry.y1);
        let mut size = |weights| scratch.error_ratio(&self.h, weights, k, y, y, &scheme.tolerance);
        (size(a), size(b))
    }

    /// The state at `t` within the step last accepted, which is complete.
    pub fn eval_into(&mut self, t: f64, out: &mut Y) {
        let segment = Segment { t: self.t, h: self.h, y: &self.y, k: &self.stages };
        segment.eval(&self.interpolant, t, &mut self.weights, out);
    }

    /// Ends the step last accepted at `t`, where the state is `y`, or goes on from a changed state: counters that
    /// follow t are set back, and the next step's first stage is computed anew.
    pub fn restart(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>, t: f64, y: Y) -> Result<(), OdeError> {
        let carry = &mut self.carry;
        if t != carry.t {
            // The end that was reached is reached no more.
            if carry.status == status::COMPLETED {
                carry.status = status::RUNNING;
            }
            carry.num_off_grid = self.num_off_grid + 1.0;
            let sign = self.span.direction;
            let stops = scheme.limits.stops;
            carry.num_stops = stops.partition_point(|s| s * sign <= t * sign) as f64;
        }
        carry.t = t;
        carry.y = y;
        if scheme.carries_first() && carry.status == status::RUNNING {
            let t = scheme.after(&self.span, &carry.t);
            carry.num_field_evals += 1.0;
            let Carry { k, y, num_steps, .. } = carry;
            eval(&f, &t, y, &mut k[0]).map_err(|failure| field_error(failure, *num_steps))?;
        }
        Ok(())
    }

    /// Why the solve ended; `None` while it runs.
    pub fn outcome(&self, scheme: &Scheme<Y>) -> Option<Outcome> {
        Outcome::of(&self.carry, scheme.limits.dt_min)
    }
}

/// A field with its loop of attempts.
pub(super) trait Driven<Y: HostState>: Field<Y> {
    /// Attempts until as many steps are accepted as `run` says.
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>>;
}

impl<Y: HostState, F: Field<Y>> Driven<Y> for F {
    /// In builds for debugging the loop too asks the field through a pointer, so that there is one loop a kind of state
    /// and not one a field: the same bits, and tests are compiled in half the time.
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>> {
        #[cfg(not(debug_assertions))]
        let f = self;
        #[cfg(debug_assertions)]
        let f = &(self as &dyn Field<Y>);
        attempts(native, Attempts { f, run })
    }
}

/// Attempts until `most` steps are accepted: compiled for the machine's instructions, and for the method's numbers
/// where the state is small. Never for AVX-512: few components gain nothing from wider registers, and all of them lose
/// from code that is compiled twice (Vern9 on Lorenz: 205 ns a step against 182, 400 components on the heap alike).
fn attempts<Y: HostState, F: Field<Y>>(
    Native { method, level }: Native,
    all: Attempts<'_, Y, F>,
) -> Result<u64, FieldFailure<f64>> {
    if !is_fused(level) {
        return all.run_plainly();
    }
    macro_rules! by {
        ($($small:ident)* ; $($large:ident)*) => {
            match method {
                $( Some(Method::$small) if Y::UNROLLED && UNROLL => {
                    run_narrow(level, Known::<{ Method::$small as usize }, true, Y, F>(all))
                } )*
                $( Some(Method::$large) if Y::UNROLLED && UNROLL => {
                    all.each_by(|one| run_narrow(level, Known::<{ Method::$large as usize }, false, Y, F>(one)))
                } )*
                _ => run_narrow(level, all),
            }
        };
    }
    by!(Rk4 Bosh3 Dopri5 Tsit5; Vern7 Dop853 Vern9)
}

/// Attempts of one solve, until `most` steps are accepted; their ends are added to `knots`.
pub(super) struct Run<'a, Y: HostState> {
    scheme: &'a Scheme<'a, Y>,
    span: &'a Span<f64>,
    carry: &'a mut Carry<Y>,
    most: u64,
    knots: &'a mut Vec<f64>,
}

/// [`Run`] by a field.
struct Attempts<'a, Y: HostState, F> {
    f: &'a F,
    run: Run<'a, Y>,
}

impl<Y: HostState, F: Field<Y>> Attempts<'_, Y, F> {
    /// Not by [`each_by`](Self::each_by): a closure of these instructions is not inlined, and calls the C library.
    #[inline(always)]
    fn run_by<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, knots } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            let run = Run { scheme, span, carry, most, knots };
            accepted += Attempts { f, run }.once::<UNROLLED, FUSED>()?;
        }
        Ok(accepted)
    }

    /// Without instructions that every processor of the last ten years has: behind a pointer, so that what hardly anyone
    /// runs is not compiled for each field.
    #[cfg(target_arch = "x86_64")]
    fn run_plainly(self) -> Result<u64, FieldFailure<f64>> {
        let f: &dyn Field<Y> = self.f;
        Attempts { f: &f, run: self.run }.run_by::<false, false>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    fn run_plainly(self) -> Result<u64, FieldFailure<f64>> {
        self.run_by::<false, false>()
    }

    /// One attempt.
    #[inline(always)]
    fn once<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Run { scheme, span, carry, knots, .. } = self.run;
        attempt_with::<UNROLLED, FUSED, Y, F>(self.f, scheme, span, carry)?;
        if carry.accepted {
            knots.push(carry.t);
        }
        Ok(u64::from(carry.accepted))
    }

    /// One attempt after the other by `once`.
    ///
    /// For methods of many numbers: in a loop compiled with them, the optimiser would hoist a hundred coefficients out
    /// into spilled registers (Dop853 on Lorenz: 317 ns a step against 190, Vern9 458 against 183).
    #[inline(always)]
    fn each_by(
        self,
        once: impl Fn(Attempts<'_, Y, F>) -> Result<u64, FieldFailure<f64>>,
    ) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, knots } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            accepted += once(Attempts { f, run: Run { scheme, span, carry, most, knots } })?;
        }
        Ok(accepted)
    }
}

impl<Y: HostState, F: Field<Y>> Work for Attempts<'_, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.run_by::<false, true>()
    }
}

/// [`Attempts`] by a method whose numbers are known where this is compiled, stages written out: all of them, or one
/// attempt where not `LOOP`.
struct Known<'a, const METHOD: usize, const LOOP: bool, Y: HostState, F>(Attempts<'a, Y, F>);

impl<const METHOD: usize, const LOOP: bool, Y: HostState, F: Field<Y>> Work
    for Known<'_, METHOD, LOOP, Y, F>
{
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Attempts { f, run } = self.0;
        let scheme = run.scheme.with_known::<METHOD>();
        let all = Attempts { f, run: Run { scheme: &scheme, ..run } };
        if LOOP { all.run_by::<true, true>() } else { all.once::<true, true>() }
    }
}

pub(super) fn field_error(failure: FieldFailure<f64>, num_steps: f64) -> OdeError {
    OdeError::Field { t: failure.t, step: num_steps as u64, source: failure.source }
}

/// A solve by hand, one accepted step at a time: [`Ode::steps`](super::Ode::steps).
///
/// Everything the whole solve does to step sizes is done here too; events, saved times and callbacks are the
/// caller's own.
pub struct Steps<'a, Y: HostState, F> {
    field: &'a F,
    norm: Option<&'a Norm<'a, Y>>,
    resolved: Resolved,
    stepper: Stepper<Y>,
    /// The caller may have changed y.
    touched: bool,
    /// Scratch.
    knots: Vec<f64>,
}

/// One accepted step, lent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Step<'s, Y> {
    /// Where it ends.
    pub t: f64,
    /// Its size, signed.
    pub dt: f64,
    /// The state at its end.
    pub y: &'s Y,
    /// Its scaled error; 0 where nobody estimates it.
    pub error_ratio: f64,
}

impl<'a, Y: HostState, F: Field<Y>> Steps<'a, Y, F> {
    pub(super) fn new(
        field: &'a F,
        norm: Option<&'a Norm<'a, Y>>,
        resolved: Resolved,
        span: (f64, f64),
        y0: Y,
    ) -> Result<Self, OdeError> {
        let stepper = Stepper::new(field, &resolved.scheme(norm), span, y0)?;
        Ok(Steps { field, norm, resolved, stepper, touched: false, knots: Vec::new() })
    }

    /// Takes steps until one is accepted; `None` once the solve has ended, for whatever reason: see
    /// [`Steps::outcome`].
    ///
    /// # Errors
    /// A field that failed.
    #[allow(clippy::should_implement_trait, reason = "it lends: an iterator would clone a state a step")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Y>>, OdeError> {
        let scheme = self.resolved.scheme(self.norm);
        if std::mem::take(&mut self.touched) {
            let (t, y) = (self.stepper.carry.t, self.stepper.carry.y.clone());
            self.stepper.restart(self.field, &scheme, t, y)?;
        }
        self.knots.clear();
        let native = self.resolved.native();
        if self.stepper.advance(self.field, &scheme, native, (true, 1), &mut self.knots)? == 0 {
            return Ok(None);
        }
        let Carry { t, h, y, error_ratio, .. } = &self.stepper.carry;
        Ok(Some(Step { t: *t, dt: *h, y, error_ratio: *error_ratio }))
    }

    /// The time reached.
    pub fn t(&self) -> f64 {
        self.stepper.carry.t
    }
    /// The state there.
    pub fn y(&self) -> &Y {
        &self.stepper.carry.y
    }
    /// The state there, to be changed; the next step's first stage is then computed anew.
    pub fn y_mut(&mut self) -> &mut Y {
        self.touched = true;
        &mut self.stepper.carry.y
    }
    /// The size that the next attempt has, signed, not yet cut at t1.
    pub fn dt(&self) -> f64 {
        self.stepper.carry.dt
    }
    /// The state at a time within the step last taken.
    ///
    /// # Errors
    /// A time outside that step, or no step yet; a field that failed, of a method whose dense output evaluates it.
    pub fn interpolate(&mut self, t: f64) -> Result<Y, OdeError> {
        let (t0, t1) = (self.stepper.t(), self.stepper.carry.t);
        if !(t0.min(t1) <= t && t <= t0.max(t1)) || t0 == t1 {
            return Err(OdeError::OutsideInterval { t, t0, t1 });
        }
        let scheme = self.resolved.scheme(self.norm);
        self.stepper.complete(self.field, &scheme)?;
        let mut out = self.stepper.carry.y.clone();
        self.stepper.eval_into(t, &mut out);
        Ok(out)
    }
    /// What it took so far.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.stepper.carry)
    }
    /// Why the solve ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        let scheme = self.resolved.scheme(self.norm);
        self.stepper.outcome(&scheme)
    }

    /// Whether t1 was reached.
    ///
    /// # Errors
    /// [`OdeError::Stopped`] where the solve ended early. One that still goes on is no error, and has not completed.
    pub fn completed(&self) -> Result<bool, OdeError> {
        match self.outcome() {
            None => Ok(false),
            Some(Outcome::Completed) => Ok(true),
            Some(outcome) => {
                let Resolved { rtol, atol, .. } = self.resolved.clone();
                Err(OdeError::Stopped { outcome, rtol, atol })
            }
        }
    }
}
