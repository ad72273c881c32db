//! The folder of a run: file names, and the choice of the folder.

use crate::io::{IoError, Lock, fault, temporary_name, writable_folder};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The checkpoint of a run.
pub const MODEL_FILE: &str = "model.safetensors";
/// The metrics of the updates.
pub const METRICS_FILE: &str = "metrics.csv";

/// The best weights of a run.
pub(crate) const BEST_FILE: &str = "best.safetensors";

/// The figures of a run.
const FIGURES: [&str; 12] = [
    "density.png",
    "comparison.png",
    "samples.png",
    "flow.png",
    "flow.gif",
    "field.png",
    "corner.png",
    "nearest.png",
    "bits.png",
    "loss.png",
    "gap.png",
    "loss_by_t.png",
];
/// The counters of a run, which are not in its metrics.
pub(crate) const COUNTERS_FILE: &str = "counters.json";
/// The files from which a run resumes, the checkpoint first.
const DATA_FILES: [&str; 4] = [MODEL_FILE, BEST_FILE, METRICS_FILE, COUNTERS_FILE];

/// A locked folder that a run writes to.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The outermost folder created for this run. It is removed on drop unless [`RunFolder::keep`] was
    /// called.
    made: Option<PathBuf>,
    lock: Lock,
}

impl RunFolder {
    /// Creates the folder if needed, checks that it is writable, and locks it.
    ///
    /// # Errors
    /// [`IoError::Root`], [`IoError::Write`], [`IoError::Locked`].
    pub fn open(path: impl AsRef<Path>) -> Result<RunFolder, IoError> {
        let path = path.as_ref().to_owned();
        if path.canonicalize().is_ok_and(|whole| whole.parent().is_none()) {
            return Err(IoError::Root { path });
        }
        let made = writable_folder(&path)?;
        let lock = Lock::take(&path)?;
        Ok(RunFolder { path, made, lock })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file of the run, to write it. The folder may have been moved since it was locked, and its name
    /// taken by another run.
    ///
    /// # Errors
    /// [`IoError::Moved`].
    pub fn target(&self, name: &str) -> Result<PathBuf, IoError> {
        if self.lock.holds() {
            return Ok(self.file(name));
        }
        Err(IoError::Moved { folder: self.path.clone() })
    }

    /// The path of a file of the run, to read it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The paths of the existing figures, metrics and checkpoint, by file name without extension. `flow` is
    /// the animation if it exists, otherwise the figure.
    pub fn files(&self) -> BTreeMap<String, String> {
        let all = FIGURES.into_iter().chain([METRICS_FILE, MODEL_FILE]);
        let there = all.map(|name| (name, self.file(name))).filter(|(_, path)| path.exists());
        let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        there.map(|(name, path)| (stem(name), path.display().to_string())).collect()
    }

    /// From now on, the folder is not removed on drop.
    pub fn keep(&mut self) {
        self.made = None;
    }

    /// Removes partly written files of a killed run.
    pub fn sweep(&self) {
        if !self.lock.holds() {
            return;
        }
        for name in names() {
            let _ = fs::remove_file(temporary_name(&self.file(name)));
        }
    }

    /// Moves the files of an existing run into a folder beside this one (`runs/cat.1` for `runs/cat`) and
    /// returns it; `None` if there is no run. The checkpoint is moved first, so that after a kill the
    /// remaining files cannot be resumed by mistake.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn move_aside(&self) -> Result<Option<PathBuf>, IoError> {
        if !holds_run(&self.path) {
            return Ok(None);
        }
        let refused = |path: &Path| {
            let path = path.to_owned();
            |source| IoError::Write { path, source }
        };
        // `.` has a name only after it is resolved.
        let named = match self.path.file_name() {
            Some(_) => self.path.clone(),
            None => fs::canonicalize(&self.path).map_err(refused(&self.path))?,
        };
        let name = named.file_name().unwrap_or_default().to_string_lossy();
        let nth = |n: usize| named.with_file_name(format!("{name}.{n}"));
        let mut free = 1;
        while nth(free).exists() {
            free += 1;
        }
        let aside = nth(free);
        fault::step().and_then(|()| fs::create_dir(&aside)).map_err(refused(&aside))?;
        for name in names().filter(|name| self.file(name).exists()) {
            let path = self.target(name)?;
            let moved = fault::step().and_then(|()| fs::rename(&path, aside.join(name)));
            moved.map_err(refused(&path))?;
        }
        Ok(Some(aside))
    }
}

/// Removes the folder that the run created, unless [`RunFolder::keep`] was called.
impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Some(made) = self.made.take().filter(|_| self.lock.holds()) {
            let _ = fs::remove_dir_all(made);
        }
    }
}

