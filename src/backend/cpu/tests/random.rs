//! Random graphs against the interpreter: every operation without a body, on every element type that it
//! takes.

use super::{Rng, check};
use crate::array::{Array, DType, Shape};
use crate::graph::functions::Domain;
use crate::graph::tests::arbitrary::{determined, regular};
use crate::graph::{
    BinaryOp, Builder, CompareOp, FactorOp, FloatFn, Func, LineOp, Literal, Margins, NodeId, Op, ReduceOp,
    ScalarFn, ScatterOp, Triangle, Type, UnaryOp,
};
use std::sync::Arc;

/// A function of a few dozen random nodes with small shapes.
pub(super) fn function(rng: &mut Rng, dtype: DType) -> Func {
    let dims = |rng: &mut Rng| -> Vec<usize> {
        let sizes = [0, 1, 1, 2, 3, 5, 8, 16, 33, 64];
        let first = usize::from(rng.below(4) > 0);
        (0..=rng.below(3)).map(|_| sizes[first + rng.below(sizes.len() - first)]).collect()
    };
    let types: Vec<Type> =
        [dtype, dtype, dtype, DType::I32].map(|dtype| Type::array(dtype, dims(rng))).to_vec();
    let ops = 10 + rng.below(30);
    grown(rng, &types, ops)
}

/// A function with the given inputs and about `ops` random nodes.
pub(super) fn grown(rng: &mut Rng, types: &[Type], ops: usize) -> Func {
    let (mut b, mut values) = Builder::with_inputs(types);
    for _ in 0..ops {
        let x = values[rng.below(values.len())];
        if let Some(y) = node(rng, &mut b, &values, x) {
            values.push(y);
        }
    }
    let mut outputs: Vec<NodeId> = (0..=rng.below(4)).map(|_| values[rng.below(values.len())]).collect();
    outputs.push(*values.last().unwrap());
    b.finish(&outputs)
}

/// A value computed from `x` and, for binary operations, another value of its type; `x` may have any element
/// type.
pub(super) fn node(rng: &mut Rng, b: &mut Builder, values: &[NodeId], x: NodeId) -> Option<NodeId> {
    let same: Vec<NodeId> = values.iter().copied().filter(|&v| b.ty(v) == b.ty(x)).collect();
    let y = same[rng.below(same.len())];
    Some(match rng.below(20) {
        0 if b.ty(x).is_float() => scalar(rng, b, x, y),
        1..=2 if b.ty(x).is_float() => unary(rng, b, x),
        3..=6 if b.ty(x).is_float() => arithmetic(rng, b, x, y),
        0..=6 => whole(rng, b, x, y),
        7 => cast(rng, b, x),
        8 | 9 => {
            let ops = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le];
            let p = b.compare(ops[rng.below(ops.len())], x, y);
            if rng.below(2) == 0 { p } else { b.select(p, y, x) }
        }
        10..=15 => moved(rng, b, x, y)?,
        16 => rows(rng, b, x)?,
        17 => {
            let rank = b.ty(x).shape().rank();
            let axes: Vec<usize> = (0..rank).filter(|_| rng.below(2) == 0).collect();
            let op = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min][rng.below(3)];
            let r = b.reduce(op, x, axes);
            if b.ty(r).is_float() { b.unary(UnaryOp::Tanh, r) } else { r }
        }
        18 if rng.below(3) == 0 => system(rng, b, x, y)?,
        _ => product(rng, b, x, y)?,
    })
}

/// A unary float function; most arguments are in its domain.
fn unary(rng: &mut Rng, b: &mut Builder, x: NodeId) -> NodeId {
    use UnaryOp::*;
    const POWERS: [f64; 8] = [2.0, 3.0, -1.0, 0.5, 0.3, -1.5, 1.0, 0.0];
    let power = Powf(POWERS[rng.below(POWERS.len())].to_bits());
    let ops: Vec<UnaryOp> =
        [Neg, Abs, Sign, IsFinite, power].into_iter().chain(FloatFn::ALL.iter().map(|f| f.op())).collect();
    let op = ops[rng.below(ops.len())];
    let domain = match op {
        Powf(_) => Domain::Positive,
        op => op.float_fn().map_or(Domain::All, FloatFn::domain),
    };
    // The argument may be outside the domain of a function that is not defined everywhere.
    let domain = if domain == Domain::Positive && rng.below(6) == 0 { Domain::Bounded } else { domain };
    let argument = domain.of(b, x);
    b.unary(op, argument)
}

