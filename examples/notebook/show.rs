//! What `show` is where a notebook's story runs as a program: a picture becomes a file instead of standing under its cell.

use flowline::plot::Figure;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes the picture into the folder given on the command line, named by the program and counted from 1.
pub fn show(picture: &Figure) {
    static SHOWN: AtomicUsize = AtomicUsize::new(1);
    let mut arguments = std::env::args();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let name = program.file_stem().map_or("notebook".into(), |stem| stem.to_string_lossy());
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join(format!("{name}_{}.png", SHOWN.fetch_add(1, Ordering::Relaxed)));
    picture.save(&path).unwrap_or_else(|e| panic!("{e}"));
    println!("{} is written", path.display());
}
