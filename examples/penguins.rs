//! The density of a table: penguins of three species. Samples by species, the most probable species of a row, an unknown
//! weight, unusual rows.
//!
//! The table has measurements of 344 penguins near Palmer Station, Antarctica (Gorman, Williams and Fraser 2014; Horst, Hill
//! and Gorman 2020; CC0). `cargo run --release --example penguins -- [FOLDER]`, in the root of the repository, takes some ten
//! seconds and draws `penguins.png`: 20,000 samples in the shares of the species, with the rows as dots.

use flowline::cnf::prelude::*;
use flowline::plot;
use std::path::Path;

/// What the example prints.
pub struct Found {
    /// Rows whose species is not the most probable one.
    pub wrong: usize,
    /// The masses of a Gentoo penguin with given lengths, in g, in order.
    pub masses: Vec<f64>,
    /// The share of samples that are less probable than a usual and than an unusual row.
    pub p_values: [f64; 2],
}

/// Four measurements of each penguin, and its species. The rows of two penguins have missing cells and are left out.
fn penguins(file: &Path) -> flowline::Result<Points> {
    let columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"];
    let table = io::CsvOptions::default().columns(columns).labels("species").drop_missing().read(file)?;
    Ok(Points::from_table(table)?)
}

/// Trains, draws `penguins.png`, and answers the questions.
pub fn run(folder: &Path, file: &Path, options: &TrainOptions) -> flowline::Result<Found> {
    let points = penguins(file)?;
    println!("{} rows, {} left out", points.len(), points.num_dropped());
    // Masses are rounded to 25 g, lengths to 1 mm or 0.1 mm: noise of one step keeps the flow from learning that.
    let flow = Trainer::new(points.clone()).options(options).dequantize().seed(1).run()?;
    println!("{}", flow.summary());

    let (mut drawn, mut scores) = (Vec::new(), Vec::new());
    let rows: Vec<Vec<f64>> = points.values().chunks(points.dim()).map(<[f64]>::to_vec).collect();
    for (class, count) in points.class_counts().into_iter().enumerate() {
        let species = flow.clone().class(class);
        let samples = species.sample(20_000 * count / rows.len(), &Key::new(class as u64))?;
        drawn.extend(samples.iter().flatten().copied());
        // By Bayes' theorem, the probability of a species is proportional to its share times its density.
        let log_share = (count as f64 / rows.len() as f64).ln();
        scores.push(species.log_prob(&rows)?.into_iter().map(|log_q| log_share + log_q).collect::<Vec<_>>());
    }
    let title = "20,000 samples, and the rows of the table";
    plot::pair_plot(title, &points.columns, &drawn, points.values())?.save(folder.join("penguins.png"))?;
    let best = |row: usize| (0..scores.len()).max_by(|&a, &b| scores[a][row].total_cmp(&scores[b][row]));
    let labels = points.labels().expect("the table has classes");
    let wrong = (0..rows.len()).filter(|&row| best(row) != Some(usize::from(labels[row]))).count();

    let gentoo =
        points.class_names().iter().position(|name| name == "Gentoo").expect("a species of the table");
    let gentoo = flow.clone().class(gentoo);
    let found = gentoo.sample_given(&[47.0, 15.0, 217.0, f64::NAN], 1_000, &Key::new(7))?;
    let mut masses: Vec<f64> = found.rows.chunks(4).map(|row| row[3]).collect();
    masses.sort_by(f64::total_cmp);
    // A usual Gentoo, and one with the bill of another species.
    let rows = [[47.0, 15.0, 217.0, 5_000.0], [38.0, 18.5, 225.0, 5_000.0]];
    let anomalies = gentoo.anomaly_scores(rows, 4_096, &Key::new(8))?;
    Ok(Found { wrong, masses, p_values: [anomalies[0].p_value, anomalies[1].p_value] })
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let file = Path::new("docs/data/penguins.csv");
    let options = TrainOptions { updates: Some(2_000), ..TrainOptions::default() };
    let Found { wrong, masses, p_values } = run(Path::new(&folder), file, &options)?;
    println!("{wrong} rows, most of them training rows, have another species than the most probable one");
    println!(
        "mass of a Gentoo: {:.0} g, 90 % from {:.0} to {:.0} g",
        masses[masses.len() / 2],
        masses[masses.len() / 20],
        masses[masses.len() * 19 / 20]
    );
    println!("p-values of a usual and an unusual Gentoo: {:.3}, {:.4}", p_values[0], p_values[1]);
    println!("{folder}/penguins.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/penguins.rs"]
mod tests;
