//! A flow that does not move, in decorrelated coordinates: its density in the units of the data is the normal density with
//! the mean and the covariance of the training points.

use crate::cnf::Cnf;
use crate::data::{Points, Rows};
use crate::eval::measure::LogDensity;
use crate::eval::{Deadline, Fitted, Frames, ImageFrame, OnPlane, PointsFrame, Sampler};
use crate::nn::{Activation, AnyVelocityField, Mlp};
use crate::tensor::{Key, Tree};
use crate::triangular::{below, cholesky, log_det};
use std::f64::consts::TAU;

/// 300 rows of correlated columns of different scales, their mean and their covariance, and the flow.
struct Case {
    points: Points,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    fitted: Fitted,
}

impl Case {
    /// In `dim` columns with scales of 0.01 to 100; each is correlated with the one before.
    fn new(dim: usize, seed: u64) -> Case {
        let [z, shifts] = Key::new(seed).split();
        let (z, u) = (z.normal([300, dim]).to_vec(), shifts.uniform([2 * dim]).to_vec());
        let row = |z: &[f64]| -> Vec<f64> {
            let mixed = |a: usize| z[a] + if a == 0 { 0.0 } else { 1.5 * z[a - 1] };
            (0..dim).map(|a| 10.0 * u[a] + 10f64.powf(4.0 * u[dim + a] - 2.0) * mixed(a)).collect()
        };
        let mut points = Points::from_rows(z.chunks(dim).map(row).collect::<Vec<_>>()).unwrap();
        points.decorrelate();
        let (mean, frame) = (points.standard.mean.clone(), PointsFrame::of(&points, String::new()));
        assert_eq!(frame.factor.len(), dim * dim);
        let entry = |i: usize| {
            let of = |p: &[f64], a: usize| p[a] - mean[a];
            points.values().chunks(dim).map(|p| of(p, i / dim) * of(p, i % dim)).sum::<f64>() / 300.0
        };
        let covariance = (0..dim * dim).map(entry).collect();
        let image = (dim == 2).then(|| ImageFrame::of_points(&points, &frame));
        let field: AnyVelocityField = Mlp::new([dim, dim], Activation::Tanh, &Key::new(0)).into();
        let flow = Cnf::new(field.map_leaves(|leaf| leaf * 0.0)).fixed_steps(1);
        let frames = Frames { points: Some(frame), image, images: None };
        // Frames are read from a checkpoint.
        let frames: Frames = serde_json::from_str(&serde_json::to_string(&frames).unwrap()).unwrap();
        Case { points, mean, covariance, fitted: Fitted::new(flow, &frames, None) }
    }

    /// Means and covariance of some columns.
    fn of(&self, columns: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let d = self.mean.len();
        let entries = columns.iter().flat_map(|&i| columns.iter().map(move |&j| self.covariance[i * d + j]));
        (columns.iter().map(|&i| self.mean[i]).collect(), entries.collect())
    }

    /// The normal log-density of values of some columns, and half of its quadratic form.
    fn log_prob(&self, columns: &[usize], values: &[f64]) -> (f64, f64) {
        let ((mean, covariance), k) = (self.of(columns), columns.len());
        let root = cholesky(covariance, k);
        let z = below(&root, values.iter().zip(mean).map(|(x, m)| x - m).collect(), k);
        let half = 0.5 * z.iter().map(|z| z * z).sum::<f64>();
        (-half - log_det(&root, k) - 0.5 * k as f64 * TAU.ln(), half)
    }
}

#[test]
fn densities_samples_and_anomaly_scores_are_those_of_the_normal_density() {
    for (dim, seed) in [(2, 1), (3, 2), (5, 3)] {
        let case = Case::new(dim, seed);
        let all: Vec<usize> = (0..dim).collect();
        let rows = Rows::from_flat(case.points.values()[..40 * dim].to_vec(), dim);
        let found = case.fitted.log_prob(&rows).unwrap();
        let scores = case.fitted.anomaly_scores(&rows, 2_000, &Key::new(seed)).unwrap();
        for ((row, found), score) in rows.iter().zip(found).zip(scores) {
            let (exact, half) = case.log_prob(&all, row);
            assert!((found - exact).abs() < 1e-4 && (score.log_prob - exact).abs() < 1e-4, "{found} {exact}");
            assert!((score.z_squared - 2.0 * half).abs() < 1e-3 * (1.0 + half), "{score:?} {half}");
            if dim == 2 {
                // The quadratic form has an exponential distribution.
                let off = score.p_value - (-half).exp();
                assert!(off.abs() < 5.0 * score.p_value_stderr + 1e-3, "{score:?} {half}");
            }
        }
        let n = 8_000;
        let key = Key::new(seed);
        let drawn = case.fitted.sample(n, &key).unwrap();
        let deviation = |a: usize| case.covariance[a * dim + a].sqrt();
        for a in 0..dim {
            for b in 0..=a {
                let product = |p: &[f64]| (p[a] - case.mean[a]) * (p[b] - case.mean[b]);
                let mean = drawn.iter().map(product).sum::<f64>() / n as f64;
                let off = (mean - case.covariance[a * dim + b]) / (deviation(a) * deviation(b));
                // The standard deviation is at most 0.016.
                assert!(off.abs() < 0.07, "{a} {b}: {off}");
            }
        }
    }
}

