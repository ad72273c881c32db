//! Curves, dots and strokes in one pair of axes: for a custom figure.
//!
//! Knows points and what they are drawn as; not where they come from. Other modules draw what a solution or a density
//! is; here the caller says what lies where. Panels stand [`beside`](Figure::hstack) each other as figures do.
use super::{
    Figure, PlotError,
    chart::{Chart, Named, padded},
    color::{FAINT, SERIES},
};

/// Room around the points, as a share of their extent.
const ROOM: f64 = 0.06;

/// What points are drawn as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// A path; its width in pixels and its opacity.
    Curve(f64, f64),
    /// A dot at each point; its width.
    Dots(f64),
    /// A path that fades in from its first point to its last.
    Stroke,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    paths: Vec<Vec<[f64; 2]>>,
    look: Look,
    color: [u8; 3],
}

/// A pair of axes and what is drawn in it, in the order of the calls.
///
/// Colors are those of the house by number, from 0; a series with a name stands in the legend, one without is not.
///
/// # Examples
/// ```
/// use flowline::plot::Axes;
/// let circle: Vec<[f64; 2]> = (0..=60).map(|i| (f64::from(i) * 0.1).sin_cos().into()).collect();
/// let figure = Axes::new("x", "y").title("a circle").lines("circle", &[circle.clone()], 0).scatter("", &circle[..1], 1);
/// assert_eq!(&figure.render()?.to_png_bytes()?[1..4], b"PNG");
/// # Ok::<(), flowline::plot::PlotError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Axes {
    names: [String; 2],
    title: String,
    size: [u32; 2],
    decades: bool,
    series: Vec<Series>,
}

impl Axes {
    /// Axes with these names, x to the right and y upwards, 1,000 pixels by 800 inside.
    pub fn new(x: &str, y: &str) -> Axes {
        let names = [x.to_owned(), y.to_owned()];
        Axes { names, title: String::new(), size: [1000, 800], decades: false, series: Vec::new() }
    }

    /// A line of text over the axes.
    pub fn title(mut self, title: &str) -> Axes {
        title.clone_into(&mut self.title);
        self
    }

    /// Pixels inside the axes: width, height.
    pub fn size(mut self, width: u32, height: u32) -> Axes {
        self.size = [width, height];
        self
    }

    /// y in powers of ten; values must be positive.
    pub fn log_y(mut self) -> Axes {
        self.decades = true;
        self
    }

    /// Paths as curves.
    pub fn lines(self, name: &str, paths: &[Vec<[f64; 2]>], color: usize) -> Axes {
        self.with(name, paths.to_vec(), Look::Curve(4.0, 1.0), color)
    }

    /// Paths as thin, pale curves, for many of them or beside what counts.
    pub fn thin_lines(self, name: &str, paths: &[Vec<[f64; 2]>], color: usize) -> Axes {
        self.with(name, paths.to_vec(), Look::Curve(2.0, 0.55), color)
    }

    /// Points as dots.
    pub fn scatter(self, name: &str, points: &[[f64; 2]], color: usize) -> Axes {
        self.with(name, vec![points.to_vec()], Look::Dots(9.0), color)
    }

    /// Paths as strokes that fade in towards their ends, as ground: short solves from many places show a vector field.
    /// They set no range, and end where they leave it.
    pub fn streamlines(self, paths: &[Vec<[f64; 2]>]) -> Axes {
        self.with("", paths.to_vec(), Look::Stroke, 0)
    }

    fn with(mut self, name: &str, paths: Vec<Vec<[f64; 2]>>, look: Look, color: usize) -> Axes {
        let color = if look == Look::Stroke { FAINT } else { SERIES[color % SERIES.len()] };
        self.series.push(Series { name: name.to_owned(), paths, look, color });
        self
    }

    /// The figure.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without a curve or a dot, [`PlotError::Value`] for a coordinate that is not finite, or
    /// not positive where y is in powers of ten.
    pub fn render(&self) -> Result<Figure, PlotError> {
        let series = self.placed()?;
        let points = |axis: usize| {
            let drawn = series.iter().filter(|s| s.look != Look::Stroke).flat_map(|s| &s.paths);
            drawn.flatten().map(move |p| p[axis])
        };
        if points(0).next().is_none() {
            return Err(PlotError::Nothing { what: "curves or dots" });
        }
        let x = Named::new(padded(points(0), if self.decades { 0.0 } else { ROOM }), 6, &self.names[0]);
        let y = padded(points(1), ROOM);
        let y = if self.decades {
            Named::decades(y, 7, &self.names[1])
        } else {
            Named::new(y, 6, &self.names[1])
        };
        let mut chart = Chart::new(self.size, x, y.upwards(), false)?;
        chart.caption(&self.title)?;
        for one in &series {
            one.draw(&mut chart);
        }
        // The legend is written from its right end.
        for one in series.iter().rev().filter(|s| !s.name.is_empty()) {
            match one.look {
                Look::Dots(width) => chart.legend_of_dots(&one.name, width, one.color)?,
                _ => chart.legend(&one.name, one.color)?,
            }
        }
        Ok(chart.finish())
    }

