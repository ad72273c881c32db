//! W6: a process from start to end, with the first training step of W3 or W4. The value is the loss of that
//! step. `first_ms` is the time of the first process, which finds less in the system's file caches.

use crate::measure::{Measured, Options, Result, peak_rss_mb};
use crate::{w3, w4};
use std::process::Command;
use std::time::Instant;

pub const VARIANTS: &[&str] = &["W3", "W4"];

/// The work of such a process: prints the loss and its peak resident memory.
pub fn first(workload: &str, options: &Options) -> Result<()> {
    let loss = if workload == "W3" { w3::first()? } else { w4::first(options)? };
    println!("{loss} {}", peak_rss_mb());
    Ok(())
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--first", variant, "--threads", &options.threads.to_string()]);
    if let Some(image) = &options.image {
        command.arg("--image").arg(image);
    }
    let (mut samples, mut told) = (vec![], vec![]);
    for _ in 0..=options.reps {
        let begun = Instant::now();
        let output = command.output()?;
        samples.push(begun.elapsed().as_secs_f64() * 1e3);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().into());
        }
        let text = String::from_utf8(output.stdout)?;
        told = text.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    }
    let first_ms = samples.remove(0);
    let [loss, peak_rss_mb] = told[..] else { return Err("unexpected output of a process".into()) };
    Ok(Measured { peak_rss_mb: Some(peak_rss_mb), ..Measured::new((first_ms, samples), [loss]) })
}
