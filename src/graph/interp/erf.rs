//! The error function of one number, which `std` lacks. It is the reference for `simd::math`, which uses
//! another formula. This file does not depend on graphs.

use std::f64::consts::FRAC_2_SQRT_PI;

/// `erf x = 2 / sqrt(pi) * integral of e^(-t^2) from 0 to x`.
///
/// # Numerics
/// The error is within 4 ulp. For |x| < 2, the result is the series `2 / sqrt(pi) e^(-x^2) sum of 2^n
/// x^(2n+1) / (2n+1)!!`, whose terms have equal signs; an alternating series would lose digits. For larger
/// |x|, it is `1 - erfc |x|` with the sign of x, where erfc is a continued fraction. Its 60 terms are
/// accurate to 1e-14 at 2, where erfc is 0.005.
///
/// # References
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, equations 7.1.6 and 7.1.14.
pub(crate) fn erf(x: f64) -> f64 {
    let square = x * x;
    if x.abs() < 2.0 {
        let sum = (1..=40).rev().fold(1.0, |sum, n| 1.0 + sum * square / (f64::from(n) + 0.5));
        return FRAC_2_SQRT_PI * (-square).exp() * sum * x;
    }
    let fraction = (1..=60).rev().fold(x.abs(), |rest, n| x.abs() + 0.5 * f64::from(n) / rest);
    (1.0 - 0.5 * FRAC_2_SQRT_PI * (-square).exp() / fraction).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::erf;

    /// (x, erf x), computed by mpmath with 50 digits.
    const TABLE: [(f64, f64); 9] = [
        (1e-310, 1.1283791670955e-310),
        (1e-8, 1.128_379_167_095_512_6e-8),
        (0.25, 0.276_326_390_168_236_96),
        (1.0, 0.842_700_792_949_714_9),
        (1.9, 0.992_790_429_235_257_5),
        (2.0, 0.995_322_265_018_952_7),
        (2.5, 0.999_593_047_982_555),
        (4.0, 0.999_999_984_582_742_1),
        (5.5, 0.999_999_999_999_992_7),
    ];

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        for (x, want) in TABLE {
            assert!((erf(x) / want - 1.0).abs() <= 4.0 * f64::EPSILON, "erf({x}) = {} for {want}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!([6.0, 1e200, f64::INFINITY, f64::NEG_INFINITY].map(erf), [1.0, 1.0, 1.0, -1.0]);
        assert!(erf(f64::NAN).is_nan() && erf(-0.0).is_sign_negative() && erf(-0.0) == 0.0);
    }
}
