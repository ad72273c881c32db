//! `EnsembleBuilder`: the options of an ensemble, and how it is cut into the work of threads.
//!
//! It holds an [`Ode`] for its options, so that they are read and refused in one place.

use super::inlined::Loops;
use super::many::{OnProgress, Results, num_threads, warned};
use super::problems::{Problems, Typed};
use super::{EnsembleProgress, EnsembleSolution, Job, LaneFloat};
use crate::ode::inline::InlineMethod;
use crate::ode::{Controller, GenericField, LaneClock, Method, Ode, Real, Resolved, SolveError, Tol};
use crate::simd::{Level, is_fused};
use std::marker::PhantomData;
use std::ops::Range;

/// An [`Ode`] without a field.
type Options<T, const N: usize> = Ode<'static, [T; N], ()>;

/// Many trajectories of one `vector_field!`: what [`ensemble`] gives.
///
/// The options are those of [`Ode`]; each trajectory is held to them as if it were solved alone, and takes the steps
/// that it takes alone: [`LANES`](crate::ode::LANES) of f64 or [`SINGLE_LANES`](crate::ode::SINGLE_LANES) of f32
/// go in lockstep, each with its own t, dt, decisions and outcome, and a lane that ends is given the next trajectory.
///
/// # Numerics
/// A trajectory's bits depend on its own field and y0 alone, not on its neighbors, its lane, the order or the number
/// of threads; they are those of an ensemble of one. Against [`Ode::solve`] on the same machine they differ by rounding:
/// lanes take step size factors from a power of 13 digits, and functions in the field (sin, exp, ...) are within 4 ulp of
/// the standard library's.
///
/// # Lanes of f32
/// Their t, dt and error ratios are f64, as for every plain state: in f32, time near 1e6 moves in steps of
/// 0.06 and a solve stalls. That costs four registers of clock beside two of state, so lanes of f32 are far from
/// twice the rate of f64; a field with dear functions gains most. The size of the next step comes from a power in
/// f32, which is all that it needs, and the field sees t rounded to f32.
///
/// # Inlined loops
/// The loop over steps is compiled with this crate and calls the field through a pointer.
/// [`inlined`](EnsembleBuilder::inlined) compiles the loop of a method with the field inlined.
pub struct EnsembleBuilder<'a, P, M, T: LaneFloat, const N: usize, I = ()> {
    params: &'a [P],
    problem: M,
    ode: Options<T, N>,
    on_progress: Option<OnProgress<'a>>,
    loops: PhantomData<fn() -> I>,
}

/// Many trajectories of one [`vector_field!`](crate::vector_field): `problem` gives the field and y0 of each of `params`.
///
/// A program with closures or heap states runs [`Ode::solve`] for each of them: an [`Ode`] can be shared by threads.
///
/// Trajectories step in SIMD lanes, each with its own step sizes, and threads share them where the feature
/// `rayon` is on. [`single_precision`](EnsembleBuilder::single_precision) asks for f32.
///
/// A plain build has the widest registers of the machine. `-C target-cpu=native` names processors for which the
/// compiler prefers half of them, inside functions compiled for AVX-512 too: give `-C
/// target-feature=-prefer-256-bit` beside it (10,000 Lorenz trajectories by Tsit5 in f64: 11.4 ns a step and
/// trajectory in a plain build and with both, 20.0 ns with the name alone).
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
pub fn ensemble<P, M, G, const N: usize>(params: &[P], problem: M) -> EnsembleBuilder<'_, P, M, f64, N>
where
    M: Fn(&P) -> (G, [f64; N]),
    G: GenericField<N>,
{
    EnsembleBuilder { params, problem, ode: Ode::from_field(()), on_progress: None, loops: PhantomData }
}

