//! Markdown tables of the measurements.

use crate::curves::{Curves, OURS, Reached};
use crate::problems::Problem;
use crate::record::Record;
use std::fmt::Write;

/// The tolerance of the table of counts.
const COUNTED: f64 = 1e-6;
/// The order of the rows.
const PEERS: [&str; 4] = [OURS, "diffsol", "russell_ode", "scipy"];

fn solver(record: &Record) -> String {
    format!("{} {}", record.timed.peer, record.timed.method)
}

fn row(out: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn header<const N: usize>(out: &mut String, names: [&str; N]) {
    row(out, names.map(str::to_owned));
    row(out, names.map(|_| "---".to_owned()));
}

/// Milliseconds and errors of each solver at each tolerance, and counts at one tolerance.
pub fn of_problem<P: Problem<N>, const N: usize>(records: &[Record]) -> String {
    let mut out = format!("## {}, n = {N}\n\nMilliseconds, and the largest relative error:\n\n", P::NAME);
    let (mut tols, mut solvers) = (Vec::new(), Vec::new());
    for record in records {
        if !tols.contains(&record.timed.tol) {
            tols.push(record.timed.tol);
        }
        if !solvers.contains(&solver(record)) {
            solvers.push(solver(record));
        }
    }
    solvers.sort_by_key(|name| PEERS.iter().position(|peer| name.starts_with(peer)));
    row(&mut out, ["rtol".to_owned()].into_iter().chain(tols.iter().map(|tol| format!("{tol:.0e}"))));
    row(&mut out, vec!["---".to_owned(); tols.len() + 1]);
    for name in &solvers {
        let cell = |tol: &f64| {
            let found = records.iter().find(|r| r.timed.tol == *tol && solver(r) == *name);
            found.map_or("-".to_owned(), |r| format!("{} ({:.0e})", milliseconds(r.timed.ms), r.timed.error))
        };
        row(&mut out, [name.clone()].into_iter().chain(tols.iter().map(cell)));
    }
    let _ = writeln!(out, "\nAt rtol = {COUNTED:e}:\n");
    header(&mut out, ["solver", "steps", "f", "factorizations", "µs per step"]);
    for record in records.iter().filter(|r| (r.timed.tol / COUNTED - 1.0).abs() < 1e-9) {
        let timed = &record.timed;
        let per_step = timed.ms * 1e3 / timed.num_steps as f64;
        let numbers =
            [timed.num_steps, timed.num_field_evals, timed.num_factorizations].map(|n| n.to_string());
        row(&mut out, [solver(record)].into_iter().chain(numbers).chain([format!("{per_step:.2}")]));
    }
    out
}

/// Time to equal error: flowline, the fastest other Rust crate, SciPy.
pub fn at_equal_error(records: &[Record]) -> String {
    let mut out = "## Time to equal error\n\n".to_owned();
    let names =
        ["problem", "error", "flowline, ms", "fastest other crate, ms", "ratio", "SciPy, ms", "ratio"];
    header(&mut out, names);
    let mut means = String::new();
    for of_problem in records.chunk_by(|a, b| a.problem == b.problem) {
        let problem = of_problem[0].problem;
        // At larger errors than that of the loosest tolerance, a method has the time of the loosest tolerance.
        let curves = Curves::of(&of_problem.iter().collect::<Vec<_>>()).starting_at_one();
        let mut ratios = Vec::new();
        for exponent in 3..=9 {
            let error = 10f64.powi(-exponent);
            let ours = curves.fastest(error, |peer| peer == OURS);
            let crates = curves.fastest(error, |peer| peer != OURS && peer != "scipy");
            let scipy = curves.fastest(error, |peer| peer == "scipy");
            let ratio = |theirs: &Option<Reached>| Some(theirs.as_ref()?.ms / ours.as_ref()?.ms);
            ratios.extend(ratio(&crates));
            let (over_crates, over_scipy) = (ratio(&crates), ratio(&scipy));
            let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            let first = [problem.to_owned(), format!("{error:.0e}"), name(&ours, false)];
            let others = [name(&crates, true), ratio(over_crates), name(&scipy, false), ratio(over_scipy)];
            row(&mut out, first.into_iter().chain(others));
        }
        if !ratios.is_empty() {
            let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            let numbers = [mean, least, most].map(|ratio| format!("{ratio:.2}"));
            row(&mut means, [problem.to_owned()].into_iter().chain(numbers));
        }
    }
    out.push_str("\nTime of the fastest other crate over flowline's:\n\n");
    header(&mut out, ["problem", "geometric mean", "least", "most"]);
    out + &means
}

/// The time and the method, with its crate if asked for.
fn name(reached: &Option<Reached>, with_peer: bool) -> String {
    match reached {
        None => "-".to_owned(),
        Some(Reached { ms, peer, method }) if with_peer => format!("{} {peer} {method}", milliseconds(*ms)),
        Some(Reached { ms, method, .. }) => format!("{} {method}", milliseconds(*ms)),
    }
}

/// Three digits.
fn milliseconds(ms: f64) -> String {
    let decimals = (2.0 - ms.log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{ms:.decimals$}")
}
