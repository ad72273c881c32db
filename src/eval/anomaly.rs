//! Anomaly scores of rows, in the units of the data.

use super::measure::{DRAW_TOLERANCE, drawable};
use super::{EvalError, Fitted};
use crate::cnf::{AnomalyScore, Typicality};
use crate::error::Result;
use crate::tensor::{Key, Tensor};

impl Fitted {
    /// The score of each row: the probability that a sample of the model has a lower log-density, from `draws` samples,
    /// and `|z|^2`; as [`Cnf::anomaly_scores`](crate::cnf::Cnf::anomaly_scores) in the units of the data (pixels for an
    /// image).
    ///
    /// # Shapes and units
    /// points: rows of [`dim`](Fitted::dim) coordinates, row-major; `tolerances`: relative and absolute, of the rows'
    /// log-densities, which are in nats. Those of the samples have a tolerance of 1e-4.
    ///
    /// # Errors
    /// The run was trained on an image set; the errors of [`log_prob_parts`](Fitted::log_prob_parts).
    ///
    /// # Panics
    /// If the length is not a multiple of the dimension, or there are no draws.
    #[track_caller]
    pub fn anomaly_scores(
        &self,
        points: &[f64],
        draws: usize,
        tolerances: (f64, f64),
        key: &Key,
    ) -> Result<Vec<AnomalyScore>> {
        if self.frames.images.is_some() {
            let (what, reason) = ("anomaly scores", "the log-density of an image is only estimated");
            return Err(EvalError::NotForImages { what, reason }.into());
        }
        let log_probs: Vec<_> =
            self.log_prob_parts(points, tolerances.0, tolerances.1)?.collect::<Result<_>>()?;
        let (log_probs, typicality) = (log_probs.concat(), self.typicality(draws, key)?);
        if log_probs.is_empty() {
            return Ok(Vec::new());
        }
        let d = self.dim();
        let rows: Vec<f32> =
            self.frames.standard(d).transform(points).into_iter().map(|x| x as f32).collect();
        let flow = drawable(&self.flow, DRAW_TOLERANCE);
        let z = flow.pull_back(&Tensor::from_vec([log_probs.len(), d], rows))?.to_vec();
        let square = |z: &[f64]| z.iter().map(|z| z * z).sum();
        let scored = log_probs.into_iter().zip(z.chunks_exact(d));
        Ok(scored.map(|(log_prob, z)| typicality.score(log_prob, square(z))).collect())
    }

    /// The log-densities of `draws` samples, in the units of the data.
    fn typicality(&self, draws: usize, key: &Key) -> Result<Typicality> {
        assert!(draws > 0, "draws is 0, but log-densities are compared with those of at least one sample");
        let (flow, shift) =
            (drawable(&self.flow, DRAW_TOLERANCE), self.frames.standard(self.dim()).log_jacobian());
        Ok(flow.typicality(draws, key)?.shifted(shift))
    }
}

#[cfg(test)]
mod tests {
    use super::super::inpaint::tests::still;
    use super::*;

    #[test]
    fn scores_do_not_depend_on_units() {
        let rows = [[0.1, -0.4, 0.9], [0.0, 0.0, 0.0], [4.0, 4.0, -4.0]];
        let scored = |mean: [f64; 3], std: [f64; 3]| {
            let points: Vec<f64> =
                rows.iter().flat_map(|row| [0, 1, 2].map(|i| mean[i] + std[i] * row[i])).collect();
            still(mean, std).anomaly_scores(&points, 500, (1e-6, 1e-6), &Key::new(2)).unwrap()
        };
        let (plain, scaled) = (scored([0.0; 3], [1.0; 3]), scored([5.0, -2.0, 1.0], [1e3, 0.25, 8.0]));
        for (a, b) in plain.iter().zip(&scaled) {
            assert!((a.log_prob - b.log_prob - 2000.0_f64.ln()).abs() < 1e-3, "{a:?} {b:?}");
            assert!((a.p_value - b.p_value).abs() < 0.01 && (a.z_squared - b.z_squared).abs() < 1e-3);
        }
        // In three dimensions the mode has the highest log-density, and |z|^2 of the far row is 48.
        assert!(plain[1].p_value > 0.99 && plain[1].two_sided() < 0.01 && plain[2].p_value < 0.01);
        assert!((plain[2].z_squared - 48.0).abs() < 1e-3 && plain[0].two_sided() > 0.05);
        let none = still([0.0; 3], [1.0; 3]).anomaly_scores(&[], 5, (1e-6, 1e-6), &Key::new(2)).unwrap();
        assert!(none.is_empty());
    }
}
