//! flowline: ODEs, gradients through them, and flows.

#[cfg(feature = "train")]
pub mod data;
#[cfg(feature = "train")]
pub mod plot;
