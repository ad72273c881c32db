//! Every operation, alone and in combinations that exercise each path of the planner.

use super::{Rng, bits, check, f32s, f64s, run};
use crate::array::{Array, DType, Shape};
use crate::backend::cpu::Plan;
use crate::graph::{
    BinaryOp, Builder, CompareOp, FloatFn, Literal, Op, ReduceOp, ScalarFn, ScatterOp, Type, UnaryOp,
};
use crate::simd::Level;
use std::sync::Arc;

const UNARY: [UnaryOp; 6] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Sign,
    UnaryOp::Powf(0x4000_0000_0000_0000),
    UnaryOp::Powf(0x4008_0000_0000_0000),
    UnaryOp::Powf(0xBFF0_0000_0000_0000),
];

#[test]
fn elementwise_operations_on_all_sizes_and_floats() {
    for n in [0, 1, 2, 17, 511, 512, 513, 2000] {
        for ty in [f32s([n]), f64s([n])] {
            let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty.clone()]);
            let mut out: Vec<_> = UNARY.iter().map(|&u| b.unary(u, x[0])).collect();
            for f in FloatFn::ALL {
                let x = f.domain().of(&mut b, x[0]);
                out.push(b.unary(f.op(), x));
            }
            for f in ScalarFn::ALL {
                let operands =
                    x.iter().zip(f.domains()).map(|(&x, domain)| domain.of(&mut b, x)).collect::<Vec<_>>();
                out.push(b.push(Op::Scalar(*f), &operands, None));
            }
            let positive = b.unary(UnaryOp::Exp, x[0]);
            out.push(b.unary(UnaryOp::Powf(0.3f64.to_bits()), positive));
            for op in
                [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Max, BinaryOp::Min]
            {
                out.push(b.binary(op, x[0], x[1]));
            }
            for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le] {
                let p = b.compare(op, x[0], x[1]);
                let q = b.unary(UnaryOp::Not, p);
                let finite = b.unary(UnaryOp::IsFinite, x[0]);
                let both = b.binary(BinaryOp::And, q, finite);
                out.push(b.select(p, x[1], x[0]));
                out.push(both);
                out.push(b.binary(BinaryOp::Or, p, both));
            }
            let coeffs = [0.5, -1.25, 3.0, 0.1].map(f64::to_bits).to_vec();
            out.push(b.push(Op::Lincomb { coeffs }, &[x[0], x[1], positive, x[0]], None));
            out.push(b.push(Op::Lincomb { coeffs: vec![1f64.to_bits()] }, &[x[0]], None));
            let coeffs = vec![1f64.to_bits(), 2f64.to_bits()];
            out.push(b.push(Op::Lincomb { coeffs }, &[x[0], x[1]], None));
            check(&b.finish(&out), 1 + n as u64);
        }
    }
}

#[test]
fn integers_and_casts_between_all_types() {
    use DType::*;
    for n in [1, 33, 700] {
        let types: Vec<Type> = [F32, F64, I32, U32, Bool, I32, U32].map(|d| Type::array(d, [n])).to_vec();
        let (mut b, x) = Builder::with_inputs(&types);
        let mut out = Vec::new();
        for &a in &x[..5] {
            for to in [F32, F64, I32, U32, Bool] {
                out.push(b.cast(a, to));
            }
        }
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max, BinaryOp::Min, BinaryOp::Mul] {
            let three = b.splat_like(x[3], 3.0);
            out.extend([b.binary(op, x[2], x[5]), b.binary(op, x[3], x[6]), b.binary(op, x[3], three)]);
        }
        for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le] {
            let (p, q) = (b.compare(op, x[2], x[5]), b.compare(op, x[3], x[6]));
            out.extend([p, q, b.select(p, x[2], x[5]), b.select(q, x[6], x[3])]);
        }
        for u in [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign] {
            out.push(b.unary(u, x[2]));
        }
        let less = b.compare(CompareOp::Lt, x[2], x[5]);
        out.push(b.compare(CompareOp::Eq, x[4], less));
        check(&b.finish(&out), 5);
    }
}

