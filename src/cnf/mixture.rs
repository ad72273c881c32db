//! A mixture of normal densities with full covariances, fitted to points: the start of a flow of a table.
//!
//! [`em`] is one update of expectation maximization, [`kmeans`] divides the points before the first one, [`symmetric`]
//! has the eigenvalues of a covariance. Everything is plain f64. Sums run over rows in a fixed order, so no result
//! depends on the number of threads. The effort is bounded by a count of operations, not by a clock.

mod em;
mod kmeans;
mod symmetric;

use crate::nn::{MixturePreconditioned, VelocityField};
use crate::tensor::{Key, Tensor};
use em::{Rows, expect, maximize};

/// The largest number of components.
const MOST: usize = 30;
/// The search ends after this many numbers of components in a row without a lower BIC.
const PATIENCE: usize = 4;
/// Starts per number of components, and the updates after which the best one is chosen.
const STARTS: u32 = 3;
const SHORT: usize = 10;
/// The largest number of updates from the best start.
const LONG: usize = 200;
/// Updates of a fit that is not known yet, at least: those of the short runs and some more.
const TYPICAL: usize = 60;
/// An update that raises the mean log-density by less, in nats, is the last.
const GAIN: f64 = 1e-4;
/// Added to the variances, as in scikit-learn.
const FLOOR: f64 = 1e-6;
/// The least variance of a component's velocity along an axis. With thinner ones, solves take thousands of steps for points
/// between the components, whose base points are thousands of standard deviations away.
const LEAST_OF_FIELD: f64 = 1e-3;
/// No further number of components is tried once the next one would exceed this number of operations, a few seconds.
const WORK: f64 = 3e9;

/// A mixture of normal densities, `p(x) = sum_k w_k N(x; m_k, C_k)`.
///
/// # Examples
/// ```
/// use flowline::cnf::extra::NormalMixture;
/// use flowline::tensor::{Key, Tensor};
/// // Two normals on a line, at -5 and 5.
/// let z = Key::new(0).normal([400]).to_vec();
/// let points: Vec<f64> = z.iter().enumerate().map(|(i, z)| z + if i % 2 == 0 { 5.0 } else { -5.0 }).collect();
/// let mixture = NormalMixture::fit(&points, 1, &Key::new(1));
/// assert_eq!(mixture.num_components(), 2);
/// assert!((mixture.log_prob(&[5.0])[0] - (0.5_f64 * 0.4).ln()).abs() < 0.2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NormalMixture {
    dim: usize,
    /// `[K]`.
    log_weights: Vec<f64>,
    /// `[K, dim]`, row-major.
    means: Vec<f64>,
    /// `[K, dim, dim]`, row-major.
    covariances: Vec<f64>,
}

/// A mixture, the mean log-density of the points of its fit, and the updates made for it.
struct Fit {
    mixture: NormalMixture,
    mean_log: f64,
    updates: usize,
}

impl NormalMixture {
    /// Fits a mixture to points `[n, dim]`, row-major, and chooses the number of components: the one with the least BIC
    /// from 1 to 30, at most as many as leave two points per parameter ([`NormalMixture::most_components`]).
    ///
    /// The BIC does not prevent a component of a few points, which is thin without limit: by it alone, points in many
    /// dimensions have many such components, and points beside them a density of nearly 0.
    ///
    /// The search ends early when the BIC has not fallen for four numbers, or when it has made 3e9 operations. The scale
    /// of the points should be about 1: 1e-6 is added to each variance, so that duplicates and constant directions have
    /// a density.
    ///
    /// # Panics
    /// When there are no points, their number of values is not a multiple of `dim`, or a value is not finite.
    ///
    /// # References
    /// Schwarz (1978), Estimating the dimension of a model; Biernacki, Celeux and Govaert (2003), Choosing starting values
    /// for the EM algorithm, for short runs from several starts.
    #[track_caller]
    pub fn fit(points: &[f64], dim: usize, key: &Key) -> NormalMixture {
        let rows = Rows::new(points, dim);
        let operations = |updates: usize, count: usize| {
            updates as f64 * rows.count() as f64 * (count * (dim * dim + 4 * dim + 16)) as f64
        };
        let (mut best, mut since, mut spent) = (None::<(f64, NormalMixture)>, 0, 0.0);
        for count in 1..=MOST.min(Self::most_components(rows.count(), dim)).max(1) {
            let found = fitted(&rows, count, key);
            let bic = found.mixture.bic(found.mean_log, rows.count());
            spent += operations(found.updates, count);
            let next = operations(found.updates.max(TYPICAL), count + 1);
            since += 1;
            if best.as_ref().is_none_or(|(least, _)| bic < *least) {
                (best, since) = (Some((bic, found.mixture)), 0);
            }
            if since == PATIENCE || spent + next > WORK {
                break;
            }
        }
        best.expect("invariant: one component is always fitted").1
    }

    /// The number of components that leaves two of `points` points per parameter; 0 if a single normal density in `dim`
    /// dimensions has too many, `1 + dim + dim (dim + 1) / 2`.
    pub fn most_components(points: usize, dim: usize) -> usize {
        points / (2 * parameters(dim))
    }

    /// Fits a mixture with a given number of components, at least 1.
    ///
    /// # Panics
    /// As [`NormalMixture::fit`], and without components.
    #[track_caller]
    pub fn fit_components(points: &[f64], dim: usize, count: usize, key: &Key) -> NormalMixture {
        assert!(count > 0, "a mixture needs at least one component");
        fitted(&Rows::new(points, dim), count, key).mixture
    }

    /// Fits a mixture to other points, starting from this one and with as many components.
    ///
    /// # Panics
    /// As [`NormalMixture::fit`].
    #[track_caller]
    pub fn fit_again(&self, points: &[f64]) -> NormalMixture {
        improved(&Rows::new(points, self.dim), self.clone(), LONG).mixture
    }

