//! Densities of the toys: sums over quadrature nodes along the curves, and root finding for the pinwheel.
//!
//! The mean distance of neighboring nodes is at most a third of the brush's standard deviation. Both rules (the
//! trapezoidal rule on closed curves, Gauss-Legendre with eight nodes per panel on open ones) are then accurate
//! to more than ten digits. Closed forms would need a formula per toy, such as Bessel functions for circles, and
//! none is known for spirals.

use super::profile::Profile;
use super::{Along, BLADE, Brush, ToyDensity};
use crate::data::normal;
use std::f64::consts::{PI, TAU};
use std::sync::{Arc, OnceLock};

/// Nodes per panel of the Gauss-Legendre rule.
const PANEL: usize = 8;
/// Terms whose exponent is this far below the largest one do not change an f64 sum.
const REACH: f64 = 40.0;

/// The density of a [`ToyDensity`], with precomputed quadrature.
#[derive(Clone, Debug)]
pub struct ToyGrid {
    toy: ToyDensity,
    brush: Option<Brush>,
    /// Centers of the brush and their probabilities.
    pub(super) nodes: Vec<([f64; 2], f64)>,
    /// The density of a brush with a square along one axis.
    profile: Option<Arc<Profile>>,
}

impl ToyGrid {
    pub(super) fn new(toy: ToyDensity) -> Self {
        let brush = toy.brush();
        let nodes = brush.map_or_else(Vec::new, |brush| {
            let curve_nodes = curve_nodes(toy, brush.along);
            let arm = |arm| {
                curve_nodes.iter().map(move |&(s, weight)| (toy.curve(arm, s), weight / brush.arms as f64))
            };
            (0..brush.arms).flat_map(arm).collect()
        });
        let profile = brush.filter(|brush| brush.half > 0.0).map(|brush| spirals(&brush));
        Self { toy, brush, nodes, profile }
    }

    /// `ln p(x)` in nats, in the toy's own coordinates. It is -infinity outside the squares of the
    /// checkerboard, and where the density of the spirals or the pinwheel underflows f64.
    pub fn log_prob(&self, x: [f64; 2]) -> f64 {
        match (self.toy, &self.brush, &self.profile) {
            (ToyDensity::Checkerboard, ..) => checkerboard(x),
            (ToyDensity::Pinwheel, ..) => pinwheel(x),
            (_, Some(brush), Some(profile)) => self.squares(x, brush.std, profile).ln(),
            (_, Some(brush), None) => self.normals(x, brush.std),
            (toy, None, _) => unreachable!("invariant: {toy} has a brush"),
        }
    }

    /// Log of a mixture of isotropic normals, by log-sum-exp.
    fn normals(&self, [x, y]: [f64; 2], std: f64) -> f64 {
        let exponent = |[a, b]: [f64; 2]| ((x - a).powi(2) + (y - b).powi(2)) / (2.0 * std * std);
        let least = self.nodes.iter().map(|&(c, _)| exponent(c)).fold(f64::INFINITY, f64::min);
        let near = self.nodes.iter().map(|&(c, w)| (exponent(c) - least, w)).filter(|(e, _)| *e < REACH);
        let sum: f64 = near.map(|(e, w)| w * (-e).exp()).sum();
        sum.ln() - least - (TAU * std * std).ln()
    }

    /// Density of a mixture of uniform squares, each convolved with a normal distribution: the product of the
    /// profiles along both axes.
    fn squares(&self, x: [f64; 2], std: f64, profile: &Profile) -> f64 {
        // A node this far along one axis adds less than exp(-40) of the nearest node's term.
        let far = |c: &[f64; 2]| (x[0] - c[0]).abs().max((x[1] - c[1]).abs());
        let least = self.nodes.iter().map(|(c, _)| far(c)).fold(f64::INFINITY, f64::min);
        let half = profile.half();
        let reach = half + std * (2.0 * (((least - half).max(0.0) / std).powi(2) + REACH)).sqrt();
        let near = |c: &[f64; 2]| far(c) < reach;
        let terms = self.nodes.iter().filter(|(c, _)| near(c));
        terms.map(|(c, w)| w * (profile.ln(x[0] - c[0]) + profile.ln(x[1] - c[1])).exp()).sum()
    }
}

/// The profile of the brush of the spirals, the only brush with a square, computed once per process.
fn spirals(brush: &Brush) -> Arc<Profile> {
    static PROFILE: OnceLock<Arc<Profile>> = OnceLock::new();
    PROFILE.get_or_init(|| Arc::new(Profile::new(brush.half, brush.std))).clone()
}

