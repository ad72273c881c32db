//! Builds and runs a program of `benches/peers/rust`, once per set of compiler options.

use std::path::Path;
use std::process::{Command, ExitCode};

/// The names of the compiler options, and the options.
const BUILDS: [(&str, &str); 2] = [("plain", ""), ("native", "-C target-cpu=native")];

/// Runs the program with these arguments in each build, or in the one that `--only` names.
pub fn run(program: &str, mut args: Vec<String>) -> ExitCode {
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
        if let Err(message) = run_in(program, name, rustflags, &args) {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Builds and runs the program with these options; passes its output on.
fn run_in(program: &str, name: &str, rustflags: &str, args: &[String]) -> Result<(), String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/rust/Cargo.toml");
    // One target folder per set of options, otherwise each run would rebuild everything.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers").join(name);
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--quiet", "--locked", "--bin", program, "--manifest-path"])
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
