//! Triangular systems: derivatives of first and second order.
//!
//! Ranges: orders 0 to 5, 0 to 3 right-hand sides, with and without batch axes, all eight kinds of triangles.

use super::*;
use crate::graph::{Op, Triangle};
use crate::ode::tests::draw::{Draw, num_cases};

#[test]
fn drawn_triangular_systems_have_their_derivatives() {
    let (mut draw, mut seen) = (Draw(43), std::collections::BTreeSet::new());
    for case in 0..num_cases(24) {
        let lead = draw.one(&[vec![], vec![], vec![2], vec![1, 2]]);
        let (n, m) = (draw.below(6), draw.below(4));
        let triangle =
            Triangle { upper: case & 1 > 0, transposed: case & 2 > 0, unit_diagonal: case & 4 > 0 };
        let of = |last: [usize; 2]| [&lead[..], &last].concat();
        let f = func(&[f64s(of([n, n])), f64s(of([n, m]))], |b, x| {
            vec![b.push(Op::TriangularSolve(triangle), x, None)]
        });
        let mut numbers = |shape: Vec<usize>, shift: f64| {
            let columns = shape[shape.len() - 1].max(1);
            let place = |i: usize| if i % columns == i / columns % n.max(1) { shift } else { 0.0 };
            let all = (0..shape.iter().product()).map(|i| draw.uniform(-0.5, 0.5) + place(i));
            let all: Vec<f64> = all.collect();
            Array::from_vec(shape, all)
        };
        let (a, b) = (numbers(of([n, n]), 2.0), numbers(of([n, m]), 0.0));
        let what = format!("case {case}: {triangle:?}, lead {lead:?}, n={n}, m={m}");
        check_twice(&f, &[a.clone(), b.clone()], &[0, 1], &what);
        check_twice(&f, &[a, b], &[0], &what);
        seen.insert((n.min(2), m.min(2)));
    }
    assert!(seen.len() > 6, "{seen:?}");
}

#[test]
fn the_other_triangle_is_not_read_and_has_no_cotangent() {
    for (triangle, [above, below]) in [(Triangle::LOWER, [f64::NAN, 1.0]), (Triangle::UPPER, [1.0, f64::NAN])]
    {
        let of = |x: Triangle| {
            func(&[f64s([2, 2]), f64s([2, 1])], |b, a| vec![b.push(Op::TriangularSolve(x), a, None)])
        };
        let x =
            [Array::from_vec([2, 2], vec![2.0, above, below, 4.0]), Array::from_vec([2, 1], vec![2.0, 8.0])];
        let ones = Array::from_vec([2, 1], vec![1.0, 1.0]);
        for triangle in [triangle, triangle.transposed()] {
            let f = vjp(&of(triangle), &[0], &[0]).unwrap();
            let found = eval(&f, &[&x[..], std::slice::from_ref(&ones)].concat());
            assert!(found[0].to_f64().iter().all(|x| x.is_finite()));
            let outside = if triangle.upper { 2 } else { 1 };
            assert_eq!(found[1].to_f64()[outside], 0.0, "{triangle:?}");
            assert!(found[1].to_f64().iter().all(|x| x.is_finite()));
        }
    }
}
