//! Values over a rectangle of the plane, drawn as a heat map, and their sampling to screen pixels.
use super::points::check;
use super::{Extent, Heatmap, PlotError};

impl Extent {
    /// Width divided by height. In data coordinates, 1 if this ratio is below 0.4 or above 2.5: the units then differ.
    pub(super) fn aspect(&self) -> f64 {
        let ratio = (self.x[1] - self.x[0]) / (self.y[1] - self.y[0]).abs();
        if self.is_upward() && !(0.4..=2.5).contains(&ratio) { 1.0 } else { ratio }
    }

    pub(super) fn check(&self) -> Result<(), PlotError> {
        for (what, [from, to]) in [("the frame in x", self.x), ("the frame in y", self.y)] {
            let is_turned = what == "the frame in y" && from > to;
            if !(from.is_finite() && to.is_finite() && (from < to || is_turned)) {
                return Err(PlotError::Extent { what, from, to });
            }
        }
        Ok(())
    }
}

impl Heatmap<'_> {
    pub(super) fn check(&self) -> Result<(), PlotError> {
        self.frame.check()?;
        if self.values.is_empty() || self.values.len() != self.rows * self.cols {
            return Err(PlotError::Shape { rows: self.rows, cols: self.cols, found: self.values.len() });
        }
        match self.values.iter().position(|v| !v.is_finite() || *v < 0.0) {
            None => Ok(()),
            Some(index) => {
                Err(PlotError::Value { what: "density of cell", index, value: self.values[index] })
            }
        }
    }

    /// The value for the screen pixel `(column, row)` of `size`.
    pub(super) fn on_screen(&self, [x, y]: [u32; 2], size: [u32; 2], cells: Cells) -> f64 {
        let (xs, ys) = (weights(x, size[0], self.cols, cells), weights(y, size[1], self.rows, cells));
        ys.iter()
            .map(|&(row, v)| {
                v * xs.iter().map(|&(col, w)| w * self.values[row * self.cols + col]).sum::<f64>()
            })
            .sum()
    }
}

/// How a cell larger than a screen pixel is drawn. For smaller cells, a screen pixel shows their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cells {
    /// Bilinear interpolation between centers: a density is smooth.
    Smooth,
    /// Constant: a count belongs to its whole cell.
    Flat,
}

/// Cells and their weights (sum 1) for screen pixel `i` of `n` along an axis of `cells` cells.
fn weights(i: u32, n: u32, cells: usize, kind: Cells) -> Vec<(usize, f64)> {
    let scale = cells as f64 / f64::from(n);
    let (from, to) = (f64::from(i) * scale, f64::from(i + 1) * scale);
    if scale > 1.0 {
        let covered = |cell: usize| (to.min(cell as f64 + 1.0) - from.max(cell as f64)).max(0.0) / scale;
        return (from as usize..(to.ceil() as usize).min(cells)).map(|cell| (cell, covered(cell))).collect();
    }
    if kind == Cells::Flat || cells == 1 {
        return vec![((0.5 * (from + to)) as usize, 1.0)];
    }
    let at = (0.5 * (from + to) - 0.5).clamp(0.0, cells as f64 - 1.0);
    let cell = (at as usize).min(cells - 2);
    vec![(cell, 1.0 - (at - cell as f64)), (cell + 1, at - cell as f64)]
}

/// Points counted in cells, as a density that integrates to the share of points inside the extent.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    pub values: Vec<f64>,
    pub rows: usize,
    pub cols: usize,
    pub frame: Extent,
    /// The weight of one point in its cell.
    share: f64,
}

impl Histogram {
    /// An empty histogram for `num_points` points. Cells are square on the screen. The longer side has
    /// `0.7 sqrt(num_points)` cells, which is about two points per cell, but at most `most`; in pixel coordinates also
    /// at most two per pixel. It has at least 24 cells.
    pub(super) fn new(num_points: usize, frame: Extent, most: f64) -> Self {
        let (width, height) = (frame.x[1] - frame.x[0], (frame.y[1] - frame.y[0]).abs());
        // The extent on the screen. Axes of different units are drawn as a square.
        let (across, down) = if frame.is_upward() { (frame.aspect(), 1.0) } else { (width, height) };
        let longer = across.max(down);
        let most = if frame.is_upward() { most } else { most.min(2.0 * longer) };
        let cells = (0.7 * (num_points as f64).sqrt()).clamp(24.0, most.max(24.0));
        let count = |side: f64| ((side / longer * cells).round() as usize).max(1);
        let (rows, cols) = (count(down), count(across));
        let share = (rows * cols) as f64 / (width * height * num_points.max(1) as f64);
        Self { values: vec![0.0; rows * cols], rows, cols, frame, share }
    }

