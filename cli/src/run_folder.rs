//! RUN: the folder of a run, or `latest`.

use super::error::{CliError, Result};
use flowline::__internal::MODEL_FILE;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names the run that was written last.
const LATEST: &str = "latest";
/// The default parent folder of runs.
pub const RUNS: &str = "runs";

/// The run folder for the argument `named`; `out` is the output path of the command, if given. `latest` is
/// searched for in [`RUNS`] and in the folder of `out`.
///
/// # Errors
/// [`CliError::NoRun`], [`CliError::NoLatest`].
pub fn folder(named: &Path, out: Option<&Path>) -> Result<PathBuf> {
    if named.join(MODEL_FILE).exists() {
        return Ok(named.to_owned());
    }
    let beside = out.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    let roots: Vec<&Path> = [Path::new(RUNS)].into_iter().chain(beside).collect();
    let runs = found(&roots);
    if named == Path::new(LATEST) && !named.exists() {
        let roots = roots.iter().map(|root| root.display().to_string()).collect();
        return runs.into_iter().next().ok_or(CliError::NoLatest { roots });
    }
    let reason = match named.metadata() {
        Err(_) => "no such folder",
        Ok(is) if is.is_dir() => "it has no model.safetensors",
        Ok(_) => "it is a file",
    };
    Err(CliError::NoRun { path: named.to_owned(), reason, runs })
}

/// When the checkpoint in a folder was written; `None` without a checkpoint.
pub fn written(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder.join(MODEL_FILE)).ok()?.modified().ok()
}

/// The run folders among `roots` and their subfolders, latest first.
fn found(roots: &[&Path]) -> Vec<PathBuf> {
    let entries = roots.iter().filter_map(|root| fs::read_dir(root).ok()).flatten();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let itself = roots.iter().map(|root| root.to_path_buf());
    let mut runs: Vec<(SystemTime, PathBuf)> =
        folders.chain(itself).filter_map(|folder| Some((written(&folder)?, folder))).collect();
    runs.sort_by(|a, b| b.cmp(a));
    runs.dedup();
    runs.into_iter().map(|(_, folder)| folder).collect()
}
