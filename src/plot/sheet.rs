//! A white sheet to draw on: text, lines, axes, heat maps and color bars in one style.
//!
//! Knows screen pixels and the style; not what a figure shows. Layout is by explicit rectangles, not by a chart
//! builder: a heat map needs an exact aspect ratio, and several panels need one color bar.
use super::{
    ColorScale, Extent, Figure, Heatmap, PlotError,
    color::{FAINT, INK, inferno},
    density::AxisNames,
    map::Cells,
};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::sync::Once;

/// Name under which the compiled-in font is registered with plotters.
const FONT: &str = "flowline";
/// Heights of text, in pixels.
pub(super) const TITLE: u32 = 38;
pub(super) const LABEL: u32 = 30;
pub(super) const TICK: u32 = 26;
/// Length of a tick mark.
pub(super) const MARK: i32 = 9;

/// A rectangle of the sheet, in screen pixels.
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

    /// Middle of the upper edge.
    fn center_x(self) -> i32 {
        (self.x + self.width / 2) as i32
    }
}

/// Which point of a text stands at its position, and whether it is turned to read upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Top,
    Left,
    Right,
    Upwards,
}

/// Where numbers lie on an axis of the screen, and which of them are written.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub range: [f64; 2],
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Ticks at about `count` round numbers, written as they are divided by `unit`.
    pub(super) fn round(range: [f64; 2], count: usize, unit: f64) -> Self {
        let step = round_step((range[1] - range[0]).abs() / unit / count as f64);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (low, high) = (range[0].min(range[1]) / unit, range[0].max(range[1]) / unit);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks =
            (first..=last).map(|i| i as f64 * step).map(|v| (v * unit, written(v, decimals))).collect();
        Self { range, ticks }
    }

    /// The same axis with its marks but no numbers.
    pub(super) fn bare(&self) -> Self {
        Self { ticks: self.ticks.iter().map(|(v, _)| (*v, String::new())).collect(), ..*self }
    }

    /// Width of the widest number, in screen pixels.
    pub(super) fn widest(&self) -> Result<i32, PlotError> {
        self.ticks.iter().try_fold(0, |widest, (_, text)| Ok(Sheet::text_width(text, TICK)?.max(widest)))
    }

    /// Position of a number between the ends, in [0, 1].
    pub(super) fn at(&self, value: f64) -> f64 {
        (value - self.range[0]) / (self.range[1] - self.range[0])
    }
}

/// The least of 1, 2, 5 times a power of ten that is no smaller than `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|m| m * decade)
        .find(|s| *s >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * decade)
}

fn written(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if value.abs() >= 1e4 { thousands(&text) } else { text };
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text.replace('-', "\u{2212}")
    }
}

/// The size of a raised text.
fn small(size: u32) -> u32 {
    size * 7 / 10
}

/// `30000` as `30 000`.
pub(super) fn thousands(digits: &str) -> String {
    let n = digits.len();
    digits
        .char_indices()
        .flat_map(|(i, c)| (i > 0 && (n - i).is_multiple_of(3)).then_some(' ').into_iter().chain([c]))
        .collect()
}

/// A figure in the making.
pub(super) struct Sheet {
    pub figure: Figure,
}

impl Sheet {
    pub(super) fn new(width: u32, height: u32) -> Self {
        static FONTS: Once = Once::new();
        FONTS.call_once(|| {
            let bytes = epaint_default_fonts::UBUNTU_LIGHT;
            assert!(
                plotters::style::register_font(FONT, FontStyle::Normal, bytes).is_ok(),
                "invariant: the font is one"
            );
        });
        Self { figure: Figure::white(width, height) }
    }

    /// Lets plotters draw into the pixels.
    pub(super) fn draw<T>(
        &mut self,
        f: impl FnOnce(&DrawingArea<BitMapBackend, plotters::coord::Shift>) -> Result<T, PlotError>,
    ) -> Result<T, PlotError> {
        let size = (self.figure.width, self.figure.height);
        f(&BitMapBackend::with_buffer(&mut self.figure.rgb, size).into_drawing_area())
    }