impl<'a, P, M, T: LaneFloat, I: Loops, const N: usize> EnsembleBuilder<'a, P, M, T, N, I> {
    fn with(self, option: impl FnOnce(Options<T, N>) -> Options<T, N>) -> Self {
        EnsembleBuilder { ode: option(self.ode), ..self }
    }
    /// The same ensemble by other options, in another precision or by other loops.
    fn run_by<U: LaneFloat, J>(
        self,
        options: impl FnOnce(Options<T, N>) -> Options<U, N>,
    ) -> EnsembleBuilder<'a, P, M, U, N, J> {
        let EnsembleBuilder { params, problem, ode, on_progress, .. } = self;
        EnsembleBuilder { params, problem, ode: options(ode), on_progress, loops: PhantomData }
    }
    /// The method.
    pub fn method(self, method: Method) -> Self {
        self.with(|ode| ode.method(method))
    }
    /// How long the next step is.
    pub fn controller(self, controller: impl Into<Controller>) -> Self {
        self.with(|ode| ode.controller(controller))
    }
    /// The relative tolerance: a number, or one a component.
    pub fn rtol(self, rtol: impl Into<Tol>) -> Self {
        self.with(|ode| ode.rtol(rtol))
    }
    /// The absolute tolerance, in the unit of y: a number, or one a component.
    pub fn atol(self, atol: impl Into<Tol>) -> Self {
        self.with(|ode| ode.atol(atol))
    }
    /// The first step size, and every step's of a method without an error estimate; chosen for each trajectory where not
    /// given.
    pub fn dt0(self, dt0: f64) -> Self {
        self.with(|ode| ode.dt0(dt0))
    }
    /// No step is shorter: one that the controller wants shorter ends its trajectory.
    pub fn dt_min(self, dt_min: f64) -> Self {
        self.with(|ode| ode.dt_min(dt_min))
    }
    /// No step is longer.
    pub fn dt_max(self, dt_max: f64) -> Self {
        self.with(|ode| ode.dt_max(dt_max))
    }
    /// Times that steps end on.
    pub fn tstops(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.tstops(ts))
    }
    /// Times where the field is discontinuous: steps end on them and start anew.
    pub fn discontinuities(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.discontinuities(ts))
    }
    /// Makes an ensemble with trajectories that end early `Ok`: the outcome of each says whether it did.
    pub fn allow_incomplete(self) -> Self {
        self.with(Ode::allow_incomplete)
    }
    /// The most steps that a trajectory attempts, at least 1.
    pub fn max_steps(self, max_steps: u64) -> Self {
        self.with(|ode| ode.max_steps(max_steps))
    }
    /// Steps in f32: twice the lanes, seven digits, rtol 1e-4 and atol 1e-6 where none is given.
    ///
    /// Parameters and y0 are rounded; t and dt stay f64, see [`EnsembleBuilder`].
    pub fn single_precision(self) -> EnsembleBuilder<'a, P, M, f32, N, I> {
        self.run_by(|ode| ode.with_field(()))
    }
    /// Takes `method`, by a loop that is compiled for it with the field inlined.
    ///
    /// The results are the same, bit for bit. Lorenz by Tsit5 is a quarter faster; the program takes about ten seconds
    /// longer to compile for each field, method and precision.
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
    /// Calls `f` from time to time, from the thread that has just ended some trajectories.
    pub fn on_progress(self, f: impl Fn(EnsembleProgress) + Sync + 'a) -> Self {
        EnsembleBuilder { on_progress: Some(Box::new(f)), ..self }
    }
    /// Runs at a level below the machine's best; tests force each.
    ///
    /// # Panics
    /// In [`solve`](Self::solve), where the machine does not have the level.
    #[doc(hidden)]
    pub fn level(self, level: Level) -> Self {
        self.with(|ode| ode.level(level))
    }

    /// Every trajectory from t0 to t1; the sign of `t1 - t0` is the direction.
    ///
    /// # Errors
    /// [`SolveError::Config`] for an option out of range or without effect, or an interval that is not finite;
    /// [`SolveError::Incomplete`] where a trajectory ended early, or started with a y0 that is not finite, unless
    /// [`allow_incomplete`](Self::allow_incomplete) was asked for: `row` is the first that did, and all trajectories are in
    /// its `partial`, each with its own outcome.
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
        let resolved = self.ode.settings.resolve(T::TOLERANCE, &[N], Some((t0, t1)))?;
        resolved.scheme::<[T; N]>(None).check_span(t0, t1, false)?;
        let problems = |range: Range<usize>| -> Box<dyn Problems<T>> {
            let problem = |param: &P| {
                let (field, y0) = (self.problem)(param);
                (field, y0.map(T::of))
            };
            Box::new(Typed(self.params[range].iter().map(problem).collect(), PhantomData::<fn() -> I>))
        };
        let level = self.ode.settings.level;
        let job = Job {
            resolved: &resolved,
            span: (t0, t1),
            level,
            num: self.params.len(),
            dim: N,
            problems: &problems,
            on_progress: self.on_progress.as_ref(),
        };
        let results = T::run(&job).expect("invariant: a `vector_field!` has no errors");
        let y1 = (0..job.num).map(|i| std::array::from_fn(|j| results.y1[i * N + j])).collect();
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
        all.judged(self.ode.settings.allow_incomplete)
    }
}
