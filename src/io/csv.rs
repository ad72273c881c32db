//! Rows of numbers as text: one row per line, with an optional heading. See [`options`](super::CsvOptions) for reading.
//!
//! Numbers are written in the shortest form that reads back to the same value.

use super::atomic::write_parts;
use super::{CsvOptions, IoError, write_atomic};
use std::fmt::Display;
use std::io::{self, Write};
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
    /// Names of the columns that were left out because they contain text.
    pub left_out: Vec<String>,
}

impl Table {
    /// The index of the first column with this name.
    ///
    /// # Errors
    /// [`IoError::NoColumn`].
    fn place(&self, name: &str) -> Result<usize, IoError> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| IoError::NoColumn {
            path: self.path.clone(),
            name: name.to_owned(),
            columns: self.columns.join(", "),
        })
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

/// Writes a heading and rows.
///
/// # Errors
/// [`IoError::Write`].
pub fn write_csv<'a, T: Display + 'a>(
    path: impl AsRef<Path>,
    heading: &str,
    rows: impl Iterator<Item = &'a [T]>,
) -> Result<(), IoError> {
    write_atomic(path, |file| {
        writeln!(file, "{heading}")?;
        rows.into_iter().try_for_each(|row| write_row(row, file))
    })
}

/// [`write_csv`] for rows that arrive in parts. Each part is a whole number of rows of `columns` numbers,
/// row-major. Only one part is in memory at a time.
///
/// # Errors
/// The error of a part, or [`IoError::Write`]; an existing file is then unchanged.
///
/// # Panics
/// If `columns` is 0.
pub fn write_csv_parts<T: Display, E: From<IoError>>(
    path: impl AsRef<Path>,
    heading: &str,
    columns: usize,
    parts: impl Iterator<Item = Result<Vec<T>, E>>,
) -> Result<(), E> {
    write_parts(path.as_ref(), format!("{heading}\n").as_bytes(), parts, |part, file| {
        part.chunks(columns).try_for_each(|row| write_row(row, file))
    })
}

/// Writes one row.
///
/// # Errors
/// The error of the writer.
pub fn write_row<T: Display>(row: &[T], file: &mut dyn Write) -> io::Result<()> {
    for (i, x) in row.iter().enumerate() {
        write!(file, "{}{x}", if i > 0 { "," } else { "" })?;
    }
    writeln!(file)
}

/// Reads rows of numbers with the same number of columns. A first line without numbers is a heading; empty
/// lines are skipped; cells may be quoted. The separator is the first of tab, semicolon, comma and space that
/// splits the first 1,000 lines into the same number of cells, more than one; otherwise the comma. To choose
/// columns or a separator, use [`CsvOptions`].
///
/// # Errors
/// If the file cannot be read, or [`IoError::Csv`] with the line number.
///
/// # Examples
/// ```
/// use flowline::io::{read_csv, write_csv};
/// let path = std::env::temp_dir().join("flowline-doc.csv");
/// write_csv(&path, "x,y", [[1.5, 2.0], [3.0, 4.0]].iter().map(|row| &row[..]))?;
/// assert_eq!(read_csv(&path)?.column("y")?, [2.0, 4.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
pub fn read_csv(path: impl AsRef<Path>) -> Result<Table, IoError> {
    CsvOptions::default().read(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lines_are_named() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path).map(|table| table.data).map_err(|e| e.to_string())
        };
        assert_eq!(read("x,y\n1,2\n\n 3 , 4e0\n").unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(read("1,2").unwrap(), [1.0, 2.0]);
        assert_eq!(read("t,y0\n1,2").unwrap(), [1.0, 2.0]);
        assert!(read("1,y0\n1,2").unwrap_err().contains("line 1: \"y0\" is not a number"));
        assert!(
            read("x,y\n1,2\n3,oops\n")
                .unwrap_err()
                .contains("p.csv line 3: column y: \"oops\" is not a number")
        );
        assert!(read("x,y\n1,2,3").unwrap_err().contains("line 2: 3 columns instead of 2"));
        assert_eq!(read("\u{feff}1,2\r\n3,4").unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_table_is_as_wide_as_its_first_row_and_keeps_its_heading() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path)
        };
        let table = read("a, b,c\n1,2,3\n4,5,6\n").unwrap();
        assert_eq!((table.columns, table.lines), (["a", "b", "c"].map(str::to_owned).to_vec(), vec![2, 3]));
        assert_eq!(table.data, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(read("1\n2\n").unwrap().data, [1.0, 2.0]);
        let bare = read("1,2\n3,4\n").unwrap();
        assert_eq!((bare.columns, bare.has_heading), (["x1", "x2"].map(str::to_owned).to_vec(), false));
        let ragged = read("1,2\n3,4\n5,6,7\n").unwrap_err().to_string();
        assert!(ragged.contains("p.csv line 3: 3 columns instead of 2"), "{ragged}");
    }

    #[test]
    fn columns_are_found_by_their_names_and_cells_may_be_quoted() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        std::fs::write(&path, "\"t, s\", \"the \"\"y\"\"\",\n\"0.5\",2,3\n1,-4,5\n").unwrap();
        let table = read_csv(&path).unwrap();
        assert_eq!(table.columns, ["t, s", "the \"y\"", "x3"]);
        assert_eq!(table.column("t, s").unwrap(), [0.5, 1.0]);
        assert_eq!(table.column("x3").unwrap(), [3.0, 5.0]);
        let message = table.column("y").unwrap_err().to_string();
        assert!(message.contains("p.csv has no column \"y\"") && message.contains("t, s"), "{message}");
        #[cfg(feature = "autodiff")]
        {
            let found = table.tensor(&["x3", "t, s"]).unwrap();
            assert_eq!((&found.shape()[..], found.to_vec()), (&[2, 2][..], vec![3.0, 0.5, 5.0, 1.0]));
            let message = table.tensor(&["x3", "z"]).unwrap_err().to_string();
            assert!(message.contains("p.csv has no column \"z\""), "{message}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_named_with_their_line() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        std::fs::write(&path, b"x,y\n1,2\n3,\xff4\n").unwrap();
        let message = read_csv(&path).unwrap_err().to_string();
        assert!(message.contains("p.csv line 3: byte 11 of the file is not UTF-8 text"), "{message}");
    }

    #[test]
    fn rows_know_their_lines_and_parts_are_one_file() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let parts = [Ok(vec![1.5, 2.0, 3.0, 4.0]), Ok(vec![5.0, 6.0])];
        write_csv_parts::<f64, IoError>(&path, "x,y", 2, parts.into_iter()).unwrap();
        let rows = read_csv(&path).unwrap();
        assert_eq!((rows.data, rows.lines), (vec![1.5, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3, 4]));
    }
}
