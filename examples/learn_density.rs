//! Learning the density of a picture from a program: the embedded one, or the path given.

use flowline::cnf::prelude::*;

fn main() -> flowline::Result<()> {
    let image = std::env::args().nth(1).map_or_else(|| Ok(ImageDensity::embedded()), ImageDensity::open)?;
    let learned =
        Trainer::new(image).updates(2_000).on_update(|progress| eprint!("\r{progress}   ")).run()?;
    eprintln!();
    learned.plot_density("density.png", 512)?;
    let (x, log_prob) = learned.sample_with_log_prob(5, &Key::new(1))?;
    println!("{x}\n{log_prob}");
    Ok(())
}
