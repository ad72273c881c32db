//! Problems for [`switching`](super::switching), drawn at random: stiff, at times stiff, and not stiff. The bench `stiff`
//! measures times on them.

use super::draw::Draw;
use std::f64::consts::TAU;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
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

pub(crate) const KINDS: [Kind; 7] =
    [Kind::OnSlow, Kind::OffSlow, Kind::Oscillation, Kind::Real, Kind::Calm, Kind::Known, Kind::Line];

pub(crate) type Field = Box<dyn Fn(f64, &[f64], &mut [f64]) + Send + Sync>;

pub(crate) struct Case {
    pub kind: Kind,
    pub name: String,
    pub field: Field,
    pub y0: Vec<f64>,
    pub t1: f64,
    pub tol: f64,
    /// The absolute tolerance, in units of the relative one.
    pub atol: f64,
}

/// The largest number of steps that stability allows Tsit5 to need, about.
const STEPS: f64 = 3e4;

/// Eigenvalues `-damping +- i w` beside the slow solution.
fn rotation(kind: Kind, draw: &mut Draw) -> Case {
    let w = draw.decade(2.0, if kind == Kind::Oscillation { 4.0 } else { 5.5 });
    let tol = draw.decade(-10.0, -3.0);
    let (pick, u) = ((draw.unit() * 4.0) as u32, draw.unit());
    let damping = match (kind, pick) {
        (Kind::OnSlow, 0) => 0.0,
        (Kind::OnSlow, 1) => u,
        (Kind::OnSlow, 2) => w * 10.0_f64.powf(-4.0 * u),
        (Kind::OnSlow, _) => w * u,
        (Kind::OffSlow, _) => w * (0.03 + 0.97 * u),
        _ => 0.0,
    };
    let off = match kind {
        Kind::OnSlow if draw.unit() < 0.5 => 0.0,
        Kind::OnSlow => tol * draw.unit(),
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
    let y0 = vec![if draw.unit() < 0.5 { 0.0 } else { 1.0 }];
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
    let (tol, u) = (draw.decade(-10.0, -3.0), draw.unit());
    let length = draw.decade(0.5, 2.0);
    let (name, field, y0, t1): (_, Field, _, _) = match (draw.unit() * 6.0) as u32 {
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
    let (name, field, y0, t1, atol): (_, Field, _, _, _) = match (draw.unit() * 4.0) as u32 {
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
    let (n, tol) = (4 + (draw.unit() * 28.0) as usize, draw.decade(-8.0, -3.0));
    let rate = ((n + 1) as f64).powi(2);
    let is_wave = draw.unit() < 0.5;
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

/// A case of this kind.
pub(crate) fn case(kind: Kind, draw: &mut Draw) -> Case {
    match kind {
        Kind::OnSlow | Kind::OffSlow | Kind::Oscillation => rotation(kind, draw),
        Kind::Real => real(draw),
        Kind::Calm => calm(draw),
        Kind::Known => known(draw),
        Kind::Line => line(draw),
    }
}
