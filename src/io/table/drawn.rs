//! Tables of all kinds, drawn at random: the numbers read are the numbers written, or the error names the place.
//!
//! Tables have 1 to 60 columns (numbers, whole numbers, counters, text) and 0 to 40 rows, four delimiters, two decimal
//! marks, three line ends, quotes around any cell, line breaks, delimiters and doubled quotes in text, byte order marks,
//! empty lines, headings with empty names or without the first name. `FLOWLINE_CASES=300` draws more of them.

use super::*;
use crate::io::{Remedy, shortened};
use crate::ode::tests::draw::{Draw, num_cases};

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Numbers,
    Whole,
    Counter,
    Text,
}

/// A table and the values that were written.
#[derive(Debug)]
struct Drawn {
    text: String,
    delimiter: char,
    decimal: char,
    has_heading: bool,
    is_first_unnamed: bool,
    /// The headings, empty for none.
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// By row and column; `None` for a missing cell and in columns of text.
    rows: Vec<Vec<Option<f64>>>,
    lines: Vec<usize>,
    /// For each row, the byte at which it begins.
    starts: Vec<usize>,
}

const MISSING: [&str; 9] = ["NA", "NaN", "nan", "N/A", "null", "None", "?", "#N/A", "."];
const WORDS: [&str; 8] =
    ["cat", "new york", "a,b", "x;y", "say \"hi\"", "two\nlines", "tab\there", "ünïcode"];
const COUNTERS: [&str; 5] = ["id", "Index", "PassengerId", "row", "Unnamed: 0"];

/// A number as text with a point.
fn number(draw: &mut Draw, kind: Kind) -> String {
    if kind == Kind::Whole {
        return (draw.below(2_000) as i64 - 1_000).to_string();
    }
    let x = draw.uniform(-1.0, 1.0) * draw.decade(-3.0, 4.0);
    match draw.below(6) {
        0 => format!("{x}"),
        1 => format!("{x:.1}"),
        2 => format!("{x:.3}"),
        3 => format!("{x:e}"),
        4 => format!("{:+.2}", x),
        _ => format!("{:.2}", x.abs()).trim_start_matches('0').to_owned(),
    }
}

