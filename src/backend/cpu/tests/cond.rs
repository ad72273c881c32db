//! Conditionals in a plan: one body runs, and nothing is allocated.

use super::{Rng, allocations};
use crate::array::{Array, DType};
use crate::backend::BodyKind;
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{Builder, Cond, Func, Op, Type};
use crate::simd::Level;
use std::sync::Arc;

/// From (pred, x): (p, q) is (x x^T, x) if pred, else (x, 2 x). The outputs are p + q and q.
fn choice() -> Func {
    let ty = Type::array(DType::F32, [8, 8]);
    let branch = |product: bool| {
        let (mut b, x) = Builder::with_inputs(std::slice::from_ref(&ty));
        let y = if product { b.dot(x[0], x[0], false, true) } else { b.scale(x[0], 2.0) };
        b.finish(&if product { [y, x[0]] } else { [x[0], y] })
    };
    let op = Op::Cond(Arc::new(Cond { then: branch(true), otherwise: branch(false) }));
    let (mut b, x) = Builder::with_inputs(&[Type::scalar(DType::Bool), ty.clone()]);
    let both = b.push(op, &x, None);
    let (p, q) = (b.proj(both, 0), b.proj(both, 1));
    let sum = b.add(p, q);
    b.finish(&[sum, q])
}

#[test]
fn either_branch_runs_at_every_level_and_allocates_nothing() {
    let x = Rng(5).array(&Type::array(DType::F32, [8, 8]));
    let v = x.to_f64();
    let product = |i: usize| (0..8).map(|k| v[i / 8 * 8 + k] * v[i % 8 * 8 + k]).sum::<f64>();
    for level in Level::available() {
        let plan = Plan::compile(&choice(), level);
        let kinds: Vec<BodyKind> = plan.report().bodies.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [BodyKind::Then, BodyKind::Otherwise]);
        let mut ws = Workspace::new();
        let mut out: [Array; 2] = std::array::from_fn(|_| Array::zeros(DType::F32, [8, 8]));
        let flags = [0.0, 1.0].map(|x| Array::scalar(DType::Bool, x));
        for round in 0..3 {
            let before = allocations();
            for (pred, flag) in flags.iter().enumerate() {
                plan.run_arrays(&mut ws, &[flag, &x], &mut out);
                for i in 0..64 {
                    let (first, second) = if pred == 1 { (product(i), v[i]) } else { (v[i], 2.0 * v[i]) };
                    let got = out.each_ref().map(|a| a.data().get_f64(i));
                    assert!((got[0] - first - second).abs() < 1e-5 && got[1] == second, "{i}: {got:?}");
                }
            }
            assert!(round == 0 || allocations() == before, "round {round}");
        }
    }
}
