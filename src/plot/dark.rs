//! The dark variant of a figure.
//!
//! Lines, text and paper get colors of the opposite lightness and the same hue, except light strong colors, which stay light, in the color space `OKLab` (B. Ottosson,
//! 2020): a lightness L becomes `PAPER_L + (INK_L - PAPER_L) d^(3/4)`, where d is the distance from white paper, the larger
//! one of 1 - L and 3.5 times the chroma. The power lightens colors of middle lightness, and the chroma lightens light
//! colors such as yellow; both would otherwise be too close to the dark paper. Densities, images, and what is drawn on them or in
//! their colors beside them, stay as they are. In an SVG file, translucent marks are mixed with the dark paper; in the
//! pixels, the mixture with white is recolored, which is a little lighter.
use super::{
    Figure,
    marks::{Colors, Mark},
    sheet::Rect,
};
use std::collections::HashMap;

/// The paper of dark figures.
pub(super) const PAPER: [u8; 3] = [13, 17, 23];
/// Lightness of white and of black in a dark figure.
const PAPER_L: f64 = 0.178;
const INK_L: f64 = 0.97;
/// Weight of the chroma in the distance of a color from white.
const CHROMA: f64 = 3.5;

impl Figure {
    /// This figure for a dark page: light text and lines on dark paper. Densities and images keep their colors.
    pub fn dark(&self) -> Figure {
        let mut dark = self.clone();
        if self.paper == PAPER {
            return dark;
        }
        dark.paper = PAPER;
        let kept: Vec<Rect> = self.marks.iter().filter_map(kept).collect();
        let mut known = HashMap::new();
        let mut recolored = |color| *known.entry(color).or_insert_with(|| turned(color));
        let mut is_kept = vec![false; (self.width * self.height) as usize];
        for rect in &kept {
            for y in rect.y..rect.bottom().min(self.height) {
                let row = (y * self.width) as usize;
                is_kept[row + rect.x as usize..row + rect.right().min(self.width) as usize].fill(true);
            }
        }
        for (pixel, _) in dark.rgb.as_chunks_mut::<3>().0.iter_mut().zip(is_kept).filter(|(_, kept)| !kept) {
            *pixel = recolored(*pixel);
        }
        let is_on_map = |points: &[[f64; 2]]| kept.iter().any(|rect| contains(rect, points));
        let mut marks = std::mem::take(&mut dark.marks);
        for mark in &mut marks {
            match mark {
                Mark::Text { at, color, .. } if !is_on_map(&[*at]) => *color = recolored(*color),
                Mark::Path { points, .. } | Mark::Area { points, .. } if is_on_map(points) => {}
                Mark::Path { color, colors: Colors::Paper, .. }
                | Mark::Area { color, colors: Colors::Paper, .. } => *color = recolored(*color),
                // Beside a map, in its colors.
                Mark::Path { points, width, color, opacity, .. } => {
                    dark.stroke(points, *width, *color, *opacity);
                }
                Mark::Area { points, color, opacity, .. } => dark.fill(points, *color, *opacity),
                Mark::Text { .. } | Mark::Raster { .. } => {}
            }
        }
        dark.marks = marks;
        dark
    }

    /// A color of text or lines on the paper of this figure.
    pub(super) fn on_paper(&self, color: [u8; 3]) -> [u8; 3] {
        if self.paper == PAPER { turned(color) } else { color }
    }
}

/// The rectangle of a raster that keeps its colors.
fn kept(mark: &Mark) -> Option<Rect> {
    match mark {
        Mark::Raster { rect, colors: Colors::Map } => Some(*rect),
        _ => None,
    }
}

fn contains(rect: &Rect, points: &[[f64; 2]]) -> bool {
    let [left, top, right, bottom] = rect.ends();
    points.iter().all(|[x, y]| (left..=right).contains(x) && (top..=bottom).contains(y))
}

/// The color of a line or a text in the dark variant.
fn turned(color: [u8; 3]) -> [u8; 3] {
    if color == [255; 3] {
        return PAPER;
    }
    let [l, a, b] = to_lab(color);
    let distance = (1.0 - l).max(CHROMA * a.hypot(b)).clamp(0.0, 1.0);
    let lightness = PAPER_L + (INK_L - PAPER_L) * distance.powf(0.75);
    // Strong colors may be outside of sRGB at their new lightness: they lose as much color as necessary.
    let (mut inside, mut outside) = (0.0, 1.0);
    let at = |share: f64| from_lab([lightness, share * a, share * b]);
    let fits = |rgb: [f64; 3]| rgb.iter().all(|v| (-1e-4..=1.0001).contains(v));
    if fits(at(1.0)) {
        inside = 1.0;
    }
    for _ in 0..8 {
        let middle = f64::midpoint(inside, outside);
        if fits(at(middle)) { inside = middle } else { outside = middle }
    }
    at(inside).map(|v| (255.0 * compressed(v.clamp(0.0, 1.0))).round() as u8)
}

/// Lightness and two color coordinates.
fn to_lab(color: [u8; 3]) -> [f64; 3] {
    let [r, g, b] = color.map(|v| linear(f64::from(v) / 255.0));
    let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
    let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
    let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
    [
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    ]
}

/// Linear red, green and blue.
fn from_lab([lightness, a, b]: [f64; 3]) -> [f64; 3] {
    let l = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let m = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let s = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    ]
}

/// From sRGB to linear light.
fn linear(v: f64) -> f64 {
    if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
}

