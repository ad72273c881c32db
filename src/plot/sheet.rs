//! A white canvas: text, lines, areas, rasters and axes in one style.
//!
//! The layout uses explicit rectangles instead of a chart builder, because heat maps need an exact aspect ratio
//! and several panels share one color bar. Everything is drawn twice: into the pixels, and as a [`Mark`] for
//! SVG.
use super::{
    ColorScale, Extent, Figure, Heatmap, PlotError,
    axis::{Axis, power_of_ten},
    color::{AXIS, GRID, INK, inferno},
    map::Cells,
    marks::{Colors, Mark},
    text,
};
use plotters::prelude::*;

/// Sizes of text, in pixels: 20, 16 and 14 units of length.
pub(super) const TITLE: u32 = 40;
pub(super) const LABEL: u32 = 32;
/// The space that the name of an axis has at least, also beside a shorter axis.
const SHORTEST: u32 = 200;
pub(super) const TICK: u32 = 28;
/// Length of a tick mark.
pub(super) const MARK: i32 = 9;

/// A rectangle of the canvas, in screen pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

impl Rect {
    pub(super) fn right(self) -> u32 {
        self.x + self.width
    }

    pub(super) fn bottom(self) -> u32 {
        self.y + self.height
    }

    /// Horizontal position of the center.
    fn center_x(self) -> i32 {
        (self.x + self.width / 2) as i32
    }

    /// Left, upper, right and lower edge.
    pub(super) fn ends(self) -> [f64; 4] {
        [self.x, self.y, self.right(), self.bottom()].map(f64::from)
    }
}

/// Which point of a text is at its position, and whether it is rotated to read upward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Top,
    Left,
    Right,
    Upwards,
}

/// A figure under construction.
pub(super) struct Sheet {
    pub figure: Figure,
    /// What the colors of the next paths and areas belong to.
    colors: Colors,
}

