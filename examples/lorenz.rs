//! The Lorenz equations of 1963: statistics of the solve, a table of values, and two figures.
//!
//! `cargo run --release --example lorenz -- [FOLDER]` writes four files: `lorenz.png` with the orbit in a plane
//! that shows both wings, `lorenz-dark.png` with the same for dark pages, `lorenz_t.png` with the components against t, and
//! the table `lorenz.csv`.

use flowline::plot;
use flowline::prelude::*;
use std::path::Path;

/// Solves and plots; returns the state at t = 10.
pub fn run(folder: &Path) -> flowline::Result<[f64; 3]> {
    let (sigma, rho, beta) = (10.0, 28.0, 8.0 / 3.0);
    let lorenz = Ode::new(|_t, y: &[f64; 3]| {
        [sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]]
    });
    // Errors grow as e^(0.9 t), by 10^4 until t = 10 and 10^8 until t = 20: use a high order and a small tolerance.
    let lorenz = lorenz.method(Method::Vern9).rtol(1e-12).atol(1e-12);

    let short = lorenz.clone().save_at(SaveAt::ts(&[10.0]).and_dense()).solve(0.0, 20.0, [1.0; 3])?;
    let figure = plot::time_series(&short, &["x", "y", "z"])?;
    let figure = figure.with_title("Lorenz's equations from (1, 1, 1)");
    figure.save(folder.join("lorenz_t.png"))?;

    let ts: Vec<f64> = (0..=2_000).map(|i| f64::from(i) / 100.0).collect();
    lorenz.clone().save_at(ts).solve(0.0, 20.0, [1.0; 3])?.save(folder.join("lorenz.csv"))?;

    let long = lorenz.save_at(SaveAt::dense()).solve(0.0, 60.0, [1.0; 3])?;
    // A view from the side, rotated by 35 degrees about the vertical axis, from 12 degrees above.
    let (turn, tilt) = (-35_f64.to_radians(), 12_f64.to_radians());
    let seen = |y: &[f64]| {
        let (across, away) = (y[0] * turn.cos() - y[1] * turn.sin(), y[0] * turn.sin() + y[1] * turn.cos());
        [across, y[2] * tilt.cos() + away * tilt.sin()]
    };
    let figure = plot::phase_portrait(&long, ["x cos 35° + y sin 35°", "z, seen from 12° above"], seen)?;
    let figure = figure.with_title("The orbit of Lorenz's equations over 60 units of time");
    figure.save(folder.join("lorenz.png"))?;
    figure.dark().save(folder.join("lorenz-dark.png"))?;
    Ok(short.ys[0])
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let y = run(Path::new(&folder))?;
    println!("y(10) = {y:?}; {folder}/lorenz.png, lorenz-dark.png, lorenz_t.png and lorenz.csv written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/lorenz.rs"]
mod tests;
