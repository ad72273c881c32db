//! Work-precision figures: the error of methods against their work, on logarithmic axes.
use super::{
    Figure, PlotError,
    chart::{Chart, Entry, Layout, Named, Right, Sample, Size, padded},
    color::{GRID, SERIES},
    tags::{self, Tag},
};

/// One method over several tolerances.
#[derive(Debug, Clone, Copy)]
pub struct MethodCurve<'a> {
    /// The name in the legend.
    pub name: &'a str,
    /// `[error, work]`, both above 0, in the order of the tolerances.
    pub points: &'a [[f64; 2]],
}

/// Margin around the points, as a share of their extent in decades.
const ROOM: f64 = 0.06;

/// Plots work against error on logarithmic axes, one curve per method. Lower and further left is better. A curve may turn
/// back: a tighter tolerance can have a larger error.
///
/// `axes` are the names of the error and of the work, such as `["largest error at the end", "wall time (ms)"]`.
///
/// # Errors
/// [`PlotError::Nothing`] without a point, [`PlotError::Value`] for a value that is not finite or not above 0.
///
/// # Examples
/// ```
/// use flowline::plot::{MethodCurve, work_precision};
/// let tsit5 = MethodCurve { name: "tsit5", points: &[[1e-4, 120.0], [1e-8, 700.0]] };
/// assert!(work_precision("Circle", ["error at t = 1", "function evaluations"], &[tsit5]).is_ok());
/// ```
pub fn work_precision(title: &str, axes: [&str; 2], curves: &[MethodCurve]) -> Result<Figure, PlotError> {
    let points = || curves.iter().flat_map(|curve| curve.points);
    if let Some((index, value)) = points().flatten().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0))
    {
        return Err(PlotError::Value { what: "error or work", index, value: *value });
    }
    if points().next().is_none() {
        return Err(PlotError::Nothing { what: "points `[error, work]`" });
    }
    let logs = |curve: &MethodCurve| curve.points.iter().map(|p| p.map(f64::log10)).collect::<Vec<_>>();
    let paths: Vec<Vec<[f64; 2]>> = curves.iter().map(logs).collect();
    let chart = |legend: &[Entry]| {
        let range = |a: usize| padded(paths.iter().flatten().map(|p| p[a]), ROOM);
        let x = Named::decades(range(0), 9, axes[0]);
        let layout = Layout { size: Size::Canvas, title, legend, right: Right::Nothing };
        let mut chart = Chart::new(x, Named::decades(range(1), 8, axes[1]).upwards(), &layout)?;
        subdivide(&mut chart)?;
        Ok::<_, PlotError>(chart)
    };
    let color = |i: usize| SERIES[i % SERIES.len()];
    let mut drawn = chart(&[])?;
    let screen: Vec<Vec<[f64; 2]>> = paths.iter().map(|path| drawn.on_screen(path)).collect();
    let tag = |i: usize| {
        // Methods lie farthest apart at the smallest error.
        let mut ends = screen[i].clone();
        ends.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Tag { name: curves[i].name.to_owned(), ends, color: color(i) }
    };
    let tags: Vec<Tag> = (0..curves.len()).filter(|i| !screen[*i].is_empty()).map(tag).collect();
    let places = tags::placed(&tags, &screen, drawn.bounds());
    if places.is_none() {
        let entry = |tag: &Tag| Entry { name: tag.name.clone(), color: tag.color, sample: Sample::Line };
        drawn = chart(&tags.iter().map(entry).collect::<Vec<_>>())?;
    }
    for (i, path) in paths.iter().enumerate().rev() {
        drawn.curve(path, 3.5, color(i));
        path.iter().for_each(|&p| drawn.dot(p, 13.0, color(i)));
    }
    drawn.tags_at(&tags, &places.unwrap_or_default());
    Ok(drawn.finish(""))
}

/// Faint grid lines at 2 to 9 times a power of ten of the work, if a decade is tall enough.
fn subdivide(chart: &mut Chart) -> Result<(), PlotError> {
    let [left, right, low, high] = chart.ends();
    if high - low > 5.0 {
        return Ok(());
    }
    for k in low.floor() as i32..=high.floor() as i32 {
        for digit in 2..10 {
            let at = f64::from(k) + f64::from(digit).log10();
            if low < at && at < high {
                let ends = [[left, at], [right, at]].map(|p| chart.at(p));
                chart.sheet.line(&ends, 1, GRID)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::marks::Mark;

    #[test]
    fn a_point_lies_at_its_logarithms() {
        let points = [[1e-8, 1000.0], [1e-4, 100.0]];
        let figure =
            work_precision("a", ["error", "work"], &[MethodCurve { name: "m", points: &points }]).unwrap();
        let dots = figure.marks.iter().filter_map(|mark| match mark {
            Mark::Path { points, width: 13.0, .. } => Some(points[0]),
            _ => None,
        });
        let dots: Vec<[f64; 2]> = dots.collect();
        assert!(dots[0][0] < dots[1][0] && dots[0][1] < dots[1][1], "{dots:?}");
        assert_eq!(figure.pixel(dots[0][0] as u32, dots[0][1] as u32), SERIES[0]);
    }

    #[test]
    fn methods_are_named_beside_their_curves() {
        let [a, b] = [[[1e-8, 1000.0], [1e-4, 100.0]], [[1e-8, 100.0], [1e-4, 10.0]]];
        let curves = [MethodCurve { name: "a", points: &a }, MethodCurve { name: "b", points: &b }];
        let figure = work_precision("", ["error", "work"], &curves).unwrap();
        let color = |name: &str| {
            figure.marks.iter().find_map(|mark| match mark {
                Mark::Text { text, color, .. } if text == name => Some(*color),
                _ => None,
            })
        };
        assert_eq!((color("a"), color("b")), (Some(SERIES[0]), Some(SERIES[1])));
    }

    #[test]
    fn zeros_and_nothing_are_refused() {
        let draw = |points: &[[f64; 2]]| {
            work_precision("", ["", ""], &[MethodCurve { name: "m", points }]).unwrap_err().to_string()
        };
        assert!(draw(&[[0.0, 1.0]]).contains("error or work 0 is 0"));
        assert!(draw(&[]).contains("no points `[error, work]`"));
        let one = [MethodCurve { name: "m", points: &[[1e-3, 5.0]] }];
        assert!(work_precision("One point", ["error", "wall time (ms)"], &one).is_ok());
    }
}
