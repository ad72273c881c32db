//! Element types. The set is closed. To add a type, extend each `match` that the compiler reports as not
//! exhaustive.

use std::fmt;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 32-bit float: weights, states, data.
    F32,
    /// 64-bit float: times, step sizes, the controller's history; states that need double precision.
    F64,
    /// 32-bit signed integer: indices.
    I32,
    /// 32-bit unsigned integer: keys, random bits, counters.
    U32,
    /// Truth values, stored as `u32` 0 or 1.
    Bool,
}

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 => 8,
            DType::F32 | DType::I32 | DType::U32 | DType::Bool => 4,
        }
    }

    /// Whether derivatives with respect to values of this type exist.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The name used in printed graphs.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::Bool => "bool",
        }
    }

    /// The inverse of [`DType::name`].
    pub fn parse(name: &str) -> Option<DType> {
        [DType::F32, DType::F64, DType::I32, DType::U32, DType::Bool].into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
