//! What samples of a time come down to.

/// The middle one of an odd number of samples, the upper of the middle two of an even number.
pub fn median(mut xs: Vec<f64>) -> f64 {
    xs.sort_by(f64::total_cmp);
    xs[xs.len() / 2]
}