/// A function that is computed one number after another.
fn scalar(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    let f = ScalarFn::ALL[rng.below(ScalarFn::ALL.len())];
    let operands: Vec<NodeId> =
        [x, y].into_iter().zip(f.domains()).map(|(x, domain)| domain.of(b, x)).collect();
    b.push(Op::Scalar(f), &operands, None)
}

/// Arithmetic of two floats.
fn arithmetic(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    match rng.below(8) {
        0 => {
            let z = b.mul(x, y);
            b.unary(UnaryOp::Tanh, z)
        }
        1 => {
            let (square, least) = (b.mul(y, y), b.splat_like(y, 0.5));
            let below = b.add(square, least);
            b.div(x, below)
        }
        2 => {
            let coeffs = (0..3).map(|_| rng.real().to_bits()).collect();
            b.push(Op::Lincomb { coeffs }, &[x, y, x], None)
        }
        // Quarters, so that equal values are frequent.
        3 => {
            let quarters = b.scale(x, 4.0);
            let whole = b.unary(UnaryOp::Floor, quarters);
            b.scale(whole, 0.25)
        }
        _ => {
            let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max, BinaryOp::Min];
            b.binary(ops[rng.below(ops.len())], x, y)
        }
    }
}

/// A function of integers or truth values.
fn whole(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    match b.ty(x).dtype() {
        DType::Bool => match rng.below(3) {
            0 => b.unary(UnaryOp::Not, x),
            1 => b.binary(BinaryOp::And, x, y),
            _ => b.binary(BinaryOp::Or, x, y),
        },
        DType::I32 if rng.below(3) == 0 => {
            let ops = [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign];
            b.unary(ops[rng.below(ops.len())], x)
        }
        _ => {
            let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min];
            b.binary(ops[rng.below(ops.len())], x, y)
        }
    }
}

/// Another element type; floats become integers of both signs.
fn cast(rng: &mut Rng, b: &mut Builder, x: NodeId) -> NodeId {
    use DType::*;
    let to = [F32, F64, I32, U32, Bool][rng.below(5)];
    let x = if b.ty(x).is_float() && matches!(to, I32 | U32) { b.scale(x, 7.3) } else { x };
    b.cast(x, to)
}

