//! Image densities compared with closed forms.
use super::*;
use crate::io::raster::{Channels, Depth, encode_png};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::f64::consts::{E, PI};

/// A 16-bit PNG: white except for the given pixels `(column, row, gray)`, with gray up to 255.
pub(crate) fn png(width: u32, height: u32, dark: &[(u32, u32, f64)]) -> Vec<u8> {
    let mut grays = vec![u16::MAX; (width * height) as usize];
    for &(x, y, gray) in dark {
        grays[(y * width + x) as usize] = (257.0 * gray) as u16;
    }
    let bytes: Vec<u8> = grays.into_iter().flat_map(u16::to_be_bytes).collect();
    encode_png([width, height], Channels::Gray, Depth::Sixteen, &bytes).unwrap()
}

pub(crate) fn density(width: u32, height: u32, dark: &[(u32, u32, f64)]) -> ImageDensity {
    ImageDensity::from_bytes(&png(width, height, dark), "test").unwrap()
}

/// A wedge of grays with corners, neither symmetric nor separable.
fn wedge() -> ImageDensity {
    let dark: Vec<_> =
        (3..17u32).flat_map(|x| (4..x / 2 + 5).map(move |y| (x, y, (10 * x + 3 * y) as f64))).collect();
    density(24, 20, &dark)
}

/// Entropy of one pixel's normal, in pixel coordinates.
fn pixel_entropy() -> f64 {
    (2.0 * PI * E * JITTER_PIXELS * JITTER_PIXELS).ln()
}

#[test]
fn entropy_of_two_distant_pixels_is_exact() {
    let d = density(40, 30, &[(5, 6, 0.0), (25, 20, 0.0)]);
    assert_eq!(d.mean, [15.5, 13.5]);
    assert_eq!(d.std, [10.0, 7.0]);
    let expected = 2f64.ln() + pixel_entropy() - 70f64.ln();
    assert!((d.entropy_nats() - expected).abs() < 1e-9, "{} {expected}", d.entropy_nats());
}

#[test]
fn entropy_of_unequal_pixels_counts_their_darkness() {
    let d = density(40, 30, &[(5, 6, 0.0), (25, 20, 204.0)]); // darkness 1 and 1/5
    let p: f64 = 5.0 / 6.0;
    let mixing = -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
    let expected = mixing + pixel_entropy() + d.log_jacobian();
    assert!((d.entropy_nats() - expected).abs() < 1e-9);
    let found: Vec<f64> = d.probabilities().collect();
    assert!((found[0] - p).abs() < 1e-12 && (found[1] - 1.0 + p).abs() < 1e-12);
}

#[test]
fn the_log_density_at_a_point_is_that_of_the_grid_and_of_the_draws() {
    let d = wedge();
    let grid = d.grid_with_shape(3.0, 13, 17);
    let at_points = d.log_probs(&grid.centers);
    for (log_p, per_pixel) in at_points.iter().zip(d.density_on(&grid)) {
        assert!((log_p.exp() * d.log_jacobian().exp() - per_pixel).abs() < 1e-6, "{log_p} {per_pixel}");
    }
    let points = d.sample(20_000, &mut SmallRng::seed_from_u64(8));
    let own = Estimate::of(&d.log_probs(&points));
    let off = own.plus(d.entropy_nats());
    assert!(off.mean.abs() < 3.0 * off.stderr.unwrap() && off.stderr.unwrap() < 0.01, "{off}");
    assert_eq!(d.log_probs(&[[50.0, 0.0]]), [f64::NEG_INFINITY]);
}

#[test]
fn a_pixels_probability_lies_at_its_half_coordinates_with_y_down() {
    let d = density(40, 30, &[(5, 6, 0.0), (25, 20, 0.0)]);
    let p = d.to_pixels(d.positions().next().unwrap().map(f64::from));
    assert!((p[0] - 5.5).abs() < 1e-5 && (p[1] - 6.5).abs() < 1e-5, "{p:?}");
    let back = d.to_standard(d.to_pixels([0.3, -0.7]));
    assert!((back[0] - 0.3).abs() < 1e-12 && (back[1] + 0.7).abs() < 1e-12);
}

