//! Frames of drawn images and windows over drawn points. The reference works in pixels and uses the inverse of a
//! correlation matrix, so units and factors do not occur in it.

use crate::data::{Points, SamplingRule};
use crate::eval::{ImageFrame, PointsFrame, Units};
use crate::ode::tests::draw::{Draw, num_cases};
use std::f64::consts::LN_10;

/// A frame, and the same in pixels: the mean, the standard deviations and the correlation.
struct Case {
    frame: ImageFrame,
    mean: [f64; 2],
    std: [f64; 2],
    correlation: f64,
    /// The decimal logarithms of the standard deviations in the units of the data.
    exponents: [f64; 2],
}

impl Case {
    /// Images and windows of 1 to 2,000 pixels per side, standard deviations of 1e-300 to 1e300 (in windows 1e-280 to 1e290,
    /// which are 0.01 to 1e18 pixels), and correlations from -0.995 to 0.995 in half of the windows.
    fn draw(draw: &mut Draw) -> Case {
        let is_window = draw.coin();
        let [least, most] = if is_window { [-280.0, 290.0] } else { [-300.0, 300.0] };
        let exponents = [0; 2].map(|_| draw.uniform(least, most));
        let std = exponents.map(|e| if is_window { draw.decade(-2.0, 18.0) } else { 10f64.powf(e) });
        Case::with_std(draw, is_window, std, exponents)
    }

    fn with_std(draw: &mut Draw, is_window: bool, std: [f64; 2], exponents: [f64; 2]) -> Case {
        let sides = [0; 2].map(|_| if draw.below(4) == 0 { 1 } else { draw.log_uniform(1.0, 2e3) as usize });
        let in_units = exponents.map(|e| 10f64.powf(e));
        let mean = sides.map(|side| draw.uniform(-1.0, 2.0) * side as f64);
        let correlation = if is_window && draw.coin() { draw.uniform(-0.995, 0.995) } else { 0.0 };
        let pixel = [in_units[0] / std[0], -in_units[1] / std[1]];
        let origin = pixel.map(|pixel| pixel * draw.uniform(-1e3, 1e3));
        let has_factor = correlation != 0.0;
        let frame = ImageFrame {
            width: sides[0],
            height: sides[1],
            mean: if is_window { [0, 1].map(|a| origin[a] + pixel[a] * mean[a]) } else { mean },
            std: in_units,
            factor: if has_factor {
                vec![1.0, 0.0, correlation, (1.0 - correlation * correlation).sqrt()]
            } else {
                Vec::new()
            },
            entropy_nats: 0.0,
            density_max: 1.0,
            rule: SamplingRule::Default,
            fingerprint: String::new(),
            units: is_window.then_some(Units { origin, pixel }),
        };
        Case { frame, mean, std, correlation, exponents }
    }

    /// The distance of a place in pixels from the mean, in standard deviations.
    fn distance(&self, place: [f64; 2]) -> f64 {
        let sign = if self.frame.units.is_some() { -1.0 } else { 1.0 };
        let z = [0, 1].map(|a| (place[a] - self.mean[a]) / self.std[a]);
        let (z, r) = ([z[0], sign * z[1]], self.correlation);
        let most = z[0].abs().max(z[1].abs()).max(f64::MIN_POSITIVE);
        let [x, y] = z.map(|z| z / most);
        most * ((x * x - 2.0 * r * x * y + y * y) / (1.0 - r * r)).sqrt()
    }

    fn reach(&self, margin: f64) -> f64 {
        let sides = [self.frame.width, self.frame.height].map(|side| [-margin, side as f64 + margin]);
        sides[0].iter().flat_map(|&x| sides[1].map(|y| self.distance([x, y]))).fold(0.0, f64::max)
    }
}

