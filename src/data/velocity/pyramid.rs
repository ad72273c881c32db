//! A grid of masses, and the coarser grids made from it.
//!
//! A mass moves to the three nearest cells of the coarser grid along each axis, with the weights of a quadratic
//! B-spline. This keeps the mean of the mass, and adds the same variance, a quarter of the squared cell side, wherever
//! the mass lies in its cell. A normal that weights the coarser grid is made narrower by this variance. If masses moved
//! to the nearest cell, their means would change, and the error of a velocity would be ten times as large
//! (`tests::the_velocity_is_the_ratio_of_the_sums_over_all_pixels`).

/// Weights of a quadratic B-spline at distances of 1/4, 3/4 and 5/4 of a cell.
const SPLINE: [f32; 3] = [0.6875, 0.28125, 0.03125];

/// Masses of square cells, row-major.
#[derive(Clone, Debug)]
pub(in crate::data) struct Level {
    pub mass: Vec<f32>,
    /// Columns and rows.
    pub size: [usize; 2],
    /// The corner of the first cell.
    pub origin: [f64; 2],
    /// The side of a cell.
    pub side: f64,
    /// The variance along each axis that the masses gained when they were moved to this grid.
    pub spread: f64,
}

impl Level {
    /// Empty cells that cover a rectangle, with the spread of masses that are [added](Level::add).
    pub(in crate::data) fn over(least: [f64; 2], most: [f64; 2], side: f64) -> Level {
        let size: [usize; 2] = std::array::from_fn(|i| ((most[i] - least[i]) / side).ceil() as usize + 4);
        let origin = least.map(|least| least - 2.0 * side);
        Level { mass: vec![0.0; size[0] * size[1]], size, origin, side, spread: 0.25 * side * side }
    }

    /// Adds a mass at a point, divided between nine cells.
    pub(in crate::data) fn add(&mut self, mass: f64, point: [f64; 2]) {
        let places: [(usize, [f64; 3]); 2] = std::array::from_fn(|axis| {
            let place = (point[axis] - self.origin[axis]) / self.side;
            let d = place - place.floor() - 0.5;
            (place as usize, [0.5 * (0.5 - d).powi(2), 0.75 - d * d, 0.5 * (0.5 + d).powi(2)])
        });
        let [(column, across), (row, down)] = places;
        for (i, down) in down.into_iter().enumerate() {
            for (j, across) in across.into_iter().enumerate() {
                self.mass[(row + i - 1) * self.size[0] + column + j - 1] += (mass * down * across) as f32;
            }
        }
    }

    /// The center of a column (axis 0) or a row (axis 1).
    pub(super) fn center(&self, axis: usize, i: usize) -> f64 {
        self.origin[axis] + self.side * (i as f64 + 0.5)
    }

    /// The grid of cells of twice the side.
    fn coarser(&self) -> Level {
        // The coarser grid begins one of its cells earlier.
        let size = self.size.map(|n| n.div_ceil(2) + 2);
        let (mut mass, mut row) = (vec![0.0; size[0] * size[1]], vec![0.0; size[0]]);
        for (i, fine) in self.mass.chunks_exact(self.size[0]).enumerate() {
            row.fill(0.0);
            for (i, &mass) in fine.iter().enumerate() {
                shares(i).for_each(|(j, weight)| row[j] += weight * mass);
            }
            for (j, weight) in shares(i) {
                let coarse = &mut mass[j * size[0]..][..size[0]];
                coarse.iter_mut().zip(&row).for_each(|(sum, &mass)| *sum += weight * mass);
            }
        }
        let side = 2.0 * self.side;
        let (origin, spread) = (self.origin.map(|o| o - side), self.spread + 0.25 * side * side);
        Level { mass, size, origin, side, spread }
    }
}

/// The cells of the coarser grid that share the mass of cell i along an axis, with their shares.
fn shares(i: usize) -> impl Iterator<Item = (usize, f32)> {
    // The nearest cell, the one on the other side, and the one beyond the nearest.
    let near = i / 2 + 1;
    let cells = if i.is_multiple_of(2) { [near, near - 1, near + 1] } else { [near, near + 1, near - 1] };
    cells.into_iter().zip(SPLINE)
}

/// A grid and the coarser ones, down to a few cells.
pub(super) fn levels(finest: Level) -> Vec<Level> {
    let mut levels = vec![finest];
    while let Some(coarser) =
        levels.last().filter(|last| last.size.iter().any(|&n| n > 8)).map(Level::coarser)
    {
        levels.push(coarser);
    }
    levels
}
