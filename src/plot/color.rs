//! Colors: one perceptually uniform color scale, dark at zero, and the colors of lines and text.
//!
//! The scale is inferno (matplotlib, CC0): lightness grows evenly from black to pale yellow, so equal density
//! differences look equal, also in grayscale and to color-blind readers. A polynomial of degree 6 approximates its
//! 256-color table (M. Zucker; within 0.009, 0.013 and 0.034 in red, green and blue).
use super::ColorScale;

/// Text and axes.
pub(super) const INK: [u8; 3] = [38, 40, 48];
/// Frames and tick marks.
pub(super) const AXIS: [u8; 3] = [150, 152, 160];
/// Grid lines of charts.
pub(super) const GRID: [u8; 3] = [230, 231, 235];
/// Streamlines, which stay behind the series.
pub(super) const STREAM: [u8; 3] = [178, 181, 190];
/// Series in order; the first four also differ in lightness.
pub(super) const SERIES: [[u8; 3]; 8] = [
    [92, 60, 153],
    [214, 84, 44],
    [38, 128, 130],
    [222, 162, 38],
    [64, 118, 196],
    [168, 46, 98],
    [112, 138, 52],
    [92, 98, 116],
];

impl ColorScale {
    /// The color of a density; values beyond the scale get the color of its end.
    pub fn color(self, density: f64) -> [u8; 3] {
        inferno(density / self.max)
    }
}

/// The inferno scale at t in [0, 1].
pub(super) fn inferno(t: f64) -> [u8; 3] {
    const C: [[f64; 3]; 7] = [
        [0.0002189403691192265, 0.001651004631001012, -0.01948089843709184],
        [0.1065134194856116, 0.5639564367884091, 3.932712388889277],
        [11.60249308247187, -3.972853965665698, -15.9423941062914],
        [-41.70399613139459, 17.43639888205313, 44.35414519872813],
        [77.162935699427, -33.40235894210092, -81.80730925738993],
        [-71.31942824499214, 32.62606426397723, 73.20951985803202],
        [25.13112622477341, -12.24266895238567, -23.07032500287172],
    ];
    let t = if t > 0.0 { t.min(1.0) } else { 0.0 };
    std::array::from_fn(|channel| {
        let value = C.iter().rev().fold(0.0, |sum, c| sum * t + c[channel]);
        (255.0 * value.clamp(0.0, 1.0)).round() as u8
    })
}

/// The color of a time for a line on white; `t` is 0 at the start of the solve and 1 at its end. The ends of the
/// color scale are left out, because they are too close to white and to the text color.
pub(super) fn time_color(t: f64) -> [u8; 3] {
    inferno(0.12 + 0.70 * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Luma of BT.709.
    fn lightness([r, g, b]: [u8; 3]) -> f64 {
        0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
    }

    #[test]
    fn scale_maps_its_ends_and_clips_beyond() {
        let scale = ColorScale { max: 0.02 };
        assert_eq!(scale.color(0.0), inferno(0.0));
        assert_eq!(scale.color(0.02), inferno(1.0));
        assert_eq!(scale.color(1.0), inferno(1.0));
        assert_eq!(scale.color(-1.0), inferno(0.0));
        assert!(lightness(inferno(0.0)) < 1.0 && lightness(inferno(1.0)) > 240.0);
    }

    #[test]
    fn lightness_grows_along_the_whole_scale() {
        for i in 0..100 {
            let [a, b] = [i, i + 1].map(|i| lightness(inferno(f64::from(i) / 100.0)));
            assert!(b > a, "{i}: {a} {b}");
        }
    }

    #[test]
    fn colors_match_the_published_table() {
        // matplotlib's inferno at 0, 1/4, 1/2, 3/4, 1
        let table = [[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]];
        for (i, expected) in table.into_iter().enumerate() {
            let found = inferno(i as f64 / 4.0);
            assert!((0..3).all(|c| found[c].abs_diff(expected[c]) <= 9), "{i}: {found:?} {expected:?}");
        }
    }
}
