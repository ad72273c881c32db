//! The command line, the same for both programs.

use crate::measure::Run;

const USAGE: &str = "options: --json, --flags NAME, --problem A,B, --peer A,B, --quick (fewer tolerances)";

/// What to measure, and the output format.
pub struct Options {
    pub json: bool,
    pub quick: bool,
    pub flags: String,
    problems: Option<String>,
    peers: Option<String>,
}

impl Options {
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Options { json: false, quick: false, flags: "plain".into(), problems: None, peers: None };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value; {USAGE}"));
            match arg.as_str() {
                "--json" => options.json = true,
                "--quick" => options.quick = true,
                "--flags" => options.flags = value()?,
                "--problem" => options.problems = Some(value()?),
                "--peer" => options.peers = Some(value()?),
                _ => return Err(format!("unknown option {arg}; {USAGE}")),
            }
        }
        Ok(options)
    }

    pub fn wants_problem(&self, name: &str) -> bool {
        self.problems.as_ref().is_none_or(|names| names.split(',').any(|n| n == name))
    }

    pub fn wanted<'a>(&self, runs: Vec<Run<'a>>) -> Vec<Run<'a>> {
        let wants =
            |run: &Run| self.peers.as_ref().is_none_or(|names| names.split(',').any(|n| n == run.peer));
        runs.into_iter().filter(wants).collect()
    }
}
