//! The loop over [`attempt`](crate::ode::attempt) on lanes: many trajectories through one pack.
//!
//! A lane that ends is given the next trajectory, so that no lane idles while others go on. A trajectory's first
//! step is chosen for a whole pack at once and waits there (`ready`): two evaluations of the field shared by all
//! lanes instead of two for each. Nothing that a trajectory does depends on its lane, on its neighbours or on when
//! it was moved. Everything here is inlined into one function compiled for the machine's level.
//!
//! One loop serves every method. The default method has one with its numbers known besides, but for AVX-512 alone:
//! the stages of two registers a component do not fit into registers anyway, so it gains a sixth where on single
//! trajectories it gains a third, and every such loop adds as much to the time that a program takes to compile.

use super::LaneFloat;
use crate::ode::attempt::attempt_with;
use crate::ode::{
    Carry, Clock, Field, FieldError, FieldNumber, GenericField, LaneClock, LaneNumber, Outcome, Resolved,
    Scheme, Span, Stats, start, status,
};
use crate::simd::Work;
use std::marker::PhantomData;

/// The most lanes of a pack.
const MOST: usize = 32;

/// The part of the lanes that is refilled at once: a refill costs about as much as an attempt whether it moves one
/// trajectory or four.
const REFILL: u32 = 4;

/// Where the results of some trajectories go, in their order.
pub(super) struct Out<'a, Y> {
    pub y1: &'a mut [Y],
    pub stats: &'a mut [Stats],
    pub outcomes: &'a mut [Outcome],
}

/// A field with parameters of R as a [`Field`].
struct Typed<G: GenericField<N>, R: Clone, const N: usize>(G::Of<R>);

impl<G: GenericField<N>, R: FieldNumber, const N: usize> Field<[R; N]> for Typed<G, R, N> {
    #[inline(always)]
    fn eval(&self, t: &R::Clock, y: &[R; N], dy: &mut [R; N]) -> Result<(), FieldError> {
        *dy = R::eval::<G, N>(&self.0, R::time(t), y);
        Ok(())
    }
}

/// Trajectories side by side.
struct Pack<G: GenericField<N>, R: FieldNumber, const N: usize> {
    carry: Carry<[R; N]>,
    field: Typed<G, R, N>,
    /// Which trajectory each lane holds.
    index: [usize; MOST],
    /// The lanes that hold one: bit i is lane i.
    taken: u32,
}

/// Some trajectories of an ensemble; all of them agree in what is static.
pub(super) struct Packs<'a, G, R, T, const N: usize> {
    pub resolved: &'a Resolved,
    pub t0: f64,
    pub t1: f64,
    /// Field and y0 of each.
    pub problems: &'a [(G, [T; N])],
    /// Those to run.
    pub order: &'a [usize],
    pub out: Out<'a, [T; N]>,
    pub number: PhantomData<R>,
}

impl<G, R, T, const N: usize> Work for Packs<'_, G, R, T, N>
where
    G: GenericField<N>,
    R: LaneNumber<T>,
    R::Clock: LaneClock,
    T: LaneFloat,
{
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let scheme: Scheme<[R; N]> = self.resolved.scheme(None);
        self.drive::<false>(&scheme)
    }
}

/// [`Packs`] of the default method, with its numbers known to the compiler.
#[cfg(target_arch = "x86_64")]
pub(super) struct Tsit5Packs<'a, G, R, T, const N: usize>(pub Packs<'a, G, R, T, N>);

#[cfg(target_arch = "x86_64")]
impl<G, R, T, const N: usize> Work for Tsit5Packs<'_, G, R, T, N>
where
    G: GenericField<N>,
    R: LaneNumber<T>,
    R::Clock: LaneClock,
    T: LaneFloat,
{
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        const TSIT5: usize = crate::ode::Method::Tsit5 as usize;
        let scheme: Scheme<[R; N]> = self.0.resolved.scheme(None);
        self.0.drive::<true>(&scheme.with_known::<TSIT5>())
    }
}

