//! Stiff problems: work and precision of `Rodas5P` on published problems, an ensemble of Robertson problems,
//! diffusion by `Rkc2`, a banded Jacobian, two step size controllers, and switching between methods; with `--peers`, a comparison with
//! other packages.
//!
//! `cargo bench --bench stiff -- [PROBLEM]` prints a table or a line for each problem whose name contains the
//! word. Times are the shortest of several runs; errors are relative to end values that were computed to at
//! least 12 digits.
//!
//! `cargo bench --bench stiff -- --peers [--only plain|native] [--json] [--problem A,B] [--peer A,B]` compares
//! flowline with diffsol, russell_ode and SciPy in one run. The program is in the package `benches/peers/rust`.

use flowline::ode::{Method, Ode, PidController, Sparsity, Stats, ensemble};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "../src/ode/tests/draw.rs"]
#[allow(dead_code)]
mod draw;
#[path = "common/package.rs"]
mod package;
#[path = "common/stiff.rs"]
#[allow(dead_code)]
mod problems;
#[path = "../src/ode/tests/switching_cases.rs"]
mod switching_cases;

use draw::{Draw, num_cases};
use problems::ring_modulator::RingModulator;
use problems::{Hires, Orego, Pollu, Problem, Rober1e11, Rober40, RoberField, VanDerPol};
use switching_cases::{KINDS, case};

/// The shortest time of several runs, and the result of the last run.
fn timed<T>(runs: u32, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut best = (Duration::MAX, run());
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let out = run();
        best = (best.0.min(start.elapsed()), out);
    }
    best
}

/// Prints a line for each tolerance.
fn table<P: Problem<N>, const N: usize>() {
    println!("{}, t = {}", P::NAME, P::T1);
    println!("{:>7} {:>9} {:>7} {:>7} {:>7} {:>9}", "rtol", "error", "steps", "J", "f", "ms");
    for e in 3..=10 {
        let rtol = 10.0_f64.powi(-e);
        let ode = Ode::from_generic(P::FIELD).method(Method::Rodas5P).rtol(rtol).atol(P::atol(rtol));
        let (time, solution) = timed(20, || ode.solve(0.0, P::T1, P::Y0).unwrap());
        let error = P::error(&solution.y1);
        let Stats { num_steps, num_jac_evals, num_fn_evals, .. } = solution.stats;
        let ms = time.as_secs_f64() * 1e3;
        println!("{rtol:>7.0e} {error:>9.1e} {num_steps:>7} {num_jac_evals:>7} {num_fn_evals:>7} {ms:>9.4}");
    }
}

/// 10,000 Robertson problems with different rates, to t = 40, at tolerances of 1e-6.
fn lanes() {
    let rates: Vec<f64> = (0..10_000).map(|i| 0.02 + 4e-6 * f64::from(i)).collect();
    let sweep = ensemble(&rates, |&k| (RoberField { k: [k, 3e7, 1e4] }, [1.0, 0.0, 0.0]));
    let sweep = sweep.method(Method::Rodas5P).rtol(1e-6).atol([1e-8, 1e-12, 1e-8]);
    let (time, all) = timed(3, || sweep.solve(0.0, 40.0).unwrap());
    let steps: u64 = all.stats.iter().map(|stats| stats.num_steps).sum();
    println!("10,000 rober on {} threads: {:.3} s, {} steps", all.num_threads, time.as_secs_f64(), steps);
}

/// `u_t = nu (u_xx + u_yy) - u u_x - v u_y` and the same for v, periodic on the unit square, by central differences.
fn burgers(n: usize, viscosity: f64, y: &[f64], dy: &mut [f64]) {
    let (u, v) = y.split_at(n * n);
    let (du, dv) = dy.split_at_mut(n * n);
    let (rate, half) = (viscosity * (n * n) as f64, 0.5 * n as f64);
    for row in 0..n {
        let (below, above, here) = ((row + n - 1) % n * n, (row + 1) % n * n, row * n);
        for column in 0..n {
            let (left, right, i) = ((column + n - 1) % n, (column + 1) % n, here + column);
            let of = |w: &[f64]| {
                let (west, east, south, north) =
                    (w[here + left], w[here + right], w[below + column], w[above + column]);
                rate * (west + east + south + north - 4.0 * w[i])
                    - half * (u[i] * (east - west) + v[i] * (north - south))
            };
            (du[i], dv[i]) = (of(u), of(v));
        }
    }
}

/// Viscous Burgers on 64 x 64 points: 8,192 unknowns, no Jacobian.
fn diffusion() {
    let n = 64;
    let wave = |i: usize| (std::f64::consts::TAU * i as f64 / n as f64).sin();
    let u0 = (0..n * n).map(|i| wave(i % n) * wave(i / n));
    let y0: Vec<f64> = u0.clone().chain(u0.map(|u| 0.5 * u)).collect();
    let ode = Ode::in_place(move |_t: f64, y: &[f64], dy: &mut [f64]| burgers(n, 0.05, y, dy));
    let ode = ode.method(Method::Rkc2).rtol(1e-4).atol(1e-4);
    let (time, solution) = timed(5, || ode.solve(0.0, 1.0, y0.clone()).unwrap());
    println!("burgers 64 x 64 by Rkc2: {:.1} ms, {}", time.as_secs_f64() * 1e3, solution.stats);
}

