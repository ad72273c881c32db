//! Space-time figures of equations in one space dimension: t to the right, x upward, the value as color.
use super::{
    Figure, PlotError,
    chart::{Chart, Layout, Named, Right, Size, padded},
    color::inferno,
    marks::Colors,
};

/// The data of a space-time figure.
#[derive(Debug, Clone, Copy)]
pub struct SpaceTime<'a> {
    /// The title; may be empty.
    pub title: &'a str,
    /// The quantity that the colors show.
    pub name: &'a str,
    /// Times, strictly increasing or strictly decreasing; may be unevenly spaced.
    pub ts: &'a [f64],
    /// Values at each time, evenly spaced in x `[time, x]`.
    pub rows: &'a [Vec<f64>],
    /// x of the first and of the last value.
    pub x: [f64; 2],
}

/// Draws values over time and space, interpolated linearly.
///
/// # Errors
/// [`PlotError::Length`] for rows of different lengths or a number of rows other than the number of times,
/// [`PlotError::Nothing`] with fewer than two times or points in space, [`PlotError::Extent`] for times out of
/// order or x without extent, [`PlotError::Value`] for values that are not finite.
pub fn space_time(field: &SpaceTime) -> Result<Figure, PlotError> {
    field.check()?;
    let [low, high] = padded(field.rows.iter().flatten().copied(), 0.0);
    let n = field.rows[0].len();
    let last = field.ts.len() - 1;
    let ends = [field.ts[0].min(field.ts[last]), field.ts[0].max(field.ts[last])];
    let (x, y) = (Named::new(ends, 8, "t"), Named::new(field.x, 6, "x").upwards());
    let layout = Layout { size: Size::Canvas, title: field.title, legend: &[], right: Right::Bar };
    let mut chart = Chart::new(x, y, &layout)?;
    chart.fill(|[t, x]| {
        let (row, part) = field.row_before(t);
        let place = ((x - field.x[0]) / (field.x[1] - field.x[0])).clamp(0.0, 1.0) * (n - 1) as f64;
        let column = (place as usize).min(n - 2);
        let along = |row: &[f64]| row[column] + (place - column as f64) * (row[column + 1] - row[column]);
        let (a, b) = (along(&field.rows[row]), along(&field.rows[row + 1]));
        inferno((a + part * (b - a) - low) / (high - low))
    });
    chart.bar(Named::new([low, high], 6, field.name), inferno, Colors::Map)?;
    Ok(chart.finish(""))
}

impl SpaceTime<'_> {
    /// The index of the row before t, in the order of the solve, and the position of t between this row (0) and the
    /// next (1).
    fn row_before(&self, t: f64) -> (usize, f64) {
        let falls = self.ts[0] > self.ts[1];
        let after = self.ts.partition_point(|&other| if falls { other > t } else { other < t });
        let row = after.saturating_sub(1).min(self.ts.len() - 2);
        let part = (t - self.ts[row]) / (self.ts[row + 1] - self.ts[row]);
        (row, part.clamp(0.0, 1.0))
    }

    fn check(&self) -> Result<(), PlotError> {
        let (times, rows) = (self.ts.len(), self.rows.len());
        if times != rows {
            return Err(PlotError::Length {
                what: "rows of a space-time figure",
                found: rows,
                expected: times,
            });
        }
        let places = self.rows.first().map_or(0, Vec::len);
        if times < 2 || places < 2 {
            return Err(PlotError::Nothing { what: "grid of two times and two points in space" });
        }
        if let Some(row) = self.rows.iter().find(|row| row.len() != places) {
            let what = "values of a row of a space-time figure";
            return Err(PlotError::Length { what, found: row.len(), expected: places });
        }
        if let Some((index, &value)) = self.rows.iter().flatten().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(PlotError::Value { what: "value of a space-time figure", index, value });
        }
        let sign = if self.ts[0] > self.ts[1] { -1.0 } else { 1.0 };
        let rising = |pair: &&[f64]| pair[0] * sign < pair[1] * sign;
        if let Some(pair) = self.ts.windows(2).find(|pair| !rising(pair)) {
            return Err(PlotError::Extent {
                what: "the interval between two times",
                from: pair[0],
                to: pair[1],
            });
        }
        let [from, to] = self.x;
        if !(from.is_finite() && to.is_finite() && from < to) {
            return Err(PlotError::Extent { what: "x", from, to });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::chart::LEFT;

    #[test]
    fn colors_interpolate_between_rows_at_uneven_times() {
        let rows = vec![vec![0.0, 0.0], vec![1.0, 1.0], vec![1.0, 1.0]];
        let figure = |ts: &[f64]| {
            space_time(&SpaceTime { title: "", name: "u", ts, rows: &rows, x: [0.0, 1.0] }).unwrap()
        };
        let drawn = figure(&[0.0, 8.0, 10.0]);
        let wide = f64::from(drawn.width - LEFT - 244);
        let column = |part: f64| drawn.pixel(LEFT + (part * wide) as u32, 400);
        for (part, value) in [(0.0, 0.0), (0.4, 0.5), (0.79, 0.9875), (0.9, 1.0)] {
            let (found, expected) = (column(part), inferno(value));
            assert!((0..3).all(|c| found[c].abs_diff(expected[c]) <= 1), "{part}: {found:?} {expected:?}");
        }
        let back = figure(&[10.0, 2.0, 0.0]);
        assert_eq!(back.pixel(LEFT, 400), inferno(1.0));
    }

    #[test]
    fn invalid_fields_are_refused() {
        let draw = |ts: &[f64], rows: &[Vec<f64>], x| {
            space_time(&SpaceTime { title: "", name: "u", ts, rows, x }).unwrap_err().to_string()
        };
        let two = [vec![0.0, 1.0], vec![1.0, 2.0]];
        assert!(draw(&[0.0], &two, [0.0, 1.0]).contains("2 instead of 1"));
        assert!(draw(&[0.0, 0.0], &two, [0.0, 1.0]).contains("between two times"));
        assert!(draw(&[0.0, 1.0], &two, [1.0, 1.0]).contains("x [1, 1] is empty or not finite"));
        assert!(draw(&[0.0, 1.0], &[vec![0.0, 1.0], vec![1.0]], [0.0, 1.0]).contains("1 instead of 2"));
        assert!(draw(&[0.0, 1.0], &[vec![0.0, f64::NAN], vec![1.0, 1.0]], [0.0, 1.0]).contains("is NaN"));
        assert!(draw(&[], &[], [0.0, 1.0]).contains("no grid of two times"));
    }
}
