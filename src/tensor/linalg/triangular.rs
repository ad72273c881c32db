//! Triangular systems.

use super::systems::solved;
use crate::graph::Op;
pub use crate::graph::Triangle;
use crate::tensor::Tensor;

/// The solution x of `t x = b` for a triangle t of the matrix a, or for its transpose, by substitution.
///
/// Only the triangle is read. The derivative is `t dx = db - dt x` with the triangle dt of da, so the cotangent of a is zero
/// outside of the triangle. A 0 on the diagonal gives infinite or NaN elements.
///
/// # Shapes and units
/// a `[.., n, n]`; b `[n]`, one right-hand side for all matrices, or `[.., n, m]`; x like b. Leading axes broadcast, as in
/// [`solve`](super::solve).
///
/// # Panics
/// If a is not square, b does not have n rows, the leading axes do not broadcast, or an operand is not of floats.
///
/// # References
/// Golub, Van Loan (2013), Matrix Computations, section 3.1.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::{Triangle, triangular_solve};
/// let a = Tensor::from([[2.0, 7.0], [1.0, 4.0]]); // the 7 is above the diagonal of L
/// let b = Tensor::from([2.0, 9.0]);
/// assert_eq!(triangular_solve(&a, &b, Triangle::LOWER).to_vec(), [1.0, 2.0]);
/// let transposed = triangular_solve(&a, &b, Triangle::LOWER.transposed()); // 2 x0 + x1 = 2, 4 x1 = 9
/// assert_eq!(transposed.to_vec(), [-0.125, 2.25]);
/// ```
#[track_caller]
pub fn triangular_solve(a: &Tensor, b: &Tensor, triangle: Triangle) -> Tensor {
    solved("triangular_solve", (a, b), &|a, b| solution(a, b, triangle))
}

/// The solution for operands of equal leading axes.
pub(super) fn solution(a: &Tensor, b: &Tensor, triangle: Triangle) -> Tensor {
    Tensor::op(Op::TriangularSolve(triangle), &[a, b], None)
}
