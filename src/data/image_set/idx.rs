//! IDX files, the format of MNIST and similar sets: a magic number, big-endian sizes, bytes; optionally
//! gzipped.
//!
//! Layout (Y. LeCun et al., The MNIST database, "File formats"): two zero bytes, the element type (8 for
//! unsigned bytes), the number of axes, and a 32-bit length per axis. A gzipped file of images cannot be read
//! in parts. It is unpacked to memory if the size in its header fits the budget. Otherwise it is rejected,
//! and the error message names the remedy.

use super::source::Source;
use super::{DataError, Found};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Mutex;

/// Reads the header of an IDX file of `wanted` (`images` or `labels`) and returns the lengths of its axes.
fn header(reader: &mut impl Read, name: &str, wanted: &'static str) -> Result<Vec<usize>, DataError> {
    let mut word = [0; 4];
    exact(reader, &mut word, name, 4)?;
    let axes = match wanted {
        "labels" => 1..=1,
        _ => 3..=4,
    };
    if word[..3] != [0, 0, 8] || !axes.contains(&word[3]) {
        return Err(DataError::Magic { name: name.to_owned(), found: word.to_vec(), wanted });
    }
    let mut lengths = vec![0; 4 * usize::from(word[3])];
    exact(reader, &mut lengths, name, 4 + 4 * usize::from(word[3]))?;
    Ok(lengths.as_chunks::<4>().0.iter().map(|&b| u32::from_be_bytes(b) as usize).collect())
}

fn exact(reader: &mut impl Read, into: &mut [u8], name: &str, wanted: usize) -> Result<(), DataError> {
    let found = fill(reader, into, name)?;
    if found < into.len() {
        let (what, found) = ("its header".to_owned(), (wanted - into.len() + found) as u64);
        return Err(DataError::Truncated { name: name.to_owned(), what, wanted: wanted as u64, found });
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read. The end of a truncated
/// gzip stream counts as the end of the file.
fn fill(reader: &mut impl Read, into: &mut [u8], name: &str) -> Result<usize, DataError> {
    let mut found = 0;
    while found < into.len() {
        match reader.read(&mut into[found..]) {
            Ok(0) => break,
            Ok(n) => found += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(source) => return Err(DataError::Unreadable { name: name.to_owned(), source }),
        }
    }
    Ok(found)
}

/// Number, size and bytes of the images, from the lengths of the axes.
fn size(axes: &[usize]) -> (usize, [usize; 3], u64) {
    let size = [axes[1], axes[2], axes.get(3).copied().unwrap_or(1)];
    (axes[0], size, axes.iter().map(|&n| n as u64).fold(1, u64::saturating_mul))
}

/// Opens an uncompressed file of images. It is held in memory if it fits the budget, otherwise read in parts.
pub(super) fn open(path: &Path, name: &str, budget: u64) -> Result<Found, DataError> {
    let unreadable = |source| DataError::Unreadable { name: name.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let axes = header(&mut file, name, "images")?;
    let (images, size, bytes) = size(&axes);
    let offset = 4 + 4 * axes.len() as u64;
    let length = file.metadata().map_err(unreadable)?.len();
    check(name, &axes, offset.saturating_add(bytes), length)?;
    let source = if bytes <= budget {
        let mut all = vec![0; bytes as usize];
        file.read_exact(&mut all).map_err(unreadable)?;
        Source::Memory(all)
    } else {
        Source::File { file: Mutex::new(file), offset }
    };
    Ok(Found { images, size, source })
}

/// Unpacks a gzipped file of images to memory.
pub(super) fn unpack(path: &Path, name: &str, budget: u64) -> Result<Found, DataError> {
    let unreadable = |source| DataError::Unreadable { name: name.to_owned(), source };
    let mut reader = MultiGzDecoder::new(BufReader::new(File::open(path).map_err(unreadable)?));
    let axes = header(&mut reader, name, "images")?;
    let (images, size, bytes) = size(&axes);
    if bytes > budget {
        let (name, what, remedy) =
            (name.to_owned(), "a gzip file", "unpack it with gunzip: a plain IDX file is read in parts");
        return Err(DataError::OverBudget { name, bytes, budget, what, remedy });
    }
    Ok(Found { images, size, source: Source::Memory(body(&mut reader, name, &axes)?) })
}

/// The labels of an IDX1 file, gzipped or not.
pub(super) fn labels(path: &Path, name: &str, packed: bool) -> Result<Vec<u16>, DataError> {
    let file = File::open(path).map_err(|source| DataError::Unreadable { name: name.to_owned(), source })?;
    let file = BufReader::new(file);
    let mut reader: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let axes = header(&mut reader, name, "labels")?;
    Ok(body(&mut reader, name, &axes)?.into_iter().map(u16::from).collect())
}

/// The bytes after a header. The buffer grows as bytes arrive, so lengths in the header that are too large do
/// not cause a large allocation.
fn body(reader: &mut impl Read, name: &str, axes: &[usize]) -> Result<Vec<u8>, DataError> {
    let bytes = axes.iter().map(|&n| n as u64).fold(1, u64::saturating_mul);
    let (mut all, mut part) = (Vec::new(), vec![0; 1 << 16]);
    while (all.len() as u64) < bytes {
        let next = (bytes - all.len() as u64).min(part.len() as u64) as usize;
        let found = fill(reader, &mut part[..next], name)?;
        all.extend_from_slice(&part[..found]);
        if found < next {
            break;
        }
    }
    let offset = 4 + 4 * axes.len() as u64;
    check(name, axes, offset.saturating_add(bytes), offset + all.len() as u64)?;
    Ok(all)
}

fn check(name: &str, axes: &[usize], wanted: u64, found: u64) -> Result<(), DataError> {
    if found >= wanted {
        return Ok(());
    }
    let what = axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
    Err(DataError::Truncated { name: name.to_owned(), what, wanted, found })
}
