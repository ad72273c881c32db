//! A uniform distribution on an interval, convolved with a normal distribution, from a table.
//!
//! The density is `(Phi((d + half) / std) - Phi((d - half) / std)) / (2 half)` at distance d from the center of the
//! interval. A density over the plane sums such factors over thousands of nodes per point, and each `Phi` in the tail
//! costs a continued fraction of 120 terms. The logarithm of the density is smooth, so a cubic Hermite interpolant
//! replaces it.

use crate::data::normal;

/// Interval between the nodes of the table, in standard deviations. The error of the interpolant of `ln p` is at most
/// `STEP^4 / 384` times the fourth derivative, which is below 3 in these units: less than 1e-11.
const STEP: f64 = 1.0 / 192.0;
/// The table ends where the density is about the smallest normal f64.
const END: f64 = 37.0;

/// `ln p` as a function of the distance from the center.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    half: f64,
    /// Nodes per unit of distance.
    per_unit: f64,
    /// `ln p` and its derivative per node interval.
    nodes: Vec<[f64; 2]>,
}

impl Profile {
    /// For the interval `[-half, half]` and a normal distribution with standard deviation `std`.
    pub(super) fn new(half: f64, std: f64) -> Profile {
        let u = half / std;
        let node = |i: usize| {
            // The lower tail, where the difference keeps its digits.
            let z = -(i as f64 * STEP);
            let p = normal::cdf(z + u) - normal::cdf(z - u);
            let derivative = (normal::ln_density(z + u).exp() - normal::ln_density(z - u).exp()) / p;
            [(p / (2.0 * half)).ln(), -derivative * STEP]
        };
        let count = ((END + u) / STEP) as usize;
        Profile { half, per_unit: 1.0 / (std * STEP), nodes: (0..count).map(node).collect() }
    }

    /// The half length of the interval.
    pub(super) fn half(&self) -> f64 {
        self.half
    }

    /// `ln p` at this distance; -infinity beyond the table, where p underflows.
    pub(super) fn ln(&self, d: f64) -> f64 {
        let place = d.abs() * self.per_unit;
        let i = place as usize;
        let Some([[y0, m0], [y1, m1]]) = self.nodes.get(i..i + 2) else { return f64::NEG_INFINITY };
        let (t, rise) = (place - i as f64, y1 - y0);
        y0 + t * (m0 + t * (3.0 * rise - 2.0 * m0 - m1 + t * (m0 + m1 - 2.0 * rise)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    /// Half lengths from 0.01 to 10 standard deviations, scales from 1e-3 to 1e3, distances from 0 to the end of the
    /// table, against the difference of distribution functions.
    #[test]
    fn the_table_has_the_values_of_the_distribution_functions() {
        let mut rng = SmallRng::seed_from_u64(7);
        let (mut near, mut far) = (0, 0);
        for _ in 0..24 {
            let std = 10f64.powf(rng.random_range(-3.0..3.0));
            let half = std * 10f64.powf(rng.random_range(-2.0..1.0));
            let profile = Profile::new(half, std);
            for k in 0..40 {
                let z = if k == 0 { 0.0 } else { rng.random_range(0.0..36.9 + half / std) };
                let exact = normal::cdf((half / std) - z) - normal::cdf(-z - half / std);
                let found = (profile.ln(z * std) + (2.0 * half).ln()).exp();
                (near, far) = (near + usize::from(z < 2.0), far + usize::from(z > 30.0));
                assert!((found / exact - 1.0).abs() < 2e-10, "std {std} half {half} z {z}: {found} {exact}");
                assert_eq!(profile.ln(-z * std).to_bits(), profile.ln(z * std).to_bits());
            }
            assert_eq!(profile.ln((40.0 * std + half) * 1.01), f64::NEG_INFINITY);
        }
        assert!(near >= 24 && far >= 24, "{near} {far}");
    }
}
