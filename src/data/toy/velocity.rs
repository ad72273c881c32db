//! The exact velocity of flows to the toys: their densities as mixtures of equal normals on a grid.
//!
//! A brush is such a mixture, up to the places of its centers: each center is divided between the cells around it. The
//! two toys without a brush have smooth or sharp densities, which are replaced by narrow normals on a fine grid.

use super::{BLADE, Brush, ToyDensity};
use crate::data::velocity::{Level, MixtureVelocity};
use std::f64::consts::TAU;

/// Cells per standard deviation of a brush.
const PER_STD: f64 = 4.0;
/// Side of a cell for the pinwheel, and the standard deviation of its normals. The blades are ten times as wide, so
/// the normals cost less than 1e-4 nats.
const PINWHEEL: f64 = 0.02;
/// Cells of the checkerboard along each axis.
const CHECKERS: usize = 512;

impl ToyDensity {
    /// The exact velocity of a flow from the standard normal density to the toy, in the coordinates
    /// `x = (p - mean) / std`.
    ///
    /// The checkerboard's squares become normals of 1/256 of a square, on 512 x 512 cells; the pinwheel is blurred by
    /// a tenth of a blade. The other toys are exact to the errors of [`MixtureVelocity`].
    pub fn velocity(self, mean: [f64; 2], std: [f64; 2]) -> MixtureVelocity {
        let (level, width) = match (self, self.brush()) {
            (_, Some(brush)) => self.painted(&brush),
            (ToyDensity::Checkerboard, None) => checkers(),
            (_, None) => blades(),
        };
        MixtureVelocity::new(level, width, mean, std)
    }

    /// The centers of a brush on a grid, and the standard deviation of its normals.
    fn painted(self, brush: &Brush) -> (Level, f64) {
        let nodes = self.density().nodes;
        let reach = brush.half + brush.std;
        let mut level = covering(nodes.iter().map(|(node, _)| *node), brush.std / PER_STD, reach);
        // Nodes in a square, less than a cell apart.
        let across = if brush.half > 0.0 { (2.0 * brush.half / level.side).ceil() as usize * 4 } else { 1 };
        let offset = |i: usize| brush.half * ((2 * i + 1) as f64 / across as f64 - 1.0);
        for ([x, y], mass) in nodes {
            for i in 0..across * across {
                let point = [x + offset(i % across), y + offset(i / across)];
                level.add(mass / (across * across) as f64, point);
            }
        }
        (level, brush.std)
    }
}

/// Empty cells over all points, with a margin.
fn covering(points: impl Iterator<Item = [f64; 2]>, side: f64, margin: f64) -> Level {
    let (mut least, mut most) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for point in points {
        least = [0, 1].map(|i| point[i].min(least[i]));
        most = [0, 1].map(|i| point[i].max(most[i]));
    }
    Level::over(least.map(|x| x - margin), most.map(|x| x + margin), side)
}

/// Eight of sixteen squares as narrow normals, whose variance is that of a cell.
fn checkers() -> (Level, f64) {
    let side = 8.0 / CHECKERS as f64;
    let center = |i: usize| -4.0 + side * (i as f64 + 0.5);
    let is_dark = |i: usize| {
        let [column, row] = [i % CHECKERS, i / CHECKERS].map(|i| (0.5 * center(i)).floor());
        (column - row).rem_euclid(2.0) == 0.0
    };
    let mass = 2.0 / (CHECKERS * CHECKERS) as f32;
    let mass = (0..CHECKERS * CHECKERS).map(|i| if is_dark(i) { mass } else { 0.0 }).collect();
    let level = Level { mass, size: [CHECKERS; 2], origin: [-4.0; 2], side, spread: 0.0 };
    (level, side / 12f64.sqrt())
}

/// The blades of the pinwheel: the warped normal by the midpoint rule, 5 standard deviations wide.
fn blades() -> (Level, f64) {
    const STEPS: [usize; 2] = [320, 120];
    let ([along, across], rate) = BLADE;
    let z = |i: usize, n: usize| 10.0 * ((i as f64 + 0.5) / n as f64 - 0.5);
    let node = |i: usize| {
        let (u, w) = (z(i % STEPS[0], STEPS[0]), z(i / STEPS[0], STEPS[1]));
        let (r, w, mass) = (1.0 + along * u, across * w, (-0.5 * (u * u + w * w)).exp());
        (0..5).map(move |blade| {
            let (sin, cos) = (f64::from(blade) * TAU / 5.0 + rate * r.exp()).sin_cos();
            ([2.0 * (r * cos + w * sin), 2.0 * (w * cos - r * sin)], mass)
        })
    };
    let nodes = || (0..STEPS[0] * STEPS[1]).flat_map(node);
    let total: f64 = nodes().map(|(_, mass)| mass).sum();
    let mut level = covering(nodes().map(|(point, _)| point), PINWHEEL, 0.0);
    nodes().for_each(|(point, mass)| level.add(mass / total, point));
    (level, PINWHEEL)
}
