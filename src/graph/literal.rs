//! Constants of a graph: a number repeated over a shape, or an array.

use crate::array::{Array, DType};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A constant. The shape is that of its node.
#[derive(Clone, Debug)]
pub enum Literal {
    /// One number, by the bits of its `f64` value, for every element.
    Splat {
        /// Element type.
        dtype: DType,
        /// `f64::to_bits` of the value.
        bits: u64,
    },
    /// The elements of an array that the graph shares with whoever made it.
    Array(Arc<Array>),
}

impl Literal {
    /// The constant `x`.
    pub fn splat(dtype: DType, x: f64) -> Literal {
        Literal::Splat { dtype, bits: x.to_bits() }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        match self {
            Literal::Splat { dtype, .. } => *dtype,
            Literal::Array(a) => a.dtype(),
        }
    }

    /// The number that every element is, if they are one by construction.
    pub fn as_splat(&self) -> Option<f64> {
        match self {
            Literal::Splat { bits, .. } => Some(f64::from_bits(*bits)),
            Literal::Array(_) => None,
        }
    }
}

/// Arrays are equal when they are the same array: comparing the elements of large ones at each
/// insertion would cost more than a missed merge.
impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Splat { dtype: a, bits: x }, Literal::Splat { dtype: b, bits: y }) => a == b && x == y,
            (Literal::Array(a), Literal::Array(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self {
            Literal::Splat { dtype, bits } => (dtype, bits).hash(h),
            Literal::Array(a) => Arc::as_ptr(a).hash(h),
        }
    }
}
