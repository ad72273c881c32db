//! Rules for elementwise operations.

use super::{insert, splat, splat_of};
use crate::array::DType;
use crate::graph::{BinaryOp, Builder, CompareOp, NodeId, Op, Type, UnaryOp};

/// A simpler form of an elementwise operation.
pub(super) fn rewrite(b: &mut Builder, op: &Op, x: &[NodeId], ty: &Type) -> Option<NodeId> {
    if !op.is_elementwise() {
        return None;
    }
    let simpler = match op {
        Op::Unary(op) => unary(b, *op, x[0], ty),
        Op::Binary(op) => binary(b, *op, [x[0], x[1]], ty),
        Op::Compare(op) => compare(b, *op, [x[0], x[1]], ty),
        Op::Select => select(b, [x[0], x[1], x[2]], ty),
        Op::Lincomb { coeffs } => lincomb(b, coeffs, x, ty),
        Op::Cast => cast(b, x[0], ty),
        Op::StopGradient => matches!(b.node(x[0]).op, Op::StopGradient | Op::Const(_)).then_some(x[0]),
        _ => None,
    };
    simpler.or_else(|| before_broadcast(b, op, x, ty))
}

fn push_unary(b: &mut Builder, op: UnaryOp, x: NodeId, ty: &Type) -> NodeId {
    insert(b, &Op::Unary(op), &[x], ty)
}

fn push_binary(b: &mut Builder, op: BinaryOp, x: [NodeId; 2], ty: &Type) -> NodeId {
    insert(b, &Op::Binary(op), &x, ty)
}

/// The operand of `x`, if `x` is a negation.
fn negated(b: &Builder, x: NodeId) -> Option<NodeId> {
    matches!(b.node(x).op, Op::Unary(UnaryOp::Neg)).then(|| b.node(x).args[0])
}

fn has_negation(ty: &Type) -> bool {
    ty.is_float() || ty.dtype() == DType::I32
}

fn unary(b: &mut Builder, op: UnaryOp, x: NodeId, ty: &Type) -> Option<NodeId> {
    let (inner, args) = (b.node(x).op.clone(), b.node(x).args.clone());
    match (op, inner) {
        (UnaryOp::Neg, Op::Unary(UnaryOp::Neg)) | (UnaryOp::Not, Op::Unary(UnaryOp::Not)) => Some(args[0]),
        (UnaryOp::Neg, Op::Binary(BinaryOp::Sub)) => {
            Some(push_binary(b, BinaryOp::Sub, [args[1], args[0]], ty))
        }
        (UnaryOp::Neg, Op::Binary(op @ (BinaryOp::Mul | BinaryOp::Div))) if ty.is_float() => {
            let c = splat(b, args[1])?;
            let c = splat_of(b, ty, -c);
            Some(push_binary(b, op, [args[0], c], ty))
        }
        (UnaryOp::Abs, Op::Unary(UnaryOp::Abs)) => Some(x),
        (UnaryOp::Abs, Op::Unary(UnaryOp::Neg)) => Some(push_unary(b, UnaryOp::Abs, args[0], ty)),
        (UnaryOp::Powf(p), _) if f64::from_bits(p) == 1.0 => Some(x),
        _ => None,
    }
}

fn binary(b: &mut Builder, op: BinaryOp, x: [NodeId; 2], ty: &Type) -> Option<NodeId> {
    let swap = match (splat(b, x[0]), splat(b, x[1])) {
        (Some(_), None) => true,
        (None, Some(_)) => false,
        _ => x[0] > x[1],
    };
    if swap && !matches!(op, BinaryOp::Sub | BinaryOp::Div) {
        return Some(push_binary(b, op, [x[1], x[0]], ty));
    }
    let constant = splat(b, x[1]);
    match op {
        BinaryOp::Add => sum(b, x, constant, ty),
        BinaryOp::Sub => difference(b, x, constant, ty),
        BinaryOp::Mul => product(b, x, constant, ty),
        BinaryOp::Div => division(b, x, constant?, ty),
        BinaryOp::Max | BinaryOp::Min => (x[0] == x[1]).then_some(x[0]),
        BinaryOp::And | BinaryOp::Or if x[0] == x[1] => Some(x[0]),
        BinaryOp::And => Some(if constant? == 0.0 { x[1] } else { x[0] }),
        BinaryOp::Or => Some(if constant? == 0.0 { x[0] } else { x[1] }),
    }
}

