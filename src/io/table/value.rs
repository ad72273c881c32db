//! What a cell stands for: a number, a missing value, or text.

/// Spellings of a missing value besides the empty cell, in lower case: those of R, pandas, NumPy, SQL, SAS, Stata, UCI,
/// spreadsheets and the C library of Windows.
const MISSING: [&str; 17] = [
    "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "+nan", "null", "none", "nil", "?", ".", "-", "--",
    "1.#qnan", "-1.#ind",
];

/// What a cell stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Missing,
    Text,
}

impl Value {
    /// Reads a cell. With decimal commas, a point makes a cell text, because it may separate thousands.
    pub fn of(cell: &str, decimal: char) -> Value {
        let cell = cell.trim();
        if is_missing(cell) {
            return Value::Missing;
        }
        let number: Option<f64> = match decimal {
            '.' => cell.parse().ok(),
            _ => with_point(cell, decimal).and_then(|cell| cell.parse().ok()),
        };
        match number.filter(|&x| !is_too_large(cell, x)) {
            Some(x) => Value::Number(x),
            None => Value::Text,
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Value::Number(_))
    }
}

/// Whether a cell has a usual spelling of a missing value.
pub(super) fn is_missing(cell: &str) -> bool {
    cell.is_empty() || cell.len() <= 8 && MISSING.iter().any(|spelling| cell.eq_ignore_ascii_case(spelling))
}

/// Whether digits stand for a number beyond the range of f64, which reads as infinite.
pub(super) fn is_too_large(cell: &str, x: f64) -> bool {
    x.is_infinite() && cell.bytes().any(|b| b.is_ascii_digit())
}

/// A number with a point as its decimal mark. A digit follows the mark, so that `1,` before a blank is no number.
fn with_point(cell: &str, decimal: char) -> Option<String> {
    let Some((whole, rest)) = cell.split_once(decimal) else {
        return (!cell.contains('.')).then(|| cell.to_owned());
    };
    let is_digit = rest.bytes().next().is_some_and(|b| b.is_ascii_digit());
    (is_digit && !cell.contains('.')).then(|| format!("{whole}.{rest}"))
}

/// Whether a cell is a number with one decimal comma.
pub(super) fn has_decimal_comma(cell: &str) -> bool {
    cell.contains(',') && Value::of(cell, ',').is_number()
}

/// Whether the comma of a number may also separate thousands: `1,234`, but not `0,234`.
pub(super) fn may_be_thousands(cell: &str) -> bool {
    let digits = cell.trim().trim_start_matches(['+', '-']);
    let is_group = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    digits.split_once(',').is_some_and(|(first, rest)| {
        (1..=3).contains(&first.len())
            && rest.len() == 3
            && is_group(first)
            && is_group(rest)
            && !first.starts_with('0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_numbers_missing_or_text() {
        for (cell, point, comma) in [
            ("1.5", Value::Number(1.5), Value::Text),
            ("1,5", Value::Text, Value::Number(1.5)),
            (" -2e3 ", Value::Number(-2e3), Value::Number(-2e3)),
            ("1,5e-3", Value::Text, Value::Number(1.5e-3)),
            ("-7", Value::Number(-7.0), Value::Number(-7.0)),
            (",5", Value::Text, Value::Number(0.5)),
            ("1,", Value::Text, Value::Text),
            ("1,2,3", Value::Text, Value::Text),
            ("1.234,5", Value::Text, Value::Text),
            ("1e999", Value::Text, Value::Text),
            ("-inf", Value::Number(f64::NEG_INFINITY), Value::Number(f64::NEG_INFINITY)),
            ("cat", Value::Text, Value::Text),
            ("-+", Value::Text, Value::Text),
        ] {
            assert_eq!([Value::of(cell, '.'), Value::of(cell, ',')], [point, comma], "{cell}");
        }
        for cell in ["", " ", "NA", "nan", "NaN", "#N/A", "NULL", "None", "?", ".", "-1.#IND"] {
            assert_eq!([Value::of(cell, '.'), Value::of(cell, ',')], [Value::Missing; 2], "{cell}");
        }
        assert_eq!(
            ["1,234", "-12,345", "0,234", "1,23", "1234,567", "1,234,567"].map(may_be_thousands),
            [true, true, false, false, false, false]
        );
    }
}
