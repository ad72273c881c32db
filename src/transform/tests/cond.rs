//! `cond`: first and second derivatives of both branches, the text form, and simplification.

use super::{check_twice, eval, f64s, func, vjp};
use crate::array::{Array, DType};
use crate::backend;
use crate::graph::{Cond, Func, Op, Type, UnaryOp, verify};
use crate::transform::{optimize, simplify};
use std::sync::Arc;

/// A function of pred, x, y, z with a `cond` whose branches return (sin(x) y, x, z) or (y, x^2, z). The third
/// result is unused, so z has no effect.
fn choice() -> Func {
    let t = || f64s([2]);
    let then = func(&[t(), t(), t()], |b, x| {
        let s = b.unary(UnaryOp::Sin, x[0]);
        vec![b.mul(s, x[1]), x[0], x[2]]
    });
    let otherwise = func(&[t(), t(), t()], |b, x| vec![x[1], b.mul(x[0], x[0]), x[2]]);
    let op = Op::Cond(Arc::new(Cond { then, otherwise }));
    func(&[Type::scalar(DType::Bool), t(), t(), t()], |b, x| {
        let both = b.push(op, x, None);
        let (p, q) = (b.proj(both, 0), b.proj(both, 1));
        vec![b.mul(p, q), p]
    })
}

fn at(pred: f64) -> Vec<Array> {
    let mut flag = Array::zeros(DType::Bool, []);
    flag.data_mut().set_f64(0, pred);
    vec![
        flag,
        Array::from_vec([2], vec![0.4, 1.9]),
        Array::from_vec([2], vec![1.3, -0.7]),
        Array::from_vec([2], vec![f64::NAN, 0.0]),
    ]
}

#[test]
fn both_branches_have_their_derivatives_at_any_order() {
    for pred in [0.0, 1.0] {
        check_twice(&choice(), &at(pred), &[1, 2], &format!("pred {pred}"));
    }
}

#[test]
fn a_choice_compiles_to_the_numbers_of_the_interpreter() {
    let f = vjp(&choice(), &[0, 1], &[1, 2]).unwrap();
    for pred in [0.0, 1.0] {
        let mut x = at(pred);
        x.extend(at(pred)[1..3].to_vec());
        let got = backend::run_once(&optimize(&f), &x.iter().collect::<Vec<_>>());
        for (got, want) in got.iter().zip(eval(&f, &x)) {
            let pairs = got.to_f64().into_iter().zip(want.to_f64());
            pairs.for_each(|(g, w)| assert!((g - w).abs() < 1e-12, "pred {pred}: {g} {w}"));
        }
    }
}

#[test]
fn operands_that_no_branch_reads_and_unused_results_are_removed() {
    let f = simplify(&choice());
    let node = f.nodes().iter().find(|n| matches!(n.op, Op::Cond(_))).unwrap();
    let Op::Cond(c) = &node.op else { unreachable!() };
    assert_eq!((node.args.len(), c.then.num_outputs(), c.otherwise.num_inputs()), (3, 2, 2));
}

#[test]
fn a_choice_prints_and_reads_back() {
    let f = choice();
    assert_eq!(Func::parse(&f.to_string()).unwrap(), f);
}

#[test]
fn branches_of_other_signatures_are_malformed() {
    let t = || f64s([2]);
    let then = func(&[t()], |_, x| vec![x[0]]);
    let otherwise = func(&[t()], |b, x| vec![b.reshape(x[0], [1, 2])]);
    let f = func(&[Type::scalar(DType::Bool), t()], |b, x| {
        let both = b.push(Op::Cond(Arc::new(Cond { then, otherwise })), x, None);
        vec![b.proj(both, 0)]
    });
    let why = verify(&f).unwrap_err().to_string();
    assert!(why.ends_with("its otherwise's output 0 is f64[1,2], not f64[2]"), "{why}");
}
