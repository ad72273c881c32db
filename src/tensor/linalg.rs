//! Linear systems and least squares, LU, Cholesky and QR factorizations, eigenvalues and eigenvectors of symmetric matrices,
//! determinants and inverses, with all derivatives.
//!
//! Each function takes a matrix or a batch of matrices, which are the last two axes. The order of the operations is fixed,
//! so a matrix has the same result, bit for bit, alone and in a batch. A matrix without a result, such as a singular one for
//! [`solve`], gives infinite or NaN elements, not an error, because a compiled program cannot stop at a value. Computations
//! are in the element type of the operands. LU factorizations exchange rows so that the pivots are as large as possible
//! (partial pivoting).
//!
//! # References
//! Golub, Van Loan (2013), Matrix Computations, sections 3.4 and 14.2.

mod by_product;
mod cholesky;
mod eigen;
mod qr;
mod systems;
mod triangular;

pub use cholesky::{cholesky, cholesky_solve};
pub use eigen::{eigh, eigvalsh};
pub use qr::{lstsq, qr};
pub use triangular::{Triangle, triangular_solve};

use super::{Tensor, Traced, apply, trace};
use crate::array::DType;
use crate::graph::{FactorOp, Op, Type};
use crate::tree;

tree! {
/// The factorization `a[permutation] = lower upper` of each matrix of a batch: see [`lu`].
pub struct LuFactors {
    /// The row of a that becomes row i of the product; i32 `[.., n]`.
    pub permutation: Tensor,
    /// Lower triangular, with ones on the diagonal; `[.., n, n]`.
    pub lower: Tensor,
    /// Upper triangular, with the pivots on the diagonal; `[.., n, n]`.
    pub upper: Tensor,
}
}

/// The solution x of `a x = b`, by LU factorization.
///
/// The derivative is `a dx = db - da x`. The system of the derivative has the same matrix, so it uses the same factors.
///
/// # Shapes and units
/// a `[.., n, n]`; b `[n]`, one right-hand side for all matrices, or `[.., n, m]`; x like b. Leading axes broadcast. For a
/// batch of vectors write `b.expand_dims(b.rank())`. The factors of one matrix serve a batch of right-hand sides.
///
/// # Panics
/// If a is not square, b does not have n rows, the leading axes do not broadcast, or an operand is not of floats.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg;
/// let a = Tensor::from([[0.0, 2.0], [1.0, 1.0]]);
/// assert_eq!(linalg::solve(&a, &Tensor::from([4.0, 5.0])).to_vec(), [3.0, 2.0]);
/// let gradient = grad(|b: &Tensor| linalg::solve(&a, b).sum(), &Tensor::from([4.0, 5.0]));
/// assert_eq!(gradient.to_vec(), [0.0, 1.0]); // the sum of x is b1
/// ```
#[track_caller]
pub fn solve(a: &Tensor, b: &Tensor) -> Tensor {
    systems::solved("solve", (a, b), &solution)
}

/// The solution for operands of equal leading axes.
fn solution(a: &Tensor, b: &Tensor) -> Tensor {
    Factored::of(a).solve(b)
}

/// A batch of matrices with their factors.
pub(crate) struct Factored {
    a: Tensor,
    factors: Tensor,
    /// From v and its captures to `a v`: see [`Factored::with_product`].
    product: Option<Traced>,
}

impl Factored {
    /// Factors `[.., n, n]`.
    pub(crate) fn of(a: &Tensor) -> Factored {
        Factored { a: a.clone(), factors: Tensor::op(Op::Factor(FactorOp::Lu), &[a], None), product: None }
    }

    /// The solution for the right-hand sides `[.., n, m]`, with the leading axes of the matrices.
    pub(crate) fn solve(&self, b: &Tensor) -> Tensor {
        match &self.product {
            None => solution_of([&self.factors, &self.a, b]),
            Some(product) => by_product::solve([&self.factors, &self.a, b], product),
        }
    }
}

fn solution_of([factors, a, b]: [&Tensor; 3]) -> Tensor {
    Tensor::op(Op::LuSolve { transposed: false }, &[factors, a, b], None)
}

/// The LU factorization of each matrix with partial pivoting: `a[permutation] = lower upper`.
///
/// The derivative of the factors is finite if a is nonsingular.
///
/// # Panics
/// If a is not a square matrix, or a batch of them, of floats.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg;
/// let a = Tensor::from([[1.0, 2.0], [4.0, 2.0]]);
/// let f = linalg::lu(&a);
/// assert_eq!(f.permutation.to_vec(), [1.0, 0.0]);
/// assert_eq!(f.lower.to_vec(), [1.0, 0.0, 0.25, 1.0]);
/// assert_eq!(f.upper.to_vec(), [4.0, 2.0, 0.0, 1.5]);
/// assert_eq!(f.lower.matmul(&f.upper).to_vec(), a.take(&f.permutation).to_vec());
/// ```
#[track_caller]
pub fn lu(a: &Tensor) -> LuFactors {
    let n = order("lu", a);
    let parts = program(&[a], &mut |x| {
        let (top, permutation) = factors(&x[0], n);
        let zero = Tensor::scalar(a.dtype(), 0.0);
        let (below, diagonal) = (place(n, |i, j| i.gt(j)), place(n, |i, j| i.eq(j)));
        let like = |mask: &Tensor| mask.broadcast_to(top.shape().clone());
        let lower = like(&below).select(&top, &diagonal.cast(a.dtype()).broadcast_to(top.shape().clone()));
        let upper = like(&below).select(&zero, &top);
        vec![permutation.cast(DType::I32), lower, upper]
    });
    let [permutation, lower, upper] = parts.try_into().expect("invariant: three parts");
    LuFactors { permutation, lower, upper }
}

