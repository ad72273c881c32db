//! Mixtures of normals: fits of drawn points, degenerate points, and flows that start from them.

use super::*;
use crate::nn::MixturePreconditioned;
use std::f64::consts::TAU;

tree! {
    /// `G = scale x`.
    struct Multiple { scale: Tensor, of_dim: usize }
}

impl VelocityField for Multiple {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y * &self.scale
    }
    fn dim(&self) -> usize {
        self.of_dim
    }
}

fn nothing(of_dim: usize) -> Multiple {
    Multiple { scale: Tensor::from(0.0), of_dim }
}

/// Points of 1 to 4 normals in 1 to 3 dimensions, 12 apart along the diagonal. Component k is `A_k z + m_k`, where A_k is
/// lower triangular with a diagonal from 0.5 to 1 and other elements from -0.5 to 0.5.
struct Drawn {
    dim: usize,
    count: usize,
    means: Vec<f64>,
    roots: Vec<f64>,
    points: Vec<f64>,
}

impl Drawn {
    fn new(seed: u32, n: usize) -> Drawn {
        let (dim, count) = (1 + seed as usize % 3, 1 + seed as usize % 4);
        let [roots, noise, which] = Key::new(41).fold_in(Tensor::from(seed)).split();
        let u = roots.uniform([count * dim * dim]).to_vec();
        let root = |at: usize| match (at / dim % dim, at % dim) {
            (i, j) if i == j => 0.5 + 0.5 * u[at],
            (i, j) if i > j => u[at] - 0.5,
            _ => 0.0,
        };
        let roots: Vec<f64> = (0..count * dim * dim).map(root).collect();
        let means: Vec<f64> = (0..count * dim).map(|at| 12.0 * (at / dim) as f64).collect();
        let (z, which) = (noise.normal([n, dim]).to_vec(), which.uniform([n]).to_vec());
        let point = |row: usize| {
            let k = (which[row] * count as f64) as usize;
            let (z, roots, means) = (&z[row * dim..][..dim], &roots, &means);
            (0..dim).map(move |i| {
                let root = &roots[(k * dim + i) * dim..][..dim];
                means[k * dim + i] + root.iter().zip(z).map(|(a, z)| a * z).sum::<f64>()
            })
        };
        let points = (0..n).flat_map(point).collect();
        Drawn { dim, count, means, roots, points }
    }

