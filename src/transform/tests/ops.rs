//! The derivative rule of each plain op.

use super::*;
use crate::graph::functions::Domain;
use crate::graph::{BinaryOp, CompareOp, FloatFn, Margins, Op, ReduceOp, ScatterOp, UnaryOp};

fn array(shape: impl Into<Shape>, v: &[f64]) -> Array {
    Array::from_vec(shape, v.to_vec())
}

#[test]
fn unary_ops_have_their_derivatives() {
    use UnaryOp::*;
    let x = array([5], &[0.3, 0.9, 1.7, 2.2, 0.05]);
    let y = array([5], &[-0.3, 0.9, -1.7, 2.2, 0.05]);
    let any: Vec<UnaryOp> = [Neg, Abs, Sign].into_iter().chain(FloatFn::ALL.iter().map(|f| f.op())).collect();
    let (positive, any): (Vec<UnaryOp>, Vec<UnaryOp>) =
        any.into_iter().partition(|op| op.float_fn().is_some_and(|f| f.domain() == Domain::Positive));
    let powers = [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1.7].map(|p: f64| Powf(p.to_bits()));
    for (op, x) in any.iter().map(|op| (op, &y)).chain(positive.iter().chain(&powers).map(|op| (op, &x))) {
        let f = func(&[f64s([5])], |b, x| vec![b.unary(*op, x[0])]);
        check_twice(&f, std::slice::from_ref(x), &[0], op.name());
    }
}

#[test]
fn all_derivatives_of_erf_are_made_of_one_exp() {
    let f = func(&[f64s([1])], |b, x| vec![b.unary(UnaryOp::Erf, x[0])]);
    let twice = jvp(&jvp(&f, &[0]), &[0]);
    let exps = twice.nodes().iter().filter(|n| n.op == Op::Unary(UnaryOp::Exp)).count();
    assert_eq!(exps, 1);
    let first = eval(&jvp(&f, &[0]), &[array([1], &[0.7]), array([1], &[1.0])]);
    assert!((first[1].to_f64()[0] - 0.691_274_860_410_538_6).abs() < 4e-16);
}

#[test]
fn binary_ops_have_their_derivatives() {
    use BinaryOp::*;
    let x = [array([4], &[0.3, -0.9, 1.7, 2.2]), array([4], &[0.8, -1.4, 0.7, 3.2])];
    for op in [Add, Sub, Mul, Div, Max, Min] {
        let f = func(&[f64s([4]), f64s([4])], |b, x| vec![b.binary(op, x[0], x[1])]);
        check_twice(&f, &x, &[0, 1], op.name());
        check_twice(&f, &x, &[1], op.name());
        let f = func(&[f64s([4])], |b, x| vec![b.binary(op, x[0], x[0])]);
        check_twice(&f, &x[..1], &[0], op.name());
    }
}

#[test]
fn a_tie_is_split_in_half() {
    for op in [BinaryOp::Max, BinaryOp::Min] {
        let f = func(&[f64s([]), f64s([])], |b, x| vec![b.binary(op, x[0], x[1])]);
        let g = vjp(&f, &[0], &[0, 1]).unwrap();
        let out = eval(&g, &[array([], &[2.0]), array([], &[2.0]), array([], &[3.0])]);
        assert_eq!((out[1].to_f64(), out[2].to_f64()), (vec![1.5], vec![1.5]));
    }
    let f = func(&[f64s([4])], |b, x| vec![b.reduce(ReduceOp::Max, x[0], vec![0])]);
    let out = eval(&vjp(&f, &[0], &[0]).unwrap(), &[array([4], &[5.0, 1.0, 5.0, 2.0]), array([], &[3.0])]);
    assert_eq!(out[1].to_f64(), [1.5, 0.0, 1.5, 0.0]);
    let out = eval(&jvp(&f, &[0]), &[array([4], &[5.0, 1.0, 5.0, 2.0]), array([4], &[1.0, 7.0, 2.0, 7.0])]);
    assert_eq!(out[1].to_f64(), [1.5]);
}