/// The cell with quotes if it needs them, and sometimes without need.
fn quoted(draw: &mut Draw, cell: &str, delimiter: char) -> String {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let needs = cell.contains(['\n', '\r', delimiter])
        || cell.starts_with('"')
        || delimiter == ' ' && (cell.is_empty() || cell.contains(is_blank));
    if needs || draw.below(8) == 0 { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

fn drawn(draw: &mut Draw) -> Drawn {
    let width = draw.one(&[1, 2, 3, 5, 12, 60]);
    let num_rows = draw.one(&[0, 1, 2, 3, 8, 40]);
    let delimiter = draw.one(&[',', ';', '\t', ' ']);
    let decimal = if delimiter == ',' { '.' } else { draw.one(&['.', ',']) };
    let kind =
        |draw: &mut Draw| draw.one(&[Kind::Numbers, Kind::Numbers, Kind::Whole, Kind::Counter, Kind::Text]);
    let mut kinds: Vec<Kind> = (0..width).map(|_| kind(draw)).collect();
    kinds[draw.below(width)] = Kind::Numbers;
    let has_heading = draw.below(4) > 0;
    let is_first_unnamed =
        has_heading && width > 1 && kinds[0] == Kind::Counter && num_rows > 1 && draw.coin();
    let names: Vec<String> = (0..width)
        .map(|i| match kinds[i] {
            _ if !has_heading || i == 0 && is_first_unnamed => String::new(),
            _ if i > 0 && draw.below(8) == 0 => String::new(),
            Kind::Counter if draw.coin() => draw.one(&COUNTERS).to_owned(),
            _ if draw.below(6) == 0 => format!("{} {i}", draw.one(&WORDS)).trim().to_owned(),
            _ => format!("v{i}"),
        })
        .collect();
    let mut names = names;
    if has_heading && names.iter().all(String::is_empty) {
        names[width - 1] = "v".to_owned();
    }
    let rate = draw.one(&[0, 0, 5, 50]);
    let first = draw.below(3) as f64;
    let end = draw.one(&["\n", "\r\n", "\r"]);
    let mut out = if draw.coin() { "\u{feff}".to_owned() } else { String::new() };
    let joined = |cells: Vec<String>, draw: &mut Draw| {
        let blanks = |draw: &mut Draw| {
            if delimiter == ' ' || draw.below(6) == 0 { " ".repeat(draw.below(3)) } else { String::new() }
        };
        let between =
            if delimiter == ' ' { draw.one(&[" ", "   "]).to_owned() } else { delimiter.to_string() };
        let padded: Vec<String> =
            cells.into_iter().map(|cell| format!("{}{cell}{}", blanks(draw), blanks(draw))).collect();
        padded.join(&between)
    };
    let mut line = 1;
    let breaks = |text: &str| text.replace("\r\n", "\n").matches(['\n', '\r']).count();
    if has_heading {
        let written = names.iter().skip(usize::from(is_first_unnamed));
        let cells = written.map(|name| quoted(draw, name, delimiter)).collect();
        let text = joined(cells, draw) + end;
        line += breaks(&text);
        out += &text;
    }
    let (mut rows, mut lines, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..num_rows {
        while draw.below(10) == 0 {
            out += &(draw.one(&["", "  "]).to_owned() + end);
            line += 1;
        }
        let (mut values, mut cells) = (Vec::new(), Vec::new());
        for &kind in &kinds {
            let is_missing = draw.below(100) < rate && kind != Kind::Counter && (i > 0 || has_heading);
            let (value, cell) = match kind {
                Kind::Counter => (Some(first + i as f64), (first as usize + i).to_string()),
                _ if is_missing && (width == 1 || draw.coin()) => (None, draw.one(&MISSING).to_owned()),
                _ if is_missing => (None, String::new()),
                Kind::Text => (None, draw.one(&WORDS).to_owned()),
                kind => {
                    let text = number(draw, kind);
                    (Some(text.parse().unwrap()), text.replace('.', &decimal.to_string()))
                }
            };
            values.push(value);
            cells.push(quoted(draw, &cell, delimiter));
        }
        let text = joined(cells, draw);
        (lines.push(line), starts.push(out.len()));
        line += breaks(&text) + 1;
        out += &(text + end);
        rows.push(values);
    }
    if draw.coin() {
        out.truncate(out.len() - if out.ends_with(end) { end.len() } else { 0 });
    }
    Drawn { text: out, delimiter, decimal, has_heading, is_first_unnamed, names, kinds, rows, lines, starts }
}

impl Drawn {
    fn width(&self) -> usize {
        self.kinds.len()
    }

    /// The name in tables.
    fn name(&self, i: usize) -> String {
        if self.names[i].is_empty() { format!("x{}", i + 1) } else { self.names[i].clone() }
    }

    /// The name in messages.
    fn shown(&self, i: usize) -> String {
        if self.names[i].is_empty() {
            format!("column {}:", i + 1)
        } else {
            format!("column {}:", shortened(&self.names[i]))
        }
    }

    /// The columns to read, text and counters left out, and the counters.
    fn kept(&self) -> (Vec<usize>, Vec<usize>) {
        let is_empty = |i: &usize| self.rows.iter().all(|row| row[*i].is_none());
        let numeric: Vec<usize> =
            (0..self.width()).filter(|i| self.kinds[*i] != Kind::Text && !is_empty(i)).collect();
        let all: Vec<usize> = if numeric.is_empty() { (0..self.width()).collect() } else { numeric };
        let is_counter = |i: &usize| {
            self.has_heading
                && self.rows.len() > 2
                && self.kinds[*i] == Kind::Counter
                && (self.names[*i].is_empty() || COUNTERS.contains(&&self.names[*i][..]))
        };
        let (counters, others): (Vec<_>, Vec<_>) = all.iter().partition(|i| is_counter(i));
        if others.is_empty() { (all, Vec::new()) } else { (others, counters) }
    }
}

/// Counts of what was drawn.
#[derive(Debug, Default)]
struct Found {
    read: usize,
    dropped: usize,
    missing_refused: usize,
    ambiguous: usize,
    all_text: usize,
    by_chance: usize,
    damaged: [usize; 4],
    counters: usize,
    unnamed: usize,
    guessed_commas: usize,
    wide: usize,
    delimiters: [usize; 4],
}

#[test]
fn rows_read_and_rows_dropped_are_all_rows_and_no_cell_changes() {
    let (mut draw, mut found) = (Draw(36), Found::default());
    for case in 0..num_cases(120) {
        let table = drawn(&mut draw);
        // A single column has no delimiter, so its decimal commas need an option.
        let is_given = draw.below(3) == 0 || table.width() == 1;
        let mut options = CsvOptions::default().numeric_only().skip_counters();
        if is_given {
            options = options.delimiter(table.delimiter).decimal(table.decimal);
        }
        let missing = draw.below(3);
        let options = match missing {
            0 => options,
            1 => options.drop_missing(),
            _ => options.keep_missing(),
        };
        let result = options.parse("t.txt", table.text.as_bytes());
        let (kept, counters) = table.kept();
        let (of_kept, is_missing) = (
            |row: &Vec<Option<f64>>| -> Vec<f64> {
                kept.iter().map(|&i| row[i].unwrap_or(f64::NAN)).collect()
            },
            |row: &&Vec<Option<f64>>| kept.iter().any(|&i| row[i].is_none()),
        );
        let num_missing = table.rows.iter().filter(is_missing).count();
        let read = match result {
            Ok(read) => read,
            Err(IoError::Csv { remedy: Some(Remedy::Delimiters | Remedy::Decimals), .. }) if !is_given => {
                found.ambiguous += 1;
                continue;
            }
            // All columns are read if none is numeric.
            Err(e) if kept.iter().any(|&i| table.kinds[i] == Kind::Text) => {
                let is_at = |line: &usize| e.to_string().starts_with(&format!("t.txt line {line}: column"));
                assert!(table.lines.iter().any(is_at), "case {case}: {e}\n{}", table.text);
                found.all_text += 1;
                continue;
            }
            Err(e) => {
                let odd = table.rows.iter().zip(&table.lines).find(|(row, _)| is_missing(row));
                let place = odd.map(|(row, line)| {
                    let column = kept.iter().find(|&&i| row[i].is_none()).unwrap();
                    format!("t.txt line {line}: {}", table.shown(*column))
                });
                let is_there = missing == 0 && place.is_some_and(|place| e.to_string().starts_with(&place));
                // A delimiter in text may divide all lines by chance, and then leaves no numbers.
                assert!(is_there || !is_given, "case {case}: {e}\n{}", table.text);
                assert!(e.to_string().starts_with("t.txt line "), "case {case}: {e}");
                (found.missing_refused, found.by_chance) =
                    (found.missing_refused + usize::from(is_there), found.by_chance + usize::from(!is_there));
                continue;
            }
        };
        let kept_rows =
            || table.rows.iter().zip(&table.lines).filter(|(row, _)| missing == 2 || !is_missing(row));
        let expected: Vec<f64> = kept_rows().flat_map(|(row, _)| of_kept(row)).collect();
        let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|x| x.to_bits()).collect() };
        assert!(missing > 0 || num_missing == 0 || table.rows.is_empty(), "case {case}");
        assert_eq!(bits(&read.data), bits(&expected), "case {case}\n{}", table.text);
        assert_eq!(read.lines, kept_rows().map(|(_, line)| *line).collect::<Vec<_>>(), "case {case}");
        let names = |places: &[usize]| -> Vec<String> { places.iter().map(|&i| table.name(i)).collect() };
        if !(table.rows.is_empty() && !table.has_heading) {
            assert_eq!(
                (read.columns, read.counters),
                (names(&kept), names(&counters)),
                "case {case}\n{}",
                table.text
            );
        }
        assert_eq!(read.lines.len() + read.num_dropped, table.rows.len());
        assert_eq!(read.has_heading, table.has_heading);
        found.read += 1;
        found.dropped += read.num_dropped;
        found.counters += counters.len();
        found.unnamed += usize::from(table.is_first_unnamed);
        found.guessed_commas += usize::from(!is_given && table.decimal == ',');
        found.wide += usize::from(table.width() == 60);
        found.delimiters[[',', ';', '\t', ' '].iter().position(|&c| c == table.delimiter).unwrap()] += 1;
        if let Some(kind) = damage(&mut draw, &table, &kept, case) {
            found.damaged[kind] += 1;
        }
    }
    let Found { damaged, delimiters, ambiguous, .. } = &found;
    let counts = [
        found.read / 8,
        found.dropped,
        found.missing_refused,
        found.counters,
        found.unnamed,
        found.guessed_commas,
        found.wide,
    ];
    assert!(counts.iter().chain(damaged).chain(delimiters).all(|&n| n > 1), "{found:?}");

    assert!(*ambiguous < found.read / 8 && found.by_chance <= found.read / 500, "{found:?}");
}

/// Damages a row of a table, and checks the error. Returns the kind of the damage, if the table has rows.
fn damage(draw: &mut Draw, table: &Drawn, kept: &[usize], case: usize) -> Option<usize> {
    // A damaged row hides that the heading lacks the first name.
    if table.rows.is_empty() || table.width() < 2 || table.is_first_unnamed {
        return None;
    }
    let (row, kind) = (draw.below(table.rows.len()), draw.below(4));
    // The first row of a table without a heading gives the number of columns, and may look like a heading.
    if row == 0 && !table.has_heading && kind < 2 {
        return None;
    }
    let (delimiter, start) = (table.delimiter, table.starts[row]);
    let end = table.starts.get(row + 1).copied().unwrap_or(table.text.len());
    let length = table.text[start..end].trim_end_matches(['\n', '\r', ' ']).len();
    let (before, line, after) =
        (&table.text[..start], &table.text[start..start + length], &table.text[start + length..]);
    let cells: Vec<String> = table.rows[row]
        .iter()
        .map(|value| {
            value.map_or("NA".to_owned(), |x| x.to_string().replace('.', &table.decimal.to_string()))
        })
        .collect();
    let place = kept[draw.below(kept.len())];
    let with = |cell: &str| {
        let mut cells = cells.clone();
        cells[place] = cell.to_owned();
        cells.join(&delimiter.to_string())
    };
    let (line, words) = match kind {
        0 => (
            format!("{line}{delimiter}7"),
            format!("{} columns instead of {}", table.width() + 1, table.width()),
        ),
        1 => (with("oops"), format!("{} \"oops\" is not a number", table.shown(place))),
        2 => (with("\"7"), format!("{} ", table.shown(place))),
        _ => (with("\"7\"8"), format!("{} text follows the quotes of the cell", table.shown(place))),
    };
    let text = format!("{before}{line}{after}");
    let options = CsvOptions::default().columns([(place + 1).to_string()]).drop_missing();
    let error = options.delimiter(delimiter).decimal(table.decimal).parse("t.txt", text.as_bytes());
    let message = error.map(|table| table.data).unwrap_err().to_string();
    let expected = format!("t.txt line {}: {words}", table.lines[row]);
    assert!(message.starts_with(&expected), "case {case}: {message}, expected {expected}\n{text}");
    Some(kind)
}
