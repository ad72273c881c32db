//! flowline: ODEs, gradients through them, and flows.
pub mod ode;
