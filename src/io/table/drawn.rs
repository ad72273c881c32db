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
    /// The labels that the cells are, `None` for a missing cell.
    labels: Vec<Vec<Option<String>>>,
    lines: Vec<usize>,
    /// For each row, the byte at which it begins.
    starts: Vec<usize>,
}

const MISSING: [&str; 9] = ["NA", "NaN", "nan", "N/A", "null", "None", "?", "#N/A", "."];
const WORDS: [&str; 9] =
    ["cat", "day 1", "new york", "a,b", "x;y", "say \"hi\"", "two\nlines", "tab\there", "ünïcode"];
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
        4 => format!("{x:+.2}"),
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

/// Headings: some are empty, some hold delimiters or line breaks, and those of counters may name them.
fn headings(draw: &mut Draw, kinds: &[Kind], is_first_unnamed: bool) -> Vec<String> {
    let mut name = |i: usize| match kinds[i] {
        _ if i == 0 && is_first_unnamed || i > 0 && draw.below(8) == 0 => String::new(),
        Kind::Counter if draw.coin() => draw.one(&COUNTERS).to_owned(),
        _ if draw.below(6) == 0 => format!("{} {i}", draw.one(&WORDS)).trim().to_owned(),
        _ => format!("v{i}"),
    };
    let mut names: Vec<String> = (0..kinds.len()).map(&mut name).collect();
    if names.iter().all(String::is_empty) {
        names[kinds.len() - 1] = "v".to_owned();
    }
    names
}

/// A line of cells, some with blanks around them.
fn joined(draw: &mut Draw, cells: &[String], delimiter: char) -> String {
    let is_space = delimiter == ' ';
    let blanks = |draw: &mut Draw| " ".repeat(if is_space || draw.below(6) == 0 { draw.below(3) } else { 0 });
    let between = if is_space { draw.one(&[" ", "   "]).to_owned() } else { delimiter.to_string() };
    let padded: Vec<String> =
        cells.iter().map(|cell| format!("{}{cell}{}", blanks(draw), blanks(draw))).collect();
    padded.join(&between)
}

/// The value of a cell of row `count` and its text.
fn cell(
    draw: &mut Draw,
    kind: Kind,
    missing: Option<bool>,
    count: usize,
    decimal: char,
) -> (Option<f64>, String) {
    match (kind, missing) {
        (Kind::Counter, _) => (Some(count as f64), count.to_string()),
        (_, Some(true)) => (None, String::new()),
        (_, Some(false)) => (None, draw.one(&MISSING).to_owned()),
        (Kind::Text, None) => (None, draw.one(&WORDS).to_owned()),
        (kind, None) => {
            let text = number(draw, kind);
            (Some(text.parse().unwrap()), text.replace('.', &decimal.to_string()))
        }
    }
}

fn breaks(text: &str) -> usize {
    text.replace("\r\n", "\n").matches(['\n', '\r']).count()
}

