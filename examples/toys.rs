//! The eight toy densities common in papers on flows, each learned by a flow of 9,518 weights, in one figure.
//!
//! `cargo run --release --example toys -- [FOLDER] [SECONDS] [FIGURE]` trains a flow for each density that has no
//! run in FOLDER (default `runs/toys`), for at most SECONDS (default 180), and prints its KL divergence. Then it
//! draws all flows, those of existing runs included, into FIGURE (default `toys.png`).
use flowline::data::ToyDensity;
use flowline::plot::{Heatmap, extra::density_sheet};
use flowline::train::{MODEL_FILE, TrainedFlow, Trainer};
use std::path::{Path, PathBuf};

/// Panels per row.
const COLUMNS: usize = 4;
/// Cells along a side of a panel.
const GRID: usize = 300;

fn main() -> flowline::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "runs/toys".to_owned()));
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(180.0);
    let figure = arguments.next().unwrap_or_else(|| "toys.png".to_owned());
    let mut grids = Vec::new();
    println!("{:14} {:>8} {:>10} {:>10}", "density", "weights", "entropy", "KL (nats)");
    for toy in ToyDensity::ALL {
        let learned = learn(toy, &folder.join(toy.name()), seconds)?;
        let grid = learned.log_grid(GRID, 0.0)?;
        let values: Vec<f64> = grid.log_density.iter().map(|x| x.exp()).collect();
        grids.push((toy.name(), values, grid.frame, grid.scale));
    }
    let maps: Vec<_> = grids
        .iter()
        .map(|(name, values, frame, scale)| {
            (*name, Heatmap { values, rows: GRID, cols: GRID, frame: *frame }, *scale)
        })
        .collect();
    density_sheet("Eight toy densities as flows learned them", &maps, COLUMNS)?.save(&figure)?;
    println!("{figure}");
    Ok(())
}

/// Learns a toy density and prints its KL divergence, or opens the existing run without printing.
fn learn(toy: ToyDensity, folder: &Path, seconds: f64) -> flowline::Result<TrainedFlow> {
    if folder.join(MODEL_FILE).exists() {
        return TrainedFlow::open(folder);
    }
    let learned = Trainer::new(toy).time_limit(seconds).run_dir(folder).run()?;
    if let Some(report) = &learned.report {
        let [gap, error] = [report.gap_nats, report.gap_stderr_nats].map(|x| x.unwrap_or(f64::NAN));
        let (name, weights, entropy) = (toy.name(), report.weights, toy.entropy_nats());
        println!("{name:14} {weights:>8} {entropy:>10.4} {gap:>10.4} ± {error:.4}");
    }
    Ok(learned)
}
