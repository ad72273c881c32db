//! The columns of a table, and its rows as they are read.

use super::cells::{Broken, BrokenQuotes, Record, Records};
use super::counters::{counts, is_counter_name};
use super::dialect::{Cells, Dialect, LOOKED_AT, is_heading, lacks_first_name};
use super::value::{Value, has_decimal_comma, is_too_large};
use crate::io::error::Remedy;
use crate::io::{IoError, shortened};
use std::path::Path;

/// The columns of a table.
pub(super) struct Layout {
    pub dialect: Dialect,
    pub has_heading: bool,
    /// The headings; `x1`, `x2`, ... for columns without one.
    pub names: Vec<String>,
    /// Whether the column has a name of its own.
    is_named: Vec<bool>,
}

impl Layout {
    /// The columns of a text, and its rows.
    pub fn of(text: &str, dialect: Dialect) -> (Layout, Records<'_>) {
        let mut rows = Records::new(text, dialect.delimiter);
        let all = rows.clone();
        let looked_at: Vec<Record> = rows.clone().take(LOOKED_AT + 1).map_while(Result::ok).collect();
        let first = looked_at.first();
        let has_heading = first.is_some_and(is_heading);
        let mut headings: Vec<String> = match first {
            Some(first) if has_heading => {
                first.cells.iter().map(|cell| cell.text.trim().to_owned()).collect()
            }
            first => vec![String::new(); first.map_or(0, |first| first.cells.len())],
        };
        if lacks_first_name(&looked_at, dialect.delimiter) {
            headings.insert(0, String::new());
        }
        let is_named = headings.iter().map(|name| !name.is_empty()).collect();
        let named = |(i, name): (usize, String)| if name.is_empty() { format!("x{}", i + 1) } else { name };
        let names = headings.into_iter().enumerate().map(named).collect();
        let rows = if has_heading {
            rows.next();
            rows
        } else {
            all
        };
        (Layout { dialect, has_heading, names, is_named }, rows)
    }

    /// The index of a column, by its heading or by its number from 1.
    ///
    /// # Errors
    /// [`IoError::NoColumn`].
    pub fn place(&self, path: &Path, asked: &str) -> Result<usize, IoError> {
        let number = || asked.parse::<usize>().ok()?.checked_sub(1).filter(|&place| place < self.names.len());
        let place = self.names.iter().position(|name| name == asked).or_else(number);
        place.ok_or_else(|| IoError::no_column(path, asked, &self.names))
    }

    /// For each column, whether it has text rather than numbers in the first rows.
    pub fn text_columns(&self, text: &str) -> Vec<bool> {
        let rows = Records::new(text, self.dialect.delimiter).skip(usize::from(self.has_heading));
        let rows: Vec<Record> = rows.take(LOOKED_AT).map_while(Result::ok).collect();
        let mut found = Cells::of_columns(&rows, |cell| Value::of(cell, self.dialect.decimal).is_number());
        found.resize(self.names.len(), Cells::default());
        found.iter().map(|column| !column.is_numeric()).collect()
    }

    /// The column in messages, by its heading or by its number.
    fn column(&self, place: usize) -> String {
        match self.is_named.get(place) {
            Some(true) => format!("column {}", shortened(&self.names[place])),
            _ => format!("column {}", place + 1),
        }
    }

    pub fn broken(&self, path: &Path, broken: Broken) -> IoError {
        let column = self.column(broken.column);
        let reason = match broken.reason {
            BrokenQuotes::Open => format!("{column}: the quotes of the cell do not close"),
            BrokenQuotes::TextAfter => {
                format!("{column}: text follows the quotes of the cell; write quotes within a cell twice")
            }
        };
        IoError::Csv { path: path.to_owned(), line: broken.line, reason, remedy: None }
    }
}

/// The rows read so far. Missing cells are NaN, and only they.
pub(super) struct Reading<'a> {
    path: &'a Path,
    layout: &'a Layout,
    pub places: Vec<usize>,
    pub data: Vec<f64>,
    pub lines: Vec<usize>,
    label: Option<usize>,
    /// The label of each row, `None` if it is missing; empty without a column of labels.
    pub labels: Vec<Option<String>>,
    /// For each column of the file, the text of its first missing cell.
    missing: Vec<Option<String>>,
}

impl<'a> Reading<'a> {
    pub fn new(path: &'a Path, layout: &'a Layout, places: Vec<usize>, label: Option<usize>) -> Reading<'a> {
        let missing = vec![None; layout.names.len()];
        let (data, lines, labels) = (Vec::new(), Vec::new(), Vec::new());
        Reading { path, layout, places, data, lines, label, labels, missing }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row has another number of cells, or a cell is text.
    pub fn add(&mut self, record: &Record) -> Result<(), IoError> {
        let refused = |reason, remedy| {
            Err(IoError::Csv { path: self.path.to_owned(), line: record.line, reason, remedy })
        };
        let (found, width) = (record.cells.len(), self.layout.names.len());
        if found != width {
            let noun = if found == 1 { "column" } else { "columns" };
            return refused(
                format!("{found} {noun} instead of {width}; each line needs the same number of cells"),
                None,
            );
        }
        for &place in &self.places {
            let cell = &record.cells[place].text;
            self.data.push(match Value::of(cell, self.layout.dialect.decimal) {
                Value::Number(x) => x,
                Value::Missing => {
                    self.missing[place].get_or_insert_with(|| cell.trim().to_owned());
                    f64::NAN
                }
                Value::Text => {
                    let column = self.layout.column(place);
                    let (why, remedy) = why_text(cell.trim(), self.layout.dialect);
                    let remedy = remedy.or((self.layout.names.len() > 1).then_some(Remedy::Columns));
                    return refused(format!("{column}: \"{}\" {why}", shortened(cell.trim())), remedy);
                }
            });
        }
        if let Some(place) = self.label {
            let cell = &record.cells[place].text;
            self.labels.push(match Value::of(cell, self.layout.dialect.decimal) {
                Value::Number(x) => Some(x.to_string()),
                Value::Text => Some(cell.clone().into_owned()),
                Value::Missing => {
                    self.missing[place].get_or_insert_with(|| cell.trim().to_owned());
                    None
                }
            });
        }
        self.lines.push(record.line);
        Ok(())
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.data.chunks_exact(self.places.len().max(1))
    }

