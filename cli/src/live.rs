//! Lines at the bottom of a terminal that are redrawn in place; a progress bar uses them.
//!
//! Each drawing is one write that overwrites each line and clears the rest of it, so nothing flickers. Line
//! wrapping is off during a write: the terminal cuts long lines, so the number of lines on screen is known at
//! any width. Nothing is drawn with `--quiet`, on a dumb terminal, or if standard error is not a terminal.

use super::say::{is_colored, is_quiet};
use std::io::{IsTerminal, Write, stderr};

const WRAP: [&str; 2] = ["\x1b[?7l", "\x1b[?7h"];
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Width of a bar in cells.
const WIDTH: usize = 20;

/// Lines on standard error, removed when this value is dropped.
pub struct Live {
    is_shown: bool,
    is_colored: bool,
    /// Lines on screen; the cursor is in the last one.
    lines: usize,
}

impl Live {
    /// No lines yet.
    pub fn new() -> Live {
        // Without TERM, a Unix terminal may not understand control codes. Windows does not set TERM.
        let is_dumb = std::env::var("TERM").map_or(!cfg!(windows), |name| name == "dumb");
        let is_shown = stderr().is_terminal() && !is_dumb && !is_quiet();
        Live { is_shown, is_colored: is_colored(), lines: 0 }
    }

    /// Lines that are never drawn.
    pub fn hidden() -> Live {
        Live { is_shown: false, is_colored: false, lines: 0 }
    }

    /// Whether nothing is drawn.
    pub fn is_hidden(&self) -> bool {
        !self.is_shown
    }

    /// Replaces the lines on screen.
    pub fn draw(&mut self, text: &str) {
        if self.is_shown {
            write(&drawing(&mut self.lines, text));
        }
    }

    /// Writes `note` permanently, and redraws `text` below it.
    pub fn above(&mut self, note: &str, text: &str) {
        if self.is_shown {
            let cleared = drawing(&mut self.lines, "");
            self.lines = 0;
            write(&format!("{cleared}{note}\n{}", drawing(&mut self.lines, text)));
        }
    }

    /// Text in bold.
    pub fn title(&self, text: &str) -> String {
        self.styled("1", text)
    }

    /// A progress bar that shows `done` of `whole`.
    pub fn gauge(&self, done: u64, whole: u64) -> String {
        let cells = if whole == 0 { WIDTH as f64 } else { WIDTH as f64 * done as f64 / whole as f64 };
        let full = (cells as usize).min(WIDTH);
        let head = usize::from(cells > 0.0 && full < WIDTH);
        let full_part = "━".repeat(full) + &"╸".repeat(head);
        self.styled("36", &full_part) + &self.styled("34", &"─".repeat(WIDTH - full - head))
    }

    fn styled(&self, style: &str, text: &str) -> String {
        if self.is_colored && !text.is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

impl Drop for Live {
    // A panic message is already below the lines, and clearing would remove it.
    fn drop(&mut self) {
        if self.lines > 0 && !std::thread::panicking() {
            self.draw("");
        }
    }
}

/// The bytes that replace `lines` lines on screen by `text`; sets `lines` to the number of lines of `text`.
fn drawing(lines: &mut usize, text: &str) -> String {
    let up = if *lines > 1 { format!("\x1b[{}A", *lines - 1) } else { String::new() };
    *lines = text.lines().count();
    let text = text.lines().collect::<Vec<_>>().join(&format!("{CLEAR_LINE}\n"));
    let [no_wrap, wrap] = WRAP;
    format!("{no_wrap}\r{up}{text}{CLEAR_BELOW}{wrap}")
}

fn write(text: &str) {
    // A closed terminal does not stop the run.
    let _ = stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal emulator for the control codes used here.
    struct Screen {
        width: usize,
        rows: Vec<Vec<char>>,
        at: [usize; 2],
        wraps: bool,
    }

    impl Screen {
        fn new(width: usize) -> Screen {
            Screen { width, rows: vec![vec![]], at: [0, 0], wraps: true }
        }

        fn write(&mut self, text: &str) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                if let Some(code) = rest.strip_prefix("\x1b[") {
                    let end = code.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    self.control(&code[..end], code.as_bytes()[end]);
                    rest = &code[end + 1..];
                } else {
                    self.put(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }

        fn control(&mut self, numbers: &str, code: u8) {
            let [row, column] = self.at;
            match code {
                b'A' => self.at[0] -= numbers.parse::<usize>().unwrap(),
                b'K' => self.rows[row].truncate(column),
                b'J' => {
                    self.rows[row].truncate(column);
                    self.rows.truncate(row + 1);
                }
                b'l' | b'h' => self.wraps = code == b'h',
                b'm' => {}
                _ => panic!("{numbers}{code}"),
            }
        }

        fn put(&mut self, c: char) {
            match c {
                '\r' => self.at[1] = 0,
                '\n' => self.at = [self.at[0] + 1, 0],
                _ => {
                    if self.at[1] == self.width && self.wraps {
                        self.put('\n');
                    }
                    let [row, column] = [self.at[0], self.at[1].min(self.width - 1)];
                    let cells = &mut self.rows[row];
                    cells.resize(cells.len().max(column + 1), ' ');
                    cells[column] = c;
                    self.at[1] = column + 1;
                }
            }
            if self.rows.len() == self.at[0] {
                self.rows.push(vec![]);
            }
        }

        fn text(&self) -> String {
            let rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect()).collect();
            rows.join("\n")
        }
    }

    #[test]
    fn a_drawing_replaces_the_previous_one_and_keeps_the_lines_above() {
        let (mut screen, mut lines) = (Screen::new(80), 0);
        screen.write("$ flowline train\n");
        for text in [
            "1/2  loss 3.25 nats\n    12.5 ms",
            "1/2  loss 3\n    9.1 ms",
            "1/2  drawing ...",
            "2/2\n    7 ms",
        ] {
            screen.write(&drawing(&mut lines, text));
            assert_eq!(screen.text(), format!("$ flowline train\n{text}"));
        }
        screen.write(&drawing(&mut lines, ""));
        assert_eq!((screen.text(), lines), ("$ flowline train\n".to_owned(), 0));
    }

    #[test]
    fn a_narrow_terminal_cuts_lines_and_wraps_other_output() {
        let (mut screen, mut lines) = (Screen::new(10), 0);
        for _ in 0..3 {
            screen.write(&drawing(&mut lines, "forty columns wide\nand another line"));
        }
        assert_eq!(screen.rows.len(), 2, "{}", screen.text());
        assert!(screen.rows.iter().all(|row| row.len() <= 10));
        screen.write(&drawing(&mut lines, ""));
        screen.write("nine more letters");
        assert_eq!(screen.text(), "nine more \nletters");
    }

    #[test]
    fn gauges_are_full_at_the_end_and_empty_at_the_start() {
        let plain = Live { is_shown: false, is_colored: false, lines: 0 };
        assert_eq!(plain.gauge(0, 8), "─".repeat(20));
        assert_eq!(plain.gauge(2, 8), "━".repeat(5) + "╸" + &"─".repeat(14));
        assert_eq!([plain.gauge(8, 8), plain.gauge(0, 0)], ["━".repeat(20), "━".repeat(20)]);
        let colored = Live { is_colored: true, ..plain };
        assert_eq!(colored.gauge(8, 8), format!("\x1b[36m{}\x1b[0m", "━".repeat(20)));
        assert_eq!(colored.title("a"), "\x1b[1ma\x1b[0m");
    }
}
