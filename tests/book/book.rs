//! Runs every program of the book, each in its own process and folder, and compares its output with the page.
//!
//! `cargo test -p flowline-book` runs all programs; `cargo test -p flowline-book -- events` runs the programs
//! of pages whose names contain this word. If the variable `FLOWLINE_PICTURES` is set, the pictures of the pages are
//! written to `docs/images`; otherwise their sizes are compared with those there.

#[allow(dead_code, reason = "the pages are read when the test is built")]
mod pages;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs, thread};

/// A program of a page.
struct Program {
    name: &'static str,
    place: &'static str,
    runs: bool,
    expected: Option<&'static str>,
    factor: Option<f64>,
    pictures: &'static [&'static str],
    main: fn() -> Result<(), String>,
}

/// The programs as on the pages.
#[allow(clippy::all, clippy::pedantic, missing_docs, dead_code, reason = "written for readers of the book")]
mod programs {
    use super::Program;
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
    pub(super) const ALL: &[Program] = PROGRAMS;
}

/// Options of a small model with few updates: training takes minutes on the page and seconds here.
fn quick(updates: u64) -> flowline::train::TrainOptions {
    flowline::train::TrainOptions {
        updates: Some(updates),
        width: Some(8),
        depth: Some(1),
        batch: Some(128),
        ..Default::default()
    }
}

/// The argument that makes this test run one program.
const RUN: &str = "--run-program";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [flag, name] = &args[..]
        && flag == RUN
    {
        let program =
            programs::ALL.iter().find(|program| program.name == name).expect("a program of the book");
        return match (program.main)() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let filters: Vec<String> =
        args.iter().filter(|a| !a.starts_with('-')).map(|a| a.replace('-', "_")).collect();
    let asked = |p: &&Program| p.runs && (filters.is_empty() || filters.iter().any(|f| p.name.contains(f)));
    let wanted: Vec<&Program> = programs::ALL.iter().filter(asked).collect();
    let compiled = programs::ALL.len();
    println!("\nrunning {} of {compiled} programs of the book", wanted.len());
    let failed = run_all(&wanted);
    println!("programs of the book: {} passed; {failed} failed\n", wanted.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// Runs programs on all cores; returns the number of failures.
fn run_all(wanted: &[&Program]) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(program) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let outcome = run(program);
                    let (place, seconds) = (program.place, began.elapsed().as_secs_f64());
                    match outcome {
                        Ok(()) => println!("{place} ... ok ({seconds:.1} s)"),
                        Err(why) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            println!("{place} ... FAILED ({seconds:.1} s)\n{why}\n");
                        }
                    }
                }
            });
        }
    });
    failed.into_inner()
}

fn run(program: &Program) -> Result<(), String> {
    let folder = Folder::new(program.name);
    let this = env::current_exe().expect("the path of the test is known");
    let run = Command::new(this).args([RUN, program.name]).current_dir(&folder.0).output();
    let run = run.map_err(|e| e.to_string())?;
    let printed = String::from_utf8_lossy(&run.stdout);
    if !run.status.success() {
        return Err(format!("{}\n{printed}{}", run.status, String::from_utf8_lossy(&run.stderr)));
    }
    let difference = program.expected.and_then(|text| pages::difference(text, &printed, program.factor));
    difference.map_or(Ok(()), |difference| Err(format!("{difference}\nwhole output:\n{printed}")))?;
    for name in program.pictures {
        ["", "-dark"].iter().try_for_each(|kind| picture(&folder.0, &format!("{name}{kind}.png")))?;
    }
    Ok(())
}

/// Compares the size of a picture with the one that the page shows, or replaces that one.
fn picture(folder: &Path, name: &str) -> Result<(), String> {
    let shown = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
    let drawn = fs::read(folder.join(name)).map_err(|e| format!("{name} was not drawn: {e}"))?;
    if env::var_os("FLOWLINE_PICTURES").is_some() {
        return fs::write(shown, drawn).map_err(|e| format!("docs/images/{name} cannot be written: {e}"));
    }
    let shown = fs::read(shown).map_err(|e| format!("docs/images/{name}: {e}"))?;
    // Width and height are in the header of a PNG file. Pixels can differ where the last bits of numbers do.
    let size = |bytes: &[u8]| bytes.get(16..24).map(<[u8]>::to_vec);
    match size(&drawn) == size(&shown) {
        true => Ok(()),
        false => {
            Err(format!("{name} has another size than docs/images/{name}; write it with FLOWLINE_PICTURES=1"))
        }
    }
}

/// A folder with the data of the book, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = env::temp_dir().join(format!("flowline-book-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/data");
        for entry in fs::read_dir(data).expect("docs/data exists") {
            let from = entry.expect("a folder entry can be read").path();
            let name = from.file_name().expect("a file has a name");
            fs::copy(&from, folder.join(name)).expect("a file of docs/data can be copied");
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