/// `<stem>`, `<stem>-2`, `<stem>-3`, ... in `root`: the first that does not exist, or with `resume`, the one before
/// that (`<stem>` if none exists).
pub fn default_folder(root: &Path, stem: &str, resume: bool) -> PathBuf {
    let nth = |n: usize| root.join(if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") });
    let mut free = 1;
    while nth(free).exists() {
        free += 1;
    }
    nth(if resume { (free - 1).max(1) } else { free })
}

/// Refuses to replace a file of a run by the output of a command. Figures may be replaced.
///
/// # Errors
/// [`IoError::OfRun`].
pub fn check_output(path: &Path) -> Result<(), IoError> {
    let is_data = DATA_FILES.iter().any(|name| path.file_name() == Some(name.as_ref()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_data && path.exists() && holds_run(folder) {
        return Err(IoError::OfRun { path: path.to_owned() });
    }
    Ok(())
}

/// Refuses a folder in which a new run would overwrite a run, or files with the names of a run's files.
///
/// # Errors
/// [`IoError::Occupied`], [`IoError::Lost`], [`IoError::Foreign`].
pub fn check_free(folder: &Path) -> Result<(), IoError> {
    if folder.join(MODEL_FILE).exists() {
        return Err(IoError::Occupied { folder: folder.to_owned() });
    }
    check_lost(folder)
}

/// Refuses to start in a folder without a checkpoint where a run would overwrite files, of a run or of another program.
///
/// # Errors
/// [`IoError::Lost`], [`IoError::Foreign`].
pub(crate) fn check_lost(folder: &Path) -> Result<(), IoError> {
    let Some(path) = names().map(|name| folder.join(name)).find(|path| path.exists()) else { return Ok(()) };
    Err(match holds_run(folder) {
        true => IoError::Lost { folder: folder.to_owned(), found: path },
        false => IoError::Foreign { path },
    })
}

/// Whether a folder contains files of a run, complete or not. A metrics file counts only if it has the
/// heading of a run.
pub(crate) fn holds_run(folder: &Path) -> bool {
    let is_ours = |text: Vec<u8>| text.starts_with(super::metrics::COLUMNS.as_bytes());
    [MODEL_FILE, COUNTERS_FILE, BEST_FILE].iter().any(|name| folder.join(name).exists())
        || fs::read(folder.join(METRICS_FILE)).is_ok_and(is_ours)
}

/// The files that a run writes, the checkpoint first.
fn names() -> impl Iterator<Item = &'static str> {
    DATA_FILES.into_iter().chain(FIGURES)
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
        let tells = |checked: Result<(), IoError>| checked.unwrap_err().to_string();
        assert!(check_free(root.path()).is_ok() && check_lost(root.path()).is_ok());
        write(METRICS_FILE, "a,b");
        assert!(tells(check_free(root.path())).contains(METRICS_FILE));
        assert!(tells(check_lost(root.path())).contains(METRICS_FILE));
        write(METRICS_FILE, super::super::metrics::COLUMNS);
        let lost = tells(check_lost(root.path()));
        assert!(lost.contains("no model.safetensors") && lost.contains("restart"), "{lost}");
        assert_eq!(tells(check_free(root.path())), lost);
        fs::remove_file(root.path().join(METRICS_FILE)).unwrap();
        write("loss.png", "");
        assert!(tells(check_free(root.path())).contains("loss.png"));
        assert!(check_lost(root.path()).is_err());
    }

    #[test]
    fn an_unused_folder_is_removed() {
        let root = crate::io::scratch();
        let path = root.path().join("runs/cat");
        drop(RunFolder::open(&path).unwrap());
        assert!(!root.path().join("runs").exists());
        RunFolder::open(&path).unwrap().keep();
        for name in [".model.safetensors.part", ".loss.png.part", ".mine.part"] {
            fs::write(path.join(name), "cut").unwrap();
        }
        let folder = RunFolder::open(&path).unwrap();
        folder.sweep();
        drop(folder);
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".mine.part"]);
    }

    #[test]
    fn a_moved_run_writes_nothing_to_the_folder_that_took_its_name() {
        let root = crate::io::scratch();
        let (path, moved) = (root.path().join("two"), root.path().join("two_moved"));
        let first = RunFolder::open(&path).unwrap();
        assert!(first.target(MODEL_FILE).is_ok());
        fs::rename(&path, &moved).unwrap();
        let message = first.target(MODEL_FILE).unwrap_err().to_string();
        assert!(message.contains("two was moved"), "{message}");
        let mut second = RunFolder::open(&path).unwrap();
        second.keep();
        fs::write(path.join(MODEL_FILE), "second").unwrap();
        fs::write(temporary_name(&path.join(MODEL_FILE)), "second").unwrap();
        assert!(first.target(MODEL_FILE).is_err() && first.move_aside().is_err());
        first.sweep();
        drop(first);
        assert!(second.target(MODEL_FILE).is_ok());
        assert_eq!(fs::read(path.join(MODEL_FILE)).unwrap(), b"second");
        assert!(temporary_name(&path.join(MODEL_FILE)).exists() && moved.exists());
    }

    #[test]
    fn the_root_folder_and_files_of_a_run_are_not_written_to() {
        assert!(matches!(RunFolder::open("/"), Err(IoError::Root { .. })));
        let root = crate::io::scratch();
        let at = |name: &str| root.path().join(name);
        fs::write(at(MODEL_FILE), "").unwrap();
        fs::write(at(METRICS_FILE), "").unwrap();
        fs::write(at("loss.png"), "").unwrap();
        for (name, is_refused) in
            [(MODEL_FILE, true), (METRICS_FILE, true), ("loss.png", false), ("samples.csv", false)]
        {
            assert_eq!(check_output(&at(name)).is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn a_run_is_moved_beside_its_folder_and_other_files_stay() {
        let root = crate::io::scratch();
        let path = root.path().join("cat");
        let folder = RunFolder::open(&path).unwrap();
        fs::write(path.join("cat.csv"), "1,2").unwrap();
        assert_eq!(folder.move_aside().unwrap(), None);
        for n in 1..=2 {
            fs::write(path.join(MODEL_FILE), [n]).unwrap();
            fs::write(path.join("loss.png"), [n]).unwrap();
            let aside = folder.move_aside().unwrap().unwrap();
            assert_eq!(aside, root.path().join(format!("cat.{n}")));
            assert_eq!(fs::read(aside.join("loss.png")).unwrap(), [n]);
            assert!(!path.join(MODEL_FILE).exists() && path.join("cat.csv").exists());
        }
    }
}
