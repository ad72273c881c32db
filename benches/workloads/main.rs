//! The workloads on which flowline is compared with other libraries:
//! `cargo bench --bench workloads -- [W1..W9 | "W8 euler 1 8" ...] [--threads N] [--reps N] [--image FILE] [--json]`.
//!
//! README.md in this folder defines each workload so that a program in any language can implement it. Every
//! variant runs in its own process, so that others do not affect its memory and its first call. With `--json`
//! each variant prints one object, otherwise one row. `benches/peers/run` runs the programs of other libraries
//! in turn with these.

#[path = "../common/json.rs"]
mod json;
mod measure;
mod splitmix;
#[path = "../common/stats.rs"]
mod stats;
mod w1;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod w7;
mod w8;
mod w9;

use measure::{HEADER, Measured, Options, Result};
use std::process::{Command, ExitCode};

/// A workload: its name, its variants, and the function that measures one.
struct Workload {
    name: &'static str,
    variants: &'static [&'static str],
    measure: fn(&str, &Options) -> Result<Measured>,
}

macro_rules! workloads {
    ($($name:literal $module:ident;)*) => {
        [$(Workload { name: $name, variants: $module::VARIANTS, measure: $module::measure }),*]
    };
}

const ALL: [Workload; 9] = workloads! {
    "W1" w1;
    "W2" w2;
    "W3" w3;
    "W4" w4;
    "W5" w5;
    "W6" w6;
    "W7" w7;
    "W8" w8;
    "W9" w9;
};

/// The task of this process.
enum Task {
    /// Measure the chosen variants, each in its own process.
    All(Vec<String>),
    /// Measure one here.
    One(String),
    /// Take the first training step of a workload and end.
    First(String),
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let done = parse(&mut args).and_then(|(task, options)| match task {
        Task::All(chosen) => all(&chosen, &args, &options),
        Task::One(id) => on_pool(&options, || one(&id, &options)),
        Task::First(name) => on_pool(&options, || w6::first(&name, &options)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The task and the options; `args` keeps the options for the child processes.
fn parse(args: &mut Vec<String>) -> Result<(Task, Options)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options { threads: cores, reps: 9, json: false, image: None };
    let (mut given, mut chosen, mut task, mut handed_on) = (args.drain(..), vec![], None, vec![]);
    while let Some(arg) = given.next() {
        let mut next = || given.next().ok_or_else(|| format!("{arg} takes a value"));
        let mut value = None;
        match arg.as_str() {
            "--json" => options.json = true,
            "--threads" => options.threads = positive(value.insert(next()?))?,
            "--reps" => options.reps = positive(value.insert(next()?))?,
            "--image" => options.image = Some(value.insert(next()?).as_str().into()),
            "--one" => task = Some(Task::One(next()?)),
            "--first" => task = Some(Task::First(next()?)),
            _ if is_chosen(&arg) => chosen.push(arg.clone()),
            _ => {
                return Err(format!(
                    "unknown argument {arg}; expected workloads W1 to W9, their variants (\"W8 euler 1 8\"), --threads N, --reps N, --image FILE and \
                     --json"
                )
                .into());
            }
        }
        if arg.starts_with("--") {
            handed_on.extend([arg].into_iter().chain(value));
        }
    }
    drop(given);
    *args = handed_on;
    Ok((task.unwrap_or(Task::All(chosen)), options))
}

fn positive(text: &str) -> Result<usize> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| format!("{text} is not a number above 0").into())
}

/// The names of all variants: "W3 step".
fn ids() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|w| w.variants.iter().map(move |variant| format!("{} {variant}", w.name)))
}

fn names(arg: &str, id: &str) -> bool {
    id.strip_prefix(arg).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn is_chosen(arg: &str) -> bool {
    ids().any(|id| names(arg, &id))
}

fn all(chosen: &[String], options: &[String], parsed: &Options) -> Result<()> {
    if !parsed.json {
        println!("{HEADER}");
    }
    let mut failed = vec![];
    for id in ids().filter(|id| chosen.is_empty() || chosen.iter().any(|arg| names(arg, id))) {
        let status = Command::new(std::env::current_exe()?).args(options).args(["--one", &id]).status()?;
        if !status.success() {
            failed.push(id);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}

fn on_pool(options: &Options, f: impl FnOnce() -> Result<()>) -> Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    f()
}

fn one(id: &str, options: &Options) -> Result<()> {
    let found = ALL.iter().find_map(|w| Some((w, id.strip_prefix(w.name)?.trim_start())));
    let (workload, variant) = found.ok_or_else(|| format!("there is no workload {id}"))?;
    let measured = (workload.measure)(variant, options).map_err(|e| format!("{id}: {e}"))?;
    println!("{}", measured.line(workload.name, variant, options));
    Ok(())
}
