//! A folder in which the tests run the program.

use super::folders::{Scratch, scratch};
use flowline::io::raster::{Channels, Depth, encode_png};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder with a tiny image of two dark boxes.
pub struct Place {
    folder: Scratch,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { folder: scratch() };
        let dark = |x: u32, y: u32| match (x, y) {
            (2..6, 3..9) => 0,
            (8..14, 2..5) => 80,
            _ => 255,
        };
        place.image("tiny.png", [16, 12], dark);
        place
    }

    /// A grayscale PNG file, from gray levels by column and row.
    pub fn image(&self, name: &str, size: [u32; 2], gray: impl Fn(u32, u32) -> u8) {
        let grays: Vec<u8> = (0..size[0] * size[1]).map(|i| gray(i % size[0], i / size[0])).collect();
        fs::write(self.path(name), encode_png(size, Channels::Gray, Depth::Eight, &grays).unwrap()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowline"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        command.env("FLOWLINE_POINTS", "512");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed; returns standard output and standard error.
    pub fn output(&self, arguments: &str) -> (String, String) {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Runs a command that must succeed; returns standard output.
    pub fn done(&self, arguments: &str) -> String {
        self.output(arguments).0
    }

    /// Runs a command that must fail with this exit code and a message of one to three lines that contains these
    /// words, and must leave no files behind.
    pub fn fails(&self, arguments: &str, code: i32, words: &[&str]) {
        let before = self.names();
        let output = self.run(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!((1..=3).contains(&message.lines().count()), "{arguments}: {message}");
        for word in words {
            assert!(message.contains(word), "{arguments}: \"{word}\" is missing in: {message}");
        }
        assert_eq!(self.names(), before, "{arguments} left something behind");
    }

    /// The sorted names in the folder, except `tiny.png`.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n != "tiny.png")
            .collect();
        names.sort();
        names
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

pub const SMALL: &str = "--width 8 --depth 1 --batch 64 --fixed-steps 4";

/// Checks that each phase holds as many buffers and bytes at its end as after update 100.
pub fn keeps_its_buffers(report: &str) {
    for phase in json(report)["phases"].as_array().unwrap() {
        assert!(phase["live_buffers_at_100"].is_u64(), "{phase}");
        for count in ["live_buffers", "live_bytes"] {
            assert_eq!(
                phase[format!("{count}_at_100")],
                phase[format!("{count}_at_end")],
                "{count}: {phase}"
            );
        }
    }
}
