//! `EnsembleBuilder`: sets the options of an ensemble and solves it.
//!
//! The options are stored in an [`Ode`], so that ensembles and single solves share the code that checks them.

use super::inlined::Inlining;
use super::many::{OnProgress, Results, num_threads, warned};
use super::partition::Partition;
use super::problems::{Problems, Typed};
#[cfg(feature = "rayon")]
use super::ranks;
use super::{EnsembleProgress, EnsembleSolution, Job, LaneFloat};
use crate::ode::inline::InlineMethod;
use crate::ode::{
    Controller, GenericField, Interpolation, LaneClock, Method, Ode, Real, Resolved, SolveError, Tol,
};
use crate::simd::{Level, is_fused};
#[cfg(feature = "rayon")]
use crate::{ode::ConfigError, world::World};
use std::marker::PhantomData;
use std::ops::Range;

/// An [`Ode`] without a vector field.
type Options<T, const N: usize> = Ode<'static, [T; N], ()>;

/// Many trajectories of one `vector_field!`, created by [`ensemble`].
///
/// The options are some of those of [`Ode`]: there are, for example, no saved times, events, callbacks per
/// step, custom tableaux, norms, Jacobians or mass matrices. They apply to each trajectory separately, and a
/// trajectory takes the same steps as it would in an ensemble of one. [`LANES`](crate::ode::LANES)
/// trajectories of f64 or [`SINGLE_LANES`](crate::ode::SINGLE_LANES) of f32 run in lockstep, each with its
/// own t, dt, accepted steps and outcome. When trajectories end, others take their lanes.
///
/// # Numerics
/// A trajectory's result depends, bit for bit, only on its own parameters and y0: not on its neighbors, its
/// lane, the order of the ensemble or the number of threads. An ensemble of one gives the same bits.
/// [`Ode::solve`] on the same machine gives results that differ by rounding: lanes compute step size factors
/// from powers accurate to 13 digits, and their own sin, cos, exp, ln and tanh are within 4 ulp of the true
/// values.
///
/// # Lanes of f32
/// t, dt and error ratios are f64, as for every plain state: neighboring f32 numbers near 1e6 differ by 0.06,
/// so a solve with t in f32 would stall. The clock takes four registers for every two registers of the state,
/// so f32 lanes are much less than twice as fast as f64 lanes. A vector field with expensive functions gains
/// most. The next step size is computed from a power in f32, which is precise enough. The vector field
/// receives t rounded to f32.
///
/// # Inlined loops
/// The loop over steps is compiled with this crate and calls the vector field through a pointer.
/// [`inlined`](EnsembleBuilder::inlined) compiles a loop for one method, with the vector field inlined.
pub struct EnsembleBuilder<'a, P, M, T: LaneFloat, const N: usize, I = ()> {
    params: &'a [P],
    problem: M,
    ode: Options<T, N>,
    on_progress: Option<OnProgress<'a>>,
    #[cfg(feature = "rayon")]
    world: Option<&'a World>,
    loops: PhantomData<fn() -> I>,
}

/// Solves one [`vector_field!`](crate::vector_field) for many parameters: `problem` maps each of `params` to
/// a vector field and y0.
///
/// With closures or heap states, run [`Ode::solve`] per trajectory: threads can share an [`Ode`].
///
/// Trajectories run in SIMD lanes, each with its own step sizes, and in threads with the feature `rayon`.
/// [`single_precision`](EnsembleBuilder::single_precision) selects f32.
///
/// A build without compiler flags uses the widest registers of the machine. With `-C target-cpu=native` the
/// compiler prefers registers of half that width on some processors, even in functions compiled for AVX-512.
/// In this case, add `-C target-feature=-prefer-256-bit`. (10,000 Lorenz trajectories with Tsit5 in f64: 11.4
/// ns per step and trajectory without flags and with both flags, 20.0 ns with `target-cpu` alone.)
///
/// # Examples
/// ```
/// use flowline::vector_field;
/// use flowline::ode::ensemble;
/// vector_field! {
///     struct Decay<R> { rate: R }
///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
///         [-self.rate * y[0]]
///     }
/// }
/// let rates: Vec<f64> = (0..1000).map(|i| f64::from(i) / 100.0).collect();
/// let sweep = ensemble(&rates, |&rate| (Decay { rate }, [1.0])).solve(0.0, 1.0)?;
/// assert!((sweep.y1[200][0] - (-2.0_f64).exp()).abs() < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[doc(alias = "EnsembleProblem")]
pub fn ensemble<P, M, G, const N: usize>(params: &[P], problem: M) -> EnsembleBuilder<'_, P, M, f64, N>
where
    M: Fn(&P) -> (G, [f64; N]),
    G: GenericField<N>,
{
    EnsembleBuilder {
        params,
        problem,
        ode: Ode::from_field(()),
        on_progress: None,
        #[cfg(feature = "rayon")]
        world: None,
        loops: PhantomData,
    }
}

