//! Checks of a reversible solve: are its two states still close, and did a backward pass recover y0?
//!
//! Let l be the coupling. On y' = -k y a step of length h multiplies the difference y - z by l e^(kh) and adds the
//! difference of its two increments, which is as large as the method's error. So y - z stays small if l e^(kh) is
//! below 1. Otherwise it grows over N steps as e^(k (t - t0)) l^N and causes an equally large error in y. The error
//! estimate is that of the method's step from z and does not include this error. Steps with kh < 1 - l would
//! prevent the growth, but a strongly damped solution needs far fewer steps. So such a solve ends with an error
//! that names the remedy.
//!
//! Each step may have an error of one tolerance, so after N steps the states may be N tolerances apart. Where the
//! map is stable, they are much closer. The allowed distance is N tolerances, but at least 10 and at most 100: for
//! the default coupling, the distance of an undamped solution is at most 1 / (1 - 0.99) = 100 tolerances.
//! Steps without an error estimate have no tolerance. Their states may be apart by a tenth of the size of the
//! solution plus 100 atol.
//!
//! The backward pass runs the inverse map, which amplifies rounding errors by the factor by which the solve damped
//! them. No intermediate state shows this, but y0 is known. If the pass does not recover y0, the gradient is NaN,
//! as for a backward solve that ends early.

use super::algorithm::Scheme;
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{State, Tolerance};
use crate::tensor::Tensor;

/// The minimum and the maximum of the allowed distance of the states, in tolerances.
const TOLERANCES: (f64, f64) = (10.0, 100.0);
/// The allowed distance of the states relative to the size of the solution, for steps without an error estimate.
const SHARE: f64 = 0.1;
/// The allowed relative distance from y0 at the end of a backward pass.
const LOST: f64 = 1e-3;

/// The bounds for a solve that starts at `y0`.
pub(super) struct Bounds<'a> {
    pub(super) scheme: &'a Scheme<'a>,
    pub(super) y0: &'a Leaves,
}

impl Bounds<'_> {
    /// Whether the states `(y1, z1)` after step number `n`, which starts at `y`, are too far apart.
    pub(super) fn are_apart(&self, y: &Leaves, (y1, z1): (&Leaves, &Leaves), n: &Tensor) -> Tensor {
        if self.scheme.is_adaptive() {
            let (least, most) = TOLERANCES;
            let bound = n.maximum(&number(least)).minimum(&number(most));
            return ratio(y1, z1, &self.scheme.tolerance).gt(bound);
        }
        // n times the length of the last step estimates the length of the path so far. With this term, the size of
        // a solution that crosses 0 is not 0.
        let size = size(&largest([self.y0, y1, z1])) + size(&difference(y1, y)) * n;
        let floor = self.atol() * TOLERANCES.1 * (self.y0.num_components() as f64).sqrt();
        self::size(&difference(y1, z1)).gt(size * SHARE + floor)
    }

    /// Whether `found`, the state at the end of a backward pass, differs too much from y0.
    pub(super) fn is_lost(&self, found: &Leaves) -> Tensor {
        let y0 = self.y0.with(self.y0.tensors().iter().map(Tensor::stop_gradient).collect());
        let found = found.with(found.tensors().iter().map(Tensor::stop_gradient).collect());
        // `not(<=)` also holds for NaN.
        ratio(&y0, &found, &Tolerance::new(LOST, self.atol() * TOLERANCES.1)).le(1.0).not()
    }

    /// The largest atol of all components.
    fn atol(&self) -> f64 {
        (0..self.y0.num_components()).map(|j| self.scheme.tolerance.at(j).1).fold(0.0, f64::max)
    }
}

/// The largest |y - z| over all components.
pub(super) fn farthest(y: &Leaves, z: &Leaves) -> Tensor {
    let leaves = difference(y, z).into_iter().filter(|d| d.size() > 0);
    let all = leaves.map(|d| d.abs().max().cast(DType::F64));
    all.reduce(|a, b| a.maximum(&b)).unwrap_or_else(|| number(0.0))
}

/// The distance of two states in tolerances: their difference in the error norm.
fn ratio(a: &Leaves, b: &Leaves, tolerance: &Tolerance) -> Tensor {
    a.clone().error_ratio(&number(1.0), &[1.0, -1.0], &[a.clone(), b.clone()][..], a, b, tolerance)
}

fn difference(a: &Leaves, b: &Leaves) -> Vec<Tensor> {
    a.tensors().iter().zip(b.tensors()).map(|(a, b)| a - b).collect()
}

/// The largest |x| of three states, per component.
fn largest([a, b, c]: [&Leaves; 3]) -> Vec<Tensor> {
    let of = |i: usize| [a, b, c].map(|x| x.tensors()[i].abs());
    (0..a.tensors().len()).map(of).map(|[a, b, c]| a.maximum(&b).maximum(&c)).collect()
}

/// The 2-norm.
fn size(x: &[Tensor]) -> Tensor {
    let squares = x.iter().map(|x| x.square().sum().cast(DType::F64));
    squares.reduce(|a, b| a + b).unwrap_or_else(|| number(0.0)).sqrt()
}

fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}
