//! The three parts of a file: rows to learn from, rows that choose weights, rows that are measured once.
//!
//! Knows row numbers, classes and which sets were given; nothing of what is in a row. Parts are drawn by the seed, so that a
//! run that is resumed has those it was begun with.

use super::{DataError, Split};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Share of a file's rows that are for validation, and as many for the test, where no others are given.
pub const HELD_OUT_SHARE: f64 = 0.1;

/// How many rows each part of the data has; 0 for a part that is drawn anew from a known density as it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parts {
    /// Rows to learn from.
    pub train: usize,
    /// Rows that choose the weights.
    pub validation: usize,
    /// Rows that are measured once, at the end.
    pub test: usize,
}

impl Parts {
    /// Of training rows, and of the rows of validation and test.
    pub(crate) fn of<T>(train: &[usize], [validation, test]: &[(T, Vec<usize>); 2]) -> Parts {
        Parts { train: train.len(), validation: validation.1.len(), test: test.1.len() }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for training, {} for validation, {} for test", self.train, self.validation, self.test)
    }
}

/// Held-out rows that come in sets of their own.
#[derive(Clone, Copy, Debug)]
pub struct Given<T> {
    /// Choose the best weights and end a run early.
    pub validation: Option<T>,
    /// Are measured once, at the end, and influence no weight.
    pub test: Option<T>,
}

impl<T> Default for Given<T> {
    fn default() -> Given<T> {
        Given { validation: None, test: None }
    }
}

impl<T> Given<T> {
    /// Training rows, then the set and the rows in it of validation and of test: seeded parts of `whole`, every class in
    /// proportion, where no set is given.
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
