//! The three parts of a file: training, validation and test rows.
//!
//! The module handles row numbers and classes, not the contents of rows. The seed determines the parts, so a
//! resumed run has the same parts.

use super::{DataError, Split};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Default share of a file's rows for validation; the test gets the same share.
pub const HELD_OUT_SHARE: f64 = 0.1;

/// Number of rows in each part; 0 for a part that is sampled on demand from a known density.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parts {
    /// Training rows.
    pub train: usize,
    /// Validation rows, which select the weights.
    pub validation: usize,
    /// Test rows, measured once at the end.
    pub test: usize,
}

impl Parts {
    /// Counts the rows of each part.
    pub(crate) fn of<T>(train: &[usize], [validation, test]: &[(T, Vec<usize>); 2]) -> Parts {
        Parts { train: train.len(), validation: validation.1.len(), test: test.1.len() }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} training, {} validation, {} test", self.train, self.validation, self.test)
    }
}

/// Held-out rows given as separate sets.
#[derive(Clone, Copy, Debug)]
pub struct Given<T> {
    /// Validation rows: select the best weights and stop a run early.
    pub validation: Option<T>,
    /// Test rows: scored once, at the end. They do not affect the weights.
    pub test: Option<T>,
}

impl<T> Default for Given<T> {
    fn default() -> Given<T> {
        Given { validation: None, test: None }
    }
}

impl<T> Given<T> {
    /// Returns the training rows, and the set and rows for validation and for the test. If no set is given for
    /// a part, its rows are a random part of `whole` that the seed determines, with every class in proportion.
    pub(crate) fn parts<'a>(
        &'a self,
        whole: &'a T,
        (kind, name, labels): (&'static str, &str, Option<&[u16]>),
        rows: impl Fn(&T) -> usize,
        seed: u64,
    ) -> Result<(Vec<usize>, [(&'a T, Vec<usize>); 2]), DataError> {
        let given = [self.validation.as_ref(), self.test.as_ref()];
        let shares = given.map(|part| if part.is_some() { 0.0 } else { HELD_OUT_SHARE });
        let (found, least) = (rows(whole), 2 + given.iter().filter(|part| part.is_none()).count());
        if found < least {
            return Err(DataError::TooFew { kind, name: name.to_owned(), found, least });
        }
        let split = Split::seeded(found, shares, labels, seed)?;
        let of = |part: Option<&'a T>, split: Vec<usize>| {
            part.map_or((whole, split), |part| (part, (0..rows(part)).collect()))
        };
        Ok((split.train, [of(given[0], split.validation), of(given[1], split.test)]))
    }
}
