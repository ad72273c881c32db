//! The 2-d benchmark densities of papers on flows, scaled as in FFJORD.
//!
//! Eight distributions, each with a sampler and (in `density`) a density. Five are curves with normal noise
//! around them (the "brush"), one is a mixture of normals, one a mixture of warped normals and one uniform.
//! Each density is exact or a one-dimensional integral, so the entropies below are reference values for a
//! model's likelihood. Points are independent: where the original program draws a fixed number of points per
//! class, the class is sampled here.
//!
//! # References
//! W. Grathwohl et al. (2019), FFJORD, figure 2, and the toy data of its published program; moons, circles
//! and swiss roll are scikit-learn's (`make_moons`, `make_circles`, `make_swiss_roll`), shifted and scaled;
//! the pinwheel is from M. Johnson et al. (2016), Composing graphical models with neural networks.

mod density;
mod profile;
#[cfg(test)]
mod tests;
mod velocity;

pub use density::ToyGrid;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use std::f64::consts::{PI, TAU};

/// A named density over the plane, y upward.
///
/// # Examples
/// ```
/// use flowline::data::ToyDensity;
/// use rand::{SeedableRng, rngs::SmallRng};
/// let toy: ToyDensity = "checkerboard".parse()?;
/// let points = toy.sample(1_000, &mut SmallRng::seed_from_u64(0));
/// assert!(points.iter().all(|&x| toy.density().log_prob(x) == -toy.entropy_nats()));
/// # Ok::<(), flowline::data::DataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToyDensity {
    /// Two interleaving half circles.
    #[doc(alias("make_moons", "two_moons"))]
    Moons,
    /// Eight isotropic normals on a circle.
    EightGaussians,
    /// Five bent blades.
    Pinwheel,
    /// Two concentric circles.
    Circles,
    /// Two spirals, one of them rotated by half a turn.
    TwoSpirals,
    /// Eight of sixteen squares.
    Checkerboard,
    /// Four concentric circles.
    Rings,
    /// One and a half turns of a spiral.
    SwissRoll,
}

/// The distribution of s in [0, 1], the parameter of [`ToyDensity::curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Along {
    /// The curve is one point.
    Point,
    /// s is uniform; the curve is closed.
    Closed,
    /// s is uniform; the curve is open.
    Open,
    /// s has density 2 s, so s^2 is uniform; the curve is open.
    Linear,
}

/// Curves, and the noise around them.
#[derive(Clone, Copy, Debug)]
struct Brush {
    /// Number of curves, chosen with equal probability.
    arms: usize,
    /// The distribution along one curve.
    along: Along,
    /// Standard deviation of the normal noise.
    std: f64,
    /// Half the side of the square of uniform noise that is added before the normal noise; 0 for none.
    half: f64,
}

/// Radial and tangential standard deviation of the pinwheel before warping, and the rate of the warp.
const BLADE: ([f64; 2], f64) = ([0.3, 0.1], 0.25);

