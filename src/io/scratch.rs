//! Folders for tests, gone with the value that names them; the tests of the command line and of the examples take this file
//! too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An empty folder of its own.
pub struct Scratch(PathBuf);

/// A new one.
pub fn scratch() -> Scratch {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("flowline-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    // Left by a process of this number that was killed.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the folder for temporary files is writable");
    Scratch(path)
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
