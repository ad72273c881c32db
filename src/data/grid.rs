//! A grid over the plane, on which a density is evaluated for a figure or summed to its total probability.
//!
//! A grid holds a rectangle in pixel coordinates and its cells in standardized coordinates, because every use
//! needs both: models are evaluated at `centers`; figures and total probabilities are per pixel.

/// Cells over the plane, row-major, top row first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Grid {
    /// Number of cells from top to bottom.
    pub rows: usize,
    /// Number of cells from left to right.
    pub cols: usize,
    /// Left and right end in pixel coordinates.
    pub x: [f64; 2],
    /// Upper and lower end in pixel coordinates, y down.
    pub y: [f64; 2],
    /// Centers of the cells `[rows * cols, 2]` in standardized coordinates.
    pub centers: Vec<[f32; 2]>,
    /// Area of a cell in standardized coordinates: `sum(exp(log_prob)) * cell_area` is the total probability on the grid.
    pub cell_area: f64,
    /// Area of a cell in square pixels.
    pub pixel_area: f64,
}

impl Grid {
    /// `rows` x `cols` cells over the rectangle. `standard` maps pixel to standardized coordinates; `unit` is
    /// the area of a standardized unit square in square pixels.
    pub(super) fn new(
        rows: usize,
        cols: usize,
        x: [f64; 2],
        y: [f64; 2],
        standard: impl Fn([f64; 2]) -> [f64; 2],
        unit: f64,
    ) -> Self {
        let pixel_area = (x[1] - x[0]) / cols as f64 * (y[1] - y[0]) / rows as f64;
        let mut grid =
            Self { rows, cols, x, y, centers: Vec::new(), cell_area: pixel_area / unit, pixel_area };
        grid.centers = (0..rows * cols)
            .map(|i| standard([grid.col_center(i % cols), grid.row_center(i / cols)]).map(|c| c as f32))
            .collect();
        grid
    }

    /// y of a row's centers in pixel coordinates.
    pub(super) fn row_center(&self, row: usize) -> f64 {
        self.y[0] + (self.y[1] - self.y[0]) * (row as f64 + 0.5) / self.rows as f64
    }

    /// x of a column's centers in pixel coordinates.
    pub(super) fn col_center(&self, col: usize) -> f64 {
        self.x[0] + (self.x[1] - self.x[0]) * (col as f64 + 0.5) / self.cols as f64
    }
}