#[test]
fn broadcasts_of_all_kinds_reach_fused_kernels() {
    for (rows, cols) in [(3, 5), (64, 64), (7, 784), (300, 2), (1, 9), (9, 1), (5, 1000), (2, 2048)] {
        for float in [DType::F32, DType::F64] {
            let t = |d: &[usize]| Type::array(float, Shape::from(d));
            let types =
                [t(&[rows, cols]), t(&[cols]), t(&[rows, 1]), t(&[]), t(&[1, cols]), t(&[cols, rows])];
            let (mut b, x) = Builder::with_inputs(&types);
            let s = Shape::from([rows, cols]);
            let row = b.broadcast(x[1], &s, vec![1]);
            let column = b.broadcast(x[2], &s, vec![0, 1]);
            let scalar = b.broadcast(x[3], &s, vec![]);
            let line = b.broadcast(x[4], &s, vec![0, 1]);
            let turned = b.transpose(x[5], vec![1, 0]);
            let mut sum = x[0];
            for y in [row, column, scalar, line, turned] {
                sum = b.add(sum, y);
            }
            let e = b.unary(UnaryOp::Tanh, sum);
            let product = b.mul(row, column);
            let out = [b.mul(e, turned), product, turned, column];
            check(&b.finish(&out), 2);
        }
    }
}

#[test]
fn slices_pads_and_concatenations() {
    for (rows, cols) in [(4, 6), (64, 3), (50, 40)] {
        let (mut b, x) = Builder::with_inputs(&[f32s([rows, cols]), f32s([rows, 2])]);
        let part = b.push(Op::Slice { start: vec![1, 1], limit: vec![rows - 1, cols - 1] }, &[x[0]], None);
        let e = b.unary(UnaryOp::Sin, part);
        let padded = b.push(Op::Pad { lo: vec![1, 0], hi: vec![1, 2] }, &[e], None);
        let wide = b.push(Op::Concat { axis: 1 }, &[x[0], x[1], x[0]], None);
        let twice = b.add(x[0], x[0]);
        let tall = b.push(Op::Concat { axis: 0 }, &[twice, x[0], twice], None);
        let again = b.push(Op::Concat { axis: 0 }, &[tall, twice], None);
        let one = b.splat(DType::F32, [2, cols], 1.0);
        let minus = b.unary(UnaryOp::Neg, twice);
        let ones = b.push(Op::Concat { axis: 0 }, &[one, minus, one], None);
        let column = b.push(Op::Slice { start: vec![0, 1], limit: vec![rows, 2] }, &[x[0]], None);
        let flat = b.reshape(column, [rows]);
        let cos = b.unary(UnaryOp::Cos, flat);
        let t = b.transpose(x[0], vec![1, 0]);
        let mixed = b.reshape(t, [rows * cols]);
        let mixed_more = b.unary(UnaryOp::Exp, mixed);
        let padded_one = b.push(Op::Pad { lo: vec![1, 1], hi: vec![0, 1] }, &[one], None);
        let out = [padded, wide, tall, again, ones, cos, mixed, mixed_more, x[1], one, padded_one, padded];
        check(&b.finish(&out), 3);
    }
}

#[test]
fn reductions_over_all_sets_of_axes() {
    for dims in [[3, 4, 5], [2, 300, 3], [1, 7, 600], [40, 1, 1030], [0, 3, 2], [3, 0, 2], [5, 3, 300]] {
        for dtype in [DType::F32, DType::F64, DType::I32, DType::Bool] {
            let ty = Type::array(dtype, dims);
            let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty]);
            let y = b.binary(if dtype == DType::Bool { BinaryOp::And } else { BinaryOp::Mul }, x[0], x[1]);
            let mut out = vec![y];
            for set in 1..8usize {
                let axes: Vec<usize> = (0..3).filter(|a| set >> a & 1 == 1).collect();
                for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
                    out.push(b.reduce(op, y, axes.clone()));
                    out.push(b.reduce(op, x[0], axes.clone()));
                }
            }
            check(&b.finish(&out), 4);
        }
    }
}

