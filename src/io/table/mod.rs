//! Tables of numbers from text: `.csv`, `.tsv`, `.txt` and `.dat`, also compressed with gzip.
//!
//! The file decides the delimiter, the decimal mark and the heading ([`dialect`]). A cell is a number, missing or text
//! ([`value`]), and no cell is changed in silence: what is not a number, and not left out by an option, is an error with
//! its line and column. Lines left out are counted, and columns left out are named.
//!
//! We considered the crate `csv` 1.4, and kept [`cells`], whose 140 lines of code are all that it would replace: it finds
//! no delimiter, decimal mark, heading or missing value. It would not replace them well. It joins text after closing
//! quotes to the cell, ends an open quote with the file, reads the quotes of `1, "a"` as text, and has no delimiter of
//! several blanks; each of these changes cells in silence. Where the feature `train` is on, it adds three crates (`csv`,
//! `csv-core`, `ryu`) and 2.2 core-seconds of a release build at 2.1 GHz, which we would accept. But every build reads
//! tables, for measured inputs and fits: a build of the solver alone would get six crates and 7.7 core-seconds, and with
//! `csv` behind `train` the 140 lines would remain for the other builds.

mod cells;
mod counters;
mod dialect;
#[cfg(test)]
mod drawn;
mod options;
mod reading;
#[cfg(test)]
mod tests;
mod value;

use super::IoError;
pub use options::CsvOptions;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A table of numbers, as read by [`read_csv`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The file, or a name for the bytes.
    pub path: PathBuf,
    /// Column names: the cells of the heading, or `x1`, `x2`, ... for columns without one.
    pub columns: Vec<String>,
    /// Whether there is a heading.
    pub has_heading: bool,
    /// The numbers, row-major.
    pub data: Vec<f64>,
    /// The line number of each row, from 1.
    pub lines: Vec<usize>,
    /// Names of the columns that were left out because they contain text
    /// ([`numeric_only`](CsvOptions::numeric_only)).
    pub left_out: Vec<String>,
    /// Names of the columns that were left out because they count rows
    /// ([`skip_counters`](CsvOptions::skip_counters)).
    pub counters: Vec<String>,
    /// Number of rows that were left out because a cell is missing ([`drop_missing`](CsvOptions::drop_missing)).
    pub num_dropped: usize,
    /// The column of labels ([`labels`](CsvOptions::labels)).
    pub label_column: Option<String>,
    /// The label of each row; empty without a column of labels.
    pub labels: Vec<String>,
}

impl Table {
    /// The index of the first column with this name.
    ///
    /// # Errors
    /// [`IoError::NoColumn`].
    fn place(&self, name: &str) -> Result<usize, IoError> {
        self.columns
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| IoError::no_column(&self.path, name, &self.columns))
    }

    /// The numbers of the first column with this name.
    ///
    /// # Errors
    /// [`IoError::NoColumn`].
    pub fn column(&self, name: &str) -> Result<Vec<f64>, IoError> {
        let place = self.place(name)?;
        Ok(self.data.iter().skip(place).step_by(self.columns.len()).copied().collect())
    }

    /// Columns by their names, as a tensor `[rows, columns]` of f64.
    ///
    /// # Errors
    /// [`IoError::NoColumn`] for the first missing column.
    ///
    /// # Examples
    /// ```
    /// use flowline::io;
    /// use flowline::tensor::Tensor;
    /// let path = std::env::temp_dir().join("flowline-table-doc.csv");
    /// std::fs::write(&path, "t,x,y\n0,1,5\n0.5,2,6\n").unwrap();
    /// let table = io::read_csv(&path)?;
    /// assert_eq!(table.tensor(&["y", "t"])?.to_vec(), [5.0, 0.0, 6.0, 0.5]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), flowline::io::IoError>(())
    /// ```
    #[cfg(feature = "autodiff")]
    pub fn tensor(&self, columns: &[&str]) -> Result<crate::tensor::Tensor, IoError> {
        let places = columns.iter().map(|name| self.place(name)).collect::<Result<Vec<_>, _>>()?;
        let rows = self.data.chunks(self.columns.len().max(1));
        let values: Vec<f64> = rows.flat_map(|row| places.iter().map(|&at| row[at])).collect();
        Ok(crate::tensor::Tensor::from_vec([self.lines.len(), columns.len()], values))
    }
}

/// Reads rows of numbers with the same number of columns, from `.csv`, `.tsv`, `.txt` or `.dat`, also compressed with gzip
/// (with the feature `train`).
///
/// - The first line is a heading if none of its cells is a number or a missing value; empty cells of a heading are
///   columns without a name. Empty lines are skipped.
/// - Cells may be in double quotes, and then hold delimiters, line breaks and doubled quotes.
/// - The delimiter is a tab, a semicolon, a comma, or any number of blanks: the one that divides the first 1,000 lines
///   into the same number of cells, more than one. If a comma and another delimiter do, commas in numbers are decimal
///   marks.
/// - Decimal commas are found if commas are not the delimiter. Otherwise, numbers such as `"18,0"` in quotes are an error until
///   [`CsvOptions::decimal`] says what they are.
/// - Years in the first line alone are an error, because they may be headings.
/// - A missing cell is an error: an empty one, `NA`, `NaN`, `null`, `?` and the like.
///
/// [`CsvOptions`] chooses columns, the delimiter, the decimal mark, and what happens to missing cells.
///
/// # Errors
/// If the file cannot be read, or [`IoError::Csv`] with the line and what to do, also for a table that can be read in two
/// ways.
///
/// # Examples
/// ```
/// use flowline::io::{read_csv, write_csv};
/// let path = std::env::temp_dir().join("flowline-doc.csv");
/// write_csv(&path, &["x", "y"], [[1.5, 2.0], [3.0, 4.0]])?;
/// assert_eq!(read_csv(&path)?.column("y")?, [2.0, 4.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
pub fn read_csv(path: impl AsRef<Path>) -> Result<Table, IoError> {
    CsvOptions::default().read(path)
}

/// Endings of the names of tables.
const ENDINGS: [&str; 4] = ["csv", "tsv", "txt", "dat"];

/// Whether a file is a table by its name: `.csv`, `.tsv`, `.txt`, `.dat`, or one of these and `.gz`.
pub fn is_table_name(path: &Path) -> bool {
    let is_gzip = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let name = if is_gzip { path.with_extension("") } else { path.to_owned() };
    name.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes of a file, decompressed if they are gzip.
fn unpacked<'a>(path: &Path, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, IoError> {
    if bytes.starts_with(&GZIP) { gunzip(path, bytes).map(Cow::Owned) } else { Ok(Cow::Borrowed(bytes)) }
}

#[cfg(feature = "train")]
fn gunzip(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, IoError> {
    use std::io::Read;
    let mut found = Vec::new();
    match flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut found) {
        Ok(_) => Ok(found),
        Err(e) => {
            let (bytes, reason) = (bytes.len(), format!("the gzip stream cannot be decompressed: {e}"));
            Err(IoError::Damaged { path: path.to_owned(), bytes, reason })
        }
    }
}

#[cfg(not(feature = "train"))]
fn gunzip(path: &Path, _: &[u8]) -> Result<Vec<u8>, IoError> {
    let reason =
        "the file is compressed with gzip, which needs the feature `train`; decompress it".to_owned();
    Err(IoError::Csv { path: path.to_owned(), line: 1, reason, remedy: None })
}
