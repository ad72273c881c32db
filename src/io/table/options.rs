//! Options for reading a table of numbers from text: columns, delimiter, decimal mark, missing cells.
//!
//! The delimiter, the decimal mark and the numeric columns are determined from the first 1,000 rows. Then all rows are
//! read.

use super::cells::{Broken, BrokenQuotes, Record, Records};
use super::counters::{counts, is_counter_name};
use super::dialect::{Ambiguous, Cells, Dialect, LOOKED_AT, is_heading, lacks_first_name};
use super::value::{Value, has_decimal_comma, is_too_large};
use super::{Table, unpacked};
use crate::io::error::Remedy;
use crate::io::{IoError, listed, shortened};
use std::path::{Path, PathBuf};

/// Which columns of a table to read, how its cells are written, and what happens to missing cells.
///
/// # Examples
/// ```
/// use flowline::io::CsvOptions;
/// let text = b"id;name;height;weight\n1;ann;1,7;60\n2;bob;NA;75\n3;eve;1,6;55\n";
/// let options = CsvOptions::default().drop_missing();
/// let table = options.clone().columns(["weight", "3"]).parse("people.csv", text)?;
/// assert_eq!((table.columns, table.data), (vec!["weight".into(), "height".into()], vec![60.0, 1.7, 55.0, 1.6]));
/// assert_eq!(table.num_dropped, 1);
/// let numeric = options.numeric_only().skip_counters().parse("people.csv", text)?;
/// assert_eq!((numeric.columns.len(), numeric.left_out, numeric.counters), (2, vec!["name".into()], vec!["id".into()]));
/// # Ok::<(), flowline::io::IoError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing before `read` or `parse`"]
pub struct CsvOptions {
    columns: Vec<String>,
    /// Columns to read if none are chosen and the heading has them all.
    like: Vec<String>,
    delimiter: Option<char>,
    decimal: Option<char>,
    numeric_only: bool,
    skip_counters: bool,
    missing: Missing,
}

/// What happens to a missing cell of a column that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Missing {
    #[default]
    Refuse,
    Drop,
    Keep,
}

impl CsvOptions {
    /// The columns to read, in this order, each by its heading or by its number from 1. The default is all columns.
    pub fn columns<S: Into<String>>(self, columns: impl IntoIterator<Item = S>) -> Self {
        CsvOptions { columns: columns.into_iter().map(Into::into).collect(), ..self }
    }

    /// The delimiter of cells; a space stands for any number of spaces and tabs. The default is found as in
    /// [`read_csv`](crate::io::read_csv).
    pub fn delimiter(self, delimiter: char) -> Self {
        CsvOptions { delimiter: Some(delimiter), ..self }
    }

    /// The decimal mark of numbers: a point or a comma. The default is a comma if it is not the delimiter and numbers of
    /// the first 1,000 rows have one, otherwise a point.
    pub fn decimal(self, decimal: char) -> Self {
        CsvOptions { decimal: Some(decimal), ..self }
    }

    /// Leaves out columns in which fewer than half of the cells that are not missing in the first 1,000 rows are numbers,
    /// unless columns are chosen or no column would remain. [`Table::left_out`] names the columns left out.
    pub fn numeric_only(self) -> Self {
        CsvOptions { numeric_only: true, ..self }
    }

    /// Leaves out columns that count rows, unless columns are chosen or no column would remain. [`Table::counters`] names
    /// the columns left out.
    ///
    /// A column counts rows if the table has a heading and at least three rows, each cell is a whole number greater by one
    /// than the cell above it, and the name of the column is empty or, without regard to case and punctuation, one of
    /// `id`, `index`, `idx`, `no`, `nr`, `num`, `number`, `row`, `rows`, `rowid`, `rownum`, `rownumber`, `rowno`,
    /// `rowname`, `rownames`, `obs`, `observation`, `case`, `record`, `unnamed`, `unnamed0` (with any digits), or its last
    /// word is `id` or `index` (`person_id`, `PassengerId`).
    pub fn skip_counters(self) -> Self {
        CsvOptions { skip_counters: true, ..self }
    }