    pub(super) fn text(
        &mut self,
        text: &str,
        [x, y]: [i32; 2],
        size: u32,
        anchor: Anchor,
        color: [u8; 3],
    ) -> Result<(), PlotError> {
        if let Some((base, raised)) = text.split_once('^') {
            return self.raised_text(base, raised, [x, y], size, anchor, color);
        }
        let (horizontal, vertical) = match anchor {
            Anchor::Top => (HPos::Center, VPos::Top),
            Anchor::Left => (HPos::Left, VPos::Center),
            Anchor::Right => (HPos::Right, VPos::Center),
            Anchor::Upwards => (HPos::Center, VPos::Bottom),
        };
        let font = (FONT, size).into_font();
        let font = if anchor == Anchor::Upwards { font.transform(FontTransform::Rotate270) } else { font };
        // A line of digits has no descenders: its middle lies above that of the font's box.
        let y = if matches!(anchor, Anchor::Left | Anchor::Right) { y + size as i32 / 9 } else { y };
        let color = rgb(color);
        let style = TextStyle::from(font).color(&color).pos(Pos::new(horizontal, vertical));
        self.draw(|area| area.draw_text(text, &style, (x, y)).map_err(failed))
    }

    /// A text with a smaller one raised behind it, as a power has it: the font has no raised minus.
    fn raised_text(
        &mut self,
        base: &str,
        raised: &str,
        [x, y]: [i32; 2],
        size: u32,
        anchor: Anchor,
        color: [u8; 3],
    ) -> Result<(), PlotError> {
        let (first, second) = (Self::text_width(base, size)?, Self::text_width(raised, small(size))?);
        let left = match anchor {
            Anchor::Left => x,
            Anchor::Right => x - first - second,
            Anchor::Top | Anchor::Upwards => x - i32::midpoint(first, second),
        };
        // Both hang from the middle of the line.
        let y = if matches!(anchor, Anchor::Top | Anchor::Upwards) { y + size as i32 / 2 } else { y };
        self.text(base, [left, y], size, Anchor::Left, color)?;
        self.text(raised, [left + first + 1, y - size as i32 / 3], small(size), Anchor::Left, color)
    }

    /// A title over a rectangle.
    pub(super) fn title(&mut self, text: &str, over: Rect) -> Result<(), PlotError> {
        let y = over.y as i32 - TITLE as i32 - 20;
        self.text(text, [over.center_x(), y], TITLE, Anchor::Top, INK)
    }

    /// Width of a text in pixels.
    pub(super) fn text_width(text: &str, size: u32) -> Result<i32, PlotError> {
        if let Some((base, raised)) = text.split_once('^') {
            return Ok(Self::text_width(base, size)? + Self::text_width(raised, small(size))?);
        }
        let size = (FONT, size).into_font().box_size(text);
        size.map(|(width, _)| width as i32).map_err(|error| PlotError::Draw { message: error.to_string() })
    }

