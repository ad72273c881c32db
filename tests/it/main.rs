//! Integration tests: one binary, a module a behaviour.

#[cfg(feature = "tensor")]
mod golden;
#[cfg(feature = "train")]
mod notebooks;
mod tidy;
