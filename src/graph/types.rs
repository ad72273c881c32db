//! Types of nodes.

use crate::array::{DType, Shape};
use std::fmt;

/// The type of a node's value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// An array.
    Array {
        /// Element type.
        dtype: DType,
        /// Lengths of the axes.
        shape: Shape,
    },
    /// The accepted step times of a search. Opaque: the plan that runs the search stores them.
    Schedule,
    /// The stored states of one forward pass. Opaque.
    Tape,
    /// One array of this type per trip of a schedule. Opaque.
    Sequence {
        /// Element type.
        dtype: DType,
        /// Lengths of the axes of each array.
        shape: Shape,
    },
    /// Several values, selected by `Proj`.
    Tuple(Vec<Type>),
}

impl Type {
    /// An array type.
    pub fn array(dtype: DType, shape: impl Into<Shape>) -> Type {
        Type::Array { dtype, shape: shape.into() }
    }

    /// The type of a single number.
    pub fn scalar(dtype: DType) -> Type {
        Type::array(dtype, Shape::scalar())
    }

    /// Element type of an array.
    ///
    /// # Panics
    /// For opaque types and tuples.
    #[track_caller]
    pub fn dtype(&self) -> DType {
        match self {
            Type::Array { dtype, .. } => *dtype,
            other => panic!("invariant: {other} has no element type"),
        }
    }

    /// Shape of an array.
    ///
    /// # Panics
    /// For opaque types and tuples.
    #[track_caller]
    pub fn shape(&self) -> &Shape {
        match self {
            Type::Array { shape, .. } => shape,
            other => panic!("invariant: {other} has no shape"),
        }
    }

    /// The array type with another shape.
    pub fn with_shape(&self, shape: impl Into<Shape>) -> Type {
        Type::array(self.dtype(), shape)
    }

    /// The type of a sequence of arrays of this type.
    ///
    /// # Panics
    /// For opaque types and tuples.
    #[track_caller]
    pub fn sequence(&self) -> Type {
        Type::Sequence { dtype: self.dtype(), shape: self.shape().clone() }
    }

    /// Whether this is an array of floats. Other arrays have no derivatives.
    pub fn is_float(&self) -> bool {
        matches!(self, Type::Array { dtype, .. } if dtype.is_float())
    }

    /// Bytes of an array's elements; 0 for opaque types and tuples.
    pub fn bytes(&self) -> usize {
        match self {
            Type::Array { dtype, shape } => dtype.size() * shape.size(),
            _ => 0,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Array { dtype, shape } => write!(f, "{dtype}{shape}"),
            Type::Schedule => f.write_str("schedule"),
            Type::Tape => f.write_str("tape"),
            Type::Sequence { dtype, shape } => write!(f, "sequence({dtype}{shape})"),
            Type::Tuple(types) => {
                f.write_str("(")?;
                for (i, t) in types.iter().enumerate() {
                    write!(f, "{}{t}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}
