//! Batches of products: values, equality in bits to single products, and allocations of a run.

use super::{Rng, allocations, bits, check, f32s, run};
use crate::array::{Array, DType, Shape};
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{Builder, Func, NodeId, Op, Type, UnaryOp};
use crate::simd::Level;

const FLAGS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// The types of a product's operands with leading axes.
fn operands(dtype: DType, batch: &[usize], [m, k, n]: [usize; 3], (ta, tb): (bool, bool)) -> [Type; 2] {
    let of = |r, c, t| Type::array(dtype, [batch, &if t { [c, r] } else { [r, c] }].concat());
    [of(m, k, ta), of(k, n, tb)]
}

#[test]
fn batches_of_products_with_all_flags_and_views() {
    for (batch, sizes) in [
        (&[3][..], [5, 7, 3]),
        (&[2, 3], [9, 8, 20]),
        (&[4], [1, 6, 5]),
        (&[2], [64, 3, 1]),
        (&[0], [2, 2, 2]),
        (&[2], [3, 0, 4]),
        (&[1, 5], [16, 16, 16]),
    ] {
        for flags in FLAGS {
            for dtype in [DType::F32, DType::F64] {
                let (mut b, x) = Builder::with_inputs(&operands(dtype, batch, sizes, flags));
                let c = b.dot(x[0], x[1], flags.0, flags.1);
                let e = b.unary(UnaryOp::Tanh, c);
                let d = b.dot(e, c, true, false);
                check(&b.finish(&[c, d]), 6);
            }
        }
    }
}

#[test]
fn operands_of_a_batch_are_read_where_they_lie() {
    // Heads beside each other in a row, a repeated matrix on either side, a number, a slice.
    let (mut b, x) = Builder::with_inputs(&[f32s([2, 5, 3, 8]), f32s([2, 6, 3, 8]), f32s([8, 7]), f32s([5])]);
    let q = b.transpose(x[0], vec![0, 2, 1, 3]);
    let k = b.transpose(x[1], vec![0, 2, 1, 3]);
    let scores = b.dot(q, k, false, true);
    let w = b.broadcast(x[2], &Shape::from([2, 3, 8, 7]), vec![2, 3]);
    let shared = b.dot(q, w, false, false);
    let row = b.push(Op::Slice { start: vec![0, 0, 2, 0], limit: vec![2, 3, 3, 8] }, &[q], None);
    let one_row = b.dot(row, w, false, false);
    let left = b.broadcast(x[2], &Shape::from([2, 3, 8, 7]), vec![2, 3]);
    let twos = b.splat(DType::F32, [2, 3, 4, 8], 2.0);
    let (from_number, turned) = (b.dot(twos, left, false, false), b.dot(left, q, true, true));
    let part = b.push(Op::Slice { start: vec![0, 1, 1, 2], limit: vec![2, 3, 4, 7] }, &[k], None);
    let columns = b.broadcast(x[3], &Shape::from([2, 2, 5, 4]), vec![2]);
    let of_part = b.dot(part, columns, false, false);
    check(&b.finish(&[scores, shared, one_row, from_number, turned, of_part]), 7);
}

/// Entry `i` of a value with one leading axis.
fn entry(b: &mut Builder, x: NodeId, i: usize) -> NodeId {
    let shape = b.ty(x).shape().clone();
    let start = [&[i][..], &vec![0; shape.rank() - 1]].concat();
    let part = b.push(Op::Slice { start, limit: [&[i + 1], &shape[1..]].concat() }, &[x], None);
    b.reshape(part, shape[1..].to_vec())
}

/// A batched product, followed by its entries as single products.
fn both(types: &[Type; 2], flags: (bool, bool), shared: bool) -> Func {
    let (mut b, mut x) = Builder::with_inputs(types);
    if shared {
        let first = entry(&mut b, x[1], 0);
        x[1] = b.broadcast(first, types[1].shape(), vec![1, 2]);
    }
    let all = b.dot(x[0], x[1], flags.0, flags.1);
    let mut outputs = vec![all];
    for i in 0..types[0].shape()[0] {
        let (p, q) = (entry(&mut b, x[0], i), entry(&mut b, x[1], i));
        outputs.push(b.dot(p, q, flags.0, flags.1));
    }
    b.finish(&outputs)
}

#[test]
fn an_entry_has_the_bits_of_a_single_product() {
    let mut rng = Rng(3);
    for sizes in [[8, 8, 8], [5, 200, 3], [1, 70, 33], [40, 130, 17], [3, 4, 1]] {
        for flags in FLAGS {
            for (dtype, shared) in [(DType::F32, false), (DType::F64, false), (DType::F32, true)] {
                let types = operands(dtype, &[4], sizes, flags);
                let x: Vec<Array> = types.iter().map(|t| rng.array(t)).collect();
                for level in Level::available() {
                    let out = run(&Plan::compile(&both(&types, flags, shared), level), &x);
                    let singles: Vec<u64> = out[1..].iter().flat_map(bits).collect();
                    assert_eq!(bits(&out[0]), singles, "{sizes:?} {flags:?} shared: {shared} at {level:?}");
                }
            }
        }
    }
}

#[test]
fn a_batch_that_shares_its_right_factor_is_one_taller_product() {
    let (mut b, x) = Builder::with_inputs(&[f32s([6, 4, 5]), f32s([5, 7])]);
    let w = b.broadcast(x[1], &Shape::from([6, 5, 7]), vec![1, 2]);
    let y = b.dot(x[0], w, false, false);
    let plan = Plan::compile(&b.finish(&[y]), Level::detect());
    let report = plan.report();
    // A and C are read and written per entry, B is read once.
    assert_eq!((report.kernels, report.bytes_moved), (1, 4 * (6 * 4 * 5 + 5 * 7 + 6 * 4 * 7)));
    assert_eq!((report.flops, report.arena_bytes), (2 * 6 * 4 * 5 * 7, 0));
}

#[test]
fn a_batch_of_small_products_is_one_kernel_that_allocates_nothing() {
    let ty = f32s([32, 8, 8]);
    let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty.clone()]);
    let y = b.dot(x[0], x[1], false, true);
    let plan = Plan::compile(&b.finish(&[y]), Level::detect());
    // The right operand is transposed once for the whole batch.
    assert_eq!((plan.report().kernels, plan.report().flops), (2, 32 * 2 * 8 * 8 * 8));
    let mut rng = Rng(4);
    let x = [rng.array(&ty), rng.array(&ty)];
    let (mut ws, mut out) = (Workspace::new(), [Array::zeros(DType::F32, ty.shape().clone())]);
    let refs: Vec<&Array> = x.iter().collect();
    plan.run_arrays(&mut ws, &refs, &mut out);
    let before = allocations();
    (0..3).for_each(|_| plan.run_arrays(&mut ws, &refs, &mut out));
    assert_eq!(allocations() - before, 0);
}
