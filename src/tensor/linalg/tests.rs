//! Ranges: matrices of order 0 to 6 with drawn entries, batch axes that broadcast, one matrix with a batch of
//! right-hand sides.

use super::*;
use crate::array::refusal;
use crate::nn::prelude::{grad, jit, vmap};
use crate::ode::tests::draw::{Draw, num_cases};

fn drawn(draw: &mut Draw, shape: &[usize]) -> Tensor {
    let numbers = (0..shape.iter().product()).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<f64>>();
    Tensor::from_vec(shape.to_vec(), numbers)
}

/// A regular matrix for each index of the batch axes.
fn matrices(draw: &mut Draw, lead: &[usize], n: usize) -> Tensor {
    let shape = [lead, &[n, n]].concat();
    drawn(draw, &shape) + Tensor::eye(DType::F64, n).broadcast_to(shape) * 3.0
}

fn off(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.shape(), b.shape());
    if a.size() == 0 { 0.0 } else { (a - b).abs().max().item() }
}

/// The determinant by its first row.
fn by_rows(a: &[Vec<f64>]) -> f64 {
    let minor = |j: usize| -> Vec<Vec<f64>> {
        let without =
            |row: &Vec<f64>| row.iter().enumerate().filter(|(k, _)| *k != j).map(|(_, x)| *x).collect();
        a[1..].iter().map(without).collect()
    };
    let term = |j: usize| a[0][j] * by_rows(&minor(j)) * [1.0, -1.0][j % 2];
    if a.is_empty() { 1.0 } else { (0..a.len()).map(term).sum() }
}

#[test]
fn solutions_satisfy_their_systems_and_leading_axes_broadcast() {
    let (mut draw, mut seen) = (Draw(51), [0; 7]);
    for _ in 0..num_cases(40) {
        let (n, m) = (draw.below(7), draw.below(4));
        let lead = draw.one(&[
            (vec![], vec![]),
            (vec![2], vec![2]),
            (vec![], vec![3, 2]),
            (vec![1], vec![4]),
            (vec![3], vec![]),
            (vec![2, 1], vec![3]),
        ]);
        let (a, b) = (matrices(&mut draw, &lead.0, n), drawn(&mut draw, &[&lead.1[..], &[n, m]].concat()));
        let x = solve(&a, &b);
        let back = a.matmul(&x);
        assert!(off(&back, &b.broadcast_to(back.shape().clone())) < 1e-14 * 10.0);
        let v = drawn(&mut draw, &[n]);
        let y = solve(&a, &v);
        assert_eq!(y.shape().to_vec(), [&lead.0[..], &[n]].concat());
        assert!(off(&solve(&a, &v.expand_dims(1)), &y.expand_dims(y.rank())) == 0.0);
        seen[n] += 1;
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn factors_determinants_and_inverses_of_drawn_matrices() {
    let mut draw = Draw(52);
    for _ in 0..num_cases(30) {
        let (n, lead) = (draw.below(6), draw.one(&[vec![], vec![2], vec![2, 3]]));
        let shape = [&lead[..], &[n, n]].concat();
        let a = drawn(&mut draw, &shape);
        let f = lu(&a);
        let count: usize = lead.iter().product();
        let (sign, log) = slogdet(&a);
        assert!(off(&(&sign * log.exp()), &det(&a)) < 1e-13);
        for e in 0..count {
            let rows: Vec<Vec<f64>> = (0..n).map(|i| a.to_vec()[(e * n + i) * n..][..n].to_vec()).collect();
            let want = by_rows(&rows);
            assert!((det(&a).to_vec()[e] - want).abs() < 1e-13, "{rows:?}");
            let order = f.permutation.to_vec()[e * n..][..n].to_vec();
            let product = f.lower.matmul(&f.upper).to_vec();
            for (i, row) in order.iter().enumerate() {
                let off = |j: usize| (product[(e * n + i) * n + j] - rows[*row as usize][j]).abs();
                assert!((0..n).all(|j| off(j) < 1e-14 * 10.0));
            }
        }
        let a = matrices(&mut draw, &lead, n);
        let one = Tensor::eye(DType::F64, n).broadcast_to(shape);
        assert!(off(&a.matmul(&inverse(&a)), &one) < 1e-13);
    }
}

#[test]
fn derivatives_are_those_of_the_textbook() {
    let mut draw = Draw(53);
    let (a, b) = (matrices(&mut draw, &[], 4), drawn(&mut draw, &[4]));
    // d log|det a| = tr(a^-1 da), d det a = det a tr(a^-1 da)
    let turned = inverse(&a).transpose();
    assert!(off(&grad(|a: &Tensor| slogdet(a).1, &a), &turned) < 1e-14);
    assert!(off(&grad(det, &a), &(&turned * det(&a))) < 1e-11);
    // d sum(x) = 1^T a^-1 (db - da x)
    let weights = solve(&a.transpose(), &Tensor::full(DType::F64, [4], 1.0));
    assert!(off(&grad(|b: &Tensor| solve(&a, b).sum(), &b), &weights) < 1e-14);
    let by_a = -(weights.expand_dims(1).matmul(&solve(&a, &b).expand_dims(0)));
    assert!(off(&grad(|a: &Tensor| solve(a, &b).sum(), &a), &by_a) < 1e-14);
}

#[test]
fn a_singular_matrix_has_determinant_0_and_no_inverse() {
    let a = Tensor::from([[1.0, 2.0], [2.0, 4.0]]);
    assert_eq!((det(&a).item(), slogdet(&a).0.item(), slogdet(&a).1.item()), (0.0, 0.0, f64::NEG_INFINITY));
    assert!(solve(&a, &Tensor::from([1.0, 1.0])).to_vec().iter().all(|x| !x.is_finite()));
}

#[test]
fn compiled_and_mapped_functions_have_the_same_bits() {
    let mut draw = Draw(54);
    let (a, b) = (matrices(&mut draw, &[5], 3), drawn(&mut draw, &[5, 3]));
    let each = |a: &Tensor, b: &Tensor| solve(a, b);
    let mapped = vmap(|x: &(Tensor, Tensor)| Ok(each(&x.0, &x.1)), &(a.clone(), b.clone())).unwrap();
    let compiled = jit(|a: Tensor, b: Tensor| vmap(|x: &(Tensor, Tensor)| Ok(solve(&x.0, &x.1)), &(a, b)));
    let alone: Vec<f64> = (0..5).flat_map(|e| each(&a.index(e), &b.index(e)).to_vec()).collect();
    assert_eq!((mapped.to_vec(), compiled.call(&a, &b).unwrap().to_vec()), (alone.clone(), alone));
}

#[test]
fn operands_that_do_not_fit_are_named() {
    let of = |shape: &[usize]| Tensor::zeros(shape.to_vec());
    let integers = refusal(|| solve(&of(&[2, 2]), &Tensor::from([1, 2])));
    assert_eq!(integers, "linalg::solve: the right-hand side i32[2] is not of floats; cast it");
    assert_eq!(
        refusal(|| det(&of(&[2, 3]))),
        format!(
            "linalg::det: {:?} is not a square matrix or a batch of them, [.., n, n], of floats",
            of(&[2, 3])
        )
    );
    for (a, b) in [(&[2, 2][..], &[3][..]), (&[2, 2], &[]), (&[2, 3, 3], &[4, 3, 1]), (&[3, 3], &[3, 3, 2])] {
        let (a, b) = (of(a), of(b));
        let fits = std::panic::catch_unwind(|| solve(&a, &b)).is_ok();
        assert_eq!(fits, b.rank() == 3 && a.rank() == 2, "{a:?} {b:?}");
    }
}
