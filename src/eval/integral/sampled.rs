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
const STDERR: f64 = 0.004;
const MOST: u64 = 1 << 15;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageDensity;
    use crate::data::tests::density;
    use rand::{SeedableRng, rngs::SmallRng};
    use rand_distr::StandardNormal;

    /// Log-densities with total probability 1 (the image itself, normals of 0.05 to 1.3 standard deviations at points of the
    /// image), times a random factor: the integral is this factor within its standard error.
    #[test]
    fn the_integral_lies_within_its_standard_error() {
        let mut rng = SmallRng::seed_from_u64(9);
        let (mut off, mut largest, mut ended) = (Vec::new(), 0.0_f64, 0);
        for number in 0..24 {
            let image = drawn(&mut rng);
            let factor = rng.random_range(0.2..2.0);
            let (std, center) =
                (0.05 * 26f64.powf(rng.random()), image.sample(1, &mut rng)[0].map(f64::from));
            let normal = |x: &[f32; 2]| {
                let [x, y] = [0, 1].map(|a| (f64::from(x[a]) - center[a]) / std);
                factor * (-0.5 * (x * x + y * y)).exp() / (2.0 * std::f64::consts::PI * std * std)
            };
            let f = |points: &[[f32; 2]]| {
                let values = match number % 3 {
                    0 => image.log_probs(points).into_iter().map(|x| factor * x.exp()).collect(),
                    _ => points.iter().map(normal).collect::<Vec<f64>>(),
                };
                Ok::<_, ()>(values)
            };
            let mut rounds: u32 = if rng.random::<bool>() { 3 } else { 30 };
            let fits = |_: f64| {
                rounds = rounds.saturating_sub(1);
                rounds > 0
            };
            let Sampled { integral, points } =
                by_importance(&Cover::of(&image), f, 512, &mut rng, fits).unwrap();
            ended += usize::from(integral.error > STDERR && points < MOST);
            off.push(((integral.value - factor) / integral.error).abs());
            if number % 3 == 0 {
                largest = largest.max(integral.error / factor * (points as f64).sqrt());
            }
        }
        off.sort_by(f64::total_cmp);
        assert!(off[23] < 4.0 && (0.3..1.2).contains(&off[12]), "{off:?}");
        // The standard deviation of the ratio of density and mixture, for a flow that has learned the image.
        assert!(largest < 4.0 && ended > 5, "{largest} {ended}");
    }

    /// 20 to 120 pixels per side, thin lines on white.
    fn drawn(rng: &mut SmallRng) -> ImageDensity {
        let size = [0, 1].map(|_| rng.random_range(20..120u32));
        let mut dark = Vec::new();
        for _ in 0..3 {
            let (from, slope): (f64, f64) = (rng.random(), rng.sample(StandardNormal));
            dark.extend((0..size[0]).filter_map(|x| {
                let y = from * f64::from(size[1]) + slope * f64::from(x);
                (0.0..f64::from(size[1])).contains(&y).then_some((x, y as u32, rng.random_range(0.0..200.0)))
            }));
        }
        density(size[0], size[1], &[&[(0, 0, 0.0), (size[0] - 1, size[1] - 1, 100.0)], &dark[..]].concat())
    }
}
