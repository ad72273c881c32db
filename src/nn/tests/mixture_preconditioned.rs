//! Fields added to the velocity of a mixture, against formulas in plain Rust.

use super::*;
use crate::nn::{MixturePreconditioned, Preconditioned};
use crate::tree;

/// Mixtures of 1 to 5 normals in 1 to 6 dimensions: weights, means, rotations by products of plane rotations, variances
/// from 1e-4 to 4.
struct Drawn {
    dim: usize,
    weights: Vec<f64>,
    means: Vec<Vec<f64>>,
    /// `rotations[k][i][j]`: row i, column j.
    rotations: Vec<Vec<Vec<f64>>>,
    variances: Vec<Vec<f64>>,
}

fn rotation(dim: usize, angles: &[f64]) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> =
        (0..dim).map(|i| (0..dim).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let pairs = (0..dim).flat_map(|a| (a + 1..dim).map(move |b| (a, b)));
    for ((a, b), angle) in pairs.zip(angles) {
        let (sin, cos) = (6.0 * angle).sin_cos();
        for row in &mut rows {
            (row[a], row[b]) = (cos * row[a] - sin * row[b], sin * row[a] + cos * row[b]);
        }
    }
    rows
}

impl Drawn {
    fn all() -> Vec<Drawn> {
        (1..=6).flat_map(|dim| (1..=5).map(move |count| Drawn::new(dim, count))).collect()
    }

    fn new(dim: usize, count: usize) -> Drawn {
        let key = Key::new(31).fold_in(Tensor::from((8 * dim + count) as u32));
        let [weights, means, angles, variances] = key.split();
        let weights: Vec<f64> = weights.uniform([count]).to_vec().iter().map(|u| 0.1 + u).collect();
        let total: f64 = weights.iter().sum();
        let rows = |x: Tensor| x.to_vec().chunks(dim).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let angles = angles.uniform([count, 16]).to_vec();
        let variance = |x: Vec<f64>| x.into_iter().map(|u| 1e-4 * (u * 4e4_f64.ln()).exp()).collect();
        Drawn {
            dim,
            weights: weights.into_iter().map(|w| w / total).collect(),
            means: rows(means.normal([count, dim])),
            rotations: angles.chunks(16).map(|angles| rotation(dim, angles)).collect(),
            variances: rows(variances.uniform([count, dim])).into_iter().map(variance).collect(),
        }
    }

    fn field<D: VelocityField>(&self, field: D) -> MixturePreconditioned<D> {
        let (d, count) = (self.dim, self.weights.len());
        let centers = (0..count).flat_map(|k| {
            (0..d).map(move |j| (0..d).map(|i| self.rotations[k][i][j] * self.means[k][i]).sum::<f64>())
        });
        let side = (0..d).flat_map(|i| (0..count).flat_map(move |k| self.rotations[k][i].clone()));
        let tensors = [
            Tensor::from_vec([count], self.weights.iter().map(|w| w.ln()).collect::<Vec<_>>()),
            Tensor::from_vec([count, d], centers.collect::<Vec<_>>()),
            Tensor::from_vec([d, count * d], side.collect::<Vec<_>>()),
            Tensor::from_vec([count, d], self.variances.concat()),
        ];
        MixturePreconditioned::new(tensors, field)
    }

    /// u by its formula, component by component.
    fn velocity(&self, t: f64, x: &[f64]) -> Vec<f64> {
        let (d, mut terms) = (self.dim, Vec::new());
        for (k, weight) in self.weights.iter().enumerate() {
            let (rotation, mean) = (&self.rotations[k], &self.means[k]);
            let (mut log, mut velocity) = (weight.ln(), mean.clone());
            for j in 0..d {
                let lambda = self.variances[k][j];
                let along: f64 = (0..d).map(|i| rotation[i][j] * (x[i] - t * mean[i])).sum();
                let spread = (1.0 - t).powi(2) + t * t * lambda;
                log -= 0.5 * (along * along / spread + spread.ln());
                let gain = (t * lambda - (1.0 - t)) / spread;
                (0..d).for_each(|i| velocity[i] += rotation[i][j] * gain * along);
            }
            terms.push((log, velocity));
        }
        let most = terms.iter().map(|term| term.0).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = terms.iter().map(|term| (term.0 - most).exp()).sum();
        let share = |log: f64| (log - most).exp() / total;
        (0..d).map(|i| terms.iter().map(|(log, velocity)| share(*log) * velocity[i]).sum()).collect()
    }
}

