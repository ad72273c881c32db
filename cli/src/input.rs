//! Tables of points, from a file or standard input, with chosen columns.

use super::error::{CliError, Result};
use super::say::note;
use super::table::grouped;
use flowline::__internal::{Remedy, is_table_name, listed, meant, shortened};
use flowline::io::{CsvOptions, IoError, Table};
use flowline::train::TrainedFlow;
use std::io::Read;
use std::path::Path;

/// Stands for standard input, or standard output.
pub const STANDARD: &str = "-";
/// The name of standard input in messages.
const STDIN: &str = "stdin";

/// The largest number of columns in an option that a message proposes.
const COPIED: usize = 12;

/// The separator between the cells of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter(pub char);

/// Reads `--delimiter`.
pub fn delimiter(text: &str) -> std::result::Result<Delimiter, String> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok(Delimiter('\t')),
        ("space", ..) => Ok(Delimiter(' ')),
        (_, Some(c), None) if !(c.is_alphanumeric() || "+-.\"".contains(c)) => Ok(Delimiter(c)),
        _ => Err("give one character (no letter, digit, quote, +, - or .), or tab or space".to_owned()),
    }
}

/// Reads `--decimal`.
pub fn decimal(text: &str) -> std::result::Result<char, String> {
    match text {
        "." | "point" => Ok('.'),
        "," | "comma" => Ok(','),
        _ => Err("give . or ,".to_owned()),
    }
}

/// How a table is read: options of every command that reads one.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Cells {
    /// For tables: separator of the columns, a character, tab or space [default: guessed]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<Delimiter>,
    /// For tables: decimal mark of the numbers, . or , [default: found]
    #[arg(long, value_name = "CHAR", value_parser = decimal)]
    decimal: Option<char>,
    /// For tables: leave out rows with a missing cell (empty, NA, NaN, null, ?) in a column that is used
    #[arg(long)]
    drop_missing: bool,
}

/// The options of a table with the column of labels, if there is one.
pub fn with_labels(options: CsvOptions, labels: Option<&Path>) -> CsvOptions {
    labels.map_or(options.clone(), |column| options.labels(column.to_string_lossy()))
}

/// The number of a class of a run: for a table by its name, for image sets a whole number from 0.
///
/// # Errors
/// A table has no class of this name, or the text is no number.
pub fn class(learned: &TrainedFlow, label: &str) -> Result<usize> {
    let names = learned.class_names();
    let place = names.iter().position(|name| name == label);
    match place {
        Some(class) => Ok(class),
        None if !names.is_empty() => {
            let near =
                meant(label, names).map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"));
            Err(CliError::Usage(format!(
                "--label={label}: this run has no such class{near}; its classes are {}",
                listed(names, "classes")
            )))
        }
        None if learned.header.frames.images.is_none() => Err(CliError::Usage(format!(
            "--label={label}: this run was trained without classes; leave --label out"
        ))),
        None => label.parse().map_err(|_| {
            CliError::Usage(format!("--label={label}: give the number of a class, a whole number from 0"))
        }),
    }
}

/// Refuses a run on a table with classes if none is chosen. `remedy` says how to choose.
///
/// # Errors
/// [`CliError::Usage`].
pub fn check_chosen(learned: &TrainedFlow, is_chosen: bool, remedy: &str) -> Result<()> {
    let names = learned.class_names();
    if is_chosen || names.is_empty() {
        return Ok(());
    }
    Err(CliError::Usage(format!("this run has the classes {}; {remedy}", listed(names, "classes"))))
}

/// The options of a table: `--columns` and those of its cells.
pub fn options(columns: Option<&str>, cells: Cells) -> Result<CsvOptions> {
    let mut options = CsvOptions::default().numeric_only();
    if let Some(Delimiter(c)) = cells.delimiter {
        options = options.delimiter(c);
    }
    if let Some(c) = cells.decimal {
        options = options.decimal(c);
    }
    if cells.drop_missing {
        options = options.drop_missing();
    }
    let Some(columns) = columns else { return Ok(options) };
    let names: Vec<&str> = columns.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(CliError::Usage(format!(
            "--columns={columns}: a name is empty; give headings or numbers from 1, separated by commas"
        )));
    }
    Ok(options.columns(names))
}