fn drawn(draw: &mut Draw) -> Drawn {
    let width = draw.one(&[1, 2, 3, 5, 12, 60]);
    let num_rows = draw.one(&[0, 1, 2, 3, 8, 40]);
    let delimiter = draw.one(&[',', ';', '\t', ' ']);
    let decimal = if delimiter == ',' { '.' } else { draw.one(&['.', ',']) };
    let all = [Kind::Numbers, Kind::Numbers, Kind::Whole, Kind::Counter, Kind::Text];
    let mut kinds: Vec<Kind> = (0..width).map(|_| draw.one(&all)).collect();
    kinds[draw.below(width)] = Kind::Numbers;
    let has_heading = draw.below(4) > 0;
    // Two cells beside a comma or blanks may be one number.
    let is_known = width > 2 || width == 2 && !matches!(delimiter, ',' | ' ');
    let is_first_unnamed =
        has_heading && is_known && kinds[0] == Kind::Counter && num_rows > 1 && draw.coin();
    let (rate, first) = (draw.one(&[0, 0, 5, 50]), draw.below(3));
    let end = draw.one(&["\n", "\r\n", "\r"]);
    let mut table = Drawn {
        text: if draw.coin() { "\u{feff}".to_owned() } else { String::new() },
        delimiter,
        decimal,
        has_heading,
        is_first_unnamed,
        names: vec![String::new(); width],
        kinds: kinds.clone(),
        rows: Vec::new(),
        labels: Vec::new(),
        lines: Vec::new(),
        starts: Vec::new(),
    };
    if has_heading {
        table.names = headings(draw, &kinds, is_first_unnamed);
        let written = table.names.iter().skip(usize::from(is_first_unnamed));
        let cells: Vec<String> = written.map(|name| quoted(draw, name, delimiter)).collect();
        table.text += &(joined(draw, &cells, delimiter) + end);
    }
    for i in 0..num_rows {
        while draw.below(10) == 0 {
            table.text += &(draw.one(&["", "  "]).to_owned() + end);
        }
        let (mut values, mut cells, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for &kind in &kinds {
            let is_missing = draw.below(100) < rate && (i > 0 || has_heading);
            let missing = is_missing.then(|| width > 1 && draw.coin());
            let (value, text) = cell(draw, kind, missing, first + i, decimal);
            let is_word = kind == Kind::Text && !is_missing;
            names.push(value.map(|x| x.to_string()).or(is_word.then(|| text.clone())));
            values.push(value);
            cells.push(quoted(draw, &text, delimiter));
        }
        table.lines.push(1 + breaks(&table.text));
        table.starts.push(table.text.len());
        table.text += &(joined(draw, &cells, delimiter) + end);
        table.rows.push(values);
        table.labels.push(names);
    }
    if draw.coin() && table.text.ends_with(end) {
        table.text.truncate(table.text.len() - end.len());
    }
    table
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
    fn kept(&self, label: Option<usize>) -> (Vec<usize>, Vec<usize>) {
        let is_empty = |i: &usize| self.rows.iter().all(|row| row[*i].is_none());
        let others = || (0..self.width()).filter(|i| Some(*i) != label);
        let numeric: Vec<usize> = others().filter(|i| self.kinds[*i] != Kind::Text && !is_empty(i)).collect();
        let all: Vec<usize> = if numeric.is_empty() { others().collect() } else { numeric };
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
    labeled: usize,
    damaged: [usize; 4],
    counters: usize,
    unnamed: usize,
    guessed_commas: usize,
    wide: usize,
    delimiters: [usize; 4],
}

/// What is asked of a table: 0 to refuse missing cells, 1 to drop their rows, 2 to read NaN; the column of labels.
#[derive(Clone, Copy, Debug)]
struct Asked {
    case: usize,
    missing: usize,
    label: Option<usize>,
    is_given: bool,
}

impl Asked {
    fn options(&self, table: &Drawn) -> CsvOptions {
        let mut options = CsvOptions::default().numeric_only().skip_counters();
        if self.is_given {
            options = options.delimiter(table.delimiter).decimal(table.decimal);
        }
        if let Some(label) = self.label {
            options = options.labels((label + 1).to_string());
        }
        match self.missing {
            0 => options,
            1 => options.drop_missing(),
            _ => options.keep_missing(),
        }
    }

    /// The first missing cell of a row that is dropped or refused. Where cells are NaN, a label is refused nevertheless.
    fn missing_in(&self, table: &Drawn, kept: &[usize], row: usize) -> Option<usize> {
        let numbers = if self.missing == 2 { &[][..] } else { kept };
        let number = numbers.iter().copied().find(|&i| table.rows[row][i].is_none());
        number.or(self.label.filter(|&label| table.labels[row][label].is_none()))
    }

    /// Checks an error: it names the first missing cell, unless the table is ambiguous or has no numbers.
    fn refused(&self, table: &Drawn, error: &IoError, found: &mut Found) {
        let (case, text, (kept, _)) = (self.case, &table.text, table.kept(self.label));
        let is_ambiguous = matches!(
            error,
            IoError::Csv { remedy: Some(Remedy::Delimiters | Remedy::Decimals | Remedy::Headings), .. }
        );
        if is_ambiguous && !self.is_given {
            found.ambiguous += 1;
            return;
        }
        let message = error.to_string();
        // A heading without a first name does not show if the last cells are empty: a delimiter may end each line.
        let last = table.width() - 1;
        let is_last_empty = table
            .rows
            .iter()
            .zip(&table.labels)
            .all(|(row, labels)| row[last].is_none() && labels[last].is_none());
        if table.is_first_unnamed && is_last_empty {
            assert!(message.starts_with("t.txt line "), "case {case}: {message}");
            return;
        }
        // All columns are read if none is numeric.
        if kept.iter().any(|&i| table.kinds[i] == Kind::Text) {
            let is_at = |line: &usize| message.starts_with(&format!("t.txt line {line}: column"));
            assert!(table.lines.iter().any(is_at), "case {case}: {message}\n{text}");
            found.all_text += 1;
            return;
        }
        let first = (0..table.rows.len())
            .find_map(|row| self.missing_in(table, &kept, row).map(|column| (row, column)));
        let is_there = first.is_some_and(|(row, column)| {
            message.starts_with(&format!("t.txt line {}: {}", table.lines[row], table.shown(column)))
        });
        // A delimiter in text may divide all lines by chance, and then leaves no numbers.
        assert!(self.missing != 1 && is_there || !self.is_given, "case {case}: {message}\n{text}");
        assert!(message.starts_with("t.txt line "), "case {case}: {message}");
        found.missing_refused += usize::from(is_there);
        found.by_chance += usize::from(!is_there);
    }

    /// Checks a table that was read.
    fn read(&self, table: &Drawn, read: &Table, found: &mut Found) {
        let (case, text, (kept, counters)) = (self.case, &table.text, table.kept(self.label));
        let rows: Vec<usize> =
            (0..table.rows.len()).filter(|&row| self.missing_in(table, &kept, row).is_none()).collect();
        assert!(self.missing == 1 || rows.len() == table.rows.len(), "case {case}\n{text}");
        let value = |(&row, &i): (&usize, &usize)| table.rows[row][i].unwrap_or(f64::NAN).to_bits();
        let expected: Vec<u64> =
            rows.iter().flat_map(|row| kept.iter().map(move |i| value((row, i)))).collect();
        let bits: Vec<u64> = read.data.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, expected, "case {case}\n{text}");
        assert_eq!(read.lines, rows.iter().map(|&row| table.lines[row]).collect::<Vec<_>>(), "case {case}");
        if let Some(label) = self.label {
            let labels = rows.iter().map(|&row| table.labels[row][label].clone().unwrap());
            assert_eq!(read.labels, labels.collect::<Vec<_>>(), "case {case}\n{text}");
            found.labeled += 1;
        }
        let names = |places: &[usize]| -> Vec<String> { places.iter().map(|&i| table.name(i)).collect() };
        if !table.rows.is_empty() || table.has_heading {
            assert_eq!(read.columns, names(&kept), "case {case}\n{text}");
            assert_eq!(read.counters, names(&counters), "case {case}\n{text}");
        }
        assert_eq!(read.lines.len() + read.num_dropped, table.rows.len());
        assert_eq!(read.has_heading, table.has_heading);
        found.read += 1;
        found.dropped += read.num_dropped;
        found.counters += counters.len();
        found.unnamed += usize::from(table.is_first_unnamed);
        found.guessed_commas += usize::from(!self.is_given && table.decimal == ',');
        found.wide += usize::from(table.width() == 60);
        found.delimiters[[',', ';', '\t', ' '].iter().position(|&c| c == table.delimiter).unwrap()] += 1;
    }
}

#[test]
fn rows_read_and_rows_dropped_are_all_rows_and_no_cell_changes() {
    let (mut draw, mut found) = (Draw(36), Found::default());
    for case in 0..num_cases(150) {
        let table = drawn(&mut draw);
        let has_label = table.width() > 1 && !table.rows.is_empty() && draw.below(4) == 0;
        let asked = Asked {
            case,
            missing: draw.below(3),
            label: has_label.then(|| draw.below(table.width())),
            // A single column has no delimiter, so its decimal commas need an option.
            is_given: draw.below(3) == 0 || table.width() == 1,
        };
        match asked.options(&table).parse("t.txt", table.text.as_bytes()) {
            Err(e) => asked.refused(&table, &e, &mut found),
            Ok(read) => {
                asked.read(&table, &read, &mut found);
                if let Some(kind) = damage(&mut draw, &table, &table.kept(asked.label).0, case) {
                    found.damaged[kind] += 1;
                }
            }
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
        found.labeled,
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
