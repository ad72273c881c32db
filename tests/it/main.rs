//! Integration tests: one binary, a module a behavior.

mod docs;
#[cfg(feature = "autodiff")]
mod golden;
mod levels;
#[cfg(feature = "train")]
mod notebooks;
mod tidy;
