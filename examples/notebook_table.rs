//! The notebook `notebooks/05_table.ipynb` as a program. Lines that begin with `//|` are the text of the notebook,
//! and the code between them is its cells.
//!
//! `cargo run --release --example notebook_table -- [FOLDER]` prints the output of the cells and writes their
//! figures to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # The density of a table
    //|
    //| A flow learns the joint density of the columns of a table. The density answers questions about rows: how probable
    //| is a row, of which class is it, which values are likely in an empty cell, how unusual is it?
    //|
    //| ## The table
    //|
    //| The table has measurements of 344 penguins of three species near Palmer Station, Antarctica (Gorman, Williams and
    //| Fraser 2014; Horst, Hill and Gorman 2020; CC0). Two rows have no measurements; `drop_missing` leaves them out.
    //| The column `species` gives the classes.
    use flowline::cnf::prelude::*;
    use flowline::plot;

    let folder = if std::path::Path::new("docs/data").exists() { "docs/data" } else { "../docs/data" };
    let columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"];
    let options = io::CsvOptions::default().columns(columns).labels("species").drop_missing();
    let penguins = Points::from_table(options.read(format!("{folder}/penguins.csv"))?)?;
    println!("{} rows, {} left out", penguins.len(), penguins.num_dropped());
    for (name, count) in penguins.class_names().iter().zip(penguins.class_counts()) {
        println!("{count:4} {name}");
    }
    //| ## Training
    //|
    //| `Trainer` trains one flow for all species, whose vector field depends on the species. It standardizes the columns,
    //| trains by flow matching, and holds a tenth of the rows out for validation and a tenth for a test. Masses are
    //| rounded to 25 g and lengths to 1 mm or 0.1 mm. `dequantize` adds noise of one rounding step, without which a flow
    //| learns the rounding.
    //|
    //| The negative log-likelihood of the test rows is in nats, in the units of the table. Its error bar is wide: there
    //| are 34 test rows.
    let flow = Trainer::new(penguins.clone()).updates(2_000).dequantize().seed(1).run()?;
    println!("{}", flow.summary());
    //| ## Samples
    //|
    //| The figure compares samples, in the shares of the species, with the rows. On the diagonal it shows the density of
    //| each column, below the diagonal that of each pair of columns. The dots are the rows of the table.
    let mut samples = Vec::new();
    for (class, count) in penguins.class_counts().into_iter().enumerate() {
        let species = flow.clone().class(class);
        let drawn = species.sample(20_000 * count / penguins.len(), &Key::new(class as u64))?;
        samples.extend(drawn.iter().flatten().copied());
    }
    let title = "20,000 samples, and the rows of the table";
    show(&plot::pair_plot(title, &penguins.columns, &samples, penguins.values())?);
    //| ## The species of a row
    //|
    //| By Bayes' theorem, the probability of a species is proportional to its share of the rows times its density at the
    //| row. The next cell counts the rows whose most probable species is another one. Most of these rows were used for
    //| training.
    let rows: Vec<Vec<f64>> = penguins.values().chunks(penguins.dim()).map(<[f64]>::to_vec).collect();
    // Of each row, the most probable species so far and the logarithm of its share times its density.
    let mut best = vec![(0, f64::NEG_INFINITY); rows.len()];
    for (class, count) in penguins.class_counts().into_iter().enumerate() {
        let log_share = (count as f64 / rows.len() as f64).ln();
        for (best, log_prob) in best.iter_mut().zip(flow.clone().class(class).log_prob(&rows)?) {
            if log_share + log_prob > best.1 {
                *best = (class, log_share + log_prob);
            }
        }
    }
    let mut wrong = 0;
    for (label, best) in penguins.labels().expect("the table has classes").iter().zip(&best) {
        wrong += usize::from(usize::from(*label) != best.0);
    }
    println!("{wrong} of {} rows", rows.len());
    //| ## An empty cell
    //|
    //| The next cell draws the mass of a Gentoo penguin of which the three lengths are known. `NAN` marks the unknown
    //| cell. The samples are approximate: they are drawn from weighted proposals. The effective sample size says how many
    //| independent samples the proposals are worth.
    let gentoo =
        penguins.class_names().iter().position(|name| name == "Gentoo").expect("a species of the table");
    let gentoo = flow.clone().class(gentoo);
    let found = gentoo.sample_given(&[47.0, 15.0, 217.0, f64::NAN], 1_000, &Key::new(7))?;
    let mut masses: Vec<f64> = found.rows.chunks(4).map(|row| row[3]).collect();
    masses.sort_by(f64::total_cmp);
    println!(
        "mass {:.0} g; nine of ten masses lie between {:.0} and {:.0} g",
        masses[500], masses[50], masses[950]
    );
    println!("effective sample size {:.0}", found.effective_sample_size);
    //| ## Unusual rows
    //|
    //| The p-value of a row is the share of samples with a lower density than the row. The first row is a usual Gentoo.
    //| The second one has the bill of another species.
    let unusual = [[47.0, 15.0, 217.0, 5_000.0], [38.0, 18.5, 225.0, 5_000.0]];
    for (row, score) in unusual.iter().zip(gentoo.anomaly_scores(unusual, 4_096, &Key::new(8))?) {
        println!("{row:?}: p = {:.4}", score.p_value);
    }
    //| `flowline train penguins.csv --labels species --drop-missing --dequantize --updates 2000 --seed 1`, with the four
    //| columns in `--columns`, trains such a flow from the shell. [The density of a
    //| table](../docs/how-to/density-of-a-table.md) explains the options.
    Ok(())
}
