//! Stiff problems, most of them published, compared with a closed form or with end values of Radau IIA of
//! order 13 in 80-bit arithmetic.

mod brusselator;
mod brusselator_values;
mod chemistry;
mod circuit;
mod closed_form;
mod constraints;
mod neural;
mod other_methods;
mod robertson;
mod small;

pub use closed_form::{QUARTER, prothero_robinson};
pub use robertson::{ROBER_1E11, ROBER_40, Rober, rober, rober_dae};

use crate::ode::{GenericField, Ode, VectorField};
use std::ops::RangeInclusive;

/// The exponents of rtol = 1e-3 ... 1e-10.
const ALL: RangeInclusive<i32> = 3..=10;

/// Asserts that the error at rtol = 10^-e is below `bound` rtol for each exponent e, and that from rtol =
/// 1e-4 to the smallest rtol it decreases by a larger factor than the square root of rtol.
fn assert_falls(name: &str, exponents: RangeInclusive<i32>, bound: f64, error: impl Fn(f64) -> f64) {
    let errors: Vec<f64> = exponents.clone().map(|e| error(10.0_f64.powi(-e))).collect();
    let ratios: Vec<f64> =
        exponents.clone().zip(&errors).map(|(e, error)| error * 10.0_f64.powi(e)).collect();
    assert!(ratios.iter().all(|&ratio| ratio < bound), "{name}: errors in units of rtol: {ratios:.3?}");
    let fall = 10.0_f64.powf(-0.5 * f64::from(exponents.end() - 4));
    assert!(errors[errors.len() - 1] < fall * errors[1], "{name}: errors in units of rtol: {ratios:.3?}");
}

/// The largest relative difference from the reference.
pub fn relative(found: &[f64], reference: &[f64]) -> f64 {
    assert_eq!(found.len(), reference.len());
    let each = found.iter().zip(reference).map(|(found, reference)| (found / reference - 1.0).abs());
    // A NaN counts as larger than all others.
    each.fold(0.0, |largest, error| if error > largest || error.is_nan() { error } else { largest })
}

/// A `vector_field!` as a closure, so that its Jacobian comes from finite differences instead of dual
/// numbers.
fn by_differences<G, const N: usize>(field: G) -> Ode<'static, [f64; N], impl VectorField<[f64; N]> + Clone>
where
    G: GenericField<N, Of<f64> = G>,
{
    Ode::new(move |t: f64, y: &[f64; N]| G::eval_f64(&field, t, y))
}
