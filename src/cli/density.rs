//! `flowline density`: draw a learned density, or write its logarithm on a grid.

use super::{FileKind, note};
use crate::error::Result;
use crate::io::write_npy;
use crate::train::{DRAW_TOLERANCE, Learned, MEASURE_TOLERANCE, TrainError};
use std::path::PathBuf;

/// Arguments of `flowline density`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Cells along each side
    #[arg(long, value_name = "G")]
    grid: usize,
    /// Grow the image by so many pixels on all sides
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, default_value_t = 0.0)]
    margin: f64,
    /// Where to: a picture .png, or the log-density per square pixel [G, G], first row on top, as .npy
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
    if grid == 0 || grid > 1 << 15 {
        let (option, value, range) = ("--grid", grid.to_string(), "from 1 to 32768");
        return Err(TrainError::Option { option, value, range }.into());
    }
    let path = args.out.clone().unwrap_or_else(|| args.dir.join(format!("density-{grid}.png")));
    let kind = FileKind::of(&path, &[FileKind::Png, FileKind::Npy])?;
    let learned = Learned::open(&args.dir)?;
    let image = learned.image();
    let least = -0.5 * image.width.min(image.height) as f64;
    if !(margin.is_finite() && margin > least) {
        let (option, value, range) =
            ("--margin", margin.to_string(), "finite, and leave something of the image");
        return Err(TrainError::Option { option, value, range }.into());
    }
    // Numbers are those of `log-prob`; a picture shows no more than its colours.
    let tolerance = if kind == FileKind::Npy { MEASURE_TOLERANCE } else { DRAW_TOLERANCE };
    let found = learned.log_grid(grid, margin, tolerance)?;
    if kind == FileKind::Png {
        found.plot(&path)?;
    } else {
        let values: Vec<f32> = found.log_density.iter().map(|&x| x as f32).collect();
        write_npy(&path, &[grid, grid], &values)?;
    }
    note(&format!("{grid} x {grid} cells in {}", path.display()));
    Ok(())
}
