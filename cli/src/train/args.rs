//! Arguments of `flowline train`. Those of the library come from its table of options, [`OPTIONS`].

use super::super::documented::DiffraxExample;
use super::super::duration;
use super::super::input::Cells;
use super::super::threads::Threads;
use super::super::typed::dashed;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use flowline::__internal::{
    INPUT, MODEL, OBJECTIVE, OPTIMIZER, OPTIONS, OUTPUT, RUN, SOLVER, TrainOption, Values,
};
use flowline::train::TrainOptions;
use std::path::PathBuf;

/// Headings that `-h` omits.
pub const ADVANCED: [&str; 4] = [MODEL, OBJECTIVE, SOLVER, OPTIMIZER];

/// Duration of a run with `--quick`, in seconds.
const QUICK_S: f64 = 15.0;

const DATA: &str = "\
What to learn:
image.png|jpg|bmp|gif|webp  image; darker pixels are more probable
points.csv|tsv|txt|dat|npy  a table with one point per row (also .csv.gz)
-                           a table on standard input
folder, IDX file (or .gz),  a set of images of equal size
.npy with 3 or 4 axes
moons, 8gaussians, pinwheel, circles, 2spirals, checkerboard,
rings, swissroll            toy densities
[default: a built-in image]";

/// Arguments of `flowline train`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  flowline train cat.png --time-limit 10m
  flowline train points.csv --columns height,weight --quick
  flowline train moons --updates 5000 --out runs/moons")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    #[arg(help = DATA)]
    pub data: Option<PathBuf>,

    /// Columns of a table to learn, by heading or by number from 1 [default: all numeric columns that do not only
    /// count rows]
    #[arg(long, value_name = "A,B", help_heading = INPUT)]
    pub columns: Option<String>,
    #[command(flatten, next_help_heading = INPUT)]
    pub cells: Cells,
    /// For tables: also learn columns that only count rows (id, index, no name)
    #[arg(long, help_heading = INPUT, conflicts_with = "columns")]
    pub keep_counters: bool,
    /// Class of each row or image. For tables: a column of names or numbers; for image sets: whole numbers from
    /// 0, an IDX, .npy or .csv file
    #[arg(long, value_name = "LABELS", help_heading = INPUT)]
    pub labels: Option<PathBuf>,
    /// For tables and image sets: data that select the best weights [default: a random tenth of DATA]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation: Option<PathBuf>,
    /// Class of each image in --validation; required with --labels
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub validation_labels: Option<PathBuf>,
    /// For tables and image sets: data for the final scores, not used in training [default: a random tenth of
    /// DATA]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test: Option<PathBuf>,
    /// Class of each image in --test; required with --labels
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub test_labels: Option<PathBuf>,

    /// First look: the same as --time-limit 15; figures may be coarse
    #[arg(long, help_heading = RUN, conflicts_with_all = ["updates", "time_limit"])]
    pub quick: bool,
    /// TOML file of options; options on the command line take precedence
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub config: Option<PathBuf>,
    #[command(flatten, next_help_heading = RUN)]
    pub threads: Threads,
    /// Continue the run in --out, or begin it if there is none; without a time limit, the result has the bits
    /// of an uninterrupted run
    #[arg(long, help_heading = RUN, conflicts_with = "restart")]
    pub resume: bool,
    /// Start a new run in --out; the files of the old run move to DIR.1, or DIR.2, ... if that exists
    #[arg(long, help_heading = RUN)]
    pub restart: bool,
    /// Print the operations and the memory of an update of each phase, without training
    #[arg(long, help_heading = RUN)]
    pub plan: bool,
    /// Folder of the run [default: runs/ and the name of DATA; -2, -3, ... is added if it exists; to resume
    /// or restart, the last that exists]
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Format of progress on standard error: text, jsonl [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = OUTPUT, hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["text", "jsonl"]).map(|name| name == "jsonl"))]
    pub log_format: Option<bool>,
    /// The last field, because it orders all arguments.
    #[command(flatten)]
    table: TableArgs,
}