    /// A histogram of these points.
    pub(super) fn of(points: &[[f64; 2]], frame: Extent, most: f64) -> Self {
        let mut histogram = Self::new(points.len(), frame, most);
        histogram.add(points);
        histogram
    }

    /// A histogram for `num_points` points that arrive in parts.
    pub(super) fn of_parts<P: AsRef<[[f64; 2]]>, E: From<PlotError>>(
        num_points: usize,
        parts: impl Iterator<Item = Result<P, E>>,
        frame: Extent,
    ) -> Result<Self, E> {
        frame.check()?;
        let mut histogram = Self::new(num_points, frame, f64::INFINITY);
        for part in parts {
            let part = part?;
            check(part.as_ref())?;
            histogram.add(part.as_ref());
        }
        Ok(histogram)
    }

    /// Counts a part of the points.
    pub(super) fn add(&mut self, points: &[[f64; 2]]) {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        let at = |x: f64, [from, to]: [f64; 2], cells: f64| ((x - from) / (to - from) * cells).floor();
        for p in points {
            let (col, row) = (at(p[0], self.frame.x, cols), at(p[1], self.frame.y, rows));
            if (0.0..cols).contains(&col) && (0.0..rows).contains(&row) {
                self.values[row as usize * self.cols + col as usize] += self.share;
            }
        }
    }

    pub(super) fn map(&self) -> Heatmap<'_> {
        Heatmap { values: &self.values, rows: self.rows, cols: self.cols, frame: self.frame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_integrates_to_the_share_inside() {
        let frame = Extent { x: [0.0, 20.0], y: [0.0, 10.0] };
        let points = [[0.0, 0.0], [19.9, 9.9], [3.0, 4.0], [25.0, 5.0]];
        let h = Histogram::of(&points, frame, f64::INFINITY);
        let area = 200.0 / (h.rows * h.cols) as f64;
        assert!((h.values.iter().sum::<f64>() * area - 0.75).abs() < 1e-12);
        assert!(h.values[0] > 0.0 && h.values[h.values.len() - 1] > 0.0);
    }

    #[test]
    fn upward_axes_have_their_largest_y_on_top_and_keep_the_integral() {
        let frame = Extent { x: [0.0, 2.0], y: [3.0, -1.0] };
        let h = Histogram::of(&[[0.1, 2.9], [1.9, -0.9], [0.1, 3.1]], frame, f64::INFINITY);
        let area = 8.0 / (h.rows * h.cols) as f64;
        assert!((h.values.iter().sum::<f64>() * area - 2.0 / 3.0).abs() < 1e-12);
        let first = h.values.iter().position(|v| *v > 0.0).unwrap();
        assert!(first / h.cols < h.rows / 4 && first % h.cols < h.cols / 4, "{first}");
        assert!(frame.check().is_ok() && Extent { x: [2.0, 0.0], y: [0.0, 1.0] }.check().is_err());
        assert_eq!(frame.aspect(), 0.5);
        assert_eq!(Extent { x: [0.0, 1e6], y: [1.0, 0.0] }.aspect(), 1.0);
    }

    #[test]
    fn screen_sampling_keeps_the_mean() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(i * i % 17)).collect();
        let frame = Extent { x: [0.0, 1.0], y: [0.0, 1.0] };
        let map = Heatmap { values: &values, rows: 6, cols: 10, frame };
        let mean = values.iter().sum::<f64>() / 60.0;
        let size = [4, 3]; // fewer than cells: averages
        let screen = (0..12).map(|i| map.on_screen([i % 4, i / 4], size, Cells::Smooth)).sum::<f64>() / 12.0;
        assert!((screen - mean).abs() < 1e-12, "{screen} {mean}");
        for cells in [Cells::Smooth, Cells::Flat] {
            assert_eq!(map.on_screen([0, 0], [10, 6], cells), values[0]);
            assert_eq!(map.on_screen([99, 59], [100, 60], cells), values[59]);
        }
        assert_eq!(map.on_screen([9, 0], [100, 60], Cells::Flat), values[0]);
        assert_eq!(map.on_screen([10, 0], [100, 60], Cells::Flat), values[1]);
    }
}
