//! Estimates of the KL divergence against normal densities, for which they are exact.

use super::*;
use crate::cnf::{ExactVelocity, FlowMatching, FlowPath, KlEstimator, PathPoints, Times};
use crate::nn::{Activation, Mlp};
use crate::ode::tests::draw::Draw;
use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

/// Rows of an estimate.
const ROWS: usize = 8192;
/// An s far below all standard deviations.
const SCALE: f64 = 1e-4;

/// A normal density in the plane with equal standard deviations.
#[derive(Clone, Copy, Debug)]
struct Normal {
    mean: [f64; 2],
    std: f64,
}

impl Normal {
    fn sample(&self, n: usize, key: &Key) -> Tensor {
        key.normal([n, 2]).cast(DType::F64) * self.std + Tensor::from(self.mean)
    }

    /// The KL divergence of another normal density from this one.
    fn kl(&self, other: &Normal) -> f64 {
        let apart: f64 = self.mean.iter().zip(other.mean).map(|(a, b)| (a - b).powi(2)).sum();
        let ratio = self.std / other.std;
        ratio * ratio - 1.0 - 2.0 * ratio.ln() + apart / (2.0 * other.std * other.std)
    }

    /// A flow with the exact velocity of this density on a path. The first coordinate of the velocity is larger by
    /// `error t`.
    fn flow(&self, path: FlowPath, error: f64) -> Cnf<ToNormal> {
        let bent = f64::from(path == FlowPath::Trigonometric);
        let [std, bent, error] = [self.std, bent, error].map(Tensor::from);
        Cnf::new(ToNormal { mean: Tensor::from(self.mean), std, bent, error })
    }
}

impl ExactVelocity for Normal {
    fn dim(&self) -> usize {
        2
    }

    fn velocity(&self, [a, da]: [f64; 2], [b, db]: [f64; 2], x: &[f64], velocity: &mut [f64]) {
        let variance = self.std * self.std;
        let k = (a * da + b * db * variance) / (a * a + b * b * variance);
        for axis in 0..2 {
            velocity[axis] = db * self.mean[axis] + k * (x[axis] - b * self.mean[axis]);
        }
    }
}

tree! {
    /// The exact velocity of a normal density, on straight paths if `bent` is 0 and trigonometric ones if it is 1.
    struct ToNormal { mean: Tensor, std: Tensor, bent: Tensor, error: Tensor }
}

impl VelocityField for ToNormal {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        let angle = t * FRAC_PI_2;
        let on = |straight: Tensor, bent: Tensor| &straight + &self.bent * (bent - &straight);
        let (a, b) = (on(1.0 - t, angle.cos()), on(t.clone(), angle.sin()));
        let da = on(t * 0.0 - 1.0, angle.sin() * -FRAC_PI_2);
        let db = on(t * 0.0 + 1.0, angle.cos() * FRAC_PI_2);
        let variance = self.std.square();
        let k = (&a * da + &b * &db * &variance) / (a.square() + b.square() * &variance);
        let error = t * &self.error * Tensor::from([1.0, 0.0]);
        db * &self.mean + k * (y - b * &self.mean) + error
    }
    fn dim(&self) -> usize {
        2
    }
}

/// 24 pairs of normal densities at distances from 0.03 to 1, on both paths: the estimate is their KL divergence up to
/// 4.5 standard errors, and over all pairs up to 1 %.
#[test]
fn an_estimate_of_normal_densities_is_their_kl_divergence() {
    let mut draw = Draw(5);
    for path in [FlowPath::Straight, FlowPath::Trigonometric] {
        let mut ratios = 0.0;
        for case in 0..24_u64 {
            let data =
                Normal { mean: [(); 2].map(|()| draw.uniform(-1.0, 1.0)), std: draw.log_uniform(0.3, 2.0) };
            let apart = draw.log_uniform(0.03, 1.0);
            let other = Normal {
                mean: data.mean.map(|mean| mean + apart * data.std * draw.uniform(-1.0, 1.0)),
                std: data.std * (apart * draw.uniform(-0.7, 0.7)).exp(),
            };
            let [points, noise] = Key::new(case).split();
            let x1 = data.sample(ROWS, &points);
            let estimator = KlEstimator::new(Arc::new(data), path, SCALE, &x1, &noise);
            let found = estimator.estimate(&other.flow(path, 0.0)).unwrap();
            let (kl, text) = (data.kl(&other), format!("{path:?} {data:?} {other:?}: {found:?}"));
            assert!((found.nats - kl).abs() < 4.5 * found.stderr + 1e-3 * kl, "{text}, not {kl}");
            assert!(found.stderr < 0.1 * kl, "{text}");
            ratios += found.nats / kl / 24.0;
            let itself = estimator.estimate(&data.flow(path, 0.0)).unwrap();
            assert!(itself.nats < 1e-12, "{path:?} {data:?}: {itself:?}");
        }
        assert!((ratios - 1.0).abs() < 0.01, "{path:?}: {ratios}");
    }
}

