//! The flow as an animation: points moving from the base density to the data.
//!
//! A frame draws every point as a small light on a dark background; lights add up. There are few colors, because GIF
//! compresses runs of one color.
use super::{PlotError, color::inferno, figure::save_bytes, plane::Plane, points::check};
use crate::io::raster::encode_animation;
use std::path::Path;

/// The longer side, in pixels.
const SIDE: f64 = 480.0;
/// Maximum number of points.
const SHOWN: usize = 2_500;
/// Colors of the palette.
const COLORS: usize = 8;
/// Duration of a frame, of the first and of the last, in hundredths of a second.
const DELAY: u16 = 5;
const FIRST: u16 = 50;
const LAST: u16 = 250;
/// Radius of a light in pixels, and the brightness at the center of a single light, from 0 to 1.
const REACH: f64 = 1.9;
const ALONE: f64 = 0.6;

/// Frames that repeat forever, as in a GIF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Animation {
    size: [u16; 2],
    palette: Vec<[u8; 3]>,
    /// The palette indices of each frame, and its duration in hundredths of a second.
    frames: Vec<(Vec<u8>, u16)>,
}

impl Plane<'_> {
    /// Animates points that move from the base density to the data. `way` has a time and the points at this time for
    /// each frame; a point has the same index in every frame.
    ///
    /// At most the first 2,500 points are drawn. A frame lasts 0.05 s, the first one 0.5 s and the last one 2.5 s.
    ///
    /// # Errors
    /// As [`flow_panels`](super::flow_panels).
    ///
    /// # Examples
    /// ```
    /// use flowline::plot::{ColorScale, Extent, extra::Plane};
    /// let frame = Extent { x: [-1.0, 1.0], y: [1.0, -1.0] };
    /// let plane = Plane { frame, names: ["x", "y"], scale: ColorScale { max: 1.0 } };
    /// let way = [(0.0, &[[0.0, 0.0]][..]), (1.0, &[[0.5, 0.5]])];
    /// assert_eq!(&plane.flow_animation(&way)?.to_gif_bytes()?[..6], b"GIF89a");
    /// # Ok::<(), flowline::plot::PlotError>(())
    /// ```
    pub fn flow_animation(&self, way: &[(f64, &[[f64; 2]])]) -> Result<Animation, PlotError> {
        if way.is_empty() {
            return Err(PlotError::Nothing { what: "frames" });
        }
        self.frame.check()?;
        let aspect = self.frame.aspect();
        let size = [SIDE * aspect.min(1.0), SIDE / aspect.max(1.0)].map(|side| side.round().max(16.0) as u16);
        let last = way.len() - 1;
        let mut frames = Vec::with_capacity(way.len());
        for (i, (_, points)) in way.iter().enumerate() {
            check(points)?;
            let delay = if i == last {
                LAST
            } else if i == 0 {
                FIRST
            } else {
                DELAY
            };
            frames.push((self.lights(&points[..points.len().min(SHOWN)], size), delay));
        }
        let palette = (0..COLORS).map(|i| inferno(i as f64 / (COLORS - 1) as f64)).collect();
        Ok(Animation { size, palette, frames })
    }

    /// The palette indices of a frame.
    fn lights(&self, points: &[[f64; 2]], [width, height]: [u16; 2]) -> Vec<u8> {
        let [across, down] = [usize::from(width), usize::from(height)];
        let mut light = vec![0.0_f64; across * down];
        for p in points {
            let at = |v: f64, [from, to]: [f64; 2], n: usize| (v - from) / (to - from) * n as f64 - 0.5;
            let [x, y] = [at(p[0], self.frame.x, across), at(p[1], self.frame.y, down)];
            let around = |c: f64, n: usize| {
                let from = (c - REACH).ceil().max(0.0) as usize;
                from..((c + REACH).floor() + 1.0).clamp(0.0, n as f64) as usize
            };
            for row in around(y, down) {
                for column in around(x, across) {
                    let far = (column as f64 - x).hypot(row as f64 - y) / REACH;
                    light[row * across + column] += (1.0 - far * far).max(0.0);
                }
            }
        }
        let rate = -(1.0 - ALONE).ln();
        let place = |sum: &f64| ((1.0 - (-rate * sum).exp()) * (COLORS - 1) as f64).round() as u8;
        light.iter().map(place).collect()
    }
}