impl Sheet {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self::on(Figure::white(width, height))
    }

    /// A sheet with a figure on it.
    pub(super) fn on(figure: Figure) -> Self {
        Self { figure, colors: Colors::Paper }
    }

    /// Draws paths and areas in the colors of a density or an image.
    pub(super) fn with_map_colors(&mut self, draw: impl FnOnce(&mut Sheet)) {
        self.colors = Colors::Map;
        draw(self);
        self.colors = Colors::Paper;
    }

    pub(super) fn text(&mut self, text: &str, [x, y]: [i32; 2], size: u32, anchor: Anchor, color: [u8; 3]) {
        let (runs, width) = text::runs(text, f64::from(size));
        let (x, y, size) = (f64::from(x), f64::from(y), f64::from(size));
        let [x, y] = match anchor {
            Anchor::Top => [x - 0.5 * width, y + 0.8 * size],
            Anchor::Left => [x, y + text::HALF_DIGIT * size],
            Anchor::Right => [x - width, y + text::HALF_DIGIT * size],
            Anchor::Upwards => [x - 0.2 * size, y + 0.5 * width],
        };
        let upwards = anchor == Anchor::Upwards;
        for run in runs {
            let at = if upwards { [x - run.lift, y - run.x] } else { [x + run.x, y - run.lift] };
            text::cover(&run.text, run.size, at, upwards, |x, y, share| self.figure.mix(x, y, color, share));
            self.figure.marks.push(Mark::Text { text: run.text, at, size: run.size, upwards, color });
        }
    }

    /// A title above a rectangle, aligned with its left edge. It ends before the edge of the figure.
    pub(super) fn title(&mut self, text: &str, over: Rect) {
        let (text, size) = text::fitted(text, TITLE, self.figure.width.saturating_sub(over.x + 16));
        self.text(&text, [over.x as i32, over.y as i32 - 36], size, Anchor::Left, INK);
    }

    /// An antialiased path through screen points, `width` wide. The coverage of a pixel is computed once for the
    /// whole curve, from the distance to its nearest segment, so joints do not darken. (Wide paths of plotters
    /// are not smooth, and their joints darken.) A single point is a dot.
    pub(super) fn curve(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        self.figure.stroke(points, width, color, opacity);
        self.figure.marks.push(Mark::Path {
            points: points.to_vec(),
            width,
            color,
            opacity,
            colors: self.colors,
        });
    }

    /// A filled polygon whose sides do not cross.
    pub(super) fn area(&mut self, points: &[[f64; 2]], color: [u8; 3], opacity: f64) {
        self.figure.fill(points, color, opacity);
        self.figure.marks.push(Mark::Area { points: points.to_vec(), color, opacity, colors: self.colors });
    }

    /// A straight line or path on whole pixels, for axes.
    pub(super) fn line(&mut self, points: &[[f64; 2]], width: u32, color: [u8; 3]) -> Result<(), PlotError> {
        let path: Vec<(i32, i32)> =
            points.iter().map(|p| (p[0].round() as i32, p[1].round() as i32)).collect();
        let size = (self.figure.width, self.figure.height);
        let area = BitMapBackend::with_buffer(&mut self.figure.rgb, size).into_drawing_area();
        let style = rgb(color).stroke_width(width);
        area.draw(&PathElement::new(path.clone(), style)).map_err(failed)?;
        drop(area);
        let points = path.into_iter().map(|(x, y)| [f64::from(x) + 0.5, f64::from(y) + 0.5]).collect();
        self.figure.marks.push(Mark::Path {
            points,
            width: f64::from(width),
            color,
            opacity: 1.0,
            colors: Colors::Paper,
        });
        Ok(())
    }

    /// Colors each pixel of a rectangle by its column and row.
    pub(super) fn raster(&mut self, rect: Rect, color: impl Fn(u32, u32) -> [u8; 3]) {
        self.pixels(rect, color, Colors::Map);
    }

    fn pixels(&mut self, rect: Rect, color: impl Fn(u32, u32) -> [u8; 3], colors: Colors) {
        for y in 0..rect.height {
            for x in 0..rect.width {
                self.figure.set(rect.x + x, rect.y + y, color(x, y));
            }
        }
        self.figure.marks.push(Mark::Raster { rect, colors });
    }

    /// Draws dots, given by screen position and color, into the pixels of a raster. In SVG they are a part of the
    /// raster.
    pub(super) fn dots(
        &mut self,
        radius: i32,
        opacity: f64,
        dots: impl Iterator<Item = ([u32; 2], [u8; 3])>,
    ) -> Result<(), PlotError> {
        let size = (self.figure.width, self.figure.height);
        let area = BitMapBackend::with_buffer(&mut self.figure.rgb, size).into_drawing_area();
        for ([x, y], color) in dots {
            let style = rgb(color).mix(opacity).filled();
            area.draw(&Circle::new((x as i32, y as i32), radius, style)).map_err(failed)?;
        }
        Ok(())
    }

    /// The outline around a rectangle.
    pub(super) fn outline(&mut self, rect: Rect) -> Result<(), PlotError> {
        let (left, top) = (f64::from(rect.x) - 1.0, f64::from(rect.y) - 1.0);
        let (right, bottom) = (f64::from(rect.right()), f64::from(rect.bottom()));
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
        self.line(&corners, 1, AXIS)
    }

    /// Tick marks, labels and the name of an axis below a rectangle. A label that extends more than `overhang`
    /// pixels past an end is omitted, so that it does not touch the labels of the neighboring axis.
    pub(super) fn axis_below(
        &mut self,
        rect: Rect,
        axis: &Axis,
        name: &str,
        overhang: u32,
    ) -> Result<(), PlotError> {
        let y = rect.bottom() as i32;
        let room = [rect.x as i32 - overhang as i32, (rect.right() + overhang) as i32];
        for (value, number) in &axis.ticks {
            let x = f64::from(rect.x) + axis.at(*value) * f64::from(rect.width - 1);
            self.line(&[[x, f64::from(y)], [x, f64::from(y + MARK)]], 1, AXIS)?;
            let (x, half) = (x.round() as i32, text::width(number, TICK) / 2);
            if x - half >= room[0] && x + half <= room[1] {
                self.text(number, [x, y + MARK + 6], TICK, Anchor::Top, INK);
            }
        }
        let (name, size) =
            text::fitted(name, LABEL, (rect.width + 2 * overhang).saturating_sub(10).max(SHORTEST));
        self.text(&name, [rect.center_x(), y + MARK + TICK as i32 + 20], size, Anchor::Top, INK);
        Ok(())
    }

    /// An axis left of a rectangle; `axis.range` runs from the upper to the lower edge.
    pub(super) fn axis_left(&mut self, rect: Rect, axis: &Axis, name: &str) -> Result<(), PlotError> {
        let x = rect.x as i32 - 1;
        for (value, number) in &axis.ticks {
            let y = f64::from(rect.y) + axis.at(*value) * f64::from(rect.height - 1);
            self.line(&[[f64::from(x - MARK), y], [f64::from(x), y]], 1, AXIS)?;
            self.text(number, [x - MARK - 8, y.round() as i32], TICK, Anchor::Right, INK);
        }
        let at = x - MARK - 24 - axis.widest(TICK);
        let (name, size) = text::fitted(name, LABEL, (rect.height + 16).max(SHORTEST));
        self.text(&name, [at, (rect.y + rect.height / 2) as i32], size, Anchor::Upwards, INK);
        Ok(())
    }

    /// Tick marks, labels and a name right of a rectangle, for a color bar.
    pub(super) fn axis_right(&mut self, rect: Rect, axis: &Axis, name: &str) -> Result<(), PlotError> {
        let x = rect.right() as i32;
        for (value, number) in &axis.ticks {
            let y = f64::from(rect.y) + axis.at(*value) * f64::from(rect.height - 1);
            self.line(&[[f64::from(x), y], [f64::from(x + MARK), y]], 1, AXIS)?;
            self.text(number, [x + MARK + 8, y.round() as i32], TICK, Anchor::Left, INK);
        }
        let at = x + MARK + 24 + axis.widest(TICK) + LABEL as i32;
        self.text(name, [at, (rect.y + rect.height / 2) as i32], LABEL, Anchor::Upwards, INK);
        Ok(())
    }

    /// A grid over a rectangle at the ticks of both axes.
    pub(super) fn grid(&mut self, rect: Rect, x: &Axis, y: &Axis) -> Result<(), PlotError> {
        let [left, top, right, bottom] = [rect.x, rect.y, rect.right() - 1, rect.bottom() - 1].map(f64::from);
        for (value, _) in &x.ticks {
            let at = left + x.at(*value) * (right - left);
            self.line(&[[at, top], [at, bottom]], 2, GRID)?;
        }
        for (value, _) in &y.ticks {
            let at = top + y.at(*value) * (bottom - top);
            self.line(&[[left, at], [right, at]], 2, GRID)?;
        }
        Ok(())
    }

    /// Axes around a rectangle with the limits `frame`. The y axis has a name and labels only if `named` is true.
    pub(super) fn plane_axes(
        &mut self,
        rect: Rect,
        frame: Extent,
        names: [&str; 2],
        named: bool,
        overhang: u32,
    ) -> Result<(), PlotError> {
        self.outline(rect)?;
        let ticks = if rect.width < 400 { 3 } else { 5 };
        let (x, y) = (Axis::round(frame.x, ticks, 1.0), Axis::round(frame.y, ticks, 1.0));
        self.axis_below(rect, &x, names[0], overhang)?;
        if named { self.axis_left(rect, &y, names[1]) } else { self.axis_left(rect, &y.bare(), "") }
    }

    /// A heat map in a rectangle, in the colors of a scale.
    pub(super) fn heat(&mut self, rect: Rect, map: &Heatmap, scale: ColorScale, cells: Cells) {
        self.raster(rect, |x, y| scale.color(map.on_screen([x, y], [rect.width, rect.height], cells)));
    }

    /// A bar of colors with an outline: `color(0.0)` at the bottom, `color(1.0)` at the top. `colors`
    /// says what else has these colors.
    pub(super) fn colors(
        &mut self,
        rect: Rect,
        color: impl Fn(f64) -> [u8; 3],
        colors: Colors,
    ) -> Result<(), PlotError> {
        self.pixels(rect, |_, y| color(1.0 - (f64::from(y) + 0.5) / f64::from(rect.height)), colors);
        self.outline(rect)
    }

    /// The color bar of a scale. The label has the unit: per square pixel, or per product of the units of two
    /// `columns`. If values lie above the scale (`clipped`), the bar ends in an arrowhead.
    pub(super) fn color_bar(
        &mut self,
        rect: Rect,
        scale: ColorScale,
        clipped: bool,
        columns: Option<[&str; 2]>,
    ) -> Result<(), PlotError> {
        self.colors(rect, inferno, Colors::Map)?;
        if clipped {
            let [left, top, right, _] = rect.ends();
            let tip = [f64::midpoint(left, right), top - 0.5 * (right - left) - 1.0];
            let arrowhead = [[left, top - 1.0], [right, top - 1.0], tip];
            self.with_map_colors(|sheet| sheet.area(&arrowhead, inferno(1.0), 1.0));
        }
        let exponent = -scale.max.log10().floor() as i32;
        let axis = Axis::round([scale.max, 0.0], 6, 10f64.powi(-exponent));
        self.axis_right(rect, &axis, &bar_label(columns, exponent, rect.height))
    }
}