#[test]
fn unselected_elements_have_no_effect() {
    let f = func(&[f64s([2])], |b, x| {
        let zero = b.splat_like(x[0], 0.0);
        let p = b.compare(CompareOp::Lt, zero, x[0]);
        let big = b.unary(UnaryOp::Exp, x[0]);
        vec![b.select(p, big, x[0]), b.binary(BinaryOp::Max, x[0], zero)]
    });
    check_twice(&f, &[array([2], &[-0.4, 0.7])], &[0], "select");
    let out =
        eval(&vjp(&f, &[1], &[0]).unwrap(), &[array([2], &[-1.0, 1.0]), array([2], &[f64::INFINITY, 2.0])]);
    assert_eq!(out[2].to_f64(), [0.0, 2.0]);
}

#[test]
fn linear_combinations_and_products_of_matrices() {
    let mut draws = Draws::new(1);
    let f = func(&[f64s([3]), f64s([3]), f64s([3])], |b, x| {
        let coeffs = [0.5, -1.0, 0.0, 1.0].map(f64::to_bits).to_vec();
        let l = b.push(Op::Lincomb { coeffs }, &[x[0], x[1], x[2], x[0]], None);
        vec![b.mul(l, x[1])]
    });
    let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
    check_twice(&f, &x, &[0, 1, 2], "lincomb");
    check_twice(&f, &x, &[1], "lincomb");
    for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
        let a = if ta { [2, 3] } else { [3, 2] };
        let b = if tb { [4, 2] } else { [2, 4] };
        let f = func(&[f64s(a), f64s(b)], |b, x| vec![b.dot(x[0], x[1], ta, tb)]);
        let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
        check_twice(&f, &x, &[0, 1], "dot");
        check(&f, &x, &[1], "dot");
    }
}

#[test]
fn batches_of_products_have_the_derivatives_of_products() {
    let mut draws = Draws::new(2);
    for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
        let a = if ta { [2, 2, 2, 3] } else { [2, 2, 3, 2] };
        let b = if tb { [2, 2, 4, 2] } else { [2, 2, 2, 4] };
        let f = func(&[f64s(a), f64s(b)], |b, x| vec![b.dot(x[0], x[1], ta, tb)]);
        let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
        check_twice(&f, &x, &[0, 1], "batched dot");
        check(&f, &x, &[1], "batched dot");
    }
    let f = func(&[f64s([3, 2, 2])], |b, x| {
        let square = b.dot(x[0], x[0], false, true);
        let sin = b.unary(UnaryOp::Sin, square);
        vec![b.dot(sin, x[0], true, false)]
    });
    check_twice(&f, &[draws.array(f.input_type(0))], &[0], "products of a batch with itself");
}

#[test]
fn the_cotangent_of_a_matrix_that_a_batch_shares_is_made_at_once() {
    let mut draws = Draws::new(3);
    for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
        // The batch has 4 matrices of 5 x 2, the shared matrix is 2 x 3. It is the left or the right factor.
        let a = if ta { [4, 2, 5] } else { [4, 5, 2] };
        let w = if tb { [3, 2] } else { [2, 3] };
        let wide = |b: &mut Builder, w: NodeId| {
            let s = b.ty(w).shape().clone();
            b.broadcast(w, &Shape::from([4, s[0], s[1]]), vec![1, 2])
        };
        for left in [false, true] {
            let f = func(&[f64s(a), f64s(w)], |b, x| {
                let w = wide(b, x[1]);
                vec![if left { b.dot(w, x[0], !tb, !ta) } else { b.dot(x[0], w, ta, tb) }]
            });
            let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
            check_twice(&f, &x, &[0, 1], "a shared matrix");
            let back = vjp(&f, &[0], &[1]).unwrap();
            let per_entry = |n: &crate::graph::Node| **n.ty.shape() == [4, w[0], w[1]];
            let sums = back.nodes().iter().filter(|n| matches!(n.op, Op::Reduce { .. }));
            // The cotangent is one product over all rows of the batch if no operand must be transposed, or if
            // only x must be transposed and is smaller than the batch of products.
            let products = back.nodes().iter().filter(|n| matches!(n.op, Op::Dot { .. }) && per_entry(n));
            assert_eq!(sums.count(), products.count(), "{ta} {tb} {left}");
            if !left && !ta {
                assert!(!back.nodes().iter().any(|n| matches!(n.op, Op::Reduce { .. })), "{tb}");
            }
        }
    }
}