impl ToyDensity {
    /// All toys.
    pub const ALL: [ToyDensity; 8] = [
        ToyDensity::Moons,
        ToyDensity::EightGaussians,
        ToyDensity::Pinwheel,
        ToyDensity::Circles,
        ToyDensity::TwoSpirals,
        ToyDensity::Checkerboard,
        ToyDensity::Rings,
        ToyDensity::SwissRoll,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ToyDensity::Moons => "moons",
            ToyDensity::EightGaussians => "8gaussians",
            ToyDensity::Pinwheel => "pinwheel",
            ToyDensity::Circles => "circles",
            ToyDensity::TwoSpirals => "2spirals",
            ToyDensity::Checkerboard => "checkerboard",
            ToyDensity::Rings => "rings",
            ToyDensity::SwissRoll => "swissroll",
        }
    }

    /// Entropy in nats, in the toy's own coordinates: the minimal mean NLL of any model.
    ///
    /// `ln 32` for the checkerboard; for the other toys `-integral p ln p` over the plane by the midpoint rule,
    /// to the digits given.
    pub fn entropy_nats(self) -> f64 {
        match self {
            ToyDensity::Moons => 2.3939,
            ToyDensity::EightGaussians => 2.8319,
            ToyDensity::Pinwheel => 2.3178,
            ToyDensity::Circles => 3.2681,
            ToyDensity::TwoSpirals => 2.6454,
            ToyDensity::Checkerboard => 32f64.ln(),
            ToyDensity::Rings => 2.6232,
            ToyDensity::SwissRoll => 2.6696,
        }
    }

    /// `n` independent points, in the toy's own coordinates.
    pub fn sample<R: Rng + ?Sized>(self, n: usize, rng: &mut R) -> Vec<[f64; 2]> {
        (0..n).map(|_| self.point(rng)).collect()
    }

    /// The density, prepared for evaluation at many points.
    pub fn density(self) -> ToyGrid {
        ToyGrid::new(self)
    }

    fn point<R: Rng + ?Sized>(self, rng: &mut R) -> [f64; 2] {
        let Some(brush) = self.brush() else { return self.unbrushed(rng) };
        let arm = rng.random_range(0..brush.arms);
        let s: f64 = match brush.along {
            Along::Point => 0.0,
            Along::Closed | Along::Open => rng.random(),
            Along::Linear => rng.random::<f64>().sqrt(),
        };
        self.curve(arm, s).map(|c| {
            let square = if brush.half > 0.0 { brush.half * (2.0 * rng.random::<f64>() - 1.0) } else { 0.0 };
            c + square + brush.std * rng.sample::<f64, _>(StandardNormal)
        })
    }

    /// Samples one of the two toys without a brush.
    fn unbrushed<R: Rng + ?Sized>(self, rng: &mut R) -> [f64; 2] {
        if self == ToyDensity::Checkerboard {
            let (x, y): (f64, f64) = (4.0 * rng.random::<f64>() - 2.0, rng.random());
            let rows = if rng.random::<bool>() { -2.0 } else { 0.0 };
            return [2.0 * x, 2.0 * (y + rows + x.floor().rem_euclid(2.0))];
        }
        let ([along, across], rate) = BLADE;
        let blade = f64::from(rng.random_range(0..5u8)) * TAU / 5.0;
        let r = 1.0 + along * rng.sample::<f64, _>(StandardNormal);
        let w = across * rng.sample::<f64, _>(StandardNormal);
        let (sin, cos) = (blade + rate * r.exp()).sin_cos();
        [2.0 * (r * cos + w * sin), 2.0 * (w * cos - r * sin)]
    }

    fn brush(self) -> Option<Brush> {
        let (arms, along, std) = match self {
            ToyDensity::Moons => (2, Along::Open, 0.2),
            // The original divides by 1.414, not by sqrt(2).
            ToyDensity::EightGaussians => (8, Along::Point, 0.5 / 1.414),
            ToyDensity::Circles => (2, Along::Closed, 0.24),
            ToyDensity::TwoSpirals => (2, Along::Linear, 0.1),
            ToyDensity::Rings => (4, Along::Closed, 0.08),
            ToyDensity::SwissRoll => (1, Along::Open, 0.2),
            ToyDensity::Pinwheel | ToyDensity::Checkerboard => return None,
        };
        let half = if self == ToyDensity::TwoSpirals { 0.25 / 3.0 } else { 0.0 };
        Some(Brush { arms, along, std, half })
    }

    /// The point at s in [0, 1] along a curve.
    fn curve(self, arm: usize, s: f64) -> [f64; 2] {
        let circle = |radius: f64, angle: f64| [radius * angle.cos(), radius * angle.sin()];
        match (self, arm) {
            (ToyDensity::Moons, 0) => [2.0 * (PI * s).cos() - 1.0, 2.0 * (PI * s).sin() - 0.2],
            (ToyDensity::Moons, _) => [1.0 - 2.0 * (PI * s).cos(), 0.8 - 2.0 * (PI * s).sin()],
            (ToyDensity::EightGaussians, arm) => circle(4.0 / 1.414, arm as f64 * PI / 4.0),
            (ToyDensity::Circles, arm) => circle(if arm == 0 { 3.0 } else { 1.5 }, TAU * s),
            (ToyDensity::Rings, arm) => circle(0.75 * (arm + 1) as f64, TAU * s),
            (ToyDensity::SwissRoll, _) => {
                let t = 1.5 * PI * (1.0 + 2.0 * s);
                circle(t / 5.0, t)
            }
            (ToyDensity::TwoSpirals, arm) => {
                let (t, sign) = (3.0 * PI * s, if arm == 0 { 1.0 } else { -1.0 });
                // The center of the uniform noise is beside the curve, not on it.
                [sign * (0.25 - t * t.cos()) / 3.0, sign * (0.25 + t * t.sin()) / 3.0]
            }
            (ToyDensity::Pinwheel | ToyDensity::Checkerboard, _) => {
                unreachable!("invariant: {self} has no curve")
            }
        }
    }
}

impl std::fmt::Display for ToyDensity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for ToyDensity {
    type Err = super::DataError;

    fn from_str(name: &str) -> Result<ToyDensity, Self::Err> {
        let unknown = || super::DataError::UnknownToy { name: name.to_owned() };
        ToyDensity::ALL.into_iter().find(|toy| toy.name() == name).ok_or_else(unknown)
    }
}
