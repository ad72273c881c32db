//! Draws the work-precision pictures of the documentation: `cargo bench --bench work_precision [-- FOLDER]`.
//!
//! Error at the end against time, for six methods on two problems, each at tolerances half a decade apart. A time
//! is the least of many short batches, taken in turns over all methods and tolerances: the machine may be shared.
//! FOLDER is `assets` where none is given.

use flowline::ode::{Method, Ode};
use flowline::plot::{MethodCurve, work_precision};
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The methods, from low order to high.
const METHODS: [Method; 6] =
    [Method::Bosh3, Method::Dopri5, Method::Tsit5, Method::Vern7, Method::Dop853, Method::Vern9];

/// Batches of each solve, and the least time of one in seconds.
const ROUNDS: usize = 25;
const BATCH: f64 = 1e-3;

/// Error and time in milliseconds of one method at each tolerance.
type Curve = Vec<[f64; 2]>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let folder = folder.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), PathBuf::from);
    let lorenz = measure(lorenz, [1.0; 3], 10.0, &LORENZ_END, 3e-12);
    draw("Lorenz to t = 10, 3 unknowns", &lorenz, &folder.join("work_precision_lorenz.png"))?;
    let pleiades = measure(pleiades, pleiades_y0(), 3.0, &PLEIADES_END, 3e-12);
    draw("Pleiades, 28 unknowns", &pleiades, &folder.join("work_precision_pleiades.png"))
}

fn draw(title: &str, curves: &[Curve], file: &Path) -> Result<(), Box<dyn Error>> {
    let names = METHODS.map(|method| method.to_string());
    let curves: Vec<MethodCurve> =
        names.iter().zip(curves).map(|(name, points)| MethodCurve { name, points }).collect();
    work_precision(title, "ms", &curves)?.save(file)?;
    println!("{}", file.display());
    Ok(())
}

/// Every method at every tolerance, without errors below `floor`, which are rounding, and above 0.1.
fn measure<const N: usize>(
    f: impl Fn(&[f64; N], &mut [f64; N]) + Copy,
    y0: [f64; N],
    t1: f64,
    end: &[f64; N],
    floor: f64,
) -> Vec<Curve> {
    let mut solves = Vec::new();
    for (index, method) in METHODS.iter().enumerate() {
        let tightest = if method.tableau().order < 5 { 16 } else { 27 };
        for halves in 5..=tightest {
            let tol = 10_f64.powf(-0.5 * f64::from(halves));
            let ode = Ode::in_place(move |_t, y: &[f64; N], dy: &mut [f64; N]| f(y, dy));
            let ode = ode.method(*method).rtol(tol).atol(tol).max_steps(10_000_000);
            let solve = move || ode.solve(0.0, t1, y0).expect("the options are valid").y1;
            let y1 = solve();
            let error = (0..N).map(|i| (y1[i] - end[i]).abs() / (1.0 + end[i].abs())).fold(0.0, f64::max);
            if error > floor && error < 0.1 {
                solves.push((index, error, solve, f64::INFINITY));
            }
        }
    }
    for _ in 0..ROUNDS {
        for (_, _, solve, least) in &mut solves {
            *least = least.min(milliseconds(solve));
        }
    }
    let curve = |index| {
        let points = solves.iter().filter(|s| s.0 == index);
        points.map(|(_, error, _, ms)| [*error, *ms]).collect()
    };
    (0..METHODS.len()).map(curve).collect()
}

/// Milliseconds a call, over a batch.
fn milliseconds<T>(f: &impl Fn() -> T) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        black_box(f());
        calls += 1;
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed >= BATCH {
            return elapsed * 1e3 / f64::from(calls);
        }
    }
}

/// Lorenz 1963, at t = 10: an extrapolation run in 80-bit numbers.
const LORENZ_END: [f64; 3] = [-4.90268754113464477, -3.74387292180291261, 24.6908581027905636];

#[inline(always)]
fn lorenz(y: &[f64; 3], dy: &mut [f64; 3]) {
    *dy = [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]];
}

/// Hairer, Norsett, Wanner I, section II.10: x, y, x', y' of seven bodies of masses 1 to 7.
fn pleiades_y0() -> [f64; 28] {
    let mut y0 = [0.0; 28];
    y0[..7].copy_from_slice(&[3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0]);
    y0[7..14].copy_from_slice(&[3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0]);
    (y0[19], y0[20], y0[24], y0[25]) = (1.75, -1.5, -1.25, 1.0);
    y0
}

#[inline(always)]
fn pleiades(y: &[f64; 28], dy: &mut [f64; 28]) {
    dy[..14].copy_from_slice(&y[14..]);
    for i in 0..7 {
        let (mut ax, mut ay) = (0.0, 0.0);
        for j in 0..7 {
            if j != i {
                let (rx, ry) = (y[j] - y[i], y[7 + j] - y[7 + i]);
                let r2 = rx * rx + ry * ry;
                let pull = (j + 1) as f64 / (r2 * r2.sqrt());
                ax += pull * rx;
                ay += pull * ry;
            }
        }
        (dy[14 + i], dy[21 + i]) = (ax, ay);
    }
}

/// At t = 3: the Bari test set for IVP solvers (plei.f).
const PLEIADES_END: [f64; 28] = [
    0.3706139143970502,
    3.237284092057233,
    -3.222559032418324,
    0.659709145577531,
    0.3425581707156584,
    1.562172101400631,
    -0.7003092922212495,
    -3.943437585517392,
    -3.27138097397255,
    5.225081843456543,
    -2.59061243497747,
    1.198213693392275,
    -0.2429682344935824,
    1.09144924042898,
    3.417003806314313,
    1.354584501625501,
    -2.590065597810775,
    2.025053734714242,
    -1.155815100160448,
    -0.8072988170223021,
    0.595239635420871,
    -3.74124496123401,
    0.377345968575063,
    0.9386858869551074,
    0.3667922227200571,
    -0.347404635380849,
    2.344915448180937,
    -1.947020434263292,
];
