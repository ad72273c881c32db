//! The steps of a plan and their execution.
//!
//! [`exec`] runs the [steps](step) of a plan in order. Each kind of step has a file: [strip programs](program), products
//! ([`dot`], [`conv`]), lines of the last axis ([`lines`]), factorizations ([`factor`]), linear systems ([`systems`]), copies ([`copy`]), loops ([`loops`], [`lockstep`], [`replay`]), [`tiles`] and [`cond`]. Loops keep
//! their step times and states in a [`tape`].

pub mod batch;
pub mod bind;
pub mod cond;
pub mod conv;
pub mod copy;
pub mod dot;
pub mod exec;
pub mod factor;
pub mod lines;
pub mod lockstep;
pub mod lockstep_search;
pub mod loops;
pub mod observe;
pub mod ones;
pub mod packed;
pub mod program;
pub mod reduce;
pub mod replay;
pub mod residuals;
pub mod step;
pub mod systems;
pub mod tape;
pub mod taps;
pub mod tiles;
pub mod totals;
pub mod walk;

pub use exec::Workspace;
