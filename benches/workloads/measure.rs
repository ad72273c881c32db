//! Times a program, the first call and samples of later calls, and formats the result as one line.

use crate::json::{Object, number};
use crate::stats::median;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Any error of a measured program ends the measurement.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The minimum duration of a sample in seconds; shorter calls are repeated.
const SAMPLE: f64 = 0.02;
/// Approximate maximum duration of all samples of a measurement in seconds; there are at least three samples.
const ALL_SAMPLES: f64 = 60.0;

/// The options of every measurement.
pub struct Options {
    /// Threads of the pool.
    pub threads: usize,
    /// Number of samples.
    pub reps: usize,
    /// Whether to print JSON lines instead of table rows.
    pub json: bool,
    /// The image of W4 and W9; by default the built-in one.
    pub image: Option<PathBuf>,
}

/// A measurement.
pub struct Measured {
    /// Milliseconds of the first call: it traces, compiles and runs.
    pub first_ms: f64,
    /// Milliseconds per call, one per sample.
    pub samples: Vec<f64>,
    /// A value that must agree between two programs that do the same work.
    pub value: Vec<f64>,
    /// The largest difference from a much more accurate result.
    pub max_error: Option<f64>,
    /// The peak resident memory of the measured process, if it is not this one.
    pub peak_rss_mb: Option<f64>,
}

impl Measured {
    pub fn new((first_ms, samples): (f64, Vec<f64>), value: impl Into<Vec<f64>>) -> Measured {
        Measured { first_ms, samples, value: value.into(), max_error: None, peak_rss_mb: None }
    }

    pub fn max_error(self, max_error: f64) -> Measured {
        Measured { max_error: Some(max_error), ..self }
    }

    /// One line of JSON, or one row of the table below [`HEADER`].
    pub fn line(&self, workload: &str, variant: &str, options: &Options) -> String {
        let (ms, reps) = (median(self.samples.clone()), self.samples.len());
        let min_ms = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let peak = self.peak_rss_mb.unwrap_or_else(peak_rss_mb);
        if !options.json {
            let mut row = format!(
                "{workload:3} {variant:18} {:2} {:10.4} {ms:12.5} {min_ms:12.5} {reps:4} {peak:8.1}",
                options.threads, self.first_ms
            );
            let value: Vec<String> = self.value.iter().map(|x| format!("{x:.7}")).collect();
            let _ = write!(row, "  {}", value.join(" "));
            if let Some(error) = self.max_error {
                let _ = write!(row, "  (error {error:.1e})");
            }
            return row;
        }
        let value: Vec<String> = self.value.iter().map(|&x| number(x)).collect();
        let value = if let [one] = &value[..] { one.clone() } else { format!("[{}]", value.join(",")) };
        let line = Object::new("workload", workload).text("variant", variant);
        let line = line.number("threads", options.threads as f64).number("first_ms", self.first_ms);
        let line = line.number("ms", ms).number("min_ms", min_ms).number("reps", reps as f64);
        let line = line.member("value", &value).number("peak_rss_mb", (peak * 10.0).round() / 10.0);
        match self.max_error {
            Some(error) => line.number("max_error", error).end(),
            None => line.end(),
        }
    }
}

/// The names of the columns of [`Measured::line`].
pub const HEADER: &str = "    variant      threads   first_ms           ms       min_ms reps  peak_mb  value";

/// Milliseconds of the first call, and per call of each sample. If calls are short, a sample has many.
pub fn time(options: &Options, mut call: impl FnMut() -> Result<()>) -> Result<(f64, Vec<f64>)> {
    let first = seconds(1, &mut call)?;
    let once = seconds(1, &mut call)?;
    let calls = ((SAMPLE / once) as usize).max(1);
    let fit = (ALL_SAMPLES / (once * calls as f64)) as usize;
    let reps = options.reps.min(fit.max(3));
    let samples = (0..reps).map(|_| Ok(seconds(calls, &mut call)? / calls as f64 * 1e3));
    Ok((first * 1e3, samples.collect::<Result<_>>()?))
}

fn seconds(calls: usize, call: &mut impl FnMut() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// The peak resident memory of this process in MiB; 0 if the system does not report it.
pub fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
