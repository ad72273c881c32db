//! Operations along the last axis, one line after another.

use super::Type;
use crate::array::DType;

/// An operation on each line of the last axis. The result has the shape of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineOp {
    /// The sum of the elements up to each element, or from it on; one addition per element, in order. Integers wrap.
    CumSum {
        /// From each element on.
        reverse: bool,
    },
    /// The largest of the elements up to each element; NaN from the first NaN on. It has no derivative.
    CumMax,
    /// The order of the elements from the smallest to the largest, i32: element `i` of the sorted line is element
    /// `order[i]`. Equal elements keep their order, and -0 equals 0; NaNs come last.
    Argsort,
}

impl LineOp {
    /// All of them.
    pub const ALL: [LineOp; 4] = [
        LineOp::CumSum { reverse: false },
        LineOp::CumSum { reverse: true },
        LineOp::CumMax,
        LineOp::Argsort,
    ];

    /// The name used in printed graphs.
    pub fn name(self) -> &'static str {
        match self {
            LineOp::CumSum { reverse: false } => "cumsum",
            LineOp::CumSum { reverse: true } => "cumsum_back",
            LineOp::CumMax => "cummax",
            LineOp::Argsort => "argsort",
        }
    }

    pub(super) fn named(name: &str) -> Option<LineOp> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

/// The type of the result.
pub(super) fn lines(op: LineOp, x: &Type) -> Result<Type, String> {
    if x.shape().rank() == 0 {
        return Err("a number has no last axis".into());
    }
    if x.dtype() == DType::Bool {
        return Err("bools have no order and no sum: cast them".into());
    }
    Ok(match op {
        LineOp::Argsort => Type::array(DType::I32, x.shape().clone()),
        _ => x.clone(),
    })
}
