//! Integrals of densities that are known in closed form.

use super::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::f64::consts::PI;

type Density = Box<dyn Fn([f64; 2]) -> f64>;

/// A density, its seeds, and its exact integral over the box.
struct Case {
    kind: &'static str,
    f: Density,
    seeds: Vec<[f64; 2]>,
    exact: f64,
    bounds: [[f64; 2]; 2],
}

fn phi(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The integral of the normal density up to z, by Simpson's rule.
fn cdf(z: f64) -> f64 {
    let (from, n) = (-9.0, 400);
    let z = z.clamp(from, 9.0);
    let h = (z - from) / f64::from(n);
    let weight = |i: i32| {
        if i == 0 || i == n {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=n).map(|i| weight(i) * phi(from + f64::from(i) * h)).sum::<f64>() * h / 3.0
}

/// A normal density with standard deviations `s` along axes turned by `angle`. Its integral over the box is a sum
/// over strips, in each of which the second coordinate is normal.
fn normal(s: [f64; 2], angle: f64, mean: [f64; 2]) -> (impl Fn([f64; 2]) -> f64 + Clone, Vec<[f64; 2]>) {
    let (sin, cos) = angle.sin_cos();
    let f = move |x: [f64; 2]| {
        let d = [x[0] - mean[0], x[1] - mean[1]];
        let along = [d[0] * cos + d[1] * sin, d[1] * cos - d[0] * sin];
        phi(along[0] / s[0]) * phi(along[1] / s[1]) / (s[0] * s[1])
    };
    let to = move |z: [f64; 2]| {
        let w = [z[0] * s[0], z[1] * s[1]];
        [mean[0] + w[0] * cos - w[1] * sin, mean[1] + w[0] * sin + w[1] * cos]
    };
    (f, seeds(4_096, 4.5).map(to).collect())
}

fn integral_of_normal(s: [f64; 2], angle: f64, mean: [f64; 2], [x, y]: [[f64; 2]; 2]) -> f64 {
    let (sin, cos) = angle.sin_cos();
    // The strip at the second coordinate z, along the longer axis.
    let strip = |z: f64| {
        let (at, step) = ([mean[0] - z * s[1] * sin, mean[1] + z * s[1] * cos], [s[0] * cos, s[0] * sin]);
        let (mut from, mut to) = (-9.0_f64, 9.0_f64);
        for (a, [low, high]) in [x, y].into_iter().enumerate() {
            let ends = [(low - at[a]) / step[a], (high - at[a]) / step[a]];
            (from, to) = (from.max(ends[0].min(ends[1])), to.min(ends[0].max(ends[1])));
        }
        if from < to { phi(z) * (cdf(to) - cdf(from)) } else { 0.0 }
    };
    let (n, h) = (2_000, 18.0 / 2_000.0);
    (0..n).map(|i| strip(-9.0 + (f64::from(i) + 0.5) * h) * h).sum()
}

fn case(rng: &mut SmallRng, kind: &'static str) -> Case {
    let mut real = |from: f64, to: f64| from + (to - from) * rng.random::<f64>();
    let bounds = [[real(-9.0, -6.0), real(6.0, 9.0)], [real(-9.0, -6.0), real(6.0, 9.0)]];
    match kind {
        "normal" | "collinear" | "cut" => {
            let thin = match kind {
                "normal" => real(-0.6, 0.0),
                "collinear" => real(-3.5, -1.0),
                _ => real(-2.0, -0.3),
            };
            let ratio = 10f64.powf(thin);
            let (s, angle) = ([1.4, 1.4 * ratio], real(0.02, PI - 0.02));
            let mean = [real(-0.5, 0.5), real(-0.5, 0.5)];
            // The box cuts through the density.
            let bounds = if kind == "cut" { bounds.map(|[a, b]| [0.25 * a, 0.25 * b]) } else { bounds };
            let ((f, seeds), exact) = (normal(s, angle, mean), integral_of_normal(s, angle, mean, bounds));
            Case { kind, f: Box::new(f), seeds, exact, bounds }
        }
        "mixture" => {
            let parts: Vec<_> = (0..4)
                .map(|_| {
                    let s = [10f64.powf(real(-2.5, -0.2)), 10f64.powf(real(-2.5, -0.2))];
                    (s, real(0.02, PI - 0.02), [real(-3.0, 3.0), real(-3.0, 3.0)])
                })
                .collect();
            let exacts = parts.iter().map(|&(s, angle, mean)| integral_of_normal(s, angle, mean, bounds));
            let exact = exacts.sum::<f64>() / 4.0;
            let (fs, seeds): (Vec<_>, Vec<_>) = parts.into_iter().map(|(s, a, m)| normal(s, a, m)).unzip();
            let f = move |x| fs.iter().map(|f| f(x)).sum::<f64>() / 4.0;
            Case { kind, f: Box::new(f), seeds: seeds.concat(), exact, bounds }
        }
        "cauchy" => {
            let scale = [real(0.05, 1.0), real(0.05, 1.0)];
            let f = move |x: [f64; 2]| {
                (0..2).map(|a| scale[a] / PI / (scale[a] * scale[a] + x[a] * x[a])).product()
            };
            let axis = |a: usize| {
                let [from, to] = bounds[a].map(|x| (x / scale[a]).atan() / PI);
                to - from
            };
            let to = |u: [f64; 2]| [0, 1].map(|a| scale[a] * (0.4995 * PI * u[a]).tan());
            Case {
                kind,
                f: Box::new(f),
                seeds: seeds(4_096, 1.0).map(to).collect(),
                exact: axis(0) * axis(1),
                bounds,
            }
        }
        _ => {
            let (radius, width) = (real(1.0, 2.0), 10f64.powf(real(-2.5, -1.0)));
            let total = 2.0 * PI * radius;
            let f = move |x: [f64; 2]| phi((x[0].hypot(x[1]) - radius) / width) / (width * total);
            let to = |[angle, off]: [f64; 2]| {
                let (r, (sin, cos)) = (radius + 4.5 * width * off, (PI * angle).sin_cos());
                [r * cos, r * sin]
            };
            // The mean of r over a normal distance from the circle is the radius.
            Case {
                kind: "ring",
                f: Box::new(f),
                seeds: seeds(4_096, 1.0).map(to).collect(),
                exact: 1.0,
                bounds,
            }
        }
    }
}

/// `FLOWLINE_CASES` is the number of cases, 60 by default.
#[test]
fn integrals_of_known_densities_are_right_to_their_own_error() {
    let count = std::env::var("FLOWLINE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let (mut rng, mut drawn) = (SmallRng::seed_from_u64(7), BTreeMap::new());
    let kinds = ["normal", "collinear", "cut", "mixture", "cauchy", "ring"];
    let mut worst = (0.0, String::new());
    for i in 0..count {
        let Case { kind, f, seeds, exact, bounds } = case(&mut rng, kinds[i % kinds.len()]);
        let mut evaluations = 0;
        let at = |points: &[[f64; 2]]| {
            evaluations += points.len();
            Ok::<_, ()>(points.iter().map(|&x| f(x)).collect())
        };
        let found = adaptive(at, bounds, &seeds, |_| true).unwrap();
        let off = (found.value - exact).abs();
        let text = format!("case {i}, {kind}: {found:?}, exactly {exact}, {evaluations} evaluations");
        // Where a thin density leaves the box, the errors of all rectangles along its edge may have one sign.
        let most = if kind == "cut" { 4.0 * ERROR } else { ERROR };
        assert!(off < most && found.error < ERROR, "{text}");
        assert!(evaluations < 2_000_000, "{text}");
        if off > worst.0 {
            worst = (off, text);
        }
        let of_kind = drawn.entry(kind).or_insert((0, 0));
        *of_kind = (of_kind.0 + 1, of_kind.1.max(evaluations));
    }
    assert_eq!(drawn.len(), kinds.len(), "{drawn:?}");
}

#[test]
fn without_time_the_error_says_that_the_integral_is_not_known() {
    let (f, seeds) = normal([1.4, 0.002], 1.1, [0.1, 0.2]);
    let bounds = [[-8.0, 8.0]; 2];
    let at = |points: &[[f64; 2]]| Ok::<_, ()>(points.iter().map(|&x| f(x)).collect());
    let found = adaptive(at, bounds, &seeds, |_| false).unwrap();
    assert!(found.error > ERROR && (found.value - 1.0).abs() <= found.error, "{found:?}");
}

#[test]
fn a_grid_that_does_not_resolve_a_density_has_an_error() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut counts = [0; 2];
    for i in 0..60 {
        let (n, ratio) = (200, 10f64.powf(-3.5 * rng.random::<f64>()));
        let (angle, mean) = (rng.random::<f64>() * PI, [rng.random::<f64>(), rng.random::<f64>()]);
        let (f, _) = normal([1.4, 1.4 * ratio], angle, mean);
        let at = |i: usize| -9.0 + 18.0 * (i as f64 + 0.5) / f64::from(n);
        let n = n as usize;
        let values: Vec<f64> = (0..n * n).map(|i| f([at(i % n), at(i / n)])).collect();
        let found = of_grid(&values, n, (18.0 / n as f64).powi(2));
        let off = (found.value - 1.0).abs();
        assert!(off < ERROR || found.error > ERROR, "case {i}, ratio {ratio}, angle {angle}: {found:?}");
        counts[usize::from(off < ERROR)] += 1;
        // A cell is no wider than a standard deviation.
        assert!(ratio < 0.1 || found.error < ERROR, "case {i}, ratio {ratio}: {found:?}");
    }
    assert!(counts.iter().all(|&n| n > 10), "{counts:?}");
}

/// Grids of 0 to 12 rows and 1 to 12 columns of numbers from 0 to 1.
#[test]
fn the_error_of_a_grid_is_its_difference_from_coarser_grids() {
    let mut rng = SmallRng::seed_from_u64(11);
    for i in 0..500 {
        let [rows, cols] = [rng.random_range(0..=12usize), rng.random_range(1..=12)];
        let values: Vec<f64> = (0..rows * cols).map(|_| rng.random()).collect();
        let area = rng.random_range(0.1..4.0) / (rows * cols).max(1) as f64;
        // The integral over the cells for which `takes` holds, each as large as this many.
        let of = |cells: f64, takes: &dyn Fn(usize, usize) -> bool| -> f64 {
            let all = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
            all.filter(|&(row, col)| takes(row, col)).map(|(row, col)| values[row * cols + col]).sum::<f64>()
                * cells
                * area
        };
        let exact = of(1.0, &|_, _| true);
        let mut error = (exact - 1.0).abs();
        for k in 0..2 {
            error = error.max((of(2.0, &|row, col| (row + col) % 2 == k) - exact).abs() / 2.0);
            for l in 0..2 {
                error = error.max((of(4.0, &|row, col| row % 2 == k && col % 2 == l) - exact).abs() / 4.0);
            }
        }
        let found = of_grid(&values, cols, area);
        let off = (found.value - exact).abs().max((found.error - error).abs());
        assert!(off < 1e-12, "case {i}, {rows} x {cols}: {found:?} {exact} {error}");
    }
}

/// Rectangles with ratios of 1e-3 to 1e3 and their parts, which are nearer to squares; frames of seeds of which the ratio of
/// the axes is 1 to 1e5.
#[test]
fn parts_of_a_rectangle_cover_it_once_and_frames_of_thin_seeds_make_them_round() {
    let mut rng = SmallRng::seed_from_u64(12);
    let mut counts = [0; 4];
    for i in 0..500 {
        let mut real = |from: f64, to: f64| rng.random_range(from..to);
        let center = [real(-3.0, 3.0), real(-3.0, 3.0)];
        let half = [10f64.powf(real(-1.5, 1.5)), 10f64.powf(real(-1.5, 1.5))];
        let whole = Cell::new(center, half, 2.5);
        let parts = whole.parts();
        let ratio = |half: [f64; 2]| half[0].max(half[1]) / half[0].min(half[1]);
        let area = |cell: &Cell| 4.0 * cell.half[0] * cell.half[1];
        let sum: f64 = parts.iter().map(area).sum();
        assert!((sum / area(&whole) - 1.0).abs() < 1e-12 && parts.iter().all(|part| part.seen == 2.5));
        assert!(parts.iter().all(|part| ratio(part.half) <= ratio(half).max(1.02)), "case {i}: {half:?}");
        for _ in 0..20 {
            let w = [0, 1].map(|a| center[a] + half[a] * real(-1.2, 1.2));
            let is_within = (0..2).all(|a| (w[a] - center[a]).abs() < half[a]);
            let count = parts.iter().filter(|part| part.holds(w)).count();
            assert!(count == usize::from(is_within) && whole.holds(w) == is_within, "case {i}: {w:?}");
        }
        counts[usize::from(parts.len() == 4)] += 1;

        let (long, thin) = (real(0.1, 3.0), 10f64.powf(real(-5.0, 0.0)));
        let (f, seeds) = normal([long, long * thin], real(0.0, PI), center);
        let frame = Frame::of(&seeds);
        let w: Vec<[f64; 2]> = seeds.iter().map(|&x| frame.of_plane(x)).collect();
        let moment = |a: usize, b: usize| w.iter().map(|w| w[a] * w[b]).sum::<f64>() / w.len() as f64;
        let is_thin = thin < 0.2;
        assert!(is_thin || thin < 0.3 || frame.det() == 1.0, "case {i}: {thin}");
        if is_thin {
            let off = [moment(0, 0) - 1.0, moment(0, 1), moment(1, 1) - 1.0].map(f64::abs);
            // The squares of a ratio of 1e5 differ by 1e10, so the short axis has few digits.
            assert!(off[0] < 1e-6 && off[1] < 0.1 && off[2] < 0.1, "case {i}: {thin} {off:?}");
            let det = long * long * thin;
            assert!((frame.det() / det - 4.5 * 4.5 / 3.0).abs() < 0.5, "case {i}: {} {det}", frame.det());
        }
        let back = frame.to_plane(w[7]);
        assert!((0..2).all(|a| (back[a] - seeds[7][a]).abs() < 1e-9) && f(back).is_finite(), "case {i}");
        counts[2 + usize::from(is_thin)] += 1;
    }
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}
