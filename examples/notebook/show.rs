//! `show` for a notebook's code run as a program: writes a figure to a file instead of showing it below the cell.

use flowline::plot::Figure;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes the figure into the folder given on the command line. The file name is the name of the program with a
/// number from 1.
pub fn show(figure: &Figure) {
    static SHOWN: AtomicUsize = AtomicUsize::new(1);
    let mut arguments = std::env::args();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let name = program.file_stem().map_or("notebook".into(), |stem| stem.to_string_lossy());
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join(format!("{name}_{}.png", SHOWN.fetch_add(1, Ordering::Relaxed)));
    figure.save(&path).unwrap_or_else(|e| panic!("{e}"));
    println!("{} written", path.display());
}