#[test]
fn rows_with_given_columns_have_the_conditional_density_in_any_order_of_the_columns() {
    for (given, missing, seed) in
        [(vec![0, 2], vec![1], 4), (vec![1], vec![0, 2], 5), (vec![2], vec![0, 1], 6)]
    {
        let case = Case::new(3, seed);
        let mut row = case.points.values()[..3].to_vec();
        missing.iter().for_each(|&i| row[i] = f64::NAN);
        let n = 2_000;
        let found = case.fitted.sample_given(&row, n, &Key::new(seed)).unwrap();
        let values: Vec<f64> = given.iter().map(|&i| row[i]).collect();
        let (exact, _) = case.log_prob(&given, &values);
        let off = (found.log_prob_given - exact).abs();
        assert!(off < 5.0 * found.log_prob_given_stderr + 1e-3, "{} {exact}", found.log_prob_given);
        assert!(found.rows.chunks(3).all(|drawn| given.iter().all(|&i| drawn[i] == row[i])));
        // The mean of a missing column given the others: a regression on them.
        let (mean, covariance) = case.of(&given);
        let root = cholesky(covariance, given.len());
        let z = below(&root, values.iter().zip(mean).map(|(x, m)| x - m).collect(), given.len());
        for &m in &missing {
            let with = given.iter().map(|&i| case.covariance[3 * m + i]).collect();
            let loading = below(&root, with, given.len());
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let expected = case.mean[m] + dot(&loading, &z);
            let deviation = (case.covariance[4 * m] - dot(&loading, &loading)).sqrt();
            let column: Vec<f64> =
                found.rows.chunks(3).map(|drawn| (drawn[m] - expected) / deviation).collect();
            let average = column.iter().sum::<f64>() / n as f64;
            let square = column.iter().map(|x| x * x).sum::<f64>() / n as f64;
            assert!(average.abs() < 0.15 && (square - 1.0).abs() < 0.25, "{given:?} {m}: {average} {square}");
        }
    }
    // Two given columns that are each near their means, but not together.
    let case = Case::new(3, 7);
    let off = |a: usize, by: f64| case.mean[a] + by * case.covariance[4 * a].sqrt();
    let row = [off(0, 60.0), off(1, -60.0), f64::NAN];
    let message = case.fitted.sample_given(&row, 10, &Key::new(0)).unwrap_err().to_string();
    assert!(message.contains("standard deviations from the center"), "{message}");
    let message = case.fitted.log_prob([[row[0], row[1], case.mean[2]]]).err().unwrap();
    assert!(message.to_string().contains("standard deviations"), "{message}");
}

#[test]
fn a_plane_of_decorrelated_points_is_in_the_units_of_the_data() {
    let mut case = Case::new(2, 8);
    (case.fitted.settings.rtol, case.fitted.settings.atol) = (Some(1e-5), Some(1e-5));
    let frame = case.fitted.frames.image.clone().unwrap();
    let grid = case.fitted.log_grid(24, 10.0).unwrap();
    let at = |[from, to]: [f64; 2], i: usize| from + (to - from) * (i as f64 + 0.5) / 24.0;
    for (i, found) in grid.log_density.iter().enumerate() {
        let (exact, half) = case.log_prob(&[0, 1], &[at(grid.frame.x, i % 24), at(grid.frame.y, i / 24)]);
        assert!((found - exact).abs() < 1e-4 * (1.0 + half), "{i}: {found} {exact}");
    }
    for p in [[0.3, -4.0], [7.0, 2.0]] {
        let back = frame.to_pixels(frame.to_standard(p));
        assert!((0..2).all(|a| (back[a] - p[a]).abs() < 1e-9), "{p:?} {back:?}");
    }
    let margin = frame.margin_within(50.0);
    assert!(frame.reach(margin) <= 50.0 && frame.reach(margin + 1.0) > 50.0, "{margin}");
    // On 16 cells, the grid does not resolve the density, so rectangles replace it.
    let density = LogDensity::new(1e-5, 1e-5);
    let sampler = Sampler::of_rows(density.rows_per_call());
    let plane =
        OnPlane { density: &density, sampler: &sampler, flow: &case.fitted.flow, frame: &frame, image: None };
    for finest in [16, 128] {
        let (_, found) = plane.over_domain(finest, &Deadline::none(), &mut |_| ()).unwrap();
        assert!((found.total - 1.0).abs() < 2e-3, "{finest}: {found:?}");
    }
}
