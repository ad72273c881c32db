//! Options for reading a table of numbers from text: columns and separator.
//!
//! The separator and the numeric columns are determined from the first 1,000 lines. Then all lines are read.

use super::{IoError, Table, listed, shortened};
use std::path::{Path, PathBuf};

/// Separators in the order they are tried. Semicolons and tabs come first, because decimal commas occur with them.
const SEPARATORS: [char; 4] = ['\t', ';', ',', ' '];
/// Number of lines that determine the separator and the columns of text.
const LOOKED_AT: usize = 1_000;

/// Which columns of a CSV file to read, and the separator.
///
/// # Examples
/// ```
/// use flowline::io::CsvOptions;
/// let text = b"id;name;height;weight\n1;ann;1.7;60\n2;bob;1.8;75\n";
/// let table = CsvOptions::default().columns(["weight", "3"]).parse("people.csv", text)?;
/// assert_eq!((table.columns, table.data), (vec!["weight".into(), "height".into()], vec![60.0, 1.7, 75.0, 1.8]));
/// let numeric = CsvOptions::default().numeric_only().parse("people.csv", text)?;
/// assert_eq!((numeric.columns.len(), numeric.left_out), (3, vec!["name".to_owned()]));
/// # Ok::<(), flowline::io::IoError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing before `read` or `parse`"]
pub struct CsvOptions {
    columns: Vec<String>,
    delimiter: Option<char>,
    numeric_only: bool,
}

impl CsvOptions {
    /// The columns to read, in this order, each by its heading or by its number from 1. The default is all columns.
    pub fn columns<S: Into<String>>(self, columns: impl IntoIterator<Item = S>) -> Self {
        CsvOptions { columns: columns.into_iter().map(Into::into).collect(), ..self }
    }

    /// The separator of cells; a space stands for any number of spaces. The default is the first of tab,
    /// semicolon, comma and space that splits the first 1,000 lines into the same number of cells, more than
    /// one; otherwise the comma.
    pub fn delimiter(self, delimiter: char) -> Self {
        CsvOptions { delimiter: Some(delimiter), ..self }
    }

    /// Leaves out columns in which fewer than half of the first 1,000 cells are numbers, unless columns are
    /// chosen or no column would remain. [`Table::left_out`] names the columns left out.
    pub fn numeric_only(self) -> Self {
        CsvOptions { numeric_only: true, ..self }
    }

    /// Whether columns are chosen by name or number.
    pub fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`read_csv`](super::read_csv); [`IoError::NoColumn`] or [`IoError::ColumnTwice`] for the columns.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Table, IoError> {
        let path = path.as_ref();
        self.parse(path, &super::read(path)?)
    }

    /// Parses the bytes of a file; messages call it `path`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(&self, path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Table, IoError> {
        let path = path.into();
        let refused = |line: usize, reason: String| IoError::Csv { path: path.clone(), line, reason };
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()].split(|&b| b == b'\n').count();
            refused(line, format!("byte {} of the file is not UTF-8 text", e.valid_up_to() + 1))
        })?;
        // Spreadsheets write a byte order mark before the first cell.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let delimiter = self.delimiter.unwrap_or_else(|| separator(text));
        let mut rows = lines(text).map(|(i, line)| (i + 1, cells(line, delimiter))).peekable();
        let is_heading = |(line, cells): &(usize, Vec<String>)| {
            *line == 1 && cells.iter().all(|cell| cell.parse::<f64>().is_err())
        };
        let heading = rows.next_if(is_heading).map(|(_, cells)| cells);
        let has_heading = heading.is_some();
        let width = heading.as_ref().or(rows.peek().map(|(_, cells)| cells)).map_or(0, Vec::len);
        let named = |(i, name): (usize, String)| if name.is_empty() { format!("x{}", i + 1) } else { name };
        let names: Vec<String> = heading
            .unwrap_or_else(|| vec![String::new(); width])
            .into_iter()
            .enumerate()
            .map(named)
            .collect();
        let numeric = if self.numeric_only && !self.has_columns() {
            numeric(text, delimiter, has_heading, width)
        } else {
            vec![true; width]
        };
        let places = if self.has_columns() {
            self.places(&path, &names)?
        } else {
            (0..width).filter(|&place| numeric[place]).collect()
        };
        let left_out = names.iter().zip(&numeric).filter(|(_, numeric)| !**numeric);
        let left_out: Vec<String> = left_out.map(|(name, _)| name.clone()).collect();
        let (mut data, mut lines) = (Vec::new(), Vec::new());
        for (line, cells) in rows {
            let headings = has_heading.then_some(&names[..]);
            let found = row(&cells, &places, (width, headings), delimiter);
            data.extend(found.map_err(|reason| refused(line, reason))?);
            lines.push(line);
        }
        let columns = places.iter().map(|&place| names[place].clone()).collect();
        Ok(Table { path, columns, has_heading, data, lines, left_out })
    }

    /// Indices of the chosen columns.
    fn places(&self, path: &Path, names: &[String]) -> Result<Vec<usize>, IoError> {
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
        Ok(places)
    }
}

