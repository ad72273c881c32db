//! The book and the other Markdown files: links resolve, every page is in the summary, every program is tested.
//!
//! The package `tests/book` runs the programs, which it reads with the module `pages`.

#[path = "../book/pages.rs"]
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Names and texts of the files whose links are checked.
fn documents() -> Vec<(String, String)> {
    let mut names: Vec<String> =
        ["ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY", "examples/README", "notebooks/README"]
            .map(|name| format!("{name}.md"))
            .into();
    for entry in fs::read_dir(root().join("benches/record")).unwrap() {
        names.push(format!("benches/record/{}", entry.unwrap().file_name().to_str().unwrap()));
    }
    names.retain(|name| Path::new(name).extension().is_some_and(|e| e == "md"));
    names.sort();
    let read = |name: String| {
        (fs::read_to_string(root().join(&name)).unwrap_or_else(|e| panic!("{name}: {e}")), name)
    };
    let others = names.into_iter().map(read).map(|(text, name)| (name, text));
    others.chain(pages::pages(&root())).collect()
}

/// The text without fences and code, which contain no links; line numbers do not change.
fn prose(text: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        if !inside && !fence {
            let parts = line.split('`').enumerate();
            out.extend(parts.map(|(i, part)| if i % 2 == 0 { part } else { "`" }));
        }
        out.push('\n');
    }
    out
}

/// Relative link and image targets with their line numbers from 1. A link may span lines.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let prose = prose(text);
    let mut found = Vec::new();
    // Markdown, and the tags of pictures with a dark variant.
    for (before, after) in [("](", ')'), (" src=\"", '"'), (" srcset=\"", '"'), (" href=\"", '"')] {
        for (at, _) in prose.match_indices(before) {
            let Some((target, _)) = prose[at + before.len()..].split_once(after) else { continue };
            let line = prose[..at].matches('\n').count() + 1;
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((line, target.split_whitespace().next().unwrap_or("").to_owned()));
            }
        }
    }
    found
}

/// The anchors of a page's headings, as code hosts and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        inside ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !inside) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let copies = (1..).map(|i| format!("{anchor}-{i}"));
        let free = std::iter::once(anchor.clone()).chain(copies).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// `from/../to`, normalized.
