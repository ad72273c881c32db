//! The eight toy densities that papers on flows show, each learned by a flow of at most 9,300 weights, on one sheet.
//!
//! `cargo run --release --example toys -- [FOLDER] [SECONDS] [PICTURE]` trains each that has no run in FOLDER (default
//! `runs/toys`) for at most SECONDS (180), prints how far it ends above the entropy, and draws PICTURE (`toys.png`). A run
//! that is there is drawn as it is.
use flowline::data::ToyDensity;
use flowline::io::raster::{Channels, Depth, encode_png};
use flowline::plot::{self, Figure, Heatmap};
use flowline::train::{MODEL_FILE, TrainedFlow, Trainer};
use std::path::{Path, PathBuf};

/// Panels of a row, and how much smaller they are than a picture of their own.
const COLUMNS: usize = 4;
const SHRINK: usize = 2;
/// Cells along a side of a panel.
const GRID: usize = 300;

fn main() -> flowline::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "runs/toys".to_owned()));
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(180.0);
    let picture = arguments.next().unwrap_or_else(|| "toys.png".to_owned());
    let mut panels = Vec::new();
    println!("{:14} {:>8} {:>10} {:>10}", "density", "weights", "entropy", "gap (nats)");
    for toy in ToyDensity::ALL {
        let learned = learn(toy, &folder.join(toy.name()), seconds)?;
        let grid = learned.log_grid(GRID, 0.0, 1e-4)?;
        let values: Vec<f64> = grid.log_density.iter().map(|x| x.exp()).collect();
        let map = Heatmap { values: &values, rows: GRID, cols: GRID, frame: grid.frame };
        let panel = plot::density(toy.name(), &map, grid.scale)?;
        panel.save(folder.join(toy.name()).join("sheet.png"))?;
        panels.push(shrunk(&panel));
    }
    std::fs::write(&picture, sheet(&panels)).expect("a place to write the picture to");
    println!("{picture}");
    Ok(())
}

/// Learns a toy, or opens the run that did, which tells no gap.
fn learn(toy: ToyDensity, folder: &Path, seconds: f64) -> flowline::Result<TrainedFlow> {
    if folder.join(MODEL_FILE).exists() {
        return TrainedFlow::open(folder);
    }
    let learned = Trainer::new(toy).time_limit(seconds).run_dir(folder).run()?;
    if let Some(report) = &learned.train_report {
        let [gap, error] = [report.gap_nats, report.gap_stderr_nats].map(|x| x.unwrap_or(f64::NAN));
        let (name, weights, entropy) = (toy.name(), report.weights, toy.entropy_nats());
        println!("{name:14} {weights:>8} {entropy:>10.4} {gap:>10.4} ± {error:.4}");
    }
    Ok(learned)
}

/// Rows of pixels.
type Pixels = Vec<Vec<[u8; 3]>>;

/// A picture whose pixels are the means of squares of another's.
fn shrunk(picture: &Figure) -> Pixels {
    let [width, height] = [picture.width, picture.height].map(|side| side as usize / SHRINK);
    let mean = |x: usize, y: usize, c: usize| {
        let of_square = |i: usize| ((SHRINK * x + i % SHRINK) as u32, (SHRINK * y + i / SHRINK) as u32);
        let squares = SHRINK * SHRINK;
        let values = (0..squares).map(of_square).map(|(x, y)| usize::from(picture.pixel(x, y)[c]));
        ((values.sum::<usize>() + squares / 2) / squares) as u8
    };
    let row = |y: usize| (0..width).map(|x| [0, 1, 2].map(|c| mean(x, y, c))).collect();
    (0..height).map(row).collect()
}

/// A PNG file of pictures in rows, each in the middle of a cell that holds the largest.
fn sheet(panels: &[Pixels]) -> Vec<u8> {
    let width = panels.iter().map(|panel| panel[0].len()).max().unwrap_or(0);
    let height = panels.iter().map(Vec::len).max().unwrap_or(0);
    let size = [width * COLUMNS, height * panels.len().div_ceil(COLUMNS)];
    let mut sheet = vec![[255; 3]; size[0] * size[1]];
    for (i, panel) in panels.iter().enumerate() {
        let left = i % COLUMNS * width + (width - panel[0].len()) / 2;
        let top = i / COLUMNS * height + (height - panel.len()) / 2;
        for (y, row) in panel.iter().enumerate() {
            let at = (top + y) * size[0] + left;
            sheet[at..at + row.len()].copy_from_slice(row);
        }
    }
    encode_png(size.map(|side| side as u32), Channels::Rgb, Depth::Eight, sheet.as_flattened())
        .expect("eight toys have pixels")
}
