//! Standard output and standard error: results go to the first, messages to the second.
//!
//! The style is set once per process, before anything is written. Nothing here panics if a reader closes the pipe.

use clap::ColorChoice;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::OnceLock;

/// How messages are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Write only errors to standard error.
    pub quiet: bool,
    /// Write summaries as JSON to standard output, and as text to standard error.
    pub json: bool,
    /// When standard error has colors.
    pub color: ColorChoice,
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// Sets the style; later calls have no effect.
pub fn set(style: Style) {
    let _ = STYLE.set(style);
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Whether only errors are written.
pub fn is_quiet() -> bool {
    style().quiet
}

/// Whether standard error has colors.
pub fn is_colored() -> bool {
    let set = |name: &str| std::env::var(name).ok();
    // Without TERM, a Unix terminal may not understand control codes. Windows does not set TERM.
    let is_dumb = set("TERM").map_or(!cfg!(windows), |name| name == "dumb");
    match style().color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_wanted = set("NO_COLOR").is_none_or(|value| value.is_empty());
            is_wanted && set("CLICOLOR").is_none_or(|on| on != "0") && stderr().is_terminal() && !is_dumb
        }
    }
}

/// Writes a message to standard error, unless `--quiet` is given.
pub fn note(text: &str) {
    if !is_quiet() {
        error_line(text);
    }
}

/// Writes a line to standard error, even with `--quiet`.
pub fn error_line(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Writes an error to standard error.
pub fn error(text: &str) {
    let label = if is_colored() { "\x1b[1m\x1b[31merror:\x1b[0m" } else { "error:" };
    error_line(&format!("{label} {text}"));
}

/// Writes the error that ends a command to standard error and, with `--json`, as an object to standard output, where a
/// script expects the summary. A command that ends by a signal has no exit code.
pub fn failure(text: &str, code: Option<u8>) {
    error(text);
    failed(text, code);
}

/// Writes the object of [`failure`], whose text has been written to standard error.
pub fn failed(text: &str, code: Option<u8>) {
    if style().json {
        result(&serde_json::json!({"error": text, "exit_code": code}).to_string());
    }
}

/// Writes a result to standard output.
pub fn result(text: &str) {
    let mut out = stdout().lock();
    check(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Writes a summary: `text` to standard output. With `--json`, `json` goes to standard output and `text` to standard
/// error. With `--quiet`, `text` is not written.
pub fn summary(text: &str, json: impl FnOnce() -> serde_json::Value) {
    if style().json {
        note(text);
        result(&json().to_string());
    } else if !is_quiet() {
        result(text);
    }
}

/// Writes the summary of a command whose results go elsewhere: `text` to standard error and, with `--json`, `json` to
/// standard output.
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

/// Ends the process with exit code 1 if standard output cannot be written, for example on a full disk. A closed pipe is
/// not a failure.
pub fn check(written: std::io::Result<()>) {
    if let Err(e) = written
        && e.kind() != ErrorKind::BrokenPipe
    {
        error(&format!("standard output cannot be written: {e}; free some space or write elsewhere"));
        std::process::exit(1);
    }
}
