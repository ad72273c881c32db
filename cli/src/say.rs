//! Standard output and standard error: results go to the first, messages to the second.
//!
//! What is quiet and what is colored holds for the whole process and is set once, before anything is written. Nothing here panics
//! where nobody reads.

use clap::ColorChoice;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::OnceLock;

/// How messages are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Errors alone are written to standard error.
    pub quiet: bool,
    /// Summaries are JSON on standard output; those for people go to standard error.
    pub json: bool,
    /// When standard error has colors.
    pub color: ColorChoice,
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// Sets the style; the first call counts.
pub fn set(style: Style) {
    let _ = STYLE.set(style);
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Whether only errors are wanted.
pub fn is_quiet() -> bool {
    style().quiet
}

/// Whether standard error has colors.
pub fn is_colored() -> bool {
    is_colored_by(style().color)
}

/// The same before the style is known.
pub fn is_colored_by(choice: ColorChoice) -> bool {
    let set = |name: &str| std::env::var(name).ok();
    // Only systems whose terminals need no name leave it out.
    let is_dumb = set("TERM").map_or(!cfg!(windows), |name| name == "dumb");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_wanted = set("NO_COLOR").is_none_or(|value| value.is_empty());
            is_wanted && set("CLICOLOR").is_none_or(|on| on != "0") && stderr().is_terminal() && !is_dumb
        }
    }
}

/// A message for people.
pub fn note(text: &str) {
    if !is_quiet() {
        error_line(text);
    }
}

/// A message that is written whatever the style.
pub fn error_line(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// An error, in at most three lines.
pub fn error(text: &str) {
    let label = if is_colored() { "\x1b[1m\x1b[31merror:\x1b[0m" } else { "error:" };
    error_line(&format!("{label} {text}"));
}

/// A line of results.
pub fn result(text: &str) {
    let mut out = stdout().lock();
    check(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// What was done, for people or as JSON: `text` on standard output; with `--json` that is `json`, and `text` is a message.
pub fn summary(text: &str, json: impl FnOnce() -> serde_json::Value) {
    if style().json {
        note(text);
        result(&json().to_string());
    } else if !is_quiet() {
        result(text);
    }
}

/// [`summary`] of a command whose results are elsewhere: its text is a message.
pub fn done(text: &str, json: impl FnOnce() -> serde_json::Value) {
    note(text);
    if style().json {
        result(&json().to_string());
    }
}

/// Whether summaries are JSON.
pub fn is_json() -> bool {
    style().json
}

/// Ends the process where standard output cannot be written: a reader that went away is no failure, a full disk is.
pub fn check(written: std::io::Result<()>) {
    if let Err(e) = written
        && e.kind() != ErrorKind::BrokenPipe
    {
        error(&format!("standard output cannot be written: {e}; free some space or write elsewhere"));
        std::process::exit(1);
    }
}
