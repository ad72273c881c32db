//! The command line as other programs see it: exit codes, messages, files, bits.
//!
//! It is its own test binary because it runs the program. Data are tiny and networks have a width of at most 8, so
//! most runs take about a second.

mod far;
#[path = "../../../src/io/scratch.rs"]
mod folders;
mod help;
mod images;
mod levels;
mod limits;
mod listing;
mod place;
mod plans;
mod points;
mod refusals;
mod resuming;
mod runs;
mod surviving;
mod tables;
mod threads;
mod uses;