/// Curve parameters and their probabilities.
fn curve_nodes(toy: ToyDensity, along: Along) -> Vec<(f64, f64)> {
    // Nodes on average at most a third of the standard deviation apart where the curve is fastest: the speed
    // is 2 pi R, or t dt for the spirals.
    let nodes = match toy {
        ToyDensity::Rings => 768,
        ToyDensity::TwoSpirals => 1024,
        ToyDensity::SwissRoll => 512,
        ToyDensity::Circles => 256,
        _ => 128,
    };
    match along {
        Along::Point => vec![(0.0, 1.0)],
        Along::Closed => (0..nodes).map(|i| (i as f64 / nodes as f64, 1.0 / nodes as f64)).collect(),
        Along::Open => panels(nodes / PANEL),
        Along::Linear => panels(nodes / PANEL).into_iter().map(|(s, w)| (s, 2.0 * s * w)).collect(),
    }
}

/// The Gauss-Legendre rule on equal panels of [0, 1]: nodes and weights.
fn panels(count: usize) -> Vec<(f64, f64)> {
    let rule = gauss_legendre();
    let width = 1.0 / count as f64;
    let panel = |k: usize| rule.map(|(x, w)| (width * (k as f64 + 0.5 + 0.5 * x), 0.5 * width * w));
    (0..count).flat_map(panel).collect()
}

/// Nodes in [-1, 1] and weights: roots of the Legendre polynomial by Newton's method from Tricomi's estimate
/// (Abramowitz and Stegun 25.4.29 and 22.16.6).
fn gauss_legendre() -> [(f64, f64); PANEL] {
    let n = PANEL as f64;
    std::array::from_fn(|i| {
        let mut x = (PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut derivative = 0.0;
        for _ in 0..8 {
            let (mut below, mut p) = (1.0, x);
            for k in 2..=PANEL {
                let k = k as f64;
                (below, p) = (p, ((2.0 * k - 1.0) * x * p - (k - 1.0) * below) / k);
            }
            derivative = n * (x * p - below) / (x * x - 1.0);
            x -= p / derivative;
        }
        (x, 2.0 / ((1.0 - x * x) * derivative * derivative))
    })
}

fn checkerboard(x: [f64; 2]) -> f64 {
    let [column, row] = x.map(|c| (0.5 * c).floor());
    let inside = [column, row].iter().all(|c| (-2.0..2.0).contains(c));
    let dark = (column - row).rem_euclid(2.0) == 0.0;
    if inside && dark { -32f64.ln() } else { f64::NEG_INFINITY }
}

/// A blade is a normal around (1, 0), rotated by an angle that grows with its first coordinate. A point at
/// radius r and angle phi comes from every psi with `psi - rate exp(r cos psi) = phi` up to multiples of a
/// fifth of a turn; the derivative of the left side is the determinant of the warp.
fn pinwheel(x: [f64; 2]) -> f64 {
    /// Samples in the search for sign changes; a blade is about 60 samples wide.
    const SCAN: usize = 384;
    let ([along, across], rate) = BLADE;
    let (r, phi) = ((0.5 * x[0]).hypot(0.5 * x[1]), x[1].atan2(x[0]));
    // The left side minus phi, in fifths of a turn: an integer at each solution psi.
    let turns = |psi: f64| (psi - rate * (r * psi.cos()).exp() - phi) * 5.0 / TAU;
    let normal = |psi: f64| {
        let (u, v) = ((r * psi.cos() - 1.0) / along, r * psi.sin() / across);
        (normal::ln_density(u) + normal::ln_density(v)).exp() / (along * across)
    };
    let derivative = |psi: f64| 1.0 + rate * (r * psi.cos()).exp() * r * psi.sin();
    // Beyond 39 standard deviations across, the normal is 0 in f64.
    let widest = if r > 39.0 * across { (39.0 * across / r).asin() } else { PI };
    let at = |i: usize| widest * (2.0 * i as f64 / SCAN as f64 - 1.0);
    let mut sum = 0.0;
    for i in 0..SCAN {
        let (from, to) = (turns(at(i)), turns(at(i + 1)));
        for blade in from.min(to).ceil() as i64..from.max(to).ceil() as i64 {
            let psi = root(|psi| turns(psi) - blade as f64, at(i), at(i + 1));
            sum += normal(psi) / derivative(psi).abs();
        }
    }
    // 20 = 5 blades x 4, because lengths are doubled along both axes.
    (sum / 20.0).ln()
}

/// A root between two points of different sign, by bisection.
fn root(f: impl Fn(f64) -> f64, mut a: f64, mut b: f64) -> f64 {
    let rising = f(a) < f(b);
    for _ in 0..48 {
        let middle = 0.5 * (a + b);
        *(if (f(middle) < 0.0) == rising { &mut a } else { &mut b }) = middle;
    }
    0.5 * (a + b)
}
