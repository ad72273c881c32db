//! Flow matching: laws of times, paths, and exact targets against drawn ones.

use super::*;
use crate::cnf::{ExactVelocity, FlowMatching, FlowPath, PathPoints, Times};
use crate::nn::Preconditioned;
use crate::tensor::jit;
use std::sync::Arc;

/// Times from equidistant probabilities have the distribution function of their density, for scales from 1e-3 to 10.
#[test]
fn times_have_their_density() {
    let n = 100_000;
    let u = Tensor::iota(DType::F64, [n, 1], 0) * (1.0 / n as f64) + 0.5 / n as f64;
    for scale in [1e-3, 0.01, 0.1, 1.0, 10.0] {
        let weight = |t: f64| t / (1.0 - t + scale);
        // The trapezoidal rule at places dense near 1.
        let place = |i: usize| 1.0 - (1.0 - i as f64 / 40_000.0).powi(3);
        let mut whole = vec![0.0];
        for i in 0..40_000 {
            let (a, b) = (place(i), place(i + 1));
            whole.push(whole[i] + 0.5 * (b - a) * (weight(a) + weight(b)));
        }
        for (law, share) in [(Times::Likelihood { scale }, 1.0), (Times::Half { scale }, 0.5)] {
            let t = law.at(&u).to_vec();
            assert!(t.is_sorted() && t[0] >= 0.0 && t[n - 1] <= 1.0);
            for i in (0..40_000).step_by(1000) {
                let expected = share * whole[i] / whole[40_000] + (1.0 - share) * place(i);
                let found = t.partition_point(|&t| t < place(i)) as f64 / n as f64;
                assert!((found - expected).abs() < 3e-4, "{law:?} t={}: {found} {expected}", place(i));
            }
        }
    }
    assert_eq!(Times::Uniform.at(&u).to_vec(), u.to_vec());
}

#[test]
#[should_panic(expected = "the scale of the times must be above 0, got 0.0")]
fn times_of_no_scale_are_refused() {
    let _ = Times::Half { scale: 0.0 }.at(&Tensor::from(0.5f32));
}

/// Two normals in the plane, as means and standard deviations.
struct TwoNormals([([f64; 2], f64); 2]);

impl TwoNormals {
    fn sample(&self, n: usize, key: &Key) -> Tensor {
        let [which, noise] = key.split();
        let is_first = which.uniform([n, 1]).lt(0.5);
        let of =
            |(mean, std): ([f64; 2], f64)| noise.normal([n, 2]) * std + Tensor::from(mean.map(|m| m as f32));
        is_first.select(&of(self.0[0]), &of(self.0[1]))
    }
}

impl ExactVelocity for TwoNormals {
    fn dim(&self) -> usize {
        2
    }

    fn velocity(&self, [a, da]: [f64; 2], [b, db]: [f64; 2], x: &[f64], velocity: &mut [f64]) {
        let parts = self.0.map(|(mean, std)| {
            let variance = a * a + b * b * std * std;
            let rest = [0, 1].map(|i| x[i] - b * mean[i]);
            let log = -0.5 * (rest[0].powi(2) + rest[1].powi(2)) / variance - variance.ln();
            let k = (a * da + b * db * std * std) / variance;
            (log, [0, 1].map(|i| db * mean[i] + k * rest[i]))
        });
        let first = 1.0 / (1.0 + (parts[1].0 - parts[0].0).exp());
        (0..2).for_each(|i| velocity[i] = first * parts[0].1[i] + (1.0 - first) * parts[1].1[i]);
    }
}

