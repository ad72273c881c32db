//! `AutoTsit5Rodas5P` costs little more than the better one of its two methods, and explicit methods warn where Rodas5P
//! is much cheaper and not where it is dearer. Cost is the number of evaluations of the vector field, those for
//! Jacobians by differences included.
//!
//! `FLOWLINE_SWITCHING=n` draws n cases and prints them. We excluded one kind: weakly damped oscillations that start
//! far above the tolerance, in an interval long enough to damp them. Tsit5 keeps them alive and is not left.

use crate::ode::{Method, Ode, Solution};
use std::f64::consts::TAU;

/// Numbers from a fixed seed (Knuth's MMIX generator), uniform on [0, 1).
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// A power of ten with an exponent in `[low, high)`.
    fn decade(&mut self, low: f64, high: f64) -> f64 {
        10.0_f64.powf(low + (high - low) * self.uniform())
    }
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Eigenvalues `-a +- i w` beside the slow solution (sin t, cos t); the start is on it or close to it.
    OnSlow,
    /// The same with relative damping, started far from the slow solution.
    OffSlow,
    /// The same without damping, started far from the slow solution: every oscillation must be resolved.
    Oscillation,
    /// One real eigenvalue beside the slow solution sin t.
    Real,
    /// A problem of the literature that is not stiff.
    Calm,
    /// A problem of the literature that is stiff, at times or always.
    Known,
    /// A line of many components: diffusion or waves.
    Line,
}

const KINDS: [Kind; 7] =
    [Kind::OnSlow, Kind::OffSlow, Kind::Oscillation, Kind::Real, Kind::Calm, Kind::Known, Kind::Line];

type Field = Box<dyn Fn(f64, &[f64], &mut [f64]) + Send + Sync>;

struct Case {
    kind: Kind,
    name: String,
    field: Field,
    y0: Vec<f64>,
    t1: f64,
    tol: f64,
    /// The absolute tolerance, in units of the relative one.
    atol: f64,
}

impl Case {
    fn solve(&self, method: Method) -> Solution<Vec<f64>> {
        let ode = Ode::in_place(|t, y: &[f64], dy: &mut [f64]| (self.field)(t, y, dy));
        let ode = ode.method(method).rtol(self.tol).atol(self.atol * self.tol).max_steps(10_000_000);
        ode.solve(0.0, self.t1, self.y0.clone()).unwrap()
    }
}

/// The largest number of steps that stability allows Tsit5 to need, about.
const STEPS: f64 = 3e4;

/// Eigenvalues `-damping +- i w` beside the slow solution.
fn rotation(kind: Kind, draw: &mut Draw) -> Case {
    let w = draw.decade(2.0, if kind == Kind::Oscillation { 4.0 } else { 5.5 });
    let tol = draw.decade(-10.0, -3.0);
    let (pick, u) = ((draw.uniform() * 4.0) as u32, draw.uniform());
    let damping = match (kind, pick) {
        (Kind::OnSlow, 0) => 0.0,
        (Kind::OnSlow, 1) => u,
        (Kind::OnSlow, 2) => w * 10.0_f64.powf(-4.0 * u),
        (Kind::OnSlow, _) => w * u,
        (Kind::OffSlow, _) => w * (0.03 + 0.97 * u),
        _ => 0.0,
    };
    let off = match kind {
        Kind::OnSlow if draw.uniform() < 0.5 => 0.0,
        Kind::OnSlow => tol * draw.uniform(),
        _ => 1.0,
    };
    let t1 = draw.decade(1.0, 2.0).min(STEPS / w);
    let field = move |t: f64, y: &[f64], dy: &mut [f64]| {
        let (a, b) = (y[0] - t.sin(), y[1] - t.cos());
        dy[0] = -damping * a + b * w + t.cos();
        dy[1] = -w * a - damping * b - t.sin();
    };
    let name = format!("-{damping:.1e} +- {w:.1e} i, off {off:.0e}");
    Case { kind, name, field: Box::new(field), y0: vec![off, 1.0], t1, tol, atol: 1.0 }
}

