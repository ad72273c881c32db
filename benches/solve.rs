//! flowline compared with the other Rust crates that solve ODEs:
//! `cargo bench --bench solve -- [--json] [--only plain|native] [--problem A,B] [--peer A,B] [--quick]`.
//!
//! The timed programs are a separate package, `benches/peers/rust`, which this program builds and runs twice: with a plain
//! `cargo build --release`, and with `target-cpu=native`. With `--json` each line is a measurement, otherwise they are
//! tables; the summary goes to standard error.

use std::path::Path;
use std::process::{Command, ExitCode};

/// The names of the compiler options, and the options.
const BUILDS: [(&str, &str); 2] = [("plain", ""), ("native", "-C target-cpu=native")];

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut only = None;
    if let Some(at) = args.iter().position(|arg| arg == "--only") {
        only = args.drain(at..(at + 2).min(args.len())).nth(1);
    }
    let wanted: Vec<_> =
        BUILDS.into_iter().filter(|(name, _)| only.as_ref().is_none_or(|o| o == name)).collect();
    if wanted.is_empty() {
        eprintln!("--only takes plain or native");
        return ExitCode::FAILURE;
    }
    for (name, rustflags) in wanted {
        if let Err(message) = run(name, rustflags, &args) {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Builds and runs the package with these options; passes its output on.
fn run(name: &str, rustflags: &str, args: &[String]) -> Result<(), String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/rust/Cargo.toml");
    // One target folder per set of options, otherwise each run would rebuild everything.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers").join(name);
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--quiet", "--locked", "--manifest-path"])
        .arg(package)
        .args(["--", "--flags", name])
        .args(args)
        .env("RUSTFLAGS", rustflags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_TARGET_DIR", target)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the {name} build ended with {status}")) }
}
