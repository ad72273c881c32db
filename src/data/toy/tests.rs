//! Toys: total probability, entropy, and samples distributed as the density.

use super::*;
use rand::{SeedableRng, rngs::SmallRng};

/// Total probability and entropy by the midpoint rule, which is spectrally accurate for a smooth density.
fn total_and_entropy(toy: ToyDensity, cell: f64) -> (f64, f64) {
    let (density, cells) = (toy.density(), (13.0 / cell) as usize);
    let at = |i: usize| -6.5 + 13.0 * (i as f64 + 0.5) / cells as f64;
    let (mut total, mut entropy) = (0.0, 0.0);
    for i in 0..cells * cells {
        let log_p = density.log_prob([at(i % cells), at(i / cells)]);
        if log_p > -700.0 {
            total += log_p.exp();
            entropy -= log_p.exp() * log_p;
        }
    }
    let area = (13.0 / cells as f64).powi(2);
    (total * area, entropy * area)
}

#[test]
fn entropies_are_those_of_the_densities() {
    for toy in ToyDensity::ALL {
        let cell = match toy {
            ToyDensity::Rings | ToyDensity::Pinwheel => 0.08,
            ToyDensity::Checkerboard => 0.125,
            _ => 0.1,
        };
        let (total, entropy) = total_and_entropy(toy, cell);
        assert!((total - 1.0).abs() < 1e-5, "{toy}: total probability {total}");
        assert!((entropy - toy.entropy_nats()).abs() < 1e-4, "{toy}: {entropy} {}", toy.entropy_nats());
    }
}

#[test]
fn points_are_distributed_as_the_density() {
    let n = 5_000;
    for toy in ToyDensity::ALL {
        let density = toy.density();
        let points = toy.sample(n, &mut SmallRng::seed_from_u64(5));
        let nll: Vec<f64> = points.iter().map(|&x| -density.log_prob(x)).collect();
        let mean = nll.iter().sum::<f64>() / n as f64;
        let std = (nll.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        let off = mean - toy.entropy_nats();
        assert!(
            off.abs() < 4.0 * std / (n as f64).sqrt() + 1e-4,
            "{toy}: off by {off} nats, standard deviation {std}"
        );
    }
}

#[test]
fn curves_lie_where_the_published_ones_do() {
    let far = |toy: ToyDensity, x: [f64; 2]| toy.density().log_prob(x);
    // A point of high density, such as the middle of a moon, the roll's inner end or a spiral's outer end, and
    // one of low density.
    let on = [
        (ToyDensity::Moons, [-1.0, 1.8], [-1.0, -1.8]),
        (ToyDensity::Moons, [1.0, -1.2], [1.0, 1.2]),
        (ToyDensity::SwissRoll, [0.0, -0.3 * PI], [0.0, 0.3 * PI]),
        (ToyDensity::TwoSpirals, [PI + 0.08, 0.08], [0.0, PI + 0.08]),
        (ToyDensity::EightGaussians, [2.0, 2.0], [2.6, 1.08]),
        (ToyDensity::Pinwheel, [2.0 * 0.6796f64.cos(), -2.0 * 0.6796f64.sin()], [2.0, 0.8]),
        (ToyDensity::Checkerboard, [0.5, 0.5], [0.5, -0.5]),
        (ToyDensity::Rings, [0.75, 0.0], [1.125, 0.0]),
        (ToyDensity::Circles, [0.0, 1.5], [0.0, 2.25]),
    ];
    for (toy, x, off) in on {
        assert!(far(toy, x) > far(toy, off) + 1.0, "{toy}: {} {}", far(toy, x), far(toy, off));
    }
}

#[test]
fn names_parse_and_errors_list_them() {
    for toy in ToyDensity::ALL {
        assert_eq!(toy.name().parse::<ToyDensity>().unwrap(), toy);
    }
    let message = "moon".parse::<ToyDensity>().unwrap_err().to_string();
    assert!(message.contains("moon") && message.contains("8gaussians"), "{message}");
}

#[test]
fn a_far_point_has_a_finite_log_density_where_the_brush_is_normal() {
    let found = ToyDensity::EightGaussians.density().log_prob([100.0, 0.0]);
    let center: f64 = 4.0 / 1.414;
    let std: f64 = 0.5 / 1.414;
    let nearest = -(100.0 - center).powi(2) / (2.0 * std * std) - (8.0 * TAU * std * std).ln();
    assert!((found - nearest).abs() < 1e-9 * nearest.abs(), "{found} {nearest}");
}