/// From linear light to sRGB.
fn compressed(v: f64) -> f64 {
    if v <= 0.0031308 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::super::color::{GRID, INK, SERIES, time_color};
    use super::super::sheet::{Anchor, Sheet};
    use super::*;

    /// Contrast by WCAG 2: 1 for equal colors, 21 for black and white.
    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let luminance = |color: [u8; 3]| {
            let [r, g, b] = color.map(|v| linear(f64::from(v) / 255.0));
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn colors_of_lines_and_text_stand_out_from_the_paper() {
        assert!(contrast(turned(INK), PAPER) > 7.0);
        let times = (0..=10).map(|i| time_color(f64::from(i) / 10.0));
        for color in SERIES.into_iter().chain(times) {
            let dark = contrast(turned(color), PAPER);
            assert!(dark > 4.5, "{color:?} becomes {:?}: {dark}", turned(color));
        }
        let grid = contrast(turned(GRID), PAPER);
        assert!(grid > 1.1 && grid < 1.8, "{grid}");
    }

    /// Draws 20,000 pairs of colors.
    #[test]
    fn lightness_turns_and_the_hue_stays() {
        let mut state = 5_u64;
        let mut below = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let (mut strong, mut weak) = (0, 0);
        for _ in 0..20_000 {
            let pair: [[u8; 3]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| below()));
            let [x, y] = pair.map(to_lab);
            let [u, v] = pair.map(|color| to_lab(turned(color)));
            let is_weak = |c: [f64; 3]| CHROMA * c[1].hypot(c[2]) < 1.0 - c[0];
            if (x[0] - y[0]).abs() > 0.03 && is_weak(x) && is_weak(y) {
                weak += 1;
                assert_eq!(x[0] < y[0], u[0] > v[0], "{pair:?}");
            }
            let [before, after] = [x, u].map(|c| c[1].hypot(c[2]));
            if before > 0.05 && after > 0.05 {
                let turn = (x[1] * u[2] - x[2] * u[1]) / (before * after);
                assert!(turn.abs() < 0.1, "{pair:?}");
                strong += 1;
            }
        }
        assert!(strong > 5_000 && weak > 500, "{strong} {weak}");
    }

    #[test]
    fn rasters_and_what_is_drawn_on_them_keep_their_colors() {
        let mut sheet = Sheet::new(60, 40);
        let map = Rect { x: 10, y: 10, width: 20, height: 20 };
        sheet.raster(map, |x, _| [x as u8, 200, 90]);
        sheet.curve(&[[12.0, 20.0], [28.0, 20.0]], 2.0, [255; 3], 1.0);
        sheet.curve(&[[40.0, 20.0], [55.0, 20.0]], 2.0, SERIES[0], 1.0);
        sheet.text("t", [45, 30], 8, Anchor::Left, INK);
        let light = sheet.figure;
        let dark = light.dark();
        let is_in = |x: u32, y: u32| (10..30).contains(&x) && (10..30).contains(&y);
        for (x, y) in (0..60).flat_map(|x| (0..40).map(move |y| (x, y))) {
            let (from, to) = (light.pixel(x, y), dark.pixel(x, y));
            assert_eq!(to, if is_in(x, y) { from } else { turned(from) }, "{x} {y}");
        }
        let colors = |figure: &Figure| -> Vec<[u8; 3]> {
            let of = |mark: &Mark| match mark {
                Mark::Path { color, .. } | Mark::Text { color, .. } | Mark::Area { color, .. } => {
                    Some(*color)
                }
                Mark::Raster { .. } => None,
            };
            figure.marks.iter().filter_map(of).collect()
        };
        assert_eq!(colors(&dark), [[255; 3], turned(SERIES[0]), turned(INK)]);
        assert!(dark.to_svg().unwrap().contains("fill=\"#0D1117\""));
        assert_eq!(dark.dark(), dark);
        // The space beside a dark figure, and its title; a figure beside a dark one is dark.
        for stacked in [dark.hstack(&dark.vstack(&light)), light.hstack(&light.vstack(&dark))] {
            assert_eq!((stacked.pixel(5, 70), stacked.pixel(65, 5), stacked.paper), (PAPER, PAPER, PAPER));
        }
        let titled = Sheet::new(300, 40).figure.dark().with_title("A title");
        let lightest =
            (0..300).flat_map(|x| (0..92).map(move |y| (x, y))).map(|(x, y)| titled.pixel(x, y)[1]);
        assert!(lightest.max() > Some(150));
    }

    #[test]
    fn what_has_the_colors_of_a_map_beside_it_keeps_them() {
        let mut sheet = Sheet::new(20, 40);
        let triangle = [[2.0, 2.0], [18.0, 2.0], [10.0, 20.0]];
        sheet.with_map_colors(|sheet| sheet.area(&triangle, [250, 255, 160], 1.0));
        sheet.with_map_colors(|sheet| sheet.curve(&[[10.0, 30.0]], 6.0, [96, 220, 240], 1.0));
        let dark = sheet.figure.dark();
        assert_eq!((dark.pixel(10, 8), dark.pixel(10, 30)), ([250, 255, 160], [96, 220, 240]));
        assert!(matches!(dark.marks[0], Mark::Area { color: [250, 255, 160], .. }));
        // The arrowhead of a clipped color bar.
        let mut sheet = Sheet::new(300, 200);
        let bar = Rect { x: 20, y: 40, width: 20, height: 140 };
        sheet.color_bar(bar, super::super::ColorScale { max: 1.0 }, true, None).unwrap();
        assert_eq!(sheet.figure.dark().pixel(30, 36), sheet.figure.pixel(30, 36));
    }

    #[test]
    fn the_bar_of_a_line_colored_by_time_turns_with_the_line() {
        let mut sheet = Sheet::new(20, 40);
        let bar = Rect { x: 5, y: 5, width: 5, height: 30 };
        sheet.colors(bar, time_color, Colors::Paper).unwrap();
        let dark = sheet.figure.dark();
        assert_eq!(dark.pixel(7, 8), turned(sheet.figure.pixel(7, 8)));
    }
}
