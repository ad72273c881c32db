//! Rows with some coordinates given: samples of the others from the conditional density.
//!
//! The conditional density is `p(missing | given) = p(given, missing) / p(given)`, and a flow evaluates the numerator
//! exactly. Proposals of the missing coordinates are weighted by `p(given, missing) / q(missing)`, where q is the density
//! that they were drawn from, and resampled. The weights make up for every difference between q and the conditional
//! density, so q decides only how many proposals count. It is fitted in three steps:
//!
//! 1. samples of the flow whose given coordinates are near are moved along a local linear regression to the given ones
//!    (Beaumont, Zhang and Balding 2002);
//! 2. a [`Proposal`] is fitted to them;
//! 3. it is fitted again, up to three times, to its own weighted proposals (population Monte Carlo: Cappé et al. 2004).

use super::proposal::{Proposal, covariance_of, effective_size, log_sum, mean_of, resample};
use super::{Chunked, Cnf};
use crate::error::{Error, Result};
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor};
use crate::triangular::{above, below, cholesky, log_det, times};

/// Samples of the flow among which those near the given coordinates are searched.
const PILOT: usize = 4096;
/// Those that are used, unless there are more given coordinates than a regression on them can bear.
const NEAR: usize = 256;
/// Proposals of a round of fitting, and rows of one call of the flow.
const ROUND: usize = 2048;
/// Rounds of fitting.
const ROUNDS: usize = 3;
/// Proposals of the last round per row of the result, and their minimum.
const PER_ROW: usize = 4;
const LEAST_PROPOSALS: usize = 4096;
/// The smallest effective sample size that is a result.
const LEAST_EFFECTIVE: f64 = 100.0;

/// Rows with the given coordinates; see [`Cnf::sample_given`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inpainted {
    /// The rows, `[n, dim]`, row-major. Rows may repeat.
    pub rows: Vec<f64>,
    /// `(sum w)^2 / sum w^2` over the weights w of the proposals: a mean over the rows is about as precise as that of
    /// this many independent samples, or of n if n is smaller.
    pub effective_sample_size: f64,
    /// The number of proposals among which the rows were chosen.
    pub num_proposals: usize,
    /// The log-density of the given coordinates alone, in nats: the logarithm of the mean weight.
    pub log_prob_given: f64,
    /// Its standard error.
    pub log_prob_given_stderr: f64,
}

/// The row, and which of its coordinates are given.
struct Question<'a> {
    row: &'a [f64],
    given: Vec<usize>,
    missing: Vec<usize>,
}

/// Weighted proposals.
struct Weighted {
    /// `[n, missing]`, row-major.
    points: Vec<f64>,
    /// Logarithms of the weights.
    log_weights: Vec<f64>,
}

impl<D: VelocityField> Cnf<D> {
    /// n rows with the given coordinates of `row`; the others, which are NaN in `row`, are sampled from their
    /// conditional density, by importance resampling. For pixels this is called inpainting.
    ///
    /// # Shapes and units
    /// A row has `dim` coordinates, in the coordinates of the flow.
    ///
    /// # Numerics
    /// Proposals have the weights `p(row) / q(missing)`, with p from [`Cnf::log_prob`] with the flow's tolerances. There
    /// are 4 proposals per row, and at least 4,096. The error is that of a sample of
    /// [`effective_sample_size`](Inpainted::effective_sample_size) rows; the bias falls with its inverse. The cost is that of
    /// up to 14,336 densities at n = 1,000. One to about five missing coordinates are easy; the effective sample size
    /// falls with their number unless the conditional density is nearly normal.
    ///
    /// # Errors
    /// [`Error::EffectiveSampleSize`] if it is below 100; a solve that ended early.
    ///
    /// # Panics
    /// When the row has another length, a coordinate is infinite, none is given or none is missing, n is 0, or the flow
    /// is conditioned on classes.
    ///
    /// # References
    /// Rubin (1988), Using the SIR algorithm to simulate posterior distributions; Kong (1992) for the effective sample
    /// size.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [8], &key)).rtol(1e-3).atol(1e-3);
    /// let found = flow.sample_given(&[0.5, f64::NAN], 100, &key)?;
    /// assert!(found.rows.chunks(2).all(|row| row[0] == 0.5 && row[1].is_finite()));
    /// assert!(found.effective_sample_size > 1000.0, "of {}", found.num_proposals);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    #[doc(alias = "inpaint")]
    #[doc(alias = "conditional_sample")]
    pub fn sample_given(&self, row: &[f64], n: usize, key: &Key) -> Result<Inpainted> {
        self.given_in(row, n, key, &[])
    }

