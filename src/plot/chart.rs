//! One pair of axes with a light grid, a title, labels and an optional color bar.
//!
//! A logarithmic axis is an axis of logarithms whose tick labels are the original numbers ([`Named::decades`]). A chart
//! gets logarithms as coordinates and needs no other code for them.
use super::{
    Figure, PlotError,
    axis::Axis,
    clip,
    color::{AXIS, INK},
    marks::Colors,
    sheet::{Anchor, LABEL, Rect, Sheet, TITLE},
    tags::{self, Tag},
    text,
};

/// Default size of a figure in pixels; a unit of length is two pixels.
pub(super) const CANVAS: [u32; 2] = [2000, 1280];
pub(super) const LEFT: u32 = 180;
const RIGHT: u32 = 60;
/// Space above the axes: without a title and a legend, and for each row that they take.
const BARE: u32 = 44;
const ROW: u32 = 60;
pub(super) const BELOW: u32 = 130;
pub(super) const BAR_GAP: u32 = 40;
pub(super) const BAR_WIDTH: u32 = 34;
const BAR_ROOM: u32 = 170;
/// Length of a legend's line, and the space after it and after an entry.
const DASH: i32 = 46;
const AFTER_SAMPLE: i32 = 14;
const AFTER_ENTRY: i32 = 40;

/// An axis and its name.
pub(super) struct Named {
    pub axis: Axis,
    pub name: String,
}

impl Named {
    /// Round ticks over a range; very large and very small numbers get a power of ten in the axis name.
    pub fn new(range: [f64; 2], count: usize, name: &str) -> Self {
        let largest = range[0].abs().max(range[1].abs());
        let exponent = if largest > 0.0 { largest.log10().floor() as i32 } else { 0 };
        if (-3..5).contains(&exponent) {
            return Named { axis: Axis::round(range, count, 1.0), name: name.to_owned() };
        }
        let axis = Axis::round(range, count, 10f64.powi(exponent));
        Named { axis, name: format!("{name} / 10^{exponent}").trim_start_matches(" / ").to_owned() }
    }

    /// A logarithmic axis.
    pub fn decades(range: [f64; 2], most: i32, name: &str) -> Self {
        Named { axis: Axis::decades(range, most), name: name.to_owned() }
    }

    /// Reverses the axis: it runs from the upper end down, like screen coordinates.
    pub fn upwards(mut self) -> Self {
        self.axis.range.reverse();
        self
    }
}

/// Least and largest value with a margin of `room` times the extent; the result is never of zero extent.
pub(super) fn padded(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
    let width = high - low;
    let pad =
        if width > 1e-12 * low.abs().max(high.abs()) { room * width } else { 0.5 * low.abs().max(1e-9) };
    [low - pad, high + pad]
}

/// Size of the inside of the axes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    /// All the space on the canvas.
    Canvas,
    /// This number of pixels.
    Inside([u32; 2]),
    /// All the space on the canvas, with this ratio of width to height.
    Aspect(f64),
}

/// The space right of the axes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Right {
    Nothing,
    Bar,
    /// Names of curves, of this width.
    Tags(u32),
}

impl Right {
    fn width(self) -> u32 {
        match self {
            Right::Nothing => RIGHT,
            Right::Bar => BAR_GAP + BAR_WIDTH + BAR_ROOM,
            Right::Tags(width) => width + RIGHT / 2,
        }
    }
}

/// The symbol of a series in a legend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sample {
    Line,
    Dot(f64),
    Band,
}

/// An entry of a legend.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    pub color: [u8; 3],
    pub sample: Sample,
}

impl Entry {
    fn sample_width(&self) -> i32 {
        if let Sample::Dot(width) = self.sample { width as i32 } else { DASH }
    }

    fn width(&self) -> i32 {
        self.sample_width() + AFTER_SAMPLE + text::width(&self.name, tags::SIZE)
    }
}

/// The parts around the axes.
pub(super) struct Layout<'a> {
    pub size: Size,
    pub title: &'a str,
    pub legend: &'a [Entry],
    pub right: Right,
}

