//! One pair of axes with a light grid, a caption, a legend and, where asked for, a color bar.
//!
//! Knows numbers and where they lie on the sheet; not what they mean. Axes in powers of ten are axes of logarithms
//! whose ticks say so ([`decades`]), so nothing else has to know of them.
use super::{
    Figure, PlotError,
    color::{FAINT, INK},
    sheet::{Anchor, Axis, LABEL, MARK, Rect, Sheet, TICK},
};

const LEFT: u32 = 190;
const RIGHT: u32 = 60;
/// Room for a caption, and for a legend below it.
const TOP: u32 = 75;
const LEGEND: u32 = 45;
/// Size of letters below which nobody reads them.
const SMALLEST: u32 = 12;
const BELOW: u32 = 125;
const BAR_GAP: u32 = 40;
const BAR_WIDTH: u32 = 34;
const BAR_ROOM: u32 = 230;

/// An axis and its name.
pub(super) struct Named {
    pub axis: Axis,
    pub name: String,
}

impl Named {
    /// Round ticks over a range; very large and very small numbers in a power of ten that stands in the name.
    pub fn new(range: [f64; 2], count: usize, name: &str) -> Self {
        let largest = range[0].abs().max(range[1].abs());
        let exponent = if largest > 0.0 { largest.log10().floor() as i32 } else { 0 };
        if (-3..5).contains(&exponent) {
            return Named { axis: Axis::round(range, count, 1.0), name: name.to_owned() };
        }
        let axis = Axis::round(range, count, 10f64.powi(exponent));
        Named { axis, name: format!("{name} / 1e{exponent}") }
    }

    /// An axis of decimal logarithms.
    pub fn decades([low, high]: [f64; 2], most: i32, name: &str) -> Self {
        let every = (((high - low) as i32 + most - 1) / most).max(1);
        let ticks = (low.ceil() as i32..=high.floor() as i32).filter(|k| k.rem_euclid(every) == 0);
        let ticks = ticks.map(|k| (f64::from(k), power_of_ten(k))).collect();
        Named { axis: Axis { range: [low, high], ticks }, name: name.to_owned() }
    }

    /// The same, from its upper end down, as the screen counts.
    pub fn upwards(mut self) -> Self {
        self.axis.range.reverse();
        self
    }
}

/// 10 to a power; what follows `^` is drawn raised.
fn power_of_ten(exponent: i32) -> String {
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10^{exponent}").replace('-', "\u{2212}"),
    }
}

/// Least and largest of the values with a little room, never of no extent.
pub(super) fn padded(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
    let width = high - low;
    let pad =
        if width > 1e-12 * low.abs().max(high.abs()) { room * width } else { 0.5 * low.abs().max(1e-9) };
    [low - pad, high + pad]
}

/// A sheet with one pair of axes.
pub(super) struct Chart {
    sheet: Sheet,
    rect: Rect,
    x: Axis,
    y: Axis,
    /// Right end of the room left for the legend, over the axes.
    legend: i32,
}

impl Chart {
    /// Axes with a grid; `y` runs [`upwards`](Named::upwards). `bar`: whether room is kept for a color bar, else for a
    /// legend.
    pub fn new([width, height]: [u32; 2], x: Named, y: Named, bar: bool) -> Result<Self, PlotError> {
        let right = if bar { BAR_GAP + BAR_WIDTH + BAR_ROOM } else { RIGHT };
        let top = if bar { TOP } else { TOP + LEGEND };
        let rect = Rect { x: LEFT, y: top, width, height };
        let sheet = Sheet::new(LEFT + width + right, top + height + BELOW);
        let mut chart = Chart { sheet, rect, x: x.axis, y: y.axis, legend: rect.right() as i32 };
        for value in chart.x.ticks.iter().map(|t| t.0).collect::<Vec<_>>() {
            chart.rule([value, chart.y.range[0]], [value, chart.y.range[1]], 0.3)?;
        }
        for value in chart.y.ticks.iter().map(|t| t.0).collect::<Vec<_>>() {
            chart.rule([chart.x.range[0], value], [chart.x.range[1], value], 0.3)?;
        }
        chart.sheet.outline(rect)?;
        chart.sheet.axis_below(rect, &chart.x, &x.name, right)?;
        chart.sheet.axis_left(rect, &chart.y, &y.name)?;
        Ok(chart)
    }

