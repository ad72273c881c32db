//! The programs on the pages of the book, and their output.
//!
//! A program is a fence tagged `rust`. `rust,no_run` is only compiled; `rust,ignore` is not compiled (programs of
//! other crates). A program without `fn main` is the body of `main`. If a line that ends in "prints:" and a fence
//! tagged `text` follow, the program must print that text. Comments before a program, which readers do not see,
//! change its test:
//!
//! - `<!-- book: replace OLD => NEW -->` replaces the first `OLD` by another text, such as fewer updates;
//! - `<!-- book: factor 3 -->` lets printed numbers that depend on the machine be off by this factor;
//! - `<!-- book: picture FIGURE => NAME -->`: after the line that saves `NAME.png`, the program also saves the dark variant
//!   of the figure `FIGURE`, an expression. The page shows both files, from `docs/images`.

use std::fs;
use std::path::Path;

/// The start of a comment that changes how a program is tested.
const DIRECTION: &str = "<!-- book:";

/// A program of a page.
#[derive(Debug, PartialEq)]
pub struct Program {
    /// The page, relative to the root of the repository.
    pub page: String,
    /// The line of its fence, from 1.
    pub line: usize,
    /// The number of programs before it on the page.
    index: usize,
    code: String,
    /// Whether it is run, or only compiled.
    pub runs: bool,
    /// The expected output.
    pub prints: Option<String>,
    /// The factor by which a printed number may differ.
    pub factor: Option<f64>,
    /// The names of the pictures that it draws for the page.
    pub pictures: Vec<String>,
}

impl Program {
    /// A valid module name.
    pub fn name(&self) -> String {
        let stem = self.page.trim_end_matches(".md").to_lowercase();
        let name = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        format!("{name}_{}", self.index + 1)
    }

    /// Page and line.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    /// The program as a module with a public `main`.
    pub fn module(&self) -> String {
        if let Some((head, tail)) = self.code.split_once("fn main()") {
            return format!("{head}pub fn main(){tail}");
        }
        format!("pub fn main() -> flowline::Result<()> {{\n{}    Ok(())\n}}\n", self.code)
    }
}

/// A fence: the line of its opening from 0, its tag, its text.
#[derive(Debug, PartialEq)]
pub struct Fence {
    /// The line of its opening, from 0.
    pub line: usize,
    /// The tag after the three backticks.
    pub tag: String,
    /// The lines between the fences.
    pub text: String,
}

/// The fences of a page.
pub fn fences(text: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((line, opening)) = lines.next() {
        let Some(tag) = opening.trim_start().strip_prefix("```") else { continue };
        let indent = opening.len() - opening.trim_start().len();
        let inside = lines.by_ref().map(|(_, l)| l).take_while(|l| l.trim() != "```");
        let text = inside.map(|l| format!("{}\n", l.get(indent..).unwrap_or("").trim_end())).collect();
        found.push(Fence { line, tag: tag.to_owned(), text });
    }
    found
}

/// The programs of a page, or an error in the page.
pub fn programs(page: &str, text: &str) -> Result<Vec<Program>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found: Vec<Program> = Vec::new();
    let (mut before, mut directions) = (String::new(), 0);
    for fence in fences(text) {
        let above = &lines[..fence.line];
        let outcome = match fence.tag.as_str() {
            "rust" | "rust,no_run" => program(page, &fence, above, found.len()).map(|(p, comments)| {
                directions += comments;
                found.push(p);
            }),
            "text" if is_output(above) => match found.last_mut() {
                Some(program) if before == "rust" => {
                    program.prints = Some(fence.text);
                    Ok(())
                }
                _ => Err("an output without a program in front of it".to_owned()),
            },
            "" => Err("a fence without a tag; write text, console or a language".to_owned()),
            tag if tag.starts_with("rust") && tag != "rust,ignore" => {
                Err(format!("a fence tagged `{tag}`; known: rust; rust,no_run; rust,ignore"))
            }
            _ => Ok(()),
        };
        outcome.map_err(|wrong| format!("{page}:{}: {wrong}", fence.line + 1))?;
        before = fence.tag;
    }
    if lines.iter().filter(|line| line.starts_with(DIRECTION)).count() > directions {
        return Err(format!(
            "{page}: a comment `{DIRECTION}` stands directly in front of a fence tagged `rust`"
        ));
    }
    Ok(found)
}

/// The program in a fence, changed by the comments above it, and the number of these comments.
fn program(page: &str, fence: &Fence, above: &[&str], index: usize) -> Result<(Program, usize), String> {
    if fence.text.lines().any(|l| l.trim() == "#" || l.trim_start().starts_with("# ")) {
        return Err("a line that begins with `# ` is not Rust for a reader of the page".to_owned());
    }
    let mut program = Program {
        page: page.to_owned(),
        line: fence.line + 1,
        index,
        code: fence.text.clone(),
        runs: fence.tag == "rust",
        prints: None,
        factor: None,
        pictures: Vec::new(),
    };
    let comments: Vec<&&str> = above.iter().rev().take_while(|line| line.starts_with(DIRECTION)).collect();
    for comment in &comments {
        direct(&mut program, comment)?;
    }
    Ok((program, comments.len()))
}

