//! Samples as scatter plots, as histograms, and along the flow from the base density to the data.
use super::{
    ColorScale, Extent, Figure, Heatmap, PlotError,
    axis::thousands,
    color::inferno,
    map::{Cells, Histogram},
    plane::{ONE, Panels, Plane, TWO},
    sheet::{Rect, Sheet},
};

/// Maximum number of points in a scatter plot; more would overlap.
const SCATTERED: usize = 6_000;
/// Maximum number of cells along a side of a small panel.
const SMALL: f64 = 110.0;
/// Lowest position on the color scale of a scattered point: single points stay visible on the dark background.
const LONE: f64 = 0.3;

/// Points in the coordinates of `frame` as a scatter and as a histogram, side by side on one scale with its
/// color bar.
///
/// A scattered point has the color of the histogram's density around it, with a minimum brightness. At most the
/// first 6,000 points are scattered; all are counted. Pass the scale of the true density to compare with it.
///
/// # Errors
/// [`PlotError::Value`] for a point that is not finite, [`PlotError::Nothing`] without points,
/// [`PlotError::Extent`] for a frame without extent.
pub fn sample_scatter(points: &[[f64; 2]], frame: Extent, scale: ColorScale) -> Result<Figure, PlotError> {
    Plane::unnamed(frame, scale).samples(points)
}

/// A histogram of points in the coordinates of `frame`. Without `scale`, the color scale is computed from the
/// histogram.
///
/// # Errors
/// As [`sample_scatter`].
pub fn histogram(
    title: &str,
    points: &[[f64; 2]],
    frame: Extent,
    scale: Option<ColorScale>,
) -> Result<Figure, PlotError> {
    let counted = Histogram::of_parts(points.len(), std::iter::once(Ok::<_, PlotError>(points)), frame)?;
    let scale = scale.unwrap_or_else(|| ColorScale::of(&counted.map()));
    Plane::unnamed(frame, scale).heat_maps(&[(title, &counted.map())], ONE, Cells::Flat)
}

/// The same points at several times, from the base density to the data: a row of histograms titled by `t`.
///
/// Each panel has its own scale: on the scale of the data, the wide base density would be black.
///
/// # Errors
/// As [`sample_scatter`]; [`PlotError::Nothing`] without panels.
pub fn flow_panels(panels: &[(f64, &[[f64; 2]])], frame: Extent) -> Result<Figure, PlotError> {
    Plane::unnamed(frame, ColorScale { max: 1.0 }).flow_panels(panels)
}

impl Plane<'_> {
    /// Points as a scatter and as a histogram, see [`sample_scatter`].
    ///
    /// # Errors
    /// As [`sample_scatter`].
    pub fn samples(&self, points: &[[f64; 2]]) -> Result<Figure, PlotError> {
        check(points)?;
        let mut panels = Panels::row(*self, 2, TWO, true)?;
        let counted = Histogram::of(points, self.frame, f64::INFINITY);
        let scattered = &points[..points.len().min(SCATTERED)];
        scatter(&mut panels.sheet, panels.rects[0], scattered, &counted.map(), self.scale)?;
        panels.sheet.heat(panels.rects[1], &counted.map(), self.scale, Cells::Flat);
        let number = |n: usize| thousands(&n.to_string());
        let first = format!("{} samples", number(scattered.len()));
        let second = format!("Histogram of {} samples", number(points.len()));
        panels.axes(&[&first, &second])?;
        panels.bar(counted.values.iter().any(|v| *v > self.scale.max))?;
        Ok(panels.sheet.figure)
    }

    /// A histogram of `num_points` points that arrive in parts, so that only one part is in memory.
    ///
    /// # Errors
    /// The error of a part, or as [`sample_scatter`].
    pub fn histogram<P: AsRef<[[f64; 2]]>, E: From<PlotError>>(
        &self,
        title: &str,
        num_points: usize,
        parts: impl Iterator<Item = Result<P, E>>,
    ) -> Result<Figure, E> {
        let counted = Histogram::of_parts(num_points, parts, self.frame)?;
        Ok(self.heat_maps(&[(title, &counted.map())], ONE, Cells::Flat)?)
    }

    /// Points at several times, see [`flow_panels`].
    ///
    /// # Errors
    /// As [`flow_panels`].
    pub fn flow_panels(&self, panels: &[(f64, &[[f64; 2]])]) -> Result<Figure, PlotError> {
        if panels.is_empty() {
            return Err(PlotError::Nothing { what: "panels" });
        }
        for (_, points) in panels {
            check(points)?;
        }
        self.frame.check()?;
        let count = panels.len() as u32;
        let side = (1760 / count).saturating_sub(36).clamp(120, 600);
        let mut row = Panels::row(*self, count, [side, side], false)?;
        for (&rect, (_, points)) in row.rects.iter().zip(panels) {
            let counted = Histogram::of(points, self.frame, SMALL);
            row.sheet.heat(rect, &counted.map(), ColorScale::of(&counted.map()), Cells::Smooth);
        }
        let titles: Vec<String> =
            panels.iter().map(|(t, _)| format!("t = {}", (t * 1000.0).round() / 1000.0)).collect();
        row.axes(&titles.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(row.sheet.figure)
    }
}

