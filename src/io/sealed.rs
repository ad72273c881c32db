//! Readable JSON files with a checksum, which are stored beside a checkpoint.
//!
//! The checksum is a field of the object, computed over the other fields with sorted keys. Files of earlier
//! versions have no checksum and are read without a check.

use super::{Fnv, IoError, read, write_atomic};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;

/// The name of the checksum's field.
const CHECKSUM: &str = "checksum";

/// Writes an object and its checksum.
///
/// # Errors
/// [`IoError::Write`].
pub(crate) fn write_sealed<T: Serialize>(path: &Path, value: &T) -> Result<(), IoError> {
    let Ok(Value::Object(mut object)) = serde_json::to_value(value) else {
        unreachable!("invariant: plain values with fields");
    };
    object.insert(CHECKSUM.to_owned(), checksum(&object).into());
    let text = serde_json::to_string_pretty(&object).expect("invariant: values are text");
    write_atomic(path, |file| writeln!(file, "{text}"))
}

/// Reads an object; `None` if there is no file.
///
/// # Errors
/// [`IoError::Read`], or [`IoError::Damaged`] for text that is not an object or has another checksum.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, IoError> {
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(IoError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(other) => return Err(other),
    };
    let damaged = |reason: String| IoError::Damaged { path: path.to_owned(), bytes: bytes.len(), reason };
    let mut object: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    if let Some(expected) = object.remove(CHECKSUM)
        && expected != checksum(&object)
    {
        return Err(damaged("its checksum does not match its contents".to_owned()));
    }
    serde_json::from_value(Value::Object(object)).map(Some).map_err(|e| damaged(e.to_string()))
}

fn checksum(object: &Map<String, Value>) -> String {
    let text = serde_json::to_string(object).expect("invariant: values are text");
    Fnv::of(text.into_bytes()).text()
}