#[test]
fn a_reduction_gives_the_same_bits_whatever_it_is_fused_with() {
    for (dims, axes) in
        [([64, 64], vec![0]), ([64, 64], vec![1]), ([30, 1000], vec![0, 1]), ([9, 700], vec![1])]
    {
        let ty = f32s(dims);
        let (mut b, x) = Builder::with_inputs(&[ty.clone(), f32s([dims[1]])]);
        let plain = b.reduce(ReduceOp::Sum, x[0], axes.clone());
        let alone = b.finish(&[plain]);
        let (mut b, x) = Builder::with_inputs(&[ty.clone(), f32s([dims[1]])]);
        let row = b.broadcast(x[1], &Shape::from(dims), vec![1]);
        let (p, d) = (b.add(x[0], row), b.cast(x[0], DType::F64));
        let back = b.cast(d, DType::F32);
        let q = b.unary(UnaryOp::Exp, p);
        let sum = b.reduce(ReduceOp::Sum, back, axes);
        let fused = b.finish(&[sum, q]);
        let mut rng = Rng(8);
        let inputs = [rng.array(&ty), rng.array(&f32s([dims[1]]))];
        let one = run(&Plan::compile(&alone, Level::detect()), &inputs);
        let two = run(&Plan::compile(&fused, Level::detect()), &inputs);
        assert_eq!(bits(&one[0]), bits(&two[0]), "{dims:?}");
    }
}

#[test]
fn products_with_all_flags_and_views() {
    for (m, k, n) in [(5, 7, 3), (64, 64, 64), (100, 3, 64), (64, 64, 1), (1, 64, 64), (3, 0, 4)] {
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            for dtype in [DType::F32, DType::F64] {
                let ty = |r, c, t| Type::array(dtype, if t { [c, r] } else { [r, c] });
                let (mut b, x) = Builder::with_inputs(&[ty(m, k, ta), ty(k, n, tb)]);
                let c = b.dot(x[0], x[1], ta, tb);
                let e = b.unary(UnaryOp::Tanh, c);
                let again = b.dot(x[0], x[1], ta, tb);
                let d = b.dot(e, again, true, false);
                check(&b.finish(&[c, d]), 6);
            }
        }
    }
    let (mut b, x) = Builder::with_inputs(&[f32s([8, 10]), f32s([10, 6]), f32s([4])]);
    let left = b.push(Op::Slice { start: vec![0, 2], limit: vec![8, 6] }, &[x[0]], None);
    let right = b.push(Op::Slice { start: vec![3, 1], limit: vec![7, 5] }, &[x[1]], None);
    let stretched = b.broadcast(x[2], &Shape::from([4, 5]), vec![0]);
    let ones = b.splat(DType::F32, [5, 8], 1.5);
    let (p, q) = (b.dot(left, right, false, false), b.dot(left, stretched, false, false));
    let r = b.dot(ones, left, false, false);
    check(&b.finish(&[p, q, r]), 7);
}

