//! Integration tests: one binary, one module per behavior.

mod docs;
#[cfg(feature = "autodiff")]
mod golden;
mod levels;
#[cfg(feature = "train")]
mod notebooks;
mod tidy;