    /// Leaves out rows that have a missing cell in a column that is read. [`Table::num_dropped`] counts them.
    ///
    /// A cell is missing if it is empty or, in any case, one of `NA`, `N/A`, `#N/A`, `#NA`, `<NA>`, `NaN`, `-NaN`, `null`,
    /// `none`, `nil`, `?`, `.`, `-`, `--`, `1.#QNAN`, `-1.#IND`.
    pub fn drop_missing(self) -> Self {
        CsvOptions { missing: Missing::Drop, ..self }
    }

    /// Reads missing cells as NaN, for example for [`fill_missing`](crate::ode::fill_missing).
    pub fn keep_missing(self) -> Self {
        CsvOptions { missing: Missing::Keep, ..self }
    }

    /// If no columns are chosen and the heading has all of these, the columns to read, in this order: those of a run.
    #[doc(hidden)]
    pub fn like(self, columns: &[String]) -> Self {
        CsvOptions { like: columns.to_vec(), ..self }
    }

    /// Whether columns are chosen by name or number.
    pub fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`read_csv`](crate::io::read_csv); [`IoError::NoColumn`] or [`IoError::ColumnTwice`] for the columns.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Table, IoError> {
        let path = path.as_ref();
        self.parse(path, &crate::io::read(path)?)
    }

    /// Parses the bytes of a file; messages call it `path`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(&self, path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Table, IoError> {
        let path = path.into();
        let bytes = unpacked(&path, bytes)?;
        let text = text_of(&path, &bytes)?;
        let ambiguous = |Ambiguous { line, reason, remedy }| IoError::Csv {
            path: path.clone(),
            line,
            reason,
            remedy: Some(remedy),
        };
        let dialect = Dialect::of(text, self.delimiter, self.decimal).map_err(ambiguous)?;
        let (layout, rows) = Layout::of(text, dialect);
        if let (true, Some(Err(broken))) = (layout.names.is_empty(), rows.clone().next()) {
            return Err(layout.broken(&path, broken));
        }
        let chosen = self.chosen(&path, &layout)?;
        let skip_counters = self.skip_counters && chosen.is_none();
        let (places, left_out) = match chosen {
            Some(places) => (places, Vec::new()),
            None => self.all(text, &layout),
        };
        let mut reading = Reading::new(&path, &layout, places);
        for record in rows {
            reading.add(&record.map_err(|broken| layout.broken(&path, broken))?)?;
        }
        let counters = if skip_counters { reading.take_counters() } else { Vec::new() };
        let num_dropped = match self.missing {
            Missing::Keep => 0,
            Missing::Drop => reading.drop_missing(),
            Missing::Refuse => reading.refuse_missing()?,
        };
        let Reading { places, data, lines, .. } = reading;
        let columns = places.iter().map(|&place| layout.names[place].clone()).collect();
        let has_heading = layout.has_heading;
        Ok(Table { path, columns, has_heading, data, lines, left_out, counters, num_dropped })
    }

    /// Indices of the columns, if none are chosen, and the names of the columns of text that are left out.
    fn all(&self, text: &str, layout: &Layout) -> (Vec<usize>, Vec<String>) {
        let width = layout.names.len();
        let is_text = if self.numeric_only { layout.text_columns(text) } else { vec![false; width] };
        // If no column is numeric, the delimiter is probably wrong. All columns are then read, so that the error of the
        // first row says so.
        let is_text = if is_text.contains(&false) { is_text } else { vec![false; width] };
        let left_out = (0..width).filter(|&place| is_text[place]).map(|place| layout.names[place].clone());
        ((0..width).filter(|&place| !is_text[place]).collect(), left_out.collect())
    }

    /// Indices of the chosen columns, or of those of a run, if the heading has them.
    fn chosen(&self, path: &Path, layout: &Layout) -> Result<Option<Vec<usize>>, IoError> {
        let names = &layout.names;
        if !self.has_columns() {
            let place = |asked: &String| names.iter().position(|name| name == asked);
            let places: Option<Vec<usize>> = self.like.iter().map(place).collect();
            let is_like =
                |places: &Vec<usize>| layout.has_heading && !places.is_empty() && are_different(places);
            return Ok(places.filter(is_like));
        }
        let mut places = Vec::new();
        for asked in &self.columns {
            let number = || asked.parse::<usize>().ok()?.checked_sub(1).filter(|&place| place < names.len());
            let place = names.iter().position(|name| name == asked).or_else(number);
            let Some(place) = place else {
                let (name, columns) = (asked.clone(), listed(names, "columns"));
                return Err(IoError::NoColumn { path: path.to_owned(), name, columns });
            };
            if places.contains(&place) {
                return Err(IoError::ColumnTwice { path: path.to_owned(), name: names[place].clone() });
            }
            places.push(place);
        }
        Ok(Some(places))
    }
}

