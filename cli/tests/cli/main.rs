//! The command line as other programs see it: exit codes, messages, files, bits.
//!
//! A binary of its own because it runs the program. Data are tiny and nets of width 8, so a whole run takes a second.

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
