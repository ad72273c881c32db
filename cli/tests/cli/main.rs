//! The command line as other programs see it: exit codes, messages, files, bits.
//!
//! It is its own test binary because it runs the program. Data are tiny and networks have width 8, so a run takes a second.

#[path = "../../../src/io/scratch.rs"]
mod folders;
mod help;
mod images;
mod levels;
mod limits;
mod place;
mod plans;
mod points;
mod refusals;
mod resuming;
mod runs;
mod surviving;
mod tables;