fn sum(b: &mut Builder, x: [NodeId; 2], constant: Option<f64>, ty: &Type) -> Option<NodeId> {
    if constant == Some(0.0) {
        return Some(x[0]);
    }
    if let Some(y) = negated(b, x[1]) {
        return Some(push_binary(b, BinaryOp::Sub, [x[0], y], ty));
    }
    if let Some(y) = negated(b, x[0]) {
        return Some(push_binary(b, BinaryOp::Sub, [x[1], y], ty));
    }
    super::movement::sum_of_pads(b, x, ty)
}

fn difference(b: &mut Builder, x: [NodeId; 2], constant: Option<f64>, ty: &Type) -> Option<NodeId> {
    if constant == Some(0.0) {
        return Some(x[0]);
    }
    if splat(b, x[0]) == Some(0.0) && has_negation(ty) {
        return Some(push_unary(b, UnaryOp::Neg, x[1], ty));
    }
    let y = negated(b, x[1])?;
    Some(push_binary(b, BinaryOp::Add, [x[0], y], ty))
}

fn product(b: &mut Builder, x: [NodeId; 2], constant: Option<f64>, ty: &Type) -> Option<NodeId> {
    match constant {
        Some(1.0) => return Some(x[0]),
        Some(-1.0) if has_negation(ty) => return Some(push_unary(b, UnaryOp::Neg, x[0], ty)),
        Some(0.0) if !ty.is_float() => return Some(x[1]),
        _ => {}
    }
    let y = negated(b, x[0])?;
    let other = match constant {
        Some(_) if !ty.is_float() => return None,
        Some(c) => splat_of(b, ty, -c),
        None => negated(b, x[1])?,
    };
    Some(push_binary(b, BinaryOp::Mul, [y, other], ty))
}

