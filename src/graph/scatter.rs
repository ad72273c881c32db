//! Rows that are combined with updates at an index.

use super::Type;
use super::infer::{gather, need};
use crate::array::DType;

/// What a row becomes by an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterOp {
    /// The sum of both; integers wrap.
    Add,
    /// The larger element of both; NaN if either is NaN.
    Max,
    /// The update.
    Set,
}

impl ScatterOp {
    /// All of them.
    pub const ALL: [ScatterOp; 3] = [ScatterOp::Add, ScatterOp::Max, ScatterOp::Set];

    /// The name used in printed graphs.
    pub fn name(self) -> &'static str {
        match self {
            ScatterOp::Add => "scatter_add",
            ScatterOp::Max => "scatter_max",
            ScatterOp::Set => "scatter_set",
        }
    }

    pub(super) fn named(name: &str) -> Option<ScatterOp> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

/// The type of the result.
pub(super) fn scatter(op: ScatterOp, [x, index, updates]: [&Type; 3]) -> Result<Type, String> {
    let rows = gather(x, index)?;
    let is_known = op == ScatterOp::Set || rows.dtype() != DType::Bool;
    need(is_known, || "bools have no sum and no order: cast them".into())?;
    need(&rows == updates, || format!("the updates must be {rows}"))?;
    Ok(x.clone())
}
