//! Stiff problems: work against precision of `Rodas5P` on published problems, ensembles of Robertson's, diffusion by `Rkc2`, a
//! banded Jacobian.
//!
//! `cargo bench --bench stiff -- [PROBLEM]` prints a table for each problem whose name contains the word. Times are the shortest of
//! several runs; errors are relative to values of Radau IIA of order 13.

use flowline::ode::{Method, Ode, PidController, Sparsity, Stats, ensemble};
use flowline::vector_field;
use std::time::{Duration, Instant};

vector_field! {
    /// Robertson (1966).
    struct Rober<R> { k: [R; 3] }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (a, b, c) = (self.k[0] * y[0], self.k[1] * y[1] * y[1], self.k[2] * y[1] * y[2]);
        [-a + c, a - b - c, b]
    }
}
vector_field! {
    /// HIRES of the CWI test set; `scale` is 1.
    struct Hires<R> { scale: R }
    fn eval(&self, _t, y: &[R; 8]) -> [R; 8] {
        let bound = 280.0 * self.scale * y[5] * y[7];
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -bound + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            bound - 1.81 * y[6],
            -bound + 1.81 * y[6],
        ]
    }
}
vector_field! {
    /// The Oregonator.
    struct Orego<R> { s: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [
            self.s * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
            (y[2] - (1.0 + y[0]) * y[1]) / self.s,
            0.161 * (y[0] - y[2]),
        ]
    }
}
vector_field! {
    /// Van der Pol's oscillator.
    struct VanDerPol<R> { rate: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) * self.rate]
    }
}

/// The shortest of several runs, and what the last gave.
fn timed<T>(runs: u32, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut best = (Duration::MAX, run());
    for _ in 0..runs {
        let start = Instant::now();
        let out = run();
        best = (best.0.min(start.elapsed()), out);
    }
    best
}

/// One line for each tolerance; `solve(tol)` gives y1 and what it took.
fn table<const N: usize>(name: &str, exact: [f64; N], solve: impl Fn(f64) -> ([f64; N], Stats)) {
    println!("{name}\n{:>7} {:>9} {:>7} {:>7} {:>7} {:>9}", "rtol", "error", "steps", "J", "f", "ms");
    for e in 3..=10 {
        let tol = 10.0_f64.powi(-e);
        let (time, (y1, stats)) = timed(20, || solve(tol));
        let error = (0..N).map(|i| (y1[i] / exact[i] - 1.0).abs()).fold(0.0, f64::max);
        let Stats { num_steps, num_jac_evals, num_fn_evals, .. } = stats;
        let ms = time.as_secs_f64() * 1e3;
        println!("{tol:>7.0e} {error:>9.1e} {num_steps:>7} {num_jac_evals:>7} {num_fn_evals:>7} {ms:>9.4}");
    }
}

fn references(wanted: impl Fn(&str) -> bool) {
    if wanted("rober") {
        let exact = [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01];
        table("rober, t = 40", exact, |tol| {
            let ode = Ode::from_generic(Rober { k: [0.04, 3e7, 1e4] }).method(Method::Rodas5P).rtol(tol);
            let solution =
                ode.atol([1e-2 * tol, 1e-6 * tol, 1e-2 * tol]).solve(0.0, 40.0, [1.0, 0.0, 0.0]).unwrap();
            (solution.y1, solution.stats)
        });
        let exact = [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01];
        table("rober, t = 1e11", exact, |tol| {
            let ode = Ode::from_generic(Rober { k: [0.04, 3e7, 1e4] }).method(Method::Rodas5P).rtol(tol);
            let solution =
                ode.atol([1e-8 * tol, 1e-14 * tol, 1e-8 * tol]).solve(0.0, 1e11, [1.0, 0.0, 0.0]).unwrap();
            (solution.y1, solution.stats)
        });
    }
    if wanted("hires") {
        let exact = [
            7.37131257332566741e-04,
            1.44248572631618479e-04,
            5.88872974096757516e-05,
            1.17565134328314908e-03,
            2.38635619883133037e-03,
            6.23896825274279556e-03,
            2.84999839518576895e-03,
            2.85000160481423126e-03,
        ];
        let y0 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057];
        table("hires", exact, |tol| {
            let ode =
                Ode::from_generic(Hires { scale: 1.0 }).method(Method::Rodas5P).rtol(tol).atol(1e-4 * tol);
            let solution = ode.solve(0.0, 321.8122, y0).unwrap();
            (solution.y1, solution.stats)
        });
    }
    if wanted("orego") {
        let exact = [1.00081487031852268e+00, 1.22817852154988805e+03, 1.32055494284650820e+02];
        table("orego, t = 360", exact, |tol| {
            let ode =
                Ode::from_generic(Orego { s: 77.27 }).method(Method::Rodas5P).rtol(tol).atol(1e-2 * tol);
            let solution = ode.solve(0.0, 360.0, [1.0, 2.0, 3.0]).unwrap();
            (solution.y1, solution.stats)
        });
    }
    if wanted("vdpol") {
        let exact = [1.70616773217046491e+00, -8.92809701024816604e-01];
        table("vdpol, t = 2", exact, |tol| {
            let ode = Ode::from_generic(VanDerPol { rate: 1e6 }).method(Method::Rodas5P).rtol(tol).atol(tol);
            let solution = ode.solve(0.0, 2.0, [2.0, 0.0]).unwrap();
            (solution.y1, solution.stats)
        });
    }
}

/// 10,000 of Robertson's problems with other rates, to t = 40 at 1e-6.
fn lanes() {
    let rates: Vec<f64> = (0..10_000).map(|i| 0.02 + 4e-6 * f64::from(i)).collect();
    let sweep = ensemble(&rates, |&k| (Rober { k: [k, 3e7, 1e4] }, [1.0, 0.0, 0.0]));
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

/// A controller that does not look back, to compare with.
fn controllers() {
    for (name, controller) in [("predictive", PidController::predictive()), ("I", PidController::default())] {
        let ode = Ode::from_generic(VanDerPol { rate: 1e6 }).method(Method::Rodas5P).rtol(1e-6).atol(1e-6);
        let stats = ode.controller(controller).solve(0.0, 2.0, [2.0, 0.0]).unwrap().stats;
        println!("vdpol at 1e-6 by the {name} controller: {stats}");
    }
}

fn main() {
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| word.as_ref().is_none_or(|word| name.contains(word.as_str()));
    references(wanted);
    let others: [(&str, fn()); 4] =
        [("lanes", lanes), ("burgers", diffusion), ("brusselator", banded), ("controllers", controllers)];
    for (_, run) in others.into_iter().filter(|(name, _)| wanted(name)) {
        run();
    }
}
