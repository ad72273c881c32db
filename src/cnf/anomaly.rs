//! Anomaly scores: how the log-density of a row compares with those of the flow's own samples.
//!
//! A log-density alone says little. It changes with the units of the columns, and in many dimensions no sample is near
//! the mode: the log-density of a standard normal sample in d dimensions is below that of the mode by about `d / 2`, give
//! or take `sqrt(d / 2)`. A row with a higher log-density than every sample is as unusual as one with a lower one
//! (Nalisnick et al. 2019). The rank of its log-density among those of samples has neither problem.

use super::{Cnf, Divergence};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor};

/// The log-densities of samples of a flow, in nats, to compare those of rows with; see [`Cnf::typicality`].
#[derive(Clone, Debug, PartialEq)]
pub struct Typicality {
    sorted: Vec<f64>,
}

/// How unusual a row is; see [`Cnf::anomaly_scores`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AnomalyScore {
    /// The log-density of the row, in nats.
    pub log_prob: f64,
    /// The probability that a sample of the flow has a lower log-density. It is near 0 for rows in the tails, and near 1
    /// for rows nearer to a mode than almost all samples.
    pub p_value: f64,
    /// Its standard error, from the number of samples.
    pub p_value_stderr: f64,
    /// `|z|^2` of the row's point z of the base density. For samples of the flow it has a chi-squared distribution with as
    /// many degrees of freedom as there are coordinates, so about `d ± sqrt(2 d)`.
    pub z_squared: f64,
}

impl AnomalyScore {
    /// `2 min(p, 1 - p)` for the p-value p: near 0 for rows whose log-density is unusually low or unusually high.
    pub fn two_sided(&self) -> f64 {
        2.0 * self.p_value.min(1.0 - self.p_value)
    }
}

impl Typicality {
    /// From the log-densities of samples.
    ///
    /// # Panics
    /// When there are none, or one is NaN.
    #[track_caller]
    pub fn of(mut log_probs: Vec<f64>) -> Typicality {
        assert!(!log_probs.is_empty(), "log-densities are compared with those of at least one sample");
        assert!(log_probs.iter().all(|x| !x.is_nan()), "the log-density of a sample is NaN");
        log_probs.sort_by(f64::total_cmp);
        Typicality { sorted: log_probs }
    }

    /// The number of samples.
    pub fn num_samples(&self) -> usize {
        self.sorted.len()
    }

    /// The probability that a sample has a log-density below this one, and its standard error: the mean and the standard
    /// deviation of the beta distribution with parameters `k + 1` and `n - k + 1`, for k of n samples below. The
    /// probability is neither 0 nor 1, since n samples cannot show that.
    pub fn p_value(&self, log_prob: f64) -> (f64, f64) {
        let below = self.sorted.partition_point(|&x| x < log_prob);
        let n = self.sorted.len() as f64;
        let p = (below as f64 + 1.0) / (n + 2.0);
        (p, (p * (1.0 - p) / (n + 3.0)).sqrt())
    }

    /// In units in which every log-density is larger by `shift`.
    #[cfg(feature = "train")]
    pub(crate) fn shifted(mut self, shift: f64) -> Typicality {
        self.sorted.iter_mut().for_each(|x| *x += shift);
        self
    }

    /// The score of a row.
    pub fn score(&self, log_prob: f64, z_squared: f64) -> AnomalyScore {
        let (p_value, p_value_stderr) = self.p_value(log_prob);
        AnomalyScore { log_prob, p_value, p_value_stderr, z_squared }
    }
}

/// Anomaly scores.
impl<D: VelocityField> Cnf<D> {
    /// The log-densities of `draws` samples of the flow, with the exact divergence.
    ///
    /// # Errors
    /// A solve that ended early.
    ///
    /// # Panics
    /// When there are no draws.
    #[track_caller]
    pub fn typicality(&self, draws: usize, key: &Key) -> Result<Typicality> {
        assert!(draws > 0, "draws is 0, but log-densities are compared with those of at least one sample");
        let exact = self.clone().divergence(Divergence::Exact);
        Ok(Typicality::of(exact.sample_with_log_prob(draws, key)?.1.to_vec()))
    }

    /// The scores of the rows of x: the probability that a sample of the flow has a lower log-density, from `draws`
    /// samples, and `|z|^2`.
    ///
    /// A scaling of the columns does not change the p-value. For rows that are themselves samples of the flow, it is
    /// uniformly distributed.
    ///
    /// # Shapes and units
    /// x `[n, dim]`, in the coordinates of the flow.
    ///
    /// # Errors
    /// A solve that ended early.
    ///
    /// # Panics
    /// When there are no draws.
    ///
    /// # References
    /// Nalisnick et al. (2019), Do deep generative models know what they don't know?, and, for the two-sided test,
    /// Detecting out-of-distribution inputs to deep generative models using typicality.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let flow = Cnf::new(ConcatSquash::new(2, [8], &Key::new(0)));
    /// let scores = flow.anomaly_scores(&Tensor::from([[0.3, 1.0], [6.0, 6.0]]), 1000, &Key::new(1))?;
    /// assert!(scores[0].two_sided() > 0.1 && scores[1].p_value < 0.002);
    /// assert!(scores[1].z_squared > 20.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn anomaly_scores(&self, x: &Tensor, draws: usize, key: &Key) -> Result<Vec<AnomalyScore>> {
        let typicality = self.typicality(draws, key)?;
        let squares = self.pull_back(x)?.square().sum_last().to_vec();
        let scored = self.log_prob(x)?.to_vec().into_iter().zip(squares);
        Ok(scored.map(|(log_prob, z_squared)| typicality.score(log_prob, z_squared)).collect())
    }
}