#[test]
fn frames_of_any_units_are_those_in_pixels() {
    let (mut draw, mut drawn) = (Draw(1), [0; 6]);
    for i in 0..num_cases(4_000) {
        let case = Case::draw(&mut draw);
        let frame = &case.frame;
        let text = format!("case {i}: {frame:?}");
        let exact = -LN_10 * (case.exponents[0] + case.exponents[1])
            - 0.5 * (1.0 - case.correlation * case.correlation).ln();
        assert!((frame.log_jacobian() - exact).abs() < 1e-9, "{} {exact}, {text}", frame.log_jacobian());
        let place = [frame.width, frame.height].map(|side| draw.uniform(-3.0, 3.0) * side as f64);
        let seen = |p: [f64; 2]| match frame.units {
            None => p,
            Some(Units { origin, pixel }) => [0, 1].map(|a| origin[a] + pixel[a] * p[a]),
        };
        let (x, exact) = (frame.to_standard(seen(place)), case.distance(place));
        let back = frame.place(frame.to_pixels(x));
        // The mean is at most 1e4 pixels from the origin of the coordinates, so its rounding error is 1e-12 pixels.
        let rounding = (1e-10 / case.std[0].min(case.std[1])).min(f64::MAX);
        assert!((x[0].hypot(x[1]) - exact).abs() <= 1e-9 * exact + rounding, "{x:?} {exact}, {text}");
        for a in 0..2 {
            // A factor adds a multiple of the other coordinate and subtracts it again.
            let rounding = if case.correlation == 0.0 { 0.0 } else { 1e-13 * exact * case.std[a] };
            assert!((back[a] - place[a]).abs() < 1e-8 + rounding, "{place:?} {back:?}, {text}");
        }
        let margin = draw.decade(-1.0, 6.0);
        let (found, exact) = (frame.reach(margin), case.reach(margin));
        assert!((found - exact).abs() <= 1e-9 * exact + rounding, "{found} {exact}, {text}");

        let deviations = draw.decade(-2.0, 10.0);
        let most = frame.margin_within(deviations);
        let next = (most + 1.0).max(most * (1.0 + 4.0 * f64::EPSILON)).min(f64::MAX);
        let text = format!("margin {most} for {deviations} deviations, {text}");
        assert!(most >= 0.0 && most == most.floor(), "{text}");
        assert!(most == 0.0 || frame.reach(most) <= deviations, "{text}");
        assert!(next == f64::MAX || frame.reach(next) > deviations, "{text}");
        let seen = [
            frame.width == 1 || frame.height == 1,
            most == 0.0,
            (1.0..1e6).contains(&most),
            most > 2f64.powi(53),
            case.correlation.abs() > 0.9,
            case.exponents[0] + case.exponents[1] < -320.0,
        ];
        drawn.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
    }
    assert!(drawn.iter().all(|&count| count > 20), "{drawn:?}");
}

/// Grids of 1 to 80 cells along the longer side with margins of 0 to 1.5 sides. Standard deviations are 0.01 to 1e3 pixels,
/// so that f32 holds the centers.
#[test]
fn cells_lie_on_the_lattice_of_the_image_and_cover_the_margin() {
    let (mut draw, mut drawn) = (Draw(2), [0; 3]);
    for _ in 0..num_cases(300) {
        let (is_window, pixels) = (draw.coin(), [0; 2].map(|_| draw.uniform(-2.0, 3.0)));
        let exponents = if is_window { [0; 2].map(|_| draw.uniform(-280.0, 290.0)) } else { pixels };
        let case = Case::with_std(&mut draw, is_window, pixels.map(|e| 10f64.powf(e)), exponents);
        let frame = &case.frame;
        let side = 1 + draw.below(80);
        let margin = if draw.coin() { 0 } else { draw.below(frame.side() * 3 / 2 + 1) };
        let (cells, around) = frame.cells_around(side, margin);
        let sides = [frame.height, frame.width];
        let inner = sides.map(|n| (n as f64 * side as f64 / frame.side() as f64 - 1e-9).ceil() as usize);
        let cell = [0, 1].map(|a| sides[a] as f64 / inner[a] as f64);
        let text = format!("{side} cells, margin {margin}, {inner:?} {around:?}: {frame:?}");
        assert_eq!([cells.rows, cells.cols], [0, 1].map(|a| inner[a] + 2 * around[a]), "{text}");
        for a in 0..2 {
            let covers = |cells: usize| cells as f64 * cell[a] > margin as f64 - 1e-9;
            assert!(covers(around[a]) && (around[a] == 0 || !covers(around[a] - 1)), "{text}");
        }
        let area = frame.units.map_or(1.0, |units| units.pixel[0].abs() * units.pixel[1].abs());
        if (area * cell[0] * cell[1]).is_normal() {
            assert!((cells.area / area / (cell[0] * cell[1]) - 1.0).abs() < 1e-9, "{} {text}", cells.area);
        }
        assert_eq!(cells.centers.len(), cells.rows * cells.cols);
        for _ in 0..8 {
            let i = draw.below(cells.centers.len());
            let at = |a: usize, k: usize| (k as f64 + 0.5 - around[a] as f64) * cell[a];
            let place = [at(1, i % cells.cols), at(0, i / cells.cols)];
            let found = frame.place(frame.to_pixels(cells.centers[i].map(f64::from)));
            let far = case.distance(place) + 1.0;
            let off = [0, 1].map(|a| (found[a] - place[a]).abs() / (far * case.std[a]));
            assert!(off[0].max(off[1]) < 2e-6, "cell {i}: {place:?} {found:?}, {text}");
        }
        let seen = [margin == 0, inner.contains(&1), sides[0] != sides[1] && case.correlation != 0.0];
        drawn.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
    }
    assert!(drawn.iter().all(|&count| count > 5), "{drawn:?}");
}