fn real(draw: &mut Draw) -> Case {
    let (rate, tol) = (draw.decade(0.0, 5.0), draw.decade(-10.0, -3.0));
    let t1 = draw.decade(1.0, 2.0).min(STEPS / rate);
    let field = move |t: f64, y: &[f64], dy: &mut [f64]| dy[0] = -rate * (y[0] - t.sin()) + t.cos();
    let y0 = vec![if draw.uniform() < 0.5 { 0.0 } else { 1.0 }];
    Case {
        kind: Kind::Real,
        name: format!("-{rate:.1e}, off {}", y0[0]),
        field: Box::new(field),
        y0,
        t1,
        tol,
        atol: 1.0,
    }
}

fn calm(draw: &mut Draw) -> Case {
    let (tol, u) = (draw.decade(-10.0, -3.0), draw.uniform());
    let length = draw.decade(0.5, 2.0);
    let (name, field, y0, t1): (_, Field, _, _) = match (draw.uniform() * 6.0) as u32 {
        0 => ("Lorenz", Box::new(lorenz), vec![1.0, 2.0 + u, 20.0], 0.5 * length),
        1 => ("Lotka and Volterra", Box::new(prey), vec![1.0 + u, 1.0], length),
        2 => ("Kepler", Box::new(kepler), vec![0.5, 0.0, 0.0, 3.0_f64.sqrt()], length),
        3 => ("pendulum", Box::new(pendulum), vec![2.0 * u, 1.0], length),
        4 => ("Van der Pol 1", Box::new(|_, y, dy| van_der_pol(1.0, y, dy)), vec![2.0, 0.0], length),
        _ => ("chirp", Box::new(|t, y, dy| dy[0] = (t * t).cos() - y[0]), vec![0.0], length.min(30.0)),
    };
    Case { kind: Kind::Calm, name: name.into(), field, y0, t1, tol, atol: 1.0 }
}

fn lorenz(_t: f64, y: &[f64], dy: &mut [f64]) {
    dy[0] = 10.0 * (y[1] - y[0]);
    dy[1] = y[0] * (28.0 - y[2]) - y[1];
    dy[2] = y[0] * y[1] - 8.0 / 3.0 * y[2];
}

fn prey(_t: f64, y: &[f64], dy: &mut [f64]) {
    (dy[0], dy[1]) = (y[0] * (1.5 - y[1]), y[1] * (y[0] - 3.0));
}

fn kepler(_t: f64, y: &[f64], dy: &mut [f64]) {
    let cube = y[0].hypot(y[1]).powi(3);
    (dy[0], dy[1], dy[2], dy[3]) = (y[2], y[3], -y[0] / cube, -y[1] / cube);
}

fn pendulum(t: f64, y: &[f64], dy: &mut [f64]) {
    (dy[0], dy[1]) = (y[1], -y[0].sin() - 0.1 * y[1] + 0.5 * t.cos());
}

fn van_der_pol(mu: f64, y: &[f64], dy: &mut [f64]) {
    (dy[0], dy[1]) = (y[1], mu * (1.0 - y[0] * y[0]) * y[1] - y[0]);
}

fn robertson(_t: f64, y: &[f64], dy: &mut [f64]) {
    let (d, b) = (0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]);
    (dy[0], dy[1], dy[2]) = (-d, d - b, b);
}

fn oregonator(_t: f64, y: &[f64], dy: &mut [f64]) {
    dy[0] = 77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1]));
    dy[1] = (y[2] - (1.0 + y[0]) * y[1]) / 77.27;
    dy[2] = 0.161 * (y[0] - y[2]);
}

fn known(draw: &mut Draw) -> Case {
    let (tol, mu) = (draw.decade(-9.0, -3.0), draw.decade(1.0, 2.5));
    let (name, field, y0, t1, atol): (_, Field, _, _, _) = match (draw.uniform() * 4.0) as u32 {
        0 => ("Robertson".into(), Box::new(robertson), vec![1.0, 0.0, 0.0], 20.0, 1e-6),
        1 => ("Oregonator".into(), Box::new(oregonator), vec![1.0, 2.0, 3.0], 30.0, 1e-4),
        _ => {
            let field = move |_t: f64, y: &[f64], dy: &mut [f64]| van_der_pol(mu, y, dy);
            (format!("Van der Pol {mu:.0}"), Box::new(field), vec![2.0, 0.0], 1.0 * mu, 1.0)
        }
    };
    Case { kind: Kind::Known, name, field, y0, t1, tol, atol }
}