tree! {
    /// `G = scale x`.
    struct Scaled { scale: Tensor, of_dim: usize }
}

impl VelocityField for Scaled {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y * &self.scale
    }
    fn dim(&self) -> usize {
        self.of_dim
    }
}

fn scaled(of_dim: usize, scale: f64) -> Scaled {
    Scaled { scale: Tensor::from(scale), of_dim }
}

#[test]
fn the_velocity_of_a_mixture_is_that_of_its_components_weighted_by_their_probabilities() {
    for drawn in Drawn::all() {
        let (d, [at, times]) = (drawn.dim, Key::new(5).split());
        let x = at.normal([7, d]).cast(DType::F64) * 1.5;
        // Both ends, and times between them.
        let t = Tensor::concat(&[&Tensor::from([[0.0], [1.0]]), &times.uniform([5, 1]).cast(DType::F64)], 0);
        for scale in [0.0, 0.7] {
            let found = drawn.field(scaled(d, scale)).eval(&t, &x).to_vec();
            for (i, &t) in t.to_vec().iter().enumerate() {
                let x = &x.to_vec()[i * d..(i + 1) * d];
                let square = (1.0 - t).powi(2) + t * t;
                for (j, u) in drawn.velocity(t, x).into_iter().enumerate() {
                    let (found, expected) = (found[i * d + j], u + scale * x[j] / square);
                    assert!((found - expected).abs() < 1e-9 * (1.0 + u.abs()), "{d} {t}: {found} {expected}");
                }
            }
        }
    }
}

#[test]
fn a_velocity_in_f32_is_finite_at_both_ends_and_far_from_the_mixture() {
    for drawn in Drawn::all() {
        let field = drawn.field(scaled(drawn.dim, 0.0)).cast_floats(DType::F32);
        for t in [0.0, 1e-3, 0.5, 1.0 - 1e-6, 1.0] {
            let x = Key::new(6).normal([9, drawn.dim]) * 30.0;
            let found = field.eval(&Tensor::from(t), &x).to_vec();
            assert!(found.iter().all(|v| v.is_finite()), "{t}: {found:?}");
        }
    }
}

#[test]
fn equal_standard_normals_are_the_preconditioned_field() {
    for count in [1, 4] {
        let net = FourierMlp::new(golden_frequencies(5, 2.0), [7], &Key::new(2)).damping(0.7);
        let [mixture, one] = [
            double(&MixturePreconditioned::standard(count, net.clone()))
                .eval(&Tensor::from(0.3), &draws([4, 2], 3)),
            double(&Preconditioned::new(net)).eval(&Tensor::from(0.3), &draws([4, 2], 3)),
        ];
        // A weight of 1/4 is stored in f32.
        let off = (mixture - one).abs().max().item();
        assert!(off < 1e-6, "{count}: {off}");
    }
}

#[test]
fn a_mixture_is_not_trained() {
    let field =
        MixturePreconditioned::standard(3, FourierMlp::new(golden_frequencies(5, 2.0), [7], &Key::new(2)));
    assert_eq!(num_params(&field), num_params(&field.field));
    let fixed = field.named_leaves().into_iter().filter(|(path, _)| is_fixed(path)).count();
    assert_eq!(fixed, 5, "four of the mixture, and the frequencies");
}

#[test]
#[should_panic(
    expected = "needs log weights [K], centers [K, 2], rotations [2, K 2] and variances [K, 2], got [1], [1,2]"
)]
fn a_mixture_of_another_dimension_is_refused() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape.to_vec());
    let tensors = [zeros(&[1]), zeros(&[1, 2]), zeros(&[3, 3]), zeros(&[1, 2])];
    let _ = MixturePreconditioned::new(tensors, scaled(2, 0.0));
}