    /// The numbers that the axes end at: left, right, lower, upper.
    pub fn ends(&self) -> [f64; 4] {
        [self.x.range[0], self.x.range[1], self.y.range[1], self.y.range[0]]
    }

    /// Screen position of a point.
    pub fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let place = |axis: &Axis, v, from: u32, length: u32| {
            f64::from(from) + axis.at(v) * f64::from(length - 1) + 0.5
        };
        [place(&self.x, x, self.rect.x, self.rect.width), place(&self.y, y, self.rect.y, self.rect.height)]
    }

    /// A thin straight line.
    pub fn rule(&mut self, from: [f64; 2], to: [f64; 2], opacity: f64) -> Result<(), PlotError> {
        let ends = [self.at(from), self.at(to)];
        self.sheet.line(&ends, 1, FAINT, opacity)
    }

    /// A curve through points.
    pub fn curve(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3]) {
        self.translucent(points, width, color, 1.0);
    }

    /// A curve through which the ground is seen.
    pub fn translucent(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        let screen: Vec<_> = points.iter().map(|p| self.at(*p)).collect();
        self.sheet.curve(&thinned(screen), width, color, opacity);
    }

    /// A filled dot.
    pub fn dot(&mut self, point: [f64; 2], width: f64, color: [u8; 3]) {
        let at = self.at(point);
        self.sheet.curve(&[at], width, color, 1.0);
    }

    /// A white dot with a rim.
    pub fn ring(&mut self, point: [f64; 2], width: f64, color: [u8; 3]) {
        self.dot(point, width, color);
        self.dot(point, width - 6.0, [255; 3]);
    }

    /// A line of text in the uppermost row, at the left; in a narrow figure as small as it takes to end inside.
    pub fn caption(&mut self, text: &str) -> Result<(), PlotError> {
        let at = [self.rect.x as i32, TOP as i32 - 35];
        let room = self.sheet.figure.width as i32 - at[0] - 10;
        let width = Sheet::text_width(text, LABEL - 2)?;
        let size = if width <= room { LABEL - 2 } else { (LABEL - 2) * room as u32 / width as u32 };
        self.sheet.text(text, at, size.max(SMALLEST), Anchor::Left, INK)
    }

    /// An entry of the legend in the row over the axes, left of the entries before.
    pub fn legend(&mut self, text: &str, color: [u8; 3]) -> Result<(), PlotError> {
        const DASH: i32 = 46;
        let [left, y] = self.legend_text(text, DASH)?;
        self.sheet.curve(&[[left, y], [left + f64::from(DASH), y]], 4.0, color, 1.0);
        Ok(())
    }

    /// The same for what is drawn as dots.
    pub fn legend_of_dots(&mut self, text: &str, width: f64, color: [u8; 3]) -> Result<(), PlotError> {
        let [left, y] = self.legend_text(text, width as i32)?;
        self.sheet.curve(&[[left + 0.5 * width, y]], width, color, 1.0);
        Ok(())
    }

    /// The text of an entry with `room` pixels before it: where these begin, and the middle of the line.
    fn legend_text(&mut self, text: &str, room: i32) -> Result<[f64; 2], PlotError> {
        let y = self.rect.y as i32 - 30;
        let from = self.legend - Sheet::text_width(text, LABEL - 2)?;
        self.sheet.text(text, [from, y], LABEL - 2, Anchor::Left, INK)?;
        let left = from - 14 - room;
        self.legend = left - 34;
        Ok([f64::from(left), f64::from(y) + 0.5])
    }

    /// Colors each pixel of the axes' inside by its numbers.
    pub fn fill(&mut self, color: impl Fn([f64; 2]) -> [u8; 3]) {
        for row in 0..self.rect.height {
            for column in 0..self.rect.width {
                let part = |i: u32, n: u32| (f64::from(i) + 0.5) / f64::from(n);
                let between = |[a, b]: [f64; 2], s: f64| a + s * (b - a);
                let x = between(self.x.range, part(column, self.rect.width));
                let y = between(self.y.range, part(row, self.rect.height));
                self.sheet.figure.set(self.rect.x + column, self.rect.y + row, color([x, y]));
            }
        }
    }

    /// A color bar right of the axes; `color` takes the place on it, from 0 below to 1.
    pub fn bar(&mut self, ends: Named, color: impl Fn(f64) -> [u8; 3]) -> Result<(), PlotError> {
        let rect = Rect { x: self.rect.right() + BAR_GAP, width: BAR_WIDTH, ..self.rect };
        for row in 0..rect.height {
            let color = color(1.0 - (f64::from(row) + 0.5) / f64::from(rect.height));
            (0..rect.width).for_each(|column| self.sheet.figure.set(rect.x + column, rect.y + row, color));
        }
        self.sheet.outline(rect)?;
        let Named { axis, name } = ends.upwards();
        let right = f64::from(rect.right());
        for (value, text) in &axis.ticks {
            let y = f64::from(rect.y) + axis.at(*value) * f64::from(rect.height - 1);
            self.sheet.line(&[[right, y], [right + f64::from(MARK), y]], 1, FAINT, 1.0)?;
            let at = [rect.right() as i32 + MARK + 8, y.round() as i32];
            self.sheet.text(text, at, TICK, Anchor::Left, INK)?;
        }
        let x = rect.right() as i32 + MARK + 24 + axis.widest()? + LABEL as i32;
        self.sheet.text(&name, [x, (rect.y + rect.height / 2) as i32], LABEL, Anchor::Upwards, INK)
    }

    pub fn finish(self) -> Figure {
        self.sheet.figure
    }
}

