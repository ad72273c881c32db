//! Anomaly scores of rows, in the units of the data.

use super::EvalError;
use super::fitted::Fitted;
use super::measure::{DRAW_TOLERANCE, drawable};
use crate::cnf::AnomalyScore;
use crate::data::Rows;
use crate::error::Result;
use crate::tensor::{Key, Tensor};

impl Fitted {
    /// The score of each row: the probability that a sample of the model has a lower log-density, from `draws` samples,
    /// and `|z|^2`.
    pub(crate) fn anomaly_scores(
        &self,
        rows: impl Into<Rows>,
        draws: usize,
        key: &Key,
    ) -> Result<Vec<AnomalyScore>> {
        if self.frames.images.is_some() {
            let (what, reason) = ("anomaly scores", "the log-density of an image is only estimated");
            return Err(EvalError::NotForImages { what, reason }.into());
        }
        self.settings.without_steps("anomaly scores")?;
        if draws == 0 {
            return Err(EvalError::NoDraws.into());
        }
        let (rows, tolerances) = (self.checked(rows)?, self.settings.tolerances(DRAW_TOLERANCE)?);
        let flow = drawable(self.chosen()?, tolerances);
        let log_probs = self.log_prob(&rows)?;
        if log_probs.is_empty() {
            return Ok(Vec::new());
        }
        let (standard, d) = (self.standard(), self.dim());
        let typicality = flow.typicality(draws, key)?.shifted(standard.log_jacobian());
        let x: Vec<f32> = standard.transform(rows.values()).into_iter().map(|x| x as f32).collect();
        let z = flow.pull_back(&Tensor::from_vec([rows.len(), d], x))?.to_vec();
        let square = |z: &[f64]| z.iter().map(|z| z * z).sum();
        let scored = log_probs.into_iter().zip(z.chunks_exact(d));
        Ok(scored.map(|(log_prob, z)| typicality.score(log_prob, square(z))).collect())
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
            still(mean, std).anomaly_scores(Rows::from_flat(points, 3), 500, &Key::new(2)).unwrap()
        };
        let (plain, scaled) = (scored([0.0; 3], [1.0; 3]), scored([5.0, -2.0, 1.0], [1e3, 0.25, 8.0]));
        for (a, b) in plain.iter().zip(&scaled) {
            assert!((a.log_prob - b.log_prob - 2000.0_f64.ln()).abs() < 1e-3, "{a:?} {b:?}");
            assert!((a.p_value - b.p_value).abs() < 0.01 && (a.z_squared - b.z_squared).abs() < 1e-3);
        }
        // In three dimensions the mode has the highest log-density, and |z|^2 of the far row is 48.
        assert!(plain[1].p_value > 0.99 && plain[1].two_sided() < 0.01 && plain[2].p_value < 0.01);
        assert!((plain[2].z_squared - 48.0).abs() < 1e-3 && plain[0].two_sided() > 0.05);
        let none = still([0.0; 3], [1.0; 3]).anomaly_scores(Rows::default(), 5, &Key::new(2)).unwrap();
        assert!(none.is_empty());
    }
}