    /// [`Cnf::sample_given`] in coordinates `L x` for x of the flow, with a lower triangular L; the identity if it is
    /// empty. A given coordinate is then none of the flow, so densities are weighed in these coordinates.
    #[track_caller]
    pub(crate) fn given_in(&self, row: &[f64], n: usize, key: &Key, root: &[f64]) -> Result<Inpainted> {
        assert!(n > 0, "n is 0, but a sample needs at least one row");
        assert!(
            self.context.is_none(),
            "samples with given coordinates are for flows that are not conditioned on classes"
        );
        let question = Question::new(row, self.base.dim);
        let [pilot, fits, last] = key.split();
        let shift = if root.is_empty() { 0.0 } else { log_det(root, row.len()) };
        let density = Chunked::new(ROUND, |flow: &Self, x: &Tensor, _: &Key| flow.log_prob(x));
        let weigh = |proposal: &Proposal, n: usize, key: &Key| -> Result<Weighted> {
            let points = proposal.draw(n, key);
            let log_q = proposal.log_prob(&points);
            let rows = by_rows(question.rows(&points), root, row.len(), below);
            let rows = Tensor::from_vec([n, row.len()], rows).cast(self.dtype());
            let log_p = density.call(self, &rows, key)?.to_vec();
            let log_weights = log_p.iter().zip(log_q).map(|(p, q)| p - shift - q).collect();
            Ok(Weighted { points, log_weights })
        };
        let d = question.missing.len();
        let pilots = by_rows(self.sample(PILOT, &pilot)?.to_vec(), root, row.len(), times);
        let near = question.near(&pilots);
        let even = vec![d as f64 / near.len() as f64; near.len() / d];
        let mut proposal = Proposal::fit(&near, &even, d, &fits.fold_in(ROUNDS as u32));
        for round in 0..ROUNDS {
            let [draws, fit] = fits.fold_in(round as u32).split();
            let found = weigh(&proposal, ROUND, &draws)?;
            let (weights, is_good) = found.to_fit(d);
            if is_good || weights.iter().any(|w| w.is_nan()) {
                break;
            }
            proposal = Proposal::fit(&found.points, &weights, d, &fit);
        }
        let [draws, choice] = last.split();
        let num_proposals = (PER_ROW * n).max(LEAST_PROPOSALS);
        question.answer(&weigh(&proposal, num_proposals, &draws)?, n, &choice)
    }
}

/// Applies a function of L to each row; nothing if L is empty.
fn by_rows(rows: Vec<f64>, root: &[f64], dim: usize, f: fn(&[f64], Vec<f64>, usize) -> Vec<f64>) -> Vec<f64> {
    match root.is_empty() {
        true => rows,
        false => rows.chunks_exact(dim).flat_map(|row| f(root, row.to_vec(), dim)).collect(),
    }
}

impl<'a> Question<'a> {
    #[track_caller]
    fn new(row: &'a [f64], dim: usize) -> Question<'a> {
        assert!(row.len() == dim, "the row has {} coordinates, but the flow has {dim}", row.len());
        let (missing, given): (Vec<usize>, Vec<usize>) = (0..dim).partition(|&i| row[i].is_nan());
        let finite = given.iter().all(|&i| row[i].is_finite());
        assert!(finite, "a given coordinate is infinite: {row:?}");
        assert!(!missing.is_empty(), "no coordinate is missing: write NaN for those to sample");
        assert!(!given.is_empty(), "no coordinate is given: use `sample`");
        Question { row, given, missing }
    }

    /// The missing coordinates of the samples `[n, dim]` nearest to the given coordinates, moved to these along a
    /// linear regression: `[near, missing]`.
    fn near(&self, samples: &[f64]) -> Vec<f64> {
        let (dim, k, d) = (self.row.len(), self.given.len(), self.missing.len());
        let n = samples.len() / dim;
        let off: Vec<f64> =
            samples.chunks_exact(dim).flat_map(|x| self.given.iter().map(|&i| x[i] - self.row[i])).collect();
        let even = vec![1.0 / n as f64; n];
        let root = cholesky(covariance_of(&off, &even, &mean_of(&off, &even, k)), k);
        let far: Vec<f64> =
            off.chunks_exact(k).map(|x| below(&root, x.to_vec(), k).iter().map(|x| x * x).sum()).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| far[a].total_cmp(&far[b]));
        order.truncate(NEAR.max(8 * (k + 1)).min(n));
        // The covariances of the given and the missing coordinates of these samples.
        let pairs: Vec<f64> = order
            .iter()
            .flat_map(|&i| {
                let missing = self.missing.iter().map(move |&m| samples[i * dim + m]);
                off[i * k..(i + 1) * k].iter().copied().chain(missing)
            })
            .collect();
        let even = vec![1.0 / order.len() as f64; order.len()];
        let both = covariance_of(&pairs, &even, &mean_of(&pairs, &even, dim));
        let of_given = (0..k).flat_map(|a| both[a * dim..a * dim + k].to_vec()).collect();
        let root = cholesky(of_given, k);
        let coefficients = |m: usize| {
            let with_given = (0..k).map(|a| both[(k + m) * dim + a]).collect();
            above(&root, below(&root, with_given, k), k)
        };
        let coefficients: Vec<Vec<f64>> = (0..d).map(coefficients).collect();
        let moved = |pair: &[f64]| {
            let (off, missing) = (pair[..k].to_vec(), pair[k..].to_vec());
            let shift = |m: usize| coefficients[m].iter().zip(&off).map(|(c, x)| c * x).sum::<f64>();
            (0..d).map(|m| missing[m] - shift(m)).collect::<Vec<f64>>()
        };
        pairs.chunks_exact(dim).flat_map(moved).collect()
    }