#[test]
fn rows_by_index_constants_iota_and_random_words() {
    let u = |n: usize| Type::array(DType::U32, [n]);
    let index = Type::array(DType::I32, [5, 2]);
    let (mut b, x) =
        Builder::with_inputs(&[f32s([6, 3]), index, u(2), Type::scalar(DType::U32), f32s([5, 2, 3])]);
    let rows = b.push(Op::Gather, &[x[0], x[1]], None);
    let added = b.push(Op::Scatter(ScatterOp::Add), &[x[0], x[1], x[4]], None);
    let largest = b.push(Op::Scatter(ScatterOp::Max), &[x[0], x[1], x[4]], None);
    let last = b.push(Op::Scatter(ScatterOp::Set), &[x[0], x[1], x[4]], None);
    let small = b.splat(DType::U32, Shape::scalar(), 9.0);
    let bits = b.push(Op::RandomBits { stream: 3 }, &[x[2], small], Some(&u(77)));
    let halves = b.cast(bits, DType::F64);
    let table = Arc::new(Array::from_vec([3], vec![1.0f32, -2.0, 5.0]));
    let c = b.push(Op::Const(Literal::Array(table)), &[], Some(&f32s([3])));
    let wide = b.broadcast(c, &Shape::from([6, 3]), vec![1]);
    let iota = b.push(Op::Iota { axis: 0 }, &[], Some(&f32s([6, 3])));
    let along = b.push(Op::Iota { axis: 1 }, &[], Some(&f32s([6, 3])));
    let sum = b.add(wide, iota);
    let sum = b.mul(sum, along);
    let zeros = b.splat(DType::F32, [6, 3], 0.0);
    let into_zeros = b.push(Op::Scatter(ScatterOp::Add), &[zeros, x[1], x[4]], None);
    check(&b.finish(&[rows, added, largest, last, halves, sum, iota, c, into_zeros, bits]), 9);
}

#[test]
fn a_layer_is_one_kernel_and_two_buffers_alternate() {
    let (mut b, x) = Builder::with_inputs(&[f32s([64, 64]), f32s([64, 64]), f32s([64])]);
    let mut y = x[0];
    for _ in 0..4 {
        let z = b.dot(y, x[1], false, false);
        let bias = b.broadcast(x[2], &Shape::from([64, 64]), vec![1]);
        let z = b.add(z, bias);
        y = b.unary(UnaryOp::Tanh, z);
    }
    let f = b.finish(&[y]);
    check(&f, 10);
    let report = Plan::compile(&f, Level::detect()).report().clone();
    assert_eq!(report.kernels, 4);
    // Two buffers alternate, and the last layer writes the output.
    assert_eq!(report.arena_bytes, 2 * 64 * 64 * 4, "{report}");
    assert_eq!(report.flops, 4 * (2 * 64 * 64 * 64 + 2 * 64 * 64));
}

#[test]
fn a_layer_gives_the_bits_of_its_parts_and_is_left_apart_where_they_are_read() {
    for (m, k, n) in [(64, 64, 64), (7, 300, 2), (1, 5, 70)] {
        for (i, activation) in [None, Some(UnaryOp::Tanh), Some(UnaryOp::Sigmoid)].into_iter().enumerate() {
            let types = [f32s([m, k]), f32s([k, n]), f32s([n])];
            let is_gated = (i + m) % 2 == 0;
            let build = |apart: bool| {
                let (mut b, x) = Builder::with_inputs(&types);
                let product = b.dot(x[0], x[1], false, false);
                let row = b.broadcast(x[2], &Shape::from([m, n]), vec![1]);
                let mut sum = b.add(row, product);
                if is_gated {
                    let gated = b.mul(sum, row);
                    sum = b.add(row, gated);
                }
                let end = activation.map_or(sum, |u| b.unary(u, sum));
                let outputs = [end, product, sum];
                b.finish(&outputs[..if apart { 3 } else { 1 }])
            };
            let mut rng = Rng(12);
            let x = types.each_ref().map(|t| rng.array(t));
            for level in Level::available() {
                let [one, apart] = [false, true].map(|apart| Plan::compile(&build(apart), level));
                assert_eq!(one.report().kernels, 1);
                assert_eq!(bits(&run(&one, &x)[0]), bits(&run(&apart, &x)[0]));
            }
            check(&build(false), 13);
        }
    }
}

#[test]
fn an_operand_that_dies_lends_its_bytes() {
    let (mut b, x) = Builder::with_inputs(&[f32s([64, 64]), f32s([64, 64])]);
    let mut y = x[0];
    for _ in 0..4 {
        let z = b.dot(y, x[1], false, false);
        y = b.scale(z, 0.1);
    }
    let f = b.finish(&[y]);
    check(&f, 10);
    let report = Plan::compile(&f, Level::detect()).report().clone();
    assert_eq!((report.kernels, report.arena_bytes), (8, 2 * 64 * 64 * 4), "{report}");
}