    /// Leaves out the columns that count rows, unless none would remain. Returns their names.
    pub fn take_counters(&mut self) -> Vec<String> {
        let width = self.places.len();
        let is_counter = |i: usize| {
            let place = self.places[i];
            let name = if self.layout.is_named[place] { &self.layout.names[place][..] } else { "" };
            is_counter_name(name) && counts(self.data.iter().skip(i).step_by(width).copied())
        };
        let counters: Vec<bool> = (0..width).map(|i| self.layout.has_heading && is_counter(i)).collect();
        if !counters.contains(&true) || !counters.contains(&false) {
            return Vec::new();
        }
        let kept = |row: &[f64]| -> Vec<f64> {
            row.iter().zip(&counters).filter(|(_, counter)| !**counter).map(|(x, _)| *x).collect()
        };
        self.data = self.rows().flat_map(kept).collect();
        let all = std::mem::take(&mut self.places).into_iter().zip(counters);
        let (counters, others): (Vec<_>, Vec<_>) = all.partition(|(_, counter)| *counter);
        self.places = others.into_iter().map(|(place, _)| place).collect();
        counters.into_iter().map(|(place, _)| self.layout.names[place].clone()).collect()
    }

    /// For each row, whether no cell is missing.
    fn is_whole(&self) -> Vec<bool> {
        let width = self.places.len();
        let has_numbers = |row: usize| !self.data[row * width..(row + 1) * width].iter().any(|x| x.is_nan());
        let has_label = |row: usize| self.labels.get(row).is_none_or(Option::is_some);
        (0..self.lines.len()).map(|row| has_numbers(row) && has_label(row)).collect()
    }

    /// Leaves out the rows with a missing cell. Returns their number.
    pub fn drop_missing(&mut self) -> usize {
        let is_whole = self.is_whole();
        let before = is_whole.len();
        let rows = self.rows().zip(&is_whole);
        self.data = rows.filter(|(_, whole)| **whole).flat_map(|(row, _)| row).copied().collect();
        let mut whole = is_whole.iter();
        self.lines.retain(|_| *whole.next().expect("invariant: one per row"));
        let mut whole = is_whole.iter();
        self.labels.retain(|_| *whole.next().expect("invariant: one per row"));
        before - self.lines.len()
    }

    /// Refuses rows with a missing cell. Returns 0, the number of rows left out.
    ///
    /// # Errors
    /// A cell is missing.
    pub fn refuse_missing(&self) -> Result<usize, IoError> {
        let is_whole = self.is_whole();
        let Some(row) = is_whole.iter().position(|whole| !whole) else { return Ok(0) };
        let width = self.places.len();
        let number = self.data[row * width..(row + 1) * width].iter().position(|x| x.is_nan());
        let place = number.map_or(self.label, |i| Some(self.places[i]));
        Err(self.missing_cell(row, place.expect("invariant: a cell is missing"), &is_whole))
    }

    /// Refuses rows without a label. Returns 0, the number of rows left out.
    ///
    /// # Errors
    /// A label is missing.
    pub fn refuse_unlabeled(&self) -> Result<usize, IoError> {
        let is_whole: Vec<bool> = self.labels.iter().map(Option::is_some).collect();
        match (is_whole.iter().position(|whole| !whole), self.label) {
            (Some(row), Some(place)) => Err(self.missing_cell(row, place, &is_whole)),
            _ => Ok(0),
        }
    }

    fn missing_cell(&self, row: usize, place: usize, is_whole: &[bool]) -> IoError {
        let column = self.layout.column(place);
        let cell = match self.missing[place].as_deref() {
            None | Some("") => "the cell is empty".to_owned(),
            Some(cell) => format!("\"{cell}\" stands for a missing value"),
        };
        let odd = is_whole.iter().filter(|whole| !**whole).count();
        let (of, have) = (is_whole.len(), if odd == 1 { "has" } else { "have" });
        let reason = format!("{column}: {cell}; {odd} of {of} rows {have} missing cells");
        let remedy = Some(Remedy::DropMissing);
        IoError::Csv { path: self.path.to_owned(), line: self.lines[row], reason, remedy }
    }
}

/// Why a cell is no number, and a likely remedy.
fn why_text(cell: &str, Dialect { delimiter, decimal }: Dialect) -> (&'static str, Option<Remedy>) {
    let numbers = |separator: char| {
        cell.split(separator).count() > 1
            && cell.split(separator).all(|part| part.trim().parse::<f64>().is_ok())
    };
    let separator = || [';', '\t', ' '].into_iter().find(|&c| c != delimiter && numbers(c));
    match () {
        () if cell.parse().is_ok_and(|x| is_too_large(cell, x)) => {
            ("is beyond the range of 64-bit numbers", None)
        }
        () if decimal == '.' && has_decimal_comma(cell) => ("is not a number", Some(Remedy::Decimal(','))),
        () if decimal != '.' && Value::of(cell, '.').is_number() => {
            ("is not a number", Some(Remedy::Decimal('.')))
        }
        () => ("is not a number", separator().map(Remedy::Delimiter)),
    }
}