/// The determinant of each matrix, `[..]`.
///
/// The derivative is `det(a) tr(a^-1 da)`. It is not finite for a singular matrix.
///
/// # Panics
/// As for [`lu`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg;
/// assert_eq!(linalg::det(&Tensor::from([[0.0, 2.0], [3.0, 4.0]])).item(), -6.0);
/// ```
#[track_caller]
pub fn det(a: &Tensor) -> Tensor {
    let n = order("det", a);
    let of = program(&[a], &mut |x| {
        let (top, permutation) = factors(&x[0], n);
        vec![sign_of(inversions(&permutation, n)) * top.diagonal().prod_axes(&[a.rank() - 2])]
    });
    of.into_iter().next().expect("invariant: a determinant")
}

/// The sign and the logarithm of the magnitude of each determinant, each `[..]`: `det = sign exp(log)`.
///
/// In contrast to [`det`], the logarithm does not overflow. A singular matrix has the sign 0 and the logarithm
/// -infinity. The derivative of the logarithm is `tr(a^-1 da)`.
///
/// # Panics
/// As for [`lu`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg;
/// let (sign, log) = linalg::slogdet(&Tensor::from([[0.0, 2.0], [3.0, 4.0]]));
/// assert!(sign.item() == -1.0 && (log.item() - 6.0_f64.ln()).abs() < 1e-15);
/// ```
#[track_caller]
pub fn slogdet(a: &Tensor) -> (Tensor, Tensor) {
    let n = order("slogdet", a);
    let of = program(&[a], &mut |x| {
        let (top, permutation) = factors(&x[0], n);
        let pivots = top.diagonal();
        let negative = pivots.lt(0.0).cast(a.dtype()).sum_last();
        let size = pivots.sign().abs().prod_axes(&[a.rank() - 2]);
        vec![sign_of(inversions(&permutation, n) + negative) * size, pivots.abs().ln().sum_last()]
    });
    let [sign, log] = of.try_into().expect("invariant: two results");
    (sign, log)
}

/// The inverse of each matrix. To solve a system, [`solve`] is faster and more accurate.
///
/// # Panics
/// As for [`lu`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg;
/// assert_eq!(linalg::inverse(&Tensor::from([[0.0, 2.0], [4.0, 0.0]])).to_vec(), [0.0, 0.25, 0.5, 0.0]);
/// ```
#[track_caller]
pub fn inverse(a: &Tensor) -> Tensor {
    let n = order("inverse", a);
    let of = program(&[a], &mut |x| {
        vec![solution(&x[0], &Tensor::eye(a.dtype(), n).broadcast_to(a.shape().clone()))]
    });
    of.into_iter().next().expect("invariant: an inverse")
}

/// The order n of the matrices `[.., n, n]`.
#[track_caller]
fn order(name: &str, a: &Tensor) -> usize {
    match a.shape().last_chunk::<2>() {
        Some(&[rows, columns]) if rows == columns && a.dtype().is_float() => rows,
        _ => panic!("linalg::{name}: {a:?} is not a square matrix or a batch of them, [.., n, n], of floats"),
    }
}

fn lead(x: &Tensor) -> Vec<usize> {
    x.shape()[..x.rank() - 2].to_vec()
}

/// Runs or records a function of several operations as one program.
fn program(x: &[&Tensor], f: &mut dyn FnMut(&[Tensor]) -> Vec<Tensor>) -> Vec<Tensor> {
    let types: Vec<Type> = x.iter().map(|x| x.ty()).collect();
    let traced = trace(&types, f);
    apply(&traced.func, &x.iter().map(|&x| x.clone()).collect::<Vec<_>>())
}

/// U with L below its diagonal, `[.., n, n]`, and the permutation, `[.., n]`, as floats.
fn factors(a: &Tensor, n: usize) -> (Tensor, Tensor) {
    let packed = Tensor::op(Op::Factor(FactorOp::Lu), &[a], None);
    let axis = a.rank() - 2;
    let permutation = packed.slice(axis, n..n + 1).stop_gradient();
    (packed.slice(axis, 0..n), permutation.reshape([&lead(a)[..], &[n]].concat()))
}

/// The elements of an n x n matrix for which `f(row, column)` holds.
fn place(n: usize, f: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Tensor {
    place_of([n, n], f)
}

/// The elements of a matrix for which `f(row, column)` holds.
fn place_of(sides: [usize; 2], f: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Tensor {
    f(&Tensor::iota(DType::I32, sides, 0), &Tensor::iota(DType::I32, sides, 1))
}

/// The transpose of each matrix.
fn turned(a: &Tensor) -> Tensor {
    let mut axes: Vec<usize> = (0..a.rank()).collect();
    axes.swap(a.rank() - 2, a.rank() - 1);
    a.permute(&axes)
}

/// The symmetric part of each matrix.
fn symmetric(a: &Tensor) -> Tensor {
    (a + turned(a)) * 0.5
}

/// The number of pairs of each permutation `[.., n]` that are not in order.
fn inversions(permutation: &Tensor, n: usize) -> Tensor {
    let last = permutation.rank();
    let (first, second) = (permutation.expand_dims(last), permutation.expand_dims(last - 1));
    let is_pair = place(n, |i, j| i.lt(j));
    first
        .gt(&second)
        .and(&is_pair.broadcast_to([&permutation.shape()[..], &[n]].concat()))
        .cast(permutation.dtype())
        .sum_last()
        .sum_last()
}

/// 1 for an even number, -1 for an odd one.
fn sign_of(count: Tensor) -> Tensor {
    let half = &count * 0.5;
    1.0 - (&half - half.floor()) * 4.0
}

#[cfg(test)]
mod factor_tests;
#[cfg(test)]
mod tests;
