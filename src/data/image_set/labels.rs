//! The class of each image, from a file of labels: IDX1, `.npy` or `.csv`.
//!
//! Classes are integers from 0, as in class-conditional flows.

use super::{DataError, first_bytes, idx};
use crate::io::{read_csv, read_npy};
use std::path::Path;

/// Reads all labels of a file. CSV files are recognized by their extension, other formats by their first bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u16>, DataError> {
    let name = path.display().to_string();
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return numbers(&name, &read_csv(path)?.data);
    }
    match first_bytes(path, &name)? {
        [0x93, b'N', b'U', b'M'] => numbers(&name, &read_npy(path)?.data),
        [0x1f, 0x8b, ..] => idx::labels(path, &name, true),
        _ => idx::labels(path, &name, false),
    }
}

fn numbers(name: &str, values: &[f64]) -> Result<Vec<u16>, DataError> {
    let label = |(i, &value): (usize, &f64)| {
        let whole = value.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(&value);
        if whole {
            Ok(value as u16)
        } else {
            Err(DataError::Label { name: name.to_owned(), row: i + 1, value })
        }
    };
    values.iter().enumerate().map(label).collect()
}
