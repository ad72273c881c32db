//! `flowline density`: plots a learned density, or writes log-densities on a grid.

use super::bar::Count;
use super::error::Result;
use super::file_kind::FileKind;
use super::run_folder;
use super::say::done;
use super::threads::Threads;
use flowline::__internal::{
    DRAW_TOLERANCE, EvalError, FAR, GridAccuracy, MEASURE_TOLERANCE, check_output, write_npy_parts,
};
use flowline::train::{TrainError, TrainedFlow};
use std::path::PathBuf;

/// Arguments of `flowline density`.
#[derive(clap::Args)]
#[command(after_help = "\
RUN must be a run on an image, a toy density or a table of two columns. A .npy
file contains log-densities [N, N] in nats, top row first: per square pixel for an image, per
unit area for points.

Examples:
  flowline density latest --grid 1024
  flowline density runs/cat --margin 20 -o cat.npy

Cells where the density hardly changes are interpolated: off by at most about 2e-4 of the
largest density. In a .npy file, nearly all values above 1e-6 of the largest are within 0.02
nats. --every-cell solves each.")]
pub struct Args {
    /// Run folder, or `latest` for the newest run in runs/
    run: PathBuf,
    /// Number of cells along each side, at most 4096 for a figure, 32768 for .npy
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    grid: usize,
    /// Border around the image in pixels; for points, around the window, in percent of its longer side
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, default_value_t = 0.0)]
    margin: f64,
    /// Solve every cell, and interpolate none
    #[arg(long)]
    every_cell: bool,
    /// Output file: a figure (.png, .svg) or log-densities (.npy) [default: RUN/density-N.png]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) threads: Threads,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let (grid, margin) = (args.grid, args.margin);
    let kinds = [FileKind::Png, FileKind::Svg, FileKind::Npy];
    let kind = args.out.as_ref().map_or(Ok(FileKind::Png), |path| FileKind::of(path, &kinds))?;
    check_grid(grid, kind)?;
    args.out.as_deref().map_or(Ok(()), check_output)?;
    let run = run_folder::folder(&args.run, args.out.as_deref())?;
    let path = args.out.clone().unwrap_or_else(|| run.join(format!("density-{grid}.png")));
    // A .npy file has the default tolerance of `log-prob`. A figure needs only the accuracy of its colors.
    let tolerance = if kind == FileKind::Npy { MEASURE_TOLERANCE } else { DRAW_TOLERANCE };
    let learned = TrainedFlow::open(&run)?.rtol(tolerance).atol(tolerance);
    check_margin(&learned, margin)?;
    let accuracy = match kind {
        _ if args.every_cell => GridAccuracy::EVERY_CELL,
        FileKind::Npy => GridAccuracy::NUMBERS,
        _ => GridAccuracy::FIGURE,
    };
    let mut count = Count::new(grid * grid, "cells");
    let parts = learned.log_grid_parts((grid, margin), accuracy, |done| count.at(done))?;
    if kind == FileKind::Npy {
        let values = parts.map(|part| part.map(|part| part.into_iter().map(|x| x as f32).collect()));
        write_npy_parts(&path, &[grid, grid], values)?;
    } else {
        let log_density = parts.collect::<flowline::Result<Vec<_>>>()?.concat();
        learned.grid_of(log_density, grid, margin)?.plot(&path)?;
    }
    drop(count);
    done(
        &format!("{grid} x {grid} cells in {}", path.display()),
        || serde_json::json!({"run": run, "file": path, "grid": grid, "margin": margin}),
    );
    Ok(())
}

/// Checks `--grid`. A .npy file is written in parts and may be large. The values of a figure stay in memory, and a
/// figure has only about 1,000 pixels per side.
fn check_grid(grid: usize, kind: FileKind) -> Result<()> {
    let (most, range) = match kind {
        FileKind::Npy => (32_768, "from 1 to 32768"),
        _ => (4_096, "from 1 to 4096 for a figure, or to 32768 for a .npy file"),
    };
    if (1..=most).contains(&grid) {
        return Ok(());
    }
    Err(TrainError::Option { option: "grid", value: grid.to_string(), range }.into())
}

fn check_margin(learned: &TrainedFlow, margin: f64) -> Result<()> {
    let image = learned.plane("a figure of the density")?;
    let least = -0.5 * image.width.min(image.height) as f64;
    if !(margin.is_finite() && margin > least) {
        let (option, value, range) =
            ("margin", margin.to_string(), "a finite number that leaves a part of the image");
        return Err(TrainError::Option { option, value, range }.into());
    }
    let reach = image.reach(margin);
    if margin > 0.0 && reach > FAR {
        return Err(EvalError::Margin { margin, reach, far: FAR, most: image.margin_within(FAR) }.into());
    }
    Ok(())
}
