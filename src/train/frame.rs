//! What of an image a learned density needs without the image: its size, its units, its entropy.
//!
//! Kept in every checkpoint, so that a run folder draws, samples and evaluates in pixel coordinates by itself.

use crate::data::{ImageDensity, Rule};
use crate::plot::{self, DensityMap, Scale};
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
    /// Density per square pixel that has the lightest colour in every picture of the run: of the image's own density.
    pub density_max: f64,
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
            density_max: scale_of(data).max,
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

    /// The colour scale of the run's pictures.
    pub fn scale(&self) -> Scale {
        Scale { max: self.density_max }
    }

    /// Deviations between the centre of standardised coordinates and the farthest corner of the image grown by `margin`
    /// pixels on all sides.
    pub fn reach(&self, margin: f64) -> f64 {
        let far = |a: usize, side: usize| {
            let [from, to] = [-margin, side as f64 + margin].map(|x| (x - self.mean[a]) / self.sd[a]);
            from.abs().max(to.abs())
        };
        far(0, self.width).hypot(far(1, self.height))
    }

    /// The largest margin in whole pixels with which no corner lies more than so many deviations out; 0 where the image
    /// itself reaches farther.
    pub fn margin_within(&self, deviations: f64) -> f64 {
        let (mut fits, mut reaches) = (0.0, deviations * self.sd[0].max(self.sd[1]) + 1.0);
        while reaches - fits > 0.5 {
            let middle = 0.5 * (fits + reaches);
            *(if self.reach(middle) <= deviations { &mut fits } else { &mut reaches }) = middle;
        }
        fits.floor()
    }

    /// The longer side in pixels.
    pub fn side(&self) -> usize {
        self.width.max(self.height)
    }

    /// The image itself as what a picture covers.
    pub fn window(&self) -> plot::Frame {
        self.grown(0.0)
    }

    /// The image and so many pixels around it.
    pub fn grown(&self, margin: f64) -> plot::Frame {
        plot::Frame { x: [-margin, self.width as f64 + margin], y: [-margin, self.height as f64 + margin] }
    }

    /// `rows` x `cols` cells over the image grown by `margin` pixels on all sides.
    pub fn cells(&self, margin: f64, rows: usize, cols: usize) -> Cells {
        let frame = self.grown(margin);
        let centre = self.centres(margin, rows, cols);
        Cells {
            rows,
            cols,
            frame,
            centres: (0..rows * cols).map(centre).collect(),
            area: (frame.x[1] - frame.x[0]) * (frame.y[1] - frame.y[0]) / (rows * cols) as f64,
        }
    }

    /// Centres of those cells by their number, row-major, first row on top, in standardised coordinates.
    pub fn centres(&self, margin: f64, rows: usize, cols: usize) -> impl Fn(usize) -> [f32; 2] + use<'_> {
        let frame = self.grown(margin);
        let at = |[from, to]: [f64; 2], i: usize, n: usize| from + (to - from) * (i as f64 + 0.5) / n as f64;
        move |i| {
            let p = [at(frame.x, i % cols, cols), at(frame.y, i / cols, rows)];
            self.to_standard(p).map(|x| x as f32)
        }
    }

    /// Square cells, `per_pixel` along a pixel, over the image grown by whole `margin` pixels.
    pub fn square_cells(&self, margin: usize, per_pixel: usize) -> Cells {
        let count = |side: usize| (side + 2 * margin) * per_pixel;
        self.cells(margin as f64, count(self.height), count(self.width))
    }
}

/// The scale that fits the image's own density, at two or more cells a pixel but for images whose pixels are as many as the
/// scale needs.
fn scale_of(data: &ImageDensity) -> Scale {
    let per_pixel = if data.width.max(data.height) > 1000 { 1 } else { 2 };
    let (rows, cols) = (data.height * per_pixel, data.width * per_pixel);
    let values = data.density_on(&data.grid_of(0.0, rows, cols));
    let frame = plot::Frame { x: [0.0, data.width as f64], y: [0.0, data.height as f64] };
    Scale::of(&DensityMap { values: &values, rows, cols, frame })
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
            density_max: 1.0,
            documented_rule: false,
            fingerprint: String::new(),
        };
        let cells = frame.square_cells(1, 2);
        assert_eq!((cells.rows, cells.cols, cells.area), (8, 12, 0.25));
        assert_eq!(frame.to_pixels(cells.centres[0].map(f64::from)), [-0.75, -0.75]);
        assert_eq!(frame.to_pixels(cells.centres[12 * 8 - 1].map(f64::from)), [4.75, 2.75]);
        assert!((frame.log_jacobian() - 0.0).abs() < 1e-15);
        // The corners are 1 and 2 deviations away, 1.5 and 4 with a margin of a pixel.
        assert_eq!((frame.reach(0.0), frame.reach(1.0)), (5f64.sqrt(), (1.5f64 * 1.5 + 16.0).sqrt()));
        let margin = frame.margin_within(10.0);
        assert!(frame.reach(margin) <= 10.0 && frame.reach(margin + 1.0) > 10.0, "{margin}");
        assert_eq!(frame.margin_within(1.0), 0.0);
    }
}