#[test]
fn movements_of_elements_have_their_transposes() {
    let f = func(&[f64s([2, 3]), f64s([2, 1])], |b, x| {
        let square = b.mul(x[0], x[0]);
        let t = b.transpose(square, vec![1, 0]);
        let s = b.push(Op::Slice { start: vec![1, 0], limit: vec![3, 1] }, &[t], None);
        let p = b.push(Op::Pad { lo: vec![0, 2], hi: vec![1, 0] }, &[s], None);
        let r = b.reshape(p, [9]);
        let wide = b.broadcast(x[1], &Shape::from([4, 2, 3]), vec![1, 2]);
        let wide = b.unary(UnaryOp::Sin, wide);
        let flat = b.reshape(x[1], [2]);
        let joined = b.push(Op::Concat { axis: 0 }, &[flat, r, flat], None);
        let stretched = b.broadcast(x[1], &Shape::from([2, 3]), vec![0, 1]);
        vec![r, wide, joined, b.mul(stretched, x[0])]
    });
    let mut draws = Draws::new(3);
    let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
    check_twice(&f, &x, &[0, 1], "movements");
    check_twice(&f, &x, &[1], "movements");
}

#[test]
fn reductions_have_their_derivatives() {
    let mut draws = Draws::new(4);
    for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
        for axes in [vec![0], vec![1], vec![0, 2], vec![0, 1, 2]] {
            let f = func(&[f64s([2, 3, 2])], |b, x| {
                let sin = b.unary(UnaryOp::Sin, x[0]);
                vec![b.reduce(op, sin, axes.clone())]
            });
            check_twice(&f, &[draws.array(f.input_type(0))], &[0], "reduce");
        }
    }
}

#[test]
fn rows_and_the_updates_that_they_become_have_the_derivatives() {
    for op in ScatterOp::ALL {
        let f = func(&[f64s([3, 2]), Type::array(DType::I32, [5]), f64s([5, 2])], |b, x| {
            let square = b.mul(x[0], x[0]);
            let rows = b.push(Op::Scatter(op), &[square, x[1], x[2]], None);
            vec![b.mul(rows, rows)]
        });
        let mut draws = Draws::new(6);
        let index = Array::from_vec([5], vec![2i32, 0, 7, -1, 0]);
        let x = [draws.array(f.input_type(0)), index, draws.array(f.input_type(2))];
        for wrt in [&[0, 2][..], &[0], &[2]] {
            check_twice(&f, &x, wrt, op.name());
        }
    }
}

#[test]
fn rows_are_taken_and_added_back() {
    let index = Type::array(DType::I32, [2, 2]);
    let f = func(&[f64s([3, 2]), index, f64s([2, 2, 2])], |b, x| {
        let square = b.mul(x[0], x[0]);
        let taken = b.push(Op::Gather, &[square, x[1]], None);
        let taken = b.mul(taken, x[2]);
        vec![taken, b.push(Op::Scatter(ScatterOp::Add), &[x[0], x[1], taken], None)]
    });
    let mut draws = Draws::new(5);
    let index = Array::from_vec([2, 2], vec![2i32, 0, 7, -1]);
    let x = [draws.array(f.input_type(0)), index, draws.array(f.input_type(2))];
    check_twice(&f, &x, &[0, 2], "gather");
    check_twice(&f, &x, &[0], "gather");
    check_twice(&f, &x, &[2], "scatter");
}

