//! A corner plot: one panel per pair of coordinates, with the data as a histogram and samples as points.
//!
//! Panels form a triangle, coordinate j to the right and i > j upward, so that a column shares its horizontal
//! axis and a row its vertical axis. Only the outer edges have labels. Each panel has its own color scale,
//! because the density of each pair has its own unit.
use super::{
    ColorScale, Extent, Figure, PlotError,
    axis::Axis,
    map::{Cells, Histogram},
    sheet::{Rect, Sheet},
};

/// Maximum number of coordinates; the first ones are shown.
const SHOWN: usize = 6;
/// Maximum number of points per panel, and of cells along its sides.
const DOTS: usize = 1_500;
const CELLS: f64 = 70.0;
/// Space left of the panels, above and below them, and between them.
const LEFT: u32 = 180;
const TOP: u32 = 104;
const BELOW: u32 = 130;
const GAP: u32 = 26;
/// Share of the data beyond each end of an axis, and the margin around the rest, as a share of its extent.
const BEYOND: f64 = 0.003;
const ROOM: f64 = 0.08;
/// The color of a sample: visible on the dark background and on light cells.
const DOT: [u8; 3] = [96, 220, 240];

/// Every pair of the first six coordinates: the data as a histogram, samples as points.
///
/// # Shapes and units
/// `data` and `samples` are rows `[n, d]`, row-major; d is the number of `names`.
///
/// # Errors
/// [`PlotError::Nothing`] for fewer than two coordinates, no data or no samples; [`PlotError::Value`] for a value
/// that is not finite.
///
/// # Panics
/// If a length is not a multiple of d.
#[track_caller]
pub fn corner(title: &str, names: &[String], data: &[f64], samples: &[f64]) -> Result<Figure, PlotError> {
    let d = names.len();
    if d < 2 {
        return Err(PlotError::Nothing { what: "pairs of coordinates" });
    }
    for values in [data, samples] {
        assert!(values.len().is_multiple_of(d), "{} coordinates are not rows of {d}", values.len());
        if values.is_empty() {
            return Err(PlotError::Nothing { what: "points" });
        }
        if let Some(index) = values.iter().position(|x| !x.is_finite()) {
            let value = values[index];
            return Err(PlotError::Value { what: "coordinate", index, value });
        }
    }
    let shown = d.min(SHOWN);
    let ranges: Vec<[f64; 2]> = (0..shown).map(|a| range(data, d, a)).collect();
    let count = shown as u32 - 1;
    let side = (1500 / count).saturating_sub(GAP).clamp(200, 640);
    let across = count * (side + GAP);
    let mut sheet = Sheet::new(LEFT + across + GAP, TOP + across + BELOW);
    for i in 1..shown {
        for j in 0..i {
            let place = |k: usize| k as u32 * (side + GAP);
            let rect = Rect { x: LEFT + place(j), y: TOP + place(i - 1), width: side, height: side };
            let frame = Extent { x: ranges[j], y: [ranges[i][1], ranges[i][0]] };
            panel(&mut sheet, rect, frame, &pairs(data, d, [j, i]), &pairs(samples, d, [j, i]))?;
            let (x, y) = (Axis::round(frame.x, 3, 1.0), Axis::round(frame.y, 3, 1.0));
            let (below, left) = (i + 1 == shown, j == 0);
            sheet.axis_below(
                rect,
                &if below { x } else { x.bare() },
                if below { &names[j] } else { "" },
                GAP / 2,
            )?;
            sheet.axis_left(rect, &if left { y } else { y.bare() }, if left { &names[i] } else { "" })?;
        }
    }
    sheet.title(title, Rect { x: LEFT, y: TOP, width: across - GAP, height: side });
    Ok(sheet.figure)
}

pub(super) fn pairs(rows: &[f64], d: usize, [j, i]: [usize; 2]) -> Vec<[f64; 2]> {
    rows.chunks_exact(d).map(|row| [row[j], row[i]]).collect()
}

/// The limits of an axis.
pub(super) fn range(data: &[f64], d: usize, axis: usize) -> [f64; 2] {
    let mut along: Vec<f64> = data.iter().skip(axis).step_by(d).copied().collect();
    along.sort_by(f64::total_cmp);
    let most = (along.len() - 1) as f64;
    let [from, to] = [BEYOND, 1.0 - BEYOND].map(|q| along[(q * most).round() as usize]);
    // A panel needs an extent, even if nearly all values of a coordinate are equal.
    let room = if to > from { ROOM * (to - from) } else { from.abs().max(1.0) * ROOM };
    [from - room, to + room]
}

fn panel(
    sheet: &mut Sheet,
    rect: Rect,
    frame: Extent,
    data: &[[f64; 2]],
    samples: &[[f64; 2]],
) -> Result<(), PlotError> {
    let counted = Histogram::of(data, frame, CELLS);
    sheet.heat(rect, &counted.map(), ColorScale::of(&counted.map()), Cells::Flat);
    let place = |p: &[f64; 2]| {
        let at = |v: f64, [from, to]: [f64; 2]| (v - from) / (to - from);
        let (u, v) = (at(p[0], frame.x), at(p[1], frame.y));
        let inside = (0.01..0.99).contains(&u) && (0.01..0.99).contains(&v);
        let on = |from: u32, share: f64, length: u32| (f64::from(from) + share * f64::from(length)) as u32;
        inside.then_some(([on(rect.x, u, rect.width), on(rect.y, v, rect.height)], DOT))
    };
    sheet.dots(1, 0.7, spread(samples, DOTS).filter_map(place))?;
    sheet.outline(rect)
}

/// At most `most` points, evenly chosen: the points may be in an order, such as one class after the other.
pub(super) fn spread(points: &[[f64; 2]], most: usize) -> impl Iterator<Item = &[f64; 2]> {
    let count = points.len().min(most);
    (0..count).map(move |i| &points[i * points.len() / count])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on a curve in 3-D: x grows, y = x, z = 0 except for the last.
    fn line(n: usize) -> Vec<f64> {
        (0..n).flat_map(|i| [i as f64, i as f64 * 10.0, f64::from(i + 1 == n)]).collect()
    }

    fn names(d: usize) -> Vec<String> {
        (0..d).map(|i| format!("x{i}")).collect()
    }

    #[test]
    fn a_correlated_pair_lies_on_the_rising_diagonal() {
        let figure = corner("line", &names(3), &line(5_000), &line(500)).unwrap();
        let side = 1500 / 2 - GAP;
        let side = side.clamp(200, 640);
        assert_eq!(figure.width, LEFT + 2 * (side + GAP) + GAP);
        // The panel of coordinates 0 and 1 is the upper left one.
        let lit = |u: f64, v: f64| {
            let at = |from: u32, share: f64| from + (share * f64::from(side)) as u32;
            let (x, y) = (at(LEFT, u), at(TOP, v));
            (0..400).filter(|i| figure.pixel(x + i % 20 - 10, y + i / 20 - 10)[0] > 60).count()
        };
        assert!(lit(0.25, 0.75) > 20 && lit(0.75, 0.25) > 20);
        assert_eq!((lit(0.25, 0.25), lit(0.75, 0.75)), (0, 0));
    }

    #[test]
    fn data_without_pairs_are_refused() {
        let refused = |d, rows: &[f64]| corner("", &names(d), rows, rows).unwrap_err().to_string();
        assert!(refused(1, &[1.0, 2.0]).contains("pairs of coordinates"));
        assert!(refused(2, &[]).contains("points"));
        assert!(refused(2, &[1.0, f64::NAN]).contains("NaN"));
    }
}
