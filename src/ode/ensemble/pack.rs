//! Packs of trajectories, and the trajectories that wait for a lane.

use super::LaneFloat;
use super::components::{Components, LaneState};
use super::drive::Packs;
use super::problems::{DynField, Problems, SetLane};
use crate::ode::start::start_in;
use crate::ode::{
    Carry, Clock, FieldError, FieldFailure, LaneClock, LaneNumber, Real, Scheme, Span, State, status,
};
use crate::simd::{Level, Work, run_narrow};

/// The maximum number of lanes in a pack.
pub(super) const MOST: usize = 32;

/// Trajectories in lockstep, at most one per lane.
pub(super) struct Pack<S: State, F> {
    pub carry: Carry<S>,
    pub field: F,
    /// The trajectory in each lane.
    pub index: [usize; MOST],
    /// The lanes in use: bit i is lane i.
    pub taken: u32,
}

impl<S: State<Clock: LaneClock>, F> Pack<S, F> {
    /// A pack whose lanes hold no trajectory.
    pub fn idle<T>(scheme: &Scheme<S>, t0: &S::Clock, (dim, level): (usize, Level), field: F) -> Self
    where
        S: LaneState<T>,
    {
        let mut carry = Carry::new(t0.clone(), S::zeros(dim), scheme.tableau.num_stages());
        carry.status = t0.like(status::COMPLETED);
        carry.stiff = S::stiff(scheme, dim, level);
        Pack { carry, field, index: [0; MOST], taken: 0 }
    }

    /// The lanes without a trajectory.
    fn free(&self) -> u32 {
        !self.taken & (u32::MAX >> (32 - S::Clock::WIDTH))
    }
}

/// The trajectories that wait for a lane.
pub(super) struct Waiting<'a, T, R: LaneNumber<T>> {
    problems: &'a dyn Problems<T>,
    level: Level,
    scheme: Scheme<'a, Components<R>>,
    span: Span<R::Clock>,
    rest: &'a [usize],
    /// Trajectories whose first step size is chosen. Those in the lanes of `ready.taken` still wait.
    ready: Pack<Components<R>, DynField<'a, R>>,
}

impl<'a, T: LaneFloat, R: LaneNumber<T>> Waiting<'a, T, R> {
    pub fn new(packs: &Packs<'a, T>, span: &Span<R::Clock>, field: DynField<'a, R>) -> Self {
        let scheme = packs.resolved.scheme(None);
        let ready = Pack::idle(&scheme, &span.t0, (packs.dim, packs.level), field);
        let &Packs { problems, level, order, .. } = packs;
        Waiting { problems, level, scheme, span: span.clone(), rest: order, ready }
    }

    pub fn is_empty(&self) -> bool {
        self.ready.taken == 0 && self.rest.is_empty()
    }

    /// Moves waiting trajectories into `pack` until no lane is free or no trajectory waits.
    pub fn fill<S, F>(&mut self, pack: &mut Pack<S, F>) -> Result<(), FieldError>
    where
        S: LaneState<T, Clock = R::Clock>,
        F: SetLane,
    {
        while pack.free() != 0 && !self.is_empty() {
            if self.ready.taken == 0 {
                self.start()?;
            }
            move_lanes(&mut self.ready, pack);
        }
        Ok(())
    }

    /// Chooses the first step sizes of the next trajectories, one per lane. If fewer are left, the other
    /// lanes repeat the first of them.
    fn start(&mut self) -> Result<(), FieldError> {
        let (some, rest) = self.rest.split_at(self.rest.len().min(R::Clock::WIDTH));
        self.rest = rest;
        let Pack { carry, field, index, taken } = &mut self.ready;
        carry.reset(&self.span.t0);
        for lane in 0..R::Clock::WIDTH {
            let trajectory = some[if lane < some.len() { lane } else { 0 }];
            field.set_lane(lane, trajectory);
            for (j, &y) in self.problems.y0(trajectory).iter().enumerate() {
                carry.y.set_lane(j, lane, y);
            }
            index[lane] = trajectory;
        }
        *taken = u32::MAX >> (32 - some.len());
        let first = FirstStep { field, scheme: &self.scheme, span: &self.span, carry };
        let started =
            if const { R::Clock::WIDTH == 1 } { first.run() } else { run_narrow(self.level, first) };
        started.map_err(|failure| failure.source)
    }
}

/// Chooses the first step sizes of a pack. It is not compiled for AVX-512: for most of its time it evaluates
/// the vector field, which is.
struct FirstStep<'r, 'a, R: Real> {
    field: &'r DynField<'a, R>,
    scheme: &'r Scheme<'a, Components<R>>,
    span: &'r Span<R::Clock>,
    carry: &'r mut Carry<Components<R>>,
}

impl<R: Real> Work for FirstStep<'_, '_, R> {
    type Output = Result<(), FieldFailure<R::Clock>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        start_in(self.field, &self.scheme.measured_by(None), self.span, self.carry)
    }
}

/// Moves trajectories from lanes of `ready` to free lanes of `pack`.
fn move_lanes<T, A, S, B, F>(ready: &mut Pack<A, B>, pack: &mut Pack<S, F>)
where
    A: LaneState<T, Clock: LaneClock>,
    S: LaneState<T, Clock = A::Clock>,
    F: SetLane,
{
    let mut free = pack.free();
    while free != 0 && ready.taken != 0 {
        let (to, from) = (free.trailing_zeros() as usize, ready.taken.trailing_zeros() as usize);
        free &= free - 1;
        ready.taken &= ready.taken - 1;
        pack.taken |= 1 << to;
        pack.index[to] = ready.index[from];
        pack.field.set_lane(to, ready.index[from]);
        for j in 0..ready.carry.y.num_components() {
            pack.carry.y.set_lane(j, to, ready.carry.y.lane(j, from));
            pack.carry.k[0].set_lane(j, to, ready.carry.k[0].lane(j, from));
        }
        macro_rules! move_clocks {
            ($($clock:ident)*) => { $( pack.carry.$clock.set_lane(to, ready.carry.$clock.lane(from)); )* };
        }
        move_clocks!(t dt inv_prev inv_prev2 h_prev slack num_steps num_accepted num_rejected);
        move_clocks!(num_stops num_off_grid num_fn_evals non_finite_in_row status h error_ratio component);
        if pack.carry.stiff.is_some() {
            move_clocks!(num_jac_evals num_factorizations);
        }
    }
}
