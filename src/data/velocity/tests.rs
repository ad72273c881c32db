//! Exact velocities against sums over all normals and against gradients of densities.

use crate::data::tests::{density, png};
use crate::data::{ImageDensity, ToyDensity};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rand_distr::StandardNormal;

/// A gray that varies from pixel to pixel.
fn gray_of(i: usize) -> f64 {
    (i * 7919 % 200) as f64
}

/// The mean of the path's velocity given x, by the sums over all normals.
fn by_all(
    centers: &[([f64; 2], f64)],
    s: [f64; 2],
    ([a, da], [b, db]): ([f64; 2], [f64; 2]),
    x: [f64; 2],
) -> [f64; 2] {
    let exponent = |c: &[f64; 2]| -> f64 {
        (0..2).map(|i| 0.5 * (x[i] - b * c[i]).powi(2) / (a * a + b * b * s[i] * s[i])).sum()
    };
    let least = centers.iter().map(|(c, _)| exponent(c)).fold(f64::INFINITY, f64::min);
    let (mut sum, mut moments) = (0.0, [0.0; 2]);
    for (c, mass) in centers {
        let weight = mass * (least - exponent(c)).exp();
        sum += weight;
        for i in 0..2 {
            // The means of x0 and x1 given x and c.
            let variance = a * a + b * b * s[i] * s[i];
            let rest = (x[i] - b * c[i]) / variance;
            moments[i] += weight * (da * a * rest + db * (c[i] + b * s[i] * s[i] * rest));
        }
    }
    moments.map(|moment| moment / sum)
}

fn straight(t: f64) -> ([f64; 2], [f64; 2]) {
    ([1.0 - t, -1.0], [t, 1.0])
}

fn circular(t: f64) -> ([f64; 2], [f64; 2]) {
    let (sin, cos) = (1.5 * t).sin_cos();
    ([cos, -1.5 * sin], [sin, 1.5 * cos])
}

/// Images of 2 to 60 pixels along each axis with 2 to all pixels dark, times log-uniform to both ends, two kinds of
/// paths, points from the path and far from it.
#[test]
fn the_velocity_is_the_ratio_of_the_sums_over_all_pixels() {
    let mut rng = SmallRng::seed_from_u64(3);
    let (mut squares, mut count, mut sparse, mut dense, mut far) = (0.0, 0, 0, 0, 0);
    let mut by_time = [(0.0, 0); 4];
    for number in 0..40 {
        let size = [rng.random_range(2..60usize), rng.random_range(2..60)];
        let share: f64 = rng.random::<f64>().powi(3);
        let dark: Vec<(u32, u32, f64)> = (0..size[0] * size[1])
            .filter(|i| *i == 0 || i + 1 == size[0] * size[1] || rng.random::<f64>() < share)
            .map(|i| ((i % size[0]) as u32, (i / size[0]) as u32, gray_of(i)))
            .collect();
        (sparse, dense) = (sparse + usize::from(dark.len() < 10), dense + usize::from(dark.len() > 1000));
        let image = density(size[0] as u32, size[1] as u32, &dark);
        let exact = image.velocity();
        let centers: Vec<_> =
            image.positions().map(|p| p.map(f64::from)).zip(image.probabilities()).collect();
        for x1 in image.sample(60, &mut rng) {
            let at_end: f64 = 10f64.powf(rng.random_range(-6.0..0.0));
            let t = if rng.random() { at_end } else { 1.0 - at_end };
            let path = if rng.random() { straight(t) } else { circular(t) };
            let ([a, _], [b, _]) = path;
            let mut x = [0, 1].map(|i| a * rng.sample::<f64, _>(StandardNormal) + b * f64::from(x1[i]));
            let is_far = rng.random_range(0..10) == 0;
            if is_far {
                x = x.map(|x| 20.0 * x);
                far += 1;
            }
            let expected = by_all(&centers, image.jitter_std, path, x);
            let found = exact.velocity(path.0, path.1, x);
            let square: f64 = (0..2).map(|i| (found[i] - expected[i]).powi(2)).sum();
            let size: f64 = expected.iter().map(|v| v * v).sum::<f64>().max(1.0);
            assert!(square < 0.003 * size, "{number} t={t:?} x={x:?} far {is_far}: {found:?} {expected:?}");
            if !is_far {
                (squares, count) = (squares + square / size, count + 1);
                let bin = &mut by_time[(4.0 * t) as usize % 4];
                *bin = (bin.0 + square, bin.1 + 1);
            }
        }
    }
    let rms = (squares / f64::from(count)).sqrt();
    assert!(by_time.iter().all(|&(_, drawn)| drawn > 50), "{by_time:?}");
    let by_time = by_time.map(|(sum, count)| (sum / f64::from(count)).sqrt());
    assert!(sparse > 2 && dense > 2 && far > 100, "{sparse} {dense} {far}");
    assert!(rms < 0.003, "{rms} {by_time:?}");
}

