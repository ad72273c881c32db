//! Pairs of columns with their marginals: the samples of a density, and the data beside them.
//!
//! Panels form a triangle. The panels of its diagonal have the marginal densities of the columns; the panel of columns j
//! and i > j has their joint density, j to the right and i upward. Only the outer edges have labels.
use super::{
    ColorScale, Extent, Figure, PlotError,
    axis::{Axis, power_of_ten},
    color::{INK, SERIES},
    corner::{pairs, range, spread},
    map::{Cells, Histogram},
    sheet::{Anchor, LABEL, Rect, Sheet},
    text,
};

/// Maximum number of columns.
const MOST: usize = 6;
/// Maximum number of dots in a panel of the largest side, and of cells along the sides of a panel.
const DOTS: f64 = 1_500.0;
const LARGEST: u32 = 700;
const CELLS: f64 = 44.0;
/// Space left of the panels, above and below them, and between them.
const LEFT: u32 = 210;
const TOP: u32 = 150;
const BELOW: u32 = 130;
const GAP: u32 = 26;
/// A dot: visible on the dark background and on light cells.
const DOT: [u8; 3] = [96, 220, 240];
/// The filled histogram of the data.
const DATA: [u8; 3] = [176, 200, 224];
/// Space above the highest value of a marginal density, as a share of it.
const ABOVE: f64 = 0.06;

/// Every pair of up to six columns, and the marginal density of each: the density of `samples` in colors and as a line,
/// the `data` as dots and as a filled histogram.
///
/// # Shapes and units
/// `samples` and `data` are rows `[n, d]`, row-major, in the units of the data; d is the number of `names`, which label the
/// axes. Without data (an empty slice) the dots are samples. A marginal density is per unit of its column.
///
/// # Errors
/// [`PlotError::Nothing`] without columns or samples, [`PlotError::TooMany`] for more than six columns;
/// [`PlotError::Value`] for a value that is not finite.
///
/// # Panics
/// If a length is not a multiple of d.
#[track_caller]
pub fn pair_plot(title: &str, names: &[String], samples: &[f64], data: &[f64]) -> Result<Figure, PlotError> {
    let d = names.len();
    check(d, samples, data)?;
    let shown = if data.is_empty() { samples } else { data };
    let ranges: Vec<[f64; 2]> = (0..d).map(|a| range(shown, d, a)).collect();
    let count = d as u32;
    let side = (1600 / count).saturating_sub(GAP).clamp(240, LARGEST);
    let across = count * (side + GAP);
    let mut sheet = Sheet::new(LEFT + across + GAP, TOP + across + BELOW);
    for i in 0..d {
        for j in 0..=i {
            let place = |k: usize| k as u32 * (side + GAP);
            let rect = Rect { x: LEFT + place(j), y: TOP + place(i), width: side, height: side };
            let x = Axis::round(ranges[j], 3, 1.0);
            if i == j {
                let [of_samples, of_data] = [samples, data].map(|rows| column(rows, d, j));
                let top = marginal(&mut sheet, rect, ranges[j], &of_samples, &of_data);
                sheet.outline(rect)?;
                // The other diagonal panels stand right of panels with another axis, so their densities have no labels.
                if j == 0 {
                    let (name, unit) = density_label(top, &names[j], side);
                    sheet.axis_left(rect, &Axis::round([top, 0.0], 3, unit), &name)?;
                }
            } else {
                let frame = Extent { x: ranges[j], y: [ranges[i][1], ranges[i][0]] };
                joint(&mut sheet, rect, frame, &pairs(samples, d, [j, i]), &pairs(shown, d, [j, i]))?;
                let y = Axis::round(frame.y, 3, 1.0);
                sheet.axis_left(
                    rect,
                    &if j == 0 { y } else { y.bare() },
                    if j == 0 { &names[i] } else { "" },
                )?;
            }
            let is_below = i + 1 == d;
            let name = if is_below { names[j].as_str() } else { "" };
            sheet.axis_below(rect, &if is_below { x } else { x.bare() }, name, GAP / 2)?;
        }
    }
    // The legend lies between the title and the panels.
    sheet.title(title, Rect { x: LEFT, y: TOP - 68, width: across, height: side });
    legend(&mut sheet, !data.is_empty(), d > 1);
    Ok(sheet.figure)
}