/// The lines that are not empty, with their index from 0.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
}

/// The first of [`SEPARATORS`] that splits the first lines into the same number of cells, more than one; a
/// comma if none of them does.
fn separator(text: &str) -> char {
    let divides = |separator: &char| {
        let mut counts = lines(text).take(LOOKED_AT).map(|(_, line)| cells(line, *separator).len());
        counts.next().is_some_and(|first| first > 1 && counts.all(|count| count == first))
    };
    SEPARATORS.into_iter().find(divides).unwrap_or(',')
}

/// For each column, whether at least half of its cells in the first rows are numbers.
fn numeric(text: &str, delimiter: char, has_heading: bool, width: usize) -> Vec<bool> {
    let (mut numbers, mut rows) = (vec![0_usize; width], 0);
    for (_, line) in lines(text).skip(usize::from(has_heading)).take(LOOKED_AT) {
        let cells = cells(line, delimiter);
        let is_number = cells.iter().map(|cell| usize::from(cell.parse::<f64>().is_ok()));
        numbers.iter_mut().zip(is_number).for_each(|(count, number)| *count += number);
        rows += 1;
    }
    let numeric: Vec<bool> = numbers.into_iter().map(|count| 2 * count >= rows).collect();
    // If no column is numeric, the separator is probably wrong. All columns are then read, so that the error
    // of the first row says so.
    if numeric.contains(&true) { numeric } else { vec![true; width] }
}

/// The numbers of a row; messages name the column by its heading, if there is one.
fn row(
    cells: &[String],
    places: &[usize],
    (width, headings): (usize, Option<&[String]>),
    delimiter: char,
) -> Result<Vec<f64>, String> {
    if cells.len() != width {
        let found = if cells.len() == 1 { "1 column".to_owned() } else { format!("{} columns", cells.len()) };
        return Err(format!("{found} instead of {width}; each line needs the same number of cells"));
    }
    let number = |&place: &usize| {
        let cell = &cells[place];
        let column =
            headings.map_or_else(String::new, |names| format!("column {}: ", shortened(&names[place])));
        cell.parse()
            .map_err(|_| format!("{column}\"{}\" is not a number{}", shortened(cell), hint(cell, delimiter)))
    };
    places.iter().map(number).collect()
}

/// A likely cause for a cell that is not a number.
fn hint(cell: &str, delimiter: char) -> &'static str {
    let numbers = |separator: char| {
        cell.split(separator).count() > 1
            && cell.split(separator).all(|part| part.trim().parse::<f64>().is_ok())
    };
    match () {
        () if delimiter != ',' && cell.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            "; write decimals with a point"
        }
        () if numbers(';') => "; if semicolons separate the cells, choose --delimiter ';'",
        () if numbers('\t') => "; if tabs separate the cells, choose --delimiter tab",
        () if numbers(' ') => "; if spaces separate the cells, choose --delimiter space",
        () => "",
    }
}

