//! One line of JSON from names and values.

use std::fmt::Write;

/// An object under construction.
pub struct Object(String);

impl Object {
    /// An object whose first member is a string.
    pub fn new(name: &str, text: &str) -> Object {
        Object("{".to_owned()).text(name, text)
    }

    /// A string.
    pub fn text(self, name: &str, text: &str) -> Object {
        self.member(name, &quoted(text))
    }

    /// A number; one that is not finite is `null`.
    pub fn number(self, name: &str, x: f64) -> Object {
        self.member(name, &number(x))
    }

    /// The line.
    pub fn end(self) -> String {
        self.0 + "}"
    }

    /// A value that is JSON already.
    pub fn member(mut self, name: &str, value: &str) -> Object {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}{}:{value}", quoted(name));
        self
    }
}

/// A number in JSON syntax.
pub fn number(x: f64) -> String {
    if x.is_finite() { x.to_string() } else { "null".to_owned() }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