/// The elements reshaped, reordered, sliced or repeated.
fn moved(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> Option<NodeId> {
    let shape = b.ty(x).shape().clone();
    Some(match rng.below(6) {
        0 => broadcast(rng, b, x, &shape)?,
        1 if shape.rank() > 1 => {
            let mut perm: Vec<usize> = (0..shape.rank()).collect();
            let (i, j) = (rng.below(perm.len()), rng.below(perm.len()));
            perm.swap(i, j);
            b.transpose(x, perm)
        }
        2 => {
            let start: Vec<usize> = shape.iter().map(|&len| rng.below(len + 1)).collect();
            let limit = start.iter().zip(shape.iter()).map(|(s, len)| s + rng.below(len - s + 1)).collect();
            b.push(Op::Slice { start, limit }, &[x], None)
        }
        3 if shape.size() < 2000 => {
            let lo: Vec<usize> = shape.iter().map(|_| rng.below(3)).collect();
            let hi = lo.iter().map(|_| rng.below(3)).collect();
            b.push(Op::Pad { lo, hi }, &[x], None)
        }
        4 if shape.size() < 2000 && shape.rank() > 0 => {
            b.push(Op::Concat { axis: rng.below(shape.rank()) }, &[x, y], None)
        }
        _ => b.reshape(x, [shape.size()]),
    })
}

/// Rows by an index with repeated, out-of-range or constant entries; iotas and random words.
fn rows(rng: &mut Rng, b: &mut Builder, x: NodeId) -> Option<NodeId> {
    let ty = b.ty(x).clone();
    let rows = *ty.shape().first().filter(|&&rows| rows > 0)?;
    let num = rng.below(6);
    let index = if rng.below(3) == 0 {
        let row = rng.below(rows) as f64;
        b.splat(DType::I32, [num], row)
    } else {
        let index: Vec<i32> = (0..num).map(|_| rng.below(rows + 4) as i32 - 2).collect();
        let literal = Literal::Array(Arc::new(Array::from_vec([num], index)));
        b.push(Op::Const(literal), &[], Some(&Type::array(DType::I32, [num])))
    };
    Some(match rng.below(7) {
        5 if ty.dtype() != DType::Bool => {
            let sums = [LineOp::CumSum { reverse: false }, LineOp::CumSum { reverse: true }, LineOp::CumMax];
            b.push(Op::Lines(sums[rng.below(sums.len())]), &[x], None)
        }
        6 if !ty.is_float() || matches!(b.node(x).op, Op::Input(_)) => {
            let x = if ty.dtype() == DType::Bool { b.cast(x, DType::I32) } else { x };
            b.push(Op::Lines(LineOp::Argsort), &[x], None)
        }
        0 | 1 => b.push(Op::Gather, &[x, index], None),
        2 if ty.is_float() => {
            let some = b.push(Op::Gather, &[x, index], None);
            let op = ScatterOp::ALL[rng.below(3)];
            b.push(Op::Scatter(op), &[x, index, some], None)
        }
        3 if ty.dtype() != DType::Bool => {
            b.push(Op::Iota { axis: rng.below(ty.shape().rank()) }, &[], Some(&ty))
        }
        _ => {
            let (seven, zero) = (b.splat(DType::U32, [2], 7.0), b.splat(DType::U32, [], 0.0));
            let words = Type::array(DType::U32, ty.shape().clone());
            b.push(Op::RandomBits { stream: 3 }, &[seven, zero], Some(&words))
        }
    })
}

/// A product of matrices or a convolution of a matrix.
fn product(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> Option<NodeId> {
    let shape = b.ty(x).shape().clone();
    if !b.ty(x).is_float() || shape.rank() < 2 {
        return None;
    }
    if rng.below(2) == 0 || shape.rank() > 2 || shape.size() == 0 {
        let turned = rng.below(2) == 0;
        let d = b.dot(x, y, turned, !turned);
        return Some(b.unary(UnaryOp::Tanh, d));
    }
    // The padding keeps the sides: one less than the number of taps.
    let (h, w) = (shape[0], shape[1]);
    let taps = [h, w].map(|side| 1 + rng.below(side.min(3)));
    let lo = taps.map(|k| rng.below(k));
    let margins = Margins { lo, hi: [0, 1].map(|a| taps[a] - 1 - lo[a]) };
    let image = b.reshape(x, [1, h, w, 1]);
    let kernel = b.push(Op::Slice { start: vec![0, 0], limit: taps.to_vec() }, &[y], None);
    let kernel = b.reshape(kernel, [taps[0], taps[1], 1, 1]);
    let d = b.push(Op::Conv { margins, turned: rng.below(2) == 0 }, &[image, kernel], None);
    let d = b.reshape(d, [h, w]);
    Some(b.unary(UnaryOp::Tanh, d))
}

/// The solution of systems whose matrices and right-hand sides are corners of x and y; now and then factors.
fn system(rng: &mut Rng, b: &mut Builder, x: NodeId, y: NodeId) -> Option<NodeId> {
    let shape = b.ty(x).shape().to_vec();
    let (lead, &[rows, columns]) = shape.split_last_chunk::<2>()?;
    if !b.ty(x).is_float() {
        return None;
    }
    let n = rows.min(columns).min(9);
    let mut corner = |x, columns| {
        let (start, limit) = (vec![0; shape.len()], [lead, &[n, columns]].concat());
        b.push(Op::Slice { start, limit }, &[x], None)
    };
    let (a, right) = (corner(x, n), corner(y, columns.min(3)));
    match rng.below(6) {
        0 | 1 => {
            let op = [FactorOp::Cholesky, FactorOp::Qr, FactorOp::Eigh][rng.below(3)];
            let a = if op == FactorOp::Qr { corner(x, columns.min(7)) } else { a };
            let a = determined(b, a, op);
            let factors = b.push(Op::Factor(op), &[a], None);
            let small = b.scale(factors, 0.25 / (n * n).max(1) as f64);
            return Some(b.unary(UnaryOp::Tanh, small));
        }
        2 => {
            let mut flag = || rng.below(2) == 0;
            let triangle = Triangle { upper: flag(), transposed: flag(), unit_diagonal: flag() };
            let a = regular(b, a, &(0..n).collect::<Vec<_>>());
            let a = b.scale(a, 0.125);
            let solution = b.push(Op::TriangularSolve(triangle), &[a, right], None);
            return Some(b.unary(UnaryOp::Tanh, solution));
        }
        _ => {}
    }
    let mut places: Vec<usize> = (0..n).collect();
    (1..n).for_each(|i| places.swap(i, rng.below(i + 1)));
    let a = regular(b, a, &places);
    let factors = b.push(Op::Factor(FactorOp::Lu), &[a], None);
    if rng.below(4) == 0 {
        return Some(b.unary(UnaryOp::Tanh, factors));
    }
    let transposed = rng.below(2) == 0;
    let solution = b.push(Op::LuSolve { transposed }, &[factors, a, right], None);
    Some(b.unary(UnaryOp::Tanh, solution))
}

fn broadcast(rng: &mut Rng, b: &mut Builder, x: NodeId, shape: &Shape) -> Option<NodeId> {
    if shape.size() > 3000 || shape.rank() > 3 {
        return None;
    }
    let at = rng.below(shape.rank() + 1);
    let mut dims: Vec<usize> = shape.to_vec();
    dims.insert(at, 1 + rng.below(4));
    let to = Shape::from(dims);
    let axes = (0..shape.rank()).map(|i| if i < at { i } else { i + 1 }).collect();
    Some(b.broadcast(x, &to, axes))
}

#[test]
fn random_functions_equal_the_interpreter() {
    for seed in 0..400 {
        let mut rng = Rng(seed * 77 + 1);
        let dtype = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        check(&function(&mut rng, dtype), seed);
    }
}

#[test]
fn random_functions_over_matrices_equal_the_interpreter() {
    // Large enough for recomputed values, several strips, layers and transposes.
    for seed in 0..60 {
        let mut rng = Rng(seed * 31 + 5);
        let dtype = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        let ty = Type::array(dtype, [40, 40]);
        let f = grown(&mut rng, &[ty.clone(), ty.clone(), ty], 60);
        check(&f, seed);
    }
}

#[test]
fn every_operation_without_a_body_is_drawn() {
    let mut names = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let f = function(&mut Rng(seed * 77 + 1), DType::F32);
        names.extend(f.nodes().iter().map(|node| node.op.name()));
    }
    let others = [
        "abs",
        "add",
        "and",
        "broadcast",
        "cast",
        "cholesky",
        "concat",
        "const",
        "conv",
        "div",
        "dot",
        "eigh",
        "eq",
        "gather",
        "input",
        "iota",
        "is_finite",
        "le",
        "lincomb",
        "lt",
        "lu",
        "lu_solve",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "not",
        "or",
        "pad",
        "powf",
        "qr",
        "random_bits",
        "reduce_max",
        "reduce_min",
        "reduce_sum",
        "reshape",
        "scatter_add",
        "scatter_max",
        "scatter_set",
        "select",
        "sign",
        "slice",
        "sub",
        "transpose",
        "triangular_solve",
    ];
    let scalars = ScalarFn::ALL.iter().map(|f| f.name()).chain(LineOp::ALL.map(LineOp::name));
    let ops = others.into_iter().chain(FloatFn::ALL.iter().map(|f| f.op().name())).chain(scalars).collect();
    assert_eq!(names, ops);
}
