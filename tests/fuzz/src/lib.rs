//! Shared by the targets: writes the fuzzer's bytes to files, for readers that take paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A folder of this process, in memory if the system has such a folder.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let shared = Path::new("/dev/shm");
        let root = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let folder = root.join(format!("flowline-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder for files");
        folder
    })
}

/// Writes the bytes to a file of this name, which every call overwrites.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, bytes).expect("room for a file");
    path
}

/// More elements than any small file can have. A reader must refuse a file that claims more, before it allocates
/// memory.
pub const MANY: usize = 1 << 26;