    /// A smooth curve through screen points, `width` wide: each pixel is covered by its distance to the nearest segment, once
    /// for the whole curve, so joints do not darken (plotters' wide paths are neither).
    pub(super) fn curve(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        let [mut low, mut high] = [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]];
        for (p, a) in points.iter().flat_map(|p| [(p, 0), (p, 1)]) {
            low[a] = low[a].min(p[a]);
            high[a] = high[a].max(p[a]);
        }
        let reach = 0.5 * width + 1.0;
        let end = [self.figure.width, self.figure.height];
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
            let under = self.figure.pixel(x, y);
            let mix = |c: usize| {
                let (from, to) = (f64::from(under[c]), f64::from(color[c]));
                (from + opacity * cover * (to - from)).round() as u8
            };
            self.figure.set(x, y, [mix(0), mix(1), mix(2)]);
        }
    }

    /// A thin straight line or path on whole pixels, as axes have them.
    pub(super) fn line(
        &mut self,
        points: &[[f64; 2]],
        width: u32,
        color: [u8; 3],
        opacity: f64,
    ) -> Result<(), PlotError> {
        let path: Vec<(i32, i32)> =
            points.iter().map(|p| (p[0].round() as i32, p[1].round() as i32)).collect();
        let style = rgb(color).mix(opacity).stroke_width(width);
        self.draw(|area| area.draw(&PathElement::new(path, style)).map_err(failed))
    }

    /// The outline of a rectangle, just outside it.
    pub(super) fn outline(&mut self, rect: Rect) -> Result<(), PlotError> {
        let (left, top) = (f64::from(rect.x) - 1.0, f64::from(rect.y) - 1.0);
        let (right, bottom) = (f64::from(rect.right()), f64::from(rect.bottom()));
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
        self.line(&corners, 1, FAINT, 1.0)
    }

    /// Tick marks, numbers and the name of an axis below a rectangle; a number that would reach more than `overhang` pixels
    /// past an end is left out, so that it does not touch its neighbor's.
    pub(super) fn axis_below(
        &mut self,
        rect: Rect,
        axis: &Axis,
        name: &str,
        overhang: u32,
    ) -> Result<(), PlotError> {
        let y = rect.bottom() as i32;
        let room = [rect.x as i32 - overhang as i32, (rect.right() + overhang) as i32];
        for (value, text) in &axis.ticks {
            let x = f64::from(rect.x) + axis.at(*value) * f64::from(rect.width - 1);
            self.line(&[[x, f64::from(y)], [x, f64::from(y + MARK)]], 1, FAINT, 1.0)?;
            let (x, half) = (x.round() as i32, Self::text_width(text, TICK)? / 2);
            if x - half >= room[0] && x + half <= room[1] {
                self.text(text, [x, y + MARK + 6], TICK, Anchor::Top, INK)?;
            }
        }
        self.text(name, [rect.center_x(), y + MARK + TICK as i32 + 20], LABEL, Anchor::Top, INK)
    }

    /// The same left of a rectangle; `axis.range` runs from its upper to its lower edge.
    pub(super) fn axis_left(&mut self, rect: Rect, axis: &Axis, name: &str) -> Result<(), PlotError> {
        let x = rect.x as i32 - 1;
        for (value, text) in &axis.ticks {
            let y = f64::from(rect.y) + axis.at(*value) * f64::from(rect.height - 1);
            self.line(&[[f64::from(x - MARK), y], [f64::from(x), y]], 1, FAINT, 1.0)?;
            self.text(text, [x - MARK - 8, y.round() as i32], TICK, Anchor::Right, INK)?;
        }
        let at = x - MARK - 24 - axis.widest()?;
        self.text(name, [at, (rect.y + rect.height / 2) as i32], LABEL, Anchor::Upwards, INK)
    }

    /// Axes in pixel coordinates around a rectangle that shows `frame`; y (and x, in small ones) is labeled only where `named`.
    pub(super) fn plane_axes(
        &mut self,
        rect: Rect,
        frame: Extent,
        names: AxisNames,
        named: bool,
        overhang: u32,
    ) -> Result<(), PlotError> {
        self.outline(rect)?;
        let small = rect.width < 400;
        let ticks = if small { 3 } else { 5 };
        let (x, y) = (Axis::round(frame.x, ticks, 1.0), Axis::round(frame.y, ticks, 1.0));
        let [right, down] = match names {
            Some(names) => names.each_ref().map(String::as_str),
            None if frame.is_upward() => ["x", "y"],
            None => ["x (pixels)", "y (pixels)"],
        };
        self.axis_below(rect, &x, if named || !small { right } else { "" }, overhang)?;
        if named { self.axis_left(rect, &y, down) } else { self.axis_left(rect, &y.bare(), "") }
    }

    /// A map over a rectangle, in the colors of a scale.
    pub(super) fn heat(&mut self, rect: Rect, map: &Heatmap, scale: ColorScale, cells: Cells) {
        for y in 0..rect.height {
            for x in 0..rect.width {
                let density = map.on_screen([x, y], [rect.width, rect.height], cells);
                self.figure.set(rect.x + x, rect.y + y, scale.color(density));
            }
        }
    }

    /// The color bar of a scale, with its unit, of `pixels` or of the data's own; an arrow head where something `clipped`
    /// lies above it.
    pub(super) fn color_bar(
        &mut self,
        rect: Rect,
        scale: ColorScale,
        clipped: bool,
        pixels: bool,
    ) -> Result<(), PlotError> {
        for y in 0..rect.height {
            let color = inferno(1.0 - (f64::from(y) + 0.5) / f64::from(rect.height));
            for x in 0..rect.width {
                self.figure.set(rect.x + x, rect.y + y, color);
            }
        }
        self.outline(rect)?;
        if clipped {
            self.arrow_head(rect);
        }
        let exponent = -scale.max.log10().floor() as i32;
        let unit = 10f64.powi(-exponent);
        let axis = Axis::round([scale.max, 0.0], 6, unit);
        for (value, text) in &axis.ticks {
            let y = f64::from(rect.y) + axis.at(*value) * f64::from(rect.height - 1);
            let x = f64::from(rect.right());
            self.line(&[[x, y], [x + f64::from(MARK), y]], 1, FAINT, 1.0)?;
            self.text(text, [rect.right() as i32 + MARK + 8, y.round() as i32], TICK, Anchor::Left, INK)?;
        }
        let x = rect.right() as i32 + MARK + 24 + axis.widest()? + LABEL as i32;
        let name = match (pixels, exponent) {
            (true, _) => format!("density ({})", area_unit(exponent)),
            (false, 0) => "density".to_owned(),
            (false, _) => format!("density ({:e})", 10f64.powi(-exponent)),
        };
        self.text(&name, [x, (rect.y + rect.height / 2) as i32], LABEL, Anchor::Upwards, INK)
    }

    fn arrow_head(&mut self, rect: Rect) {
        let height = rect.width / 2;
        for y in 0..height.min(rect.y) {
            let inset = y * rect.width / (2 * height.max(1));
            for x in inset..rect.width.saturating_sub(inset) {
                self.figure.set(rect.x + x, rect.y - 2 - y, inferno(1.0));
            }
        }
    }
}

