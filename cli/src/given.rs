//! `sample --given`: coordinates of a row by the names of their columns.

use super::error::{CliError, Result};
use flowline::__internal::{listed, shortened};

/// The row of these columns with the given values, and NaN for the others. Each text is `COLUMN=X`, or several of them
/// separated by commas; a column is a heading, or a number from 1.
///
/// # Errors
/// A column that does not exist or is given twice, a value that is not a finite number, no column that is not given.
pub fn row(texts: &[String], columns: &[String]) -> Result<Vec<f64>> {
    let mut row = vec![f64::NAN; columns.len()];
    for text in texts.iter().flat_map(|text| parts(text, columns)) {
        let refused = |reason: String| Err(CliError::Usage(format!("--given={}: {reason}", shortened(text))));
        let Some((name, value)) = text.rsplit_once('=') else {
            return refused("give a column and its value, as COLUMN=X".to_owned());
        };
        let Some(i) = place(name.trim(), columns) else {
            let there = listed(columns, "columns");
            return refused(format!("no column \"{}\"; the columns are {there}", shortened(name.trim())));
        };
        let Some(value) = value.trim().parse().ok().filter(|x: &f64| x.is_finite()) else {
            return refused(format!("\"{}\" is not a finite number", shortened(value.trim())));
        };
        if !row[i].is_nan() {
            return refused(format!("column {} is given twice", shortened(&columns[i])));
        }
        row[i] = value;
    }
    if row.iter().all(|x| !x.is_nan()) {
        let reason = "all columns are given, so there is nothing to draw; leave one out";
        return Err(CliError::Usage(format!("--given: {reason}")));
    }
    Ok(row)
}

/// The parts of a text between commas, unless the whole text names a column.
fn parts<'a>(text: &'a str, columns: &[String]) -> Vec<&'a str> {
    let is_whole = text.rsplit_once('=').is_some_and(|(name, _)| columns.iter().any(|c| c == name.trim()));
    if is_whole { vec![text] } else { text.split(',').collect() }
}

/// The index of a column, by its heading or by its number from 1.
pub fn place(name: &str, columns: &[String]) -> Option<usize> {
    let by_number = || name.parse::<usize>().ok().filter(|i| (1..=columns.len()).contains(i)).map(|i| i - 1);
    columns.iter().position(|column| column == name).or_else(by_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_heading_or_number_and_once() {
        let columns = ["height", "a,b", "c=d", "7"].map(str::to_owned);
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
            row(&texts, &columns).map(|row| format!("{row:?}")).map_err(|e| e.to_string())
        };
        assert_eq!(read(&["height=-1.5"]).unwrap(), "[-1.5, NaN, NaN, NaN]");
        assert_eq!(read(&["height = 1e3, 7=2"]).unwrap(), "[1000.0, NaN, NaN, 2.0]");
        assert_eq!(read(&["a,b=1", "c=d=2"]).unwrap(), "[NaN, 1.0, 2.0, NaN]");
        // The heading 7 is before the number 7; 4 is a number.
        assert_eq!(read(&["4=1,2=3"]).unwrap(), "[NaN, 3.0, NaN, 1.0]");
        for (texts, words) in [
            (&["height"][..], "as COLUMN=X"),
            (&["weight=1"], "no column \"weight\"; the columns are height, a,b, c=d, 7"),
            (&["0=1"], "no column \"0\""),
            (&["5=1"], "no column \"5\""),
            (&["height=tall"], "\"tall\" is not a finite number"),
            (&["height=inf"], "not a finite number"),
            (&["height=NaN"], "not a finite number"),
            (&["height=1", "1=2"], "column height is given twice"),
            (&["1=1,2=2,3=3,4=4"], "nothing to draw"),
        ] {
            let message = read(texts).unwrap_err();
            assert!(message.contains(words) && message.contains("--given"), "{message}");
        }
    }
}
