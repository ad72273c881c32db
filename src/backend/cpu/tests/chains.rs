//! Merged arithmetic instructions: their results are bitwise equal to those of separate instructions.

use super::{Rng, bits, check, f32s, f64s, run};
use crate::backend::cpu::Plan;
use crate::backend::cpu::run::step::Step;
use crate::graph::{BinaryOp, Builder, Func, NodeId, Type};
use crate::simd::Level;

/// A computation on inputs. It returns values, each computed from inputs and earlier values; the last is the
/// result.
type Chain = dyn Fn(&mut Builder, &[NodeId]) -> Vec<NodeId>;

/// The function, and a variant that outputs all values, so that no instructions can be merged.
fn functions(ty: &Type, chain: &Chain) -> [Func; 2] {
    [1, usize::MAX].map(|num| {
        let (mut b, x) = Builder::with_inputs(&[ty.clone(), ty.clone(), ty.clone()]);
        let values = chain(&mut b, &x);
        let given: Vec<NodeId> = values.into_iter().rev().take(num).collect();
        b.finish(&given)
    })
}

fn num_instructions(plan: &Plan) -> usize {
    plan.0.steps.iter().map(|step| if let Step::Strip(p) = step { p.instrs.len() } else { 0 }).sum()
}

fn check_chain(what: &str, chain: &Chain) {
    for (n, seed) in [(3, 1), (17, 2), (600, 3)] {
        for ty in [f32s([n]), f64s([n])] {
            let both = functions(&ty, chain);
            check(&both[0], seed);
            for level in Level::available() {
                let plans = both.each_ref().map(|f| Plan::compile(f, level));
                assert_eq!(num_instructions(&plans[0]), 1, "{what}");
                let mut rng = Rng(seed);
                let inputs = [0, 1, 2].map(|_| rng.array(&ty));
                let [alone, apart] = plans.map(|plan| bits(&run(&plan, &inputs)[0]));
                assert_eq!(alone, apart, "{what} of {n} at {level:?}");
            }
        }
    }
}

#[test]
fn sums_differences_and_products_in_twos_round_as_one_after_the_other() {
    let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul];
    for first in ops {
        for second in ops {
            for flipped in [false, true] {
                check_chain(&format!("{first:?} {second:?} {flipped}"), &move |b, x| {
                    let inner = b.binary(first, x[0], x[1]);
                    let args = if flipped { [x[2], inner] } else { [inner, x[2]] };
                    vec![inner, b.binary(second, args[0], args[1])]
                });
            }
        }
    }
}

#[test]
fn the_gate_of_a_tangent_rounds_as_its_parts() {
    check_chain("1 - x^2", &|b, x| {
        let (square, one) = (b.mul(x[0], x[0]), b.splat_like(x[0], 1.0));
        vec![square, b.sub(one, square)]
    });
    for flipped in [false, true] {
        check_chain("g (1 - x^2)", &move |b, x| {
            let (square, one) = (b.mul(x[0], x[0]), b.splat_like(x[0], 1.0));
            let falls = b.sub(one, square);
            vec![square, falls, if flipped { b.mul(falls, x[1]) } else { b.mul(x[1], falls) }]
        });
    }
}
