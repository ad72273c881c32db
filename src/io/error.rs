//! Errors of files. Each message names the file, the problem and, if there is one, the remedy.

use super::{listed, meant};
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The file is missing or cannot be read.
    #[error("{} cannot be read: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file or folder cannot be written, for example for lack of permission or space.
    #[error("{} cannot be written: {source}; choose another place, or free space and check permissions", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Another process, or another run of this process, writes in the folder.
    #[error(
        "{} works in {} already; wait until it ends, or choose another folder",
        process.map_or("another process".to_owned(), |process| format!("process {process}")), path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The process ID, if known.
        process: Option<u32>,
    },
    /// The folder of a run in progress was moved or removed.
    #[error(
        "{} was moved or removed while its run was in progress, so the run ended and wrote nothing more; to continue it from its last checkpoint, train with the new path as `run_dir`",
        folder.display()
    )]
    Moved {
        /// The folder.
        folder: PathBuf,
    },
    /// The root of the file system is no folder for a run.
    #[error("{} is the root folder, and a run writes many files; give a folder of its own with `run_dir`", path.display())]
    Root {
        /// The folder as given.
        path: PathBuf,
    },
    /// A command would replace a file of a run.
    #[error("{} is a file of a run and would be replaced; write to another file", path.display())]
    OfRun {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds a run that would be overwritten.
    #[error(
        "{} holds a run already; continue it with the same `run_dir`, move it aside with `restart`, or choose another folder with `run_dir`",
        folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds files of a run that would be overwritten, and no checkpoint.
    #[error(
        "{} would be overwritten: {} holds files of a run, but no model.safetensors; restore that file and train with the same `run_dir`, or start again with `restart`, which moves the files aside",
        found.display(), folder.display()
    )]
    Lost {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: PathBuf,
    },
    /// A file that no run wrote would be overwritten.
    #[error("{} already exists and would be overwritten; move it away, or choose another folder with `run_dir`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was changed or truncated after it was written.
    #[error("{} is damaged ({bytes} bytes): {reason}; restore it from a backup, or create it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The length of the file.
        bytes: usize,
        /// Why it is damaged.
        reason: String,
    },
    /// The safetensors file was not written by a run.
    #[error("{} was not written by a flowline run: its metadata has no key \"flowline\"; give a run folder", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a version with another format.
    #[error(
        "{} has run format {found}; this flowline reads formats 1 to {expected}; use the version that wrote it, or train again",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The format in the file.
        found: u64,
        /// The latest format that this version reads.
        expected: u64,
    },
    /// The header of an undamaged file differs from the headers that this version writes.
    #[error(
        "{} was written by an incompatible version of flowline ({reason}); use that version, or another folder",
        path.display()
    )]
    Layout {
        /// The file.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A tensor of the tree is missing in the file.
    #[error("{} has no tensor \"{name}\"; the file was saved from another kind of tree", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The path of the leaf.
        name: String,
    },
    /// The file has a tensor that the tree does not have.
    #[error("{} has a tensor \"{name}\" that is not a leaf of this tree; the file was saved from another kind of tree", path.display())]
    UnknownTensor {
        /// The file.
        path: PathBuf,
        /// The name in the file.
        name: String,
    },
    /// A tensor and the leaf of that name differ in element type.
    #[error(
        "{}: tensor \"{name}\" is {found}, expected {expected}; cast the tree to the file's element type with `cast_floats`, load the file into it, and cast the result back",
        path.display()
    )]
    OtherType {
        /// The file.
        path: PathBuf,
        /// The path of the leaf.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape of the leaf.
        expected: String,
    },
    /// A tensor and the leaf of that name differ in shape.
    #[error("{}: tensor \"{name}\" is {found}, expected {expected}; the file was saved from a tree with other shapes", path.display())]
    OtherTensor {
        /// The file.
        path: PathBuf,
        /// The path of the leaf.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape of the leaf.
        expected: String,
    },
    /// The file is not an NPY array of numbers.
    #[error("{} is not a readable NPY array: {reason}; save a u1 or little-endian f4, f8, i4 or i8 array with numpy.save", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// Why it is not readable.
        reason: String,
    },
    /// The array does not have the shape of points in the plane.
    #[error("{} has shape {shape:?}, expected [n, 2]; save one row per point, in the coordinates of the training data (an image: x and y in pixels)", path.display())]
    PointsShape {
        /// The file.
        path: PathBuf,
        /// The shape of its array.
        shape: Vec<usize>,
    },
    /// The extension of the file is unknown: `Points::open` reads tables (.csv, .tsv, .txt, .dat, or one of them and .gz)
    /// and .npy, and `Solution::save` writes .csv and .npy.
    #[error("{} has no known file type; its name must end in .csv or .npy (points are also read from .tsv, .txt, .dat and .csv.gz)", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A solution has no saved values.
    #[error("{} was not written: the solution has no saved values; select them with `save_at`", path.display())]
    NothingSaved {
        /// The file.
        path: PathBuf,
    },
    /// The rows of a solution on tensors have their own times.
    #[error("{} was not written: the rows of the solution have their own saved times; save all rows at the same times with `save_at`, or solve with `Batching::Joint`", path.display())]
    OwnTimes {
        /// The file.
        path: PathBuf,
    },
    /// Saved values differ in length.
    #[error("{} was not written: the value saved at t={} has {found} components, but earlier values have {expected}", path.display(), crate::ode::shown(*t))]
    Ragged {
        /// The file.
        path: PathBuf,
        /// Time of the value.
        t: f64,
        /// Number of components of the value.
        found: usize,
        /// The number of components of the first value.
        expected: usize,
    },
    /// A row of a table has another length than there are columns.
    #[error("{} was not written: row {row} has {found} numbers for {expected} columns", path.display())]
    RowLength {
        /// The file.
        path: PathBuf,
        /// The number of the row, from 1.
        row: usize,
        /// The length of the row.
        found: usize,
        /// The number of columns.
        expected: usize,
    },
    /// The numbers of an array do not fill its shape.
    #[error("{} was not written: shape {shape:?} has {} elements, but {found} numbers are given", path.display(), shape.iter().product::<usize>())]
    Elements {
        /// The file.
        path: PathBuf,
        /// The shape.
        shape: Vec<usize>,
        /// The number of numbers.
        found: usize,
    },
    /// A table has no column of this name.
    #[error("{} has no column \"{name}\"{}; its columns are {columns}", path.display(), near.as_ref().map_or_else(String::new, |near| format!(" (did you mean {near:?}?)")))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name given.
        name: String,
        /// The columns of the table.
        columns: String,
        /// The column that was probably meant.
        near: Option<String>,
    },
    /// A column of a table is chosen twice.
    #[error("{}: column \"{name}\" is chosen twice; name each column once", path.display())]
    ColumnTwice {
        /// The file.
        path: PathBuf,
        /// The column.
        name: String,
    },
    /// A line of a table is not a row of numbers, or the table can be read in two ways.
    #[error("{} line {line}: {reason}{}", path.display(), remedy.as_ref().map_or_else(String::new, |r| format!("; {r}")))]
    Csv {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Why the line is not a row of numbers.
        reason: String,
        /// An option that may help.
        #[doc(hidden)]
        remedy: Option<Remedy>,
    },
}