#[test]
fn the_uniform_rule_draws_uniformly_and_weighs_by_darkness() {
    let dark = [(5, 6, 0.0), (25, 20, 204.0), (9, 9, 254.5)]; // the last is above the threshold
    let d = density(40, 30, &dark).with_rule(SamplingRule::Uniform { below: 254 }).unwrap();
    let table = d.pixel_table();
    assert_eq!((d.support, table.prob, table.pixels), (2, vec![1.0; 2], vec![245, 825]));
    assert_eq!(d.mean, [15.5, 13.5]);
    assert!((d.std[0] - 10.0).abs() < 1e-9);
    assert!((table.weight.unwrap()[1] - 0.2).abs() < 1e-6);
    assert!((d.mean_weight - 0.6).abs() < 1e-12);
    assert!((d.probabilities().next().unwrap() - 5.0 / 6.0).abs() < 1e-12);
}

#[test]
fn pixels_of_the_lightest_gray_take_no_part() {
    let d = density(8, 8, &[(1, 1, 254.0), (5, 4, 0.0)]);
    assert_eq!(d.support, 2);
    assert!((d.probabilities().next().unwrap() - (1.0 / 255.0) / (1.0 + 1.0 / 255.0)).abs() < 1e-12);
}

#[test]
fn true_density_on_a_grid_has_total_probability_one_and_the_entropy() {
    let d = wedge();
    let grid = d.grid(5.0, 6);
    assert_eq!((grid.rows, grid.cols), (180, 204));
    let p = d.density_on(&grid);
    let total: f64 = p.iter().sum::<f64>() * grid.pixel_area;
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    let entropy = -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>() * grid.pixel_area;
    assert!((entropy + d.log_jacobian() - d.entropy_nats()).abs() < 1e-6);
    assert!((grid.cell_area - grid.pixel_area / (d.std[0] * d.std[1])).abs() < 1e-15);
    let x = d.to_pixels(grid.centers[grid.cols + 2].map(f64::from));
    assert!((x[0] - (-5.0 + 2.5 / 6.0)).abs() < 1e-4 && (x[1] - (-5.0 + 1.5 / 6.0)).abs() < 1e-4, "{x:?}");
}

#[test]
fn samples_have_the_density_s_moments_and_mean_log_density() {
    let d = wedge();
    let n = 200_000;
    let points = d.sample(n, &mut SmallRng::seed_from_u64(3));
    for a in 0..2 {
        let mean = points.iter().map(|p| f64::from(p[a])).sum::<f64>() / n as f64;
        let square = points.iter().map(|p| f64::from(p[a]).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0 - d.jitter_std[a].powi(2)).abs() < 0.02, "{square}");
    }
    // NLL of the best Gaussian, measured on the samples.
    let c =
        |a: usize, b: usize| points.iter().map(|p| f64::from(p[a]) * f64::from(p[b])).sum::<f64>() / n as f64;
    let det = c(0, 0) * c(1, 1) - c(0, 1).powi(2);
    let nll = (2.0 * PI).ln() + 1.0 + 0.5 * det.ln();
    assert!((nll - d.gaussian_nats()).abs() < 0.01, "{nll} {}", d.gaussian_nats());
}

#[test]
fn coarser_quadrature_of_large_images_agrees() {
    let d = wedge();
    let fine = d.entropy_nats();
    for cells in [2, 4] {
        let grid = d.grid(5.0, cells);
        let sum: f64 = d.density_on(&grid).iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum();
        let coarse = -sum * grid.pixel_area + d.log_jacobian();
        assert!((coarse - fine).abs() < 2e-4, "{cells}: {coarse} {fine}");
    }
}

#[test]
fn blur_cost_of_isolated_pixels_is_that_of_two_normals() {
    let d = density(80, 60, &[(15, 16, 0.0), (55, 40, 0.0)]);
    // KL(N(0, s^2) || N(0, S^2)) in two dimensions.
    let ratio: f64 = 0.25 / (0.25 + 1.5 * 1.5);
    let expected = ratio - 1.0 - ratio.ln();
    assert!((d.blur_cost_nats(1.5) - expected).abs() < 1e-6, "{} {expected}", d.blur_cost_nats(1.5));
}

#[test]
fn embedded_image_has_fine_structure_and_is_learnable() {
    let d = ImageDensity::embedded();
    let blur = d.blur_cost_nats(1.5);
    assert!((0.15..0.21).contains(&blur), "blurring costs {blur} nats");
    let lead = d.gaussian_nats() - d.entropy_nats();
    assert!(lead >= 0.4, "the entropy must be at least 0.4 nats below the best Gaussian, is {lead}");
}

