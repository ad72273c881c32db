//! Haar-distributed matrices with orthonormal columns, by matrix products alone.
//!
//! The polar factor `G (G^T G)^(-1/2)` of a Gaussian random matrix G is Haar-distributed, like the factor Q
//! of a QR decomposition with positive diagonal: both are equivariant under rotations of G. A QR
//! decomposition is a loop over columns, thousands of nodes for a wide layer. The polar factor is a fixed
//! number of products for every width.

use crate::array::{DType, Shape};
use crate::tensor::{Key, Tensor};

/// Iterations that raise small singular values, each by a factor of 3.44: 5e10 in 20 iterations.
const RAISING: usize = 20;

/// Newton-Schulz iterations; errors fall from 0.32 to 0.14, 0.027, 1.1e-3, 1.8e-6, 5e-12.
const POLISHING: usize = 5;

/// A matrix of the given shape, leading axes flattened, with orthonormal columns (or rows, if fewer);
/// computed in f64, returned in f32.
///
/// # Numerics
/// G is scaled to singular values below about 1. For a square matrix the smallest is about c / (2 n) with P(c
/// < x) about x (Edelman 1988), so the iterations fail with a probability below 1e-6.
///
/// # References
/// Björck and Bowie (1971), An iterative algorithm for computing the best estimate of an orthogonal matrix
/// (polishing); Jordan et al. (2024), Muon, its quintic polynomial (raising).
#[track_caller]
pub(super) fn draw(shape: Shape, key: &Key) -> Tensor {
    assert!(shape.rank() >= 2, "an orthogonal matrix needs at least two axes, got shape {shape}");
    let columns = shape[shape.rank() - 1];
    let rows = shape[..shape.rank() - 1].iter().product::<usize>();
    let (long, short) = (rows.max(columns), rows.min(columns));
    // Gordon: the largest singular value exceeds sqrt(long) + sqrt(short) + s with probability at most e^(-s
    // s / 2).
    let bound = (long as f64).sqrt() + (short as f64).sqrt() + 4.0;
    let scaled = key.normal([long, short]).cast(DType::F64) * (1.0 / bound);
    let raised = (0..RAISING).fold(scaled, |x, _| {
        let gram = x.transpose().matmul(&x);
        // sigma -> 3.4445 sigma - 4.775 sigma^3 + 2.0315 sigma^5 maps [0, 1.21] into itself and ends in [0.68,
        // 1.21].
        let rest = &gram * -4.775 + gram.matmul(&gram) * 2.0315;
        &x * 3.4445 + x.matmul(&rest)
    });
    let unit = (0..POLISHING).fold(raised, |x, _| &x * 1.5 - x.matmul(&x.transpose().matmul(&x)) * 0.5);
    let unit = if rows < columns { unit.transpose() } else { unit };
    unit.cast(DType::F32).reshape(shape)
}