    /// The series as they lie on the axes.
    fn placed(&self) -> Result<Vec<Series>, PlotError> {
        let place = |(index, [x, y]): (usize, [f64; 2])| {
            let scaled = if self.decades { y.log10() } else { y };
            match (x.is_finite(), scaled.is_finite()) {
                (true, true) => Ok([x, scaled]),
                (false, _) => Err(PlotError::Value { what: "coordinate of point", index, value: x }),
                (true, false) => Err(PlotError::Value { what: "coordinate of point", index, value: y }),
            }
        };
        let path = |path: &Vec<[f64; 2]>| path.iter().copied().enumerate().map(place).collect();
        let one = |series: &Series| {
            let paths = series.paths.iter().map(path).collect::<Result<_, _>>()?;
            Ok(Series { name: series.name.clone(), paths, ..*series })
        };
        self.series.iter().map(one).collect()
    }
}

impl Series {
    fn draw(&self, chart: &mut Chart) {
        for path in &self.paths {
            match self.look {
                Look::Curve(width, opacity) => chart.translucent(path, width, self.color, opacity),
                Look::Dots(width) => path.iter().for_each(|p| chart.dot(*p, width, self.color)),
                Look::Stroke => stroke(chart, path, self.color),
            }
        }
    }
}

/// Segment by segment, each a little darker and wider than the one before.
fn stroke(chart: &mut Chart, path: &[[f64; 2]], color: [u8; 3]) {
    let [left, right, low, high] = chart.ends();
    let inside = |p: &&[f64; 2]| (left..=right).contains(&p[0]) && (low..=high).contains(&p[1]);
    let path: Vec<[f64; 2]> = path.iter().take_while(inside).copied().collect();
    for (i, ends) in path.windows(2).enumerate() {
        let part = (i + 1) as f64 / (path.len() - 1) as f64;
        chart.translucent(ends, 1.2 + 2.2 * part, color, 0.75 * part);
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
    fn curves_and_dots_have_the_colors_that_they_were_given() {
        let axes = Axes::new("x", "y").lines("a", &line([0.0, 1.0]), 2).scatter("b", &[[0.5, 0.2]], 1);
        let figure = axes.render().unwrap();
        assert!(count(&figure, SERIES[2]) > 3 * 1000, "{}", count(&figure, SERIES[2]));
        // a dot of 9 pixels in the axes, another in the legend
        assert!((80..200).contains(&count(&figure, SERIES[1])), "{}", count(&figure, SERIES[1]));
        assert_eq!(count(&figure, SERIES[0]), 0);
    }

    #[test]
    fn strokes_set_no_range_and_stay_inside() {
        let plain = Axes::new("x", "y").lines("", &line([0.0, 1.0]), 0);
        let far = plain.clone().streamlines(&[vec![[50.0, 50.0], [60.0, 60.0]]]);
        assert_eq!(plain.render().unwrap(), far.render().unwrap());
        let near = plain.clone().streamlines(&[vec![[0.2, 0.8], [0.3, 0.8], [0.3, 9.0]]]);
        assert_ne!(plain.render().unwrap(), near.render().unwrap());
    }

    #[test]
    fn an_axis_in_powers_of_ten_makes_an_exponential_straight() {
        let points: Vec<[f64; 2]> =
            (0..50).map(|i| [f64::from(i), 10f64.powf(-0.1 * f64::from(i))]).collect();
        let ends = vec![points[0], points[49]];
        let curve = Axes::new("x", "y").log_y().lines("", &[points], 0).render().unwrap();
        let straight = Axes::new("x", "y").log_y().lines("", &[ends], 0).render().unwrap();
        let differ = curve.rgb.iter().zip(&straight.rgb).filter(|(a, b)| a.abs_diff(**b) > 2).count();
        assert_eq!(differ, 0);
        let refused = Axes::new("x", "y").log_y().scatter("", &[[1.0, 1.0], [2.0, 0.0]], 0).render();
        assert!(matches!(refused, Err(PlotError::Value { index: 1, .. })), "{refused:?}");
    }

    #[test]
    fn nothing_but_strokes_is_nothing() {
        let strokes = Axes::new("x", "y").streamlines(&line([0.0, 1.0])).render();
        assert!(matches!(strokes, Err(PlotError::Nothing { .. })), "{strokes:?}");
    }
}
