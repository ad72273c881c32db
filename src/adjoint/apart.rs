//! Whether the two states of a reversible solve still determine the solution, and whether a backward pass has found its start.
//!
//! On y' = -k y a step of length h takes the difference y - z to l e^(kh) times itself and adds the mismatch of its two
//! increments, which is of the size of the method's error. So the difference stays small where l e^(kh) is below 1, and
//! grows as e^(k (t - t0)) l^N where it is not; what it adds to y is of its own size. The error estimate, which is that
//! of the method's step from z, sees nothing of it. Shorter steps would hold it down, by kh < 1 - l, which for strong
//! damping are many times those that the solution needs: such a solve ends instead, and says what to take.
//!
//! Each step may err by a tolerance, so after N steps the states may be N tolerances apart; where the method's own steps
//! are sound they are far less. The bound starts at 10 and ends at 100 = 1 / (1 - 0.99), where the differences of a
//! solution that is not damped settle for the default coupling.
//!
//! Backward the map is the inverse: what the solve damped, rounding grows by. Nothing on the way shows it, but at the end
//! the first state is known. Where it is not found again the gradient is NaN, as that of a backward solve that ends
//! early.

use super::algorithm::Scheme;
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{State, Tolerance};
use crate::tensor::Tensor;

/// The fewest and the most tolerances that the states may be apart.
const TOLERANCES: (f64, f64) = (10.0, 100.0);
/// The share of the solution's size that they may be apart where no error is estimated, so that nobody asked for
/// tolerances.
const SHARE: f64 = 0.1;
/// How far from y0, relative to it, a backward pass may end.
const LOST: f64 = 1e-3;

/// What the states of a solve that starts at `y0` are held to.
pub(super) struct Bounds<'a> {
    pub(super) scheme: &'a Scheme<'a>,
    pub(super) y0: &'a Leaves,
}

impl Bounds<'_> {
    /// Whether `(y1, z1)`, behind the N-th step, which starts at `y`, are too far apart.
    pub(super) fn are_apart(&self, y: &Leaves, (y1, z1): (&Leaves, &Leaves), n: &Tensor) -> Tensor {
        if self.scheme.is_adaptive() {
            let (least, most) = TOLERANCES;
            let bound = n.maximum(&number(least)).minimum(&number(most));
            return ratio(y1, z1, &self.scheme.tolerance).gt(bound);
        }
        // The way so far is about N of the last step: a solution that crosses 0 is not of size 0.
        let size = size(&largest([self.y0, y1, z1])) + size(&difference(y1, y)) * n;
        let floor = self.atol() * TOLERANCES.1 * (self.y0.num_components() as f64).sqrt();
        self::size(&difference(y1, z1)).gt(size * SHARE + floor)
    }

    /// Whether a state found by a backward pass is not y0.
    pub(super) fn is_lost(&self, found: &Leaves) -> Tensor {
        let y0 = self.y0.with(self.y0.tensors().iter().map(Tensor::stop_gradient).collect());
        let found = found.with(found.tensors().iter().map(Tensor::stop_gradient).collect());
        // Also where the ratio is NaN.
        ratio(&y0, &found, &Tolerance::new(LOST, self.atol() * TOLERANCES.1)).le(1.0).not()
    }

    /// The largest atol of all components.
    fn atol(&self) -> f64 {
        (0..self.y0.num_components()).map(|j| self.scheme.tolerance.at(j).1).fold(0.0, f64::max)
    }
}

/// The largest |y - z| of all components.
pub(super) fn farthest(y: &Leaves, z: &Leaves) -> Tensor {
    let leaves = difference(y, z).into_iter().filter(|d| d.size() > 0);
    let all = leaves.map(|d| d.abs().max().cast(DType::F64));
    all.reduce(|a, b| a.maximum(&b)).unwrap_or_else(|| number(0.0))
}

/// How far two states are apart in tolerances: their difference in the norm of errors.
fn ratio(a: &Leaves, b: &Leaves, tolerance: &Tolerance) -> Tensor {
    a.clone().error_ratio(&number(1.0), &[1.0, -1.0], &[a.clone(), b.clone()][..], a, b, tolerance)
}

fn difference(a: &Leaves, b: &Leaves) -> Vec<Tensor> {
    a.tensors().iter().zip(b.tensors()).map(|(a, b)| a - b).collect()
}

/// The largest |x| of three states, component by component.
fn largest([a, b, c]: [&Leaves; 3]) -> Vec<Tensor> {
    let of = |i: usize| [a, b, c].map(|x| x.tensors()[i].abs());
    (0..a.tensors().len()).map(of).map(|[a, b, c]| a.maximum(&b).maximum(&c)).collect()
}

/// The root of the sum of all squares.
fn size(x: &[Tensor]) -> Tensor {
    let squares = x.iter().map(|x| x.square().sum().cast(DType::F64));
    squares.reduce(|a, b| a + b).unwrap_or_else(|| number(0.0)).sqrt()
}

fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}
