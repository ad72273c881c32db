//! `flowline sample`: draw points from a learned density.

use super::{FileKind, note};
use crate::error::Result;
use crate::io::{write_csv, write_npy};
use crate::plot;
use crate::tensor::Key;
use crate::train::Learned;
use std::path::PathBuf;

/// Arguments of `flowline sample`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// How many points
    #[arg(short = 'n', value_name = "N")]
    count: usize,
    /// Where to: points [n, 2] in pixels (x to the right, y down) as .npy or .csv, or their histogram as .png
    /// [default: DIR/samples.npy]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let path = args.out.clone().unwrap_or_else(|| args.dir.join("samples.npy"));
    let kind = FileKind::of(&path, &[FileKind::Npy, FileKind::Csv, FileKind::Png])?;
    let learned = Learned::open(&args.dir)?;
    let points = learned.sample(args.count, &Key::new(args.seed))?;
    match kind {
        FileKind::Npy => {
            let flat: Vec<f32> = points.as_flattened().iter().map(|&x| x as f32).collect();
            write_npy(&path, &[args.count, 2], &flat)?;
        }
        FileKind::Csv => {
            let rows: Vec<[f32; 2]> = points.iter().map(|p| p.map(|x| x as f32)).collect();
            write_csv(&path, "x,y", rows.iter().map(|row| &row[..]))?;
        }
        FileKind::Png => {
            let scale = learned.scale()?;
            let title = format!("{} samples", args.count);
            plot::histogram(&title, &points, learned.image().window(), Some(scale))?.save(&path)?;
        }
    }
    note(&format!("{} points in {}", args.count, path.display()));
    Ok(())
}