    /// The mean log-density of the points, by forward substitution.
    fn mean_log(&self) -> f64 {
        let d = self.dim;
        let log = |point: &[f64], k: usize| {
            let (mut z, mut log) = (vec![0.0; d], -(self.count as f64).ln() - 0.5 * d as f64 * TAU.ln());
            for i in 0..d {
                let root = &self.roots[(k * d + i) * d..][..d];
                let rest: f64 = (0..i).map(|j| root[j] * z[j]).sum();
                z[i] = (point[i] - self.means[k * d + i] - rest) / root[i];
                log -= root[i].ln() + 0.5 * z[i] * z[i];
            }
            log
        };
        let of = |point: &[f64]| (0..self.count).map(|k| log(point, k).exp()).sum::<f64>().ln();
        let logs: Vec<f64> = self.points.chunks(d).map(of).collect();
        logs.iter().sum::<f64>() / logs.len() as f64
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

#[test]
fn separate_normals_are_found_and_counted() {
    let mut right = 0;
    for seed in 0..12 {
        let drawn = Drawn::new(seed, 400);
        let found = NormalMixture::fit(&drawn.points, drawn.dim, &Key::new(u64::from(seed)));
        right += u32::from(found.num_components() == drawn.count);
        let (fitted, true_one) = (mean(&found.log_prob(&drawn.points)), drawn.mean_log());
        assert!(fitted > true_one - 0.01, "{seed}: {fitted} {true_one}");
        let weights: f64 = found.weights().iter().sum();
        assert!((weights - 1.0).abs() < 1e-12, "{seed}: {weights}");
        // Another sample of the same mixture: few parameters are not overfitted.
        let more = found.fit_again(&Drawn::new(seed, 500).points);
        assert_eq!(more.num_components(), found.num_components());
    }
    assert!(right >= 10, "{right} of 12");
}

#[test]
fn a_fit_of_one_component_has_the_moments_of_the_points() {
    let drawn = Drawn::new(6, 50);
    let found = NormalMixture::fit_components(&drawn.points, 1, 1, &key());
    let center = mean(&drawn.points);
    let variance = mean(&drawn.points.iter().map(|x| (x - center).powi(2)).collect::<Vec<_>>()) + 1e-6;
    assert!((found.means()[0] - center).abs() < 1e-12 && (found.covariances()[0] - variance).abs() < 1e-12);
    for (x, log) in drawn.points.iter().zip(found.log_prob(&drawn.points)) {
        let expected = -0.5 * ((x - center).powi(2) / variance + (TAU * variance).ln());
        assert!((log - expected).abs() < 1e-10, "{x}: {log} {expected}");
    }
}

#[test]
fn degenerate_points_have_a_mixture_of_finite_numbers() {
    let z = Key::new(2).normal([60, 3]).to_vec();
    let cases: Vec<(&str, usize, Vec<f64>)> = vec![
        ("one point", 3, z[..3].to_vec()),
        ("two points", 2, z[..4].to_vec()),
        ("fewer points than dimensions", 12, z[..36].to_vec()),
        ("equal points", 2, [0.5, -1.0].repeat(40)),
        ("two values", 1, (0..50).map(|i| f64::from(i % 2)).collect()),
        ("a constant coordinate", 3, z.chunks(3).flat_map(|x| [x[0], 2.0, x[1]]).collect()),
        ("points on a line", 2, z.iter().flat_map(|&x| [x, 2.0 * x]).collect()),
        ("many at one value", 1, z.iter().map(|&x| x.max(0.3)).collect()),
    ];
    for (name, dim, points) in cases {
        let found = NormalMixture::fit(&points, dim, &key());
        let numbers = [found.weights(), found.means().to_vec(), found.covariances().to_vec()].concat();
        assert!(numbers.iter().all(|x| x.is_finite()), "{name}: {found:?}");
        assert!(found.log_prob(&points).iter().all(|x| x.is_finite()), "{name}: {found:?}");
        // Two points for each weight, mean and covariance, so that components are not thin.
        let parameters = found.num_components() * (1 + dim + dim * (dim + 1) / 2);
        assert!(found.num_components() == 1 || points.len() / dim >= 2 * parameters, "{name}: {found:?}");
        for tensor in found.tensors() {
            assert!(tensor.to_vec().iter().all(|x| x.is_finite()), "{name}");
        }
        let five = NormalMixture::fit_components(&points, dim, 5, &key());
        assert!(five.log_prob(&points).iter().all(|x| x.is_finite()), "{name}: {five:?}");
    }
}

#[test]
fn a_fit_does_not_depend_on_the_number_of_threads() {
    let drawn = Drawn::new(5, 900);
    let fit = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| NormalMixture::fit(&drawn.points, drawn.dim, &key()))
    };
    assert_eq!(fit(1), fit(3));
}

#[test]
fn a_field_holds_its_mixture_in_f32() {
    for seed in 0..6 {
        let drawn = Drawn::new(seed, 200);
        // Up to 9 dimensions: consecutive points joined.
        let dim = drawn.dim * (1 + seed as usize % 4);
        let rows = &drawn.points[..drawn.points.len() / dim * dim];
        let found = NormalMixture::fit_components(rows, dim, 2, &key());
        let field = found.precondition(nothing(dim));
        let again = NormalMixture::of_field(&field);
        let pairs = [
            (found.weights(), again.weights()),
            (found.means().to_vec(), again.means().to_vec()),
            (found.covariances().to_vec(), again.covariances().to_vec()),
        ];
        for (found, again) in pairs {
            let off = found.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // Means are up to 36.
            assert!(found.len() == again.len() && off < 1e-4, "{seed}: {off}");
        }
    }
}