/// The arguments of the table of options.
struct TableArgs(TrainOptions);

impl clap::Args for TableArgs {
    /// Adds the arguments of the table, and sorts all arguments by their [`place`].
    fn augment_args(command: Command) -> Command {
        let command = command.args(OPTIONS.iter().map(argument));
        let mut args: Vec<Arg> = command.get_arguments().cloned().collect();
        args.sort_by_key(|arg| place(arg.get_id().as_str()));
        let group = ArgGroup::new("Args").multiple(true).args(args.iter().map(Arg::get_id));
        // Options are numbered from 0; DATA, which is before them, has no number of its own.
        let numbers = std::iter::once(0).chain(0..);
        let mut sorted = args.into_iter().zip(numbers).map(|(arg, i)| arg.display_order(i));
        let command = command.mut_args(|_| sorted.next().expect("invariant: as many as before"));
        command.mut_group("Args", |_| group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for TableArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<TableArgs, clap::Error> {
        let mut args = TableArgs(TrainOptions::default());
        args.update_from_arg_matches(matches).map(|()| args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for &TrainOption { name, values, .. } in OPTIONS {
            let options = &mut self.0;
            let set = match values {
                Values::Whole => matches.get_one::<u64>(name).map(|&x| options.set(name, x)),
                Values::Number | Values::Seconds => {
                    matches.get_one::<f64>(name).map(|&x| options.set(name, x))
                }
                Values::Names(_) | Values::Text => {
                    matches.get_one::<String>(name).map(|text| options.set(name, text.as_str()))
                }
                Values::Flag => matches.get_flag(name).then(|| options.set(name, true)),
            };
            set.transpose().map_err(|e| clap::Error::raw(ErrorKind::ValueValidation, e))?;
        }
        Ok(())
    }
}

/// The argument of an option of the table.
fn argument(option: &TrainOption) -> Arg {
    let TrainOption { name, heading, help, .. } = *option;
    let is_option = |word: &str| OPTIONS.iter().any(|option| option.name == word);
    let arg = Arg::new(name).long(name.replace('_', "-")).help_heading(heading);
    let arg = arg.help(dashed(help.trim_start(), is_option));
    let arg = if option.values == Values::Flag {
        arg.action(ArgAction::SetTrue)
    } else {
        arg.value_name(option.value_name)
    };
    match option.values {
        Values::Whole => arg.value_parser(value_parser!(u64)).allow_negative_numbers(true),
        Values::Number => arg.value_parser(value_parser!(f64)).allow_hyphen_values(true),
        Values::Seconds => arg.value_parser(duration::seconds).allow_hyphen_values(true),
        Values::Names(names) => arg.value_parser(parser(name, names)).hide_possible_values(true),
        Values::Text | Values::Flag => arg,
    }
}

/// The names of an option; those of presets with the example of diffrax.
fn parser(option: &str, names: &[&'static str]) -> PossibleValuesParser {
    let mut values: Vec<PossibleValue> = names.iter().copied().map(PossibleValue::new).collect();
    if option == "preset" {
        // The older name is read because run folders, and so the files of `info --options`, have it.
        let [name, stored] = DiffraxExample::NAMES;
        values.splice(1..1, [PossibleValue::new(name), PossibleValue::new(stored).hide(true)]);
    }
    PossibleValuesParser::new(values)
}

/// Options of the command line, and the option of the table after which the help has them. Others come first.
const AFTER: [(&str, &[&str]); 4] = [
    ("shards", &["quick"]),
    ("preset", &["config"]),
    ("seed", &["threads", "resume", "restart", "plan", "out"]),
    ("plots", &["log_format"]),
];

/// The place of an option in the help: its row in the table from 1, or that of the option before it.
fn place(name: &str) -> (usize, bool) {
    let row = |name: &str| OPTIONS.iter().position(|option| option.name == name).map_or(0, |at| at + 1);
    match AFTER.iter().find(|(_, names)| names.contains(&name)) {
        Some((before, _)) => (row(before), true),
        None => (row(name), false),
    }
}

impl Args {
    /// The library's [`TrainOptions`].
    pub fn options(&self) -> TrainOptions {
        let options = self.table.0.clone();
        let time_limit = options.time_limit.or(self.quick.then_some(QUICK_S));
        TrainOptions { time_limit, ..options }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;
    use std::collections::BTreeSet;

    fn command() -> Command {
        Args::augment_args(Command::new("train"))
    }

    /// An argument of every option with a value: it sets this option, and no other.
    #[test]
    fn every_option_of_the_table_is_read() {
        for option in OPTIONS {
            let text = match option.values {
                Values::Whole => Some("7"),
                Values::Number | Values::Seconds => Some("0.5"),
                Values::Names(names) => names.last().copied(),
                Values::Text => Some("rk4"),
                Values::Flag => None,
            };
            let flag = format!("--{}", option.name.replace('_', "-"));
            let arguments = ["train", &flag].into_iter().chain(text);
            let matches = command().try_get_matches_from(arguments).unwrap();
            let found = <Args as clap::FromArgMatches>::from_arg_matches(&matches).unwrap().options();
            let mut expected = TrainOptions::default();
            match (option.values, text) {
                (Values::Whole, _) => expected.set(option.name, 7_u64).unwrap(),
                (Values::Number | Values::Seconds, _) => expected.set(option.name, 0.5).unwrap(),
                (_, Some(text)) => expected.set(option.name, text).unwrap(),
                (_, None) => expected.set(option.name, true).unwrap(),
            }
            assert_eq!(found, expected, "{flag}");
            assert_ne!(found, TrainOptions::default(), "{flag}");
        }
    }

    /// The names of an argument, as in the tables of the page.
    fn names(arg: &Arg) -> Vec<String> {
        let long = arg.get_long().into_iter().map(|name| format!("--{name}"));
        let mut names: Vec<String> =
            arg.get_short().map(|letter| format!("-{letter}")).into_iter().chain(long).collect();
        let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
        if let (Some([value]), Some(last)) = (value, names.last_mut()) {
            *last = format!("{last} <{value}>");
        }
        names
    }

    #[test]
    fn the_page_of_the_command_line_has_every_option_with_its_names() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/cli.md");
        let page = std::fs::read_to_string(path).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("train\n")).unwrap();
        for heading in [INPUT, MODEL, OBJECTIVE, SOLVER, OPTIMIZER, RUN, OUTPUT] {
            let word = heading.split(' ').next().unwrap();
            let is_start = |line: &&str| line.starts_with(word) && line.ends_with(':');
            let after = section.lines().skip_while(|line| !is_start(line)).skip(2);
            let rows: Vec<&str> = after.take_while(|line| line.starts_with('|')).skip(2).collect();
            let cell = |row: &str| row.split(" | ").next().unwrap().to_owned();
            let spans = |text: &str| -> Vec<String> {
                text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
            };
            let found: BTreeSet<String> = rows.iter().flat_map(|row| spans(&cell(row))).collect();
            let command = command();
            let args = || command.get_arguments().filter(|arg| arg.get_help_heading() == Some(heading));
            let expected: BTreeSet<String> = args().flat_map(names).collect();
            assert_eq!(found, expected, "{heading}");
            for arg in args() {
                let first = &names(arg)[0];
                let row = rows.iter().find(|row| spans(&cell(row)).contains(first)).unwrap();
                let takes_values = arg.get_action().takes_values();
                for value in
                    arg.get_possible_values().iter().filter(|value| takes_values && !value.is_hide_set())
                {
                    assert!(spans(row).iter().any(|span| span == value.get_name()), "{first}: {row}");
                }
            }
        }
    }
}
