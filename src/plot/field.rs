//! Velocity fields over the plane: streamlines over the points that move along them, at several times side by side.
use super::{
    Figure, PlotError,
    color::{INK, SERIES},
    plane::{Panels, Plane},
    points,
    series::streamline,
    streams,
};

/// Maximum number of points in a panel; more would hide the streamlines.
const SHOWN: usize = 2_500;
const DOT: f64 = 5.0;

/// The points and the velocity of a flow at a time.
#[derive(Clone, Copy)]
pub struct FieldPanel<'a> {
    /// The time, for the title.
    pub t: f64,
    /// Points at this time, in the coordinates of the plane.
    pub points: &'a [[f64; 2]],
    /// The velocity at a point of the plane, in its units per time.
    pub velocity: &'a dyn Fn([f64; 2]) -> [f64; 2],
}

impl Plane<'_> {
    /// Streamlines of the velocity at several times, over the first 2,500 points of each time: a row of panels titled by
    /// `t`.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without panels or points, [`PlotError::Value`] for a point that is not finite,
    /// [`PlotError::Extent`] for a frame without extent.
    ///
    /// # Examples
    /// ```
    /// use flowline::plot::{ColorScale, Extent, extra::{FieldPanel, Plane}};
    /// let frame = Extent { x: [-1.0, 1.0], y: [1.0, -1.0] };
    /// let plane = Plane { frame, names: ["x", "y"], scale: ColorScale { max: 1.0 } };
    /// let panel = FieldPanel { t: 0.5, points: &[[0.2, 0.1]], velocity: &|[x, y]| [-y, x] };
    /// assert!(plane.field(&[panel]).is_ok());
    /// ```
    pub fn field(&self, panels: &[FieldPanel]) -> Result<Figure, PlotError> {
        if panels.is_empty() {
            return Err(PlotError::Nothing { what: "panels" });
        }
        panels.iter().try_for_each(|panel| points::check(panel.points))?;
        let count = panels.len() as u32;
        let side = (2400 / count).saturating_sub(36).clamp(120, 700);
        let mut row = Panels::row(*self, count, [side, side], false)?;
        let (x, y) = (self.frame.x, self.frame.y);
        for (rect, panel) in row.rects.clone().into_iter().zip(panels) {
            let [left, top, right, bottom] = rect.ends();
            let screen = |p: &[f64; 2]| {
                let place = |v: f64, [from, to]: [f64; 2], [low, high]: [f64; 2]| {
                    low + (v - from) / (to - from) * (high - low)
                };
                [place(p[0], x, [left, right]), place(p[1], y, [top, bottom])]
            };
            let inside = |[u, v]: [f64; 2]| {
                (left + DOT..right - DOT).contains(&u) && (top + DOT..bottom - DOT).contains(&v)
            };
            let dots = panel.points.iter().take(SHOWN).map(screen);
            dots.filter(|&dot| inside(dot)).for_each(|dot| row.sheet.curve(&[dot], DOT, SERIES[0], 0.4));
            for line in streams::streamlines([x, y], panel.velocity) {
                let line: Vec<[f64; 2]> = line.iter().map(screen).collect();
                streamline(&mut row.sheet, rect.ends(), &line, (1.8, INK));
            }
        }
        let titles: Vec<String> =
            panels.iter().map(|panel| format!("t = {}", (panel.t * 1000.0).round() / 1000.0)).collect();
        row.axes(&titles.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(row.sheet.figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{ColorScale, Extent};

    /// A field that points to the right has arrows of ink in each panel; points lie where they are, also with y down.
    #[test]
    fn panels_have_streamlines_and_points() {
        let velocity = |_: [f64; 2]| [1.0, 0.0];
        for y in [[0.0, 4.0], [4.0, 0.0]] {
            let frame = Extent { x: [0.0, 4.0], y };
            let plane = Plane { frame, names: ["x", "y"], scale: ColorScale { max: 1.0 } };
            let points = [[2.0, 1.0]];
            let panel = FieldPanel { t: 0.2, points: &points, velocity: &velocity };
            let still = |_: [f64; 2]| [0.0; 2];
            let bare = plane.field(&[FieldPanel { velocity: &still, ..panel }; 2]).unwrap();
            let figure = plane.field(&[panel; 2]).unwrap();
            let differ = figure.rgb.iter().zip(&bare.rgb).filter(|(a, b)| a != b).count();
            assert!(differ > 50_000, "{differ}");
            let violet: Vec<u32> = (0..bare.height)
                .filter(|&row| {
                    (0..bare.width).any(|column| {
                        let [r, g, b] = bare.pixel(column, row);
                        b > r && r > g && b - g > 20
                    })
                })
                .collect();
            // A quarter from the end of y at 0, below a title.
            let middle = violet.iter().sum::<u32>() / violet.len() as u32;
            let is_upper = middle < bare.height / 2;
            assert_eq!(is_upper, y[0] < y[1], "{middle} of {}", bare.height);
        }
    }

    #[test]
    fn a_figure_without_panels_or_points_is_refused() {
        let frame = Extent { x: [0.0, 1.0], y: [0.0, 1.0] };
        let plane = Plane { frame, names: ["x", "y"], scale: ColorScale { max: 1.0 } };
        assert!(matches!(plane.field(&[]), Err(PlotError::Nothing { what: "panels" })));
        let panel = |points: &'static [[f64; 2]]| FieldPanel { t: 0.0, points, velocity: &|p| p };
        assert!(matches!(plane.field(&[panel(&[])]), Err(PlotError::Nothing { what: "points" })));
        assert!(matches!(plane.field(&[panel(&[[f64::NAN, 0.0]])]), Err(PlotError::Value { .. })));
    }
}