/// The points of a path that lie a quarter of a pixel or more from the one kept before, and the last.
fn thinned(path: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = Vec::with_capacity(path.len());
    let last = path.last().copied();
    for p in path {
        if kept.last().is_none_or(|q| (p[0] - q[0]).hypot(p[1] - q[1]) >= 0.25) {
            kept.push(p);
        }
    }
    kept.extend(last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_an_extent_and_large_numbers_a_power_of_ten() {
        assert_eq!(padded([1.0, 3.0].into_iter(), 0.05), [0.9, 3.1]);
        assert_eq!(padded([2.0].into_iter(), 0.05), [1.0, 3.0]);
        let [low, high] = padded([0.0].into_iter(), 0.05);
        assert!(low < 0.0 && high > 0.0);
        let large = Named::new([0.0, 2.4e7], 5, "t");
        assert_eq!(large.name, "t / 1e7");
        assert_eq!(large.axis.ticks[1].1, "0.5");
        assert_eq!(Named::new([0.0, 20.0], 5, "t").name, "t");
    }

    #[test]
    fn decades_are_thinned_to_what_fits() {
        let every = |range, most| -> Vec<f64> {
            Named::decades(range, most, "").axis.ticks.into_iter().map(|t| t.0).collect()
        };
        assert_eq!(every([-3.5, 0.5], 8), [-3.0, -2.0, -1.0, 0.0]);
        assert_eq!(every([-12.2, 0.1], 7), [-12.0, -10.0, -8.0, -6.0, -4.0, -2.0, 0.0]);
        assert_eq!([-12, 0, 1, 5].map(power_of_ten), ["10^\u{2212}12", "1", "10", "10^5"]);
    }

    #[test]
    fn a_point_lies_between_the_ticks_around_it() {
        let (x, y) = (Named::new([0.0, 10.0], 5, "x"), Named::new([-1.0, 1.0], 5, "y").upwards());
        let chart = Chart::new([401, 201], x, y, false).unwrap();
        assert_eq!(chart.at([0.0, 1.0]), [f64::from(LEFT) + 0.5, f64::from(TOP + LEGEND) + 0.5]);
        assert_eq!(chart.at([5.0, 0.0]), [f64::from(LEFT) + 200.5, f64::from(TOP + LEGEND) + 100.5]);
        assert_eq!(chart.ends(), [0.0, 10.0, -1.0, 1.0]);
    }
}
