//! Ensembles: many initial states or parameters of one problem.
//!
//! For a `vector_field!`, [`LANES`](super::LANES) trajectories of f64 or
//! [`SINGLE_LANES`](super::SINGLE_LANES) of f32 run in lockstep: they are a *pack*. Each has its own t, dt,
//! accepted steps and outcome. The lanes use the widest instructions of the machine, whatever target the
//! crate was compiled for. With the feature `rayon`, threads share the trajectories. A closure accepts one
//! number type only, so it cannot be evaluated on lanes: its trajectories are separate solves.
//!
//! A trajectory's result depends, bit for bit, only on its own parameters and y0. It does not depend on the
//! number of threads, its neighbors, its lane or the order of the ensemble.
//!
//! The functions on lanes need fused multiply-add. Without AVX2 (or NEON) the trajectories run one at a time,
//! in the same code with one lane.

mod builder;
mod components;
mod drive;
mod inlined;
mod looks;
mod many;
mod pack;
mod partition;
mod problems;
#[cfg(feature = "rayon")]
mod ranks;
mod report;
mod shared;
mod stiff;

pub use builder::{EnsembleBuilder, ensemble};
pub use report::{EnsembleProgress, EnsembleSolution};

use super::{FieldError, LANES, LaneNumber, Lanes, Outcome, Real, Resolved};
#[cfg(feature = "ensemble-f32")]
use super::{SINGLE_LANES, Single};
use crate::simd::Level;
use drive::{Out, Packs};
use many::{OnProgress, Results, for_each_chunk};
use problems::Problems;
use std::ops::Range;

/// The number type of a lane: `f64`, or `f32` with the feature `ensemble-f32`.
pub trait LaneFloat: Real<Clock = f64> + Default + Send + Sync {
    /// Lanes of this number.
    type Lanes: LaneNumber<Self>;
    /// The number type on which a `vector_field!` is evaluated for a single trajectory.
    type One: LaneNumber<Self>;

    /// `x` rounded to this precision.
    fn of(x: f64) -> Self;
    /// Runs an ensemble. It is not generic over the vector field, so it is compiled with this crate.
    fn run(job: &Job<'_, Self>) -> Result<Results<Self>, FieldError>;
    /// Runs packs whose method is Tsit5, by attempts compiled with this crate for its coefficients.
    fn run_tsit5(packs: &mut Packs<'_, Self>) -> Result<(), FieldError>;
}
impl LaneFloat for f64 {
    type Lanes = Lanes<f64, LANES>;
    type One = f64;
    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }
    fn run(job: &Job<'_, f64>) -> Result<Results<f64>, FieldError> {
        job.run()
    }
    fn run_tsit5(packs: &mut Packs<'_, f64>) -> Result<(), FieldError> {
        shared::double::run_tsit5(packs)
    }
}
#[cfg(feature = "ensemble-f32")]
impl LaneFloat for f32 {
    type Lanes = Lanes<f32, SINGLE_LANES>;
    type One = Single;
    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn run(job: &Job<'_, f32>) -> Result<Results<f32>, FieldError> {
        job.run()
    }
    fn run_tsit5(packs: &mut Packs<'_, f32>) -> Result<(), FieldError> {
        shared::single::run_tsit5(packs)
    }
}

/// An ensemble whose vector field is hidden behind [`Problems`].
pub struct Job<'a, T> {
    resolved: &'a Resolved,
    /// t0 and t1.
    span: (f64, f64),
    level: Level,
    /// The number of trajectories.
    num: usize,
    /// Components per trajectory.
    dim: usize,
    problems: &'a (dyn Fn(Range<usize>) -> Box<dyn Problems<T> + 'a> + Sync),
    on_progress: Option<&'a OnProgress<'a>>,
}

impl<T: LaneFloat> Job<'_, T> {
    fn run(&self) -> Result<Results<T>, FieldError> {
        let y1 = vec![T::default(); self.num * self.dim];
        for_each_chunk(self.num, (y1, self.dim), self.on_progress, &|(range, out)| {
            self.run_chunk(&*(self.problems)(range), out)
        })
    }

    /// Runs the trajectories of one chunk, grouped by equal static fields.
    fn run_chunk(&self, problems: &dyn Problems<T>, mut out: Out<'_, T>) -> Result<(), FieldError> {
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for index in 0..problems.len() {
            let y0 = problems.y0(index);
            if let Some(component) = y0.iter().position(|y| !Real::is_finite(*y)) {
                out.y1[index * self.dim..][..self.dim].copy_from_slice(y0);
                let component = Some(component);
                out.outcomes[index] = Outcome::NonFinite { t: self.span.0, dt: 0.0, step: 0, component };
                continue;
            }
            match kinds.iter_mut().find(|kind| problems.same_statics(kind[0], index)) {
                Some(kind) => kind.push(index),
                None => kinds.push(vec![index]),
            }
        }
        for order in &kinds {
            let Out { y1, stats, outcomes, warnings } = &mut out;
            let out = Out { y1, stats, outcomes, warnings };
            let &Job { resolved, span, level, dim, .. } = self;
            Packs { resolved, span, level, dim, problems, order, out }.run()?;
        }
        Ok(())
    }
}
