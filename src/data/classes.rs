//! The classes of the rows of a table, by their names.
//!
//! A class is a category of a label column. The classes have numbers in the order of their names, so that a file in
//! another order has the same numbers. Other files are numbered by the names of the training rows.

use super::DataError;

/// The classes of a table, and the class of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    /// The label column; empty for labels in memory.
    pub column: String,
    /// The name of each class: numbers in their order, then text.
    pub names: Vec<String>,
    /// The number of each row's class.
    pub of_rows: Vec<u16>,
}

impl Classes {
    /// The classes with these labels, one per row.
    ///
    /// # Errors
    /// [`DataError::ClassCount`] for more than 65,535.
    pub fn of(name: &str, column: String, labels: &[String]) -> Result<Classes, DataError> {
        let mut names: Vec<String> = labels.to_vec();
        let number = |name: &String| name.parse().unwrap_or(f64::INFINITY);
        names.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
        names.dedup();
        let (found, rows) = (names.len(), labels.len());
        let mut classes = Classes { column, names, of_rows: Vec::new() };
        if found > MOST {
            return Err(classes.refused(name, rows));
        }
        classes.of_rows = classes.numbers(labels).expect("invariant: each label is a name");
        Ok(classes)
    }

    /// Checks that a density per class can be learned.
    ///
    /// # Errors
    /// [`DataError::ClassCount`] for one class, or more than half as many as rows.
    pub fn check(&self, name: &str) -> Result<(), DataError> {
        let (found, rows) = (self.names.len(), self.of_rows.len());
        if found < 2 || 2 * found > rows { Err(self.refused(name, rows)) } else { Ok(()) }
    }

    fn refused(&self, name: &str, rows: usize) -> DataError {
        let by = if self.column.is_empty() { String::new() } else { format!(", column {}", self.column) };
        DataError::ClassCount { name: format!("{name}{by}"), found: self.names.len(), rows }
    }

    /// The number of each label's class.
    ///
    /// # Errors
    /// The index of the first label that is no name of a class.
    pub fn numbers(&self, labels: &[String]) -> Result<Vec<u16>, usize> {
        numbers(&self.names, labels)
    }

    /// The name of each row's class.
    pub fn labels(&self) -> Vec<String> {
        self.of_rows.iter().map(|&k| self.names[usize::from(k)].clone()).collect()
    }

    /// The classes of some rows.
    pub fn select(&self, which: &[usize]) -> Classes {
        let of_rows = which.iter().map(|&row| self.of_rows[row]).collect();
        Classes { of_rows, ..self.clone() }
    }
}

/// The largest number of classes.
const MOST: usize = 65_535;

/// The number of each label in the names.
///
/// # Errors
/// The index of the first label that is none of the names.
pub fn numbers(names: &[String], labels: &[String]) -> Result<Vec<u16>, usize> {
    let known: std::collections::BTreeMap<&String, u16> = names.iter().zip(0..).collect();
    labels.iter().enumerate().map(|(i, label)| known.get(label).copied().ok_or(i)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;

    /// 2 to 200 rows of 1, 2, 5, 40 or 100 classes, named by words, whole numbers or decimals.
    #[test]
    fn classes_are_numbered_by_their_names_and_found_again() {
        let (mut draw, mut found) = (Draw(8), [0; 3]);
        for _ in 0..300 {
            let (n, most) = (2 + draw.below(199), draw.one(&[1, 2, 5, 40, 100]));
            let kind = draw.below(3);
            let name = |k: usize| match kind {
                0 => format!("class {k}"),
                1 => k.to_string(),
                _ => format!("{}", k as f64 / 4.0),
            };
            let labels: Vec<String> = (0..n).map(|_| name(draw.below(most))).collect();
            let distinct = labels.iter().collect::<std::collections::BTreeSet<_>>().len();
            let classes = Classes::of("p.csv", "kind".into(), &labels).unwrap();
            match classes.check("p.csv") {
                Ok(()) => {
                    assert!(classes.labels() == labels && classes.names.len() == distinct);
                    let mut reversed = labels.clone();
                    reversed.reverse();
                    let again = Classes::of("p.csv", "kind".into(), &reversed).unwrap();
                    assert_eq!(again.names, classes.names);
                    assert_eq!(
                        classes.select(&[n - 1, 0]).labels(),
                        [labels[n - 1].clone(), labels[0].clone()]
                    );
                    assert!(kind == 0 || classes.names.is_sorted_by_key(|name| name.parse::<f64>().unwrap()));
                    assert_eq!(classes.numbers(&["none".to_owned()]), Err(0));
                    found[0] += 1;
                }
                Err(e) => {
                    assert!(distinct < 2 || 2 * distinct > n, "{e}");
                    found[if distinct < 2 { 1 } else { 2 }] += 1;
                }
            }
        }
        assert!(found.iter().all(|&count| count > 3), "{found:?}");
    }
}
