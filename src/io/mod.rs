//! Files: solutions, trees of tensors as safetensors, checkpoints of a run, arrays and points for other programs,
//! images.
//!
//! Writes are atomic: a reader (a resumed run, another program) sees the complete old file or the complete
//! new file. The submodule `run` has the folder of a run and its rows of metrics. The header of a checkpoint
//! is any serializable value: training defines its meaning, and this module ensures that equal states have
//! equal bytes.
//!
//! Formats are standard: safetensors for weights, NPY and CSV for points and grids. A custom format would
//! save only the bytes of a header, and no other program could read it. CSV and NPY need no other module, so
//! every build has them. The feature `autodiff` adds trees of tensors, `train` adds checkpoints of a run. For
//! images (`raster`), `plot` writes PNG and GIF files, and `train` reads five formats.

mod atomic;
#[cfg(feature = "train")]
mod checkpoint;
mod csv;
mod error;
pub(crate) mod fault;
#[cfg(feature = "train")]
mod hash;
mod listed;
#[cfg(feature = "train")]
mod lock;
mod npy;
#[cfg(feature = "train")]
pub(crate) mod process;
#[cfg(any(feature = "plot", feature = "train"))]
#[doc(hidden)]
pub mod raster;
#[cfg(feature = "train")]
pub(crate) mod run;
#[cfg(test)]
mod scratch;
#[cfg(feature = "train")]
mod sealed;
mod solution;
mod table;
#[cfg(feature = "autodiff")]
mod tensors;

#[cfg(feature = "train")]
pub(crate) use atomic::temporary_name;
#[doc(hidden)]
pub use atomic::{writable_folder, write_atomic};
#[cfg(all(test, feature = "train"))]
pub(crate) use checkpoint::write_first_format;
#[cfg(feature = "train")]
#[doc(hidden)]
pub use checkpoint::{Checkpoint, FORMAT_VERSION, read_checkpoint, write_checkpoint};
#[cfg(feature = "train")]
pub(crate) use checkpoint::{checkpoint_bytes, checkpoint_of};
pub use csv::write_csv;
#[doc(hidden)]
pub use csv::{heading, plain, write_csv_parts, write_row};
pub use error::IoError;
#[doc(hidden)]
pub use error::Remedy;
#[cfg(feature = "train")]
pub(crate) use hash::Fnv;
#[doc(hidden)]
pub use listed::{listed, meant, shortened};
#[cfg(feature = "train")]
pub(crate) use lock::Lock;
#[cfg(feature = "train")]
#[doc(hidden)]
pub use lock::lock_holder;
pub use npy::{Npy, NpyNumber, read_npy, write_npy};
#[doc(hidden)]
pub use npy::{NpyHeader, read_npy_header, write_npy_parts};
#[cfg(test)]
#[cfg_attr(not(feature = "train"), expect(unused_imports, reason = "for the tests of training"))]
pub(crate) use scratch::{Scratch, scratch};
#[cfg(feature = "train")]
pub(crate) use sealed::{read_sealed, write_sealed};
#[doc(hidden)]
pub use table::is_table_name;
pub use table::{CsvOptions, Table, read_csv};
#[cfg(feature = "autodiff")]
pub use tensors::{load, save};

/// The bytes of a file.
fn read(path: &std::path::Path) -> Result<Vec<u8>, IoError> {
    std::fs::read(path).map_err(|source| IoError::Read { path: path.to_owned(), source })
}
