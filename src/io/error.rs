//! What can be wrong with a file. Each message names the file, what was found and the remedy.

use std::path::PathBuf;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The file is missing or may not be read.
    #[error("{} cannot be read: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file cannot be put in place: no permission, no space, no such folder.
    #[error("{} cannot be written: {source}; choose another place, or free space and check permissions", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Another process, or another run of this one, writes in the folder.
    #[error(
        "{} works in {} already; wait until it ends, or choose another folder",
        process.map_or("another process".to_owned(), |process| format!("process {process}")), path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The number of the process, where it is known.
        process: Option<u32>,
    },
    /// The folder holds a run that would be overwritten.
    #[error(
        "{} holds a run already; resume it with --resume, move it aside with --restart, or choose another folder with --out",
        folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds files of a run that would be overwritten, and no checkpoint.
    #[error(
        "{} would be overwritten: {} holds a run's files and no model.safetensors; put that back and --resume, or move the files aside and start again with --restart",
        found.display(), folder.display()
    )]
    Lost {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: PathBuf,
    },
    /// The folder holds a file that would be overwritten, and no run.
    #[error("{} is there already and would be overwritten; move it away, or choose another folder with --out", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was changed or cut after it was written.
    #[error("{} is damaged ({bytes} bytes): {reason}; restore it from a copy, or train again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What does not fit.
        reason: String,
    },
    /// The file is a safetensors file that no run wrote.
    #[error("{} holds tensors but no run of flowline: its metadata has no key \"flowline\"; give the folder of a run", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a version of the crate with another layout.
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
    /// A whole file whose description is not one that this version writes.
    #[error(
        "{} was written by an incompatible version of flowline ({reason}); use that version, or another folder",
        path.display()
    )]
    Layout {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A tensor that the tree has is not in the file.
    #[error("{} has no tensor \"{name}\"; it was saved from another kind of tree", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The path of the leaf.
        name: String,
    },
    /// The file has a tensor that the tree has not.
    #[error("{} has a tensor \"{name}\" that is not a leaf of this tree; it was saved from another kind", path.display())]
    UnknownTensor {
        /// The file.
        path: PathBuf,
        /// The name in the file.
        name: String,
    },
    /// A tensor has another element type than the leaf of that name.
    #[error(
        "{}: tensor \"{name}\" is {found}, expected {expected}; read it into a tree of its own element type (`map_leaves(|x| x.cast(..))`) and cast what was read",
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
    /// A tensor has another shape than the leaf of that name.
    #[error("{}: tensor \"{name}\" is {found}, expected {expected}; it was saved from a tree of other sizes", path.display())]
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
    /// The file is no NPY array of numbers.
    #[error("{} is not a readable NPY array: {reason}; save an f4, f8, i4, i8 or u1 array with numpy.save", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The array is none of points.
    #[error("{} has shape {shape:?}, expected [n, 2]; save one row per point, x and y in pixels", path.display())]
    PointsShape {
        /// The file.
        path: PathBuf,
        /// The shape of its array.
        shape: Vec<usize>,
    },
    /// The file's name ends otherwise than a format's.
    #[error("{} has no known file type; its name must end in .csv or .npy", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A solution kept nothing that could be written.
    #[error("{} is not written: the solution kept no values; ask for some by `save_at`", path.display())]
    NothingSaved {
        /// The file.
        path: PathBuf,
    },
    /// Saved values are not of one length.
    #[error("{} is not written: the value saved at t={t} has {found} components, those before it {expected}", path.display())]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The time it was saved at.
        t: f64,
        /// Its components.
        found: usize,
        /// Those of the first.
        expected: usize,
    },
    /// A table has no column of a name.
    #[error("{} has no column \"{name}\"; its columns are {columns}", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        name: String,
        /// Those that there are.
        columns: String,
    },
    /// A column of a table was asked for twice.
    #[error("{}: column \"{name}\" is chosen twice; name each column once", path.display())]
    ColumnTwice {
        /// The file.
        path: PathBuf,
        /// The column.
        name: String,
    },
    /// A line of a CSV file is not a row of numbers.
    #[error("{} line {line}: {reason}; each line needs the same number of cells, and numbers in the columns that are read", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// What does not fit.
        reason: String,
    },
}