/// Tables of 2 to 3,000 rows in units of 1e-140 to 1e140: normal columns, columns of few different values, columns that
/// are constant but for a row, and outliers of 1e3 to 1e12 standard deviations.
#[test]
fn windows_hold_nearly_all_points_in_at_most_100_cells_per_side() {
    let (mut draw, mut drawn) = (Draw(3), [[0; 5]; 2]);
    for i in 0..num_cases(300) {
        let n = draw.one(&[2, 3, 20, 499, 501, 3_000]);
        let unit = draw.decade(-140.0, 140.0);
        let kinds = [0; 2].map(|_| draw.below(4));
        let is_comparable = draw.coin();
        let columns = [0, 1].map(|a| {
            let unit = if a == 0 || is_comparable { unit } else { draw.decade(-140.0, 140.0) };
            let shift = draw.uniform(-10.0, 10.0);
            let mut column: Vec<f64> = (0..n)
                .map(|row| match kinds[a] {
                    0 => draw.uniform(-1.0, 1.0) + draw.uniform(-1.0, 1.0),
                    1 => draw.below(3) as f64 + if row == 0 { 0.25 } else { 0.0 },
                    2 => f64::from(u8::from(row == 1)),
                    _ => draw.uniform(-1.0, 1.0),
                })
                .collect();
            if kinds[a] == 3 {
                column[0] = draw.decade(3.0, 12.0);
            }
            column.into_iter().map(|x| unit * (x + shift)).collect::<Vec<f64>>()
        });
        let rows: Vec<[f64; 2]> = (0..n).map(|row| [columns[0][row], columns[1][row]]).collect();
        let points = Points::from_rows(rows).unwrap();
        let frame = ImageFrame::of_points(&points, &PointsFrame::of(&points, String::new()));
        let Units { origin, pixel } = frame.units.unwrap();
        let text = format!("case {i}: {n} rows, {kinds:?}, {frame:?}");
        // The extent without a thousandth of the rows at each end, rounded to whole rows.
        let least = ((n - 1) as f64 / 1e3).round() as usize;
        let inner = columns.map(|mut column| {
            column.sort_by(f64::total_cmp);
            let [from, to] = [column[least], column[n - 1 - least]];
            if from == to { [column[0], column[n - 1]] } else { [from, to] }
        });
        let extent = inner.map(|[from, to]| 1.2 * (to - from));
        let is_square = (0.4..=2.5).contains(&(extent[0] / extent[1]));
        let sides = [frame.width, frame.height];
        for a in 0..2 {
            let (sign, size) = (if a == 0 { 1.0 } else { -1.0 }, pixel[a].abs());
            assert_eq!(pixel[a].signum(), sign, "{text}");
            let ends = [origin[a], origin[a] + pixel[a] * sides[a] as f64];
            let [from, to] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
            let [room, above] = [inner[a][0] - from, to - inner[a][1]];
            assert!((room - above).abs() < 1e-9 * (extent[a] + to.abs()), "{text}");
            assert!(room > 0.1 / 1.2 * extent[a] * (1.0 - 1e-9) - 1e-12 * to.abs(), "{text}");
            assert!(to - from < extent[a] + size * (1.0 + 1e-6), "{text}");
            assert!(sides[a] == 100 || is_square && (40..100).contains(&sides[a]), "{text}");
        }
        assert!(!is_square || pixel[0] == -pixel[1], "{text}");
        assert!(sides.contains(&100), "{text}");
        (0..2).for_each(|a| drawn[a][kinds[a]] += 1);
        drawn[usize::from(is_square)][4] += 1;
    }
    assert!(drawn.iter().flatten().all(|&count| count > 20), "{drawn:?}");
}
