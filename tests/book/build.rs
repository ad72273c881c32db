//! Writes each program of the book as a module of the test `book`.

#[allow(dead_code, reason = "the comparison of outputs is for the tests")]
mod pages;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for watched in ["docs", "README.md"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let (mut modules, mut list) = (String::new(), String::new());
    for program in pages::programs_of_the_book(&root).unwrap_or_else(|wrong| panic!("{wrong}")) {
        let name = program.name();
        let file = out.join(format!("{name}.rs")).display().to_string();
        fs::write(&file, program.module()).expect("the build folder is writable");
        writeln!(modules, "#[path = {file:?}] mod {name};").expect("writing to a string succeeds");
        let (expected, factor, runs, pictures) =
            (&program.prints, program.factor, program.runs, &program.pictures);
        writeln!(
            list,
            "Program {{ name: {name:?}, place: {:?}, runs: {runs}, expected: {expected:?}, factor: {factor:?}, \
             pictures: &{pictures:?}, main: || {name}::main().map_err(|e| e.to_string()) }},",
            program.place()
        )
        .expect("writing to a string succeeds");
    }
    let all = format!("{modules}\nconst PROGRAMS: &[Program] = &[\n{list}];\n");
    fs::write(out.join("programs.rs"), all).expect("the build folder is writable");
}
