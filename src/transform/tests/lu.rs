//! LU factorizations and linear systems: derivatives of first and second order, and batches.
//!
//! Ranges: orders 1 to 5, 1 to 3 right-hand sides, with and without batch axes, transposed or not; regular matrices with
//! drawn permutations.

use super::*;
use crate::graph::{FactorOp, Op};
use crate::ode::tests::draw::{Draw, num_cases};

/// A matrix near a drawn permutation of a diagonal one, for each index of the batch axes.
fn matrices(draw: &mut Draw, lead: &[usize], n: usize) -> Array {
    let shape = [lead, &[n, n]].concat();
    let mut out = Vec::new();
    for _ in 0..lead.iter().product() {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| order.swap(i, draw.below(i + 1)));
        for &place in &order {
            out.extend((0..n).map(|j| draw.uniform(-0.5, 0.5) + if j == place { 2.0 } else { 0.0 }));
        }
    }
    Array::from_vec(shape, out)
}

fn numbers(draw: &mut Draw, shape: Vec<usize>) -> Array {
    let len = shape.iter().product();
    Array::from_vec(shape, (0..len).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<f64>>())
}

/// The solution for each drawn matrix and right-hand side; the factors alone, without the permutation.
fn functions(lead: &[usize], (n, m): (usize, usize), transposed: bool) -> [Func; 2] {
    let of = |last: [usize; 2]| f64s([lead, &last].concat());
    let solution = func(&[of([n, n]), of([n, m])], |b, x| {
        let factors = b.push(Op::Factor(FactorOp::Lu), &[x[0]], None);
        vec![b.push(Op::LuSolve { transposed }, &[factors, x[0], x[1]], None)]
    });
    let factors = func(&[of([n, n])], |b, x| {
        let all = b.push(Op::Factor(FactorOp::Lu), &[x[0]], None);
        let (start, mut limit) = (vec![0; lead.len() + 2], [lead, &[n, n]].concat());
        limit[lead.len()] = n;
        vec![b.push(Op::Slice { start, limit }, &[all], None)]
    });
    [solution, factors]
}

#[test]
fn drawn_systems_and_factors_have_their_derivatives() {
    let (mut draw, mut seen) = (Draw(41), [0; 3]);
    for case in 0..num_cases(12) {
        let lead = draw.one(&[vec![], vec![], vec![2], vec![1, 2]]);
        let (n, m, transposed) = (1 + draw.below(5), 1 + draw.below(3), draw.coin());
        let [solution, factors] = functions(&lead, (n, m), transposed);
        let (a, b) = (matrices(&mut draw, &lead, n), numbers(&mut draw, [&lead[..], &[n, m]].concat()));
        let what = format!("case {case}: lead {lead:?}, n={n}, m={m}, transposed={transposed}");
        check_twice(&solution, &[a.clone(), b.clone()], &[0, 1], &what);
        check_twice(&solution, &[a.clone(), b], &[0], &what);
        check_twice(&factors, &[a], &[0], &what);
        let found = [!lead.is_empty(), transposed, n > 3];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn a_solution_has_no_derivative_by_its_factors() {
    let [solution, _] = functions(&[], (3, 1), false);
    // The backward pass solves one system more, and factors nothing again.
    let count = |f: &Func, is: fn(&Op) -> bool| f.nodes().iter().filter(|node| is(&node.op)).count();
    for f in [vjp(&solution, &[0], &[0, 1]).unwrap(), jvp(&solution, &[0, 1])] {
        assert_eq!(count(&f, |op| matches!(op, Op::Factor(FactorOp::Lu))), 1);
        assert_eq!(count(&f, |op| matches!(op, Op::LuSolve { .. })), 2);
    }
}
