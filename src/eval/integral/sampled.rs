//! The integral of a density by importance sampling, with its standard error.
//!
//! For an image of many pixels a grid that resolves the pixels is too large, and rectangles that are divided where the
//! density changes become as many. The error of importance sampling does not depend on the number of pixels. Points are
//! drawn from a mixture of densities that [cover](Cover) the image. The first points only choose the shares of the mixture:
//! a component gets the share of the density that lies under it (an update of the EM algorithm).

use super::Integral;
use crate::data::{Cover, Estimate};
use rand::{Rng, RngExt};

/// The target standard error, and the largest number of points.
const STDERR: f64 = 0.002;
const MOST: u64 = 1 << 17;
/// The smallest share of a component.
const LEAST: f64 = 0.02;

/// An integral and the number of points drawn for it.
pub struct Sampled {
    /// The integral and its standard error.
    pub integral: Integral,
    /// Number of points.
    pub points: u64,
}

/// Points of a round: the density of their mixture, and its components.
struct Round {
    points: Vec<[f32; 2]>,
    mixture: Vec<f64>,
    parts: Vec<Vec<f64>>,
}

impl Round {
    fn draw<R: Rng + ?Sized>(cover: &Cover<'_>, shares: &[f64], n: usize, rng: &mut R) -> Round {
        let component = |rng: &mut R| {
            let mut left = rng.random::<f64>();
            let found = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            found.unwrap_or(0)
        };
        let points: Vec<[f32; 2]> = (0..n)
            .map(|_| {
                let component = component(rng);
                cover.draw(component, rng)
            })
            .collect();
        let mut parts = cover.densities(&points);
        for part in &mut parts {
            part.iter_mut().zip(shares).for_each(|(density, share)| *density *= share);
        }
        let mixture = parts.iter().map(|part| part.iter().sum::<f64>().max(f64::MIN_POSITIVE)).collect();
        Round { points, mixture, parts }
    }

    /// The shares of the mixture that are more likely for a density with these values at the points.
    fn shares(&self, values: &[f64]) -> Option<Vec<f64>> {
        let mut shares = vec![0.0; self.parts[0].len()];
        for ((value, part), mixture) in values.iter().zip(&self.parts).zip(&self.mixture) {
            let weight = value / (mixture * mixture);
            shares.iter_mut().zip(part).for_each(|(share, density)| *share += weight * density);
        }
        let total: f64 = shares.iter().sum();
        let rest = 1.0 - LEAST * shares.len() as f64;
        (total > 0.0 && total.is_finite())
            .then(|| shares.into_iter().map(|share| LEAST + rest * share / total).collect())
    }
}

/// The integral of `f`, in standardized coordinates, in rounds of `round` points, until its standard error is small enough,
/// or until `fits` returns false for another round.
///
/// # Errors
/// Errors of `f`.
pub fn by_importance<E, R: Rng + ?Sized>(
    cover: &Cover<'_>,
    mut f: impl FnMut(&[[f32; 2]]) -> Result<Vec<f64>, E>,
    round: usize,
    rng: &mut R,
    mut fits: impl FnMut(f64) -> bool,
) -> Result<Sampled, E> {
    let mut shares = vec![1.0 / cover.count() as f64; cover.count()];
    let first = Round::draw(cover, &shares, round, rng);
    if let Some(better) = first.shares(&f(&first.points)?) {
        shares = better;
    }
    let mut most_precise = Estimate::default();
    let next = |i: u32| {
        let done = (f64::from(i) * round as f64 / MOST as f64)
            .max(most_precise.stderr.map_or(0.0, |stderr| (STDERR / stderr).powi(2)));
        if !fits(done.min(1.0)) && i > 0 {
            return Ok(None);
        }
        let drawn = Round::draw(cover, &shares, round, rng);
        let values = f(&drawn.points)?;
        let found = Estimate::of(&values.iter().zip(&drawn.mixture).map(|(v, q)| v / q).collect::<Vec<_>>());
        most_precise = most_precise.merge(found);
        Ok(Some(found))
    };
    let found = Estimate::until(STDERR, MOST, next)?;
    let integral = Integral { value: found.mean, error: found.stderr.unwrap_or(f64::INFINITY) };
    Ok(Sampled { integral, points: found.count })
}
