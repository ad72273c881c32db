//! `flowline density`: draw a learned density, or write its logarithm on a grid.

use super::bar::Count;
use super::{FileKind, note};
use flowline::__internal::{DRAW_TOLERANCE, DensityGrid, EvalError, FAR, MEASURE_TOLERANCE, write_npy_parts};
use flowline::Result;
use flowline::train::{TrainError, TrainedFlow};
use std::path::PathBuf;

/// Arguments of `flowline density`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Cells along each side
    #[arg(long, value_name = "G", allow_negative_numbers = true)]
    grid: usize,
    /// Grow the image by so many pixels on all sides; the window of points by so many hundredths of its longer side
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, default_value_t = 0.0)]
    margin: f64,
    /// Where to write: an image .png, or the log-density per square pixel [G, G], first row on top, as .npy
    /// [default: DIR/density-G.png]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let (grid, margin) = (args.grid, args.margin);
    let path = args.out.clone().unwrap_or_else(|| args.dir.join(format!("density-{grid}.png")));
    let kind = FileKind::of(&path, &[FileKind::Png, FileKind::Npy])?;
    check_grid(grid, kind)?;
    let learned = TrainedFlow::open(&args.dir)?;
    check_margin(&learned, margin)?;
    let mut count = Count::new(grid * grid, "cells");
    let counted = |part: &Result<Vec<f64>>| count.add(part.as_ref().map_or(0, Vec::len));
    // Numbers are those of `log-prob`; a figure shows no more than its colors.
    if kind == FileKind::Npy {
        let parts = learned.log_grid_parts(grid, margin, MEASURE_TOLERANCE)?.inspect(counted);
        let values = parts.map(|part| part.map(|part| part.into_iter().map(|x| x as f32).collect()));
        write_npy_parts(&path, &[grid, grid], values)?;
    } else {
        let parts = learned.log_grid_parts(grid, margin, DRAW_TOLERANCE)?.inspect(counted);
        let log_density = parts.collect::<Result<Vec<_>>>()?.concat();
        let plane = learned.plane("a figure of the density")?;
        let (frame, scale) = (plane.grown(margin), plane.scale());
        DensityGrid { log_density, size: grid, frame, scale }.plot(&path)?;
    }
    drop(count);
    note(&format!("{grid} x {grid} cells in {}", path.display()));
    Ok(())
}

/// A file of numbers is written as it comes; the values of a figure lie in memory, and a figure has about 1,000 pixels per side.
fn check_grid(grid: usize, kind: FileKind) -> Result<()> {
    let (most, range) = match kind {
        FileKind::Npy => (32_768, "from 1 to 32768"),
        FileKind::Png | FileKind::Csv => (4_096, "from 1 to 4096 for a .png file; a .npy file takes more"),
    };
    if (1..=most).contains(&grid) {
        return Ok(());
    }
    Err(TrainError::Option { option: "--grid", value: grid.to_string(), range }.into())
}

fn check_margin(learned: &TrainedFlow, margin: f64) -> Result<()> {
    let image = learned.plane("a figure of the density")?;
    let least = -0.5 * image.width.min(image.height) as f64;
    if !(margin.is_finite() && margin > least) {
        let (option, value, range) =
            ("--margin", margin.to_string(), "finite, and leave something of the image");
        return Err(TrainError::Option { option, value, range }.into());
    }
    let reach = image.reach(margin);
    if margin > 0.0 && reach > FAR {
        return Err(EvalError::Margin { margin, reach, far: FAR, most: image.margin_within(FAR) }.into());
    }
    Ok(())
}
