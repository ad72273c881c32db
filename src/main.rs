//! The command line.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    flowline::cli::main(Instant::now())
}
