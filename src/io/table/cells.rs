//! The records of a text: cells between delimiters, quotes, line breaks within quotes, and the line of each record.

use std::borrow::Cow;

/// A cell without its quotes and the blanks around it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell<'a> {
    pub text: Cow<'a, str>,
    /// Whether the cell is in quotes. Blanks within quotes are part of the text.
    pub is_quoted: bool,
}

/// The cells of one row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record<'a> {
    /// The line of the first cell, from 1. Only line breaks within quotes make a record longer than a line.
    pub line: usize,
    pub cells: Vec<Cell<'a>>,
}

/// A text that quotes divide in no way, or only by a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// The line of the quote that begins the cell, from 1.
    pub line: usize,
    /// The column of the cell, from 0.
    pub column: usize,
    pub reason: BrokenQuotes,
}

/// What is wrong with a quoted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokenQuotes {
    /// The text ends before the quotes close.
    Open,
    /// The cell goes on after the quotes close.
    TextAfter,
}

/// An iterator over the records of a text. Lines of blanks alone are no records. Lines end with `\n`, `\r\n` or `\r`.
///
/// Within double quotes, delimiters and line breaks are ordinary characters, and two double quotes stand for one. Quotes
/// begin a cell, after blanks at most; other quotes are ordinary characters. A space as delimiter stands for any number of
/// spaces and tabs.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    delimiter: char,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str, delimiter: char) -> Records<'a> {
        Records { text, at: 0, line: 1, delimiter }
    }

    fn peek(&self) -> Option<char> {
        let byte = *self.text.as_bytes().get(self.at)?;
        if byte < 128 { Some(char::from(byte)) } else { self.text[self.at..].chars().next() }
    }

    /// Whether the character is a blank beside a cell.
    fn is_blank(&self, c: char) -> bool {
        (c == ' ' || c == '\t') && (self.delimiter == ' ' || c != self.delimiter)
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|c| self.is_blank(c)) {
            self.at += 1;
        }
    }

    /// Steps over the end of a line, if there is one here.
    fn end_line(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let length = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => return false,
        };
        self.at += length;
        self.line += 1;
        true
    }

    /// The cell that begins here. The position is then behind it, at a delimiter, the end of the line or of the text.
    fn cell(&mut self, column: usize) -> Result<Cell<'a>, Broken> {
        self.skip_blanks();
        if self.peek() == Some('"') {
            return self.quoted(column);
        }
        let (text, start) = (self.text, self.at);
        let ends =
            |c: char| c == '\n' || c == '\r' || c == self.delimiter || (c == '\t' && self.delimiter == ' ');
        self.at = text[start..].find(ends).map_or(text.len(), |length| start + length);
        Ok(Cell { text: text[start..self.at].trim().into(), is_quoted: false })
    }

    fn quoted(&mut self, column: usize) -> Result<Cell<'a>, Broken> {
        let broken = |reason| Broken { line: self.line, column, reason };
        let (open, text_after) = (broken(BrokenQuotes::Open), broken(BrokenQuotes::TextAfter));
        let text = self.text;
        let mut found = Cow::Borrowed("");
        self.at += 1;
        loop {
            let start = self.at;
            let length = text[start..].find('"').ok_or(open)?;
            while self.at < start + length {
                if !self.end_line() {
                    self.at += text[self.at..].chars().next().map_or(1, char::len_utf8);
                }
            }
            found =
                if found.is_empty() { text[start..self.at].into() } else { found + &text[start..self.at] };
            self.at += 1;
            if self.peek() != Some('"') {
                break;
            }
            found += "\"";
            self.at += 1;
        }
        let after = self.at;
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | '\r') => {}
            Some(_) if self.delimiter == ' ' && self.at > after => {}
            Some(c) if c == self.delimiter => {}
            Some(_) => return Err(text_after),
        }
        Ok(Cell { text: found, is_quoted: true })
    }

    /// Steps over a delimiter. Returns whether there is one, and a cell follows.
    fn delimit(&mut self) -> bool {
        if self.delimiter == ' ' {
            self.skip_blanks();
            return !matches!(self.peek(), None | Some('\n' | '\r'));
        }
        let is_there = self.peek() == Some(self.delimiter);
        self.at += if is_there { self.delimiter.len_utf8() } else { 0 };
        is_there
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.skip_blanks();
            if !self.end_line() {
                break;
            }
        }
        self.peek()?;
        let (line, mut cells) = (self.line, Vec::new());
        loop {
            match self.cell(cells.len()) {
                Ok(cell) => cells.push(cell),
                Err(broken) => {
                    self.at = self.text.len();
                    return Some(Err(broken));
                }
            }
            if !self.delimit() {
                break;
            }
        }
        self.end_line();
        Some(Ok(Record { line, cells }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, delimiter: char) -> Vec<(usize, Vec<String>)> {
        let owned = |record: Record| {
            (record.line, record.cells.into_iter().map(|cell| cell.text.into_owned()).collect())
        };
        Records::new(text, delimiter).map(|record| owned(record.unwrap())).collect()
    }

    #[test]
    fn quotes_hold_delimiters_and_line_breaks_and_lines_are_counted() {
        let found = records("a,\"b,\r\n\"\"c\"\"\" ,\n\n \t\r d , 5\" \r\n\"\",", ',');
        let expected = [
            (1, ["a", "b,\r\n\"c\"", ""].map(str::to_owned).to_vec()),
            (5, ["d", "5\""].map(str::to_owned).to_vec()),
            (6, ["", ""].map(str::to_owned).to_vec()),
        ];
        assert_eq!(found, expected);
        assert_eq!(records("\"\"\"\"\"\"", ','), [(1, vec!["\"\"".to_owned()])]);
        assert_eq!(
            records("  1 \t 2  \n\t\t\n\"a b\" c", ' '),
            [(1, vec!["1".into(), "2".into()]), (3, vec!["a b".into(), "c".into()])]
        );
        assert_eq!(
            records("\t\n1\t 2", '\t'),
            [(1, vec![String::new(); 2]), (2, vec!["1".into(), "2".into()])]
        );
    }

    #[test]
    fn quotes_that_do_not_close_or_that_text_follows_are_named() {
        let broken = |text| Records::new(text, ',').find_map(Result::err).unwrap();
        let (open, text_after) = (BrokenQuotes::Open, BrokenQuotes::TextAfter);
        assert_eq!(broken("a\n1, \"x\ny"), Broken { line: 2, column: 1, reason: open });
        assert_eq!(broken("a\r\"x\" y"), Broken { line: 2, column: 0, reason: text_after });
        let mut after = Records::new("\"", ',');
        assert!(after.next().unwrap().is_err() && after.next().is_none());
    }
}
