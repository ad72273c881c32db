//! The elements of a figure, stored beside its pixels, so that it can be written as SVG.
use super::sheet::Rect;

/// An element, in screen pixels.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mark {
    /// A run of text and the left end of its baseline.
    Text { text: String, at: [f64; 2], size: f64, upwards: bool, color: [u8; 3] },
    /// A path; one point is a dot.
    Path { points: Vec<[f64; 2]>, width: f64, color: [u8; 3], opacity: f64, colors: Colors },
    /// The inside of a polygon.
    Area { points: Vec<[f64; 2]>, color: [u8; 3], opacity: f64, colors: Colors },
    /// Pixels: a density, an image, a color bar.
    Raster { rect: Rect, colors: Colors },
}

/// What the colors of a mark belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colors {
    /// Text and lines on the paper. A dark variant of the figure changes these colors.
    Paper,
    /// A density or an image. A dark variant of the figure keeps these colors.
    Map,
}

impl Mark {
    /// Moves the mark.
    pub(super) fn shift(&mut self, [x, y]: [u32; 2]) {
        let by = [f64::from(x), f64::from(y)];
        let moved = |p: &mut [f64; 2]| *p = [p[0] + by[0], p[1] + by[1]];
        match self {
            Mark::Text { at, .. } => moved(at),
            Mark::Path { points, .. } | Mark::Area { points, .. } => points.iter_mut().for_each(moved),
            Mark::Raster { rect, .. } => *rect = Rect { x: rect.x + x, y: rect.y + y, ..*rect },
        }
    }
}
