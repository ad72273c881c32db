//! Storage of image bytes: in memory, or in a file that is read row by row.
//!
//! A row is the bytes of one image; all rows have equal length. Rows read from a file are stored only by the
//! caller, so a set of any size can be processed with the memory of one batch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// The bytes of a set's images.
#[derive(Debug)]
pub(super) enum Source {
    /// All bytes, in memory.
    Memory(Vec<u8>),
    /// An uncompressed file whose first image starts at `offset`. The lock protects the file position, which
    /// readers share; the standard library does not have positioned reads on every system.
    File { file: Mutex<File>, offset: u64 },
}

impl Source {
    /// Copies the rows `which`, of `row` bytes each, to `into`, one after the other.
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

/// Runs of consecutive numbers, each read with one call: position in `which`, first number, length.
fn runs(which: &[usize]) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let mut at = 0;
    which.chunk_by(|a, b| a + 1 == *b).map(move |run| {
        at += run.len();
        (at - run.len(), run[0], run.len())
    })
}
