//! How much of each pixel a path or a polygon covers, and the mixture of its color with what is below.
use super::{Figure, text};
use ab_glyph_rasterizer::{Rasterizer, point};

impl Figure {
    /// Draws a path into the pixels only.
    pub(super) fn stroke(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        let [mut low, mut high] = [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]];
        for (p, a) in points.iter().flat_map(|p| [(p, 0), (p, 1)]) {
            low[a] = low[a].min(p[a]);
            high[a] = high[a].max(p[a]);
        }
        let reach = 0.5 * width + 1.0;
        let end = [self.width, self.height];
        let range = |low: f64, high: f64, a: usize| {
            let clamped = |v: f64| v.clamp(0.0, f64::from(end[a])) as u32;
            clamped(low - reach)..clamped(high + reach + 1.0)
        };
        let (xs, ys) = (range(low[0], high[0], 0), range(low[1], high[1], 1));
        let columns = xs.len();
        let mut covered = vec![0.0f64; columns * ys.len()];
        for i in 0..points.len() {
            let (p, q) = (points[i], points[(i + 1).min(points.len() - 1)]);
            for y in range(p[1].min(q[1]), p[1].max(q[1]), 1) {
                for x in range(p[0].min(q[0]), p[0].max(q[0]), 0) {
                    let distance = distance_to_segment([f64::from(x) + 0.5, f64::from(y) + 0.5], p, q);
                    let cover = (0.5 * width + 0.5 - distance).clamp(0.0, 1.0);
                    let at = (y - ys.start) as usize * columns + (x - xs.start) as usize;
                    covered[at] = covered[at].max(cover);
                }
            }
        }
        for (i, cover) in covered.iter().enumerate().filter(|(_, c)| **c > 0.0) {
            let (x, y) = (xs.start + (i % columns) as u32, ys.start + (i / columns) as u32);
            let cover = (cover * text::LEVELS).round() / text::LEVELS;
            self.mix(x as i32, y as i32, color, opacity * cover);
        }
    }

    /// Fills a polygon in the pixels only.
    pub(super) fn fill(&mut self, points: &[[f64; 2]], color: [u8; 3], opacity: f64) {
        let end = [self.width, self.height].map(f64::from);
        let inside = |p: &[f64; 2]| [0, 1].map(|a| p[a].clamp(0.0, end[a]));
        let points: Vec<[f64; 2]> = points.iter().map(inside).collect();
        // The pixels that the polygon may cover. A small polygon does not pass over the whole figure.
        let low = [0, 1].map(|a| points.iter().map(|p| p[a]).fold(end[a], f64::min).floor());
        let high = [0, 1].map(|a| points.iter().map(|p| p[a]).fold(0.0, f64::max).ceil());
        let [columns, rows] = [0, 1].map(|a| (high[a] - low[a]).max(0.0) as usize);
        if columns == 0 || rows == 0 {
            return;
        }
        let mut raster = Rasterizer::new(columns, rows);
        let at = |p: [f64; 2]| point((p[0] - low[0]) as f32, (p[1] - low[1]) as f32);
        for i in 0..points.len() {
            raster.draw_line(at(points[i]), at(points[(i + 1) % points.len()]));
        }
        let [left, top] = low.map(|v| v as i32);
        raster.for_each_pixel_2d(|x, y, share| {
            let share = (f64::from(share).clamp(0.0, 1.0) * text::LEVELS).round() / text::LEVELS;
            if share > 0.0 {
                self.mix(left + x as i32, top + y as i32, color, opacity * share);
            }
        });
    }
}

fn distance_to_segment(x: [f64; 2], p: [f64; 2], q: [f64; 2]) -> f64 {
    let (d, r) = ([q[0] - p[0], q[1] - p[1]], [x[0] - p[0], x[1] - p[1]]);
    let length = d[0] * d[0] + d[1] * d[1];
    let t = if length > 0.0 { ((d[0] * r[0] + d[1] * r[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    (r[0] - t * d[0]).hypot(r[1] - t * d[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::{Draw, num_cases};

    /// Triangles of 0 to 60 pixels, inside, across and outside of the ends of a figure of 50 x 40 pixels, beside the share
    /// of 16 x 16 points of each pixel that lie inside.
    #[test]
    fn a_polygon_covers_the_points_inside_of_it() {
        let (mut draw, mut drawn) = (Draw(7), [0; 4]);
        let end = [50.0, 40.0];
        for case in 0..num_cases(60) {
            let size = draw.one(&[0.0, 0.3, 5.0, 30.0]);
            let center = [0, 1].map(|a| draw.uniform(-10.0, end[a] + 10.0));
            let corners: Vec<[f64; 2]> =
                (0..3).map(|_| center.map(|c| c + size * draw.uniform(-1.0, 1.0))).collect();
            let mut figure = Figure::white(50, 40);
            figure.fill(&corners, [0; 3], 1.0);
            // Corners outside are moved to the ends.
            let p: Vec<[f64; 2]> = corners.iter().map(|p| [0, 1].map(|a| p[a].clamp(0.0, end[a]))).collect();
            let side = |i: usize, x: [f64; 2]| {
                let (a, b) = (p[i], p[(i + 1) % 3]);
                (b[0] - a[0]) * (x[1] - a[1]) - (b[1] - a[1]) * (x[0] - a[0])
            };
            let area = side(0, p[2]).abs();
            for (x, y) in (0..40).flat_map(|y| (0..50).map(move |x| (x, y))) {
                let point = |k: u32| [x * 16 + k % 16, y * 16 + k / 16].map(|i| (f64::from(i) + 0.5) / 16.0);
                let is_inside = |at: [f64; 2]| {
                    let signs = [0, 1, 2].map(|i| side(i, at) > 0.0);
                    area > 0.0 && signs.iter().all(|&sign| sign == signs[0])
                };
                let share = (0..256).filter(|&k| is_inside(point(k))).count() as f64 / 256.0;
                let found = 1.0 - f64::from(figure.pixel(x, y)[0]) / 255.0;
                assert!(
                    (found - share).abs() < 0.08,
                    "case {case}: {found} {share} at {x}, {y}: {corners:?}"
                );
                drawn[usize::from(share > 0.0)] += 1;
            }
            let is_cut = corners != p;
            drawn[2 + usize::from(is_cut)] += usize::from(area > 1.0);
        }
        assert!(drawn.iter().all(|&count| count > 5), "empty and covered pixels, whole and cut: {drawn:?}");
    }
}