impl Animation {
    /// Pixels: width, height.
    pub fn size(&self) -> [u32; 2] {
        self.size.map(u32::from)
    }

    /// Number of frames.
    pub fn num_frames(&self) -> usize {
        self.frames.len()
    }

    /// The animation as a GIF file in memory. The bytes are deterministic.
    ///
    /// # Errors
    /// [`PlotError::Encode`].
    pub fn to_gif_bytes(&self) -> Result<Vec<u8>, PlotError> {
        let [width, height] = self.size();
        encode_animation(self.size, &self.palette, &self.frames).map_err(|source| PlotError::Encode {
            width,
            height,
            source,
        })
    }

    /// Writes a GIF file. The data go to a temporary file, which is synced and then renamed to `path`.
    ///
    /// # Errors
    /// As [`Figure::save`](super::Figure::save).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), PlotError> {
        save_bytes(path.as_ref(), &self.to_gif_bytes()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{ColorScale, Extent};

    const PLANE: Plane<'static> = Plane {
        frame: Extent { x: [0.0, 2.0], y: [1.0, 0.0] },
        names: ["x", "y"],
        scale: ColorScale { max: 1.0 },
    };

    #[test]
    fn a_point_moves_from_frame_to_frame() {
        let ways: Vec<(f64, [[f64; 2]; 1])> =
            (0..5).map(|i| (0.25 * f64::from(i), [[0.2 + 0.4 * f64::from(i), 0.25]])).collect();
        let way: Vec<(f64, &[[f64; 2]])> = ways.iter().map(|(t, p)| (*t, &p[..])).collect();
        let animation = PLANE.flow_animation(&way).unwrap();
        assert_eq!((animation.size(), animation.num_frames()), ([480, 240], 5));
        for (i, (pixels, _)) in animation.frames.iter().enumerate() {
            let brightest = (0..pixels.len()).max_by_key(|&k| (pixels[k], usize::MAX - k)).unwrap();
            let (x, y) = (brightest % 480, brightest / 480);
            assert!(x.abs_diff((0.1 + 0.2 * i as f64).mul_add(480.0, 0.0) as usize) <= 1, "{i}: {x}");
            assert!(y.abs_diff(180) <= 1, "{i}: {y}");
        }
        assert_eq!(
            animation.to_gif_bytes().unwrap(),
            PLANE.flow_animation(&way).unwrap().to_gif_bytes().unwrap()
        );
    }

    #[test]
    fn the_file_holds_all_frames_and_repeats() {
        let way = [(0.0, &[[1.0, 0.5]][..]), (0.5, &[[1.2, 0.5]]), (1.0, &[[1.4, 0.5]])];
        let bytes = PLANE.flow_animation(&way).unwrap().to_gif_bytes().unwrap();
        assert!(bytes.windows(11).any(|part| part == b"NETSCAPE2.0"));
        let mut decoder = gif::DecodeOptions::new().read_info(&bytes[..]).unwrap();
        let mut delays = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            delays.push(frame.delay);
            assert!(frame.buffer.iter().any(|&place| place > 0));
        }
        assert_eq!(delays, [FIRST, DELAY, LAST]);
    }

    #[test]
    fn points_outside_are_dark_and_no_points_are_refused() {
        let far = PLANE.flow_animation(&[(0.0, &[[9.0, 9.0]][..])]).unwrap();
        assert!(far.frames[0].0.iter().all(|&place| place == 0));
        assert!(matches!(PLANE.flow_animation(&[]), Err(PlotError::Nothing { what: "frames" })));
        assert!(matches!(
            PLANE.flow_animation(&[(0.0, &[][..])]),
            Err(PlotError::Nothing { what: "points" })
        ));
    }
}
