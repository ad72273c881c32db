//! Ensembles: many initial states or parameters of one problem.
//!
//! Lanes times threads. A `field!` steps [`LANES`](super::LANES) trajectories of f64 or
//! [`SINGLE_LANES`](super::SINGLE_LANES) of f32 in lockstep, each with its own t, dt, decisions and outcome, with
//! the widest instructions that the machine has, whatever the crate was compiled for; `rayon`, where the feature is
//! on, gives each thread some of the trajectories. A plain closure knows one kind of number, so
//! [`Ode::solve_many`] runs it one trajectory after the other, and the report says so.
//!
//! A trajectory's result depends on its own parameters alone: not on the number of threads, on its neighbours, on
//! its lane or on the order of the ensemble, bit for bit.
//!
//! Without AVX2 (or NEON) there is no product and sum in one rounding, which the functions on lanes need, so there
//! the trajectories run one at a time, in the same code at width 1.

mod builder;
mod many;
mod pack;
mod report;

pub use builder::EnsembleOde;
pub use report::{Ensemble, EnsembleProgress};

use super::{LANES, LaneNumber, Lanes, Real, SINGLE_LANES, Single};

/// A component that lanes can be made of: `f64` and `f32`.
pub trait LaneFloat: Real<Clock = f64> + Default + Send + Sync {
    /// Lanes of it.
    type Lanes: LaneNumber<Self>;
    /// One of it, as a number of a `field!`.
    type One: LaneNumber<Self>;

    /// `x` rounded to this precision.
    fn of(x: f64) -> Self;
}
impl LaneFloat for f64 {
    type Lanes = Lanes<f64, LANES>;
    type One = f64;
    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }
}
impl LaneFloat for f32 {
    type Lanes = Lanes<f32, SINGLE_LANES>;
    type One = Single;
    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }
}
