//! Constant folding.
//!
//! Only operations that every machine rounds alike are folded, because kernels for exp and similar functions
//! may differ from `std` in the last bit. An operation on f32 numbers is computed in f64 and rounded to f32.
//! The bits are the same as in f32, since 53 bits are more than 2 * 24 + 2.

use super::{splat, splat_of};
use crate::array::DType;
use crate::graph::{BinaryOp, Builder, CompareOp, Literal, NodeId, Op, Type, UnaryOp};

/// The constant value of a node, if all its operands are constants.
pub(super) fn fold(b: &mut Builder, op: &Op, x: &[NodeId], ty: &Type) -> Option<NodeId> {
    if let Op::Const(Literal::Splat { dtype, bits }) = op {
        let value = f64::from_bits(*bits);
        let rounded = round(*dtype, value);
        return (rounded.to_bits() != *bits).then(|| splat_of(b, ty, rounded));
    }
    let c: Vec<f64> = x.iter().map(|&x| splat(b, x)).collect::<Option<_>>()?;
    let first = *c.first()?;
    let from = b.ty(x[0]).dtype();
    let value = match op {
        Op::Unary(op) => unary(*op, from, first)?,
        Op::Binary(op) => binary(*op, from, first, c[1]),
        Op::Compare(op) => f64::from(compare(*op, first, c[1])),
        Op::Select => {
            if first == 0.0 {
                c[2]
            } else {
                c[1]
            }
        }
        Op::Cast => cast(from, ty.dtype(), first),
        Op::StopGradient => first,
        Op::Broadcast { .. } | Op::Reshape | Op::Transpose { .. } | Op::Slice { .. } | Op::Gather => first,
        Op::Concat { .. } if c.iter().all(|v| v.to_bits() == first.to_bits()) => first,
        Op::Pad { .. } if first.to_bits() == 0 => first,
        _ => return None,
    };
    Some(splat_of(b, ty, round(ty.dtype(), value)))
}

/// A conversion, whose result the caller rounds. Between integer types, the bits do not change.
fn cast(from: DType, to: DType, x: f64) -> f64 {
    match (from, to) {
        (DType::I32, DType::U32) => f64::from(x as i32 as u32),
        (DType::U32, DType::I32) => f64::from(x as u32 as i32),
        (_, DType::Bool) => f64::from(x != 0.0),
        _ => x,
    }
}

/// The value rounded to the element type.
fn round(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F64 => x,
        DType::F32 => f64::from(x as f32),
        DType::I32 => f64::from(x as i32),
        DType::U32 => f64::from(x as u32),
        DType::Bool => f64::from(x != 0.0),
    }
}

fn unary(op: UnaryOp, dtype: DType, x: f64) -> Option<f64> {
    Some(match op {
        UnaryOp::Neg if dtype == DType::I32 => f64::from((x as i32).wrapping_neg()),
        UnaryOp::Abs if dtype == DType::I32 => f64::from((x as i32).wrapping_abs()),
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x == 0.0 || x.is_nan() => x,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Not => f64::from(x == 0.0),
        UnaryOp::IsFinite => f64::from(x.is_finite()),
        _ => return None,
    })
}

fn binary(op: BinaryOp, dtype: DType, x: f64, y: f64) -> f64 {
    if matches!(dtype, DType::I32 | DType::U32) && matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
    {
        // Exact in i64 for u32 and i32, except a product of two u32, which wraps the same way.
        let (a, b) = (x as i64, y as i64);
        let wide = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            _ => a.wrapping_mul(b),
        };
        return if dtype == DType::I32 { f64::from(wide as i32) } else { f64::from(wide as u32) };
    }
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Max | BinaryOp::Min if x.is_nan() || y.is_nan() => f64::NAN,
        BinaryOp::Max | BinaryOp::Or => x.max(y),
        BinaryOp::Min | BinaryOp::And => x.min(y),
    }
}

pub(super) fn compare(op: CompareOp, x: f64, y: f64) -> bool {
    match op {
        CompareOp::Eq => x == y,
        CompareOp::Ne => x != y,
        CompareOp::Lt => x < y,
        CompareOp::Le => x <= y,
    }
}
