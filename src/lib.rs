//! flowline: ODEs, gradients through them, and flows.