/// The unit of a density whose values are drawn multiplied by `10^exponent`.
fn area_unit(exponent: i32) -> String {
    match exponent {
        0 => "per square pixel".to_owned(),
        1 => "per 10 square pixels".to_owned(),
        2.. => format!("per 10^{exponent} square pixels"),
        _ => format!("10^{} per square pixel", -exponent),
    }
}

/// The label of a color bar whose values are multiplied by `10^exponent`: the longest of several that fits its height.
fn bar_label(columns: Option<[&str; 2]>, exponent: i32, height: u32) -> String {
    let power = if exponent == 0 { String::new() } else { power_of_ten(-exponent) };
    let units = match columns {
        None => vec![area_unit(exponent)],
        Some([a, b]) => {
            let per = |unit: &str| format!("{power} per unit of {unit}").trim_start().to_owned();
            vec![per(&format!("{a} × {b}")), per("area"), power]
        }
    };
    let mut labels =
        units.into_iter().filter(|unit| !unit.is_empty()).map(|unit| format!("density ({unit})"));
    labels.find(|label| text::width(label, LABEL) <= height as i32).unwrap_or_else(|| "density".to_owned())
}

pub(super) fn rgb([r, g, b]: [u8; 3]) -> RGBColor {
    RGBColor(r, g, b)
}