impl IoError {
    /// A table with these columns has none of this name.
    pub(super) fn no_column(path: &Path, name: &str, columns: &[String]) -> IoError {
        IoError::NoColumn {
            path: path.to_owned(),
            name: name.to_owned(),
            columns: listed(columns, "columns"),
            near: meant(name, columns).map(str::to_owned),
        }
    }
}

/// An option of [`CsvOptions`](super::CsvOptions) that may help to read a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Remedy {
    /// A character that probably delimits cells.
    Delimiter(char),
    /// One of two possible delimiters.
    Delimiters,
    /// The probable decimal mark.
    Decimal(char),
    /// One of two possible decimal marks.
    Decimals,
    /// Years in the first line, which are headings or numbers.
    Headings,
    /// Rows with missing cells.
    DropMissing,
    /// A column with some text.
    Columns,
}

/// The remedy for a program.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::Delimiter(c) => write!(f, "if {c:?} delimits the cells, set `CsvOptions::delimiter({c:?})`"),
            Remedy::Delimiters => f.write_str("set `CsvOptions::delimiter`"),
            Remedy::Decimal(c) => write!(f, "if {c:?} is the decimal mark, set `CsvOptions::decimal({c:?})`"),
            Remedy::Decimals => f.write_str("set `CsvOptions::decimal`"),
            Remedy::Headings => f.write_str(
                "if they are headings, write a letter before each, such as y2020; otherwise add a line of headings",
            ),
            Remedy::Columns => f.write_str("correct the cell, or choose the other columns with `CsvOptions::columns`"),
            Remedy::DropMissing => f.write_str(
                "leave such rows out with `CsvOptions::drop_missing`, or read NaN with `CsvOptions::keep_missing`",
            ),
        }
    }
}
