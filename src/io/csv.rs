//! Rows of numbers written as text: one row per line, with a heading. The module [`table`](super::table) reads them.
//!
//! Numbers are written in the shortest form that reads back to the same value, in scientific notation below 1e-5 and
//! from 1e16 on.

use super::IoError;
use super::atomic::write_parts;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

/// Writes a heading with the names of the columns, and one line per row. The digits read back to the same numbers. The
/// file is written completely or not at all.
///
/// # Errors
/// [`IoError::RowLength`] if a row has another length than there are names; [`IoError::Write`].
///
/// # Examples
/// ```
/// use flowline::io::{read_csv, write_csv};
/// let path = std::env::temp_dir().join("flowline-write-doc.csv");
/// write_csv(&path, &["x", "y"], [[1.5, 2.0], [3.0, 4.0]])?;
/// assert_eq!(read_csv(&path)?.column("y")?, [2.0, 4.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
#[doc(alias = "to_csv")]
pub fn write_csv<T: Display, R: AsRef<[T]>>(
    path: impl AsRef<Path>,
    columns: &[impl AsRef<str>],
    rows: impl IntoIterator<Item = R>,
) -> Result<(), IoError> {
    let mut number = 0;
    let parts = rows.into_iter().map(|row| {
        number += 1;
        let (found, expected) = (row.as_ref().len(), columns.len());
        if found == expected {
            return Ok(row);
        }
        Err(IoError::RowLength { path: path.as_ref().to_owned(), row: number, found, expected })
    });
    write_parts(path.as_ref(), heading(columns).as_bytes(), parts, |row, file| write_row(row.as_ref(), file))
}

/// [`write_csv`] for rows that arrive in parts. Each part is a whole number of rows, row-major. Only one part is in memory
/// at a time.
///
/// # Errors
/// The error of a part, or [`IoError::Write`]; an existing file is then unchanged.
///
/// # Panics
/// If there are no columns.
pub fn write_csv_parts<T: Display, E: From<IoError>>(
    path: impl AsRef<Path>,
    columns: &[impl AsRef<str>],
    parts: impl Iterator<Item = Result<Vec<T>, E>>,
) -> Result<(), E> {
    write_parts(path.as_ref(), heading(columns).as_bytes(), parts, |part, file| {
        part.chunks(columns.len()).try_for_each(|row| write_row(row, file))
    })
}

/// The first line of a table. Names with separators, quotes or line breaks are quoted.
pub fn heading(columns: &[impl AsRef<str>]) -> String {
    let quoted = |name: &str| {
        let is_plain = !name.contains([',', '"', ';', '\t', '\n', '\r']);
        if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    columns.iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(",") + "\n"
}

/// Writes one row.
///
/// # Errors
/// The error of the writer.
pub fn write_row<T: Display>(row: &[T], file: &mut dyn Write) -> io::Result<()> {
    for (i, x) in row.iter().enumerate() {
        write!(file, "{}{}", if i > 0 { "," } else { "" }, plain(x))?;
    }
    writeln!(file)
}

/// A number as text. `Display` writes all zeros of numbers such as 1e-40 and 1e40; here a number below 1e-5 or from 1e16
/// on has the same digits in scientific notation, if it is then shorter. Other text is unchanged.
pub fn plain(x: &impl Display) -> String {
    let text = x.to_string();
    scientific(&text).filter(|short| short.len() < text.len()).unwrap_or(text)
}

/// The smallest exponent of ten without scientific notation, and the first one with it.
const EXPONENTS: std::ops::Range<i64> = -5..16;

/// A decimal number of [these exponents](EXPONENTS) in scientific notation.
fn scientific(text: &str) -> Option<String> {
    let (sign, number) = text.strip_prefix('-').map_or(("", text), |number| ("-", number));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut all = whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || !all.all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let first = |digits: &str| digits.find(|digit| digit != '0').map(|at| at as i64);
    let exponent = match first(whole) {
        Some(at) => whole.len() as i64 - 1 - at,
        None => -1 - first(fraction)?,
    };
    if EXPONENTS.contains(&exponent) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let (one, others) = digits.trim_matches('0').split_at(1);
    let point = if others.is_empty() { "" } else { "." };
    Some(format!("{sign}{one}{point}{others}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::read_csv;

    /// Numbers of f64 and f32 with random bits, round ones of all powers of ten, and whole numbers.
    #[test]
    fn numbers_of_all_magnitudes_are_short_and_read_back() {
        use crate::ode::tests::draw::Draw;
        let mut draw = Draw(11);
        let mut found = [0; 3];
        for i in 0..30_000 {
            let (text, shown, back) = match i % 4 {
                0 => {
                    let x = f64::from_bits(draw.bits());
                    (plain(&x), x.to_string(), (x, false))
                }
                1 => {
                    let x = f32::from_bits(draw.bits() as u32);
                    (plain(&x), x.to_string(), (f64::from(x), true))
                }
                2 => {
                    let x = (draw.below(199) as f64 - 99.0) * 10f64.powi(draw.below(600) as i32 - 300);
                    (plain(&x), x.to_string(), (x, false))
                }
                _ => {
                    let x: u64 = draw.bits() >> draw.below(64);
                    (plain(&x), x.to_string(), (x as f64, false))
                }
            };
            let x: f64 = if back.1 { f64::from(text.parse::<f32>().unwrap()) } else { text.parse().unwrap() };
            assert!(x.to_bits() == back.0.to_bits() || x.is_nan() && back.0.is_nan(), "{text} {}", back.0);
            assert!(text.len() <= 24, "{text}");
            let is_usual = (1e-5..1e16).contains(&back.0.abs()) || back.0 == 0.0 || !back.0.is_finite();
            assert!(!is_usual || text == shown, "{text} {shown}");
            found[if is_usual { 0 } else { 1 + usize::from(text.contains('e')) }] += 1;
        }
        assert!(found[0] > 1_000 && found[1] > 10 && found[2] > 10_000, "{found:?}");
        assert_eq!(
            ["-0", "00.1", "1e5", "x", "-", ".5", "1.2.3"].map(|text| plain(&text)),
            ["-0", "00.1", "1e5", "x", "-", ".5", "1.2.3"]
        );
        assert_eq!([1e40, -1.25e-40, 1e16, 1e-6].map(|x| plain(&x)), ["1e40", "-1.25e-40", "1e16", "1e-6"]);
    }

    #[test]
    fn rows_know_their_lines_and_parts_are_one_file() {
        let folder = crate::io::scratch();
        let path = folder.path().join("p.csv");
        let parts = [Ok(vec![1.5, 2.0, 3.0, 4.0]), Ok(vec![5.0, 6.0])];
        write_csv_parts::<f64, IoError>(&path, &["x", "y"], parts.into_iter()).unwrap();
        let rows = read_csv(&path).unwrap();
        assert_eq!((rows.data, rows.lines), (vec![1.5, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3, 4]));
    }
}