    /// Whole rows with these missing coordinates.
    fn rows(&self, points: &[f64]) -> Vec<f64> {
        let d = self.missing.len();
        let whole = |point: &[f64]| {
            let mut row = self.row.to_vec();
            self.missing.iter().zip(point).for_each(|(&i, &x)| row[i] = x);
            row
        };
        points.chunks_exact(d).flat_map(whole).collect()
    }

    /// n rows, resampled from the weighted proposals.
    fn answer(&self, found: &Weighted, n: usize, key: &Key) -> Result<Inpainted> {
        let weights = found.weights(1.0);
        let num_proposals = weights.len();
        let effective = effective_size(&weights);
        if effective.is_nan() || effective < LEAST_EFFECTIVE {
            let (given, missing) = (self.given.len(), self.missing.len());
            let effective = if effective.is_nan() { 0.0 } else { effective };
            return Err(Error::EffectiveSampleSize { effective, num_proposals, given, missing });
        }
        let d = self.missing.len();
        let chosen = resample(&weights, n, key.uniform([1]).item());
        let points: Vec<f64> =
            chosen.iter().flat_map(|&i| found.points[i * d..(i + 1) * d].to_vec()).collect();
        let m = num_proposals as f64;
        Ok(Inpainted {
            rows: self.rows(&points),
            effective_sample_size: effective,
            num_proposals,
            log_prob_given: log_sum(&found.log_weights) - m.ln(),
            // The relative variance of the weights is m / effective - 1.
            log_prob_given_stderr: ((m / effective - 1.0).max(0.0) / (m - 1.0)).sqrt(),
        })
    }
}

impl Weighted {
    /// The weights to a power, divided by their sum.
    fn weights(&self, power: f64) -> Vec<f64> {
        let raised: Vec<f64> = self.log_weights.iter().map(|w| w * power).collect();
        let sum = log_sum(&raised);
        raised.into_iter().map(|w| (w - sum).exp()).collect()
    }

    /// Weights for the fit of the next proposal, and whether this one is good enough.
    ///
    /// The weights are raised to a power of at most 1, so that enough points count to estimate a covariance.
    fn to_fit(&self, dim: usize) -> (Vec<f64>, bool) {
        let n = self.log_weights.len() as f64;
        let wanted = (50.0 + 10.0 * dim as f64).min(n / 4.0);
        let whole = self.weights(1.0);
        if effective_size(&whole) >= wanted {
            let is_good = effective_size(&whole) > 0.5 * n;
            return (whole, is_good);
        }
        let (mut least, mut most) = (0.0, 1.0);
        for _ in 0..30 {
            let middle = 0.5 * (least + most);
            let enough = effective_size(&self.weights(middle)) >= wanted;
            *(if enough { &mut least } else { &mut most }) = middle;
        }
        (self.weights(least), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_few_proposals_is_refused_with_its_numbers() {
        let question = Question::new(&[0.5, f64::NAN], 2);
        for (count, is_answered) in [(99, false), (101, true)] {
            let log_weights = (0..4096).map(|i| if i < count { 7.0 } else { -80.0 }).collect();
            let found = Weighted { points: vec![0.0; 4096], log_weights };
            match question.answer(&found, 50, &Key::new(0)) {
                Ok(answer) => {
                    assert!(is_answered && answer.rows.len() == 100);
                    assert!((answer.effective_sample_size - 101.0).abs() < 1e-6);
                    assert!((answer.log_prob_given - (7.0 + (101.0_f64 / 4096.0).ln())).abs() < 1e-9);
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(!is_answered && message.contains("99.0 of 4096 proposals"), "{message}");
                    assert!(message.contains("1 given and 1 missing"), "{message}");
                }
            }
            // Weights for a fit are raised to a power, so that more of them count.
            let (weights, is_good) = found.to_fit(30);
            assert!(effective_size(&weights) > 300.0 && !is_good);
        }
        let none = Weighted { points: vec![0.0; 4096], log_weights: vec![f64::NEG_INFINITY; 4096] };
        assert!(question.answer(&none, 50, &Key::new(0)).is_err());
    }
}
