//! Lanes of f32, f64 and u32 at the widths of the machine. The level (the set of instructions) is chosen at
//! run time; `FLOWLINE_LEVEL` selects a lower one (see `level`).
//!
//! This layer depends on instruction sets, but not on tensors or on the computations on lanes. Kernels in
//! other layers are written once, generic over `lanes::Simd`, and get one entry point per level.
//!
//! Alternatives considered: `std::simd` is unstable; `wide` chooses at compile time; `pulp` and `macerator`
//! choose at run time, but have neither exp nor ln. Plain loops without
//! intrinsics were slow in two cases measured: an in-place raw-pointer loop fails the overlap check and runs
//! scalar (8 times slower), and blocks of fixed size are vectorized again across blocks with gathers (3 times
//! slower). Explicit intrinsics avoid both problems.
//!
//! There are two ways into code for a level. `dispatch` runs kernels over the level's own types; they take pointers, so they
//! are unsafe. `run` runs safe code over plain arrays, [`Lanes`], which users' vector fields compute with. Users may create
//! `Lanes` anywhere. If they held registers of a level, a user could create them on a machine without it, and each field
//! would need a type per level. Both kinds of types implement one trait, `lanes::Float`, so `math` is written once.
//!
//! How a value proves its level: only `unsafe` functions (such as `splat` and `load`) create a lane value
//! from nothing, and their caller promises that the level is available. Methods on an existing value are then
//! safe.
#![allow(unsafe_code, reason = "intrinsics are reached through unsafe blocks; see the module text")]

#[cfg(all(target_arch = "x86_64", feature = "autodiff"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "autodiff"))]
pub(crate) mod avx512;
#[cfg(feature = "autodiff")]
pub(crate) mod denormals;
#[cfg(feature = "autodiff")]
pub(crate) mod dispatch;
#[cfg_attr(not(feature = "autodiff"), allow(dead_code, reason = "kernels of the backend use the rest"))]
pub(crate) mod lanes;
mod level;
#[cfg_attr(not(feature = "autodiff"), allow(dead_code, reason = "kernels of the backend use the rest"))]
pub(crate) mod math;
mod pack;
#[cfg(feature = "autodiff")]
pub(crate) mod portable;
#[cfg(feature = "autodiff")]
pub(crate) mod prefetch;
mod run;
#[cfg(all(target_arch = "x86_64", feature = "autodiff"))]
mod transpose;

pub use level::{Level, LevelError};
pub(crate) use pack::each;
pub use pack::{Lane, LaneMask, Lanes};
pub(crate) use run::{Bound, Call, Entry, Work, is_fused, run_narrow};
