//! Programs of one element: their results are bitwise equal to those of the same program over many elements.

use super::{Rng, bits, run};
use crate::array::{Array, DType};
use crate::backend::cpu::Plan;
use crate::backend::cpu::run::step::Step;
use crate::graph::{BinaryOp, Builder, CompareOp, FloatFn, Func, Op, ScalarFn, Type, UnaryOp};
use crate::simd::Level;

/// Operations whose bits agree on all levels, operations that differ, and conversions between the two.
fn function(ty: &Type) -> Func {
    let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty.clone()]);
    let mut values = vec![b.unary(UnaryOp::Exp, x[0])];
    for f in FloatFn::ALL {
        let x = f.domain().of(&mut b, x[0]);
        values.push(b.unary(f.op(), x));
    }
    for f in ScalarFn::ALL {
        let operands = x.iter().zip(f.domains()).map(|(&x, domain)| domain.of(&mut b, x)).collect::<Vec<_>>();
        values.push(b.push(Op::Scalar(*f), &operands, None));
    }
    values.push(b.unary(UnaryOp::Powf(0.3f64.to_bits()), values[0]));
    for k in 1..values.len() {
        values.push(b.binary(BinaryOp::Mul, values[k - 1], values[k]));
        let less = b.compare(CompareOp::Lt, values[k], x[1]);
        values.push(b.select(less, values[k], x[1]));
    }
    for coeffs in [vec![0.5, -1.25, 3.0, 0.1], vec![1.0, 2.0], vec![0.3]] {
        let terms = values[values.len() - coeffs.len()..].to_vec();
        let coeffs = coeffs.into_iter().map(f64::to_bits).collect();
        values.push(b.push(Op::Lincomb { coeffs }, &terms, None));
    }
    let word = b.cast(values[0], DType::I32);
    values.extend([word, b.cast(word, ty.dtype())]);
    b.finish(&values)
}

#[test]
fn one_element_has_the_bits_of_the_same_among_many() {
    for dtype in [DType::F32, DType::F64] {
        let many = Type::array(dtype, [9]);
        let mut rng = Rng(5);
        let inputs = [0, 1].map(|_| rng.array(&many));
        for level in Level::available() {
            let all: Vec<Vec<u64>> =
                run(&Plan::compile(&function(&many), level), &inputs).iter().map(bits).collect();
            let plan = Plan::compile(&function(&Type::array(dtype, [])), level);
            let is_one = |step: &Step| matches!(step, Step::Strip(p) if p.ones.is_some());
            assert!(plan.0.steps.iter().all(is_one), "a program of one element runs on registers");
            for i in 0..9 {
                let element = inputs.each_ref().map(|x| Array::scalar(x.dtype(), x.to_f64()[i]));
                let alone = run(&plan, &element);
                for (k, (got, want)) in alone.iter().zip(&all).enumerate() {
                    assert_eq!(bits(got)[0], want[i], "output {k}, element {i} at {level:?}");
                }
            }
        }
    }
}