/// The trimmed cells of a line. Within double quotes, a separator is an ordinary character, and two double
/// quotes stand for one.
pub(super) fn cells(line: &str, separator: char) -> Vec<String> {
    // Spaces align columns: several spaces in a row are one separator, and spaces before the first cell are
    // ignored.
    let line = if separator == ' ' { line.trim() } else { line };
    let (mut cells, mut quoted, mut chars) = (vec![String::new()], false, line.chars().peekable());
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().expect("invariant: there is a first cell");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' if quoted || cell.trim().is_empty() => quoted = !quoted,
            ' ' if separator == ' ' && !quoted => {
                while chars.next_if_eq(&' ').is_some() {}
                cells.push(String::new());
            }
            c if c == separator && !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &CsvOptions, text: &str) -> Result<Table, String> {
        options.parse("p.csv", text.as_bytes()).map_err(|e| e.to_string())
    }

    fn default(text: &str) -> Table {
        parse(&CsvOptions::default(), text).unwrap()
    }

    #[test]
    fn the_separator_splits_all_lines_into_equally_many_cells() {
        for text in ["x,y\n1,2\n3,4", "x;y\n1;2\n3;4", "x\ty\n1\t2\n3\t4", "x y\n1  2\n 3 4"] {
            let table = default(text);
            assert_eq!((table.columns.join("|"), table.data), ("x|y".to_owned(), vec![1.0, 2.0, 3.0, 4.0]));
        }
        assert_eq!(default("height cm,weight kg\n1,2").columns, ["height cm", "weight kg"]);
        assert_eq!(default("one name\n1\n2").columns, ["one name"]);
        let error = |text| parse(&CsvOptions::default(), text).unwrap_err();
        assert!(
            error("1,5;2\n3,5;4").contains("line 1: \"1,5\" is not a number; write decimals with a point")
        );
        assert!(error("1;2\n3;4;5").contains("\"3;4;5\" is not a number; if semicolons separate the cells"));
    }

    #[test]
    fn columns_are_chosen_by_heading_or_number_and_keep_their_headings() {
        let text = "id,name,2,y\n1,ann,5,6\n2,bob,7,8\n";
        // The third heading is a number, so the first line is not a heading.
        let chosen = |columns: &[&str], text| parse(&CsvOptions::default().columns(columns.to_vec()), text);
        assert!(chosen(&["3", "4"], text).unwrap_err().contains("p.csv line 1: \"y\" is not a number"));
        let text = text.replace(",2,", ",x,");
        let table = chosen(&["y", "1"], &text).unwrap();
        assert_eq!((table.columns, table.data), (vec!["y".into(), "id".into()], vec![6.0, 1.0, 8.0, 2.0]));
        assert!(
            chosen(&["z"], &text)
                .unwrap_err()
                .contains("has no column \"z\"; its columns are id, name, x, y")
        );
        assert!(chosen(&["5"], &text).unwrap_err().contains("no column \"5\""));
        assert!(chosen(&["y", "4"], &text).unwrap_err().contains("column \"y\" is chosen twice"));
        assert!(
            chosen(&["name"], &text).unwrap_err().contains("line 2: column name: \"ann\" is not a number")
        );
    }

    #[test]
    fn columns_of_text_are_left_out_on_request_and_single_words_are_not() {
        let numeric = CsvOptions::default().numeric_only();
        let table = parse(&numeric, "id,name,x\n1,ann,5\n2,7,6\n3,bob,7\n").unwrap();
        assert_eq!((table.columns, table.left_out), (vec!["id".into(), "x".into()], vec!["name".to_owned()]));
        assert_eq!((table.data, table.lines), (vec![1.0, 5.0, 2.0, 6.0, 3.0, 7.0], vec![2, 3, 4]));
        let error = parse(&numeric, "a;b\n1;2\n3;4;5\n").unwrap_err();
        assert!(
            error.contains("line 2: column a;b: \"1;2\"") && error.contains("--delimiter ';'"),
            "{error}"
        );
        let error = parse(&numeric, "x\n1\noops\n2\n").unwrap_err();
        assert!(error.ends_with("line 3: column x: \"oops\" is not a number"), "{error}");
    }
}