#[test]
fn fingerprint_follows_the_pixels_not_the_name() {
    let bytes = png(9, 8, &[(1, 2, 3.0), (4, 5, 6.0)]);
    let [a, b] = ["a", "b"].map(|name| ImageDensity::from_bytes(&bytes, name).unwrap().fingerprint());
    assert_eq!(a, b);
    assert_ne!(a, density(9, 8, &[(1, 2, 3.0), (4, 5, 7.0)]).fingerprint());
}

#[test]
fn each_unusable_image_is_named_with_its_value_and_remedy() {
    let whole = png(9, 8, &[(1, 2, 3.0), (4, 5, 6.0)]);
    let cases: [(&[u8], &str); 7] = [
        (&[], "empty (0 bytes)"),
        (&whole[..whole.len() / 2], "cannot be decoded"),
        (b"no image at all", "cannot be decoded"),
        (&png(1, 1, &[]), "1 x 1 pixels"),
        (&png(5, 1, &[(1, 0, 0.0)]), "5 x 1 pixels"),
        (&png(5, 4, &[]), "one gray only (255.0 of 255"),
        (&png(9, 8, &[(1, 2, 3.0), (4, 2, 6.0)]), "in row 2"),
    ];
    for (bytes, expected) in cases {
        let message = ImageDensity::from_bytes(bytes, "odd.png").unwrap_err().to_string();
        assert!(message.contains("image odd.png") && message.contains(expected), "{message}");
        assert!(message.contains("give") && message.lines().count() == 1, "{message}");
    }
    let pale = density(9, 8, &[(1, 2, 254.5), (4, 5, 254.5)])
        .with_rule(SamplingRule::Uniform { below: 254 })
        .unwrap_err()
        .to_string();
    assert!(pale.contains("darker than gray 254") && pale.contains("darkest 254.5"), "{pale}");
    let missing = ImageDensity::open("no/such/image.png").unwrap_err().to_string();
    assert!(missing.contains("no/such/image.png cannot be read"), "{missing}");
}

/// Two dark boxes on 16 x 12 pixels.
pub(crate) fn boxes() -> ImageDensity {
    let dark = |x: u32, y: u32| match (x, y) {
        (2..6, 3..9) => 0,
        (8..14, 2..5) => 80,
        _ => 255,
    };
    let grays: Vec<u8> = (0..16 * 12).map(|i| dark(i % 16, i / 16)).collect();
    let png = encode_png([16, 12], Channels::Gray, Depth::Eight, &grays).unwrap();
    ImageDensity::from_bytes(&png, "boxes").unwrap()
}

/// The tables for training give each pixel its probability: images of 2 to 12 pixels per side with random grays, both rules.
#[test]
fn a_pixel_is_drawn_for_training_and_for_scores_with_its_probability() {
    let mut rng = SmallRng::seed_from_u64(12);
    let (mut uniform, mut few) = (0, 0);
    for _ in 0..60 {
        let size = [0, 1].map(|_| rng.random_range(2..12u32));
        let dark: Vec<(u32, u32, f64)> = (0..size[0] * size[1])
            .map(|i| {
                (i % size[0], i / size[0], if rng.random() { rng.random_range(0.0..250.0) } else { 255.0 })
            })
            .collect();
        let Ok(image) = ImageDensity::from_bytes(&png(size[0], size[1], &dark), "picture") else { continue };
        let rule = if rng.random() { SamplingRule::Default } else { SamplingRule::Uniform { below: 254 } };
        let Ok(image) = image.with_rule(rule) else { continue };
        uniform += usize::from(rule != SamplingRule::Default);
        few += usize::from(image.support < 10);
        let (table, n) = (image.pixel_table(), image.support as f64);
        let mut drawn = vec![0.0; image.support];
        for (bucket, (&prob, &index)) in table.prob.iter().zip(&table.index).enumerate() {
            drawn[bucket] += f64::from(prob) / n;
            drawn[index as usize] += (1.0 - f64::from(prob)) / n;
        }
        let weight = table.weight.as_ref();
        let mass = |i: usize| drawn[i] * weight.map_or(1.0, |all| f64::from(all[i])) / image.mean_weight;
        for (i, (p, x)) in image.probabilities().zip(image.positions()).enumerate() {
            assert!((mass(i) - p).abs() < 1e-6, "{} {p}", mass(i));
            let pixel = table.pixels[i] as usize;
            assert_eq!(x, [table.xs[pixel % image.width], table.ys[pixel / image.width]]);
        }
    }
    assert!(uniform > 15 && few > 5, "{uniform} {few}");
}