fn distance_to_segment(x: [f64; 2], p: [f64; 2], q: [f64; 2]) -> f64 {
    let (d, r) = ([q[0] - p[0], q[1] - p[1]], [x[0] - p[0], x[1] - p[1]]);
    let length = d[0] * d[0] + d[1] * d[1];
    let t = if length > 0.0 { ((d[0] * r[0] + d[1] * r[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    (r[0] - t * d[0]).hypot(r[1] - t * d[1])
}

/// `per square pixel`, `per 10^k square pixels` in digits that the font has.
fn area_unit(exponent: i32) -> String {
    const SUPERSCRIPT: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match exponent {
        0 => "per square pixel".to_owned(),
        1 => "per 10 square pixels".to_owned(),
        2.. => {
            let digits = exponent.to_string();
            let raised: String = digits.bytes().map(|d| SUPERSCRIPT[usize::from(d - b'0')]).collect();
            format!("per 10{raised} square pixels")
        }
        _ => format!("{:e} per square pixel", 10f64.powi(-exponent)),
    }
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
    fn ticks_are_round_and_inside() {
        let ticks = |range, unit| -> Vec<String> {
            Axis::round(range, 5, unit).ticks.into_iter().map(|t| t.1).collect()
        };
        assert_eq!(ticks([0.0, 200.0], 1.0), ["0", "50", "100", "150", "200"]);
        assert_eq!(ticks([-12.0, 156.0], 1.0), ["0", "50", "100", "150"]);
        assert_eq!(ticks([1.3, 1.31], 1.0), ["1.300", "1.302", "1.304", "1.306", "1.308", "1.310"]);
        assert_eq!(ticks([0.0, 6.2e-4], 1e-4), ["0", "2", "4", "6"]);
        assert_eq!(ticks([-1.0, 1.0], 1.0), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(ticks([0.0, 60_000.0], 1.0), ["0", "20 000", "40 000", "60 000"]);
    }

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
    fn units_of_area_are_written_out() {
        assert_eq!(area_unit(0), "per square pixel");
        assert_eq!(area_unit(4), "per 10⁴ square pixels");
        assert_eq!(area_unit(12), "per 10¹² square pixels");
    }
}
