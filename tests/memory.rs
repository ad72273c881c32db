//! Memory use is constant: the regression tests of `tests/stories`, on an allocator that counts.
//!
//! A separate binary with its own `main`, because the counts are for the whole process, and the threads of the
//! usual harness also allocate. Names, `--exact`, `--skip`, `--list` and `--ignored` have their usual meaning;
//! other options are ignored.
#![allow(unsafe_code, reason = "a global allocator that counts")]

mod stories;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;
use stories::{ALL, Story};

/// The command line.
#[derive(Default)]
struct Asked {
    names: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    /// Whether to run only ignored tests, of which there are none.
    ignored: bool,
}

impl Asked {
    fn new(args: impl Iterator<Item = String>) -> Asked {
        let (mut asked, mut args) = (Asked::default(), args);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => asked.exact = true,
                "--list" => asked.list = true,
                "--ignored" => asked.ignored = true,
                "--skip" => asked.skip.extend(args.next()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(args.next()),
                option if option.starts_with('-') => {}
                name => asked.names.push(name.to_owned()),
            }
        }
        asked
    }

    fn wants(&self, story: &Story) -> bool {
        let name = title(story);
        let fits = |asked: &String| if self.exact { name == *asked } else { name.contains(asked.as_str()) };
        !self.ignored && (self.names.is_empty() || self.names.iter().any(fits)) && !self.skip.iter().any(fits)
    }
}

fn title(story: &Story) -> String {
    format!("{}::{}", story.name.replace('-', "_"), story.holds)
}

fn main() -> ExitCode {
    let asked = Asked::new(std::env::args().skip(1));
    let chosen: Vec<&Story> = ALL.iter().filter(|story| asked.wants(story)).collect();
    if asked.list {
        chosen.iter().for_each(|story| println!("{}: test", title(story)));
        return ExitCode::SUCCESS;
    }
    let begun = Instant::now();
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for story in &chosen {
        let result = catch_unwind(|| (story.hold)(&(story.run)(story.iterations)));
        println!("test {} ... {}", title(story), if result.is_ok() { "ok" } else { "FAILED" });
        failed.extend(result.is_err().then(|| title(story)));
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
        failed.len(),
        ALL.len() - chosen.len(),
        begun.elapsed().as_secs_f64()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