#[test]
fn scalars_fuse_into_few_kernels() {
    let s = Type::scalar(DType::F64);
    let (mut b, x) = Builder::with_inputs(&[s.clone(), s.clone(), s]);
    let mut y = x[0];
    for i in 0..40 {
        let c = b.splat_like(y, 0.1 * f64::from(i));
        let z = b.mul(y, x[1]);
        let z = b.add(z, c);
        let p = b.compare(CompareOp::Lt, z, x[2]);
        y = b.select(p, z, y);
    }
    let f = b.finish(&[y, x[1]]);
    check(&f, 11);
    assert_eq!(Plan::compile(&f, Level::detect()).report().kernels, 2);
}

#[test]
fn cheap_values_are_recomputed_where_they_are_read() {
    let ty = f32s([64, 64]);
    let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty.clone(), ty]);
    // The forward half of a layer, and a backward half after a product that separates the two.
    let a = b.dot(x[0], x[1], false, false);
    let s = b.unary(UnaryOp::Sigmoid, a);
    let one = b.splat_like(s, 1.0);
    let rest = b.sub(one, s);
    let derivative = b.mul(s, rest);
    let h = b.mul(a, s);
    let more = b.mul(a, derivative);
    let out = b.dot(h, x[1], false, false);
    let g = b.dot(out, x[2], true, false);
    let (p, q, r) = (b.mul(g, rest), b.mul(g, derivative), b.mul(g, more));
    let sum = b.add(p, q);
    let sum = b.add(sum, r);
    let f = b.finish(&[sum]);
    check(&f, 14);
    // Stored: the products, s and h; recomputed: rest, derivative, more.
    let report = Plan::compile(&f, Level::detect()).report().clone();
    assert_eq!(report.kernels, 5);
    let matrix = 64 * 64 * 4;
    assert!(report.arena_bytes <= 4 * matrix + 16 * 1024, "{report}");
}

#[test]
fn what_has_no_elements_goes_through_every_kind_of_step() {
    let (mut b, x) = Builder::with_inputs(&[f32s([2, 6, 0]), f32s([0, 6])]);
    let index = b.splat(DType::I32, [1], 1.0);
    let rows = b.push(Op::Gather, &[x[0], index], None);
    let added = b.push(Op::Scatter(ScatterOp::Add), &[x[0], index, rows], None);
    let again = b.push(Op::Gather, &[added, index], None);
    let turned = b.transpose(again, vec![0, 2, 1]);
    let both = b.push(Op::Concat { axis: 1 }, &[x[1], x[1]], None);
    let wave = b.unary(UnaryOp::Sin, both);
    let product = b.dot(wave, both, false, true);
    let (zeros, end) = (b.dot(wave, both, true, false), b.unary(UnaryOp::Tanh, product));
    check(&b.finish(&[turned, end, zeros]), 3);
}

#[test]
fn a_kernel_whose_values_are_all_recomputed_elsewhere_is_left_out() {
    // A product of 20 to 24 arrays, times a sum of two more; a kernel reads at most 24. With 23 arrays, the sum is a kernel of
    // its own, whose only value the other kernel recomputes. With 24, the last multiplication is a kernel with the sum.
    let ty = f32s([64, 32]);
    let mut kernels = vec![];
    for num in 21..=25 {
        let (mut b, x) = Builder::with_inputs(&vec![ty.clone(); num + 1]);
        let sum = b.add(x[0], x[1]);
        let all = x[3..].iter().fold(x[2], |all, &x| b.mul(all, x));
        let all = b.mul(all, sum);
        let f = b.finish(&[all]);
        kernels.push(Plan::compile(&f, Level::detect()).report().kernels);
        check(&f, num as u64);
    }
    assert_eq!(kernels, [1, 1, 1, 1, 2], "{kernels:?}");
}

