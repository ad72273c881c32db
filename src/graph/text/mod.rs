//! The text form of functions, for tests and bug reports: printing and parsing.
//!
//! ```text
//! func(%0: f32[2,3], %1: f32[3]) {
//!   %2 = broadcast{dims=[1]} %1 : f32[2,3]
//!   %3 = add %0, %2 : f32[2,3]
//!   return %3
//! }
//! ```
//!
//! Each node has a line with its id, operation, attributes, operands and type. Inputs come first, in order.
//! The bodies of a loop follow its type in braces, each with its name. White space is ignored, and `//`
//! starts a comment. Printed text parses back to the same function, bit for bit: numbers are the shortest
//! decimals that round-trip, and NaNs are written with their bits. There are two exceptions. An observer is
//! printed but does not parse. A constant of more than [`MAX_ELEMENTS`] elements is printed as a digest,
//! which shows changes but does not parse; otherwise the text of a graph with weights as constants would take
//! megabytes.
//!
//! A derived format (`serde`) would need no parser. But people read and write the texts in tests of graph
//! passes, and a derived format is hard to read and write.

mod build;
mod lex;
mod parse;
mod print;

/// The maximum number of elements of an array constant that is printed in full.
pub const MAX_ELEMENTS: usize = 64;

#[cfg(test)]
mod tests;