impl<'a, P, M, T: LaneFloat, I: Inlining, const N: usize> EnsembleBuilder<'a, P, M, T, N, I> {
    /// How the trajectories are divided among ranks, and the rank of the caller.
    fn partition(&self) -> (Partition, usize) {
        #[cfg(feature = "rayon")]
        if let Some(world) = self.world {
            return (Partition::new(self.params.len(), world.size()), world.rank());
        }
        (Partition::new(self.params.len(), 1), 0)
    }
    /// The rank that solves a trajectory.
    #[cfg(all(test, feature = "rayon"))]
    pub(crate) fn owner(&self, trajectory: usize, ranks: usize) -> usize {
        Partition::new(self.params.len(), ranks).place(trajectory).0
    }
    /// The values that must be equal on all ranks, with their names.
    #[cfg(feature = "rayon")]
    fn settings(&self, resolved: &Resolved, (t0, t1): (f64, f64)) -> Vec<(&'static str, String)> {
        let of = &self.ode.settings;
        let precision = if size_of::<T>() == 4 { "single" } else { "double" };
        vec![
            ("number of trajectories", self.params.len().to_string()),
            ("number of components", N.to_string()),
            ("precision", precision.to_owned()),
            ("t0", format!("{t0:?}")),
            ("t1", format!("{t1:?}")),
            ("method", format!("{:?}", of.method)),
            ("rtol", format!("{:?}", resolved.rtol)),
            ("atol", format!("{:?}", resolved.atol)),
            ("controller", format!("{:?}", of.controller)),
            ("dt0", format!("{:?}", of.dt0)),
            ("dt_min", format!("{:?}", of.dt_min)),
            ("dt_max", format!("{:?}", of.dt_max)),
            ("max_steps", of.max_steps.to_string()),
            ("tstops", format!("{:?}", of.tstops)),
            ("discontinuities", format!("{:?}", of.discontinuities)),
            ("stop_at_rows", format!("{:?}", of.inputs)),
            ("allow_incomplete", of.allow_incomplete.to_string()),
        ]
    }
    fn with(self, option: impl FnOnce(Options<T, N>) -> Options<T, N>) -> Self {
        EnsembleBuilder { ode: option(self.ode), ..self }
    }
    /// The same ensemble with other options, in another precision or with other loops.
    fn run_by<U: LaneFloat, J>(
        self,
        options: impl FnOnce(Options<T, N>) -> Options<U, N>,
    ) -> EnsembleBuilder<'a, P, M, U, N, J> {
        #[cfg(feature = "rayon")]
        let world = self.world;
        let EnsembleBuilder { params, problem, ode, on_progress, .. } = self;
        EnsembleBuilder {
            params,
            problem,
            ode: options(ode),
            on_progress,
            #[cfg(feature = "rayon")]
            world,
            loops: PhantomData,
        }
    }
    /// The method.
    pub fn method(self, method: Method) -> Self {
        self.with(|ode| ode.method(method))
    }
    /// The step size controller.
    pub fn controller(self, controller: impl Into<Controller>) -> Self {
        self.with(|ode| ode.controller(controller))
    }
    /// The relative tolerance: a scalar, or one value per component.
    pub fn rtol(self, rtol: impl Into<Tol>) -> Self {
        self.with(|ode| ode.rtol(rtol))
    }
    /// The absolute tolerance, in the unit of y: a scalar, or one value per component.
    pub fn atol(self, atol: impl Into<Tol>) -> Self {
        self.with(|ode| ode.atol(atol))
    }
    /// The first step size, and the size of every step for a method without an error estimate: a magnitude,
    /// or with the sign of `t1 - t0`. By default the first step size is chosen per trajectory.
    pub fn dt0(self, dt0: f64) -> Self {
        self.with(|ode| ode.dt0(dt0))
    }
    /// The smallest step size. A trajectory ends if its controller needs a smaller step size.
    pub fn dt_min(self, dt_min: f64) -> Self {
        self.with(|ode| ode.dt_min(dt_min))
    }
    /// The largest step size.
    pub fn dt_max(self, dt_max: f64) -> Self {
        self.with(|ode| ode.dt_max(dt_max))
    }
    /// Times at which steps of every trajectory end exactly. For times at which the vector field jumps, use
    /// [`discontinuities`](Self::discontinuities).
    pub fn tstops(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.tstops(ts))
    }
    /// Times at which the vector field is discontinuous: steps end at these times, and the first stage of the
    /// next step is computed anew.
    pub fn discontinuities(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.discontinuities(ts))
    }
    /// Steps of every trajectory end at the times of an interpolation's rows, see [`Ode::stop_at_rows`].
    pub fn stop_at_rows<const K: usize>(self, u: &Interpolation<K>) -> Self {
        self.with(|ode| ode.stop_at_rows(u))
    }
    /// Returns `Ok` even if trajectories end early; the outcome of each trajectory shows whether it did.
    pub fn allow_incomplete(self) -> Self {
        self.with(Ode::allow_incomplete)
    }
    /// The maximum number of attempted steps per trajectory, at least 1.
    pub fn max_steps(self, max_steps: u64) -> Self {
        self.with(|ode| ode.max_steps(max_steps))
    }
    /// Solves in f32, with the feature `ensemble-f32`: twice the lanes, seven digits, default tolerances rtol 1e-4 and atol 1e-6.
    ///
    /// Parameters and y0 are rounded to f32. t and dt are still f64, see [`EnsembleBuilder`].
    #[cfg(feature = "ensemble-f32")]
    pub fn single_precision(self) -> EnsembleBuilder<'a, P, M, f32, N, I> {
        self.run_by(|ode| ode.with_field(()))
    }
    /// Selects `method` and compiles a loop over steps for it with the vector field inlined.
    ///
    /// The results are the same as without it, bit for bit. Without it, ensembles of Lorenz with Tsit5 took
    /// 1.14 to 1.4 times as long. With it, a program with one ensemble took 7.5 s instead of 0.3 s to compile
    /// (`benches/record/2026-11-22-build.md`); each vector field, method and precision has its own loop.
    ///
    /// # Examples
    /// ```
    /// use flowline::vector_field;
    /// use flowline::ode::ensemble;
    /// use flowline::ode::extra::inline;
    /// vector_field! {
    ///     struct Decay<R> { rate: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
    ///         [-self.rate * y[0]]
    ///     }
    /// }
    /// let sweep = ensemble(&[1.0, 2.0], |&rate| (Decay { rate }, [1.0]));
    /// let (by_pointer, inlined) = (sweep.solve(0.0, 1.0)?, sweep.inlined(inline::Tsit5).solve(0.0, 1.0)?);
    /// assert_eq!(by_pointer.y1, inlined.y1);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn inlined<K: InlineMethod>(self, _method: K) -> EnsembleBuilder<'a, P, M, T, N, K> {
        self.run_by(|ode| ode.method(K::METHOD))
    }
    /// Divides the trajectories among the ranks of a job. All ranks must solve the same ensemble, and every
    /// rank receives all results.
    ///
    /// Before the solve, the ranks compare options, parameters and y0. Static fields of the vector field are not
    /// compared.
    ///
    /// # Examples
    /// ```
    /// use flowline::prelude::*;
    /// use flowline::world::World;
    /// vector_field! {
    ///     struct Decay<R> { rate: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
    ///         [-self.rate * y[0]]
    ///     }
    /// }
    /// let rates: Vec<f64> = (0..100).map(f64::from).collect();
    /// let solve = |world: &World| ensemble(&rates, |&rate| (Decay { rate }, [1.0])).world(world).solve(0.0, 1.0);
    /// let alone = solve(&World::alone())?;
    /// assert!(World::threads(3, solve).into_iter().all(|ranks| ranks.unwrap().y1 == alone.y1));
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[cfg(feature = "rayon")]
    pub fn world(self, world: &'a World) -> Self {
        EnsembleBuilder { world: Some(world), ..self }
    }
    /// Calls `f` after each chunk of at most 4,096 trajectories, on the thread that has finished the chunk. If
    /// several functions are given, they are called in this order.
    pub fn on_progress(mut self, f: impl Fn(EnsembleProgress) + Sync + 'a) -> Self {
        self.on_progress = Some(match self.on_progress.take() {
            None => Box::new(f),
            Some(earlier) => Box::new(move |progress| {
                earlier(progress);
                f(progress);
            }),
        });
        self
    }
    /// Uses a lower instruction level than the machine's best, so that tests can run each level.
    ///
    /// # Panics
    /// In [`solve`](Self::solve), if the machine does not have the level.
    #[doc(hidden)]
    pub fn level(self, level: Level) -> Self {
        self.with(|ode| ode.level(level))
    }

    /// Solves every trajectory from t0 to t1; the sign of `t1 - t0` is the direction.
    ///
    /// # Errors
    /// [`SolveError::Config`] for an option out of range or without effect, for a method that ensembles do
    /// not support (`Rkc2`, `AutoTsit5Rodas5P`), for an interval that is not finite, and, with `world`, if a
    /// rank has ended or solves another ensemble. [`SolveError::Incomplete`]
    /// if a trajectory ended early or its y0 was not finite, unless
    /// [`allow_incomplete`](Self::allow_incomplete) is set: `row` is the first such trajectory, and `partial`
    /// holds all trajectories, each with its own outcome.
    pub fn solve<G>(
        &self,
        t0: f64,
        t1: f64,
    ) -> Result<EnsembleSolution<[T; N]>, SolveError<EnsembleSolution<[T; N]>>>
    where
        P: Sync,
        M: Fn(&P) -> (G, [f64; N]) + Sync,
        G: GenericField<N>,
    {
        self.ode.settings.check_steps(false, false)?;
        self.ode.settings.check_lanes()?;
        let resolved = self.ode.settings.resolve((T::TOLERANCE, T::EPSILON), &[N], Some((t0, t1)))?;
        let inputs = &self.ode.settings.inputs;
        inputs.iter().try_for_each(|rows| rows.differ(T::EPSILON)).map_err(crate::ode::ConfigError::from)?;
        let resolved = if T::EPSILON > f64::EPSILON { resolved.in_single() } else { resolved };
        resolved.scheme::<[T; N]>(None).check_span(t0, t1, false)?;
        let ((partition, rank), params, problem_of) = (self.partition(), self.params, &self.problem);
        let problems = |range: Range<usize>| -> Box<dyn Problems<T>> {
            let problem = |k| {
                let (field, y0) = problem_of(&params[partition.trajectory(rank, k)]);
                (field, y0.map(T::of))
            };
            Box::new(Typed(range.map(problem).collect(), PhantomData::<fn() -> I>))
        };
        #[cfg(feature = "rayon")]
        if let Some(world) = self.world.filter(|world| world.size() > 1) {
            let words = |i: usize, add: &mut dyn FnMut(f64)| {
                let (field, y0) = problem_of(&params[i]);
                field.map_params(&mut *add);
                y0.into_iter().for_each(add);
            };
            let settings = self.settings(&resolved, (t0, t1));
            ranks::check_same(world, params.len(), &settings, words)
                .map_err(crate::ode::ConfigError::from)?;
        }
        let level = self.ode.settings.level;
        let job = Job {
            resolved: &resolved,
            span: (t0, t1),
            level,
            num: partition.len(rank),
            dim: N,
            problems: &problems,
            on_progress: self.on_progress.as_ref(),
        };
        let results = T::run(&job).expect("invariant: a `vector_field!` has no errors");
        #[cfg(feature = "rayon")]
        let results = match self.world {
            Some(world) => {
                ranks::gather(world, &results, (self.params.len(), N)).map_err(ConfigError::from)?
            }
            None => results,
        };
        let y1 = (0..self.params.len()).map(|i| std::array::from_fn(|j| results.y1[i * N + j])).collect();
        let num_lanes = if is_fused(level) { <T::Lanes as Real>::Clock::WIDTH } else { 1 };
        let Results { stats, outcomes, warnings, .. } = results;
        let warnings = warned(&warnings);
        let Resolved { rtol, atol, .. } = resolved;
        let all = EnsembleSolution {
            y1,
            stats,
            outcomes,
            warnings,
            num_lanes,
            num_threads: num_threads(),
            rtol,
            atol,
        };
        all.judged(self.ode.settings.allow_incomplete, self.ode.settings.is_adaptive())
    }
}
