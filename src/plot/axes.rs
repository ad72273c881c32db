//! Lines, scatter points, bands and streamlines in one pair of axes, for custom figures.
//!
//! The caller passes the points; other modules compute them from a solution or a density. Join panels with
//! [`hstack`](Figure::hstack).
use super::{
    Figure, PlotError,
    chart::{Chart, Entry, Layout, Named, Right, Sample, Size, padded},
    color::{INK, SERIES},
    series::{Series, Shape},
    sheet::Anchor,
    streams,
    tags::{self, Tag},
};

/// Margin around the points, as a share of the extent of the points.
const ROOM: f64 = 0.06;
/// If all named curves end within this share of the width from the right, their names are right of the axes.
const AT_THE_END: f64 = 0.06;

/// A pair of axes and its series, drawn in the order of the calls.
///
/// Colors are numbered from 0 and repeat after 8. Names are placed beside their curves if there is space, otherwise
/// in a legend. A series with an empty name has no label.
///
/// # Examples
/// ```
/// use flowline::plot::Axes;
/// let circle: Vec<[f64; 2]> = (0..=60).map(|i| (f64::from(i) * 0.1).sin_cos().into()).collect();
/// let figure = Axes::new("x", "y").title("A circle").lines("circle", &[circle.clone()], 0).scatter("", &circle[..1], 1);
/// assert_eq!(&figure.equal_aspect().render()?.to_png_bytes()?[1..4], b"PNG");
/// # Ok::<(), flowline::plot::PlotError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Axes {
    names: [String; 2],
    title: String,
    size: Option<[u32; 2]>,
    equal: bool,
    /// Which axes are logarithmic.
    log: [bool; 2],
    limits: [Option<[f64; 2]>; 2],
    series: Vec<Series>,
    /// Reference lines: the axis on which the value is constant, the value, a note.
    rules: Vec<(usize, f64, String)>,
}

