//! Rows of numbers as text: one row a line, comma-separated, with an optional heading.
//!
//! Numbers are written in the shortest form that reads back to the same value.

use super::{IoError, write_atomic};
use std::fmt::Display;
use std::path::Path;

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
        for row in rows {
            for (i, x) in row.iter().enumerate() {
                write!(file, "{}{x}", if i > 0 { "," } else { "" })?;
            }
            writeln!(file)?;
        }
        Ok(())
    })
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
    let path = path.as_ref();
    let text =
        std::fs::read_to_string(path).map_err(|source| IoError::Read { path: path.to_owned(), source })?;
    let mut numbers = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match row(line, columns) {
            Ok(values) => numbers.extend(values),
            Err(_) if i == 0 && line.split(',').all(|cell| cell.trim().parse::<f64>().is_err()) => {}
            Err(reason) => return Err(IoError::Csv { path: path.to_owned(), line: i + 1, reason }),
        }
    }
    Ok(numbers)
}

fn row(line: &str, columns: usize) -> Result<Vec<f64>, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns {
        return Err(format!("{} columns instead of {columns}", cells.len()));
    }
    cells.iter().map(|cell| cell.parse().map_err(|_| format!("\"{cell}\" is no number"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_rows_are_named() {
        let folder = tempfile::tempdir().unwrap();
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
    }
}
