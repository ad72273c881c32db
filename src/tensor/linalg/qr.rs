//! QR factorizations, and least squares by them.

use super::systems::right_hand_sides;
use super::triangular::solution;
use super::{Triangle, place_of, program, turned};
use crate::graph::{FactorOp, Op};
use crate::tensor::{Tensor, custom_derivatives};

/// The factors of each matrix, `a = q r`: the columns of q are orthonormal, and r is upper triangular.
///
/// The signs are those of LAPACK, which NumPy and JAX use, unless the elements of a column below the diagonal are so small
/// beside the others that their squares are 0. A diagonal element of r may be negative.
///
/// With `w = q^T da1 r1^-1` for the first k columns da1 and r1, and the antisymmetric matrix z whose lower triangle is
/// that of w, the derivatives are `dq = da1 r1^-1 + q (z - w)` and `dr = q^T da - z r`. They are not finite if r1 is singular:
/// if the first k columns of a are linearly dependent.
///
/// # Shapes and units
/// a `[.., m, n]`; q `[.., m, k]` and r `[.., k, n]` with k = min(m, n).
///
/// # Panics
/// If a is not a matrix, or a batch of them, of floats.
///
/// # References
/// Golub, Van Loan (2013), Matrix Computations, section 5.2 (Householder reflections); Walter, Lehmann (2010), Algorithmic
/// differentiation of linear algebra functions with application in optimum experimental design.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::qr;
/// let a = Tensor::from([[3.0, 1.0], [4.0, 2.0]]);
/// let (q, r) = qr(&a);
/// let off = |x: &Tensor, y: &[f64]| x.to_vec().iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
/// assert!(off(&q, &[-0.6, -0.8, -0.8, 0.6]) < 1e-15 && off(&r, &[-5.0, -2.2, 0.0, 0.4]) < 1e-15);
/// ```
#[track_caller]
pub fn qr(a: &Tensor) -> (Tensor, Tensor) {
    let sides = sides("qr", a);
    let [q, r] = program(&[a], &mut |x| <[Tensor; 2]>::from(factors(&x[0], sides)).to_vec())
        .try_into()
        .expect("invariant: two factors");
    (q, r)
}

/// The solution x of least squares: it minimizes `|a x - b|`, the Euclidean norm, for each right-hand side.
///
/// If m >= n, the columns of a must be linearly independent. If m < n, the rows must be, and x is the exact solution of
/// the smallest norm. Otherwise elements of x are infinite or NaN, or have no correct digits; a matrix whose condition number
/// is large has a sensitive solution. The derivatives are those of [`qr`] and of triangular systems.
///
/// # Shapes and units
/// a `[.., m, n]`; b `[m]`, one right-hand side for all matrices, or `[.., m, p]`; x `[.., n]` or `[.., n, p]`. Leading axes
/// broadcast, as in [`solve`](super::solve).
///
/// # Panics
/// If b does not have m rows, the leading axes do not broadcast, or an operand is not of floats.
///
/// # References
/// Golub, Van Loan (2013), Matrix Computations, sections 5.3 and 5.6.
///
/// # Examples
/// The line through three points:
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::lstsq;
/// let a = Tensor::from([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]);
/// let x = lstsq(&a, &Tensor::from([1.0, 2.0, 4.0])).to_vec();
/// assert!((x[0] - 5.0 / 6.0).abs() < 1e-15 && (x[1] - 1.5).abs() < 1e-15);
/// ```
#[track_caller]
pub fn lstsq(a: &Tensor, b: &Tensor) -> Tensor {
    let [m, n] = sides("lstsq", a);
    right_hand_sides("lstsq", (a, b), &|a, b| {
        if m >= n {
            let (q, r) = factors(a, [m, n]);
            solution(&r, &turned(&q).matmul(b), Triangle::UPPER)
        } else {
            let (q, r) = factors(&turned(a), [n, m]);
            q.matmul(&solution(&r, b, Triangle::UPPER.transposed()))
        }
    })
}

/// The sides of the matrices.
#[track_caller]
fn sides(name: &str, a: &Tensor) -> [usize; 2] {
    match a.shape().last_chunk::<2>() {
        Some(&sides) if a.dtype().is_float() => sides,
        _ => panic!("linalg::{name}: {a:?} is not a matrix or a batch of them, [.., m, n], of floats"),
    }
}

/// The factors of traced matrices.
fn factors(a: &Tensor, [m, n]: [usize; 2]) -> (Tensor, Tensor) {
    let (axis, k) = (a.rank() - 2, m.min(n));
    let rule = custom_derivatives(move |a: &Tensor| {
        let both = Tensor::op(Op::Factor(FactorOp::Qr), &[a], None);
        (both.slice(axis, 0..m).slice(axis + 1, 0..k), both.slice(axis, m..m + k))
    });
    let rule = rule.jvp(move |_, (q, r), da| {
        let first = |x: &Tensor| x.slice(axis + 1, 0..k);
        let inside = |triangle: Tensor, x: &Tensor| {
            let shape = x.shape().clone();
            triangle.broadcast_to(shape).select(x, &Tensor::scalar(x.dtype(), 0.0))
        };
        // x r1 = da1
        let x = turned(&solution(&first(r), &turned(&first(da)), Triangle::UPPER.transposed()));
        let of_q = turned(q);
        let w = of_q.matmul(&x);
        let below = inside(place_of([k, k], |i, j| i.gt(j)), &w);
        let z = &below - turned(&below);
        let dr = of_q.matmul(da) - z.matmul(r);
        (x + q.matmul(&(&z - w)), inside(place_of([k, n], |i, j| i.le(j)), &dr))
    });
    rule.call(a)
}
