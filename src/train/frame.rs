//! What of an image a learned density needs without the image: its size, its units, its entropy.
//!
//! Kept in every checkpoint, so that a run folder draws, samples and evaluates in pixel coordinates by itself.

use crate::data::{ImageDensity, Rule};
use crate::plot;
use serde::{Deserialize, Serialize};

/// The frame of the image that a density was learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImageFrame {
    /// Columns of the image.
    pub width: usize,
    /// Rows of the image.
    pub height: usize,
    /// Centre of standardised coordinates, in pixel coordinates.
    pub mean: [f64; 2],
    /// Unit of standardised coordinates, in pixels.
    pub sd: [f64; 2],
    /// Entropy of the image's density in standardised coordinates.
    pub entropy_nats: f64,
    /// Whether the documented rule made greys a density.
    pub documented_rule: bool,
    /// A number that tells images apart, hexadecimal.
    pub fingerprint: String,
}

/// Cells over the image grown by a margin, row-major, first row on top.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Cells from top to bottom.
    pub rows: usize,
    /// Cells from left to right.
    pub cols: usize,
    /// The rectangle that they cover, in pixel coordinates.
    pub frame: plot::Frame,
    /// Centres in standardised coordinates.
    pub centres: Vec<[f32; 2]>,
    /// Area of a cell in square pixels.
    pub area: f64,
}

impl ImageFrame {
    /// Of an image.
    pub fn of(data: &ImageDensity) -> ImageFrame {
        ImageFrame {
            width: data.width,
            height: data.height,
            mean: data.mean,
            sd: data.sd,
            entropy_nats: data.entropy_nats(),
            documented_rule: data.rule == Rule::Documented,
            fingerprint: format!("{:016x}", data.fingerprint()),
        }
    }

    /// Standardised to pixel coordinates.
    pub fn to_pixels(&self, x: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| self.mean[a] + self.sd[a] * x[a])
    }

    /// Pixel to standardised coordinates.
    pub fn to_standard(&self, p: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| (p[a] - self.mean[a]) / self.sd[a])
    }

    /// What to add to a log-density in standardised coordinates to have it per square pixel.
    pub fn log_jacobian(&self) -> f64 {
        -(self.sd[0] * self.sd[1]).ln()
    }

    /// The longer side in pixels.
    pub fn side(&self) -> usize {
        self.width.max(self.height)
    }

    /// The image itself as what a picture covers.
    pub fn window(&self) -> plot::Frame {
        self.grown(0.0)
    }

    fn grown(&self, margin: f64) -> plot::Frame {
        plot::Frame { x: [-margin, self.width as f64 + margin], y: [-margin, self.height as f64 + margin] }
    }

    /// `rows` x `cols` cells over the image grown by `margin` pixels on all sides.
    pub fn cells(&self, margin: f64, rows: usize, cols: usize) -> Cells {
        let frame = self.grown(margin);
        let at = |[from, to]: [f64; 2], i: usize, n: usize| from + (to - from) * (i as f64 + 0.5) / n as f64;
        let centre = |i: usize| self.to_standard([at(frame.x, i % cols, cols), at(frame.y, i / cols, rows)]);
        Cells {
            rows,
            cols,
            frame,
            centres: (0..rows * cols).map(|i| centre(i).map(|c| c as f32)).collect(),
            area: (frame.x[1] - frame.x[0]) * (frame.y[1] - frame.y[0]) / (rows * cols) as f64,
        }
    }

    /// Square cells, `per_pixel` along a pixel, over the image grown by whole `margin` pixels.
    pub fn square_cells(&self, margin: usize, per_pixel: usize) -> Cells {
        let count = |side: usize| (side + 2 * margin) * per_pixel;
        self.cells(margin as f64, count(self.height), count(self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_as_the_image_does() {
        let frame = ImageFrame {
            width: 4,
            height: 2,
            mean: [2.0, 1.0],
            sd: [2.0, 0.5],
            entropy_nats: 0.0,
            documented_rule: false,
            fingerprint: String::new(),
        };
        let cells = frame.square_cells(1, 2);
        assert_eq!((cells.rows, cells.cols, cells.area), (8, 12, 0.25));
        assert_eq!(frame.to_pixels(cells.centres[0].map(f64::from)), [-0.75, -0.75]);
        assert_eq!(frame.to_pixels(cells.centres[12 * 8 - 1].map(f64::from)), [4.75, 2.75]);
        assert!((frame.log_jacobian() - 0.0).abs() < 1e-15);
    }
}
