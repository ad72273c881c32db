//! The loop over [`attempt`](crate::ode::attempt) on lanes: it runs many trajectories in one pack.
//!
//! When at least four trajectories have ended, their lanes get the next ones, so few lanes idle while
//! trajectories wait. First step sizes are chosen for a whole pack of waiting trajectories at once: all lanes
//! share two evaluations of the vector field, instead of two per trajectory. A trajectory's result does not
//! depend on its lane, its neighbors or the moment at which it enters its lane.
//!
//! The loop for all vector fields is compiled with this crate, over [`Components`] and a vector field behind
//! a pointer. [`inlined`](super::inlined) compiles the loop again for one vector field and one method, over
//! arrays. The choice of first step sizes and the attempts are compiled for each level of the CPU. The rest
//! (moving trajectories between lanes, recording results) is compiled for the target of the crate.

use super::LaneFloat;
use super::components::{Components, LaneState};
use super::looks::Looks;
use super::pack::{Pack, Waiting};
use super::problems::{DynField, Problems, SetLane};
use super::shared::AnyMethod;
use crate::ode::attempt::attempt_with;
use crate::ode::attempts::UNROLL;
use crate::ode::{
    Carry, Clock, FieldError, LaneClock, LaneNumber, Method, Outcome, Resolved, Scheme, Span, State, Stats,
    VectorField, Warning, status,
};
use crate::simd::{Bound, Level, is_fused};

/// Lanes are refilled when this many are free: a refill costs about as much as an attempt, whether it moves
/// one trajectory or four.
const REFILL: u32 = 4;

/// Where the results of some trajectories are written, in the order of the trajectories. `y1` holds all
/// components of the first trajectory, then those of the second, and so on.
pub struct Out<'a, Y> {
    pub y1: &'a mut [Y],
    pub stats: &'a mut [Stats],
    pub outcomes: &'a mut [Outcome],
    pub warnings: &'a mut [Option<Warning>],
}

/// Trajectories that run in one pack: their vector fields have equal static fields. A lane runs one
/// trajectory after the other.
pub struct Packs<'a, T> {
    pub(super) resolved: &'a Resolved,
    pub(super) span: (f64, f64),
    pub(super) level: Level,
    /// Components per trajectory.
    pub(super) dim: usize,
    pub(super) problems: &'a dyn Problems<T>,
    /// The trajectories to run.
    pub(super) order: &'a [usize],
    pub(super) out: Out<'a, T>,
}