/// `u' = d^2u/dx^2 + (pi^2 - 1) u` or `u'' = d^2u/dx^2`, on points of (0, 1) with u = 0 at both ends, from sin(pi x).
fn line(draw: &mut Draw) -> Case {
    let (n, tol) = (4 + (draw.uniform() * 28.0) as usize, draw.decade(-8.0, -3.0));
    let rate = ((n + 1) as f64).powi(2);
    let is_wave = draw.uniform() < 0.5;
    let second = move |u: &[f64], i: usize| {
        let (left, right) = (if i > 0 { u[i - 1] } else { 0.0 }, u.get(i + 1).copied().unwrap_or(0.0));
        rate * (left - 2.0 * u[i] + right)
    };
    let bump = |i: usize| (0.5 * TAU * (i + 1) as f64 / (n + 1) as f64).sin();
    let mut y0: Vec<f64> = (0..n).map(bump).collect();
    let field = move |t: f64, y: &[f64], dy: &mut [f64]| {
        if is_wave {
            let (u, v) = y.split_at(n);
            dy[..n].copy_from_slice(v);
            (0..n).for_each(|i| dy[n + i] = second(u, i));
        } else {
            (0..n).for_each(|i| dy[i] = second(y, i) + t.sin());
        }
    };
    if is_wave {
        y0.extend(vec![0.0; n]);
    }
    let t1 = draw.decade(0.0, 1.0);
    let name = format!("{} of {n}", if is_wave { "waves" } else { "diffusion" });
    Case { kind: Kind::Line, name, field: Box::new(field), y0, t1, tol, atol: 1.0 }
}

fn case(kind: Kind, draw: &mut Draw) -> Case {
    match kind {
        Kind::OnSlow | Kind::OffSlow | Kind::Oscillation => rotation(kind, draw),
        Kind::Real => real(draw),
        Kind::Calm => calm(draw),
        Kind::Known => known(draw),
        Kind::Line => line(draw),
    }
}

/// The evaluations that a solve may take until its first test: 25 steps of Tsit5.
const FIRST: f64 = 150.0;

/// What the cases of [`KINDS`] showed.
#[derive(Default)]
struct Tally {
    /// Cases that cost more than 1.5 times the better method, and the largest ratio.
    above: usize,
    worst: f64,
    /// Cases in which Rodas5P takes a tenth of the cost, and those without a warning.
    stiff: usize,
    silent: usize,
    /// Cases in which Tsit5 is cheaper, and those with a warning.
    mild: usize,
    wrong: usize,
}

impl Tally {
    /// Solves a case by all three methods; returns a line about it.
    fn add(&mut self, case: &Case) -> String {
        let all = [Method::Tsit5, Method::Rodas5P, Method::AutoTsit5Rodas5P].map(|method| case.solve(method));
        let [explicit, rodas5p, auto] = all.each_ref().map(|solution| solution.stats.num_fn_evals as f64);
        let (ratio, part) = (auto / (explicit.min(rodas5p) + FIRST), rodas5p / explicit);
        let warns = !all[0].warnings.is_empty();
        // A shorter solve ends soon after its first test, which is at step 250.
        let (is_stiff, is_mild) = (part < 0.1 && explicit > 6.0 * 300.0, part > 1.0);
        self.above += usize::from(ratio > 1.5);
        self.worst = self.worst.max(ratio);
        self.stiff += usize::from(is_stiff);
        self.mild += usize::from(is_mild);
        self.silent += usize::from(is_stiff && !warns);
        self.wrong += usize::from(is_mild && warns);
        let note = [
            (ratio > 1.5, " dear"),
            (is_stiff && !warns, " without a warning"),
            (is_mild && warns, " with a wrong warning"),
        ];
        let note: String = note.into_iter().filter(|(is, _)| *is).map(|(_, note)| note).collect();
        let Case { kind, name, t1, tol, .. } = case;
        format!(
            "{kind:?} {name} to {t1:.1} at {tol:.0e}: Tsit5 {explicit}, Rodas5P {rodas5p}, auto {auto}, {ratio:.2};{note}"
        )
    }
}