/// A flow in f64 that is a mixture of normals, 1.2 apart along the diagonal, with standard deviations of about `width`.
fn flow(seed: u32, width: f64) -> (NormalMixture, Cnf<MixturePreconditioned<Multiple>>) {
    let drawn = Drawn::new(seed, 300);
    let narrower = |x: &f64| {
        let mean = 12.0 * (x / 12.0).round();
        0.1 * mean + width * (x - mean) - 1.0
    };
    let points: Vec<f64> = drawn.points.iter().map(narrower).collect();
    let found = NormalMixture::fit(&points, drawn.dim, &key());
    let field = double(&found.precondition(nothing(drawn.dim)));
    (NormalMixture::of_field(&field), Cnf::new(field).rtol(1e-8).atol(1e-8))
}

#[test]
fn a_flow_without_a_network_is_its_mixture() {
    for seed in [1, 6, 11] {
        let (mixture, flow) = flow(seed, 0.1);
        let x = Key::new(3).normal([12, mixture.dim()]).cast(DType::F64);
        let (found, expected) = (flow.log_prob(&x).unwrap().to_vec(), mixture.log_prob(&x.to_vec()));
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{seed}: {found} {expected}");
        }
    }
}

/// The equation in the angle is that of a preconditioned field whose G is the rest of the mixture's velocity. Its steps
/// become shorter where narrow components need it.
#[test]
fn few_steps_of_a_mixture_converge_like_the_square_and_narrow_ones_better_than_equal_steps_of_t() {
    for (seed, width) in [(2, 0.1), (5, 0.1), (2, 0.01), (5, 0.01)] {
        let (mixture, flow) = flow(seed, width);
        let z = Key::new(4).normal([24, mixture.dim()]).cast(DType::F64);
        let exact = flow.push_forward(&z).unwrap();
        let off = |x: Tensor| (x - &exact).square().mean().sqrt().item();
        let found = [16, 32, 64, 128].map(|n| off(flow.push_forward_in_steps(&z, n).unwrap()));
        assert!(found[3] < found[0] / 20.0 && found[3] < 1e-3, "{seed}: {found:?}");
        let equal = flow.clone().method(crate::ode::Method::Midpoint).fixed_steps(16).push_forward(&z);
        let equal = off(equal.unwrap());
        assert!(width > 0.05 || found[0] < equal, "{seed}: {found:?} {equal}");
    }
}

/// 300 points on circles of radius 0.5 to 1.5, at most 0.002 beside them: the components are thinner than 0.03. A point at the
/// center, on the way to it and outside has a density within the steps of a flow, in f32.
#[test]
fn a_flow_of_thin_components_has_a_density_everywhere() {
    for (radius, noise) in [(0.5, 0.0), (1.0, 0.0), (1.5, 0.002)] {
        let z = Key::new(9).normal([300]).to_vec();
        let radii = z.iter().map(|z| radius + noise * z.clamp(-1.0, 1.0));
        let points: Vec<f64> =
            (0..).map(f64::from).zip(radii).flat_map(|(i, r)| [r * i.cos(), r * i.sin()]).collect();
        let mixture = NormalMixture::fit_components(&points, 2, 30, &key());
        let determinants = mixture.covariances().chunks(4).map(|c| c[0] * c[3] - c[1] * c[2]);
        assert!(determinants.fold(0.0, f64::max) < 1e-3 * radius * radius, "{radius}: {mixture:?}");
        let field = mixture.precondition(nothing(2));
        let variances = field.variances.get().to_vec();
        assert!(variances.iter().all(|&v| v >= 0.999e-3), "{radius}: {variances:?}");
        let flow = Cnf::new(field).rtol(1e-5).atol(1e-5);
        let x = [[0.0, 0.0], [0.8, 0.0], [2.0, 2.0]].map(|x| x.map(|x| (x * radius) as f32));
        let log = flow.log_prob(&Tensor::from_vec([3, 2], x.concat())).unwrap().to_vec();
        assert!(log.iter().all(|x| x.is_finite()), "{radius}: {log:?}");
    }
}

#[test]
#[should_panic(expected = "a mixture needs points of 2 coordinates, got 3 numbers")]
fn half_a_point_is_refused() {
    let _ = NormalMixture::fit(&[0.0; 3], 2, &key());
}
