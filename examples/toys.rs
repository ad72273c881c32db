//! The eight toy densities that papers on flows show, each learned by a flow of at most 9,300 weights, on one sheet.
//!
//! `cargo run --release --example toys -- [FOLDER] [SECONDS] [PICTURE]` trains each that has no run in FOLDER (default
//! `runs/toys`) for at most SECONDS (180), prints how far it ends above the entropy, and draws PICTURE (`toys.png`). A run
//! that is there is drawn as it is.
use flowline::data::Toy;
use flowline::plot::{self, DensityMap};
use flowline::tensor::Key;
use flowline::train::{Density, Learned, MODEL_FILE, Options};
use image::{RgbImage, imageops};
use std::path::{Path, PathBuf};

/// Panels of a row, and how much smaller they are than a picture of their own.
const COLUMNS: usize = 4;
const SHRINK: u32 = 2;
/// Cells along a side of a panel.
const GRID: usize = 300;

fn main() -> flowline::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "runs/toys".to_owned()));
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(180.0);
    let picture = arguments.next().unwrap_or_else(|| "toys.png".to_owned());
    let mut panels = Vec::new();
    println!("{:14} {:>8} {:>10} {:>10}", "density", "weights", "entropy", "gap (nats)");
    for toy in Toy::ALL {
        let learned = learn(toy, &folder.join(toy.name()), seconds)?;
        let drawn = folder.join(toy.name()).join("sheet.png");
        let grid = learned.log_grid(GRID, 0.0, 1e-4)?;
        let values: Vec<f64> = grid.log_density.iter().map(|x| x.exp()).collect();
        let map = DensityMap { values: &values, rows: GRID, cols: GRID, frame: grid.frame };
        plot::density(toy.name(), &map, grid.scale)?.save(&drawn)?;
        panels.push(image::open(&drawn).expect("a picture that was just drawn").into_rgb8());
    }
    sheet(&panels).save(&picture).expect("a place to write the picture to");
    println!("{picture}");
    Ok(())
}

/// Learns a toy, or opens the run that did, which tells no gap.
fn learn(toy: Toy, folder: &Path, seconds: f64) -> flowline::Result<Learned> {
    if folder.join(MODEL_FILE).exists() {
        return Learned::open(folder);
    }
    let options = Options { time_limit: Some(seconds), ..Options::default() };
    let learned = Density::from_options(&options, toy)?.run_folder(folder).run(&Key::new(0))?;
    if let Some(report) = &learned.report {
        let gap = report.gap_nats.unwrap_or(f64::NAN);
        println!("{:14} {:>8} {:>10.4} {gap:>10.4}", toy.name(), report.weights, toy.entropy_nats());
    }
    Ok(learned)
}

/// Pictures in rows, each in the middle of a cell that holds the largest.
fn sheet(panels: &[RgbImage]) -> RgbImage {
    let largest = |side: fn(&RgbImage) -> u32| panels.iter().map(side).max().unwrap_or(0) / SHRINK;
    let (width, height) = (largest(RgbImage::width), largest(RgbImage::height));
    let rows = panels.len().div_ceil(COLUMNS) as u32;
    let mut sheet = RgbImage::from_pixel(width * COLUMNS as u32, height * rows, image::Rgb([255; 3]));
    for (i, panel) in panels.iter().enumerate() {
        let [w, h] = [panel.width(), panel.height()].map(|side| side / SHRINK);
        let small = imageops::resize(panel, w, h, imageops::FilterType::CatmullRom);
        let (row, column) = ((i / COLUMNS) as u32, (i % COLUMNS) as u32);
        let (x, y) = (column * width + (width - w) / 2, row * height + (height - h) / 2);
        imageops::replace(&mut sheet, &small, x.into(), y.into());
    }
    sheet
}
