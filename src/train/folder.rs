//! The folder of a run: what is called what in it, and which one a run gets.

use super::TrainError;
use crate::error::Result;
use crate::io::writable_folder;
use std::fs;
use std::path::{Path, PathBuf};

/// The checkpoint in a run folder.
pub const MODEL_FILE: &str = "model.safetensors";
/// The rows of updates in a run folder.
pub const METRICS_FILE: &str = "metrics.csv";

/// A folder that a run writes to.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The outermost folder that was made for this run, until something worth keeping is in it.
    made: Option<PathBuf>,
}

impl RunFolder {
    /// Makes the folder where it is missing and finds out whether it can be written.
    ///
    /// # Errors
    /// [`IoError::Write`](crate::io::IoError::Write).
    pub fn open(path: impl AsRef<Path>) -> Result<RunFolder> {
        let path = path.as_ref().to_owned();
        let made = writable_folder(&path)?;
        Ok(RunFolder { path, made })
    }

    /// Where a file of the run lies.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// From now on the folder stays, whatever happens.
    pub fn keep(&mut self) {
        self.made = None;
    }

    /// Removes what a killed run may have left half-written.
    pub fn sweep(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && (name.ends_with(".tmp") || name.ends_with(".part")) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A run that ends before there is anything to keep takes its folder back.
impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Some(made) = self.made.take() {
            let _ = fs::remove_dir_all(made);
        }
    }
}

/// `runs/<stem>`, `runs/<stem>-2`, `runs/<stem>-3`, ... below `root`: the first that is free, or to resume the last that
/// is not.
pub fn default_folder(root: &Path, stem: &str, resume: bool) -> PathBuf {
    let nth = |n: usize| root.join(if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") });
    let mut free = 1;
    while nth(free).exists() {
        free += 1;
    }
    nth(if resume { (free - 1).max(1) } else { free })
}

/// Refuses a folder that holds a run, unless that is to be resumed.
///
/// # Errors
/// [`TrainError::Occupied`].
pub fn check_free(folder: &Path) -> Result<()> {
    if folder.join(MODEL_FILE).exists() {
        return Err(TrainError::Occupied { folder: folder.to_owned() }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_numbered_and_resuming_takes_the_last() {
        let root = tempfile::tempdir().unwrap();
        let next = |resume| default_folder(root.path(), "cat", resume);
        assert_eq!((next(false), next(true)), (root.path().join("cat"), root.path().join("cat")));
        fs::create_dir(root.path().join("cat")).unwrap();
        assert_eq!((next(false), next(true)), (root.path().join("cat-2"), root.path().join("cat")));
        fs::create_dir(root.path().join("cat-2")).unwrap();
        assert_eq!((next(false), next(true)), (root.path().join("cat-3"), root.path().join("cat-2")));
    }

    #[test]
    fn a_folder_made_for_nothing_is_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs/cat");
        drop(RunFolder::open(&path).unwrap());
        assert!(!root.path().join("runs").exists());
        RunFolder::open(&path).unwrap().keep();
        fs::write(path.join(".model.safetensors.part"), "cut").unwrap();
        let folder = RunFolder::open(&path).unwrap();
        folder.sweep();
        drop(folder);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