impl<G, R, T, const N: usize> Packs<'_, G, R, T, N>
where
    G: GenericField<N>,
    R: LaneNumber<T>,
    R::Clock: LaneClock,
    T: LaneFloat,
{
    /// Each turn of the outer loop starts a pack of trajectories that wait; the inner one steps those in lanes and
    /// moves waiting ones to lanes that became free, until none waits.
    #[inline(always)]
    fn drive<const UNROLLED: bool>(mut self, scheme: &Scheme<[R; N]>) -> Result<(), FieldError> {
        let t0 = R::Clock::splat(self.t0);
        let span = Span::new(t0.clone(), t0.like(self.t1));
        let mut waiting = self.order;
        let mut pack: Option<Pack<G, R, N>> = None;
        loop {
            let mut ready = None;
            if !waiting.is_empty() {
                let (some, rest) = waiting.split_at(waiting.len().min(R::Clock::WIDTH));
                let started = self.start(scheme, &span, some)?;
                waiting = rest;
                if pack.is_none() {
                    pack = Some(started);
                    continue;
                }
                ready = Some(started);
            }
            let Some(pack) = &mut pack else { return Ok(()) };
            loop {
                let running = pack.carry.is_running();
                let num_running = R::Clock::count(&running);
                if num_running == 0 || ready.is_some() && num_running + REFILL <= pack.taken.count_ones() {
                    let running = R::Clock::bits(&running);
                    let ended = pack.taken & !running;
                    self.record(scheme, pack, ended);
                    pack.taken = running;
                    if let Some(ready) = &mut ready {
                        self.refill(pack, ready);
                        if ready.taken == 0 && !(waiting.is_empty() && pack.taken != 0) {
                            break;
                        }
                    }
                    if pack.taken == 0 {
                        return Ok(());
                    }
                    if ready.as_ref().is_some_and(|ready| ready.taken == 0) {
                        ready = None;
                    }
                    continue;
                }
                attempt_with::<UNROLLED, false, _, _>(&pack.field, scheme, &span, &mut pack.carry)
                    .map_err(|failure| failure.source)?;
            }
        }
    }

    /// A pack of trajectories before their first step. Lanes to spare hold the first of them, ended.
    #[inline(always)]
    fn start(
        &self,
        scheme: &Scheme<[R; N]>,
        span: &Span<R::Clock>,
        some: &[usize],
    ) -> Result<Pack<G, R, N>, FieldError> {
        let mut field = self.problems[some[0]].0.map_params(R::from);
        let mut y0 = [R::from(0.0); N];
        let mut index = [0; MOST];
        for lane in 0..R::Clock::WIDTH {
            let which = some[if lane < some.len() { lane } else { 0 }];
            let (of, y) = &self.problems[which];
            of.zip_params(&mut field, |to, x| to.set_lane(lane, T::of(x)));
            for j in 0..N {
                y0[j].set_lane(lane, y[j]);
            }
            index[lane] = which;
        }
        let field = Typed(field);
        let mut carry = start(&field, scheme, span, y0).map_err(|failure| failure.source)?;
        for lane in some.len()..R::Clock::WIDTH {
            carry.status.set_lane(lane, status::COMPLETED);
        }
        Ok(Pack { carry, field, index, taken: u32::MAX >> (32 - some.len()) })
    }

    /// Moves waiting trajectories to the lanes that are free.
    #[inline(always)]
    fn refill(&self, pack: &mut Pack<G, R, N>, ready: &mut Pack<G, R, N>) {
        if pack.taken == 0 {
            std::mem::swap(pack, ready);
            return;
        }
        let mut free = !pack.taken & (u32::MAX >> (32 - R::Clock::WIDTH));
        while free != 0 && ready.taken != 0 {
            let (to, from) = (free.trailing_zeros() as usize, ready.taken.trailing_zeros() as usize);
            free &= free - 1;
            ready.taken &= ready.taken - 1;
            pack.taken |= 1 << to;
            let index = ready.index[from];
            pack.index[to] = index;
            self.problems[index].0.zip_params(&mut pack.field.0, |param, x| param.set_lane(to, T::of(x)));
            for j in 0..N {
                pack.carry.y[j].set_lane(to, ready.carry.y[j].lane(from));
                pack.carry.k[0][j].set_lane(to, ready.carry.k[0][j].lane(from));
            }
            macro_rules! move_clocks {
                ($($clock:ident)*) => { $( pack.carry.$clock.set_lane(to, ready.carry.$clock.lane(from)); )* };
            }
            move_clocks!(t dt inv_prev inv_prev2 h_prev after_rejection num_steps num_accepted num_rejected);
            move_clocks!(num_stops num_off_grid num_field_evals non_finite_in_row status h error_ratio component);
        }
    }

    /// Writes down what came of the trajectories in `lanes`.
    #[inline(always)]
    fn record(&mut self, scheme: &Scheme<[R; N]>, pack: &Pack<G, R, N>, mut lanes: u32) {
        let carry = &pack.carry;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let index = pack.index[lane];
            let clock = |clock: &R::Clock| clock.lane(lane);
            self.out.y1[index] = std::array::from_fn(|j| carry.y[j].lane(lane));
            self.out.stats[index] = Stats {
                num_steps: clock(&carry.num_steps) as u64,
                num_accepted: clock(&carry.num_accepted) as u64,
                num_rejected: clock(&carry.num_rejected) as u64,
                num_field_evals: clock(&carry.num_field_evals) as u64,
                num_recomputed: 0,
            };
            let code = clock(&carry.status);
            let dt = if code == status::NON_FINITE { &carry.h } else { &carry.dt };
            let (t, dt, step) = (clock(&carry.t), clock(dt), clock(&carry.num_steps));
            self.out.outcomes[index] =
                Outcome::decode(code, t, dt, step, clock(&carry.component), scheme.limits.dt_min)
                    .expect("invariant: only a trajectory that has ended is written down");
        }
    }
}
