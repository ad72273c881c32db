//! `flowline sample`: draw points, or images, from a learned density.

use super::bar::Count;
use super::table::grouped;
use super::{FileKind, note};
use flowline::__internal::{EvalError, ImagesFrame, histogram_of_parts, write_csv_parts, write_npy_parts};
use flowline::Result;
use flowline::plot::{self, ImageGrid};
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use std::path::{Path, PathBuf};

/// Most points of one file: 16 GB of the plane as .npy.
const MOST: usize = 1_000_000_000;

/// Arguments of `flowline sample`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// How many points
    #[arg(short = 'n', value_name = "N", allow_negative_numbers = true)]
    count: usize,
    /// Where to: points [n, d] in the units of the data (pixels, x to the right and y down, of an image) as .npy or .csv, or
    /// the histogram of points over the plane as .png; images [n, h, w] or [n, h, w, c] of gray levels as .npy, rows of them
    /// as .csv, or a sheet of the first 400 as .png
    /// [default: DIR/samples.npy]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The class of the images, of a run that has classes
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    label: Option<usize>,
    /// Seed of the draw
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let path = args.out.clone().unwrap_or_else(|| args.dir.join("samples.npy"));
    let kind = FileKind::of(&path, &[FileKind::Npy, FileKind::Csv, FileKind::Png])?;
    let n = args.count;
    if !(1..=MOST).contains(&n) {
        let (option, value, range) = ("-n", n.to_string(), "from 1 to 1000000000");
        return Err(TrainError::Option { option, value, range }.into());
    }
    let learned = TrainedFlow::open(&args.dir)?;
    let key = Key::new(args.seed);
    if let Some(frame) = &learned.frames.images {
        return images(args, &learned, frame, (&path, kind), &key);
    }
    if args.label.is_some() {
        return Err(EvalError::Class { asked: args.label, classes: None }.into());
    }
    let mut count = Count::new(n, "points");
    let d = learned.dim();
    let counted = |part: &Result<Vec<f64>>| count.add(part.as_ref().map_or(0, |part| part.len() / d));
    let parts = learned.sample_rows(n, &key).inspect(counted);
    // In 64 bits, as data are read: with 32, points about a large number would all be that number.
    match kind {
        FileKind::Npy => write_npy_parts(&path, &[n, d], parts)?,
        FileKind::Csv => write_csv_parts(&path, &learned.columns().join(","), d, parts)?,
        FileKind::Png => {
            let (title, image) = (format!("{} samples", grouped(n as u64)), learned.plane("a histogram")?);
            let parts = parts.map(|part| part.map(|part| part.as_chunks::<2>().0.to_vec()));
            let image = histogram_of_parts(&title, n, parts, image.window(), Some(image.scale()))?;
            image.save(&path)?;
        }
    }
    drop(count);
    note(&format!("{} points in {}", grouped(n as u64), path.display()));
    Ok(())
}

/// Most images of a sheet, and its columns.
const SHEET: usize = 400;
const COLUMNS: usize = 20;

/// Draws images.
fn images(
    args: &Args,
    learned: &TrainedFlow,
    frame: &ImagesFrame,
    (path, kind): (&Path, FileKind),
    key: &Key,
) -> Result<()> {
    let n = if kind == FileKind::Png { args.count.min(SHEET) } else { args.count };
    let (mut count, d) = (Count::new(n, "images"), frame.dim());
    let counted = |part: &Result<Vec<u8>>| count.add(part.as_ref().map_or(0, |part| part.len() / d));
    let parts = learned.sample_images(n, args.label, key)?.inspect(counted);
    match kind {
        FileKind::Npy => {
            let colors = (frame.channels > 1).then_some(frame.channels);
            let shape: Vec<usize> = [n, frame.height, frame.width].into_iter().chain(colors).collect();
            write_npy_parts(path, &shape, parts)?;
        }
        FileKind::Csv => {
            let names: Vec<String> = (0..d).map(|i| format!("pixel{i}")).collect();
            write_csv_parts(path, &names.join(","), d, parts)?;
        }
        FileKind::Png => {
            let images = parts.collect::<Result<Vec<_>>>()?.concat();
            let of_class = args.label.map_or_else(String::new, |k| format!(" of class {k}"));
            let title = format!("{} samples{of_class}", grouped(n as u64));
            let columns = COLUMNS.min((n as f64).sqrt().ceil() as usize);
            let sheet =
                ImageGrid { title: &title, images: &images, size: frame.size(), columns, headings: &[] };
            plot::image_grid(&sheet)?.save(path)?;
        }
    }
    drop(count);
    note(&format!("{} images in {}", grouped(n as u64), path.display()));
    Ok(())
}