/// Whether the text above a fence announces output.
fn is_output(above: &[&str]) -> bool {
    let last = above.iter().rev().find(|line| !line.is_empty());
    last.is_some_and(|line| line.to_lowercase().ends_with("prints:"))
}

/// Applies a comment.
fn direct(program: &mut Program, comment: &str) -> Result<(), String> {
    let wanted = comment.trim_start_matches(DIRECTION).trim_end_matches("-->").trim();
    if let Some((old, new)) = wanted.strip_prefix("replace ").and_then(|w| w.split_once(" => ")) {
        if !program.code.contains(old) {
            return Err(format!("the program has no `{old}` to replace"));
        }
        program.code = program.code.replacen(old, new, 1);
    } else if let Some(factor) = wanted.strip_prefix("factor ").and_then(|f| f.parse().ok()) {
        program.factor = Some(factor);
    } else if let Some((figure, name)) = wanted.strip_prefix("picture ").and_then(|w| w.split_once(" => ")) {
        let saved = format!("\"{name}.png\"");
        let end = program.code.find(&saved).and_then(|at| Some(at + program.code[at..].find('\n')?));
        let end = end.ok_or_else(|| format!("no line of the program saves {saved}"))?;
        program.code.insert_str(end, &format!("\n{figure}.dark().save(\"{name}-dark.png\")?;"));
        program.pictures.push(name.to_owned());
    } else {
        return Err(format!(
            "unknown comment {comment}; known: `book: replace OLD => NEW`, `book: factor NUMBER`, \
             `book: picture FIGURE => NAME`"
        ));
    }
    Ok(())
}

/// Names and texts of all pages: README.md and those in `docs/`.
pub fn pages(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.map(|entry| entry.expect("a folder entry can be read").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    let name = |path: &Path| {
        let parts = path.strip_prefix(root).expect("a path below the root").components();
        parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    };
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    found.iter().map(|path| (name(path), read(path))).collect()
}

/// The programs of all pages.
pub fn programs_of_the_book(root: &Path) -> Result<Vec<Program>, String> {
    let each = pages(root).into_iter().map(|(page, text)| programs(&page, &text));
    Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The first difference between printed and expected text. Words must be equal, numbers equal to one unit of the last
/// digit on the page (or to the factor), and a line `...` stands for any number of lines.
pub fn difference(expected: &str, printed: &str, factor: Option<f64>) -> Option<String> {
    let (mut wanted, mut got) = (expected.lines().peekable(), printed.lines().peekable());
    while let Some(want) = wanted.next() {
        if want.trim() == "..." {
            let next = wanted.peek()?;
            while got.next_if(|line| !same(next, line, factor)).is_some() {}
            continue;
        }
        match got.next() {
            Some(line) if same(want, line, factor) => {}
            other => return Some(format!("expected: {want}\nprinted:  {}", other.unwrap_or("(nothing)"))),
        }
    }
    got.find(|line| !line.trim().is_empty()).map(|line| format!("not on the page: {line}"))
}

fn same(want: &str, got: &str, factor: Option<f64>) -> bool {
    let (want, got) = (tokens(want), tokens(got));
    want.len() == got.len()
        && want.iter().zip(&got).all(|(a, b)| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => close(a, x, y, factor),
            _ => a == b,
        })
}

fn close(shown: &str, x: f64, y: f64, factor: Option<f64>) -> bool {
    if let Some(factor) = factor {
        return x == y || (x * y > 0.0 && (x / y).abs() <= factor && (y / x).abs() <= factor);
    }
    let (digits, exponent) = shown.split_once('e').unwrap_or((shown, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    let unit = 10.0_f64.powi(exponent.parse::<i32>().unwrap_or(0) - decimals);
    (x - y).abs() <= (1.001 * unit).max(1e-9 * x.abs())
}

/// Numbers, words and punctuation, without commas inside numbers.
fn tokens(line: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), line.trim());
    while let Some(first) = rest.chars().next() {
        let len = number(rest).unwrap_or_else(|| {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            word.max(first.len_utf8())
        });
        found.push(rest[..len].replace(',', ""));
        rest = rest[len..].trim_start();
    }
    found.retain(|token| !token.is_empty());
    found
}

/// The length of the number at the start of a text.
fn number(text: &str) -> Option<usize> {
    let sign = usize::from(text.starts_with('-'));
    let bytes = text.as_bytes();
    let (mut end, mut seen) = (sign, false);
    while let Some(&byte) = bytes.get(end) {
        let next_is_digit = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        let thousands = byte == b','
            && seen
            && bytes.len() > end + 3
            && bytes[end + 1..end + 4].iter().all(u8::is_ascii_digit);
        let exponent = byte == b'e'
            && seen
            && (next_is_digit
                || (bytes.get(end + 1) == Some(&b'-') && bytes.get(end + 2).is_some_and(u8::is_ascii_digit)));
        if byte.is_ascii_digit() || (byte == b'.' && next_is_digit) || thousands {
            seen = true;
            end += 1;
        } else if exponent {
            end += 2;
        } else {
            break;
        }
    }
    seen.then_some(end)
}