/// Given the point and the time, a drawn velocity is the exact one plus noise of mean 0: the difference is not
/// correlated with functions of both, for both paths and all laws of times.
#[test]
fn an_exact_target_is_the_mean_of_drawn_ones() {
    let density = Arc::new(TwoNormals([([1.0, -0.5], 0.3), ([-0.8, 0.4], 0.6)]));
    let n = 40_000;
    for path in [FlowPath::Straight, FlowPath::Trigonometric] {
        for times in [Times::Uniform, Times::Half { scale: 0.3 }, Times::Likelihood { scale: 0.3 }] {
            let matching = FlowMatching::new().path(path).times(times);
            let x1 = density.sample(n, &Key::new(3));
            let drawn = matching.draw(&x1, &Key::new(4));
            let exact = matching.target(density.clone()).draw(&x1, &Key::new(4));
            assert_eq!(drawn.x.to_vec(), exact.x.to_vec());
            let rest = &drawn.velocity - &exact.velocity;
            let (x, t) = (&drawn.x, &drawn.t);
            for weight in [x * 0.0 + 1.0, x.clone(), (x * 3.0).sin(), x * t, (t * 6.0).cos() * x] {
                for axis in 0..2 {
                    let terms = (&weight * &rest).slice(1, axis..axis + 1).to_vec();
                    let mean = terms.iter().sum::<f64>() / n as f64;
                    let variance = terms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
                    let error = (variance / n as f64).sqrt();
                    assert!(mean.abs() < 4.5 * error, "{path:?} {times:?}: {mean} ± {error}");
                }
            }
            // Noise is what the exact target lacks.
            let size = |x: &Tensor| x.square().mean().item();
            assert!(size(&drawn.velocity) > size(&exact.velocity) + 0.1);
        }
    }
}

/// Points and derivatives agree with the coefficients of a path and their differences.
#[test]
fn a_path_moves_with_its_velocity() {
    let (x0, x1) = (points(6), Key::new(8).normal([6, 2]).cast(DType::F64));
    for path in [FlowPath::Straight, FlowPath::Trigonometric] {
        let matching = FlowMatching::new().path(path).source(&x0);
        let PathPoints { t, x, velocity } = matching.draw(&x1, &key());
        for (row, &t) in t.to_vec().iter().enumerate() {
            let ([a, da], [b, db]) = path.coefficients(t);
            let [early, late] = [t - 1e-6, t + 1e-6].map(|t| path.coefficients(t));
            assert!(((late.0[0] - early.0[0]) / 2e-6 - da).abs() < 1e-8);
            assert!(((late.1[0] - early.1[0]) / 2e-6 - db).abs() < 1e-8);
            for i in 2 * row..2 * row + 2 {
                let (from, to) = (x0.to_vec()[i], x1.to_vec()[i]);
                assert!((x.to_vec()[i] - (a * from + b * to)).abs() < 1e-12);
                assert!((velocity.to_vec()[i] - (da * from + db * to)).abs() < 1e-12);
            }
        }
        assert_eq!([path.coefficients(0.0).0[0], path.coefficients(1.0).1[0]], [1.0, 1.0]);
    }
}

/// A preconditioned field of a network that returns 0 is the exact flow to a normal density.
#[test]
fn a_preconditioned_field_without_a_network_maps_noise_to_noise() {
    tree! {
        struct Nothing { zero: Tensor }
    }
    impl VelocityField for Nothing {
        fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
            y * &self.zero
        }
        fn dim(&self) -> usize {
            2
        }
    }
    let normal = TwoNormals([([0.0; 2], 1.0); 2]);
    let flow = Cnf::new(Preconditioned::new(Nothing { zero: Tensor::from(0.0) })).rtol(1e-8).atol(1e-8);
    let x = normal.sample(50, &key()).cast(DType::F64);
    let points = FlowMatching::new().target(Arc::new(normal)).draw(&x, &key());
    assert!(flow.matching_loss(&points).unwrap().item() < 1e-24);
    let log_p = flow.log_prob(&x).unwrap();
    let expected = flow.base.log_prob(&x);
    assert!(largest(&(log_p - expected)) < 1e-6);
}

#[test]
fn an_exact_target_is_not_drawn_inside_of_jit() {
    let draw = || {
        let density = Arc::new(TwoNormals([([1.0, -0.5], 0.3), ([-0.8, 0.4], 0.6)]));
        let matching = FlowMatching::new().target(density);
        let _ = jit(move |x: Tensor| matching.draw(&x, &Key::new(0)).velocity).call(points(4));
    };
    let panic = std::panic::catch_unwind(draw).unwrap_err();
    let message = panic.downcast_ref::<&str>().map_or_else(
        || panic.downcast_ref::<String>().cloned().unwrap_or_default(),
        |text| (*text).to_owned(),
    );
    assert!(message.contains("draw outside of `jit`"), "{message}");
}
