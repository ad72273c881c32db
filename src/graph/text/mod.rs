//! The text form of functions: printed, read, compared in tests, attached to bug reports.
//!
//! ```text
//! func(%0: f32[2,3], %1: f32[3]) {
//!   %2 = broadcast{dims=[1]} %1 : f32[2,3]
//!   %3 = add %0, %2 : f32[2,3]
//!   return %3
//! }
//! ```
//!
//! One node a line: its id, operation, attributes, operands and type. Inputs stand at the head in
//! their order; the bodies of a loop follow its type in braces, each under its name. White space does
//! not count, and `//` starts a comment. What is printed reads back as the same function, bit for bit:
//! numbers are the shortest decimals that do so, NaNs are written with their bits. Constants of more
//! than [`MAX_ELEMENTS`] elements are printed as a digest, enough to see a change, and do not read
//! back; graphs with weights as constants would otherwise be megabytes.
//!
//! A derived format (`serde`) would need no parser, but its text is for machines: golden tests of
//! graph passes are read and written by people.

mod build;
mod lex;
mod parse;
mod print;

/// The most elements of an array constant that are printed in full.
pub const MAX_ELEMENTS: usize = 64;

#[cfg(test)]
mod tests;
