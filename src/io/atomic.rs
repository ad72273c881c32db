//! Atomic file writes: a temporary file in the same folder, synced, then renamed.
//!
//! A rename within a folder replaces the old file in one step (POSIX `rename`). A reader, even after a kill
//! during the write, finds the complete old file or the complete new file. The temporary name is fixed per
//! file, not random: a killed run leaves at most one such file, and the next write replaces it.

use super::{IoError, fault};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file through `fill`, completely or not at all.
///
/// # Errors
/// [`IoError::Write`]; no temporary file remains, and an existing file is unchanged.
///
/// # Examples
/// ```
/// let path = std::env::temp_dir().join("flowline-atomic-doc.txt");
/// flowline::io::write_atomic(&path, |file| file.write_all(b"whole"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"whole");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
pub fn write_atomic(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), IoError> {
    let path = path.as_ref();
    let temporary = temporary_name(path);
    let put = || fault::step().and_then(|()| fs::rename(&temporary, path));
    let written = write_synced(&temporary, fill).and_then(|()| put());
    if let Err(source) = written {
        let _ = fs::remove_file(&temporary);
        return Err(IoError::Write { path: path.to_owned(), source });
    }
    sync_folder(path);
    Ok(())
}

/// Writes a file in parts, so that only one part is in memory: `head`, then each part through `put`. The file
/// is written completely or not at all: if a part fails, an existing file is unchanged.
///
/// # Errors
/// The error of a part, or [`IoError::Write`].
pub(super) fn write_parts<P, E: From<IoError>>(
    path: &Path,
    head: &[u8],
    parts: impl Iterator<Item = Result<P, E>>,
    put: impl Fn(P, &mut dyn Write) -> io::Result<()>,
) -> Result<(), E> {
    let mut failed = None;
    let written = write_atomic(path, |file| {
        file.write_all(head)?;
        for part in parts {
            match part {
                Ok(part) => put(part, file)?,
                Err(e) => {
                    failed = Some(e);
                    return Err(io::Error::other("a part is missing"));
                }
            }
        }
        Ok(())
    });
    match failed {
        Some(e) => Err(e),
        None => Ok(written?),
    }
}

/// The path of the temporary file for `path`. A process that is killed during the write leaves this file
/// behind.
pub(crate) fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".part");
    path.with_file_name(name)
}

fn write_synced(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    fault::step()?;
    let mut writer = BufWriter::new(File::create(path)?);
    fill(&mut writer)?;
    let file = writer.into_inner()?;
    fault::step()?;
    file.sync_all()
}

/// Makes the rename durable. Some file systems cannot sync a folder. After a power failure the file is then
/// complete, but may be the old version.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Creates a folder and checks that it is writable. Returns the outermost folder that was created, if any, so
/// that a caller that fails later can remove it.
///
/// # Errors
/// [`IoError::Write`]; the folders that were created are removed.
pub fn writable_folder(path: impl AsRef<Path>) -> Result<Option<PathBuf>, IoError> {
    let path = path.as_ref();
    let made = path.ancestors().filter(|p| !p.as_os_str().is_empty()).take_while(|p| !p.exists()).last();
    let made = made.map(Path::to_owned);
    let probe = path.join(".probe.part");
    let tried =
        fs::create_dir_all(path).and_then(|()| File::create(&probe)).and_then(|_| fs::remove_file(&probe));
    match tried {
        Ok(()) => Ok(made),
        Err(source) => {
            if let Some(made) = made {
                let _ = fs::remove_dir_all(made);
            }
            Err(IoError::Write { path: path.to_owned(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_only_the_old_file() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a.txt");
        write_atomic(&path, |f| f.write_all(b"old")).unwrap();
        let failed = write_atomic(&path, |f| {
            f.write_all(b"new but cut")?;
            Err(io::Error::other("disk full"))
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("a.txt cannot be written: disk full"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_part_leaves_no_file_and_returns_its_error() {
        #[derive(Debug)]
        enum Failure {
            Part,
            File,
        }
        impl From<IoError> for Failure {
            fn from(_: IoError) -> Failure {
                Failure::File
            }
        }
        let folder = crate::io::scratch();
        let path = folder.path().join("a.txt");
        let write = |path: &Path, parts: Vec<Result<&str, Failure>>| {
            write_parts(path, b"head ", parts.into_iter(), |part, file| file.write_all(part.as_bytes()))
        };
        let failed = write(&path, vec![Ok("a "), Err(Failure::Part), Ok("b")]);
        assert!(matches!(failed, Err(Failure::Part)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(write(&folder.path().join("no/a.txt"), vec![Ok("a")]), Err(Failure::File)));
        write(&path, vec![Ok("a "), Ok("b")]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"head a b");
    }

    #[test]
    fn a_folder_below_a_file_is_refused_and_a_created_one_is_returned() {
        let folder = crate::io::scratch();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(matches!(writable_folder(folder.path().join("file/run")), Err(IoError::Write { .. })));
        let made = writable_folder(folder.path().join("a/b/c")).unwrap();
        assert_eq!(made, Some(folder.path().join("a")));
        assert_eq!(writable_folder(folder.path().join("a")).unwrap(), None);
        assert_eq!(fs::read_dir(folder.path().join("a/b/c")).unwrap().count(), 0);
    }
}
