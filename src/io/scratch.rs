//! Temporary folders for tests, removed on drop. The tests of the command line and of the examples include this file too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An empty temporary folder.
pub struct Scratch(PathBuf);

/// Creates a folder.
pub fn scratch() -> Scratch {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("flowline-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    // A killed process with the same ID may have left this folder.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the folder for temporary files is writable");
    Scratch(path)
}

impl Scratch {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
