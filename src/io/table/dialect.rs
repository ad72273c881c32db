//! The delimiter and the decimal mark of a table, from its first records.
//!
//! A delimiter is possible if it divides the first records into the same number of cells, more than one. Of several
//! possible ones, the delimiter wins that explains the others: a comma in a number is a decimal mark, but a semicolon
//! in a cell of text is unexplained, and so are two numbers beside blanks. Next, the delimiter wins that leaves the fewest
//! columns with both numbers and text, then the one that leaves the greater part of the columns numeric. If two remain
//! that make other cells, or two divide a single line, the table is ambiguous, and refused.

use super::cells::Record;
use super::cells::Records;
use super::value::{Value, has_decimal_comma, is_missing, may_be_thousands};
use crate::io::error::Remedy;

/// Delimiters in the order they are tried. A space is any number of spaces and tabs.
const DELIMITERS: [char; 4] = ['\t', ';', ',', ' '];
/// Number of records that determine the delimiter, the decimal mark and the columns of text.
pub(super) const LOOKED_AT: usize = 1_000;

/// How the cells of a table are delimited, and how its numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub delimiter: char,
    pub decimal: char,
}

/// Why a table has no dialect.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ambiguous {
    pub line: usize,
    pub reason: String,
    pub remedy: Remedy,
}

impl Dialect {
    /// The dialect of a text; what is given is not detected.
    ///
    /// # Errors
    /// Two delimiters, or two decimal marks, fit the text.
    pub fn of(text: &str, delimiter: Option<char>, decimal: Option<char>) -> Result<Dialect, Ambiguous> {
        let is_same = delimiter.is_some() && delimiter == decimal;
        if let Some(c) =
            delimiter.filter(|&c| is_same && !(c == ',' && Split::of(text, c, decimal).has_quoted_decimals()))
        {
            let reason = format!("{c:?} is given as delimiter and as decimal mark");
            return Err(Ambiguous { line: 1, reason, remedy: Remedy::Delimiters });
        }
        let delimiter = match delimiter {
            Some(delimiter) => delimiter,
            None => detected(text, decimal)?,
        };
        let records = Split::of(text, delimiter, None).records;
        if let Some(reason) = years_that_may_be_headings(&records) {
            return Err(Ambiguous { line: records[0].line, reason, remedy: Remedy::Headings });
        }
        let decimal = match decimal {
            Some(decimal) => decimal,
            None if delimiter == ',' => quoted_decimal_mark(&records)?,
            None => decimal_mark(&records)?,
        };
        Ok(Dialect { delimiter, decimal })
    }
}

/// The first records under a delimiter.
struct Split<'a> {
    delimiter: char,
    decimal: Option<char>,
    records: Vec<Record<'a>>,
    /// Whether quotes fit the delimiter.
    is_whole: bool,
}

