//! Matrices with orthonormal columns, uniform over all of them, by matrix products alone.
//!
//! The polar factor `G (G^T G)^(-1/2)` of a matrix G of normal draws has the uniform (Haar) distribution, as
//! the factor Q of a QR decomposition with positive diagonal has: both turn along when G is turned. A QR
//! decomposition is a loop over columns, thousands of nodes for a wide layer; the polar factor is a fixed
//! number of products, whatever the width.

use crate::array::{DType, Shape};
use crate::tensor::{Key, Tensor};

/// Steps that raise small singular values, by 3.44 each: 20 of them 5e10-fold.
const RAISING: usize = 20;

/// Steps of Newton and Schulz, from errors of 0.32: 0.14, 0.027, 1.1e-3, 1.8e-6, 5e-12.
const POLISHING: usize = 5;

/// A matrix of the given shape, its leading axes taken as one, whose columns (rows, if fewer) are orthonormal;
/// computed in f64, given in f32.
///
/// # Numerics
/// G is scaled to singular values below about 1, of which the smallest of a square matrix is about c / (2 n)
/// with P(c < x) about x (Edelman 1988): the steps reach it but with a probability below 1e-6.
///
/// # References
/// Björck and Bowie (1971), An iterative algorithm for computing the best estimate of an orthogonal matrix
/// (polishing); Jordan et al. (2024), Muon, its quintic polynomial (raising).
#[track_caller]
pub(super) fn draw(shape: Shape, key: &Key) -> Tensor {
    assert!(shape.rank() >= 2, "an orthogonal matrix has two axes or more, not the shape {shape}");
    let columns = shape[shape.rank() - 1];
    let rows = shape[..shape.rank() - 1].iter().product::<usize>();
    let (long, short) = (rows.max(columns), rows.min(columns));
    // Gordon: the largest singular value is below sqrt(long) + sqrt(short) + s but with probability e^(-s s / 2).
    let bound = (long as f64).sqrt() + (short as f64).sqrt() + 4.0;
    let scaled = key.normal([long, short]).cast(DType::F64) * (1.0 / bound);
    let raised = (0..RAISING).fold(scaled, |x, _| {
        let gram = x.transpose().matmul(&x);
        // sigma -> 3.4445 sigma - 4.775 sigma^3 + 2.0315 sigma^5 takes [0, 1.2] into itself and ends in [0.68, 1.21].
        let rest = &gram * -4.775 + gram.matmul(&gram) * 2.0315;
        &x * 3.4445 + x.matmul(&rest)
    });
    let unit = (0..POLISHING).fold(raised, |x, _| &x * 1.5 - x.matmul(&x.transpose().matmul(&x)) * 0.5);
    let unit = if rows < columns { unit.transpose() } else { unit };
    unit.cast(DType::F32).reshape(shape)
}
