//! One regression test of `tests/stories` at any size: `cargo bench --bench stories -- NAME [--iterations N] [--json]`.
//!
//! Prints its measurements, with `--json` as one object, and fails if they exceed its limits. Bytes and blocks
//! are counted for the whole process.
#![allow(unsafe_code, reason = "a global allocator that counts")]

#[path = "common/json.rs"]
mod json;
#[path = "../tests/stories/mod.rs"]
mod stories;

use json::Object;
use std::process::ExitCode;
use stories::watch::Report;
use stories::{ALL, Story};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut name, mut iterations, mut json) = (None, None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--iterations" => iterations = args.next(),
            "--json" => json = true,
            // Added by cargo.
            "--bench" => {}
            _ => name = Some(arg),
        }
    }
    let story = ALL.iter().find(|story| name.as_deref() == Some(story.name));
    let iterations = match (story, iterations) {
        (Some(story), None) => Some(story.iterations),
        (_, Some(n)) => n.parse().ok().filter(|&n| n > 0),
        (None, None) => None,
    };
    let (Some(story), Some(iterations)) = (story, iterations) else {
        let names: Vec<&str> = ALL.iter().map(|story| story.name).collect();
        eprintln!("usage: stories NAME [--iterations N] [--json], NAME one of {}", names.join(", "));
        return ExitCode::from(2);
    };
    tell(story, iterations, json);
    ExitCode::SUCCESS
}

fn tell(story: &Story, iterations: usize, json: bool) {
    let report = (story.run)(iterations);
    if json {
        println!("{}", object(story.name, &report));
    } else {
        println!("{}: {}\n{report:#?}", story.name, story.holds.replace('_', " "));
    }
    (story.hold)(&report);
}

/// A report as one JSON object.
fn object(name: &str, report: &Report) -> String {
    let Report { at_100, at_end, .. } = report;
    let rounded = |mb: f64| (mb * 1e3).round() / 1e3;
    let mut out = Object::new("name", name);
    for (name, x) in [
        ("iterations", report.iterations as f64),
        ("traces", report.traces as f64),
        ("compiles", report.compiles as f64),
        ("live_buffers_at_100", at_100.buffers as f64),
        ("live_buffers_at_end", at_end.buffers as f64),
        ("live_blocks_at_100", at_100.blocks as f64),
        ("live_blocks_at_end", at_end.blocks as f64),
        ("live_bytes_at_end", at_end.bytes as f64),
        ("peak_bytes", report.peak_bytes as f64),
        ("rss_mb_at_100", rounded(at_100.rss_mb)),
        ("rss_mb_at_end", rounded(at_end.rss_mb)),
        ("compiles_after_100", report.compiles_after_100 as f64),
    ] {
        out = out.number(name, x);
    }
    report.measured.iter().fold(out, |out, (name, x)| out.number(name, *x)).end()
}
