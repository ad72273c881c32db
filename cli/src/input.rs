//! Tables of points, from a file or standard input, with chosen columns.

use super::error::{CliError, Result};
use super::say::note;
use flowline::__internal::{listed, shortened};
use flowline::io::{CsvOptions, Table};
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

/// The options `--columns` and `--delimiter` of a table.
pub fn options(columns: Option<&str>, delimiter: Option<Delimiter>) -> Result<CsvOptions> {
    let options = CsvOptions::default().numeric_only();
    let options = delimiter.map_or(options.clone(), |Delimiter(c)| options.delimiter(c));
    let Some(columns) = columns else { return Ok(options) };
    let names: Vec<&str> = columns.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(CliError::Usage(format!(
            "--columns={columns}: a name is empty; give headings or numbers from 1, separated by commas"
        )));
    }
    Ok(options.columns(names))
}

/// Whether a path is standard input or has the extension of a table.
pub fn is_table(path: &Path) -> bool {
    let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    path == Path::new(STANDARD) || is("csv") || is("tsv")
}

/// Reads a table. Without `--columns`, reads the columns `like` if the heading has them all, otherwise all numeric
/// columns.
///
/// # Errors
/// A file that cannot be read, a line that is not a row of numbers, a column that does not exist.
pub fn read(path: &Path, options: &CsvOptions, like: &[String]) -> Result<Table> {
    let (name, bytes) = if path == Path::new(STANDARD) {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|source| flowline::io::IoError::Read { path: STDIN.into(), source })?;
        (Path::new(STDIN), bytes)
    } else {
        let bytes = std::fs::read(path);
        (path, bytes.map_err(|source| flowline::io::IoError::Read { path: path.to_owned(), source })?)
    };
    let table = options.parse(name, &bytes)?;
    let is_there = |column: &String| table.columns.contains(column);
    if !options.has_columns()
        && table.has_heading
        && table.columns != like
        && !like.is_empty()
        && like.iter().all(is_there)
    {
        return Ok(options.clone().columns(like).parse(name, &bytes)?);
    }
    Ok(table)
}

/// Prints which columns are learned. Prints nothing if `--columns` selects them, or if no column was left out and the
/// table has no heading or only one column.
pub fn note_columns(table: &Table, options: &CsvOptions) {
    let is_plain = table.left_out.is_empty() && (!table.has_heading || table.columns.len() == 1);
    if options.has_columns() || is_plain {
        return;
    }
    let left_out = match &table.left_out[..] {
        [] => String::new(),
        names => format!("; left out, not numbers: {}", listed(names, "columns")),
    };
    let columns = listed(&table.columns, "columns");
    note(&format!("{}: columns {columns}{left_out}", table.path.display()));
    if let Some(i) = counter(table) {
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
