//! Checkpoints: a tree of tensors and a header in one safetensors file, written atomically.
//!
//! Safetensors files have no checksum, so a flipped bit in a weight or in the mean of the data would go unnoticed. The
//! metadata holds a checksum of the header and the tensors, and the format number, which is checked first. The file
//! contains no time and no path, so equal states have equal bytes.
//!
//! The checksum of format 1 covered only the tensors. Such files are still read, and the code that uses their
//! header checks its values.

use super::tensors::{fill, from_bytes, little_endian, stored_as, to_bytes};
use super::{Fnv, IoError, read, write_atomic};
use crate::tensor::{Tensor, Tree};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The format number of the checkpoints that this version writes.
pub const FORMAT_VERSION: u64 = 2;
/// The oldest format that can be read.
const OLDEST: u64 = 1;

/// The metadata entry of the file, as JSON.
#[derive(Serialize, Deserialize)]
struct Metadata {
    format: u64,
    checksum: String,
    /// Keys are sorted and numbers are in their shortest form, so equal headers have equal texts and equal
    /// checksums.
    header: Value,
}

/// A checkpoint that was read: its header, and its tensors.
#[derive(Debug)]
pub struct Checkpoint<H> {
    /// The header.
    pub header: H,
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
}

/// Writes a header and the tensors of a tree.
///
/// # Errors
/// [`IoError::Write`]; an existing file is unchanged.
pub fn write_checkpoint<H: Serialize>(
    path: impl AsRef<Path>,
    header: &H,
    tree: &impl Tree,
) -> Result<(), IoError> {
    let bytes = checkpoint_bytes(header, tree);
    write_atomic(path, |file| file.write_all(&bytes))
}

/// The bytes of the file that [`write_checkpoint`] writes.
pub(crate) fn checkpoint_bytes<H: Serialize>(header: &H, tree: &impl Tree) -> Vec<u8> {
    let leaves = tree.named_leaves();
    let header = serde_json::to_value(header).expect("invariant: headers are plain values with string keys");
    let checksum = checksum(FORMAT_VERSION, &header, leaves.iter().map(|(name, t)| (name, t)));
    let metadata = serde_json::to_string(&Metadata { format: FORMAT_VERSION, checksum, header });
    let metadata = metadata.expect("invariant: values are strings");
    to_bytes(&leaves, Some(metadata))
}

/// Reads a checkpoint and verifies its checksum.
///
/// # Errors
/// [`IoError`]: the file is missing, damaged, not from a run, or from an incompatible version.
pub fn read_checkpoint<H: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Checkpoint<H>, IoError> {
    checkpoint_of(path.as_ref(), &read(path.as_ref())?)
}

/// A checkpoint from the bytes of a file; `path` is for messages.
///
/// # Errors
/// As [`read_checkpoint`], except the errors of reading the file.
pub(crate) fn checkpoint_of<H: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<Checkpoint<H>, IoError> {
    let path = path.to_owned();
    let damaged = |reason: String| IoError::Damaged { path: path.clone(), bytes: bytes.len(), reason };
    let (tensors, text) = from_bytes(&path, bytes)?;
    let Some(text) = text else { return Err(IoError::NotARun { path }) };
    let outline: Metadata = serde_json::from_str(&text).map_err(|e| damaged(format!("metadata: {e}")))?;
    if !(OLDEST..=FORMAT_VERSION).contains(&outline.format) {
        return Err(IoError::Version { path, found: outline.format, expected: FORMAT_VERSION });
    }
    if outline.checksum != checksum(outline.format, &outline.header, tensors.iter()) {
        return Err(damaged("its checksum does not match its contents".into()));
    }
    let header = serde_json::from_value(outline.header)
        .map_err(|e| IoError::Layout { path: path.clone(), reason: e.to_string() })?;
    Ok(Checkpoint { header, path, tensors })
}

impl<H> Checkpoint<H> {
    /// The number of elements of all tensors.
    pub(crate) fn num_elements(&self) -> usize {
        self.tensors.values().map(Tensor::size).sum()
    }

    /// The tree `like` with the file's tensors.
    ///
    /// # Errors
    /// If `like` does not have the leaves of the saved tree.
    pub fn into_tree<T: Tree>(self, like: &T) -> Result<T, IoError> {
        fill(&self.path, self.tensors, like)
    }

    /// A part of the saved tree: the tensors below `name`.
    ///
    /// # Errors
    /// If `like` does not have the leaves of that part.
    pub fn part<T: Tree>(&self, name: &str, like: &T) -> Result<T, IoError> {
        let inner = |(path, t): (&String, &Tensor)| {
            let path = path.strip_prefix(name)?;
            // The part may be a single tensor, whose path within itself is empty.
            let path = if path.is_empty() { path } else { path.strip_prefix('.')? };
            Some((path.to_owned(), t.clone()))
        };
        fill(&self.path, self.tensors.iter().filter_map(inner).collect(), like)
    }
}

