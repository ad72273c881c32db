//! Options for reading a table of numbers from text: columns, delimiter, decimal mark, missing cells.
//!
//! The delimiter, the decimal mark and the numeric columns are determined from the first 1,000 rows. Then all rows are
//! read.

use super::dialect::{Ambiguous, Dialect};
use super::reading::{Layout, Reading};
use super::{Table, unpacked};
use crate::io::IoError;
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
    labels: Option<String>,
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

    /// The column of the class of each row, by its heading or by its number from 1. It is not among the columns that are
    /// read. A number is a label in its shortest form, so that 1 and 1.0 are the same class. A missing label is a missing
    /// cell, also with [`keep_missing`](Self::keep_missing), which then is an error.
    pub fn labels(self, column: impl Into<String>) -> Self {
        CsvOptions { labels: Some(column.into()), ..self }
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
        let label = self.labels.as_deref().map(|asked| layout.place(&path, asked)).transpose()?;
        let chosen = self.chosen(&path, &layout, label)?;
        let skip_counters = self.skip_counters && chosen.is_none();
        let (places, left_out) = match chosen {
            Some(places) => (places, Vec::new()),
            None => self.all(text, &layout, label),
        };
        let mut reading = Reading::new(&path, &layout, places, label);
        for record in rows {
            reading.add(&record.map_err(|broken| layout.broken(&path, broken))?)?;
        }
        let counters = if skip_counters { reading.take_counters() } else { Vec::new() };
        let num_dropped = match self.missing {
            Missing::Keep => reading.refuse_unlabeled()?,
            Missing::Drop => reading.drop_missing(),
            Missing::Refuse => reading.refuse_missing()?,
        };
        let Reading { places, data, lines, labels, .. } = reading;
        let label_column = label.map(|place| layout.names[place].clone());
        let labels = labels.into_iter().flatten().collect();
        let columns = places.iter().map(|&place| layout.names[place].clone()).collect();
        let has_heading = layout.has_heading;
        Ok(Table {
            path,
            columns,
            has_heading,
            data,
            lines,
            left_out,
            counters,
            num_dropped,
            label_column,
            labels,
        })
    }

    /// Indices of the columns, if none are chosen, and the names of the columns of text that are left out.
    fn all(&self, text: &str, layout: &Layout, label: Option<usize>) -> (Vec<usize>, Vec<String>) {
        let width = layout.names.len();
        let is_other = |place: &usize| Some(*place) != label;
        let is_text = if self.numeric_only { layout.text_columns(text) } else { vec![false; width] };
        // If no column is numeric, the delimiter is probably wrong. All columns are then read, so that the error of the
        // first row says so.
        let is_any = (0..width).filter(is_other).any(|place| !is_text[place]);
        let is_text = if is_any { is_text } else { vec![false; width] };
        let (texts, numbers): (Vec<usize>, Vec<usize>) =
            (0..width).filter(is_other).partition(|&place| is_text[place]);
        (numbers, texts.into_iter().map(|place| layout.names[place].clone()).collect())
    }

    /// Indices of the chosen columns, or of those of a run, if the heading has them.
    fn chosen(
        &self,
        path: &Path,
        layout: &Layout,
        label: Option<usize>,
    ) -> Result<Option<Vec<usize>>, IoError> {
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
            let place = layout.place(path, asked)?;
            if places.contains(&place) || label == Some(place) {
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