impl<'a> Split<'a> {
    fn of(text: &'a str, delimiter: char, decimal: Option<char>) -> Split<'a> {
        let mut records = Vec::new();
        let mut is_whole = true;
        for record in Records::new(text, delimiter).take(LOOKED_AT + 1) {
            match record {
                Ok(record) => records.push(record),
                Err(_) => is_whole = false,
            }
        }
        Split { delimiter, decimal, records, is_whole }
    }

    /// Whether all records have the same number of cells, more than one.
    fn is_even(&self) -> bool {
        let width = self.records.first().map_or(0, |first| first.cells.len());
        self.is_whole
            && (width > 1 && self.records.iter().all(|record| record.cells.len() == width)
                || lacks_first_name(&self.records, self.delimiter))
    }

    /// Number of records of the same length as the first, if they are more than half of all and longer than one cell.
    fn most(&self) -> Option<usize> {
        let width = self.records.first().map_or(0, |first| first.cells.len());
        let same = self.records.iter().filter(|record| record.cells.len() == width).count();
        (width > 1 && 2 * same > self.records.len()).then_some(same)
    }

    /// Whether commas delimit cells and stand in numbers in quotes, too.
    fn has_quoted_decimals(&self) -> bool {
        let mut cells = self.records.iter().flat_map(|record| &record.cells);
        self.delimiter == ',' && cells.any(|cell| has_decimal_comma(cell.text.trim()))
    }

    fn data(&self) -> &[Record<'a>] {
        let has_heading = self.records.first().is_some_and(is_heading);
        &self.records[usize::from(has_heading)..]
    }

    fn is_number(&self, cell: &str) -> bool {
        match self.decimal {
            Some(decimal) => Value::of(cell, decimal).is_number(),
            None => {
                Value::of(cell, '.').is_number() || self.delimiter != ',' && Value::of(cell, ',').is_number()
            }
        }
    }

    /// Whether a cell of text contains another delimiter that also divides the records, or two numbers beside blanks that do.
    fn is_unexplained(&self, others: &[Split]) -> bool {
        let divides = |c: char| c != self.delimiter && others.iter().any(|split| split.delimiter == c);
        let has_blanks = divides(' ');
        let is_odd = |text: &str| {
            text.contains(|c| c != ' ' && divides(c))
                || has_blanks
                    && text.contains([' ', '\t'])
                    && text.split_whitespace().filter(|part| self.is_number(part)).count() > 1
        };
        let cells = self.data().iter().flat_map(|record| &record.cells);
        cells.filter(|cell| !cell.is_quoted).any(|cell| !self.is_number(&cell.text) && is_odd(&cell.text))
    }

    /// Of the columns that are not empty, the share of those without both numbers and text, and the share of numeric ones.
    /// Both are 1 if all are empty.
    fn shares(&self) -> [f64; 2] {
        let columns = Cells::of_columns(self.data(), |cell| self.is_number(cell));
        let columns: Vec<Cells> = columns.into_iter().filter(|column| column.found > 0).collect();
        let share = |count: usize| if columns.is_empty() { 1.0 } else { count as f64 / columns.len() as f64 };
        [
            share(columns.iter().filter(|column| !column.is_mixed()).count()),
            share(columns.iter().filter(|column| column.is_numeric()).count()),
        ]
    }

    fn same_cells(&self, other: &Split) -> bool {
        let texts = |split: &Split| -> Vec<Vec<String>> {
            let cells = |record: &Record| record.cells.iter().map(|cell| cell.text.to_string()).collect();
            split.records.iter().map(cells).collect()
        };
        texts(self) == texts(other)
    }
}

/// The delimiter of a text; a comma if none divides it.
fn detected(text: &str, decimal: Option<char>) -> Result<char, Ambiguous> {
    let splits = DELIMITERS.into_iter().map(|delimiter| Split::of(text, delimiter, decimal));
    let is_possible = |split: &Split| Some(split.delimiter) != decimal || split.has_quoted_decimals();
    let splits: Vec<Split> = splits.filter(is_possible).collect();
    let (even, uneven): (Vec<Split>, Vec<Split>) = splits.into_iter().partition(Split::is_even);
    let none = if decimal == Some(',') { ';' } else { ',' };
    if even.is_empty() {
        let most = uneven.iter().filter_map(|split| Some((split.most()?, split.delimiter)));
        return Ok(most.rev().max_by_key(|(same, _)| *same).map_or(none, |(_, delimiter)| delimiter));
    }
    // A delimiter that leaves no number is the wrong one if another leaves some.
    let (with_numbers, without): (Vec<Split>, Vec<Split>) =
        even.into_iter().partition(|split| split.shares()[1] > 0.0);
    let even = if with_numbers.is_empty() { without } else { with_numbers };
    // A heading lacks its first name only if no delimiter gives it one.
    let (lacking, named): (Vec<Split>, Vec<Split>) =
        even.into_iter().partition(|split| lacks_first_name(&split.records, split.delimiter));
    let even = if named.is_empty() { lacking } else { named };
    let is_one_line = even.iter().all(|split| split.records.len() == 1);
    // A single line that is a heading under one delimiter and a row under another is ambiguous.
    let is_heading = |split: &&Split| split.data().is_empty();
    let is_either =
        is_one_line && even.iter().any(|s| is_heading(&s)) && !even.iter().all(|s| is_heading(&s));
    let explained: Vec<&Split> = even.iter().filter(|split| !split.is_unexplained(&even)).collect();
    let left = if explained.is_empty() || is_either { even.iter().collect() } else { explained };
    let most = left.iter().map(|split| split.shares()).fold([0.0; 2], |a, b| if b > a { b } else { a });
    let left = match is_one_line {
        true => left,
        false => left.into_iter().filter(|split| split.shares() >= most).collect::<Vec<&Split>>(),
    };
    match left.iter().find(|split| !split.same_cells(left[0])) {
        None => Ok(left[0].delimiter),
        Some(second) => Err(Ambiguous {
            line: left[0].records.first().map_or(1, |record| record.line),
            reason: format!(
                "{} and {} both divide the lines into the same number of cells",
                name(left[0].delimiter),
                name(second.delimiter)
            ),
            remedy: Remedy::Delimiters,
        }),
    }
}

fn name(delimiter: char) -> String {
    match delimiter {
        '\t' => "tabs".to_owned(),
        ';' => "semicolons".to_owned(),
        ',' => "commas".to_owned(),
        ' ' => "spaces".to_owned(),
        c => format!("{c:?}"),
    }
}

/// The decimal mark of the first records: a comma if numbers have commas, otherwise a point.
fn decimal_mark(records: &[Record]) -> Result<char, Ambiguous> {
    let has_heading = records.first().is_some_and(is_heading);
    let data = || {
        let rows = records[usize::from(has_heading)..].iter();
        rows.flat_map(|record| record.cells.iter().map(|cell| (record.line, cell.text.trim())))
    };
    let Some((line, comma)) = data().find(|(_, cell)| has_decimal_comma(cell)) else { return Ok('.') };
    let is_point = |(_, cell): &(usize, &str)| cell.contains('.') && Value::of(cell, '.').is_number();
    if let Some((other, point)) = data().find(is_point) {
        let is_thousands = data().filter(is_point).all(|(_, cell)| may_be_thousands(&cell.replace('.', ",")));
        let why = if is_thousands {
            ", which may separate thousands; if so, remove the points of such numbers"
        } else {
            ""
        };
        let reason = format!("{comma} has a decimal comma, but {point} in line {other} has a point{why}");
        return Err(Ambiguous { line, reason, remedy: Remedy::Decimals });
    }
    if data().filter(|(_, cell)| has_decimal_comma(cell)).all(|(_, cell)| may_be_thousands(cell)) {
        let reason = format!("the comma of {comma} is a decimal mark or separates thousands");
        return Err(Ambiguous { line, reason, remedy: Remedy::Decimals });
    }
    Ok(',')
}

/// The decimal mark beside commas that delimit cells: a point, unless numbers in quotes have commas that do not separate
/// thousands and no number has a point. Spreadsheets and pandas write `"18,0"`, but the cell may also be a list.
fn quoted_decimal_mark(records: &[Record]) -> Result<char, Ambiguous> {
    let cells =
        || records.iter().flat_map(|record| record.cells.iter().map(|cell| (record.line, cell.text.trim())));
    let has_point = |cell: &str| cell.contains('.') && Value::of(cell, '.').is_number();
    let mut commas = cells().filter(|(_, cell)| has_decimal_comma(cell) && !may_be_thousands(cell));
    match commas.next().filter(|_| !cells().any(|(_, cell)| has_point(cell))) {
        None => Ok('.'),
        Some((line, cell)) => {
            let reason = format!("the comma of \"{cell}\" is a decimal mark or belongs to text");
            Err(Ambiguous { line, reason, remedy: Remedy::Decimals })
        }
    }
}

/// Whether a cell may be a heading: it is text, empty or sodium.
fn is_name(text: &str) -> bool {
    text.is_empty()
        || text == "Na"
        || [Value::of(text, '.'), Value::of(text, ',')].iter().all(|value| *value == Value::Text)
}

/// Says why the first record may be a heading with years, such as `country,2019,2020`, or a row. It is ambiguous if it has two
/// or more years from 1800 to 2199 in rising or falling order, and at most half of the other records do.
fn years_that_may_be_headings(records: &[Record]) -> Option<String> {
    let [first, others @ ..] = records else { return None };
    let alike = others.iter().filter(|record| years(record).is_some()).count();
    let years = years(first).filter(|_| !others.is_empty() && 2 * alike <= others.len())?;
    let shown: Vec<String> = years.iter().take(3).map(i32::to_string).collect();
    let more = if years.len() > shown.len() { ", ..." } else { "" };
    Some(format!("{}{more} are headings, or numbers of a row", shown.join(", ")))
}

/// The numbers of a record if they are two or more years that rise or fall, and the other cells are names.
fn years(record: &Record) -> Option<Vec<i32>> {
    let texts: Vec<&str> = record.cells.iter().map(|cell| cell.text.trim()).collect();
    let year = |text: &str| text.parse().ok().filter(|year| text.len() == 4 && (1800..2200).contains(year));
    let years: Vec<i32> = texts.into_iter().filter(|text| !is_name(text)).map(year).collect::<Option<_>>()?;
    let in_order = |sign: i32| years.windows(2).all(|two| (two[1] - two[0]).signum() == sign);
    (years.len() > 1 && (in_order(1) || in_order(-1))).then_some(years)
}

/// Whether a record is a heading: no cell is a number, none is a missing value but for empty cells and `Na`, and not all are empty.
pub(super) fn is_heading(record: &Record) -> bool {
    record.cells.iter().all(|cell| is_name(cell.text.trim()))
        && record.cells.iter().any(|cell| !cell.text.trim().is_empty())
}

/// Whether the first record is a heading without a name for the first column, as R writes it: the other records have one
/// cell more, which is a name in quotes, a text, or counts them. In two cells beside a comma or blanks, numbers that count
/// may be the digits before a decimal comma or thousands.
pub(super) fn lacks_first_name(records: &[Record], delimiter: char) -> bool {
    let [first, rest @ ..] = records else { return false };
    let width = first.cells.len() + 1;
    let is_name = |record: &Record| {
        let cell = &record.cells[0];
        // `1,` is a number with a delimiter beside it.
        cell.is_quoted
            || Value::of(&cell.text, '.') == Value::Text && !cell.text.trim_end().ends_with([',', ';'])
    };
    let number = |record: &Record| record.cells[0].text.parse::<i64>().ok();
    let counts =
        || rest.windows(2).all(|two| number(&two[0]).is_some_and(|n| number(&two[1]) == n.checked_add(1)));
    rest.len() > 1
        && is_heading(first)
        && rest.iter().all(|record| record.cells.len() == width)
        // A delimiter at the end of each line makes an empty cell, not a column.
        && rest.iter().any(|record| !record.cells[width - 1].text.trim().is_empty())
        && (rest.iter().all(is_name) || (width > 2 || !matches!(delimiter, ',' | ' ')) && counts())
}

/// How many cells of a column are there, and how many of them are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    /// Cells that are not missing.
    pub found: usize,
    pub numbers: usize,
}

impl Cells {
    /// Of each column, over records.
    pub fn of_columns(records: &[Record], is_number: impl Fn(&str) -> bool) -> Vec<Cells> {
        let width = records.first().map_or(0, |record| record.cells.len());
        let mut columns = vec![Cells::default(); width];
        for record in records {
            for (column, cell) in columns.iter_mut().zip(&record.cells) {
                let cell = cell.text.trim();
                column.found += usize::from(!is_missing(cell));
                column.numbers += usize::from(is_number(cell));
            }
        }
        columns
    }

    /// Whether there are numbers, at least as many as other cells.
    pub fn is_numeric(&self) -> bool {
        self.found > 0 && 2 * self.numbers >= self.found
    }

    fn is_mixed(&self) -> bool {
        (1..self.found).contains(&self.numbers)
    }
}
