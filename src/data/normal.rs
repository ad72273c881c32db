//! The standard normal distribution in f64: density, distribution function and quantile, accurate far into
//! both tails.
//!
//! Tails matter here: a pixel that is black in 59,999 of 60,000 images has gray levels of probability 3e-7,
//! and their normal quantiles must map back to these levels. Callers therefore use the lower tail, and
//! symmetry for the upper tail, because `1 - p` would lose the digits of a small p.

use std::f64::consts::PI;

/// `ln phi(z)`, the log-density of the standard normal.
pub(super) fn ln_density(z: f64) -> f64 {
    -0.5 * z * z - 0.5 * (2.0 * PI).ln()
}

/// `Phi(z)`, the probability below z, with a relative error below 1e-13, also in the lower tail.
///
/// Up to |z| = 3, the series `1/2 + phi(z) (z + z^3/3 + z^5/15 + ...)` (Marsaglia 2004, Evaluating the normal
/// distribution, J. Stat. Software 11(4), eq. 1); beyond, 120 terms of Laplace's continued fraction for
/// Mills' ratio, `Phi(-x) = phi(x) / (x + 1 / (x + 2 / (x + ...)))` (Abramowitz and Stegun 26.2.14).
pub(super) fn cdf(z: f64) -> f64 {
    let x = z.abs();
    if x > 3.0 {
        let tail = ln_density(x).exp() / (1..=120).rev().fold(x, |below, k| x + f64::from(k) / below);
        return if z < 0.0 { tail } else { 1.0 - tail };
    }
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 + ln_density(z).exp() * sum
}

/// Returns z with `Phi(z) = p` for p in (0, 1/2], and -infinity for p = 0. For a point in the upper half,
/// pass the probability above it and negate the result.
///
/// # References
/// M. J. Wichura (1988), Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37(3),
/// PPND16: rational approximations with relative accuracy 1e-16.
pub(super) fn lower_quantile(p: f64) -> f64 {
    debug_assert!((0.0..=0.5).contains(&p), "{p}");
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * ratio(&CENTRAL, r);
    }
    let r = (-p.ln()).sqrt();
    if r.is_infinite() {
        return f64::NEG_INFINITY;
    }
    -if r <= 5.0 { ratio(&MIDDLE, r - 1.6) } else { ratio(&FAR, r - 5.0) }
}

/// Numerator over denominator; coefficients in ascending order.
fn ratio([above, below]: &[[f64; 8]; 2], r: f64) -> f64 {
    let value = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * r + c);
    value(above) / value(below)
}

const CENTRAL: [[f64; 8]; 2] = [
    [
        3.3871328727963666080,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ],
    [
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ],
];
const MIDDLE: [[f64; 8]; 2] = [
    [
        1.42343711074968357734,
        4.63033784615654529590,
        5.76949722146069140550,
        3.64784832476320460504,
        1.27045825245236838258,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ],
    [
        1.0,
        2.05319162663775882187,
        1.67638483018380384940,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ],
];
const FAR: [[f64; 8]; 2] = [
    [
        6.65790464350110377720,
        5.46378491116411436990,
        1.78482653991729133580,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    [
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_function_has_its_tabled_values() {
        // Abramowitz and Stegun, tables 26.1 and 26.2.
        let tabled = [
            (0.0, 0.5),
            (1.0, 0.841344746068543),
            (-1.0, 0.158655253931457),
            (2.5, 0.993790334674224),
            (-4.0, 3.16712418331199e-5),
            (-10.0, 7.61985302416053e-24),
        ];
        for (z, p) in tabled {
            assert!((cdf(z) / p - 1.0).abs() < 1e-13, "{z}: {} {p}", cdf(z));
        }
        assert!((cdf(3.0 + 1e-12) - cdf(3.0 - 1e-12)).abs() < 1e-14);
    }

    #[test]
    fn a_quantile_comes_back_to_its_probability_far_into_the_tail() {
        for p in [0.5, 0.3, 0.075, 0.0749, 1e-3, 3e-7, 1.2e-11, 1e-12, 1e-40, 1e-300] {
            let z = lower_quantile(p);
            assert!(z <= 0.0 && (cdf(z) / p - 1.0).abs() < 3e-12, "{p}: {z} {}", cdf(z));
        }
        assert!((lower_quantile(0.025) + 1.959963984540054).abs() < 1e-14);
        assert_eq!(lower_quantile(0.0), f64::NEG_INFINITY);
    }
}
