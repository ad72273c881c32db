//! Columns that only count the rows of a table. They have no density, and are learned by mistake.
//!
//! A column counts rows if
//!
//! - the table has a heading and at least three rows;
//! - each cell is a whole number, greater by one than the cell above it, over all rows of the file;
//! - its name is empty or, without regard to case and punctuation, one of [`NAMES`], or its last word is `id` or `index`:
//!   `id`, `ID`, `Unnamed: 0` of pandas, `PassengerId`, `row_index`. Words end before a character that is no letter or
//!   digit, and before a capital letter that follows a small one.
//!
//! The name is asked because whole numbers in order are often data: years, days, doses.

/// Names of counters, in lower case, with their letters and digits alone.
const NAMES: [&str; 19] = [
    "id",
    "index",
    "idx",
    "no",
    "nr",
    "num",
    "number",
    "row",
    "rows",
    "rowid",
    "rownum",
    "rownumber",
    "rowno",
    "rowname",
    "rownames",
    "obs",
    "observation",
    "case",
    "record",
];

/// Whether a column of this name may count rows.
pub(super) fn is_counter_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let is_unnamed =
        plain.strip_prefix("unnamed").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    let last = last_word(name).to_lowercase();
    plain.is_empty() || is_unnamed || NAMES.contains(&&plain[..]) || last == "id" || last == "index"
}

/// The last word of a name.
fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut start = 0;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        if !c.is_alphanumeric() {
            start = at + c.len_utf8();
        } else if before.is_lowercase() && c.is_uppercase() {
            start = at;
        }
        before = c;
    }
    &name[start..]
}

/// Whether numbers rise by one, at least three of them.
pub(super) fn counts(mut column: impl Iterator<Item = f64> + Clone) -> bool {
    let is_whole = |x: f64| x.fract() == 0.0 && x.abs() < 2f64.powi(53);
    let mut next = column.clone().skip(1);
    column.clone().nth(2).is_some()
        && next.all(|b| column.next().is_some_and(|a| is_whole(a) && is_whole(b) && b == a + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_counters_are_known_and_others_are_not() {
        for name in [
            "",
            "#",
            "id",
            "ID",
            "Id",
            "Unnamed: 0",
            "unnamed",
            "index",
            "PassengerId",
            "person_id",
            "row.names",
            "No.",
            "row index",
        ] {
            assert!(is_counter_name(name), "{name}");
        }
        for name in [
            "x",
            "x1",
            "year",
            "day",
            "humid",
            "valid",
            "acid",
            "dose",
            "atomic_number",
            "unnamed_dose",
            "idx2",
            "IDs",
        ] {
            assert!(!is_counter_name(name), "{name}");
        }
    }

    #[test]
    fn whole_numbers_that_rise_by_one_count() {
        let counts = |values: &[f64]| counts(values.iter().copied());
        assert!(counts(&[0.0, 1.0, 2.0]) && counts(&[-1.0, 0.0, 1.0, 2.0]));
        for odd in [
            &[1.0, 2.0][..],
            &[0.5, 1.5, 2.5],
            &[1.0, 2.0, 2.0],
            &[1.0, 2.0, f64::NAN],
            &[3.0, 2.0, 1.0],
            &[1e16, 1e16, 1e16],
        ] {
            assert!(!counts(odd), "{odd:?}");
        }
    }
}