/// An error t of the velocity in one coordinate: the loss of an eighth of the times is the mean of t^2 over it, and the
/// estimate is the integral of `t^2 b / ((a + s) w)`, for scales from 0.01 to 1.
#[test]
fn losses_by_time_are_means_over_uniform_times() {
    let data = Normal { mean: [0.3, -0.2], std: 0.7 };
    let x1 = data.sample(ROWS, &Key::new(3));
    for path in [FlowPath::Straight, FlowPath::Trigonometric] {
        for scale in [0.01, 0.1, 1.0] {
            let estimator = KlEstimator::new(Arc::new(data), path, scale, &x1, &Key::new(4));
            let found = estimator.estimate(&data.flow(path, 1.0)).unwrap();
            for (part, loss) in found.loss_by_t.into_iter().enumerate() {
                let [from, to] = [part, part + 1].map(|end| end as f64 / 8.0);
                let mean = (to.powi(3) - from.powi(3)) / 3.0 * 8.0;
                assert!((loss / mean - 1.0).abs() < 0.01, "{path:?} {scale} part {part}: {loss}, not {mean}");
            }
            let cells = 100_000;
            let term = |i: usize| {
                let t = (i as f64 + 0.5) / f64::from(cells);
                let ([a, da], [b, db]) = path.coefficients(t);
                t * t * b / ((a + scale) * (a * db - da * b)) / f64::from(cells)
            };
            let integral: f64 = (0..100_000).map(term).sum();
            assert!((found.nats / integral - 1.0).abs() < 2e-3, "{path:?} {scale}: {found:?} {integral}");
        }
    }
}

/// Squared errors of flows with blocks and of flows with classes: their mean is the loss of flow matching, and they are
/// squared differences from the velocity.
#[test]
fn squared_errors_are_those_of_the_velocity() {
    fn check<D: VelocityField>(flow: &Cnf<D>, n: usize) {
        let points = FlowMatching::new().times(Times::Half { scale: 0.1 }).draw(&points(n), &key());
        let errors = flow.squared_errors(&points).unwrap();
        let PathPoints { t, x, velocity } = &points;
        let by_hand = (flow.velocity(t, x).unwrap() - velocity).square().sum_axes(&[1]);
        assert_eq!(errors.shape()[..], [n]);
        assert!(largest(&(&errors - by_hand)) < 1e-12);
        let loss = flow.matching_loss(&points).unwrap().item();
        assert!((errors.mean().item() - loss).abs() < 1e-12 * loss);
    }
    check(&small(), 70);
    let field = double(&Mlp::new([2 + 1 + 3, 5, 2], Activation::Tanh, &key()));
    let labels = Tensor::iota(DType::F64, [70, 1], 0) * 0.03;
    check(&Cnf::new(field).condition_on_classes(&labels.floor()), 70);
}

/// The density of the times is the derivative of their distribution function: times from equidistant probabilities are
/// as far apart as the inverse of the density.
#[test]
fn times_are_as_dense_as_their_density() {
    let n = 2_000;
    let u = Tensor::iota(DType::F64, [n, 1], 0) * (1.0 / n as f64);
    for law in [Times::Uniform, Times::Half { scale: 0.05 }, Times::Likelihood { scale: 0.3 }] {
        let t = law.at(&u).to_vec();
        for i in (200..n - 200).step_by(100) {
            let slope = (t[i + 100] - t[i - 100]) * n as f64 / 200.0;
            let mean =
                (i - 100..i + 100).map(|i| 1.0 / law.density(0.5 * (t[i] + t[i + 1]))).sum::<f64>() / 200.0;
            assert!((slope / mean - 1.0).abs() < 1e-3, "{law:?} t={}: {slope} {mean}", t[i]);
        }
    }
}
