//! Rows of numbers as text: one row a line, comma-separated, with an optional heading.
//!
//! Numbers are written in the shortest form that reads back to the same value.

use super::atomic::write_parts;
use super::{IoError, write_atomic};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

/// Rows of numbers and where they stood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Cells of the heading, where there is one.
    pub columns: Vec<String>,
    /// The numbers, row by row.
    pub data: Vec<f64>,
    /// The line of each row, from 1.
    pub lines: Vec<usize>,
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

/// [`write_csv`] for rows that come in parts, each of so many rows of `columns` numbers one after the other: memory
/// holds one part.
///
/// # Errors
/// The first part's that fails, and no file is left then; or [`IoError::Write`].
///
/// # Panics
/// With no column.
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

fn write_row<T: Display>(row: &[T], file: &mut dyn Write) -> io::Result<()> {
    for (i, x) in row.iter().enumerate() {
        write!(file, "{}{x}", if i > 0 { "," } else { "" })?;
    }
    writeln!(file)
}

/// Reads rows of `columns` numbers; a first line without any number is a heading, empty lines are skipped.
///
/// # Errors
/// When the file cannot be read, or [`IoError::Csv`] with the line.
///
/// # Examples
/// ```
/// use flowline::io::{read_csv, write_csv};
/// let path = std::env::temp_dir().join("flowline-doc.csv");
/// write_csv(&path, "x,y", [[1.5, 2.0], [3.0, 4.0]].iter().map(|row| &row[..]))?;
/// assert_eq!(read_csv(&path, 2)?, [1.5, 2.0, 3.0, 4.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
pub fn read_csv(path: impl AsRef<Path>, columns: usize) -> Result<Vec<f64>, IoError> {
    Ok(read_csv_lines(path, columns)?.data)
}

/// [`read_csv`] with the line that each row stood on, for messages about its numbers.
///
/// # Errors
/// As [`read_csv`].
pub fn read_csv_lines(path: impl AsRef<Path>, columns: usize) -> Result<Table, IoError> {
    read_rows(path.as_ref(), Some(columns))
}

/// Reads rows of as many columns as the first has; heading and empty lines as in [`read_csv`].
///
/// # Errors
/// As [`read_csv`], also for a later row of another length.
pub fn read_csv_table(path: impl AsRef<Path>) -> Result<Table, IoError> {
    read_rows(path.as_ref(), None)
}

fn read_rows(path: &Path, mut columns: Option<usize>) -> Result<Table, IoError> {
    let bytes = super::read(path)?;
    let refused = |line: usize, reason: String| IoError::Csv { path: path.to_owned(), line, reason };
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].split(|&b| b == b'\n').count();
        refused(line, format!("byte {} of the file is no UTF-8 text", e.valid_up_to() + 1))
    })?;
    // Spreadsheets put a byte order mark before the first cell.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Table::default();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let cells = || line.split(',').map(str::trim);
        match row(line, columns.unwrap_or_else(|| cells().count())) {
            Ok(values) => {
                columns = Some(values.len());
                rows.data.extend(values);
                rows.lines.push(i + 1);
            }
            Err(_) if i == 0 && cells().all(|cell| cell.parse::<f64>().is_err()) => {
                rows.columns = cells().map(str::to_owned).collect();
            }
            Err(reason) => return Err(refused(i + 1, reason)),
        }
    }
    Ok(rows)
}

fn row(line: &str, columns: usize) -> Result<Vec<f64>, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns {
        let found = if cells.len() == 1 { "1 column".to_owned() } else { format!("{} columns", cells.len()) };
        return Err(format!("{found} instead of {columns}"));
    }
    cells.iter().map(|cell| cell.parse().map_err(|_| format!("\"{cell}\" is no number"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_rows_are_named() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path, 2).map_err(|e| e.to_string())
        };
        assert_eq!(read("x,y\n1,2\n\n 3 , 4e0\n").unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(read("1,2").unwrap(), [1.0, 2.0]);
        assert_eq!(read("t,y0\n1,2").unwrap(), [1.0, 2.0]);
        assert!(read("1,y0\n1,2").unwrap_err().contains("line 1: \"y0\" is no number"));
        assert!(read("x,y\n1,2\n3,oops\n").unwrap_err().contains("p.csv line 3: \"oops\" is no number"));
        assert!(read("1,2,3").unwrap_err().contains("line 1: 3 columns instead of 2"));
        assert_eq!(read("\u{feff}1,2\r\n3,4").unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_table_is_as_wide_as_its_first_row_and_keeps_its_heading() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv_table(&path)
        };
        let table = read("a, b,c\n1,2,3\n4,5,6\n").unwrap();
        assert_eq!((table.columns, table.lines), (["a", "b", "c"].map(str::to_owned).to_vec(), vec![2, 3]));
        assert_eq!(table.data, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(read("1\n2\n").unwrap().data, [1.0, 2.0]);
        let ragged = read("1,2\n3,4\n5,6,7\n").unwrap_err().to_string();
        assert!(ragged.contains("p.csv line 3: 3 columns instead of 2"), "{ragged}");
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_line() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        std::fs::write(&path, b"x,y\n1,2\n3,\xff4\n").unwrap();
        let message = read_csv(&path, 2).unwrap_err().to_string();
        assert!(message.contains("p.csv line 3: byte 11 of the file is no UTF-8 text"), "{message}");
    }

    #[test]
    fn rows_know_their_lines_and_parts_are_one_file() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let parts = [Ok(vec![1.5, 2.0, 3.0, 4.0]), Ok(vec![5.0, 6.0])];
        write_csv_parts::<f64, IoError>(&path, "x,y", 2, parts.into_iter()).unwrap();
        let rows = read_csv_lines(&path, 2).unwrap();
        assert_eq!((rows.data, rows.lines), (vec![1.5, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3, 4]));
    }
}