impl Axes {
    /// Axes with these names in a figure of 2,000 by 1,280 pixels.
    pub fn new(x: &str, y: &str) -> Axes {
        Axes {
            names: [x.to_owned(), y.to_owned()],
            title: String::new(),
            size: None,
            equal: false,
            log: [false; 2],
            limits: [None; 2],
            series: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// A title above the axes.
    pub fn title(mut self, title: &str) -> Axes {
        title.clone_into(&mut self.title);
        self
    }

    /// Sets the width and the height inside the axes, in pixels; the figure is larger.
    pub fn size(mut self, width: u32, height: u32) -> Axes {
        self.size = Some([width, height]);
        self
    }

    /// Equal units on both axes. A given [`size`](Axes::size) does not change; the shorter range is extended.
    pub fn equal_aspect(mut self) -> Axes {
        self.equal = true;
        self
    }

    /// A logarithmic x axis; values must be positive.
    pub fn log_x(mut self) -> Axes {
        self.log[0] = true;
        self
    }

    /// A logarithmic y axis; values must be positive.
    pub fn log_y(mut self) -> Axes {
        self.log[1] = true;
        self
    }

    /// Limits of the x axis; points beyond are clipped.
    pub fn xlim(mut self, from: f64, to: f64) -> Axes {
        self.limits[0] = Some([from, to]);
        self
    }

    /// Limits of the y axis; points beyond are clipped.
    pub fn ylim(mut self, from: f64, to: f64) -> Axes {
        self.limits[1] = Some([from, to]);
        self
    }

    /// A vertical line at `x`, with a note at its upper end. Outside the limits of the axes, it is not drawn.
    pub fn vline(mut self, x: f64, note: &str) -> Axes {
        self.rules.push((0, x, note.to_owned()));
        self
    }

    /// A horizontal line at `y`, with a note at its right end. Outside the limits of the axes, it is not
    /// drawn.
    pub fn hline(mut self, y: f64, note: &str) -> Axes {
        self.rules.push((1, y, note.to_owned()));
        self
    }

    /// A line through the points `(x[i], y[i])`, in the color after those of the series before it.
    ///
    /// # Panics
    /// If `x` and `y` differ in length.
    ///
    /// # Examples
    /// ```
    /// use flowline::{plot::Axes, prelude::*};
    /// let decay = Ode::new(|_t, y: &[f64; 2]| [-y[0], -0.5 * y[1]]).save_at(SaveAt::linspace(0.0, 5.0, 100));
    /// let solution = decay.solve(0.0, 5.0, [1.0, 1.0])?;
    /// let component = |i: usize| solution.ys.iter().map(|y| y[i]).collect::<Vec<f64>>();
    /// let axes = Axes::new("t", "y").line("fast", &solution.ts, &component(0)).line("slow", &solution.ts, &component(1));
    /// axes.render()?;
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn line(self, name: &str, x: &[f64], y: &[f64]) -> Axes {
        assert!(x.len() == y.len(), "line {name:?}: x has {} numbers, y has {}", x.len(), y.len());
        let (path, color) = (x.iter().zip(y).map(|(x, y)| [*x, *y]).collect(), self.series.len());
        self.lines(name, &[path], color)
    }

    /// Dots at the points `(x[i], y[i])`, in the color after those of the series before it.
    ///
    /// # Panics
    /// If `x` and `y` differ in length.
    #[track_caller]
    pub fn points(self, name: &str, x: &[f64], y: &[f64]) -> Axes {
        assert!(x.len() == y.len(), "points {name:?}: x has {} numbers, y has {}", x.len(), y.len());
        let (points, color) = (x.iter().zip(y).map(|(x, y)| [*x, *y]).collect::<Vec<_>>(), self.series.len());
        self.scatter(name, &points, color)
    }

    /// Paths as lines.
    pub fn lines(self, name: &str, paths: &[Vec<[f64; 2]>], color: usize) -> Axes {
        self.with(name, Shape::Lines { paths: paths.to_vec(), width: 4.0, opacity: 1.0 }, color)
    }

    /// Paths as thin, pale lines, for many paths or for context.
    pub fn thin_lines(self, name: &str, paths: &[Vec<[f64; 2]>], color: usize) -> Axes {
        self.with(name, Shape::Lines { paths: paths.to_vec(), width: 2.0, opacity: 0.55 }, color)
    }

    /// Points as dots.
    pub fn scatter(self, name: &str, points: &[[f64; 2]], color: usize) -> Axes {
        self.with(name, Shape::Dots { points: points.to_vec(), width: 9.0 }, color)
    }

    /// A band between two values at each x: points `[x, low, high]`.
    pub fn band(self, name: &str, points: &[[f64; 3]], color: usize) -> Axes {
        self.with(name, Shape::Band(points.to_vec()), color)
    }

    /// Dots with bars from a low to a high value: points `[x, y, low, high]`.
    pub fn error_bars(self, name: &str, points: &[[f64; 4]], color: usize) -> Axes {
        self.with(name, Shape::Bars(points.to_vec()), color)
    }

    /// Paths as pale lines with arrowheads. Short solves from many initial values show a vector field. Streamlines
    /// do not affect the limits of the axes and are clipped to them.
    pub fn streamlines(self, paths: &[Vec<[f64; 2]>]) -> Axes {
        self.with("", Shape::Streams(paths.to_vec()), 0)
    }

    /// Evenly spaced streamlines of a vector field over a rectangle, with arrowheads. The rectangle sets the limits of
    /// the axes.
    pub fn vector_field(self, x: [f64; 2], y: [f64; 2], field: impl Fn([f64; 2]) -> [f64; 2]) -> Axes {
        let streams = streams::streamlines([x, y], &field);
        self.xlim(x[0], x[1]).ylim(y[0], y[1]).streamlines(&streams)
    }

    /// Nullclines of a vector field over a rectangle: the first component in color 4, the second in color 1.
    pub fn nullclines(self, x: [f64; 2], y: [f64; 2], field: impl Fn([f64; 2]) -> [f64; 2]) -> Axes {
        let names = [0, 1].map(|a| format!("d{}/dt = 0", self.names[a]));
        let of = |a: usize| streams::zeros([x, y], &|p| field(p)[a]);
        self.with(&names[0], Shape::dashed(of(0)), 4).with(&names[1], Shape::dashed(of(1)), 1)
    }

    fn with(mut self, name: &str, shape: Shape, color: usize) -> Axes {
        self.series.push(Series { name: name.to_owned(), shape, color: SERIES[color % SERIES.len()] });
        self
    }

    /// Draws the figure.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without a line or a point, [`PlotError::Value`] for a coordinate that is not finite, or
    /// not positive on a logarithmic axis, [`PlotError::Extent`] for limits that are not finite or whose
    /// lower end is not below the upper.
    pub fn render(&self) -> Result<Figure, PlotError> {
        let series: Vec<Series> =
            self.series.iter().map(|one| one.placed(self.log)).collect::<Result<_, _>>()?;
        let (size, ranges) = self.ranges(&series)?;
        let named: Vec<&Series> = series.iter().filter(|one| !one.name.is_empty()).collect();
        let entries: Vec<Entry> = named.iter().map(|one| one.entry()).collect();
        let ends_right = |one: &&Series| {
            one.last().is_some_and(|p| {
                let place = (p[0] - ranges[0][0]) / (ranges[0][1] - ranges[0][0]);
                one.sample() == Sample::Line && (1.0 - AT_THE_END - ROOM..=1.0).contains(&place)
            })
        };
        if !named.is_empty() && named.iter().all(ends_right) {
            let room = tags::room(named.iter().map(|one| one.name.clone()));
            let mut chart = self.chart(ranges, size, &[], Right::Tags(room))?;
            series.iter().for_each(|one| one.draw(&mut chart));
            let tags: Vec<Tag> = named.iter().map(|one| one.tag(&chart)).collect();
            chart.tags(&tags);
            return Ok(chart.finish(""));
        }
        let mut chart = self.chart(ranges, size, &[], Right::Nothing)?;
        let tags: Vec<Tag> = named.iter().map(|one| one.tag(&chart)).collect();
        let curves: Vec<Vec<[f64; 2]>> = series.iter().flat_map(|one| one.on_screen(&chart)).collect();
        let is_line = |entry: &Entry| entry.sample == Sample::Line;
        let places =
            entries.iter().all(is_line).then(|| tags::placed(&tags, &curves, chart.bounds())).flatten();
        if places.is_none() {
            chart = self.chart(ranges, size, &entries, Right::Nothing)?;
        }
        series.iter().for_each(|one| one.draw(&mut chart));
        chart.tags_at(&tags, &places.unwrap_or_default());
        Ok(chart.finish(""))
    }

    fn chart(
        &self,
        [x, y]: [[f64; 2]; 2],
        size: Size,
        legend: &[Entry],
        right: Right,
    ) -> Result<Chart, PlotError> {
        let named = |range: [f64; 2], axis: usize, most: usize| {
            let name = &self.names[axis];
            if self.log[axis] {
                Named::decades(range, most as i32 + 1, name)
            } else {
                Named::new(range, most, name)
            }
        };
        let layout = Layout { size, title: &self.title, legend, right };
        let mut chart = Chart::new(named(x, 0, 6), named(y, 1, 6).upwards(), &layout)?;
        for (axis, value, note) in &self.rules {
            let value = if self.log[*axis] { value.log10() } else { *value };
            let [left, right, low, high] = chart.ends();
            let ends =
                if *axis == 0 { [[value, low], [value, high]] } else { [[left, value], [right, value]] };
            let range = [[left, right], [low, high]][*axis];
            if !(range[0]..=range[1]).contains(&value) {
                continue;
            }
            chart.rule(ends[0], ends[1])?;
            let [x, y] = chart.at(ends[1]);
            match axis {
                0 => chart.note(note, [x + 12.0, y + 24.0], Anchor::Left, INK),
                _ => chart.note(note, [x - 12.0, y - 22.0], Anchor::Right, INK),
            }
        }
        Ok(chart)
    }

    /// Size of the axes, and their limits.
    fn ranges(&self, series: &[Series]) -> Result<(Size, [[f64; 2]; 2]), PlotError> {
        let mut ranges = [[0.0; 2]; 2];
        for axis in 0..2 {
            let scaled = |v: f64| if self.log[axis] { v.log10() } else { v };
            let mut values = series.iter().flat_map(|one| one.extent(axis)).peekable();
            ranges[axis] = match self.limits[axis].map(|ends| ends.map(scaled)) {
                Some(ends) => ends,
                None if values.peek().is_none() => {
                    return Err(PlotError::Nothing { what: "lines or points" });
                }
                // If only the y axis is logarithmic, curves reach the left and right ends of the axes.
                None => padded(values, if axis == 0 && self.log == [false, true] { 0.0 } else { ROOM }),
            };
            let [from, to] = ranges[axis];
            if !(from.is_finite() && to.is_finite() && from < to) {
                let what = if axis == 0 { "the x axis" } else { "the y axis" };
                return Err(PlotError::Extent { what, from, to });
            }
        }
        let length = |[from, to]: [f64; 2]| to - from;
        let aspect = length(ranges[0]) / length(ranges[1]);
        let Some([width, height]) = self.size else {
            return Ok((
                if self.equal { Size::Aspect(aspect.clamp(0.1, 10.0)) } else { Size::Canvas },
                ranges,
            ));
        };
        if self.equal {
            let wanted = f64::from(width) / f64::from(height);
            let (axis, grown) = if aspect < wanted { (0, wanted / aspect) } else { (1, aspect / wanted) };
            let [from, to] = ranges[axis];
            let room = 0.5 * (grown - 1.0) * (to - from);
            ranges[axis] = [from - room, to + room];
        }
        Ok((Size::Inside([width, height]), ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(y: [f64; 2]) -> Vec<Vec<[f64; 2]>> {
        vec![vec![[0.0, y[0]], [1.0, y[1]]]]
    }

    fn count(figure: &Figure, color: [u8; 3]) -> usize {
        figure.rgb.chunks_exact(3).filter(|p| **p == color).count()
    }

    #[test]
    fn lines_and_points_have_the_given_colors() {
        let axes = Axes::new("x", "y").lines("a", &line([0.0, 1.0]), 2).scatter("b", &[[0.5, 0.2]], 1);
        let figure = axes.render().unwrap();
        assert!(count(&figure, SERIES[2]) > 3 * 1000, "{}", count(&figure, SERIES[2]));
        // a dot of 9 pixels in the axes, another in the legend
        assert!((80..200).contains(&count(&figure, SERIES[1])), "{}", count(&figure, SERIES[1]));
        assert_eq!(count(&figure, SERIES[0]), 0);
    }

    #[test]
    fn streamlines_set_no_limits_and_stay_inside() {
        let plain = Axes::new("x", "y").lines("", &line([0.0, 1.0]), 0);
        let far = plain.clone().streamlines(&[vec![[50.0, 50.0], [60.0, 60.0]]]);
        assert_eq!(plain.render().unwrap(), far.render().unwrap());
        let near = plain.clone().streamlines(&[vec![[0.2, 0.8], [0.3, 0.8], [0.3, 9.0]]]);
        assert_ne!(plain.render().unwrap(), near.render().unwrap());
    }

    #[test]
    fn logarithmic_axes_make_exponentials_and_powers_straight() {
        let straight_as = |axes: Axes, points: &[[f64; 2]]| {
            let ends = vec![points[0], points[points.len() - 1]];
            let curve = axes.clone().lines("", &[points.to_vec()], 0).render().unwrap();
            let line = axes.lines("", &[ends], 0).render().unwrap();
            let differ = curve.rgb.iter().zip(&line.rgb).filter(|(a, b)| a.abs_diff(**b) > 16).count();
            assert_eq!(differ, 0);
        };
        let exponential: Vec<[f64; 2]> =
            (0..50).map(|i| [f64::from(i), 10f64.powf(-0.1 * f64::from(i))]).collect();
        straight_as(Axes::new("x", "y").log_y(), &exponential);
        let power: Vec<[f64; 2]> = (1..50).map(|i| [f64::from(i), f64::from(i).powi(3)]).collect();
        straight_as(Axes::new("x", "y").log_x().log_y(), &power);
        for (axes, point) in
            [(Axes::new("x", "y").log_y(), [2.0, 0.0]), (Axes::new("x", "y").log_x(), [0.0, 2.0])]
        {
            let refused = axes.scatter("", &[[1.0, 1.0], point], 0).render();
            assert!(matches!(refused, Err(PlotError::Value { index: 1, .. })), "{refused:?}");
        }
    }

    #[test]
    fn points_beyond_the_limits_are_clipped() {
        let axes = Axes::new("x", "y").lines("", &line([0.0, 1.0]), 0).ylim(0.0, 0.5);
        let (whole, cut) = (axes.clone().ylim(0.0, 1.0).render().unwrap(), axes.render().unwrap());
        let bounds = |figure: &Figure| {
            let rows =
                (0..figure.height).filter(|&y| (0..figure.width).any(|x| figure.pixel(x, y) == SERIES[0]));
            let rows: Vec<u32> = rows.collect();
            [rows[0], rows[rows.len() - 1]]
        };
        assert!(bounds(&whole)[0].abs_diff(bounds(&cut)[0]) < 4, "{:?} {:?}", bounds(&whole), bounds(&cut));
        let empty = Axes::new("x", "y").lines("", &line([0.0, 1.0]), 0).xlim(2.0, 2.0).render();
        assert!(matches!(empty, Err(PlotError::Extent { what: "the x axis", .. })), "{empty:?}");
    }

    #[test]
    fn bands_bars_and_lines_at_values_have_ink() {
        let plain = Axes::new("x", "y").lines("", &line([0.0, 1.0]), 0);
        let base = plain.render().unwrap();
        let differ = |axes: Axes| {
            let figure = axes.render().unwrap();
            figure.rgb.iter().zip(&base.rgb).filter(|(a, b)| a != b).count() / 3
        };
        assert!(differ(plain.clone().band("", &[[0.0, 0.2, 0.4], [1.0, 0.2, 0.4]], 1)) > 100_000);
        assert!(differ(plain.clone().error_bars("", &[[0.5, 0.2, 0.1, 0.3]], 1)) > 300);
        assert!(differ(plain.clone().vline(0.4, "here")) > 800);
        assert!(differ(plain.clone().hline(0.4, "")) > 1_000);
        assert_eq!(differ(plain.clone().hline(9.0, "beyond the axis")), 0);
    }

    #[test]
    fn equal_units_are_of_equal_length() {
        let flat = Axes::new("x", "y").lines("", &[vec![[0.0, 0.0], [4.0, 1.0]]], 0).equal_aspect();
        let figure = flat.render().unwrap();
        assert!(figure.width > 2 * figure.height, "{} x {}", figure.width, figure.height);
        let sized = flat.size(600, 600);
        let (_, [x, y]) = sized.ranges(&sized.series).unwrap();
        assert!(((x[1] - x[0]) - (y[1] - y[0])).abs() < 1e-9, "{x:?} {y:?}");
    }

    #[test]
    fn streamlines_alone_need_limits() {
        let strokes = Axes::new("x", "y").streamlines(&line([0.0, 1.0]));
        assert!(matches!(strokes.render(), Err(PlotError::Nothing { .. })));
        assert!(strokes.xlim(0.0, 1.0).ylim(0.0, 1.0).render().is_ok());
    }

    #[test]
    fn a_phase_plane_has_streamlines_and_nullclines() {
        let field = |[x, y]: [f64; 2]| [y, -x - 0.2 * y];
        let ground = Axes::new("x", "v").vector_field([-2.0, 2.0], [-2.0, 2.0], field).render().unwrap();
        let ink = ground.rgb.chunks_exact(3).filter(|p| p[0] < 200).count();
        assert!(ink > 20_000, "{ink}");
        let lines = Axes::new("x", "v").nullclines([-2.0, 2.0], [-2.0, 2.0], field).render().unwrap();
        assert!(count(&lines, SERIES[4]) > 1_000 && count(&lines, SERIES[1]) > 1_000);
    }
}