    /// The log-density of each point `[n, dim]`, in nats.
    ///
    /// # Panics
    /// As [`NormalMixture::fit`].
    #[track_caller]
    pub fn log_prob(&self, points: &[f64]) -> Vec<f64> {
        let rows = Rows::new(points, self.dim);
        expect(&rows, self).log_densities
    }

    /// Number of components, K.
    pub fn num_components(&self) -> usize {
        self.log_weights.len()
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The weights w_k `[K]`; their sum is 1.
    pub fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|w| w.exp()).collect()
    }

    /// The means m_k `[K, dim]`, row-major.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// The covariances C_k `[K, dim, dim]`, row-major.
    pub fn covariances(&self) -> &[f64] {
        &self.covariances
    }

    /// The field whose flow starts from this mixture: `field`, added to the mixture's velocity, with f32 tensors. Along the
    /// axes of a covariance, variances below 1e-3 become 1e-3, so that solves take few steps for all points.
    ///
    /// # Panics
    /// When the field has another dimension.
    #[track_caller]
    pub fn precondition<D: VelocityField>(&self, field: D) -> MixturePreconditioned<D> {
        MixturePreconditioned::new(self.tensors(), field)
    }

    /// Log weights, centers, rotations and variances, f32.
    pub(crate) fn tensors(&self) -> [Tensor; 4] {
        let (d, count) = (self.dim, self.num_components());
        let (mut rotations, mut centers, mut variances) = (vec![0.0; d * count * d], vec![], vec![]);
        for (k, covariance) in self.covariances.chunks_exact(d * d).enumerate() {
            let (values, vectors) = symmetric::eigen(covariance.to_vec(), d);
            let mean = &self.means[k * d..(k + 1) * d];
            for j in 0..d {
                centers.push((0..d).map(|i| vectors[i * d + j] * mean[i]).sum::<f64>());
                variances.push(values[j].max(LEAST_OF_FIELD));
                (0..d).for_each(|i| rotations[(i * count + k) * d + j] = vectors[i * d + j]);
            }
        }
        let tensor = |shape: &[usize], x: &[f64]| {
            Tensor::from_vec(shape.to_vec(), x.iter().map(|&x| x as f32).collect::<Vec<f32>>())
        };
        [
            tensor(&[count], &self.log_weights),
            tensor(&[count, d], &centers),
            tensor(&[d, count * d], &rotations),
            tensor(&[count, d], &variances),
        ]
    }

    /// The mixture of a field, from its tensors.
    pub fn of_field<D: VelocityField>(field: &MixturePreconditioned<D>) -> NormalMixture {
        let [log_weights, centers, rotations, variances] =
            [&field.log_weights, &field.centers, &field.rotations, &field.variances]
                .map(|buffer| buffer.get().to_vec());
        let (count, d) = (log_weights.len(), field.dim());
        let at = |k: usize, i: usize, j: usize| rotations[(i * count + k) * d + j];
        let each = |k: usize| (0..d).map(move |i| (k, i));
        let mean = |(k, i): (usize, usize)| (0..d).map(|j| at(k, i, j) * centers[k * d + j]).sum();
        let covariance = |(k, i): (usize, usize), l: usize| -> f64 {
            (0..d).map(|j| at(k, i, j) * variances[k * d + j] * at(k, l, j)).sum()
        };
        let means = (0..count).flat_map(each).map(mean).collect();
        let rows = (0..count).flat_map(each);
        let covariances = rows.flat_map(|row| (0..d).map(move |l| (row, l)));
        let covariances = covariances.map(|(row, l)| covariance(row, l)).collect();
        NormalMixture { dim: d, log_weights, means, covariances }
    }

    /// `-2 log L + parameters log n`.
    fn bic(&self, mean_log: f64, n: usize) -> f64 {
        let parameters = self.num_components() * parameters(self.dim) - 1;
        -2.0 * n as f64 * mean_log + parameters as f64 * (n as f64).ln()
    }
}

/// The parameters of a component: its weight, mean and covariance.
fn parameters(dim: usize) -> usize {
    1 + dim + dim * (dim + 1) / 2
}

/// The best of several short fits, continued.
fn fitted(rows: &Rows, count: usize, key: &Key) -> Fit {
    let begun = |start: u32| {
        let labels = kmeans::divide(rows, count, &key.fold_in(Tensor::from(start)));
        maximize(rows, &rows.one_hot(&labels, count), count)
    };
    if count == 1 {
        let mixture = begun(0);
        let mean_log = expect(rows, &mixture).mean_log();
        return Fit { mixture, mean_log, updates: 1 };
    }
    let short = (0..STARTS).map(|start| improved(rows, begun(start), SHORT));
    let best = short.reduce(|a, b| {
        let updates = a.updates + b.updates;
        Fit { updates, ..if b.mean_log > a.mean_log { b } else { a } }
    });
    let best = best.expect("invariant: there is a start");
    let after = improved(rows, best.mixture, LONG);
    Fit { updates: after.updates + best.updates, ..after }
}

/// Updates a mixture until its mean log-density hardly changes.
fn improved(rows: &Rows, mut mixture: NormalMixture, most: usize) -> Fit {
    let mut before = f64::NEG_INFINITY;
    for updates in 1.. {
        let expected = expect(rows, &mixture);
        let mean_log = expected.mean_log();
        if updates > most || mean_log < before + GAIN {
            return Fit { mixture, mean_log, updates };
        }
        before = mean_log;
        mixture = maximize(rows, &expected.shares, mixture.num_components());
    }
    unreachable!("invariant: the number of updates is bounded")
}