pub(super) fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PlotError {
    PlotError::Draw { message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_covers_its_width_once_at_joints_too() {
        let mut sheet = Sheet::new(40, 20);
        sheet.curve(&[[5.0, 10.5], [20.0, 10.5], [30.0, 10.5]], 3.0, [0; 3], 0.5);
        let column = |x| (7..15).map(|y| sheet.figure.pixel(x, y)[0]).collect::<Vec<_>>();
        assert_eq!(column(20), [255, 255, 128, 128, 128, 255, 255, 255]);
        assert_eq!(column(12), column(20));
        assert_eq!(column(36), [255; 8]);
    }

    #[test]
    fn an_area_is_filled_inside_and_half_at_half_pixels() {
        let mut sheet = Sheet::new(20, 20);
        sheet.area(&[[4.0, 4.0], [12.5, 4.0], [12.5, 10.0], [4.0, 10.0]], [0; 3], 1.0);
        let row = |y| [3, 4, 11, 12, 13].map(|x| sheet.figure.pixel(x, y)[0]);
        assert_eq!(row(4), [255, 0, 0, 128, 255]);
        assert_eq!(row(9), row(4));
        assert_eq!((row(3), row(10)), ([255; 5], [255; 5]));
    }

    #[test]
    fn units_of_area_are_written_out() {
        assert_eq!(area_unit(0), "per square pixel");
        assert_eq!(area_unit(4), "per 10^4 square pixels");
        assert_eq!(area_unit(12), "per 10^12 square pixels");
    }

    #[test]
    fn the_label_of_a_color_bar_fits_beside_it() {
        let names = Some(["bill_mm", "flipper_mm"]);
        assert_eq!(bar_label(names, 2, 2000), "density (10^\u{2212}2 per unit of bill_mm × flipper_mm)");
        assert_eq!(bar_label(Some(["x", "y"]), 0, 2000), "density (per unit of x × y)");
        for exponent in [0, 2] {
            for height in [120, 250, 400, 600] {
                for names in [None, names] {
                    let label = bar_label(names, exponent, height);
                    assert!(text::width(&label, LABEL) <= height as i32, "{label} in {height} pixels");
                }
            }
        }
        assert_eq!(bar_label(names, 2, 300), "density (10^\u{2212}2)");
        assert_eq!(bar_label(names, 0, 150), "density");
    }
}