pub(super) fn check(points: &[[f64; 2]]) -> Result<(), PlotError> {
    if points.is_empty() {
        return Err(PlotError::Nothing { what: "points" });
    }
    match points.iter().enumerate().find(|(_, p)| !(p[0].is_finite() && p[1].is_finite())) {
        None => Ok(()),
        Some((index, p)) => {
            let value = if p[0].is_finite() { p[1] } else { p[0] };
            Err(PlotError::Value { what: "coordinate of point", index, value })
        }
    }
}

/// Points on a background in the color of density 0. Points of low density are drawn first.
fn scatter(
    sheet: &mut Sheet,
    rect: Rect,
    points: &[[f64; 2]],
    density: &Heatmap,
    scale: ColorScale,
) -> Result<(), PlotError> {
    let Extent { x, y } = density.frame;
    sheet.raster(rect, |_, _| inferno(0.0));
    let place = |p: &[f64; 2]| {
        let (u, v) = ((p[0] - x[0]) / (x[1] - x[0]), (p[1] - y[0]) / (y[1] - y[0]));
        let (col, row) = (u * f64::from(rect.width), v * f64::from(rect.height));
        let inside = col >= 2.0
            && row >= 2.0
            && col < f64::from(rect.width) - 2.0
            && row < f64::from(rect.height) - 2.0;
        inside.then_some((col as u32, row as u32))
    };
    let mut placed: Vec<(f64, u32, u32)> = points
        .iter()
        .filter_map(place)
        .map(|(col, row)| {
            (density.on_screen([col, row], [rect.width, rect.height], Cells::Smooth) / scale.max, col, row)
        })
        .collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let dot = |(t, col, row): (f64, u32, u32)| ([rect.x + col, rect.y + row], inferno(t.max(LONE)));
    sheet.dots(2, 0.9, placed.into_iter().map(dot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{
        chart::LEFT,
        plane::{GAP, TOP},
    };

    const FRAME: Extent = Extent { x: [0.0, 100.0], y: [0.0, 100.0] };

    /// Deterministic points on a ring.
    fn ring(n: usize) -> Vec<[f64; 2]> {
        (0..n)
            .map(|i| {
                let (a, r) = (i as f64 * 2.399_963, 30.0 + 5.0 * (i as f64 * 0.754).sin());
                [50.0 + r * a.cos(), 50.0 + r * a.sin()]
            })
            .collect()
    }

    #[test]
    fn scatter_and_histogram_show_the_same_points() {
        let points = ring(4000);
        let figure = sample_scatter(&points, FRAME, ColorScale { max: 4e-4 }).unwrap();
        assert!((1500..2100).contains(&figure.width), "{}", figure.width);
        let lit = |panel: u32, center: [f64; 2]| {
            let at = |c: f64| (c / 100.0 * f64::from(TWO[0])) as u32;
            let (left, top) = (LEFT + panel * (TWO[0] + GAP) + at(center[0]), TOP + at(center[1]));
            (0..400).filter(|i| figure.pixel(left + i % 20, top + i / 20)[0] > 60).count()
        };
        for panel in 0..2 {
            assert!(lit(panel, [78.0, 50.0]) > 20, "panel {panel}");
            assert_eq!(lit(panel, [50.0, 50.0]), 0, "panel {panel}");
        }
    }

    #[test]
    fn flow_has_a_panel_for_each_time() {
        let (a, b) = (ring(500), ring(300));
        let figure = flow_panels(&[(0.0, &a), (0.5, &b), (1.0, &a)], FRAME).unwrap();
        assert!((1200..=2010).contains(&figure.width), "{}", figure.width);
        assert!(matches!(flow_panels(&[], FRAME), Err(PlotError::Nothing { what: "panels" })));
    }

    #[test]
    fn invalid_points_are_refused() {
        let message =
            histogram("", &[[1.0, 2.0], [3.0, f64::INFINITY]], FRAME, None).unwrap_err().to_string();
        assert!(message.contains("coordinate of point 1 is inf"), "{message}");
        assert!(matches!(
            sample_scatter(&[], FRAME, ColorScale { max: 1.0 }),
            Err(PlotError::Nothing { what: "points" })
        ));
    }
}