fn check(d: usize, samples: &[f64], data: &[f64]) -> Result<(), PlotError> {
    if d == 0 {
        return Err(PlotError::Nothing { what: "columns" });
    }
    if d > MOST {
        return Err(PlotError::TooMany { what: "columns", found: d, most: MOST });
    }
    if samples.is_empty() {
        return Err(PlotError::Nothing { what: "samples" });
    }
    for values in [samples, data] {
        assert!(values.len().is_multiple_of(d), "{} coordinates are not rows of {d}", values.len());
        if let Some(index) = values.iter().position(|x| !x.is_finite()) {
            return Err(PlotError::Value { what: "coordinate", index, value: values[index] });
        }
    }
    Ok(())
}

fn column(rows: &[f64], d: usize, at: usize) -> Vec<f64> {
    rows.iter().skip(at).step_by(d).copied().collect()
}

/// The shares of values in equal bins over a range, per unit.
fn binned(values: &[f64], [from, to]: [f64; 2], bins: usize) -> Vec<f64> {
    let mut found = vec![0.0; bins];
    let share = bins as f64 / ((to - from) * values.len().max(1) as f64);
    for &x in values {
        let at = ((x - from) / (to - from) * bins as f64).floor();
        if (0.0..bins as f64).contains(&at) {
            found[at as usize] += share;
        }
    }
    found
}

/// Draws the marginal densities of samples and data in the same bins, and returns the density at the top of the panel.
fn marginal(sheet: &mut Sheet, rect: Rect, range: [f64; 2], samples: &[f64], data: &[f64]) -> f64 {
    let fewest = if data.is_empty() { samples.len() } else { data.len() };
    // Rice's rule; more bins would show the noise of the counts.
    let bins = (2.0 * (fewest as f64).cbrt()).clamp(12.0, 60.0) as usize;
    let [of_samples, of_data] = [samples, data].map(|values| binned(values, range, bins));
    let highest = of_samples.iter().chain(&of_data).fold(0.0, |most: f64, &p| most.max(p));
    let top = if highest > 0.0 { (1.0 + ABOVE) * highest } else { 1.0 };
    let [left, upper, right, lower] = rect.ends();
    let place = |bin: f64, density: f64| {
        [left + (right - left) * bin / bins as f64, lower - (lower - upper) * density / top]
    };
    if !data.is_empty() {
        let tops =
            of_data.iter().enumerate().flat_map(|(i, &p)| [place(i as f64, p), place(i as f64 + 1.0, p)]);
        let ends = [place(bins as f64, 0.0), place(0.0, 0.0)];
        let outline: Vec<[f64; 2]> = tops.chain(ends).collect();
        sheet.area(&outline, DATA, 1.0);
    }
    let line: Vec<[f64; 2]> = of_samples.iter().enumerate().map(|(i, &p)| place(i as f64 + 0.5, p)).collect();
    sheet.curve(&line, 4.0, SERIES[0], 1.0);
    top
}

/// Draws the density of samples, and points as dots.
fn joint(
    sheet: &mut Sheet,
    rect: Rect,
    frame: Extent,
    samples: &[[f64; 2]],
    points: &[[f64; 2]],
) -> Result<(), PlotError> {
    let counted = Histogram::of(samples, frame, CELLS);
    sheet.heat(rect, &counted.map(), ColorScale::of(&counted.map()), Cells::Smooth);
    let place = |p: &[f64; 2]| {
        let at = |v: f64, [from, to]: [f64; 2]| (v - from) / (to - from);
        let (u, v) = (at(p[0], frame.x), at(p[1], frame.y));
        let is_inside = (0.01..0.99).contains(&u) && (0.01..0.99).contains(&v);
        let on = |from: u32, share: f64, length: u32| (f64::from(from) + share * f64::from(length)) as u32;
        is_inside.then_some(([on(rect.x, u, rect.width), on(rect.y, v, rect.height)], DOT))
    };
    let most = DOTS * (f64::from(rect.width) / f64::from(LARGEST)).powi(2);
    sheet.dots(2, 0.7, spread(points, most as usize).filter_map(place))?;
    sheet.outline(rect)
}

/// The label of the axis of a marginal density, at most `most` long, and the unit of its numbers: a power of ten, unless
/// the numbers are short.
fn density_label(top: f64, column: &str, most: u32) -> (String, f64) {
    let exponent = top.log10().floor() as i32;
    let (scale, unit) = match exponent {
        -2..=3 => (String::new(), 1.0),
        _ => (format!(" / {}", power_of_ten(exponent)), 10f64.powi(exponent)),
    };
    let whole = format!("density per unit of {column}{scale}");
    let is_short = u32::try_from(text::width(&whole, LABEL)).is_ok_and(|width| width <= most);
    (if is_short { whole } else { format!("density{scale}") }, unit)
}

