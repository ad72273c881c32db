//! The house rules that a program can check: layers, headers, lengths, words, and where `unsafe` and printing may
//! occur.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules in the order of their layers. A module may use itself and the modules in its row.
const LAYERS: &[(&str, &[&str])] = &[
    ("simd", &[]),
    ("time_source", &[]),
    ("world", &["time_source"]),
    ("ode", &["simd", "world"]),
    ("array", &[]),
    ("graph", &["array"]),
    ("transform", &["array", "graph"]),
    ("backend", &["simd", "array", "graph", "transform"]),
    (
        "error",
        &["simd", "world", "array", "ode", "graph", "transform", "io", "data", "plot", "eval", "train"],
    ),
    ("tensor", &["simd", "array", "graph", "transform", "backend", "error", "ode"]),
    ("memory", &["array", "tensor"]),
    ("adjoint", &["array", "graph", "tensor", "ode", "error"]),
    ("nn", &["array", "tensor", "error"]),
    ("optim", &["array", "tensor", "nn", "error"]),
    ("names", &[]),
    ("triangular", &[]),
    ("cnf", &["names", "triangular", "array", "tensor", "ode", "adjoint", "nn", "error", "graph"]),
    ("data", &["triangular", "error", "io"]),
    ("heatmap", &[]),
    ("plot", &["heatmap", "ode", "adjoint", "error", "io"]),
    ("io", &["array", "tensor", "ode", "adjoint", "error"]),
    (
        "eval",
        &[
            "time_source",
            "names",
            "triangular",
            "heatmap",
            "array",
            "tensor",
            "ode",
            "nn",
            "cnf",
            "data",
            "plot",
            "io",
            "error",
        ],
    ),
    (
        "train",
        &[
            "time_source",
            "simd",
            "names",
            "triangular",
            "heatmap",
            "world",
            "array",
            "tensor",
            "ode",
            "adjoint",
            "nn",
            "optim",
            "cnf",
            "data",
            "plot",
            "io",
            "eval",
            "error",
            "backend",
        ],
    ),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
}

/// Names and texts of the sources in a folder.
fn read(folder: &str) -> Vec<(String, String)> {
    let (folder, mut files) = (root().join(folder), Vec::new());
    sources(&folder, &mut files);
    files.sort();
    let name = |p: &Path| p.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect()
}

/// The sources of the library, and below `cli/` the sources of the command line.
fn src() -> Vec<(String, String)> {
    let of_cli = read("cli/src").into_iter().map(|(name, text)| (format!("cli/{name}"), text));
    read("src").into_iter().chain(of_cli).collect()
}

/// The code lines of a file: without comments and without items that only tests compile.
fn code(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            out.push(line);
            continue;
        }
        // The item after the attribute, to its `;` or its closing brace.
        let mut depth = 0;
        for item in lines.by_ref() {
            depth += item.matches('{').count() as i32 - item.matches('}').count() as i32;
            if depth <= 0 && (item.ends_with(';') || item.ends_with('}') || item.ends_with("},")) {
                break;
            }
        }
    }
    out
}

fn layer_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap()
}