/// The velocity of a straight path is `(x + (1 - t) grad log p_t(x)) / t`. Close to t = 1, p_t is the density of t times
/// the points of the toy, whose gradient is computed by differences.
#[test]
fn the_velocity_of_a_toy_follows_from_the_gradient_of_its_density() {
    let mut rng = SmallRng::seed_from_u64(5);
    let (mean, std) = ([0.3, -0.2], [1.9, 2.1]);
    for toy in ToyDensity::ALL.into_iter().filter(|toy| *toy != ToyDensity::Checkerboard) {
        let (exact, density) = (toy.velocity(mean, std), toy.density());
        let log_p = |x: [f64; 2]| density.log_prob([0, 1].map(|i| mean[i] + std[i] * x[i]));
        let noise = 0.1 * exact.smallest_scale();
        let mut largest = 0.0f64;
        for p in toy.sample(50, &mut rng) {
            let (t, x) = (1.0 - noise, [0, 1].map(|i| (p[i] - mean[i]) / std[i]));
            let found = exact.velocity([noise, -1.0], [t, 1.0], x.map(|x| t * x));
            for i in 0..2 {
                let (mut left, mut right) = (x, x);
                (left[i], right[i]) = (x[i] - 1e-4, x[i] + 1e-4);
                let gradient = (log_p(right) - log_p(left)) / 2e-4 / t;
                let score = t * (found[i] - x[i]) / noise;
                largest =
                    largest.max((score - gradient).abs() / (gradient.abs() + 1.0 / exact.smallest_scale()));
            }
        }
        assert!(largest < 0.03, "{toy}: {largest}");
    }
}

/// Late in the path, the mean of x1 given x is x / t inside of a square, and lies half a normal from the edge at an edge.
#[test]
fn the_checkerboard_keeps_the_points_inside_of_its_squares() {
    let exact = ToyDensity::Checkerboard.velocity([0.0; 2], [2.0; 2]);
    // In the middle of a square of side 1 the density is constant: the mean of x1 is x.
    let found = exact.velocity([0.05, -1.0], [0.95, 1.0], [0.475, 0.475]);
    assert!(found.iter().all(|v| (v - 0.5).abs() < 1e-6), "{found:?}");
    // At its edge the points on the other side are missing, and the mean of x1 is half a normal away.
    let at_edge = exact.velocity([0.05, -1.0], [0.95, 1.0], [0.95, 0.475]);
    let inside = 0.05 / 0.95 * (2.0 / std::f64::consts::PI).sqrt();
    assert!((at_edge[0] - (1.0 - inside - 0.95) / 0.05).abs() < 0.01, "{at_edge:?}");
}

/// Pictures of 1 to 40 pixels along each axis: blank, all ink, one pixel, one row or column, a few pixels, one gray, random
/// grays. Each is refused by name, or its velocity is finite at all times, also far from the picture.
#[test]
fn any_picture_is_refused_by_name_or_has_a_finite_velocity() {
    let mut rng = SmallRng::seed_from_u64(11);
    let (mut refused, mut kinds) = (0, [0; 7]);
    for number in 0..210 {
        let kind = number % 7;
        let size = [0, 1].map(|_| if rng.random_range(0..4) == 0 { 1 } else { rng.random_range(2..40u32) });
        let all = (0..size[0] * size[1]).map(|i| (i % size[0], i / size[0]));
        let one_of = |n: u32, rng: &mut SmallRng| rng.random_range(0..n);
        let (column, row) = (one_of(size[0], &mut rng), one_of(size[1], &mut rng));
        let gray = rng.random_range(0.0..254.0);
        let dark: Vec<(u32, u32, f64)> = match kind {
            0 => vec![],
            1 => all.map(|(x, y)| (x, y, 0.0)).collect(),
            2 => vec![(column, row, gray)],
            3 => all.filter(|&(_, y)| y == row).map(|(x, y)| (x, y, gray)).collect(),
            4 => (0..4).map(|_| (one_of(size[0], &mut rng), one_of(size[1], &mut rng), gray)).collect(),
            5 => all.filter(|&(x, _)| x >= column).map(|(x, y)| (x, y, gray)).collect(),
            _ => all.map(|(x, y)| (x, y, rng.random_range(0.0..255.0))).collect(),
        };
        let image = match ImageDensity::from_bytes(&png(size[0], size[1], &dark), "picture") {
            Ok(image) => image,
            Err(e) => {
                assert!(e.to_string().contains("picture"), "{e}");
                refused += 1;
                continue;
            }
        };
        kinds[kind] += 1;
        let exact = image.velocity();
        for t in [0.0, 1e-300, 1e-12, 1e-6, 0.3, 0.9, 0.999_999, 1.0] {
            for scale in [0.1, 1.0, 30.0] {
                let x = [0, 1].map(|_| scale * rng.sample::<f64, _>(StandardNormal));
                let ([a, da], [b, db]) = straight(t);
                let found = exact.velocity([a, da], [b, db], x);
                assert!(found.iter().all(|v| v.is_finite()), "{number} t={t} x={x:?}: {found:?}");
            }
        }
    }
    // Blank pictures and those of a single pixel or line have no density.
    assert!(refused >= 90 && kinds[4..].iter().all(|&n| n > 10), "{refused} {kinds:?}");
}
