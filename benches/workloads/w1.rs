//! W1: small problems on plain states in f64 at rtol = atol = 1e-8, with the default method. `benches/solve`
//! measures these in detail and against other crates; here each problem is one line, with the first component
//! at the end as its value.

use crate::measure::{Measured, Options, Result, time};
use flowline::prelude::*;
use problems::{Arenstorf, Brusselator, Lorenz20, Lotka, Pleiades, Problem};

#[allow(dead_code, reason = "W2 has its own ensemble")]
#[path = "../peers/rust/src/problems.rs"]
mod problems;

pub const VARIANTS: &[&str] = &["lorenz20", "lorenz100", "lotka", "pleiades", "arenstorf", "bruss1d"];

const TOL: f64 = 1e-8;

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    match variant {
        "lorenz20" => on_arrays::<Lorenz20, 3>(options, None),
        // Chaotic: after so long a time the end states of two programs differ.
        "lorenz100" => on_arrays::<Lorenz20, 3>(options, Some(100.0)),
        "lotka" => on_arrays::<Lotka, 2>(options, None),
        "pleiades" => on_arrays::<Pleiades, 28>(options, None),
        "arenstorf" => on_arrays::<Arenstorf, 4>(options, None),
        _ => on_the_heap::<Brusselator<200>>(options),
    }
}

/// Until `t1`, or the problem's own end, where the solution is known.
fn on_arrays<P: Problem, const N: usize>(options: &Options, t1: Option<f64>) -> Result<Measured> {
    let y0: [f64; N] = P::y0().try_into().expect("the problem has N unknowns");
    let ode = Ode::in_place(|_t, y: &[f64; N], dy: &mut [f64; N]| P::f(y, dy)).rtol(TOL).atol(TOL);
    let end = if t1.is_none() { P::end() } else { None };
    let t1 = t1.unwrap_or(P::T1);
    timed(options, end, || Ok(ode.solve(0.0, t1, y0)?.y1.to_vec()))
}

fn on_the_heap<P: Problem>(options: &Options) -> Result<Measured> {
    let (y0, ode) = (P::y0(), Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| P::f(y, dy)));
    let ode = ode.rtol(TOL).atol(TOL);
    timed(options, P::end(), || Ok(ode.solve(0.0, P::T1, y0.clone())?.y1))
}

fn timed(options: &Options, end: Option<Vec<f64>>, solve: impl Fn() -> Result<Vec<f64>>) -> Result<Measured> {
    let mut y1 = vec![];
    let times = time(options, || {
        y1 = solve()?;
        Ok(())
    })?;
    let measured = Measured::new(times, [y1[0]]);
    let Some(end) = end else { return Ok(measured) };
    let errors = y1.iter().zip(&end).map(|(y, end)| (y - end).abs() / (1.0 + end.abs()));
    Ok(measured.max_error(errors.fold(0.0, f64::max)))
}