#[test]
fn each_layer_uses_only_those_above_its_line() {
    let mut wrong = Vec::new();
    for (file, text) in src().into_iter().filter(|(f, _)| !f.ends_with("tests.rs") && !f.contains("/tests/"))
    {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == layer_of(&file)) else { continue };
        for line in code(&text) {
            for part in line.split("crate::").skip(1) {
                let used: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let known = LAYERS.iter().any(|(layer, _)| *layer == used);
                if known && used != layer_of(&file) && !allowed.contains(&used.as_str()) {
                    wrong.push(format!("{file}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "a module uses a module that its row does not list:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_has_a_header() {
    let silent: Vec<String> =
        src().into_iter().filter(|(_, t)| !t.starts_with("//!")).map(|(f, _)| f).collect();
    assert!(silent.is_empty(), "files without a `//!` header: {silent:?}");
}

#[test]
fn unsafe_lives_in_the_kernels_and_lanes_only() {
    let allowed = |f: &str| f.starts_with("simd/") || f.starts_with("backend/cpu/");
    let wrong: Vec<String> = src()
        .into_iter()
        .filter(|(f, t)| {
            !allowed(f) && code(t).iter().any(|l| l.contains("unsafe ") || l.contains("unsafe_code"))
        })
        .map(|(f, _)| f)
        .collect();
    assert!(wrong.is_empty(), "unsafe outside simd/ and backend/cpu/: {wrong:?}");
}

/// Other modules use the traits of `backend/interface.rs`, and one file of them asks for the backend in use. `Peak`, which
/// measures the CPU for reports, is the only exception.
#[test]
fn only_the_backend_names_a_backend() {
    let names = ["cpu::", "backend::cpu", "{cpu", "Cpu::", "Oracle", "Plan::compile", "Workspace::"];
    let is_other = |f: &str| layer_of(f) != "backend" && !f.contains("/tests/");
    let others: Vec<_> = src().into_iter().filter(|(f, _)| is_other(f)).collect();
    let with = |names: &[&str]| -> Vec<String> {
        let has = |text: &str| code(text).iter().any(|line| names.iter().any(|name| line.contains(name)));
        others.iter().filter(|(_, text)| has(text)).map(|(f, _)| f.clone()).collect()
    };
    assert!(with(&names).is_empty(), "a backend is named in {:?}", with(&names));
    assert_eq!(with(&["current().compile(", "backend::run_once("]), ["tensor/exec.rs"]);
}

/// The printing macros panic if the reader has closed the pipe; `note` and `result` of the command line do not.
#[test]
fn nothing_prints_with_macros_that_panic() {
    let prints = ["println!", "eprintln!", "print!(", "eprint!(", "dbg!"];
    let wrong: Vec<String> = src()
        .into_iter()
        .filter(|(f, _)| f != "plot/notebook.rs")
        .filter(|(_, t)| code(t).iter().any(|l| prints.iter().any(|p| l.contains(p))))
        .map(|(f, _)| f)
        .collect();
    assert!(wrong.is_empty(), "printing with macros that panic: {wrong:?}");
}

/// What reads the time of the machine, or waits for it.
const TIME: [&str; 4] = ["Instant::now", "SystemTime::now", ".elapsed()", "thread::sleep"];

/// A test can set a [`TimeSource`](../../src/time_source.rs), and not the time of the machine. Polls over MPI pause.
#[test]
fn training_evaluation_and_ranks_read_the_time_from_one_source() {
    let (sources, mut wrong) = (read("src"), Vec::new());
    for (file, text) in sources.iter().filter(|(f, _)| ["train", "eval", "world"].contains(&layer_of(f))) {
        let used = TIME.iter().filter(|time| text.contains(**time));
        wrong
            .extend(used.filter(|time| file != "world/mpi.rs" || **time != TIME[3]).map(|time| (file, time)));
    }
    assert!(wrong.is_empty(), "the time of the machine: {wrong:?}");
}

/// The tests over MPI start processes that hang on purpose.
#[test]
fn no_test_sleeps() {
    let tests = ["src", "tests", "cli/tests"].map(read).concat();
    let sleep = TIME[3];
    let wrong: Vec<&str> = tests
        .iter()
        .filter(|(file, text)| !file.ends_with("mpi.rs") && file != "it/tidy.rs" && text.contains(sleep))
        .map(|(file, _)| file.as_str())
        .collect();
    assert!(wrong.is_empty(), "tests or code that sleeps: {wrong:?}");
}

/// Maximum number of lines of a file, except published coefficients; the target is 400.
const LINES: usize = 460;
/// Files with a rule per op, and their maximum number of lines.
const OF_EVERY_OP: (&[&str], usize) = (&["src/graph/verify.rs", "src/graph/tests/arbitrary.rs"], 600);

#[test]
fn files_are_short_enough_to_read() {
    let mut files = Vec::new();
    for dir in ["src", "tests", "cli"] {
        sources(&root().join(dir), &mut files);
    }
    files.sort();
    let (of_every_op, more) = OF_EVERY_OP;
    let long: Vec<String> = files
        .iter()
        .map(|p| (p.strip_prefix(root()).unwrap().to_str().unwrap(), fs::read_to_string(p).unwrap()))
        .filter(|(f, _)| !f.contains("tableaux/"))
        .map(|(f, t)| (f, t.lines().count(), if of_every_op.contains(&f) { more } else { LINES }))
        .filter(|(_, n, most)| n > most)
        .map(|(f, n, most)| format!("{f}: {n} lines, more than {most}"))
        .collect();
    assert!(long.is_empty(), "files that are too long: {long:?}");
}

#[test]
fn the_architecture_names_every_layer() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 300, "ARCHITECTURE.md is longer than 300 lines");
    let is_named = |l: &str| ["`", "/`", ".rs`"].iter().any(|end| text.contains(&format!("`{l}{end}")));
    let missing: Vec<&str> = LAYERS.iter().map(|(layer, _)| *layer).filter(|l| !is_named(l)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not mention {missing:?}");
}

/// Private terms, and their replacements. Plurals count too. (`docs/glossary.md` lists the terms of the field.)
const TERMS: &[(&str, &str)] = &[
    ("drift", "velocity field"),
    ("evidence bound", "ELBO"),
    ("forecast", "expected steps"),
    ("grey", "pixel value, gray"),
    ("hit", "event"),
    ("host", "plain state, plain Rust value"),
    ("jump", "state reset, discontinuity"),
    ("knot", "step time"),
    ("law", "distribution"),
    ("mass", "total probability"),
    ("of one's own", "custom"),
    ("optimiser", "optimizer"),
    ("peer", "baseline"),
    ("perceptron", "MLP"),
    ("picture", "figure if it is drawn, image if it is data"),
    ("quotient", "finite difference"),
    ("recipe", "configuration"),
    ("slope", "gradient, derivative"),
    ("sq. velocity", "flow-matching loss, MSE"),
    ("tell", "print, report, choose"),
    ("told", "printed, reported, given"),
];

/// Phrases in which such a word has its usual meaning: "mass" is a term of physics and of the mass matrix, and the
/// host of a rank is its machine.
const ALLOWED: &[&str] = &[
    "center of mass",
    "mass matrix",
    "ode mass",
    "mass dense",
    "world host",
    "collective host",
    "differs host",
    "ended host",
    "other call host",
    "rank host",
];

/// The words of a name or a text, in lower case, each between spaces.
fn words(text: &str) -> String {
    let (mut out, mut before) = (String::from(" "), ' ');
    for c in text.chars() {
        let starts_word = c.is_uppercase() && before.is_lowercase();
        if (starts_word || !c.is_alphanumeric()) && !out.ends_with(' ') {
            out.push(' ');
        }
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out + " "
}

/// Replacements for the private terms in a text.
fn better_terms(text: &str) -> Vec<String> {
    let text = ALLOWED.iter().fold(words(text), |text, phrase| text.replace(phrase, ""));
    let has = |term: &str| {
        let term = words(term);
        text.contains(&term) || text.contains(&format!("{}s ", term.trim_end()))
    };
    TERMS.iter().filter(|(term, _)| has(term)).map(|(term, better)| format!("{term} -> {better}")).collect()
}

/// The string literals of code, without format arguments.
fn literals(code: &str) -> Vec<String> {
    let (mut out, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let from = &rest[at..];
        let raw = rest[..at].ends_with("r#");
        let len = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("'\"'") {
            3
        } else if !from.starts_with('"') {
            1
        } else if raw {
            1 + from.find("\"#").expect("a raw string has an end")
        } else {
            let mut escaped = false;
            let end = from[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.expect("a string has an end") + 2
        };
        if from.starts_with('"') {
            out.push(from[1..len - 1].to_owned());
        }
        rest = &from[len..];
    }
    let unformatted = |text: &String| -> String {
        text.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after)).collect()
    };
    out.iter().map(unformatted).collect()
}

/// Error messages, panics, titles, labels, and the help texts of the command line.
#[test]
fn messages_use_the_terms_of_the_field() {
    let mut wrong = Vec::new();
    for (file, text) in src().into_iter().filter(|(f, _)| !f.ends_with("tests.rs") && !f.contains("/tests/"))
    {
        let help = text.lines().filter(|l| file.starts_with("cli/") && l.trim_start().starts_with("///"));
        let messages = literals(&code(&text).join("\n")).into_iter().chain(help.map(str::to_owned));
        for message in messages.filter(|m| m.split_whitespace().count() > 1) {
            wrong.extend(better_terms(&message).iter().map(|better| format!("{file}: {better}: {message}")));
        }
    }
    assert!(wrong.is_empty(), "private terms in messages:\n{}", wrong.join("\n"));
}

/// A message of the library has the name of an option, such as `fixed_steps`; only the command line writes `--fixed-steps`.
#[test]
fn the_library_names_options_without_dashes() {
    let is_flag =
        |word: &str| word.starts_with("--") && word[2..].starts_with(|c: char| c.is_ascii_lowercase());
    let is_end = |c: char| c.is_whitespace() || "(\"'`[".contains(c);
    let has_flag = |text: &str| text.split(is_end).any(is_flag);
    assert!(has_flag("a lower --lr") && has_flag("(--lr=1)") && !has_flag("a -- b, x--y"));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (file, text) in
        read("src").into_iter().filter(|(f, _)| !f.ends_with("tests.rs") && !f.contains("/tests/"))
    {
        let messages = literals(&code(&text).join("\n"));
        seen += messages.len();
        wrong.extend(messages.iter().filter(|text| has_flag(text)).map(|text| format!("{file}: {text}")));
    }
    assert!(wrong.is_empty() && seen > 2000, "flags in {seen} texts of the library:\n{}", wrong.join("\n"));
}

/// The committed list of public names, written by `.ci/public`.
#[test]
fn public_names_use_the_terms_of_the_field() {
    let names = fs::read_to_string(root().join(".ci/public.txt")).unwrap();
    let names = names.lines().filter(|l| !l.starts_with('#'));
    let wrong: Vec<String> =
        names.flat_map(|name| better_terms(name).into_iter().map(move |b| format!("{name}: {b}"))).collect();
    assert!(wrong.is_empty(), "private terms in public names:\n{}", wrong.join("\n"));
}

#[test]
fn the_word_list_matches_names_and_plurals_and_no_other_words() {
    let found = |text| better_terms(text).len();
    assert_eq!([found("NotedHits"), found("num_hits"), found("of one's own slopes")], [1, 1, 2]);
    assert_eq!([found("white lawn"), found("the center of mass"), found("Unknown")], [0, 0, 0]);
    assert_eq!(literals(r#"f("a \"b\" {hits:?} c", '"', "d") // "e"#), [r#"a \"b\"  c"#, "d"]);
}