/// Binds a vector field to a function that makes one attempt of a pack. The function returns the number of
/// trajectories that still run.
pub(super) type Attempt<'r, 'a, S, F> =
    &'r dyn for<'f> Fn(&'f F) -> Bound<'f, Scheme<'a, S>, SpanOf<S>, Carry<S>, NumRunning>;

/// The interval of a solve, as values of the clock of its state.
pub(super) type SpanOf<S> = Span<<S as State>::Clock>;

/// The number of trajectories that still run.
pub(super) type NumRunning = Result<u32, FieldError>;

impl<'a, T: LaneFloat> Packs<'a, T> {
    /// Runs the trajectories in lanes if the level has fused multiply-add, else one at a time.
    pub(super) fn run(mut self) -> Result<(), FieldError> {
        let (problems, level, first) = (self.problems, self.level, self.order[0]);
        if !is_fused(level) {
            let field = || problems.one(first);
            return self.drive::<T::One, _, _>(field(), field(), &|f| Bound::plain::<AnyMethod<'_, _, _>>(f));
        }
        if let Some(done) = problems.inlined(&mut self) {
            return done;
        }
        if UNROLL && self.resolved.native().method == Some(Method::Tsit5) {
            return T::run_tsit5(&mut self);
        }
        self.drive_shared(&|f| Bound::at::<AnyMethod<'_, _, _>>(f, level))
    }

    /// Runs the trajectories in lanes, with the vector field behind a pointer.
    pub(super) fn drive_shared(
        &mut self,
        attempt: Attempt<'_, 'a, Components<T::Lanes>, DynField<'a, T::Lanes>>,
    ) -> Result<(), FieldError> {
        let (problems, level, first) = (self.problems, self.level, self.order[0]);
        let field = || problems.lanes(level, first);
        self.drive::<T::Lanes, _, _>(field(), field(), attempt)
    }

    /// Runs all trajectories. Each round fills the free lanes, makes attempts until [`REFILL`] lanes are free
    /// (all lanes, if no trajectory waits) or a stiffness check is due, and records the trajectories that
    /// have ended. `starting` is the vector field with which first step sizes are chosen.
    pub(super) fn drive<R, S, F>(
        &mut self,
        starting: DynField<'a, R>,
        field: F,
        attempt: Attempt<'_, 'a, S, F>,
    ) -> Result<(), FieldError>
    where
        R: LaneNumber<T>,
        S: LaneState<T, Clock = R::Clock>,
        F: VectorField<S> + SetLane,
    {
        let t0 = R::Clock::splat(self.span.0);
        let span = Span::new(t0.clone(), t0.like(self.span.1));
        let scheme: Scheme<'a, S> = self.resolved.scheme(None);
        let mut waiting = Waiting::new(self, &span, starting);
        let mut pack = Pack::idle(&scheme, &t0, (self.dim, self.level), field);
        let mut looks = Looks::of(&scheme, self.resolved.native().method);
        loop {
            waiting.fill(&mut pack)?;
            if pack.taken == 0 {
                return Ok(());
            }
            let spare = if waiting.is_empty() { u32::MAX } else { REFILL };
            let enough = pack.taken.count_ones().saturating_sub(spare);
            let mut left = looks.budget(&pack);
            let mut num_running = R::Clock::bits(&pack.carry.is_running()).count_ones();
            let attempt = attempt(&pack.field);
            while left > 0 && num_running > enough {
                num_running = attempt.call(&scheme, &span, &mut pack.carry)?;
                left -= 1;
            }
            looks.look(&scheme, &pack, self.out.warnings);
            let running = R::Clock::bits(&pack.carry.is_running());
            self.record(&scheme, &pack, pack.taken & !running);
            pack.taken &= running;
        }
    }

    /// Records the results of the trajectories in `lanes`.
    fn record<S: LaneState<T, Clock: LaneClock>, F>(
        &mut self,
        scheme: &Scheme<S>,
        pack: &Pack<S, F>,
        mut lanes: u32,
    ) {
        let carry = &pack.carry;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let index = pack.index[lane];
            let clock = |clock: &S::Clock| clock.lane(lane);
            for (j, y) in self.out.y1[index * self.dim..][..self.dim].iter_mut().enumerate() {
                *y = carry.y.lane(j, lane);
            }
            self.out.stats[index] = Stats {
                num_steps: clock(&carry.num_steps) as u64,
                num_accepted: clock(&carry.num_accepted) as u64,
                num_rejected: clock(&carry.num_rejected) as u64,
                num_fn_evals: clock(&carry.num_fn_evals) as u64,
                ..Stats::default()
            };
            if carry.stiff.is_some() {
                let stats = &mut self.out.stats[index];
                stats.num_jac_evals = clock(&carry.num_jac_evals) as u64;
                stats.num_factorizations = clock(&carry.num_factorizations) as u64;
            }
            let code = clock(&carry.status);
            let dt = if code == status::NON_FINITE { &carry.h } else { &carry.dt };
            let (t, dt, step) = (clock(&carry.t), clock(dt), clock(&carry.num_steps));
            self.out.outcomes[index] =
                Outcome::decode(code, t, dt, step, clock(&carry.component), scheme.limits.dt_min)
                    .expect("invariant: only a trajectory that has ended is recorded");
        }
    }
}

/// Makes one attempt, and returns the number of trajectories that still run. It is compiled for each level. A loop
/// over attempts would take twice as long to compile, because the optimizer would load the coefficients before the
/// loop and spill them.
#[inline(always)]
pub(super) fn attempt_in_lanes<const UNROLLED: bool, S: State<Clock: LaneClock>, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &SpanOf<S>,
    carry: &mut Carry<S>,
) -> NumRunning {
    // Ensembles have no custom norm: the constant `None` removes its code.
    let scheme = scheme.measured_by(None);
    attempt_with::<UNROLLED, false, S, F>(f, &scheme, span, carry).map_err(|failure| failure.source)?;
    Ok(S::Clock::count(&carry.is_running()))
}
