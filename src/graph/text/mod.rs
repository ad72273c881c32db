//! The text form of functions: printed, parsed, compared in tests, attached to bug reports.
//!
//! ```text
//! func(%0: f32[2,3], %1: f32[3]) {
//!   %2 = broadcast{dims=[1]} %1 : f32[2,3]
//!   %3 = add %0, %2 : f32[2,3]
//!   return %3
//! }
//! ```
//!
//! One node per line: its id, operation, attributes, operands and type. Inputs come first, in order; the bodies
//! of a loop follow its type in braces, each with its name. White space is ignored, and `//` starts a comment.
//! Printed text parses back to the same function, bit for bit: numbers are the shortest decimals that
//! round-trip, and NaNs are written with their bits. Constants of more than [`MAX_ELEMENTS`] elements are
//! printed as a digest, which shows changes but does not parse; graphs with weights as constants would
//! otherwise take megabytes.
//!
//! A derived format (`serde`) would need no parser, but its text is hard to read and write by hand, as the
//! tests of graph passes require.

mod build;
mod lex;
mod parse;
mod print;

/// The maximum number of elements of an array constant that is printed in full.
pub const MAX_ELEMENTS: usize = 64;

#[cfg(test)]
mod tests;
