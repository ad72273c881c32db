//! Checkpoints: a tree of tensors and a header in one safetensors file, put in place at once.
//!
//! Safetensors files carry no checksum, so a flipped bit in a weight would be trained on in silence; the metadata has
//! one (FNV-1a over names, shapes and bytes of the tensors). It also has the format's number, checked before anything
//! else is believed. There is no clock and no path in the file: the same state gives the same bytes.

use super::tensors::{fill, from_bytes, little_endian, to_bytes};
use super::{IoError, read, write_atomic};
use crate::tensor::{Tensor, Tree};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The number of the layout of checkpoints, raised whenever older files can no longer be read.
pub const FORMAT_VERSION: u64 = 1;

/// The string of metadata.
#[derive(Serialize, Deserialize)]
struct Metadata<H> {
    format: u64,
    checksum: String,
    header: H,
}

/// A checkpoint that has been read: its header, and tensors still to be put into a tree.
#[derive(Debug)]
pub struct Checkpoint<H> {
    /// What the writer said of the tensors.
    pub header: H,
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
}

/// Writes a header and the tensors of a tree.
///
/// # Errors
/// [`IoError::Write`]; an older file of that name is still there then.
pub fn write_checkpoint<H: Serialize>(
    path: impl AsRef<Path>,
    header: &H,
    tree: &impl Tree,
) -> Result<(), IoError> {
    let leaves = tree.named_leaves();
    let checksum = checksum(leaves.iter().map(|(name, t)| (name, t)));
    let metadata = serde_json::to_string(&Metadata { format: FORMAT_VERSION, checksum, header });
    let metadata = metadata.expect("invariant: headers are plain values with text keys");
    let bytes = to_bytes(&leaves, Some(metadata));
    write_atomic(path, |file| file.write_all(&bytes))
}

/// Reads a checkpoint and verifies that it is whole.
///
/// # Errors
/// [`IoError`]: no such file, a damaged one, one that no run wrote, one of another version.
pub fn read_checkpoint<H: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Checkpoint<H>, IoError> {
    let path = path.as_ref().to_owned();
    let bytes = read(&path)?;
    let damaged = |reason: String| IoError::Damaged { path: path.clone(), bytes: bytes.len(), reason };
    let (tensors, text) = from_bytes(&path, &bytes)?;
    let Some(text) = text else { return Err(IoError::NotARun { path }) };
    let outline: Metadata<serde_json::Value> =
        serde_json::from_str(&text).map_err(|e| damaged(format!("metadata: {e}")))?;
    if outline.format != FORMAT_VERSION {
        return Err(IoError::Version { path, found: outline.format, expected: FORMAT_VERSION });
    }
    if outline.checksum != checksum(tensors.iter()) {
        return Err(damaged("the checksum of its tensors does not fit".into()));
    }
    let layout = |e: serde_json::Error| IoError::Layout { path: path.clone(), reason: e.to_string() };
    let header = serde_json::from_value(outline.header).map_err(layout)?;
    Ok(Checkpoint { header, path, tensors })
}

impl<H> Checkpoint<H> {
    /// The tree with the static values of `like` and the file's tensors.
    ///
    /// # Errors
    /// When `like` has other leaves than the tree that was written.
    pub fn into_tree<T: Tree>(self, like: &T) -> Result<T, IoError> {
        fill(&self.path, self.tensors, like)
    }

    /// One part of the tree that was written: the tensors below `name`.
    ///
    /// # Errors
    /// When `like` has other leaves than that part.
    pub fn part<T: Tree>(&self, name: &str, like: &T) -> Result<T, IoError> {
        let inner = |(path, t): (&String, &Tensor)| {
            let path = path.strip_prefix(name)?;
            // The part may be one tensor, whose path within itself is empty.
            let path = if path.is_empty() { path } else { path.strip_prefix('.')? };
            Some((path.to_owned(), t.clone()))
        };
        fill(&self.path, self.tensors.iter().filter_map(inner).collect(), like)
    }
}

/// FNV-1a, 64 bit, over names, shapes and numbers in the order of names.
fn checksum<'a>(tensors: impl Iterator<Item = (&'a String, &'a Tensor)>) -> String {
    let mut sorted: Vec<_> = tensors.collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &b in bytes {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (name, tensor) in sorted {
        add(name.as_bytes());
        tensor.shape().iter().for_each(|&d| add(&(d as u64).to_le_bytes()));
        add(&little_endian(tensor.array().data()));
    }
    format!("{hash:016x}")
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
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for byte in header..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[byte] ^= 1 << bit;
                assert!(read(&other).is_err(), "byte {byte} bit {bit}");
            }
        }
        assert_eq!(read(&bytes).unwrap(), whole);
    }

    #[test]
    fn another_version_and_a_stranger_are_told_apart() {
        let folder = crate::io::scratch();
        let path = folder.path().join("m");
        let foreign = r#"{"format":99,"checksum":"","header":{"other":"layout"}}"#;
        std::fs::write(&path, to_bytes(&tree().named_leaves(), Some(foreign.into()))).unwrap();
        let message = read_checkpoint::<String>(&path).unwrap_err().to_string();
        assert!(message.contains("run format 99, this flowline reads format 1"), "{message}");
        std::fs::write(&path, to_bytes(&tree().named_leaves(), None)).unwrap();
        assert!(matches!(read_checkpoint::<String>(&path), Err(IoError::NotARun { .. })));
    }
}
