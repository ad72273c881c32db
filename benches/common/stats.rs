//! Statistics of timing samples.

/// The median; for an even number of samples, the upper of the middle two.
pub fn median(mut xs: Vec<f64>) -> f64 {
    xs.sort_by(f64::total_cmp);
    xs[xs.len() / 2]
}