#[test]
fn switching_costs_little_more_than_the_better_method() {
    let many: Option<usize> = std::env::var("FLOWLINE_SWITCHING").ok().map(|n| n.parse().unwrap());
    let (mut draw, mut tally) = (Draw(1), Tally::default());
    let (mut tols, mut starts, mut undamped) = ((1.0_f64, 0.0_f64), [0, 0], 0);
    let num_cases = many.unwrap_or(203);
    for i in 0..num_cases {
        let case = case(KINDS[i % KINDS.len()], &mut draw);
        tols = (tols.0.min(case.tol), tols.1.max(case.tol));
        starts[usize::from(case.y0[0] == 0.0)] += 1;
        undamped += usize::from(case.kind == Kind::OnSlow && case.name.starts_with("-0.0e0"));
        let line = tally.add(&case);
        if many.is_some() {
            println!("{line}");
        }
    }
    let Tally { above, worst, stiff, silent, mild, wrong } = tally;
    println!(
        "{above} of {num_cases} above 1.5, worst {worst:.2}; {silent} of {stiff} silent, {wrong} of {mild} wrong"
    );
    assert!(
        tols.0 < 1e-9 && tols.1 > 5e-4 && starts.iter().all(|&n| n > 20) && undamped > 2,
        "{tols:?} {starts:?}"
    );
    assert!(stiff > 50 && mild > 50, "{stiff} {mild}");
    assert!(above * 20 <= num_cases && worst < 4.0, "{above} of {num_cases} above 1.5, worst {worst}");
    assert!(silent == 0 && wrong == 0, "{silent} of {stiff} stiff cases are silent, {wrong} of {mild} warn");
}

/// Eigenvalues -1 +- w i, from the slow solution to t = 10.
fn weakly_damped(w: f64, tol: f64) -> Case {
    let field = move |t: f64, y: &[f64], dy: &mut [f64]| {
        let (p, q) = (y[0] - t.sin(), y[1] - t.cos());
        (dy[0], dy[1]) = (-p + q * w + t.cos(), -w * p - q - t.sin());
    };
    let name = format!("-1 +- {w} i");
    Case { kind: Kind::OnSlow, name, field: Box::new(field), y0: vec![0.0, 1.0], t1: 10.0, tol, atol: 1.0 }
}

#[test]
fn weak_damping_is_noticed_before_errors_grow() {
    for (w, tol) in [(1e3, 1e-3), (1e4, 1e-3), (1e4, 1e-4), (1e4, 1e-6)] {
        let case = weakly_damped(w, tol);
        let auto = case.solve(Method::AutoTsit5Rodas5P);
        let off = (auto.y1[0] - 10.0_f64.sin()).hypot(auto.y1[1] - 10.0_f64.cos());
        assert!(auto.stats.num_steps < 100 && off < 10.0 * tol, "{w} {tol}: {} off {off:e}", auto.stats);
        assert!(!case.solve(Method::Tsit5).warnings.is_empty(), "{w} {tol}");
    }
}

#[test]
fn strong_damping_is_noticed_at_tight_tolerances() {
    for (rate, tol) in [(1e2, 1e-6), (1e2, 1e-8), (1e2, 1e-10), (1e3, 1e-7), (1e3, 1e-8), (1e3, 1e-10)] {
        let field = move |t: f64, y: &[f64], dy: &mut [f64]| dy[0] = -rate * (y[0] - t.sin()) + t.cos();
        let (field, name): (Field, _) = (Box::new(field), format!("-{rate}"));
        let case = Case { kind: Kind::Real, name, field, y0: vec![0.0], t1: 10.0, tol, atol: 1.0 };
        let [auto, rodas5p] = [Method::AutoTsit5Rodas5P, Method::Rodas5P].map(|m| case.solve(m).stats);
        assert!(auto.num_steps < rodas5p.num_steps + 40, "{rate} {tol}: {auto} {rodas5p}");
    }
}