impl Layout<'_> {
    /// Width, height and top of the axes; the legend has its own row if it does not fit beside the title.
    fn place(&self) -> Rect {
        let width = match self.size {
            Size::Inside([width, _]) => width,
            _ => CANVAS[0] - LEFT - self.right.width(),
        };
        let of_legend: i32 = self.legend.iter().map(|entry| entry.width() + AFTER_ENTRY).sum();
        let rows = match (self.title.is_empty(), self.legend.is_empty()) {
            (true, true) => 0,
            (false, false) if text::width(self.title, TITLE) + of_legend > width as i32 => 2,
            _ => 1,
        };
        let y = BARE + ROW * rows;
        let room = CANVAS[1] - BELOW - y;
        let (width, height) = match self.size {
            Size::Canvas => (width, room),
            Size::Inside([_, height]) => (width, height),
            Size::Aspect(aspect) => {
                let fit = f64::from(width).min(f64::from(room) * aspect);
                (fit.round() as u32, (fit / aspect).round() as u32)
            }
        };
        Rect { x: LEFT, y, width: width.max(2), height: height.max(2) }
    }
}

/// A sheet with one pair of axes.
pub(super) struct Chart {
    pub sheet: Sheet,
    rect: Rect,
    x: Axis,
    y: Axis,
}

impl Chart {
    /// Axes with a grid, a title and a legend; `y` must be reversed by [`upwards`](Named::upwards).
    pub fn new(x: Named, y: Named, layout: &Layout) -> Result<Self, PlotError> {
        let rect = layout.place();
        let right = layout.right.width();
        let mut sheet = Sheet::new(LEFT + rect.width + right, rect.bottom() + BELOW);
        sheet.grid(rect, &x.axis, &y.axis)?;
        sheet.outline(rect)?;
        sheet.axis_below(rect, &x.axis, &x.name, right)?;
        sheet.axis_left(rect, &y.axis, &y.name)?;
        let mut chart = Chart { sheet, rect, x: x.axis, y: y.axis };
        chart.title(layout.title);
        if layout.legend.iter().any(|entry| !entry.name.is_empty()) {
            let y = if rect.y > BARE + ROW { rect.y as i32 - 34 } else { BARE as i32 + 10 };
            chart.legend(layout.legend, y);
        }
        Ok(chart)
    }

    /// The limits of the axes: left, right, lower, upper.
    pub fn ends(&self) -> [f64; 4] {
        [self.x.range[0], self.x.range[1], self.y.range[1], self.y.range[0]]
    }

    /// The inside of the axes on the screen.
    pub fn bounds(&self) -> clip::Bounds {
        self.rect.ends()
    }

