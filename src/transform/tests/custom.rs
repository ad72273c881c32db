//! Custom functions: rules that equal the body's derivative must not change first or second derivatives.

use super::{check, check_twice, eval, f64s, func, jvp, vjp};
use crate::array::Array;
use crate::backend;
use crate::graph::{Custom, Func, Op, UnaryOp, verify};
use crate::transform::{batch, inline_custom, optimize};
use std::sync::Arc;

/// `sin(a) b` with the given rules, each of which reads operands and the result.
fn op(forward: bool, reverse: bool) -> Custom {
    let t = || f64s([2]);
    let body = func(&[t(), t()], |b, x| {
        let s = b.unary(UnaryOp::Sin, x[0]);
        vec![b.mul(s, x[1])]
    });
    let jvp = func(&[t(), t(), t(), t(), t()], |b, x| {
        let (s, c) = (b.div(x[2], x[1]), b.unary(UnaryOp::Cos, x[0]));
        let gradient = b.mul(c, x[1]);
        let (l, r) = (b.mul(gradient, x[3]), b.mul(s, x[4]));
        vec![b.add(l, r)]
    });
    let vjp = func(&[t(), t(), t(), t()], |b, x| {
        let (s, c) = (b.div(x[2], x[1]), b.unary(UnaryOp::Cos, x[0]));
        let gradient = b.mul(c, x[1]);
        vec![b.mul(gradient, x[3]), b.mul(s, x[3])]
    });
    Custom { body, jvp: forward.then_some(jvp), vjp: reverse.then_some(vjp), num_outs: 1 }
}

fn used(c: Custom) -> Func {
    func(&[f64s([2]), f64s([2])], |b, x| {
        let y = b.push(Op::Custom(Arc::new(c)), x, None);
        let y = b.proj(y, 0);
        vec![b.mul(y, y), y]
    })
}

fn at() -> [Array; 2] {
    [Array::from_vec([2], vec![0.4, 1.9]), Array::from_vec([2], vec![1.3, -0.7])]
}

#[test]
fn every_choice_of_rules_has_the_derivatives_of_the_body() {
    for (forward, reverse) in [(false, false), (true, false), (true, true)] {
        check_twice(&used(op(forward, reverse)), &at(), &[0, 1], &format!("jvp {forward}, vjp {reverse}"));
    }
    check(&used(op(false, true)), &at(), &[1], "vjp alone, with respect to one operand");
    check_twice(&used(op(false, true)), &at(), &[0, 1], "vjp alone");
}

/// Ranges: each choice of rules; one operand of two has an axis of examples.
#[test]
fn only_a_reverse_rule_gives_a_shared_operand_an_axis_of_examples() {
    for (forward, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        let many = batch(&used(op(forward, reverse)), &[true, false], 3);
        let shapes = many.nodes().iter().find_map(|node| match &node.op {
            Op::Custom(c) => {
                Some(c.body.input_types().iter().map(|ty| ty.shape().rank()).collect::<Vec<_>>())
            }
            _ => None,
        });
        assert_eq!(shapes, Some(vec![2, if reverse { 2 } else { 1 }]), "jvp {forward}, vjp {reverse}");
        verify(&many).unwrap();
        let x = [Array::from_vec([3, 2], vec![0.4, 1.9, -0.3, 0.7, 1.1, 0.2]), at()[1].clone()];
        check_twice(&many, &x, &[0, 1], &format!("a batch, jvp {forward}, vjp {reverse}"));
    }
}

#[test]
fn compiled_programs_have_no_custom_function_and_the_same_numbers() {
    let f = vjp(&used(op(false, true)), &[0, 1], &[0, 1]).unwrap();
    let f = jvp(&f, &[0, 1]);
    assert!(f.nodes().iter().any(|n| matches!(n.op, Op::Custom(_))));
    assert!(inline_custom(&f).nodes().iter().all(|n| !matches!(n.op, Op::Custom(_))));
    let x: Vec<Array> = (0..3).flat_map(|_| at()).collect();
    let got = backend::run_once(&optimize(&f), &x.iter().collect::<Vec<_>>());
    for (got, want) in got.iter().zip(eval(&f, &x)) {
        let pairs = got.to_f64().into_iter().zip(want.to_f64());
        pairs.for_each(|(g, w)| assert!((g - w).abs() < 1e-12, "{g} {w}"));
    }
}

#[test]
fn a_custom_function_prints_and_reads_back() {
    for (forward, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        let f = used(op(forward, reverse));
        assert_eq!(Func::parse(&f.to_string()).unwrap(), f);
    }
}

#[test]
fn a_rule_of_another_signature_is_malformed() {
    let mut c = op(true, true);
    c.vjp = c.jvp.clone();
    let why = verify(&used(c)).unwrap_err().to_string();
    assert!(why.ends_with("its vjp's input count is 5, not 4"), "{why}");
}
