//! Splits text into tokens with their line numbers.

use crate::graph::GraphError;
use std::fmt;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `%3`
    Id(u32),
    /// A name or a number: letters, digits, `_`, `.`, `+` and `-`.
    Word(String),
    /// One of `(){}[],:=`.
    Mark(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Id(i) => write!(f, "`%{i}`"),
            Token::Word(w) => write!(f, "`{w}`"),
            Token::Mark(c) => write!(f, "`{c}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

pub(super) fn error(line: usize, why: impl Into<String>) -> GraphError {
    GraphError::Parse { line, why: why.into() }
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.+-".contains(c)
}

/// All tokens; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, GraphError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let mut rest = code.trim_start();
        while let Some(c) = rest.chars().next() {
            let end = rest.char_indices().skip(1).find(|&(_, c)| !in_word(c));
            let len = end.map_or(rest.len(), |(n, _)| n);
            let (token, len) = match c {
                '%' => {
                    let id = rest[1..len].parse().ok();
                    let id =
                        id.ok_or_else(|| error(i + 1, format!("`{}` is not a valid node", &rest[..len])))?;
                    (Token::Id(id), len)
                }
                _ if in_word(c) => (Token::Word(rest[..len].to_owned()), len),
                _ if "(){}[],:=".contains(c) => (Token::Mark(c), 1),
                _ => return Err(error(i + 1, format!("unexpected character {c:?}"))),
            };
            out.push((token, i + 1));
            rest = rest[len..].trim_start();
        }
    }
    out.push((Token::End, text.lines().count().max(1)));
    Ok(out)
}