    /// Screen position of a point.
    pub fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let place = |axis: &Axis, v, from: u32, length: u32| {
            f64::from(from) + axis.at(v) * f64::from(length - 1) + 0.5
        };
        [place(&self.x, x, self.rect.x, self.rect.width), place(&self.y, y, self.rect.y, self.rect.height)]
    }

    /// Screen positions of the points of a path, without points that are nearly equal on the screen.
    pub fn on_screen(&self, path: &[[f64; 2]]) -> Vec<[f64; 2]> {
        thinned(path.iter().map(|p| self.at(*p)).collect())
    }

    /// A thin straight line.
    pub fn rule(&mut self, from: [f64; 2], to: [f64; 2]) -> Result<(), PlotError> {
        let ends = [self.at(from), self.at(to)];
        self.sheet.line(&ends, 1, AXIS)
    }

    /// A curve through points, cut at the sides of the axes.
    pub fn curve(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3]) {
        self.translucent(points, width, color, 1.0);
    }

    /// A transparent curve.
    pub fn translucent(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        for piece in clip::pieces(&self.on_screen(points), self.bounds()) {
            self.sheet.curve(&piece, width, color, opacity);
        }
    }

    /// The area between two curves, clipped to the axes: points `[x, low, high]`.
    pub fn band(&mut self, points: &[[f64; 3]], color: [u8; 3], opacity: f64) {
        let [left, top, right, bottom] = self.bounds();
        let edge = |p: [f64; 2]| {
            let [x, y] = self.at(p);
            [x.clamp(left, right), y.clamp(top, bottom)]
        };
        let low = points.iter().map(|p| edge([p[0], p[1]]));
        let high = points.iter().rev().map(|p| edge([p[0], p[2]]));
        let around: Vec<_> = low.chain(high).collect();
        self.sheet.area(&around, color, opacity);
    }

    /// A filled dot.
    pub fn dot(&mut self, point: [f64; 2], width: f64, color: [u8; 3]) {
        let at = self.at(point);
        if clip::holds(self.bounds(), at) {
            self.sheet.curve(&[at], width, color, 1.0);
        }
    }

    /// A white dot with an outline.
    pub fn ring(&mut self, point: [f64; 2], width: f64, color: [u8; 3]) {
        self.dot(point, width, color);
        self.dot(point, width - 6.0, [255; 3]);
    }

    /// A line of text in the top row, from the left end of the axes; in a narrow figure it is scaled down to fit.
    fn title(&mut self, title: &str) {
        let room = self.sheet.figure.width as i32 - self.rect.x as i32 - 20;
        let width = text::width(title, TITLE).max(1);
        let size = if width <= room { TITLE } else { (TITLE as i32 * room / width).max(12) as u32 };
        self.sheet.text(title, [self.rect.x as i32, BARE as i32 + 10], size, Anchor::Left, INK);
    }

    /// Legend entries in a row that ends at the right end of the axes.
    fn legend(&mut self, entries: &[Entry], y: i32) {
        let mut right = self.rect.right() as i32;
        for entry in entries.iter().rev() {
            let left = right - entry.width();
            let (from, to) = (f64::from(left), f64::from(left + entry.sample_width()));
            let middle = f64::from(y) + 0.5;
            match entry.sample {
                Sample::Line => self.sheet.curve(&[[from, middle], [to, middle]], 4.0, entry.color, 1.0),
                Sample::Dot(width) => {
                    self.sheet.curve(&[[f64::midpoint(from, to), middle]], width, entry.color, 1.0);
                }
                Sample::Band => {
                    let [low, high] = [middle + 12.0, middle - 12.0];
                    self.sheet.area(&[[from, low], [to, low], [to, high], [from, high]], entry.color, 0.25);
                }
            }
            let at = [left + entry.sample_width() + AFTER_SAMPLE, y];
            self.sheet.text(&entry.name, at, tags::SIZE, Anchor::Left, INK);
            right = left - AFTER_ENTRY;
        }
    }

    /// Names right of the axes, at the heights of the curves' ends.
    pub fn tags(&mut self, tags: &[Tag]) {
        let ends: Vec<f64> = tags.iter().map(|tag| tag.ends[0][1]).collect();
        let [_, top, right, bottom] = self.bounds();
        for (tag, y) in tags.iter().zip(tags::stacked(&ends, [top, bottom])) {
            let at = [right as i32 + 16, y.round() as i32];
            self.sheet.text(&tag.name, at, tags::SIZE, Anchor::Left, tag.color);
        }
    }

    /// Names inside the axes.
    pub fn tags_at(&mut self, tags: &[Tag], places: &[[f64; 2]]) {
        for (tag, place) in tags.iter().zip(places) {
            self.sheet.text(&tag.name, place.map(|v| v.round() as i32), tags::SIZE, Anchor::Left, tag.color);
        }
    }

    /// A note inside the axes, its left or right end at a screen position.
    pub fn note(&mut self, text: &str, at: [f64; 2], anchor: Anchor, color: [u8; 3]) {
        self.sheet.text(text, at.map(|v| v.round() as i32), LABEL - 4, anchor, color);
    }

    /// Colors each pixel inside the axes by its coordinates on the axes.
    pub fn fill(&mut self, color: impl Fn([f64; 2]) -> [u8; 3]) {
        let Chart { sheet, rect, x, y } = self;
        let part = |i: u32, n: u32| (f64::from(i) + 0.5) / f64::from(n);
        let between = |[a, b]: [f64; 2], s: f64| a + s * (b - a);
        sheet.raster(*rect, |column, row| {
            color([between(x.range, part(column, rect.width)), between(y.range, part(row, rect.height))])
        });
    }

    /// A color bar right of the axes; `color` maps a position on the bar, from 0 at the bottom to 1 at the top.
    /// `colors` says what else has these colors.
    pub fn bar(
        &mut self,
        ends: Named,
        color: impl Fn(f64) -> [u8; 3],
        colors: Colors,
    ) -> Result<(), PlotError> {
        let rect = Rect { x: self.rect.right() + BAR_GAP, width: BAR_WIDTH, ..self.rect };
        self.sheet.colors(rect, color, colors)?;
        let Named { axis, name } = ends.upwards();
        self.sheet.axis_right(rect, &axis, &name)
    }

    /// The figure; `about` is stored in its files.
    pub fn finish(mut self, about: &str) -> Figure {
        about.clone_into(&mut self.sheet.figure.about);
        self.sheet.figure
    }
}

