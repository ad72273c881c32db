//! Random graphs against the naive evaluator.

use super::{Rng, check};
use crate::array::{DType, Shape};
use crate::graph::{BinaryOp, Builder, CompareOp, Func, Margins, NodeId, Op, ReduceOp, Type, UnaryOp};

/// A function of some tens of random nodes over small shapes.
fn function(rng: &mut Rng, dtype: DType) -> Func {
    let dims = |rng: &mut Rng| -> Vec<usize> {
        let sizes = [1, 2, 3, 5, 8, 16, 33, 64];
        (0..=rng.below(3)).map(|_| sizes[rng.below(sizes.len())]).collect()
    };
    let types: Vec<Type> = (0..3).map(|_| Type::array(dtype, dims(rng))).collect();
    let ops = 10 + rng.below(30);
    grown(rng, &types, ops)
}

/// A function of the given inputs and about `ops` random nodes.
fn grown(rng: &mut Rng, types: &[Type], ops: usize) -> Func {
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

fn node(rng: &mut Rng, b: &mut Builder, values: &[NodeId], x: NodeId) -> Option<NodeId> {
    let shape = b.ty(x).shape().clone();
    let same: Vec<NodeId> = values.iter().copied().filter(|&v| b.ty(v) == b.ty(x)).collect();
    let y = same[rng.below(same.len())];
    Some(match rng.below(17) {
        0 | 1 => {
            let ops = [UnaryOp::Tanh, UnaryOp::Sin, UnaryOp::Sigmoid, UnaryOp::Abs, UnaryOp::Neg];
            b.unary(ops[rng.below(ops.len())], x)
        }
        2..=4 => {
            let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max, BinaryOp::Min];
            b.binary(ops[rng.below(ops.len())], x, y)
        }
        5 => {
            let z = b.mul(x, y);
            b.unary(UnaryOp::Tanh, z)
        }
        6 => {
            let p = b.compare(CompareOp::Le, x, y);
            b.select(p, y, x)
        }
        7 => {
            let coeffs = (0..3).map(|_| rng.real().to_bits()).collect();
            b.push(Op::Lincomb { coeffs }, &[x, y, x], None)
        }
        8 | 9 => broadcast(rng, b, x, &shape)?,
        10 if shape.rank() > 1 => {
            let mut perm: Vec<usize> = (0..shape.rank()).collect();
            let (i, j) = (rng.below(perm.len()), rng.below(perm.len()));
            perm.swap(i, j);
            b.transpose(x, perm)
        }
        11 => {
            let start: Vec<usize> = shape.iter().map(|&len| rng.below(len)).collect();
            let limit = start.iter().zip(shape.iter()).map(|(s, len)| s + 1 + rng.below(len - s)).collect();
            b.push(Op::Slice { start, limit }, &[x], None)
        }
        12 if shape.size() < 2000 => {
            let lo: Vec<usize> = shape.iter().map(|_| rng.below(3)).collect();
            let hi = lo.iter().map(|_| rng.below(3)).collect();
            b.push(Op::Pad { lo, hi }, &[x], None)
        }
        13 if shape.size() < 2000 && shape.rank() > 0 => {
            b.push(Op::Concat { axis: rng.below(shape.rank()) }, &[x, y], None)
        }
        14 => {
            let axes: Vec<usize> = (0..shape.rank()).filter(|_| rng.below(2) == 0).collect();
            let op = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min][rng.below(3)];
            let r = b.reduce(op, x, axes);
            b.unary(UnaryOp::Tanh, r)
        }
        15 if shape.rank() >= 2 => {
            let turned = rng.below(2) == 0;
            let d = b.dot(x, y, turned, !turned);
            b.unary(UnaryOp::Tanh, d)
        }
        16 if shape.rank() == 2 && shape.size() > 0 => {
            // as many margins as taps but one: the sides stay
            let (of, [h, w]) = ([x, y], [shape[0], shape[1]]);
            let taps = [h, w].map(|side| 1 + rng.below(side.min(3)));
            let lo = taps.map(|k| rng.below(k));
            let margins = Margins { lo, hi: [0, 1].map(|a| taps[a] - 1 - lo[a]) };
            let picture = b.reshape(of[0], [1, h, w, 1]);
            let limit = taps.to_vec();
            let kernel = b.push(Op::Slice { start: vec![0, 0], limit }, &[of[1]], None);
            let kernel = b.reshape(kernel, [taps[0], taps[1], 1, 1]);
            let d = b.push(Op::Conv { margins, turned: rng.below(2) == 0 }, &[picture, kernel], None);
            let d = b.reshape(d, [h, w]);
            b.unary(UnaryOp::Tanh, d)
        }
        _ => b.reshape(x, [shape.size()]),
    })
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
fn random_functions_equal_the_naive_evaluator() {
    for seed in 0..400 {
        let mut rng = Rng(seed * 77 + 1);
        let dtype = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        check(&function(&mut rng, dtype), seed);
    }
}

#[test]
fn random_functions_over_matrices_equal_the_naive_evaluator() {
    // Large enough that values are recomputed, strips are several, and layers and transposes occur.
    for seed in 0..60 {
        let mut rng = Rng(seed * 31 + 5);
        let dtype = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        let ty = Type::array(dtype, [40, 40]);
        let f = grown(&mut rng, &[ty.clone(), ty.clone(), ty], 60);
        check(&f, seed);
    }
}
