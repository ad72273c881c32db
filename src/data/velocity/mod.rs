//! The exact velocity of a flow to a known density in the plane, the target of flow matching without noise.
//!
//! The density is a mixture of equal normals whose centers lie on a grid: the pixels of an image, or the nodes of a
//! toy density. At time t the points are `x = a x0 + b x1` with x0 standard normal and x1 from the density. Given the
//! center c of its normal, x is normal too, so the mean velocity at x follows from the mean of c given x. This mean is
//! a ratio of sums over the centers near x, weighted by a normal of x. At early times that normal is wide, so the sums
//! run over the cells of a coarser grid ([`pyramid`]). A velocity reads a few hundred cells, whatever the size of the
//! image and the time.

mod pyramid;
#[cfg(test)]
mod tests;

use super::quadrature::Masses;
use super::{ImageDensity, JITTER_PIXELS};
pub(super) use pyramid::Level;
use pyramid::levels;

/// Standard deviations of the normal of x per cell side, at least, in all levels but the finest.
const CELLS: f64 = 2.0;
/// Cells farther than this many standard deviations along an axis are left out: `exp(-4.5^2 / 2) = 4e-5`.
const REACH: f64 = 4.5;
/// A sum of weights below this has lost its digits. The weight of a cell at the reach is 4e-5 of its mass.
const LEAST: f64 = 1e-150;
/// Columns that are summed together.
const COLUMNS: usize = 64;

/// The exact velocity of a flow from the standard normal density to a mixture of equal normals on a grid.
///
/// # Mathematics
/// Per axis, with `x = a x0 + b x1`, `x1 = c + s z`, and `'` for the derivative in t,
///
/// `v = b' D + k (x - b D)`, `k = (a a' + b b' s^2) / (a^2 + b^2 s^2)`,
///
/// where D is the mean of the center c given x. The weight of a center is its mass times a normal density of x around
/// b c with variance `a^2 + b^2 s^2`. On a straight path, a is 1 - t and b is t.
///
/// # Errors
/// The sums run over cells of at most half a standard deviation, and end 4.5 standard deviations away. For an image
/// with edges of one pixel, the root mean square error of v is below 0.003 for `x` from the path, where `|v|` is about
/// 1.4. Where no center is so near, the sum runs over all cells of
/// the finest grid.
#[derive(Clone, Debug)]
pub struct MixtureVelocity {
    /// Origin and unit of the standardized coordinates, on the grid.
    mean: [f64; 2],
    std: [f64; 2],
    /// Standard deviation of each normal, on the grid.
    width: f64,
    levels: Vec<Level>,
}

impl MixtureVelocity {
    /// For normals with the standard deviation `width` and centers in the cells of a grid.
    ///
    /// `mean` and `std` map the coordinates of the grid to those of x: `x = (p - mean) / std`.
    pub(super) fn new(finest: Level, width: f64, mean: [f64; 2], std: [f64; 2]) -> MixtureVelocity {
        MixtureVelocity { mean, std, width, levels: levels(finest) }
    }

    /// The standard deviation of each normal in the coordinates of x, along the axis where it is smaller.
    pub fn smallest_scale(&self) -> f64 {
        self.width / self.std[0].max(self.std[1])
    }

    /// The mean of `a' x0 + b' x1` given `a x0 + b x1 = x`, for `noise = [a, a']` and `data = [b, b']`.
    ///
    /// x and the velocity are in standardized coordinates. The velocity is finite for a and b at least 0 that are not
    /// both 0.
    pub fn velocity(&self, noise: [f64; 2], data: [f64; 2], x: [f64; 2]) -> [f64; 2] {
        let ([a, a_rate], [b, b_rate]) = (noise, data);
        let center = self.center(a, b, x);
        std::array::from_fn(|axis| {
            let s = self.width / self.std[axis];
            let k = (a * a_rate + b * b_rate * s * s) / (a * a + b * b * s * s);
            b_rate * center[axis] + k * (x[axis] - b * center[axis])
        })
    }

    /// The mean of the center given x, in standardized coordinates.
    fn center(&self, a: f64, b: f64, x: [f64; 2]) -> [f64; 2] {
        // So little of the data is in x that it says nothing about the center.
        if b < 1e-9 * a {
            return [0.0; 2];
        }
        let from: [f64; 2] = std::array::from_fn(|i| x[i] / b * self.std[i] + self.mean[i]);
        let wide: [f64; 2] = std::array::from_fn(|i| (a / b * self.std[i]).hypot(self.width));
        let least = wide[0].min(wide[1]);
        let fits = |level: &&Level| level.side * CELLS <= least;
        let level = self.levels.iter().rev().find(fits).unwrap_or(&self.levels[0]);
        let narrowed = wide.map(|wide| (wide * wide - level.spread).sqrt());
        let (level, moved) = near(level, from, narrowed).map_or_else(
            || {
                let finest = &self.levels[0];
                (finest, far(finest, from, wide.map(|wide| (wide * wide - finest.spread).sqrt())))
            },
            |mean| (level, mean),
        );
        std::array::from_fn(|i| {
            // The mean of the center and of its way to the cell. Given the center and x, the mean of this way is the
            // share of its variance in that of x.
            let share = level.spread / (wide[i] * wide[i]);
            let mean = (moved[i] - share * from[i]) / (1.0 - share);
            (mean - self.mean[i]) / self.std[i]
        })
    }
}

