//! The folder that an example draws into.

#[path = "../../src/io/scratch.rs"]
mod folders;

pub use folders::scratch;
use std::path::Path;

/// Whether a figure with more than axes was written.
pub fn is_picture(folder: &Path, name: &str) -> bool {
    std::fs::read(folder.join(name)).is_ok_and(|bytes| bytes.len() > 10_000 && &bytes[1..4] == b"PNG")
}
