//! Golden graphs: a graph, a pass, and the resulting graph.
//!
//! Each file of `tests/it/golden` is a list of sections, each starting with a line `== kind`. The text before the first
//! section is a comment. A case is
//!
//! ```text
//! == in
//! func(...) { ... }
//! == pass none
//! == out
//! func(...) { ... }
//! ```
//!
//! Comma-separated passes run in sequence. `== error` instead of `== out` holds the error message of an invalid
//! graph. A file may hold several cases. With `GOLDEN=write` in the environment, the current outputs are written:
//! review the difference, then commit it.

use flowline::__internal::graph::{Func, verify};
use flowline::__internal::transform::{hoist, jvp, merge_tiles, optimize, simplify, vjp};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A pass by its name. Derivatives are with respect to input 0: `jvp` of all outputs, `vjp` of output 0.
fn apply(name: &str, f: &Func) -> Func {
    match name {
        "none" => f.clone(),
        "simplify" => simplify(f),
        "hoist" => hoist(f),
        "merge" => merge_tiles(f),
        "optimize" => optimize(f),
        "jvp" => jvp(f, &[0]),
        "vjp" => vjp(f, &[0], &[0]).unwrap_or_else(|e| panic!("vjp: {e}\n{f}")),
        other => panic!("there is no pass `{other}`"),
    }
}

/// The parts of a file: its comment, then the kind, the argument and the text of each section.
struct Golden {
    comment: String,
    sections: Vec<(String, String, String)>,
}

fn split(text: &str) -> Golden {
    let mut golden = Golden { comment: String::new(), sections: Vec::new() };
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("== ") {
            let (kind, argument) = head.split_once(' ').unwrap_or((head, ""));
            golden.sections.push((kind.to_owned(), argument.trim().to_owned(), String::new()));
        } else {
            let body = golden.sections.last_mut().map_or(&mut golden.comment, |s| &mut s.2);
            body.push_str(line);
            body.push('\n');
        }
    }
    golden
}

/// The empty line at the end of a section, or nothing.
fn gap(body: &str) -> &str {
    if body == "\n" || body.ends_with("\n\n") { "\n" } else { "" }
}

/// The same file with the current outputs and errors.
fn renewed(golden: &Golden) -> String {
    let mut text = golden.comment.clone();
    let mut graph = None;
    for (kind, argument, body) in &golden.sections {
        let read = || graph.clone().expect("a section `in` comes first");
        let body = match kind.as_str() {
            "in" => {
                graph = Some(Func::parse(body));
                body.clone()
            }
            "pass" => {
                let passed = argument.split(',').fold(read().expect("a graph that reads"), |f, pass| {
                    let g = apply(pass.trim(), &f);
                    verify(&g).unwrap_or_else(|e| panic!("after pass {pass}: {e}\n{g}"));
                    g
                });
                graph = Some(Ok(passed));
                String::new()
            }
            "out" => format!("{}\n{}", read().expect("a graph that reads"), gap(body)),
            "error" => format!("{}\n{}", read().expect_err("a graph that does not read"), gap(body)),
            other => panic!("there is no section `{other}`"),
        };
        let blank = if argument.is_empty() { "" } else { " " };
        write!(text, "== {kind}{blank}{argument}\n{body}").unwrap();
    }
    text
}

fn check(path: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(path).unwrap();
    let golden = split(&text);
    let now = renewed(&golden);
    if std::env::var("GOLDEN").is_ok_and(|v| v == "write") {
        fs::write(path, &now).unwrap();
    } else if now != text {
        return Err(format!("{}: want\n{text}\nbut it is now\n{now}", path.display()));
    }
    let results = golden.sections.iter().filter(|s| s.0 == "out" || s.0 == "error");
    Ok(results.count())
}

#[test]
fn every_golden_graph_matches_its_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    files.sort();
    assert!(!files.is_empty(), "no golden graphs found");
    let mut faults = Vec::new();
    for path in &files {
        match check(path) {
            Ok(0) => faults.push(format!("{}: no section `out` or `error`", path.display())),
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_changed_output_is_noticed() {
    let text = "== in\nfunc(%0: f32[2]) {\n  return %0\n}\n== pass none\n== out\nsomething else\n";
    let now = renewed(&split(text));
    assert_eq!(now.replace("something else", ""), now);
    assert!(now.ends_with("== out\nfunc(%0: f32[2]) {\n  return %0\n}\n"));
    assert_eq!(renewed(&split(&now)), now);
}

#[test]
#[should_panic(expected = "there is no pass `magic`")]
fn an_unknown_pass_is_refused() {
    renewed(&split("== in\nfunc() { return }\n== pass magic\n"));
}
