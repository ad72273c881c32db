//! Lanes as numbers and clocks of a solve: W trajectories in lockstep, each with its own t, dt and accepted
//! steps.
//!
//! The arrays and their arithmetic are [`simd::Lanes`](crate::simd::Lanes); this module makes them a
//! [`Real`], a [`Number`](super::Number) and a [`Clock`]. Lanes of `f64` are their own clock. The clock of
//! lanes of `f32` is [`SingleClock`], whose t, dt and error ratios are f64, as for every plain state. The
//! result of a trajectory does not depend on the other lanes, bit for bit, and a NaN stays in its lane.

mod clock;
mod number;

pub use crate::simd::{LaneMask, Lanes};
pub use clock::SingleClock;

use super::{Clock, FieldNumber};

/// The number of f64 trajectories in lockstep. They fill two AVX-512 registers, because with one register
/// each operation would wait for the result of the operation before.
pub const LANES: usize = 16;
/// The number of f32 trajectories in lockstep: two AVX-512 registers.
pub const SINGLE_LANES: usize = 32;

/// A clock of one or more lanes.
pub trait LaneClock: Clock {
    /// The number of lanes.
    const WIDTH: usize;
    /// `x` in every lane.
    fn splat(x: f64) -> Self;
    /// The number in one lane.
    fn lane(&self, lane: usize) -> f64;
    /// Replaces the number in one lane.
    fn set_lane(&mut self, lane: usize, x: f64);
    /// The number of lanes in which the mask holds.
    fn count(m: &Self::Mask) -> u32;
    /// The mask as bits: bit i is lane i.
    fn bits(m: &Self::Mask) -> u32;
}

/// A number of one or more lanes of `T`.
pub trait LaneNumber<T>: FieldNumber<Clock: LaneClock> {
    /// The number in one lane.
    fn lane(&self, lane: usize) -> T;
    /// Replaces the number in one lane.
    fn set_lane(&mut self, lane: usize, x: T);
}
