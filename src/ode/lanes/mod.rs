//! Lanes as numbers and clocks of a solve: W trajectories in lockstep, each with its own t, dt and decisions.
//!
//! The arrays and their arithmetic are [`simd::Lanes`](crate::simd::Lanes); here they become a [`Real`], a
//! [`Number`](super::Number) and a [`Clock`]. Lanes of `f64` are their own clock. Lanes of `f32` are steered by
//! [`SingleClock`], whose t, dt and error ratios are f64, as for every plain state. No lane ever sees another:
//! what a trajectory does depends on nothing beside it, bit for bit, and a NaN stays where it arose.

mod clock;
mod number;

pub use crate::simd::{LaneMask, Lanes};
pub use clock::SingleClock;

use super::{Clock, FieldNumber};

/// Trajectories of f64 in lockstep: two AVX-512 registers, since one would wait for its own results.
pub const LANES: usize = 16;
/// Trajectories of f32 in lockstep.
pub const SINGLE_LANES: usize = 32;

/// A clock of one or more lanes.
pub trait LaneClock: Clock {
    /// How many lanes there are.
    const WIDTH: usize;
    /// `x` in every lane.
    fn splat(x: f64) -> Self;
    /// The number in one lane.
    fn lane(&self, lane: usize) -> f64;
    /// Replaces the number in one lane.
    fn set_lane(&mut self, lane: usize, x: f64);
    /// How many lanes hold.
    fn count(m: &Self::Mask) -> u32;
    /// Bit i is lane i.
    fn bits(m: &Self::Mask) -> u32;
}

/// A number of one or more lanes of `T`.
pub trait LaneNumber<T>: FieldNumber<Clock: LaneClock> {
    /// The number in one lane.
    fn lane(&self, lane: usize) -> T;
    /// Replaces the number in one lane.
    fn set_lane(&mut self, lane: usize, x: T);
}
