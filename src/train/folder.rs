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

/// The pictures in a run folder.
pub(super) const PICTURES: [&str; 8] = [
    "density.png",
    "comparison.png",
    "samples.png",
    "flow.png",
    "corner.png",
    "nearest.png",
    "bits.png",
    "loss.png",
];
/// What a run counted beside its rows.
pub(super) const COUNTERS_FILE: &str = "counters.json";

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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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

/// Refuses a folder in which a new run would overwrite something: a run, or files that are called as a run's are.
///
/// # Errors
/// [`TrainError::Occupied`], [`TrainError::Foreign`].
pub fn check_free(folder: &Path) -> Result<()> {
    if folder.join(MODEL_FILE).exists() {
        return Err(TrainError::Occupied { folder: folder.to_owned() }.into());
    }
    match ours(folder).find(|path| path.exists()) {
        Some(path) => Err(TrainError::Foreign { path }.into()),
        None => Ok(()),
    }
}

/// Refuses to begin a run anew among files that no run wrote: those of a run that lost its checkpoint lie beside rows of
/// metrics under their heading.
///
/// # Errors
/// [`TrainError::Foreign`].
pub(super) fn check_lost(folder: &Path) -> Result<()> {
    let metrics = fs::read(folder.join(METRICS_FILE));
    if metrics.is_ok_and(|text| text.starts_with(super::metrics::COLUMNS.as_bytes())) {
        return Ok(());
    }
    match ours(folder).find(|path| path.exists()) {
        Some(path) => Err(TrainError::Foreign { path }.into()),
        None => Ok(()),
    }
}

/// What a run writes beside its checkpoint.
fn ours(folder: &Path) -> impl Iterator<Item = PathBuf> + use<'_> {
    [METRICS_FILE, COUNTERS_FILE, super::best::BEST_FILE]
        .into_iter()
        .chain(PICTURES)
        .map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_numbered_and_resuming_takes_the_last() {
        let root = crate::io::scratch();
        let next = |resume| default_folder(root.path(), "cat", resume);
        assert_eq!((next(false), next(true)), (root.path().join("cat"), root.path().join("cat")));
        fs::create_dir(root.path().join("cat")).unwrap();
        assert_eq!((next(false), next(true)), (root.path().join("cat-2"), root.path().join("cat")));
        fs::create_dir(root.path().join("cat-2")).unwrap();
        assert_eq!((next(false), next(true)), (root.path().join("cat-3"), root.path().join("cat-2")));
    }

    #[test]
    fn files_that_no_run_wrote_are_not_overwritten() {
        let root = crate::io::scratch();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        let tells = |checked: Result<()>| checked.unwrap_err().to_string();
        assert!(check_free(root.path()).is_ok() && check_lost(root.path()).is_ok());
        write(METRICS_FILE, "a,b");
        assert!(tells(check_free(root.path())).contains(METRICS_FILE));
        assert!(tells(check_lost(root.path())).contains(METRICS_FILE));
        write(METRICS_FILE, super::super::metrics::COLUMNS);
        assert!(check_free(root.path()).is_err() && check_lost(root.path()).is_ok());
        fs::remove_file(root.path().join(METRICS_FILE)).unwrap();
        write("loss.png", "");
        assert!(tells(check_free(root.path())).contains("loss.png"));
        assert!(check_lost(root.path()).is_err());
    }

    #[test]
    fn a_folder_made_for_nothing_is_taken_back() {
        let root = crate::io::scratch();
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
