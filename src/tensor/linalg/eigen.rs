//! Eigenvalues and eigenvectors of symmetric matrices.

use super::{order, program, symmetric, turned};
use crate::graph::{FactorOp, Op};
use crate::tensor::{Tensor, custom_derivatives};

/// The eigenvalues w, ascending, and the eigenvectors v of each symmetric matrix: `a v = v diag(w)`, and the columns of v are
/// orthonormal.
///
/// The function reads the symmetric part `(a + a^T) / 2`, so the gradient with respect to a is symmetric. Of each
/// eigenvector, the first element that has at least nine tenths of the largest magnitude is positive, so that rounding
/// seldom changes the sign. If an element of a matrix is not finite, all its results are NaN.
///
/// With `m = v^T da v` for the symmetric part of da, the derivatives are `dw = diag(m)` and `dv = v (f * m)` with
/// `f[i, j] = 1 / (w[j] - w[i])` and zeros on its diagonal. If two eigenvalues are equal, their eigenvectors have no derivative:
/// it has infinite and NaN elements. A function of the eigenvalues alone has the first derivative that dw gives, which
/// is that of a symmetric function such as a sum or a product.
///
/// # Shapes and units
/// a `[.., n, n]`; w `[.., n]`; v `[.., n, n]`, column j for eigenvalue j.
///
/// # Numerics
/// The error of an eigenvalue is a few units of rounding of the largest one. A small eigenvalue beside a large one
/// therefore has few correct digits. Subnormal numbers count as 0.
///
/// # Panics
/// If a is not a square matrix, or a batch of them, of floats.
///
/// # References
/// Golub, Van Loan (2013), Matrix Computations, section 8.3 (reduction to a tridiagonal matrix, implicit QL steps); Giles
/// (2008), An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation,
/// section 3.1.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::eigh;
/// let (w, v) = eigh(&Tensor::from([[2.0, 1.0], [1.0, 2.0]]));
/// let near = |x: f64, y: f64| (x - y).abs() < 1e-15;
/// assert!(near(w.to_vec()[0], 1.0) && near(w.to_vec()[1], 3.0));
/// assert!(v.to_vec().iter().all(|x| near(x.abs(), 0.5_f64.sqrt())));
/// ```
#[track_caller]
pub fn eigh(a: &Tensor) -> (Tensor, Tensor) {
    let [w, v] = parts("eigh", a);
    (w, v)
}

/// The eigenvalues of each symmetric matrix, ascending: those of [`eigh`].
///
/// # Panics
/// As for [`eigh`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::linalg::eigvalsh;
/// let gradient = grad(|a: &Tensor| eigvalsh(a).sum(), &Tensor::from([[1.0, 0.0], [0.0, 1.0]]));
/// assert_eq!(gradient.to_vec(), [1.0, 0.0, 0.0, 1.0]); // the trace
/// ```
#[track_caller]
pub fn eigvalsh(a: &Tensor) -> Tensor {
    let [w, _] = parts("eigvalsh", a);
    w
}

/// The eigenvalues and the eigenvectors.
#[track_caller]
fn parts(name: &str, a: &Tensor) -> [Tensor; 2] {
    let (n, axis) = (order(name, a), a.rank() - 2);
    let rule = custom_derivatives(move |a: &Tensor| {
        let both = Tensor::op(Op::Factor(FactorOp::Eigh), &[a], None);
        let w = both.slice(axis, n..n + 1);
        (w.reshape(w.shape().without_axes(&[axis])), both.slice(axis, 0..n))
    });
    let rule = rule.jvp(move |_, (w, v), da| {
        let m = turned(v).matmul(&symmetric(da)).matmul(v);
        let gaps = w.expand_dims(axis) - w.expand_dims(axis + 1);
        let one = Tensor::eye(da.dtype(), n);
        let f = 1.0 / (gaps + &one) - &one;
        (m.diagonal(), v.matmul(&(f * m)))
    });
    program(&[a], &mut |x| <[Tensor; 2]>::from(rule.call(&x[0])).to_vec())
        .try_into()
        .expect("invariant: two results")
}
