//! A density over a rectangle of the plane, and its color scale, as numbers. A run stores these numbers even if
//! nothing is drawn.

/// A rectangle of the plane: in an image's pixel coordinates, x to the right and y down, or in data
/// coordinates, y up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Left and right ends.
    pub x: [f64; 2],
    /// Upper and lower ends. The upper end is smaller in pixel coordinates and larger where y points up.
    pub y: [f64; 2],
}

impl Extent {
    /// Whether y points up, as in data coordinates. In pixel coordinates, y points down.
    pub fn is_upward(&self) -> bool {
        self.y[0] > self.y[1]
    }
}

/// A density per square pixel, or per unit of area where y points up, on the cells of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Heatmap<'a> {
    /// One value per cell, row-major, first row on top `[rows * cols]`.
    pub values: &'a [f64],
    /// Cells from top to bottom.
    pub rows: usize,
    /// Cells from left to right.
    pub cols: usize,
    /// The rectangle that the cells cover.
    pub frame: Extent,
}

/// The density of the lightest color; the darkest color means 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColorScale {
    /// Density of the lightest color, per square pixel or per unit of area.
    pub max: f64,
}

impl ColorScale {
    /// The fraction of the probability, at the highest densities, that the scale ignores.
    const PEAKS: f64 = 0.02;
    /// The end of the scale divided by the highest density that is not ignored, so that higher densities look lighter.
    const HEADROOM: f64 = 1.1;

    /// The scale of a map: 1.1 times the density below which 98 % of its probability lies, so that a single
    /// sharp peak does not darken the rest. A map of zeros has the scale 1.
    pub fn of(map: &Heatmap) -> Self {
        let mut values: Vec<f64> = map.values.iter().copied().filter(|v| v.is_finite() && *v > 0.0).collect();
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        let limit = Self::PEAKS * values.iter().sum::<f64>();
        let mut above = 0.0;
        let max = values.iter().copied().find(|v| {
            above += v;
            above > limit
        });
        Self { max: max.map_or(1.0, |v| Self::HEADROOM * v) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_peak_does_not_set_the_scale() {
        let mut values = vec![1.0; 1000];
        values[500] = 4.0;
        let frame = Extent { x: [0.0, 1.0], y: [0.0, 1.0] };
        assert_eq!(ColorScale::of(&Heatmap { values: &values, rows: 10, cols: 100, frame }).max, 1.1);
        assert_eq!(ColorScale::of(&Heatmap { values: &[0.0; 4], rows: 2, cols: 2, frame }).max, 1.0);
        assert_eq!(ColorScale::of(&Heatmap { values: &[0.5], rows: 1, cols: 1, frame }).max, 0.5 * 1.1);
    }
}
