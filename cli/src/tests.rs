//! Every flag of every command with values out of its range: the message names the flag.
//!
//! The flags are those of the parser, so a new flag or command is tested without a change here, unless a new command needs
//! arguments of its own ([`Place::base`]).

use super::*;
use clap::{Arg, CommandFactory};
use flowline::__internal::with_at_most;
use flowline::data::Points;
use flowline::train::{TrainOptions, Trainer};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Values that are no number, not finite, or beyond every range from below or from above.
const VALUES: [&str; 12] =
    ["", "x", "1,5", "-1", "-0.5", "-1e300", "99999999999999999999", "0", "1e300", "NaN", "inf", "-inf"];
/// Drawn values for each flag; `FLOWLINE_CASES` sets another number.
const DRAWN: usize = 3;

/// A folder with a run on a small table of two columns.
struct Place {
    folder: PathBuf,
    command: clap::Command,
}

impl Place {
    fn new() -> Place {
        let folder = std::env::temp_dir().join(format!("flowline-flags-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // The rows fill an area: the density between points on a curve takes long.
        let rows: Vec<[f64; 2]> =
            (0..60).map(f64::from).map(|i| [(0.37 * i * i).sin(), (0.7 * i).cos()]).collect();
        let options = TrainOptions {
            updates: Some(1),
            width: Some(2),
            depth: Some(1),
            batch: Some(8),
            plots: Some(flowline::train::extra::PlotsKind::None),
            ..TrainOptions::default()
        };
        let trainer = Trainer::new(Points::from_rows(rows).unwrap()).options(&options);
        with_at_most(512, || trainer.run_dir(folder.join("run")).run()).unwrap();
        let mut command = Cli::command();
        command.build();
        Place { folder, command }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Arguments with which a command ends soon: successfully, or because its data are missing, which it reads last.
    fn base(&self, command: &str) -> Vec<String> {
        let run = self.path("run");
        match command {
            "train" => vec![self.path("missing.csv")],
            "sample" => vec![run, "--count=3".to_owned(), format!("--out={}", self.path("s.npy"))],
            "density" => vec![run, "--grid=3".to_owned(), format!("--out={}", self.path("d.npy"))],
            "plot" => vec![run, format!("--data={}", self.path("missing.csv"))],
            "log-prob" => vec![run, self.path("missing.csv")],
            "info" => vec![run],
            "runs" => vec![self.folder.display().to_string()],
            "completions" => vec!["bash".to_owned()],
            "man" => vec![format!("--out={}", self.path("man"))],
            other => panic!("no arguments for the new command {other}"),
        }
    }

    /// The message and the library's own message, if the command fails with `flag=value`.
    fn refusal(&self, command: &str, flag: &str, value: &str) -> Option<(String, Option<String>)> {
        let base = self.base(command).into_iter().filter(|other| !other.starts_with(&format!("{flag}=")));
        let arguments = ["flowline".to_owned(), command.to_owned()].into_iter().chain(base);
        let arguments: Vec<OsString> =
            arguments.chain([format!("{flag}={value}")]).map(OsString::from).collect();
        let parsed = self.command.clone().try_get_matches_from(&arguments);
        let error = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
            Ok(_) if !is_run(command) => return None,
            Ok(cli) => run(&cli.command, Instant::now()).err()?,
            Err(error) => error.into(),
        };
        let of_library = if let CliError::Library(e) = &error { Some(e.to_string()) } else { None };
        Some((typed::as_typed(&error.to_string(), &self.command, &arguments), of_library))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether a command with accepted arguments is run. Those without data to read compute for a minute in all, so they are
/// run with `FLOWLINE_CASES` alone; otherwise their arguments are parsed.
fn is_run(command: &str) -> bool {
    std::env::var("FLOWLINE_CASES").is_ok() || ["train", "plot", "log-prob"].contains(&command)
}

/// Whether the values of a flag are numbers.
fn is_number(arg: &Arg) -> bool {
    let id = arg.get_value_parser().type_id();
    [TypeId::of::<usize>(), TypeId::of::<u64>(), TypeId::of::<f64>()].iter().any(|number| id == *number)
}

/// Whether a flag names a file or a folder, which a message names in place of the flag.
fn is_path(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// A random text: a number of any sign, below 30 or huge, or letters.
fn drawn(state: &mut u64) -> String {
    let mut next = |n: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % n
    };
    let sign = if next(2) == 0 { "-" } else { "" };
    match next(4) {
        0 => format!("{sign}{}e{sign}{}", next(9), next(308)),
        // No number between, because drawing so many samples takes long.
        1 => format!("{sign}{}", if next(2) == 0 { next(30) } else { 10_000_000_000 + next(1_000_000) }),
        2 => format!("{sign}0.{}", next(1_000_000)),
        _ => (0..=next(4)).map(|_| char::from(b'a' + next(26) as u8)).collect(),
    }
}

#[test]
fn a_value_out_of_range_is_refused_with_the_name_of_its_flag() {
    say::set(say::Style { quiet: true, json: false, color: ColorChoice::Never });
    let cases = std::env::var("FLOWLINE_CASES").map_or(DRAWN, |n| n.parse().expect("a number"));
    let (place, mut state) = (Place::new(), 7);
    let command = place.command.clone();
    let mut refused = BTreeMap::<(String, String), [usize; 2]>::new();
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = sub.get_name();
        for arg in sub.get_arguments() {
            let Some(long) = arg.get_long().filter(|long| !["help", "version"].contains(long)) else {
                continue;
            };
            let flag = format!("--{long}");
            let drawn = (0..cases).map(|_| drawn(&mut state));
            let values = VALUES.map(str::to_owned).into_iter().chain(drawn);
            let values = match arg.get_action().takes_values() {
                _ if is_path(arg) => vec![place.path("none/x")],
                false => VALUES[..6].iter().map(|&value| value.to_owned()).collect(),
                true => values.collect(),
            };
            let count = refused.entry((name.to_owned(), flag.clone())).or_default();
            for value in values {
                // One accepted number suffices: it is computed with.
                if count[0] > 0 && value.parse::<f64>().is_ok_and(f64::is_finite) {
                    continue;
                }
                let Some((message, of_library)) = place.refusal(name, &flag, &value) else {
                    count[0] += 1;
                    continue;
                };
                if message.contains("missing.csv") {
                    // The value is accepted; only then the data are read.
                    count[0] += 1;
                    continue;
                }
                count[1] += 1;
                let is_named = message.contains(&flag) || (is_path(arg) && message.contains(&value));
                assert!(is_named, "{name} {flag}={value}: {message}");
                if let Some(text) = of_library {
                    assert!(!text.contains("--"), "{name} {flag}={value}: the library says: {text}");
                    assert!(
                        is_path(arg)
                            || text.contains(&format!("`{}`", long.replace('-', "_")))
                            || long == "label",
                        "{text}"
                    );
                }
            }
            // Every number has a type, and every flag without a value has none.
            let is_strict = is_run(name) && is_number(arg) || !arg.get_action().takes_values();
            assert!(!is_strict || count[1] > 4, "{name} {flag}: {count:?}");
        }
    }
    let [accepted, refusals] =
        refused.values().fold([0, 0], |sum, count| [sum[0] + count[0], sum[1] + count[1]]);
    assert!(refused.len() > 70 && accepted > 20 && refusals > 300, "{} {accepted} {refusals}", refused.len());
}