/// The checksum of a header and of the names, types, shapes and values of tensors, sorted by name.
fn checksum<'a>(
    format: u64,
    header: &Value,
    tensors: impl Iterator<Item = (&'a String, &'a Tensor)>,
) -> String {
    let mut sorted: Vec<_> = tensors.collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut hash = Fnv::new();
    let is_old = format == OLDEST;
    if !is_old {
        hash.add(header.to_string().into_bytes());
    }
    for (name, tensor) in sorted {
        hash.add(name.bytes());
        if !is_old {
            hash.add(stored_as(tensor.dtype()).name().bytes());
        }
        tensor.shape().iter().for_each(|&d| hash.add((d as u64).to_le_bytes()));
        hash.add(little_endian(tensor.array().data()));
    }
    hash.text()
}

/// Writes a file of format 1, whose checksum does not cover the header.
#[cfg(test)]
pub(crate) fn write_first_format(path: &Path, header: &impl Serialize, tree: &impl Tree) {
    let (leaves, header) = (tree.named_leaves(), serde_json::to_value(header).unwrap());
    let checksum = checksum(1, &header, leaves.iter().map(|(name, t)| (name, t)));
    let metadata = serde_json::to_string(&Metadata { format: 1, checksum, header }).unwrap();
    std::fs::write(path, to_bytes(&leaves, Some(metadata))).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (Vec<Tensor>, Tensor) {
        (vec![Tensor::from([1.0, 2.0, 3.0]), Tensor::from([4u32, 5])], Tensor::from(6.0f32))
    }

    fn written(folder: &crate::io::Scratch) -> (PathBuf, Vec<u8>) {
        let path = folder.path().join("model.safetensors");
        write_checkpoint(&path, &"a header".to_owned(), &tree()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    }

    #[test]
    fn a_checkpoint_comes_back_whole_or_in_parts() {
        let folder = crate::io::scratch();
        let (path, bytes) = written(&folder);
        let checkpoint: Checkpoint<String> = read_checkpoint(&path).unwrap();
        assert_eq!(checkpoint.header, "a header");
        let part = checkpoint.part("0", &tree().0).unwrap();
        assert_eq!(part[1].array(), tree().0[1].array());
        assert_eq!(checkpoint.part("1", &tree().1).unwrap().item(), 6.0);
        let back = checkpoint.into_tree(&tree()).unwrap();
        write_checkpoint(&path, &"a header".to_owned(), &back).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn numbers_of_a_header_come_back_exactly() {
        let folder = crate::io::scratch();
        let path = folder.path().join("m");
        let header = [1.8852625744725877, 0.1 + 0.2, f64::MIN_POSITIVE, 1e300 / 3.0];
        write_checkpoint(&path, &header, &tree()).unwrap();
        assert_eq!(read_checkpoint::<[f64; 4]>(&path).unwrap().header, header);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let folder = crate::io::scratch();
        let (path, bytes) = written(&folder);
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_checkpoint::<String>(&path).map(|c| (c.header, c.tensors.len()))
        };
        let whole = read(&bytes).unwrap();
        for cut in 0..bytes.len() {
            assert!(matches!(read(&bytes[..cut]), Err(IoError::Damaged { .. })), "cut at {cut}");
        }
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[byte] ^= 1 << bit;
                // If a flip is not detected, it replaced white space by other white space.
                assert!(read(&other).is_err() || read(&other).unwrap() == whole, "byte {byte} bit {bit}");
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at = text.find("a header").unwrap();
        let flipped = [&bytes[..at], b"b", &bytes[at + 1..]].concat();
        assert!(matches!(read(&flipped), Err(IoError::Damaged { .. })));
        assert_eq!(read(&bytes).unwrap(), whole);
    }

    #[test]
    fn files_of_the_first_format_are_read_and_their_tensors_checked() {
        let folder = crate::io::scratch();
        let path = folder.path().join("m");
        write_first_format(&path, &"of before", &tree());
        let bytes = std::fs::read(&path).unwrap();
        let found = read_checkpoint::<String>(&path).unwrap();
        assert_eq!((found.header.as_str(), found.tensors.len()), ("of before", 3));
        let flipped = [&bytes[..bytes.len() - 1], &[bytes[bytes.len() - 1] ^ 1]].concat();
        std::fs::write(&path, flipped).unwrap();
        let message = read_checkpoint::<String>(&path).unwrap_err().to_string();
        assert!(message.contains("checksum"), "{message}");
    }

    #[test]
    fn another_version_and_a_foreign_file_are_distinguished() {
        let folder = crate::io::scratch();
        let path = folder.path().join("m");
        let foreign = r#"{"format":99,"checksum":"","header":{"other":"layout"}}"#;
        std::fs::write(&path, to_bytes(&tree().named_leaves(), Some(foreign.into()))).unwrap();
        let message = read_checkpoint::<String>(&path).unwrap_err().to_string();
        assert!(message.contains("run format 99; this flowline reads formats 1 to 2"), "{message}");
        std::fs::write(&path, to_bytes(&tree().named_leaves(), None)).unwrap();
        assert!(matches!(read_checkpoint::<String>(&path), Err(IoError::NotARun { .. })));
    }
}