/// Selects each point of a path that is at least a quarter of a pixel from the previously selected point, and the last
/// point.
fn thinned(path: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = Vec::with_capacity(path.len());
    let last = path.last().copied();
    for p in path {
        if kept.last().is_none_or(|q| (p[0] - q[0]).hypot(p[1] - q[1]) >= 0.25) {
            kept.push(p);
        }
    }
    if kept.last() != last.as_ref() {
        kept.extend(last);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE_LAYOUT: Layout = Layout { size: Size::Canvas, title: "", legend: &[], right: Right::Nothing };

    #[test]
    fn ranges_have_an_extent_and_large_numbers_a_power_of_ten() {
        assert_eq!(padded([1.0, 3.0].into_iter(), 0.05), [0.9, 3.1]);
        assert_eq!(padded([2.0].into_iter(), 0.05), [1.0, 3.0]);
        let [low, high] = padded([0.0].into_iter(), 0.05);
        assert!(low < 0.0 && high > 0.0);
        let large = Named::new([0.0, 2.4e7], 5, "t");
        assert_eq!(large.name, "t / 10^7");
        assert_eq!(large.axis.ticks[1].1, "0.5");
        assert_eq!(Named::new([0.0, 20.0], 5, "t").name, "t");
    }

    #[test]
    fn a_point_lies_between_the_ticks_around_it() {
        let (x, y) = (Named::new([0.0, 10.0], 5, "x"), Named::new([-1.0, 1.0], 5, "y").upwards());
        let chart = Chart::new(x, y, &Layout { size: Size::Inside([401, 201]), ..BARE_LAYOUT }).unwrap();
        assert_eq!(chart.at([0.0, 1.0]), [f64::from(LEFT) + 0.5, f64::from(BARE) + 0.5]);
        assert_eq!(chart.at([5.0, 0.0]), [f64::from(LEFT) + 200.5, f64::from(BARE) + 100.5]);
        assert_eq!(chart.ends(), [0.0, 10.0, -1.0, 1.0]);
    }

    #[test]
    fn a_figure_is_the_canvas_and_its_header_has_the_rows_that_it_needs() {
        let entry = |name: &str| Entry { name: name.into(), color: INK, sample: Sample::Line };
        let long = vec![entry(&"n".repeat(40)), entry(&"n".repeat(40))];
        let top = |title, legend: &[Entry]| {
            let layout = Layout { title, legend, ..BARE_LAYOUT };
            let axes = || Named::new([0.0, 1.0], 5, "a");
            let chart = Chart::new(axes(), axes().upwards(), &layout).unwrap();
            let figure = &chart.sheet.figure;
            assert_eq!([figure.width, figure.height], CANVAS);
            chart.bounds()[1] as u32
        };
        assert_eq!(top("", &[]), BARE);
        assert_eq!(top("A title", &[]), BARE + ROW);
        assert_eq!(top("A title", &[entry("a")]), BARE + ROW);
        assert_eq!(top("A title that is long", &long), BARE + 2 * ROW);
    }
}
