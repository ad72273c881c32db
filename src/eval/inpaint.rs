//! Rows with some coordinates given, in the units of the data.

use super::fitted::{Fitted, in_brief};
use super::measure::{DRAW_TOLERANCE, drawable};
use super::{EvalError, FAR};
use crate::cnf::Inpainted;
use crate::data::DataError;
use crate::error::Result;
use crate::tensor::Key;
use crate::triangular::{below, cholesky};

impl Fitted {
    /// n rows with the given coordinates of `row`; the others, which are NaN in `row`, are sampled from their conditional
    /// density. If the coordinates of the flow are decorrelated, proposals are weighted in those before the decorrelation.
    pub(crate) fn sample_given(&self, row: &[f64], n: usize, key: &Key) -> Result<Inpainted> {
        if self.frames.images.is_some() {
            let (what, reason) = (
                "samples with given coordinates",
                "an image has too many missing pixels to be weighted by exact densities",
            );
            return Err(EvalError::NotForImages { what, reason }.into());
        }
        let (standard, d) = (self.frames.standard(self.dim()), self.dim());
        self.settings.without_steps("rows with given coordinates")?;
        let tolerances = self.settings.tolerances(DRAW_TOLERANCE)?;
        if row.len() != d {
            return Err(
                DataError::OtherColumns { name: "given".into(), found: row.len(), expected: d }.into()
            );
        }
        let num_given = row.iter().filter(|x| !x.is_nan()).count();
        if num_given == 0 || num_given == d || row.iter().any(|x| x.is_infinite()) {
            return Err(EvalError::Given { row: in_brief(row), num_given, dim: d }.into());
        }
        let scaled = standard.scaled(row);
        let is_given = |i: usize| !row[i].is_nan();
        let far = deviations(&scaled, &standard.factor);
        if far > FAR {
            let given: Vec<String> =
                (0..d).filter(|&i| is_given(i)).take(6).map(|i| format!("{:?}", row[i])).collect();
            let (place, value) = ("the row of given coordinates".to_owned(), given.join(", "));
            let reason = format!(
                "it is {far:.0} standard deviations from the center of mass of the data, but densities are evaluated only within {FAR} standard deviations"
            );
            return Err(EvalError::Point { place, row: 0, value, reason }.into());
        }
        let mut found =
            drawable(self.chosen()?, tolerances).given_in(&scaled, n.max(1), key, &standard.factor)?;
        found.rows.truncate(n * d);
        found.rows = standard.unscaled(&found.rows);
        for drawn in found.rows.chunks_exact_mut(d) {
            (0..d).filter(|&i| is_given(i)).for_each(|i| drawn[i] = row[i]);
        }
        found.log_prob_given -= (0..d).filter(|&i| is_given(i)).map(|i| standard.std[i].ln()).sum::<f64>();
        Ok(found)
    }
}

/// The distance of the nearest row with the given coordinates from the mean, in standard deviations: for the covariance
/// C of the given coordinates z, `sqrt(z^T C^-1 z)`.
fn deviations(scaled: &[f64], factor: &[f64]) -> f64 {
    let given: Vec<usize> = (0..scaled.len()).filter(|&i| !scaled[i].is_nan()).collect();
    let mut z: Vec<f64> = given.iter().map(|&i| scaled[i]).collect();
    if !factor.is_empty() {
        let (d, k) = (scaled.len(), given.len());
        let row = |i: usize| &factor[i * d..(i + 1) * d];
        let product = |i: usize, j: usize| row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum::<f64>();
        let covariance = given.iter().flat_map(|&i| given.iter().map(move |&j| product(i, j))).collect();
        z = below(&cholesky(covariance, k), z, k);
    }
    z.iter().fold(0.0, |r: f64, &x| r.hypot(x))
}

#[cfg(test)]
pub(super) mod tests {
    use crate::cnf::Cnf;
    use crate::data::Points;
    use crate::eval::{Fitted, Frames, PointsFrame};
    use crate::nn::{Activation, AnyVelocityField, Mlp};
    use crate::tensor::{Key, Tree};

    /// A flow that does not move, on points with these means and standard deviations.
    pub(crate) fn still(mean: [f64; 3], std: [f64; 3]) -> Fitted {
        let field: AnyVelocityField = Mlp::new([3, 3], Activation::Tanh, &Key::new(0)).into();
        let flow = Cnf::new(field.map_leaves(|leaf| leaf * 0.0)).fixed_steps(1);
        // Two points have the mean and the standard deviation of these.
        let rows = vec![[0, 1, 2].map(|i| mean[i] - std[i]), [0, 1, 2].map(|i| mean[i] + std[i])];
        let frame = PointsFrame::of(&Points::from_rows(rows).unwrap(), String::new());
        Fitted::new(flow, &Frames { points: Some(frame), ..Frames::default() }, None)
    }

    #[test]
    fn rows_keep_what_is_given_and_are_in_the_units_of_the_data() {
        let (mean, std) = ([1e6, -3.0, 0.02], [100.0, 0.5, 1e-3]);
        let fitted = still(mean, std);
        let (row, n) = ([f64::NAN, -2.3, f64::NAN], 800);
        let found = fitted.sample_given(&row, n, &Key::new(4)).unwrap();
        assert!(found.rows.len() == 3 * n && found.rows.chunks(3).all(|row| row[1] == -2.3));
        for i in [0, 2] {
            let column: Vec<f64> =
                found.rows.iter().skip(i).step_by(3).map(|x| (x - mean[i]) / std[i]).collect();
            let average = column.iter().sum::<f64>() / n as f64;
            let square = column.iter().map(|x| x * x).sum::<f64>() / n as f64;
            assert!(average.abs() < 0.2 && (square - 1.0).abs() < 0.3, "{average} {square}");
        }
        let log_p = -0.5 * 1.4_f64.powi(2) - (0.5 * std::f64::consts::TAU.sqrt()).ln();
        let off = (found.log_prob_given - log_p).abs();
        assert!(off < 4.5 * found.log_prob_given_stderr + 1e-3, "{} {log_p}", found.log_prob_given);
        let far = fitted.sample_given(&[f64::NAN, 97.0, f64::NAN], n, &Key::new(4)).unwrap_err().to_string();
        assert!(far.contains("97.0") && far.contains("200 standard deviations"), "{far}");
        // The density of a row, and its parts.
        let whole = fitted.log_prob([[1e6, -2.3, 0.02]]).unwrap()[0];
        assert!((whole - (log_p - (100.0 * 1e-3 * std::f64::consts::TAU).ln())).abs() < 1e-4);
    }
}