/// A product is added to a matrix in its place only if nothing else reads the matrix, also through a view of it. Ranges: the
/// matrix is a view of a vector of 4 to 12 numbers; zero to two further readers of the vector or of views, before and behind
/// the product, among them an output.
#[test]
fn a_matrix_with_other_readers_is_not_overwritten_by_a_product() {
    let (mut rng, mut seen) = (Rng(749), [0; 3]);
    for case in 0..200 {
        let (m, n, k) = (2 + rng.below(2), 2 + rng.below(3), 1 + rng.below(3));
        let types = [f64s([m * n]), f64s([m, k]), f64s([k, n])];
        let (mut b, x) = Builder::with_inputs(&types);
        let other = b.neg(x[0]);
        let vector = b.push(Op::Concat { axis: 0 }, &[x[0], other], None);
        let vector = b.push(Op::Slice { start: vec![m], limit: vec![m + m * n] }, &[vector], None);
        let vector = if case % 2 == 0 { b.unary(UnaryOp::Tanh, vector) } else { b.mul(vector, x[0]) };
        let first = b.reshape(vector, [m, n]);
        let num = rng.below(3);
        seen[num] += 1;
        let mut read = |b: &mut Builder| match rng.below(4) {
            0 => first,
            1 => b.reduce(ReduceOp::Sum, first, vec![rng.below(2)]),
            2 => {
                let again = b.reshape(vector, [n, m]);
                b.reduce(ReduceOp::Max, again, vec![0])
            }
            _ => b.scale(vector, 0.5),
        };
        let before = if num > 1 { vec![read(&mut b)] } else { vec![] };
        let product = b.dot(x[1], x[2], false, false);
        let sum = b.add(first, product);
        let behind = if num > 0 { vec![read(&mut b)] } else { vec![] };
        let outputs = if case % 3 == 0 { [vec![sum], before, behind] } else { [before, behind, vec![sum]] };
        check(&b.finish(&outputs.concat()), case);
    }
    assert!(seen.iter().all(|&n| n > 30), "{seen:?}");
}

/// The parts of a concatenated matrix lie in it, and may have readers of their own. Ranges: two parts of 1 to 3 and 0 to 2 rows,
/// in half of the cases in a further concatenation; zero to two readers of parts, among them outputs.
#[test]
fn a_part_with_other_readers_is_not_overwritten_by_a_product() {
    let (mut rng, mut seen) = (Rng(750), [0; 3]);
    for case in 0..200 {
        let (rows, n, k) = ([1 + rng.below(3), rng.below(3)], 1 + rng.below(4), 1 + rng.below(3));
        let m = rows[0] + rows[1] + if case % 2 == 0 { rows[0] } else { 0 };
        let types = [f64s([rows[0], n]), f64s([rows[1], n]), f64s([m, k]), f64s([k, n])];
        let (mut b, x) = Builder::with_inputs(&types);
        let parts = [b.unary(UnaryOp::Tanh, x[0]), b.unary(UnaryOp::Sin, x[1])];
        let inner = b.push(Op::Concat { axis: 0 }, &parts, None);
        let last = b.push(Op::Concat { axis: 0 }, &[inner, parts[0]], None);
        let matrix = if case % 2 == 0 { last } else { inner };
        let num = rng.below(3);
        seen[num] += 1;
        let mut read = |b: &mut Builder| match rng.below(3) {
            0 => parts[rng.below(2)],
            1 => b.reduce(ReduceOp::Sum, parts[rng.below(2)], vec![rng.below(2)]),
            _ => b.dot(parts[0], x[3], false, true),
        };
        let before = if num > 1 { vec![read(&mut b)] } else { vec![] };
        let product = b.dot(x[2], x[3], false, false);
        let sum = b.add(matrix, product);
        let behind = if num > 0 { vec![read(&mut b)] } else { vec![] };
        let outputs = if case % 3 == 0 { [vec![sum], before, behind] } else { [before, behind, vec![sum]] };
        check(&b.finish(&outputs.concat()), case);
    }
    assert!(seen.iter().all(|&n| n > 30), "{seen:?}");
}