/// Division by 1, -1 and powers of two, whose reciprocals are exact.
fn division(b: &mut Builder, x: [NodeId; 2], c: f64, ty: &Type) -> Option<NodeId> {
    if c == 1.0 {
        return Some(x[0]);
    }
    let normal = if ty.dtype() == DType::F32 { -126..=126 } else { -1022..=1022 };
    let exponent = (c.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let power_of_two = c.to_bits() << 12 == 0 && normal.contains(&exponent);
    power_of_two.then(|| {
        let reciprocal = splat_of(b, ty, 1.0 / c);
        push_binary(b, BinaryOp::Mul, [x[0], reciprocal], ty)
    })
}

fn compare(b: &mut Builder, op: CompareOp, x: [NodeId; 2], ty: &Type) -> Option<NodeId> {
    let symmetric = matches!(op, CompareOp::Eq | CompareOp::Ne);
    (symmetric && x[0] > x[1]).then(|| insert(b, &Op::Compare(op), &[x[1], x[0]], ty))
}

fn select(b: &mut Builder, [p, l, r]: [NodeId; 3], ty: &Type) -> Option<NodeId> {
    if l == r {
        return Some(l);
    }
    if let Some(p) = splat(b, p) {
        return Some(if p == 0.0 { r } else { l });
    }
    if matches!(b.node(p).op, Op::Unary(UnaryOp::Not)) {
        let p = b.node(p).args[0];
        return Some(insert(b, &Op::Select, &[p, r, l], ty));
    }
    let same_choice = |b: &Builder, v: NodeId| matches!(b.node(v).op, Op::Select) && b.node(v).args[0] == p;
    if same_choice(b, l) {
        let l = b.node(l).args[1];
        return Some(insert(b, &Op::Select, &[p, l, r], ty));
    }
    if same_choice(b, r) {
        let r = b.node(r).args[2];
        return Some(insert(b, &Op::Select, &[p, l, r], ty));
    }
    let truth = ty.dtype() == DType::Bool && splat(b, l) == Some(1.0) && splat(b, r) == Some(0.0);
    truth.then_some(p)
}

fn lincomb(b: &mut Builder, coeffs: &[u64], x: &[NodeId], ty: &Type) -> Option<NodeId> {
    let counts = |&(c, x): &(u64, NodeId)| f64::from_bits(c) != 0.0 && splat(b, x) != Some(0.0);
    let terms: Vec<(u64, NodeId)> = coeffs.iter().copied().zip(x.iter().copied()).filter(counts).collect();
    match terms[..] {
        [] => Some(splat_of(b, ty, 0.0)),
        [(c, x)] => {
            let c = splat_of(b, ty, f64::from_bits(c));
            Some(push_binary(b, BinaryOp::Mul, [x, c], ty))
        }
        _ if terms.len() < x.len() => {
            let (coeffs, x): (Vec<u64>, Vec<NodeId>) = terms.into_iter().unzip();
            Some(insert(b, &Op::Lincomb { coeffs }, &x, ty))
        }
        _ => None,
    }
}

/// Whether every value of the first type is representable in the second.
fn widens(from: DType, to: DType) -> bool {
    match from {
        DType::F64 => false,
        DType::F32 | DType::I32 | DType::U32 => to == DType::F64,
        DType::Bool => true,
    }
}

fn cast(b: &mut Builder, x: NodeId, ty: &Type) -> Option<NodeId> {
    if b.ty(x) == ty {
        return Some(x);
    }
    let inner = b.node(x);
    let from = inner.args.first().filter(|_| inner.op == Op::Cast).copied()?;
    let (first, second) = (b.ty(from).dtype(), b.ty(x).dtype());
    (first == ty.dtype() && widens(first, second)).then_some(from)
}

/// Moves an operation before the broadcast, if all its operands are broadcast alike or are constants.
fn before_broadcast(b: &mut Builder, op: &Op, x: &[NodeId], ty: &Type) -> Option<NodeId> {
    if *op == Op::StopGradient {
        return None;
    }
    let mut layout: Option<(Type, Vec<usize>)> = None;
    for &x in x.iter().filter(|&&x| splat(b, x).is_none()) {
        let node = b.node(x);
        let Op::Broadcast { dims } = &node.op else { return None };
        let source = b.ty(node.args[0]).clone();
        match &layout {
            Some((known, at)) if known.shape() == source.shape() && at == dims => {}
            Some((known, _)) if known.shape().rank() > 0 && dims.is_empty() => {}
            Some((known, _)) if known.shape().rank() > 0 => return None,
            _ => layout = Some((source, dims.clone())),
        }
    }
    let (shape, dims) = match layout {
        Some((source, dims)) => (source.shape().clone(), dims),
        None => (crate::array::Shape::scalar(), vec![]),
    };
    if shape.size() >= ty.shape().size() {
        return None;
    }
    let mut args = Vec::with_capacity(x.len());
    for &x in x {
        let ty = b.ty(x).with_shape(shape.clone());
        args.push(if let Some(c) = splat(b, x) {
            splat_of(b, &ty, c)
        } else {
            let source = b.node(x).args[0];
            let dims = (0..b.ty(source).shape().rank()).collect();
            insert(b, &Op::Broadcast { dims }, &[source], &ty)
        });
    }
    let small = insert(b, op, &args, &ty.with_shape(shape));
    Some(insert(b, &Op::Broadcast { dims }, &[small], ty))
}
