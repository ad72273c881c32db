//! The inner loops of the CPU target, for each instruction set level.
//!
//! Strip kernels apply one instruction to a strip of elements through a function pointer. Reductions, matrix
//! products, transposes and random words have their own functions. Kernels depend on addresses, strides and
//! element types, but not on graphs, plans or threads. They never allocate.
//!
//! Bool values are u32 words of 0 or 1. Pointers need only the alignment of their elements. The result of a
//! kernel depends only on the level and its arguments, never on alignment. The result of a matrix row does
//! not depend on the number of rows.
#![allow(unsafe_code, reason = "kernels work on raw addresses that the planner laid out and checked")]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "operands travel as bytes, and each access takes any alignment"
)]

mod cast;
mod cholesky;
mod eigh;
mod gemm;
mod gemm_layer;
mod gemm_pack;
#[cfg(test)]
mod gemm_tests;
mod gemm_thin;
mod gemm_tile;
mod int_ops;
mod lines;
mod lu;
mod one;
mod ops;
mod philox;
mod qr;
mod reduce;
#[cfg(test)]
mod reduce_tests;
mod scalar;
mod strip;
#[cfg(test)]
mod strip_tests;
mod sums;
mod transpose;
mod triangular;

pub use cast::cast;
pub use cholesky::{cholesky, cholesky_work};
pub use eigh::{eigh, eigh_work};
pub(super) use gemm::K_BLOCK;
pub use gemm::{Gemm, gemm_f32, gemm_f64, gemm_layer_f32, gemm_layer_f64};
pub use gemm_layer::{Activation, Epilogue, RowFactors};
pub use gemm_pack::{pack, packed_len, takes_packed};
pub use lines::{Element as LineElement, line, orders};
pub use lu::{lu, lu_solve, lu_work};
pub use one::{OneFn, OneInstr, by_strip, cast_one, one};
pub use philox::{philox_block, philox_fill};
pub use qr::{qr, qr_work};
pub use reduce::{ReduceFn, max_strip, min_strip, sum_strip};
pub use scalar::{Scalar, room, room_beside};
pub use strip::{Arith, StripFn, StripOp, strip};

pub use sums::{SumColsFn, SumRowsFn, sum_cols, sum_rows};
pub use transpose::{transpose_4, transpose_8};
pub use triangular::{Sides, solve_work, triangular_solve};

/// The type of a stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 32-bit signed integer, wrapping.
    I32,
    /// 32-bit unsigned integer, wrapping; also truth values as 0 and 1.
    U32,
}

impl Elem {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
        }
    }
}
