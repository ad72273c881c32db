//! Where the bytes of images are: in memory, or in a file that is read row by row.
//!
//! Knows rows of equal length behind an offset. A row that is read from the file is in nobody's memory afterwards but the
//! caller's, so a set of any size is gone through in the memory of a batch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// The bytes of a set's images.
#[derive(Debug)]
pub(super) enum Source {
    /// All of them.
    Memory(Vec<u8>),
    /// An uncompressed file whose first image begins at `offset`. Behind a lock, for a place in a file is shared by who
    /// reads it; positioned reads are not in the standard library of every system.
    File { file: Mutex<File>, offset: u64 },
}

impl Source {
    /// Copies the rows of the given numbers one after the other.
    pub(super) fn read(&self, which: &[usize], row: usize, into: &mut [u8]) -> io::Result<()> {
        match self {
            Source::Memory(all) => {
                for (&i, to) in which.iter().zip(into.chunks_exact_mut(row)) {
                    to.copy_from_slice(&all[i * row..(i + 1) * row]);
                }
                Ok(())
            }
            Source::File { file, offset } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                runs(which).try_for_each(|(at, first, count)| {
                    file.seek(SeekFrom::Start(offset + (first * row) as u64))?;
                    file.read_exact(&mut into[at * row..(at + count) * row])
                })
            }
        }
    }
}

/// Stretches of consecutive numbers: where they stand, the first of them, how many. One read each.
fn runs(which: &[usize]) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let mut at = 0;
    which.chunk_by(|a, b| a + 1 == *b).map(move |run| {
        at += run.len();
        (at - run.len(), run[0], run.len())
    })
}
