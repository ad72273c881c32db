//! Integration tests: one binary, a module a behaviour.

#[cfg(feature = "tensor")]
mod golden;
mod tidy;