/// The first of the options of tables that is given, and its value.
pub fn of_tables(columns: Option<&String>, cells: Cells) -> Option<(&'static str, String)> {
    let table = [
        ("columns", columns.cloned()),
        ("delimiter", cells.delimiter.map(|Delimiter(c)| c.to_string())),
        ("decimal", cells.decimal.map(String::from)),
        ("drop_missing", cells.drop_missing.then(|| "true".to_owned())),
    ];
    table.into_iter().find_map(|(option, value)| Some((option, value?)))
}

/// Refuses a table whose heading lacks a column of the run, unless `--columns` chooses others: columns with other names
/// mean something else, even if there are as many. Columns that no heading named (`x1`, `x2` and so on, or x and y) are taken
/// in their order.
///
/// # Errors
/// The first column that is not there.
pub fn check_names(table: &Table, options: &CsvOptions, columns: &[String]) -> Result<()> {
    let is_given = |name: &String| match name.strip_prefix('x') {
        Some(rest) => !rest.is_empty() && rest.parse::<usize>().is_err(),
        None => name != "y",
    };
    let is_named = columns.iter().any(is_given);
    let there: Vec<&String> = table.columns.iter().chain(&table.left_out).collect();
    let missing = columns.iter().find(|name| !there.contains(name));
    let Some(name) = missing.filter(|_| table.has_heading && is_named && !options.has_columns()) else {
        return Ok(());
    };
    let there = listed(&there, "columns");
    let reason = format!("no column \"{}\"; the columns are {there}; choose with --columns", shortened(name));
    Err(IoError::Csv { path: table.path.clone(), line: 1, reason, remedy: None }.into())
}

/// What may help to read a table.
pub fn remedy(remedy: Remedy) -> String {
    match remedy {
        Remedy::Delimiter(' ') => "if spaces delimit the cells, choose --delimiter space".to_owned(),
        Remedy::Delimiter('\t') => "if tabs delimit the cells, choose --delimiter tab".to_owned(),
        Remedy::Delimiter(c) => format!("if {c:?} delimits the cells, choose --delimiter {c:?}"),
        Remedy::Delimiters => "choose one with --delimiter".to_owned(),
        Remedy::Decimal(c) => format!("if {c:?} is the decimal mark, choose --decimal {c}"),
        Remedy::Decimals => "choose the decimal mark with --decimal".to_owned(),
        Remedy::Headings => remedy.to_string(),
        Remedy::Columns => "correct the cell, or choose the other columns with --columns".to_owned(),
        Remedy::DropMissing => {
            "leave such rows out with --drop-missing, or choose other columns with --columns".to_owned()
        }
    }
}

/// Whether a path is standard input or has the name of a table.
pub fn is_table(path: &Path) -> bool {
    path == Path::new(STANDARD) || is_table_name(path)
}

/// Reads a table. Without `--columns`, reads the columns `like` if the heading has them all, otherwise all numeric
/// columns.
///
/// # Errors
/// A file that cannot be read, a line that is not a row of numbers, a column that does not exist.
pub fn read(path: &Path, options: &CsvOptions, like: &[String]) -> Result<Table> {
    let options = options.clone().like(like);
    if path != Path::new(STANDARD) {
        return Ok(options.read(path)?);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|source| IoError::Read { path: STDIN.into(), source })?;
    Ok(options.parse(STDIN, &bytes)?)
}

/// Prints how many rows were left out because of missing cells.
pub fn note_dropped(table: &Table) {
    let [dropped, all] =
        [table.num_dropped, table.num_dropped + table.lines.len()].map(|n| grouped(n as u64));
    if table.num_dropped > 0 {
        note(&format!("{}: {dropped} of {all} rows left out, cells are missing", table.path.display()));
    }
}

