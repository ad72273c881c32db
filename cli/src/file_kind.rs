//! The kind of an output file, from its extension.

use super::error::Result;
use super::input::STANDARD;
use flowline::io::IoError;
use flowline::train::TrainError;
use std::path::Path;

/// The kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A NumPy array.
    Npy,
    /// A table.
    Csv,
    /// A figure in pixels.
    Png,
    /// A figure with lines and text as vectors.
    Svg,
    /// A table on standard output.
    Standard,
}

impl FileKind {
    /// Whether the file shows a figure.
    pub fn is_figure(self) -> bool {
        matches!(self, FileKind::Png | FileKind::Svg)
    }

    /// The kind of a path, if it is allowed and its folder exists.
    ///
    /// # Errors
    /// [`TrainError::Option`], [`IoError::Write`].
    pub fn of(path: &Path, allowed: &[FileKind]) -> Result<FileKind> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let kind = match extension.as_str() {
            _ if path == Path::new(STANDARD) => Some(FileKind::Standard),
            "npy" => Some(FileKind::Npy),
            "csv" => Some(FileKind::Csv),
            "png" => Some(FileKind::Png),
            "svg" => Some(FileKind::Svg),
            _ => None,
        };
        let range = match allowed {
            [FileKind::Npy, FileKind::Csv, FileKind::Png, FileKind::Svg, ..] => {
                "a path that ends in .npy, .csv, .png or .svg, or -"
            }
            [FileKind::Png, FileKind::Svg, FileKind::Npy] => "a path that ends in .png, .svg or .npy",
            [FileKind::Png, FileKind::Svg] => "a path that ends in .png or .svg",
            _ => "a path that ends in .npy or .csv, or -",
        };
        let Some(kind) = kind.filter(|k| allowed.contains(k)) else {
            return Err(TrainError::Option { option: "out", value: path.display().to_string(), range }.into());
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(Err(source)) = folder.map(std::fs::metadata) {
            return Err(IoError::Write { path: path.to_owned(), source }.into());
        }
        Ok(kind)
    }
}
