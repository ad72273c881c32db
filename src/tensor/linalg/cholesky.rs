//! Cholesky factorizations of symmetric positive definite matrices.

use super::systems::solved;
use super::triangular::solution;
use super::{Triangle, order, place, program, symmetric, turned};
use crate::graph::{FactorOp, Op};
use crate::tensor::{Tensor, custom_derivatives};

/// The Cholesky factor of each matrix: the lower triangular L with a positive diagonal and `L L^T = a`.
///
/// The function factors the symmetric part `(a + a^T) / 2`, so both triangles of a are read and the gradient with respect
/// to a is symmetric. If the symmetric part is not positive definite, or has an element that is not finite, the elements
/// of L on and below the diagonal are NaN.
///
/// The derivative is `dL = L P(L^-1 da L^-T)` with the symmetric part of da. P takes the lower triangle and half of the
/// diagonal.
///
/// # Shapes and units
/// a `[.., n, n]`; L `[.., n, n]`, with zeros above the diagonal.
///
/// # Panics
/// If a is not a square matrix, or a batch of them, of floats.
///
/// # References
/// Golub, Van Loan (2013), Matrix Computations, section 4.2; Murray (2016), Differentiation of the Cholesky decomposition,
/// equation 8.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::cholesky;
/// assert_eq!(cholesky(&Tensor::from([[4.0, 2.0], [2.0, 10.0]])).to_vec(), [2.0, 0.0, 1.0, 3.0]);
/// assert!(cholesky(&Tensor::from([[1.0, 2.0], [2.0, 1.0]])).to_vec()[0].is_nan());
/// ```
#[track_caller]
pub fn cholesky(a: &Tensor) -> Tensor {
    let n = order("cholesky", a);
    let rule = custom_derivatives(|a: &Tensor| Tensor::op(Op::Factor(FactorOp::Cholesky), &[a], None));
    let rule = rule.jvp(move |_, lower, da| {
        let left = solution(lower, &symmetric(da), Triangle::LOWER);
        let both = solution(lower, &turned(&left), Triangle::LOWER);
        // 1 below the diagonal, 1/2 on it.
        let weights =
            place(n, |i, j| i.gt(j)).cast(da.dtype()) + place(n, |i, j| i.eq(j)).cast(da.dtype()) * 0.5;
        lower.matmul(&(both * weights))
    });
    program(&[a], &mut |x| vec![rule.call(&x[0])]).remove(0)
}

/// The solution x of `a x = b` from the [Cholesky factor](cholesky) `lower` of a, by two triangular systems.
///
/// # Shapes and units
/// lower `[.., n, n]`, of which only the lower triangle is read; b `[n]` or `[.., n, m]`, as in [`solve`](super::solve).
///
/// # Panics
/// As for [`solve`](super::solve).
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::{cholesky, cholesky_solve};
/// let a = Tensor::from([[4.0, 2.0], [2.0, 10.0]]);
/// let b = Tensor::from([8.0, 22.0]);
/// assert_eq!(cholesky_solve(&cholesky(&a), &b).to_vec(), [1.0, 2.0]);
/// ```
#[track_caller]
pub fn cholesky_solve(lower: &Tensor, b: &Tensor) -> Tensor {
    solved("cholesky_solve", (lower, b), &|lower, b| {
        solution(lower, &solution(lower, b, Triangle::LOWER), Triangle::LOWER.transposed())
    })
}
