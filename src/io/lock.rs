//! The lock of a folder: only one holder writes in it at a time.
//!
//! The operating system holds the lock and releases it when the process ends for any reason. The lock file
//! contains the process ID, for the error message of other processes. A leftover lock file has no effect.

use super::IoError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The lock file in a folder.
const LOCK_FILE: &str = ".lock";
/// How often a lock is tried beside processes that only look. Each holds its shared lock for some microseconds.
const LOOKS: u32 = 100_000;

/// The lock, released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Locks a folder.
    ///
    /// # Errors
    /// [`IoError::Locked`] if the folder is locked, [`IoError::Write`] if the lock file cannot be written or is a
    /// symbolic link, whose target would be overwritten.
    pub(crate) fn take(folder: &Path) -> Result<Lock, IoError> {
        let path = folder.join(LOCK_FILE);
        let mut looks = 0;
        loop {
            let refused = |source| IoError::Write { path: path.clone(), source };
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                return Err(refused(io::Error::other("it is a symbolic link")));
            }
            // A shared lock over NFS needs a file that can be read.
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = open.map_err(refused)?;
            match file.try_lock() {
                // A shared lock can be had beside another one: `lock_holder` looks at the folder, for a moment. The file is
                // closed before the next try, because its own shared lock would keep others from theirs.
                Err(TryLockError::WouldBlock) if looks < LOOKS && file.try_lock_shared().is_ok() => {
                    drop(file);
                    looks += 1;
                    std::thread::yield_now();
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    let process = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                    return Err(IoError::Locked { path: folder.to_owned(), process });
                }
                // The file system does not support locks: continue without a lock.
                Err(TryLockError::Error(e)) if e.kind() != io::ErrorKind::Unsupported => {
                    return Err(refused(e));
                }
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // The previous holder may have removed the file after it was opened here. Then the loop opens a
            // new file.
            if is_at(&file, &path) {
                file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(refused)?;
                return Ok(Lock { path, file });
            }
        }
    }
}

impl Lock {
    /// Whether the lock file is still at its path. If not, the folder was moved or removed, and another run may write
    /// to a folder of this name.
    pub(crate) fn holds(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

/// The process that holds the lock of a folder, in an inner option if its number is known; `None` without a holder. The
/// folder is not changed.
pub fn lock_holder(folder: &Path) -> Option<Option<u32>> {
    let path = folder.join(LOCK_FILE);
    // Opening a pipe would wait, and a symbolic link locks nothing.
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let file = File::open(&path).ok().filter(|_| is_file)?;
    // A shared lock, so that several processes can look at the same time.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            Some(fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()))
        }
        _ => None,
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.holds() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether this path, which is not followed if it is a symbolic link, still refers to the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    number(file.metadata()) == number(fs::symlink_metadata(path))
}

/// On other systems this is not checked.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn a_folder_has_one_holder_at_a_time_and_a_leftover_file_locks_nothing() {
        let folder = crate::io::scratch();
        fs::write(folder.path().join(LOCK_FILE), "99999999 and more").unwrap();
        let first = Lock::take(folder.path()).unwrap();
        let message = Lock::take(folder.path()).unwrap_err().to_string();
        let process = format!("process {}", std::process::id());
        assert_eq!(lock_holder(folder.path()), Some(Some(std::process::id())));
        assert!(message.contains(&process) && message.contains("another folder"), "{message}");
        drop(first);
        assert_eq!(lock_holder(folder.path()), None);
        fs::write(folder.path().join(LOCK_FILE), "99999999").unwrap();
        assert_eq!(lock_holder(folder.path()), None);
        fs::remove_file(folder.path().join(LOCK_FILE)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_process_that_looks_at_a_folder_does_not_keep_another_from_its_lock() {
        let folder = crate::io::scratch();
        fs::write(folder.path().join(LOCK_FILE), "99999999").unwrap();
        let is_done = AtomicBool::new(false);
        let look = || {
            while !is_done.load(Relaxed) {
                lock_holder(folder.path());
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(look);
            threads.spawn(look);
            let taken: Vec<_> = (0..2000).map(|_| Lock::take(folder.path()).map(drop)).collect();
            is_done.store(true, Relaxed);
            assert!(taken.iter().all(Result::is_ok), "{:?}", taken.iter().find(|taken| taken.is_err()));
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_refused_and_its_target_is_unchanged() {
        let folder = crate::io::scratch();
        let target = folder.path().join("mine.txt");
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(LOCK_FILE)).unwrap();
        let message = Lock::take(folder.path()).unwrap_err().to_string();
        assert!(message.contains(".lock cannot be written: it is a symbolic link"), "{message}");
        assert_eq!(fs::read_to_string(target).unwrap(), "mine");
    }
}
