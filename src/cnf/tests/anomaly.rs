//! Anomaly scores of rows whose ranks are known: samples, far rows and modes.

use super::inpaint::any_normal;
use super::*;
use crate::cnf::Typicality;

tree! {
    /// `z_i' = rate_i z_i`, in any dimension.
    struct Scaled { rate: Tensor }
}

impl VelocityField for Scaled {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y * &self.rate
    }
    fn dim(&self) -> usize {
        self.rate.size()
    }
}

/// The statistic of Kolmogorov and Smirnov against uniform values in [0, 1].
fn kolmogorov(mut p: Vec<f64>) -> f64 {
    p.sort_by(f64::total_cmp);
    let n = p.len() as f64;
    p.iter().enumerate().map(|(i, p)| (p - i as f64 / n).max((i as f64 + 1.0) / n - p)).fold(0.0, f64::max)
}

/// At the level of 1e-4 per density; 6 densities of 1 to 4 dimensions are drawn.
#[test]
fn p_values_of_samples_are_uniform() {
    let (n, draws) = (500, 1000);
    for case in 0..6 {
        let [shape, rows, key] = Key::new(31).fold_in(case).split();
        let (flow, _) = any_normal(1 + case as usize % 4, &shape);
        let scores = flow.anomaly_scores(&flow.sample(n, &rows).unwrap(), draws, &key).unwrap();
        let off = kolmogorov(scores.iter().map(|score| score.p_value).collect());
        let most =
            (1e-4_f64.recip() * 2.0).ln().sqrt() * (0.5 * (1.0 / n as f64 + 1.0 / draws as f64)).sqrt();
        assert!(off < most, "{case}: {off} {most}");
        // |z|^2 has the mean d and the variance 2 d.
        let (d, mean) = (flow.base.dim as f64, scores.iter().map(|s| s.z_squared).sum::<f64>() / n as f64);
        assert!((mean - d).abs() < 4.5 * (2.0 * d / n as f64).sqrt(), "{case}: {mean} {d}");
        // Half of the p-values are within 2 standard errors of the rank's own probability, here 0.5.
        let (half, error) = flow.typicality(draws, &key).unwrap().p_value(scores[0].log_prob);
        assert_eq!((half, error), (scores[0].p_value, scores[0].p_value_stderr));
    }
}

#[test]
fn a_far_row_and_a_mode_are_both_unusual() {
    let rate = Tensor::from_vec([1, 50], (0..50).map(|i| 0.04 * f64::from(i) - 1.0).collect::<Vec<f64>>());
    let flow = Cnf::new(Scaled { rate: rate.clone() }).fixed_steps(4).rows_per_tile(16);
    let typical = rate.exp() * Tensor::full(DType::F64, [1, 50], 0.996);
    let rows = Tensor::concat(&[&(&typical * 0.0), &typical, &(&typical * 3.0)], 0);
    let scores = flow.anomaly_scores(&rows, 400, &key()).unwrap();
    // Only the mode has the highest log-density of all, and it is as unusual as the far row.
    assert!(scores[0].log_prob > scores[1].log_prob && scores[1].log_prob > scores[2].log_prob);
    assert!(scores[0].p_value > 0.99 && scores[0].two_sided() < 0.01 && scores[0].z_squared < 1e-9);
    assert!((0.2..0.8).contains(&scores[1].p_value) && scores[1].two_sided() > 0.4, "{:?}", scores[1]);
    assert!(scores[2].p_value < 0.01 && scores[2].two_sided() < 0.01 && scores[2].z_squared > 400.0);
}

#[test]
fn a_p_value_counts_the_samples_below() {
    let typicality = Typicality::of(vec![3.0, 1.0, 2.0, 2.0]);
    let p = |x| typicality.p_value(x).0;
    assert_eq!(
        [p(0.0), p(2.0), p(2.5), p(f64::INFINITY), p(f64::NEG_INFINITY)],
        [1.0, 2.0, 4.0, 5.0, 1.0].map(|k| k / 6.0)
    );
    assert!((typicality.p_value(2.5).1 - (2.0_f64 / 9.0 / 7.0).sqrt()).abs() < 1e-15);
    // The same rows in other units: all log-densities are shifted, and no p-value changes.
    let shifted = Typicality::of(vec![10.0, 8.0, 9.0, 9.0]);
    assert_eq!(
        [0.5, 1.5, 2.2].map(|x| shifted.p_value(x + 7.0)),
        [0.5, 1.5, 2.2].map(|x| typicality.p_value(x))
    );
}

#[test]
#[should_panic(expected = "draws is 0")]
fn no_draws_are_refused() {
    let _ = small().typicality(0, &key());
}
