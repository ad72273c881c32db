//! flowline compared with the other Rust crates that solve ODEs:
//! `cargo bench --bench solve -- [--json] [--only plain|native] [--problem A,B] [--peer A,B] [--quick]`.
//!
//! The timed programs are a separate package, `benches/peers/rust`, which this program builds and runs twice: with
//! a plain `cargo build --release`, and with `target-cpu=native`. With `--json` each line of the output is a
//! measurement, otherwise the output is tables. The summary goes to standard error.

#[path = "common/package.rs"]
mod package;

fn main() -> std::process::ExitCode {
    package::run("flowline-peers", std::env::args().skip(1).filter(|arg| arg != "--bench").collect())
}
