//! `EnsembleOde`: the options of an ensemble, and how it is cut into the work of threads.
//!
//! It holds an [`Ode`] for its options, so that they are read and refused in one place.

use super::many::{Chunk, Threads, for_each_chunk};
use super::pack::{Out, Packs};
use super::{Ensemble, EnsembleProgress, LaneFloat};
use crate::ode::{
    Bound, Controller, FieldError, GenericField, LaneClock, LaneNumber, Method, Ode, OdeError, Outcome, Real,
    Resolved,
};
use crate::simd::{Level, Work, is_fused, run_at};
use std::marker::PhantomData;

/// An [`Ode`] without a field.
type Options<T, const N: usize> = Ode<'static, [T; N], ()>;

/// Many trajectories of one `field!`: what [`Ode::ensemble`] gives.
///
/// The options are those of [`Ode`]; each trajectory is held to them as if it were solved alone, and takes the steps
/// that it takes alone: [`LANES`](crate::ode::LANES) of f64 or [`SINGLE_LANES`](crate::ode::SINGLE_LANES) of f32
/// go in lockstep, each with its own t, dt, decisions and outcome, and a lane that ends is given the next trajectory.
///
/// # Numerics
/// A trajectory's bits depend on its own field and y0 alone, not on its neighbours, its lane, the order or the number
/// of threads; they are those of an ensemble of one. Against [`Ode::solve`] on the same machine they differ by rounding:
/// lanes take step size factors from a power of 13 digits, and functions in the field (sin, exp, ...) are within 4 ulp of
/// the standard library's.
///
/// # Lanes of f32
/// Their t, dt and error ratios are f64, as for every state on the host: in f32, time near 1e6 moves in steps of
/// 0.06 and a solve stalls. That costs four registers of clock beside two of state, so lanes of f32 are far from
/// twice the rate of f64; a field with dear functions gains most. The size of the next step comes from a power in
/// f32, which is all that it needs, and the field sees t rounded to f32.
pub struct EnsembleOde<'a, P, M, T: LaneFloat, const N: usize> {
    params: &'a [P],
    problem: M,
    ode: Options<T, N>,
    on_progress: Option<Box<dyn Fn(EnsembleProgress) + Sync + 'a>>,
}

impl Ode<'static, f64, ()> {
    /// Many trajectories of one [`field!`](crate::field): `problem` gives the field and y0 of each of `params`.
    ///
    /// Trajectories step in SIMD lanes, each with its own step sizes, and threads share them where the feature
    /// `rayon` is on. [`single_precision`](EnsembleOde::single_precision) asks for f32.
    ///
    /// A plain build has the widest registers of the machine. `-C target-cpu=native` names processors for which the
    /// compiler prefers half of them, inside functions compiled for AVX-512 too: give `-C
    /// target-feature=-prefer-256-bit` beside it (10,000 Lorenz trajectories by Tsit5 in f64: 11.4 ns a step and
    /// trajectory in a plain build and with both, 20.0 ns with the name alone).
    ///
    /// # Examples
    /// ```
    /// use flowline::{field, ode::Ode};
    /// field! {
    ///     struct Decay<R> { rate: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
    ///         [-self.rate * y[0]]
    ///     }
    /// }
    /// let rates: Vec<f64> = (0..1000).map(|i| f64::from(i) / 100.0).collect();
    /// let sweep = Ode::ensemble(&rates, |&rate| (Decay { rate }, [1.0])).solve(0.0, 1.0)?.into_result()?;
    /// assert!((sweep.y1[200][0] - (-2.0_f64).exp()).abs() < 1e-6);
    /// # Ok::<(), flowline::ode::OdeError>(())
    /// ```
    pub fn ensemble<P, M, G, const N: usize>(params: &[P], problem: M) -> EnsembleOde<'_, P, M, f64, N>
    where
        M: Fn(&P) -> (G, [f64; N]),
        G: GenericField<N>,
    {
        EnsembleOde { params, problem, ode: Ode::from_field(()), on_progress: None }
    }
}