fn resolved(from: &str, target: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in Path::new(from).parent().unwrap().join(target).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_str().unwrap().to_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The error in a link, if any.
fn broken(from: &str, target: &str, texts: &BTreeMap<String, String>) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let name = if path.is_empty() { from.to_owned() } else { resolved(from, path) };
    if !root().join(&name).exists() {
        return Some(format!("{target}: there is no {name}"));
    }
    let text = texts.get(&name)?;
    let missing = !anchor.is_empty() && !anchors(text).contains(anchor);
    missing.then(|| format!("{target}: {name} has no heading #{anchor}"))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let texts: BTreeMap<String, String> = documents().into_iter().collect();
    let mut wrong = Vec::new();
    for (name, text) in &texts {
        for (line, target) in relative_links(text) {
            wrong.extend(broken(name, &target, &texts).map(|why| format!("{name}:{line}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "broken links:\n{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_summary_and_the_reverse() {
    let all = pages::pages(&root()).into_iter().map(|(name, _)| name);
    let written: BTreeSet<String> =
        all.filter(|name| name.starts_with("docs/") && name != "docs/SUMMARY.md").collect();
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> =
        relative_links(&summary).into_iter().map(|(_, target)| format!("docs/{target}")).collect();
    let unlisted: Vec<&String> = written.difference(&listed).collect();
    let unwritten: Vec<&String> = listed.difference(&written).collect();
    assert!(
        unlisted.is_empty() && unwritten.is_empty(),
        "not in the summary: {unlisted:?}; not written: {unwritten:?}"
    );
}

/// The list of pages for readers without a sidebar. `docs/README.md` does not link to itself.
#[test]
fn the_first_page_of_the_book_lists_every_page_of_its_summary() {
    let targets = |page: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(root().join(page)).unwrap();
        relative_links(&text).into_iter().map(|(_, target)| target).collect()
    };
    let mut missing = targets("docs/SUMMARY.md");
    for listed in targets("docs/README.md") {
        missing.remove(&listed);
    }
    missing.remove("README.md");
    assert!(missing.is_empty(), "docs/README.md has no line for {missing:?}");
    assert!(targets("README.md").contains("docs/README.md"), "README.md does not link to docs/README.md");
}

/// Reference pages, and the modules and types of which they name every public item.
const LISTS: [(&str, &[&str]); 3] = [
    ("docs/reference/tensors.md", &["flowline::tensor::"]),
    ("docs/reference/layers.md", &["flowline::nn::", "flowline::optim::"]),
    (
        "docs/reference/solve-options.md",
        &[
            "flowline::ode::Ode::",
            "flowline::ode::EnsembleBuilder::",
            "flowline::ode::SaveAt::",
            "flowline::ode::Event::",
        ],
    ),
];

/// The paths of `.ci/public.txt` without modules and fields.
fn public_paths() -> Vec<String> {
    let text = fs::read_to_string(root().join(".ci/public.txt")).unwrap();
    let items = text.lines().filter(|line| line.contains("flowline::") && !line.starts_with(['#', 'm']));
    let paths = items.map(|line| line.rsplit(' ').next().unwrap().to_owned());
    paths.filter(|path| !path.contains('.')).collect()
}

fn last_name(path: &str) -> &str {
    path.rsplit("::").next().unwrap()
}

/// The code in a line of prose, such as of a table.
fn code_of(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The identifiers in a piece of code, each with whether a parenthesis follows.
fn identifiers(code: &str) -> impl Iterator<Item = (&str, bool)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let starts = code.match_indices(is_part).map(|(at, _)| at);
    let starts = starts.filter(move |&at| !code[..at].ends_with(is_part));
    starts.map(move |at| {
        let rest = &code[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        (&rest[..end], rest[end..].starts_with('('))
    })
}

/// The lines outside of fences.
fn lines_outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

#[test]
fn reference_pages_name_every_public_item_of_their_modules() {
    let public = public_paths();
    for (page, prefixes) in LISTS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let named: BTreeSet<&str> = lines_outside_fences(&text)
            .flat_map(code_of)
            .flat_map(|code| identifiers(code).map(|(name, _)| name))
            .collect();
        let is_listed = |path: &&String| prefixes.iter().any(|prefix| path.starts_with(prefix));
        let items: Vec<&String> = public.iter().filter(is_listed).collect();
        assert!(items.len() > 60, "{page}: {} items; did `.ci/public.txt` change its form?", items.len());
        let missing: Vec<_> = items.iter().filter(|path| !named.contains(last_name(path))).collect();
        assert!(missing.is_empty(), "{page} does not name {missing:#?}");
    }
}

/// Functions in tables exist. Tables with the heading `there` show other libraries.
#[test]
fn reference_pages_name_only_functions_that_exist() {
    let public = public_paths();
    let known: BTreeSet<&str> = public.iter().map(|path| last_name(path)).collect();
    for (page, _) in LISTS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut is_ours = true;
        for line in lines_outside_fences(&text) {
            is_ours = (is_ours || !line.starts_with('|')) && !line.starts_with("| there |");
            let rows = code_of(line).filter(|_| is_ours && line.starts_with('|'));
            for (name, is_called) in rows.flat_map(identifiers) {
                assert!(!is_called || known.contains(name), "{page}: there is no `{name}`: {line}");
            }
        }
    }
}

/// Functions of modules, such as `linalg::solve`, are written without parentheses and not checked.
#[test]
fn the_page_of_other_names_is_sorted_and_names_functions_that_exist() {
    let public = public_paths();
    let known: BTreeSet<&str> = public.iter().map(|path| last_name(path)).collect();
    let text = fs::read_to_string(root().join("docs/reference/numpy-names.md")).unwrap();
    let rows: Vec<(String, &str)> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line[2..].split_once(" | ").unwrap())
        .map(|(there, here)| (there.replace('`', "").to_lowercase(), here))
        .collect();
    let names = rows.iter().map(|(there, _)| there.split(", ").count()).sum::<usize>();
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0) && names > 120, "{names} names");
    // Functions of Rust's standard library.
    let plain = ["clone", "fold", "iter"];
    for (there, here) in rows {
        for (name, is_called) in code_of(here).flat_map(identifiers) {
            let exists = known.contains(name) || plain.contains(&name);
            assert!(!is_called || exists, "there is no `{name}` for {there}");
        }
    }
}

/// Pages link to every file in `docs/data` and `docs/images`.
#[test]
fn every_file_beside_the_pages_is_linked() {
    let linked: BTreeSet<String> = pages::pages(&root())
        .iter()
        .flat_map(|(name, text)| {
            relative_links(text).into_iter().map(move |(_, target)| resolved(name, &target))
        })
        .collect();
    for folder in ["docs/data", "docs/images"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(linked.contains(&name), "no page links to {name}");
        }
    }
}

/// Pictures of the repository are shown; an example that saves a picture is linked.
#[test]
fn the_gallery_has_every_picture() {
    let page = "docs/gallery.md";
    let text = fs::read_to_string(root().join(page)).unwrap();
    let linked: BTreeSet<String> =
        relative_links(&text).iter().map(|(_, target)| resolved(page, target)).collect();
    let files = |folder: &str| -> Vec<PathBuf> {
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let is_program = |path: &PathBuf| path.extension().is_some_and(|e| e == "rs");
    let draws = |path: &PathBuf| is_program(path) && fs::read_to_string(path).unwrap().contains(".png\"");
    let pictures = ["assets", "docs/images", "notebooks"].into_iter().flat_map(files);
    let pictures = pictures.filter(|path| path.extension().is_some_and(|e| e != "md"));
    for path in pictures.chain(files("examples").into_iter().filter(draws)) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        assert!(linked.contains(&name), "{page} does not link to {name}");
    }
}

#[test]
fn every_rust_fence_is_a_tested_program() {
    let programs = pages::programs_of_the_book(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    for (page, text) in pages::pages(&root()) {
        let is_program = |tag: &str| matches!(tag, "rust" | "rust,no_run");
        let fences = pages::fences(&text).into_iter().filter(|fence| is_program(&fence.tag)).count();
        assert_eq!(programs.iter().filter(|program| program.page == page).count(), fences, "{page}");
    }
    // Every program has its own name, so each is tested.
    let names: BTreeSet<String> = programs.iter().map(pages::Program::name).collect();
    assert_eq!(names.len(), programs.len());
    assert!(programs.iter().filter(|program| program.runs && program.prints.is_some()).count() > 30);
}

#[test]
fn a_page_gives_programs_and_outputs_or_an_error() {
    let page = "<!-- book: replace 10 => 2 -->\n<!-- book: factor 3 -->\n```rust\nfn main() { f(10); }\n```\n\n\
                It prints:\n\n```text\n1\n```\n\n```rust,no_run\nlet x = 1;\n```\n```rust,ignore\n?\n```\n";
    let found = pages::programs("docs/a-b.md", page).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].name(), found[0].place()), ("docs_a_b_1".to_owned(), "docs/a-b.md:3".to_owned()));
    assert_eq!((found[0].prints.as_deref(), found[0].factor), (Some("1\n"), Some(3.0)));
    assert_eq!(found[0].module(), "pub fn main() { f(2); }\n");
    let page =
        "<!-- book: picture g => a -->\n```rust\nfn main() {\n    g.save(\"a.png\");\n    h();\n}\n```\n";
    let drawing = pages::programs("p.md", page).unwrap().remove(0);
    assert_eq!(
        drawing.module(),
        "pub fn main() {\n    g.save(\"a.png\");\ng.dark().save(\"a-dark.png\")?;\n    h();\n}\n"
    );
    assert_eq!(drawing.pictures, ["a"]);
    assert!(
        !found[1].runs && found[1].module().contains("pub fn main() -> flowline::Result<()> {\nlet x = 1;\n")
    );
    let wrong = |text: &str| pages::programs("p.md", text).unwrap_err();
    assert_eq!(
        wrong("```rust\n# hidden\n```"),
        "p.md:1: a line that begins with `# ` is not Rust for a reader of the page"
    );
    assert!(wrong("```\nx\n```").contains("without a tag"));
    assert!(wrong("```rust,should_panic\n```").contains("`rust,should_panic`"));
    assert!(wrong("It prints:\n```text\n1\n```").contains("without a program"));
    assert!(wrong("<!-- book: replace a => b -->\n```rust\n```").contains("no `a`"));
    assert!(wrong("```rust\n```\n<!-- book: factor 3 -->\nIt prints:\n").contains("directly in front"));
    assert!(wrong("<!-- book: skip -->\n```rust\n```").contains("unknown comment"));
}

#[test]
fn outputs_are_compared_by_words_and_digits() {
    let same = |want, got| pages::difference(want, got, None).is_none();
    assert!(same("y = 1.50, 20,000 rows", "y = 1.51,  20000 rows") && !same("y = 1.50", "y = 1.53"));
    assert!(same("a\n...\nz\n", "a\nb\nc\nz\n") && !same("a\n...\nz\n", "a\nb\n") && !same("a", "a\nb"));
    assert!(same("1e-6", "1e-6") && !same("1e-6", "3e-6") && !same("x 1", "y 1") && !same("1", ""));
    let within = |want, got| pages::difference(want, got, Some(3.0)).is_none();
    assert!(
        within("loss 1e-6 of 4", "loss 2.5e-6 of 2") && !within("1e-6", "4e-6") && !within("1.0", "-1.0")
    );
}