impl ImageDensity {
    /// The exact velocity of a flow from the standard normal density to the density of the image.
    ///
    /// It needs 5.4 bytes per pixel.
    pub fn velocity(&self) -> MixtureVelocity {
        let mass = self.masses(0..self.width * self.height).map(|mass| mass as f32).collect();
        let size = [self.width, self.height];
        let finest = Level { mass, size, origin: [0.0; 2], side: 1.0, spread: 0.0 };
        MixtureVelocity::new(finest, JITTER_PIXELS, self.mean, self.std)
    }
}

/// The normal densities, up to a factor, at equidistant places, by a recurrence: `exp(-z^2 / 2)` at
/// `z = first + i step`.
struct Normals {
    weight: f64,
    ratio: f64,
    factor: f64,
}

impl Normals {
    fn new(first: f64, step: f64) -> Normals {
        Normals {
            weight: (-0.5 * first * first).exp(),
            ratio: (-step * (first + 0.5 * step)).exp(),
            factor: (-step * step).exp(),
        }
    }

    fn next(&mut self) -> f64 {
        let weight = self.weight;
        self.weight *= self.ratio;
        self.ratio *= self.factor;
        weight
    }
}

/// The mean of the cells' centers around a point, weighted by mass and a normal with standard deviations `wide`;
/// `None` if there is no mass near.
fn near(level: &Level, from: [f64; 2], wide: [f64; 2]) -> Option<[f64; 2]> {
    let range = |axis: usize| {
        let at = |place: f64| (place - level.origin[axis]) / level.side - 0.5;
        let reach = REACH * wide[axis];
        let size = level.size[axis] as f64;
        let first = at(from[axis] - reach).ceil().clamp(0.0, size) as usize;
        let end = (at(from[axis] + reach).floor() + 1.0).clamp(0.0, size) as usize;
        first..end.max(first)
    };
    let (columns, rows) = (range(0), range(1));
    // The distance of a cell's center from the point.
    let distance = |axis: usize, i: usize| level.center(axis, i) - from[axis];
    let steps = wide.map(|wide| level.side / wide);
    let down = Normals::new(distance(1, rows.start) / wide[1], steps[1]);
    let mut across = Normals::new(distance(0, columns.start) / wide[0], steps[0]);
    let (mut sum, mut moments) = (0.0, [0.0; 2]);
    for first in columns.clone().step_by(COLUMNS) {
        let count = COLUMNS.min(columns.end - first);
        // Sums over the rows, per column: of the weighted masses, and of these times the vertical distance.
        let (mut masses, mut heights) = ([0.0; COLUMNS], [0.0; COLUMNS]);
        let mut down = Normals { ..down };
        for row in rows.clone() {
            let weight = down.next();
            let height = weight * distance(1, row);
            let cells = &level.mass[row * level.size[0] + first..][..count];
            for ((mass, high), &cell) in masses[..count].iter_mut().zip(&mut heights[..count]).zip(cells) {
                let cell = f64::from(cell);
                *mass += weight * cell;
                *high += height * cell;
            }
        }
        for i in 0..count {
            let weight = across.next();
            let mass = weight * masses[i];
            sum += mass;
            moments[0] += mass * distance(0, first + i);
            moments[1] += weight * heights[i];
        }
    }
    (sum > LEAST).then(|| std::array::from_fn(|axis| from[axis] + moments[axis] / sum))
}

/// [`near`], over all cells; the weights are divided by that of the nearest cell.
fn far(level: &Level, from: [f64; 2], wide: [f64; 2]) -> [f64; 2] {
    let cells = || {
        (0..level.mass.len()).filter(|&i| level.mass[i] > 0.0).map(|i| {
            let center = [level.center(0, i % level.size[0]), level.center(1, i / level.size[0])];
            let z: [f64; 2] = std::array::from_fn(|axis| (center[axis] - from[axis]) / wide[axis]);
            (0.5 * (z[0] * z[0] + z[1] * z[1]), center, f64::from(level.mass[i]))
        })
    };
    let least = cells().map(|(exponent, ..)| exponent).fold(f64::INFINITY, f64::min);
    let (mut sum, mut moments) = (0.0, [0.0; 2]);
    for (exponent, center, mass) in cells() {
        let weight = mass * (least - exponent).exp();
        sum += weight;
        moments.iter_mut().zip(center).for_each(|(moment, center)| *moment += weight * center);
    }
    moments.map(|moment| moment / sum)
}