impl<'a, P, M, T: LaneFloat, const N: usize> EnsembleOde<'a, P, M, T, N> {
    fn with(self, option: impl FnOnce(Options<T, N>) -> Options<T, N>) -> Self {
        EnsembleOde { ode: option(self.ode), ..self }
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
    pub fn rtol(self, rtol: impl Into<Bound>) -> Self {
        self.with(|ode| ode.rtol(rtol))
    }
    /// The absolute tolerance, in the unit of y: a number, or one a component.
    pub fn atol(self, atol: impl Into<Bound>) -> Self {
        self.with(|ode| ode.atol(atol))
    }
    /// The first step size, and every step's where steps are constant; chosen for each trajectory where not given.
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
    pub fn land_on(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.land_on(ts))
    }
    /// Times where the field jumps: steps end on them and start anew.
    pub fn jump_at(self, ts: &[f64]) -> Self {
        self.with(|ode| ode.jump_at(ts))
    }
    /// The most steps that a trajectory attempts.
    pub fn max_steps(self, max_steps: u64) -> Self {
        self.with(|ode| ode.max_steps(max_steps))
    }
    /// Steps in f32: twice the lanes, seven digits, rtol 1e-4 and atol 1e-6 where none is given.
    ///
    /// Parameters and y0 are rounded; t and dt stay f64, see [`EnsembleOde`].
    pub fn single_precision(self) -> EnsembleOde<'a, P, M, f32, N> {
        let ode = self.ode.with_field(());
        EnsembleOde { params: self.params, problem: self.problem, ode, on_progress: self.on_progress }
    }
    /// Calls `f` from time to time, from the thread that has just ended some trajectories.
    pub fn on_progress(self, f: impl Fn(EnsembleProgress) + Sync + 'a) -> Self {
        EnsembleOde { on_progress: Some(Box::new(f)), ..self }
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
    /// A trajectory that stops early, or that starts with a y0 that is not finite, says so in its own outcome.
    ///
    /// # Errors
    /// An option out of range or an interval that is not finite.
    pub fn solve<G>(&self, t0: f64, t1: f64) -> Result<Ensemble<[T; N]>, OdeError>
    where
        P: Sync,
        M: Fn(&P) -> (G, [f64; N]) + Sync,
        G: GenericField<N>,
    {
        let resolved = self.ode.settings.resolve(T::TOLERANCE, &[N], Some((t0, t1)))?;
        resolved.scheme::<[T; N]>(None).check_span(t0, t1)?;
        let in_lanes = is_fused(self.ode.settings.level);
        let run = |chunk: Chunk<'_, P, [T; N]>| {
            if in_lanes {
                self.run_chunk::<G, T::Lanes>(
                    t0,
                    chunk,
                    |packs| run_packs(self.ode.settings.level, packs),
                    (&resolved, t1),
                )
            } else {
                self.run_chunk::<G, T::One>(t0, chunk, |packs| packs.run(), (&resolved, t1))
            }
        };
        let num_lanes = if in_lanes { <T::Lanes as Real>::Clock::WIDTH } else { 1 };
        let threads = Threads::new();
        let (y1, stats, outcomes) = for_each_chunk(
            &threads,
            self.params,
            vec![[T::default(); N]; self.params.len()],
            self.on_progress.as_deref(),
            run,
        )
        .map_err(|source| OdeError::Field { t: t0, step: 0, source })?;
        let Resolved { rtol, atol, .. } = resolved;
        Ok(Ensemble { y1, stats, outcomes, num_lanes, num_threads: threads.count(), rtol, atol })
    }

    /// The trajectories of one chunk, those that agree in what is static together.
    fn run_chunk<G, R>(
        &self,
        t0: f64,
        chunk: Chunk<'_, P, [T; N]>,
        run: impl Fn(Packs<'_, G, R, T, N>) -> Result<(), FieldError>,
        (resolved, t1): (&Resolved, f64),
    ) -> Result<(), FieldError>
    where
        M: Fn(&P) -> (G, [f64; N]),
        G: GenericField<N>,
        R: LaneNumber<T>,
        R::Clock: LaneClock,
    {
        let problem = |param: &P| {
            let (field, y0) = (self.problem)(param);
            (field, y0.map(T::of))
        };
        let problems: Vec<_> = chunk.params.iter().map(problem).collect();
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for (index, (field, y0)) in problems.iter().enumerate() {
            if let Some(component) = y0.iter().position(|y| !Real::is_finite(*y)) {
                chunk.y1[index] = *y0;
                let component = Some(component);
                chunk.outcomes[index] = Outcome::NonFinite { t: t0, dt: 0.0, step: 0, component };
                continue;
            }
            match kinds.iter_mut().find(|kind| problems[kind[0]].0.same_statics(field)) {
                Some(kind) => kind.push(index),
                None => kinds.push(vec![index]),
            }
        }
        for order in &kinds {
            let out = Out { y1: &mut *chunk.y1, stats: &mut *chunk.stats, outcomes: &mut *chunk.outcomes };
            let number = PhantomData::<R>;
            let packs = Packs { resolved, t0, t1, problems: &problems, order, out, number };
            run(packs)?;
        }
        Ok(())
    }
}

/// Runs trajectories in lanes at a level.
fn run_packs<G, R, T, const N: usize>(level: Level, packs: Packs<'_, G, R, T, N>) -> Result<(), FieldError>
where
    G: GenericField<N>,
    R: LaneNumber<T>,
    R::Clock: LaneClock,
    T: LaneFloat,
{
    #[cfg(target_arch = "x86_64")]
    {
        use super::pack::Tsit5Packs;
        use crate::ode::attempts::UNROLL;
        use crate::simd::run_at_avx512;
        if UNROLL && level == Level::Avx512 && packs.resolved.native().method == Some(Method::Tsit5) {
            return run_at_avx512(Tsit5Packs(packs));
        }
    }
    run_at(level, packs)
}
