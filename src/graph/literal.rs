//! Constants of a graph: a splat, or an array.

use crate::array::{Array, DType};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A constant. Its shape is the shape of the node.
#[derive(Clone, Debug)]
pub enum Literal {
    /// One number for every element, stored as the bits of its `f64` value.
    Splat {
        /// Element type.
        dtype: DType,
        /// `f64::to_bits` of the value.
        bits: u64,
    },
    /// An array, shared with its creator.
    Array(Arc<Array>),
}

impl Literal {
    /// The constant `x` for every element.
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

    /// The value of every element, if it is a splat.
    pub fn as_splat(&self) -> Option<f64> {
        match self {
            Literal::Splat { bits, .. } => Some(f64::from_bits(*bits)),
            Literal::Array(_) => None,
        }
    }
}

/// Arrays are equal only if they are the same allocation. Comparing the elements of large arrays at each
/// insertion would cost more than storing some arrays twice.
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
