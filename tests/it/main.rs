//! Integration tests: one binary, a module a behaviour.

mod tidy;