fn are_different(places: &[usize]) -> bool {
    (1..places.len()).all(|i| !places[..i].contains(&places[i]))
}

/// The text of a file without a byte order mark, which spreadsheets write before the first cell.
fn text_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, IoError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].split(|&b| b == b'\n').count();
        let reason = format!(
            "byte {} of the file is not UTF-8 text; save the table in the encoding UTF-8",
            e.valid_up_to() + 1
        );
        IoError::Csv { path: path.to_owned(), line, reason, remedy: None }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The columns of a table.
struct Layout {
    dialect: Dialect,
    has_heading: bool,
    /// The headings; `x1`, `x2`, ... for columns without one.
    names: Vec<String>,
    /// Whether the column has a name of its own.
    is_named: Vec<bool>,
}

impl Layout {
    /// The columns of a text, and its rows.
    fn of(text: &str, dialect: Dialect) -> (Layout, Records<'_>) {
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
        if lacks_first_name(&looked_at) {
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

    /// For each column, whether it has text rather than numbers in the first rows.
    fn text_columns(&self, text: &str) -> Vec<bool> {
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

    fn broken(&self, path: &Path, broken: Broken) -> IoError {
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
struct Reading<'a> {
    path: &'a Path,
    layout: &'a Layout,
    places: Vec<usize>,
    data: Vec<f64>,
    lines: Vec<usize>,
    /// For each column of the file, the text of its first missing cell.
    missing: Vec<Option<String>>,
}

impl<'a> Reading<'a> {
    fn new(path: &'a Path, layout: &'a Layout, places: Vec<usize>) -> Reading<'a> {
        let missing = vec![None; layout.names.len()];
        Reading { path, layout, places, data: Vec::new(), lines: Vec::new(), missing }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row has another number of cells, or a cell is text.
    fn add(&mut self, record: &Record) -> Result<(), IoError> {
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
                    return refused(format!("{column}: \"{}\" {why}", shortened(cell.trim())), remedy);
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
    fn take_counters(&mut self) -> Vec<String> {
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

    /// Leaves out the rows with a missing cell. Returns their number.
    fn drop_missing(&mut self) -> usize {
        let is_whole: Vec<bool> = self.rows().map(|row| !row.iter().any(|x| x.is_nan())).collect();
        let before = is_whole.len();
        let (data, mut whole) = (self.rows().zip(&is_whole), is_whole.iter());
        self.data = data.filter(|(_, whole)| **whole).flat_map(|(row, _)| row).copied().collect();
        self.lines.retain(|_| *whole.next().expect("invariant: a line per row"));
        before - self.lines.len()
    }

    /// Refuses rows with a missing cell. Returns 0, the number of rows left out.
    ///
    /// # Errors
    /// A cell is missing.
    fn refuse_missing(&self) -> Result<usize, IoError> {
        let Some(at) = self.data.iter().position(|x| x.is_nan()) else { return Ok(0) };
        let (row, place) = (at / self.places.len(), self.places[at % self.places.len()]);
        let column = self.layout.column(place);
        let cell = match self.missing[place].as_deref() {
            None | Some("") => "the cell is empty".to_owned(),
            Some(cell) => format!("\"{cell}\" stands for a missing value"),
        };
        let odd = self.rows().filter(|row| row.iter().any(|x| x.is_nan())).count();
        let (of, have) = (self.lines.len(), if odd == 1 { "has" } else { "have" });
        let reason = format!("{column}: {cell}; {odd} of {of} rows {have} missing cells");
        let remedy = Some(Remedy::DropMissing);
        Err(IoError::Csv { path: self.path.to_owned(), line: self.lines[row], reason, remedy })
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