/// One line below the title, which says what is drawn how.
fn legend(sheet: &mut Sheet, has_data: bool, has_pairs: bool) {
    let (mut x, y) = (f64::from(LEFT), 104.0);
    let swatch = |x: f64| [[x, y - 14.0], [x + 46.0, y - 14.0], [x + 46.0, y + 14.0], [x, y + 14.0]];
    let name = |sheet: &mut Sheet, x: &mut f64, text: &str| {
        sheet.text(text, [*x as i32 + 60, y as i32], LABEL, Anchor::Left, INK);
        *x += 104.0 + f64::from(text::width(text, LABEL));
    };
    sheet.curve(&[[x, y], [x + 46.0, y]], 4.0, SERIES[0], 1.0);
    name(sheet, &mut x, if has_pairs { "model; colors: its joint density" } else { "model" });
    if has_data {
        sheet.area(&swatch(x), DATA, 1.0);
        name(sheet, &mut x, "data");
    }
    if has_pairs {
        sheet.with_map_colors(|sheet| {
            sheet.area(&swatch(x), INK, 1.0);
            [9.0, 22.0, 37.0].into_iter().for_each(|at| sheet.curve(&[[x + at, y]], 6.0, DOT, 1.0));
        });
        name(sheet, &mut x, if has_data { "rows of the data" } else { "samples of the model" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(d: usize) -> Vec<String> {
        (0..d).map(|i| format!("x{i}")).collect()
    }

    /// Rows on a rising line in every pair of columns.
    fn line(n: usize, d: usize) -> Vec<f64> {
        (0..n).flat_map(|i| (0..d).map(move |a| i as f64 * 10f64.powi(a as i32))).collect()
    }

    #[test]
    fn a_triangle_of_every_number_of_columns_is_drawn() {
        for d in 1..=MOST {
            let figure = pair_plot("t", &names(d), &line(3_000, d), &line(200, d)).unwrap();
            let side = (1600 / d as u32).saturating_sub(GAP).clamp(240, 700);
            assert_eq!(figure.width, LEFT + d as u32 * (side + GAP) + GAP);
            assert_eq!(figure.height, TOP + d as u32 * (side + GAP) + BELOW);
            // Above the diagonal is nothing.
            if d > 1 {
                assert_eq!(figure.pixel(LEFT + side + GAP + side / 2, TOP + side / 2), [255; 3]);
            }
        }
    }

    #[test]
    fn a_marginal_density_integrates_to_the_share_inside() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.01).collect();
        for (range, share) in [([0.0, 10.0], 1.0), ([0.0, 5.0], 0.5), ([-5.0, 2.0], 0.2), ([20.0, 30.0], 0.0)]
        {
            let found = binned(&values, range, 40);
            let integral = found.iter().sum::<f64>() * (range[1] - range[0]) / 40.0;
            assert!((integral - share).abs() < 2e-3, "{range:?}: {integral}");
        }
    }

    #[test]
    fn wrong_columns_and_values_are_refused() {
        let refused = |d: usize, samples: &[f64], data: &[f64]| {
            pair_plot("", &names(d), samples, data).unwrap_err().to_string()
        };
        assert!(refused(0, &[], &[]).contains("columns"));
        assert!(refused(7, &[0.0; 7], &[]).contains("7 columns"));
        assert!(refused(2, &[], &[1.0, 2.0]).contains("samples"));
        assert!(refused(2, &[1.0, f64::NAN], &[]).contains("NaN"));
        assert!(refused(2, &[1.0, 2.0], &[f64::INFINITY, 1.0]).contains("inf"));
    }

    #[test]
    fn equal_values_and_a_single_sample_are_drawn() {
        for rows in [vec![3.0, 5.0], vec![3.0, 5.0, 3.0, 5.0, 3.0, 5.0], vec![1e300, -1e300, 0.0, 0.0]] {
            assert!(pair_plot("t", &names(2), &rows, &[]).is_ok(), "{rows:?}");
            assert!(pair_plot("t", &names(2), &rows, &rows).is_ok(), "{rows:?}");
        }
    }
}
