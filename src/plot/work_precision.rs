//! Work-precision figures: the error that methods reach against the work they take, in powers of ten.
use super::{
    Figure, PlotError,
    chart::{Chart, Named},
    color::SERIES,
};

/// One method over several tolerances.
#[derive(Debug, Clone, Copy)]
pub struct MethodCurve<'a> {
    /// The method, as the legend says it.
    pub name: &'a str,
    /// `[error, work]`, both above 0, in the order of the tolerances.
    pub points: &'a [[f64; 2]],
}

const SIZE: [u32; 2] = [1250, 850];
const ROOM: f64 = 0.15;

/// Draws work (`unit`: `ms`, `field evaluations`) against error, one curve a method: lower and further left is better.
///
/// # Errors
/// [`PlotError::Nothing`] without a point, [`PlotError::Value`] for one that is not finite or not above 0.
///
/// # Examples
/// ```
/// use flowline::plot::{MethodCurve, work_precision};
/// let tsit5 = MethodCurve { name: "tsit5", points: &[[1e-4, 120.0], [1e-8, 700.0]] };
/// assert!(work_precision("circle", "field evaluations", &[tsit5]).is_ok());
/// ```
pub fn work_precision(title: &str, unit: &str, curves: &[MethodCurve]) -> Result<Figure, PlotError> {
    let points = || curves.iter().flat_map(|curve| curve.points);
    if let Some((index, value)) = points().flatten().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0))
    {
        return Err(PlotError::Value { what: "error or work", index, value: *value });
    }
    if points().next().is_none() {
        return Err(PlotError::Nothing { what: "error and work" });
    }
    let range = |a: usize| {
        let [low, high] = points()
            .map(|p| p[a].log10())
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
        [low - ROOM, high + ROOM]
    };
    let (x, y) = (Named::decades(range(0), 9, "error"), Named::decades(range(1), 8, unit).upwards());
    let mut chart = Chart::new(SIZE, x, y, false)?;
    chart.caption(title)?;
    subdivide(&mut chart)?;
    for (i, curve) in curves.iter().enumerate().rev() {
        let color = SERIES[i % SERIES.len()];
        let path: Vec<[f64; 2]> = curve.points.iter().map(|p| p.map(f64::log10)).collect();
        chart.curve(&path, 3.5, color);
        path.iter().for_each(|&p| chart.dot(p, 13.0, color));
        chart.legend(curve.name, color)?;
    }
    Ok(chart.finish())
}

/// Faint lines at 2 to 9 times a power of ten of the work, where a decade is tall enough for them.
fn subdivide(chart: &mut Chart) -> Result<(), PlotError> {
    let [left, right, low, high] = chart.ends();
    if high - low > 5.0 {
        return Ok(());
    }
    for k in low.floor() as i32..=high.floor() as i32 {
        for digit in 2..10 {
            let at = f64::from(k) + f64::from(digit).log10();
            if low < at && at < high {
                chart.rule([left, at], [right, at], 0.13)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_lies_at_its_logarithms() {
        let points = [[1e-8, 1000.0], [1e-4, 100.0]];
        let figure = work_precision("a", "work", &[MethodCurve { name: "m", points: &points }]).unwrap();
        // The ends of the axes lie 0.15 decades beyond the points.
        let place =
            |from: f64, width: u32, decades: f64| from + f64::from(width - 1) * ROOM / (decades + 2.0 * ROOM);
        let (x, y) = (place(190.0, SIZE[0], 4.0) as u32, place(120.0, SIZE[1], 1.0) as u32);
        assert_eq!(figure.pixel(x, y), SERIES[0]);
    }

    #[test]
    fn zeros_and_nothing_are_refused() {
        let draw = |points: &[[f64; 2]]| {
            work_precision("", "", &[MethodCurve { name: "m", points }]).unwrap_err().to_string()
        };
        assert!(draw(&[[0.0, 1.0]]).contains("error or work 0 is 0"));
        assert!(draw(&[]).contains("no error and work"));
        let one = [MethodCurve { name: "m", points: &[[1e-3, 5.0]] }];
        assert!(work_precision("one point", "ms", &one).is_ok());
    }
}
