//! Integration tests: one binary, a module a behaviour.

#[cfg(feature = "plot")]
mod examples;
#[cfg(feature = "tensor")]
mod golden;
#[cfg(feature = "train")]
mod notebooks;
mod tidy;