#[test]
fn casts_between_floats_pass_and_other_values_have_no_derivative() {
    let f = func(&[f64s([3])], |b, x| {
        let single = b.cast(x[0], DType::F32);
        let back = b.cast(single, DType::F64);
        let whole = b.cast(x[0], DType::I32);
        let whole = b.cast(whole, DType::F64);
        let stop = b.push(Op::StopGradient, &[x[0]], None);
        vec![b.mul(back, back), whole, stop, b.mul(stop, x[0])]
    });
    let x = array([3], &[0.5, -1.25, 2.75]);
    let out = eval(&jvp(&f, &[0]), &[x.clone(), array([3], &[1.0, 1.0, 1.0])]);
    let d: Vec<Vec<f64>> = out[4..].iter().map(Array::to_f64).collect();
    assert_eq!(d, [vec![1.0, -2.5, 5.5], vec![0.0; 3], vec![0.0; 3], x.to_f64()]);
    let ones = array([3], &[1.0, 1.0, 1.0]);
    let out =
        eval(&vjp(&f, &[0, 1, 2, 3], &[0]).unwrap(), &[x, ones.clone(), ones.clone(), ones.clone(), ones]);
    assert_eq!(out[4].to_f64(), [1.5, -3.75, 8.25]);
}

#[test]
fn a_value_without_dependence_has_zeros_and_costs_nothing() {
    let f = func(&[f64s([2]), f64s([2]), f64s([2])], |b, x| {
        let heavy = b.unary(UnaryOp::Exp, x[1]);
        vec![b.mul(x[0], heavy), heavy]
    });
    let g = vjp(&f, &[0], &[0, 2]).unwrap();
    assert_eq!(g.output_types().len(), 4);
    // The nodes are exp, two products, zeros and four inputs. The inactive operands add none.
    assert_eq!(g.nodes().len(), 8);
    let f = jvp(&f, &[2]);
    assert_eq!((f.num_outputs(), f.nodes().len()), (4, 7));
}

/// The estimate e^T (df/dy) e of a divergence, by vjp and by jvp. The two agree, and their derivatives agree
/// with finite differences.
#[test]
fn a_divergence_estimate_is_differentiated_again() {
    let f = func(&[f64s([2, 3]), f64s([3, 3]), f64s([2, 3])], |b, x| {
        let field = func(&[f64s([2, 3]), f64s([3, 3])], |b, x| {
            let h = b.dot(x[0], x[1], false, true);
            let h = b.unary(UnaryOp::Tanh, h);
            vec![b.dot(h, x[1], false, false)]
        });
        let back = crate::transform::vjp_into(b, &field, &x[..2], &[true, false], &[Some(x[2])]).unwrap();
        let ve = b.mul(back.1[0].unwrap(), x[2]);
        let reverse = b.reduce(ReduceOp::Sum, ve, vec![1]);
        let (y, d) = crate::transform::jvp_into(b, &field, &x[..2], &[Some(x[2]), None]);
        let ev = b.mul(d[0].unwrap(), x[2]);
        vec![y[0], reverse, b.reduce(ReduceOp::Sum, ev, vec![1])]
    });
    let mut draws = Draws::new(6);
    let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
    let out = eval(&f, &x);
    assert_close(&out[1..2], &out[2..3], 1e-12, "divergence");
    check_twice(&f, &x, &[0, 1], "divergence");
}

#[test]
fn convolutions_have_each_other_as_derivatives() {
    let mut draws = Draws::new(4);
    let cases = [
        ([2, 3, 4, 2], [3, 2, 2, 3], [1, 0], [1, 1]),
        ([1, 2, 2, 1], [2, 2, 1, 2], [1, 1], [0, 0]),
        ([2, 2, 3, 2], [1, 1, 2, 2], [0, 0], [0, 0]),
    ];
    for (x, w, lo, hi) in cases {
        let margins = Margins { lo, hi };
        for lead in [&[][..], &[2]] {
            let with = |of: [usize; 4]| f64s([lead, &of].concat());
            let conv = |turned| Op::Conv { margins, turned };
            let f = func(&[with(x), with(w)], |b, x| vec![b.push(conv(false), x, None)]);
            let args: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
            check_twice(&f, &args, &[0, 1], "conv");
            check(&f, &args, &[1], "conv");
            let y = f.output_type(0).clone();
            let f = func(&[with(x), y], |b, x| vec![b.push(Op::ConvKernel { margins }, x, None)]);
            let args: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
            check_twice(&f, &args, &[0, 1], "conv_kernel");
            let f =
                func(&[with(x), with([w[0], w[1], w[3], w[2]])], |b, x| vec![b.push(conv(true), x, None)]);
            let args: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
            check_twice(&f, &args, &[0, 1], "turned conv");
        }
    }
}