/// The Brusselator in one dimension on 500 points, u and v in turn: 1,000 unknowns, two diagonals on each side.
fn banded() {
    let n = 500;
    let rate = (n + 1) as f64 * (n + 1) as f64 / 50.0;
    let field = move |_t: f64, y: &[f64], dy: &mut [f64]| {
        for i in 0..n {
            let around = |at: usize, end: f64| {
                let left = if i > 0 { y[2 * i - 2 + at] } else { end };
                let right = if i + 1 < n { y[2 * i + 2 + at] } else { end };
                rate * (left - 2.0 * y[2 * i + at] + right)
            };
            let (u, v) = (y[2 * i], y[2 * i + 1]);
            dy[2 * i] = 1.0 + u * u * v - 4.0 * u + around(0, 1.0);
            dy[2 * i + 1] = 3.0 * u - u * u * v + around(1, 3.0);
        }
    };
    let x = |i: usize| (i + 1) as f64 / (n + 1) as f64;
    let y0: Vec<f64> = (0..n).flat_map(|i| [1.0 + (std::f64::consts::TAU * x(i)).sin(), 3.0]).collect();
    let ode = Ode::in_place(field).method(Method::Rodas5P).jacobian_sparsity(Sparsity::banded(2, 2));
    let ode = ode.rtol(1e-6).atol(1e-6);
    let (time, solution) = timed(3, || ode.solve(0.0, 10.0, y0.clone()).unwrap());
    println!("brusselator, 1,000 unknowns, banded: {:.1} ms, {}", time.as_secs_f64() * 1e3, solution.stats);
}

/// Steps of Van der Pol's oscillator with the predictive controller, and with one that uses only the last error.
fn controllers() {
    for (name, controller) in [("predictive", PidController::predictive()), ("I", PidController::default())] {
        let ode = Ode::from_generic(VanDerPol::FIELD).method(Method::Rodas5P).rtol(1e-6).atol(1e-6);
        let stats = ode.controller(controller).solve(0.0, 2.0, [2.0, 0.0]).unwrap().stats;
        println!("vdpol at 1e-6 by the {name} controller: {stats}");
    }
}

/// The time of `AutoTsit5Rodas5P` on 203 random problems (`FLOWLINE_CASES`), in units of the better method of the two.
fn switching() {
    let mut draw = Draw(1);
    let n = num_cases(203);
    let mut ratios: Vec<(f64, String)> = (0..n)
        .map(|i| {
            let case = case(KINDS[i % KINDS.len()], &mut draw);
            let of = |method| {
                let ode = Ode::in_place(|t, y: &[f64], dy: &mut [f64]| (case.field)(t, y, dy)).method(method);
                let ode = ode.rtol(case.tol).atol(case.atol * case.tol).max_steps(10_000_000);
                let solve = || ode.solve(0.0, case.t1, case.y0.clone()).unwrap();
                let runs = (0.02 / timed(0, solve).0.as_secs_f64().clamp(1e-5, 0.02)) as u32;
                timed(runs.clamp(3, 200), solve).0.as_secs_f64() * 1e6
            };
            let [explicit, implicit, auto] =
                [Method::Tsit5, Method::Rodas5P, Method::AutoTsit5Rodas5P].map(of);
            let ratio = auto / explicit.min(implicit);
            let line = format!(
                "{:?} {} to {:.1} at {:.0e}: Tsit5 {explicit:.0} us, Rodas5P {implicit:.0} us, auto {auto:.0} us, {ratio:.2}",
                case.kind, case.name, case.t1, case.tol
            );
            (ratio, line)
        })
        .collect();
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    let above = ratios.iter().filter(|(ratio, _)| *ratio > 1.5).count();
    println!("switching: {above} of {n} problems above 1.5; median {:.2}; the largest:", ratios[n / 2].0);
    ratios.iter().take(12).for_each(|(_, line)| println!("  {line}"));
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let Some(at) = args.iter().position(|arg| arg == "--peers") {
        args.remove(at);
        return package::run("stiff", args);
    }
    let word = args.iter().find(|word| !word.starts_with('-'));
    let wanted = |name: &str| word.is_none_or(|word| name.contains(word.as_str()));
    let all: [(&str, fn()); 12] = [
        (Rober40::NAME, table::<Rober40, 3>),
        (Rober1e11::NAME, table::<Rober1e11, 3>),
        (Hires::NAME, table::<Hires, 8>),
        (Orego::NAME, table::<Orego, 3>),
        (VanDerPol::NAME, table::<VanDerPol, 2>),
        (RingModulator::NAME, table::<RingModulator, 15>),
        (Pollu::NAME, table::<Pollu, 20>),
        ("lanes", lanes),
        ("burgers", diffusion),
        ("brusselator", banded),
        ("controllers", controllers),
        ("switching", switching),
    ];
    for (_, run) in all.into_iter().filter(|(name, _)| wanted(name)) {
        run();
    }
    ExitCode::SUCCESS
}