/// Prints which columns are learned. Prints nothing if `--columns` selects them, or if no column was left out and the
/// table has no heading or only one column.
pub fn note_columns(table: &Table, options: &CsvOptions, keeps_counters: bool) {
    let is_all = table.left_out.is_empty() && table.counters.is_empty();
    if options.has_columns() || is_all && (!table.has_heading || table.columns.len() == 1) {
        return;
    }
    let left_out = |why: &str, names: &[String], remedy: &str| match names {
        [] => String::new(),
        names => format!("; left out, {why}: {}{remedy}", listed(names, "columns")),
    };
    let columns = listed(&table.columns, "columns");
    let texts = left_out("not numbers", &table.left_out, "");
    let counters = left_out("count rows", &table.counters, " (--keep-counters keeps them)");
    note(&format!("{}: columns {columns}{texts}{counters}", table.path.display()));
    if let Some(i) = counter(table).filter(|_| !keeps_counters) {
        let name = shortened(&table.columns[i]);
        let others: Vec<&str> =
            table.columns.iter().filter(|name| **name != table.columns[i]).map(String::as_str).collect();
        let remedy = if others.len() <= COPIED {
            format!("to leave it out: --columns {}", others.join(","))
        } else {
            "to leave it out, name the others with --columns".to_owned()
        };
        note(&format!("warning: column {name} counts rows; {remedy}"));
    }
}

/// The first column whose value rises by 1 from row to row, in a table of several columns and at least three rows.
fn counter(table: &Table) -> Option<usize> {
    let width = table.columns.len();
    let column = |i: usize| table.data.iter().skip(i).step_by(width).copied();
    let counts = |i: &usize| column(*i).zip(column(*i).skip(1)).all(|(a, b)| b == a + 1.0);
    (0..width).filter(|_| width > 1 && table.lines.len() > 2).find(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws 2,000 runs and tables: columns with names, `x1` and so on, or x and y; headings with all columns of the run in any
    /// order and others, or with one of them renamed, or none; with and without `--columns`.
    #[test]
    fn a_heading_without_a_column_that_the_run_named_is_refused() {
        let mut state = 3_u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut counts = [0; 2];
        for _ in 0..2_000 {
            let n = 1 + below(4);
            let (is_named, run): (bool, Vec<String>) = match below(4) {
                0 => (false, (1..=n).map(|i| format!("x{}", 3 * i)).collect()),
                1 => (false, vec!["x".to_owned(), "y".to_owned()]),
                2 => (true, (0..n).map(|i| ["y2", "xa", "length in m", "y"][i].to_owned()).collect()),
                _ => (true, (0..n).map(|i| format!("c{i}")).collect()),
            };
            let mut columns = run.clone();
            columns.extend((0..below(3)).map(|i| format!("other {i}")));
            let at = below(columns.len());
            columns.rotate_left(at);
            let renamed = Some(below(run.len())).filter(|_| below(2) == 0);
            if let Some(column) = renamed {
                let place = columns.iter().position(|name| *name == run[column]).unwrap();
                columns[place].push('!');
            }
            let left_out = columns.split_off(columns.len() - below(columns.len()));
            let (has_heading, is_chosen) = (below(4) > 0, below(4) == 0);
            let table = Table { has_heading, columns, left_out, ..Table::default() };
            let options =
                if is_chosen { CsvOptions::default().columns(["a"]) } else { CsvOptions::default() };
            let found = check_names(&table, &options, &run);
            match renamed.filter(|_| has_heading && is_named && !is_chosen) {
                None => assert!(found.is_ok(), "{run:?} {table:?}"),
                Some(column) => {
                    let message = found.unwrap_err().to_string();
                    assert!(message.contains(&format!("no column \"{}\"", run[column])), "{message}");
                }
            }
            counts[usize::from(renamed.is_some() && has_heading && is_named && !is_chosen)] += 1;
        }
        assert!(counts.iter().all(|&count| count > 200), "{counts:?}");
    }

    #[test]
    fn delimiters_are_characters_or_names() {
        let of = |text| delimiter(text).ok().map(|Delimiter(c)| c);
        assert_eq!(
            [";", "tab", "\\t", "space", "|"].map(of),
            [Some(';'), Some('\t'), Some('\t'), Some(' '), Some('|')]
        );
        assert_eq!(["", "5", "-", "ab"].map(of), [None; 4]);
    }

    #[test]
    fn a_column_that_counts_rows_is_found() {
        let table = |text: &str| CsvOptions::default().parse("p.csv", text.as_bytes()).unwrap();
        assert_eq!(counter(&table("x,id\n5,7\n3,8\n4,9\n")), Some(1));
        assert_eq!(counter(&table("x,id\n5,7\n3,8\n4,8\n")), None);
        assert_eq!(counter(&table("id\n1\n2\n3\n")), None);
    }
}
