//! Cholesky and QR factorizations, eigenvalues, triangular systems, least squares.
//!
//! Ranges: orders and sides 0, 1, 2, 3, 5, 8 and 13 (up to 5 for second derivatives), no batch axes and batches of 2 and of
//! 2 x 1; matrices with well determined factors, with equal eigenvalues, of low rank, not positive definite, with a NaN; f64
//! and f32.

use super::*;
use crate::array::refusal;
use crate::nn::prelude::{grad, hvp, jit, vmap};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::jvp;

const SIZES: [usize; 7] = [0, 1, 2, 3, 5, 8, 13];

fn drawn(draw: &mut Draw, shape: &[usize]) -> Tensor {
    let numbers = (0..shape.iter().product()).map(|_| draw.uniform(-0.5, 0.5)).collect::<Vec<f64>>();
    Tensor::from_vec(shape.to_vec(), numbers)
}

/// Matrices with large numbers on the diagonal, which differ by at least 1.
fn determined(draw: &mut Draw, lead: &[usize], [m, n]: [usize; 2]) -> Tensor {
    let shape = [lead, &[m, n]].concat();
    let place = |i: usize| if i % n == i / n % m { (m.max(n) + i % n) as f64 } else { 0.0 };
    let large: Vec<f64> = (0..shape.iter().product()).map(place).collect();
    drawn(draw, &shape) + Tensor::from_vec(shape.clone(), large)
}

fn off(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    if a.size() == 0 { 0.0 } else { (a - b).abs().max().item() }
}

/// All entries of several tensors, as one vector.
fn joined(parts: &[Tensor]) -> Tensor {
    let flat: Vec<Tensor> = parts.iter().map(|x| x.reshape([x.size()])).collect();
    Tensor::concat(&flat.iter().collect::<Vec<_>>(), 0)
}

type Function<'a> = &'a dyn Fn(&Tensor) -> Tensor;

/// Central differences along a direction, with an error of fourth order.
fn differences(f: Function, x: &Tensor, dx: &Tensor) -> Tensor {
    let at = |h: f64| (f(&(x + dx * h)) - f(&(x - dx * h))) * (0.5 / h);
    (at(1e-3) * 4.0 - at(2e-3)) * (1.0 / 3.0)
}

/// Checks the first derivatives of a function to a vector, and the second one of a sum.
fn check(draw: &mut Draw, f: Function, x: &Tensor, twice: bool, what: &str) {
    let dx = drawn(draw, x.shape());
    let (y, dy) = jvp(f, x, &dx);
    assert!(off(&y, &f(x)) == 0.0, "{what}: jvp keeps the values");
    let want = differences(f, x, &dx);
    let room = 1e-8 * (1.0 + if want.size() == 0 { 0.0 } else { want.abs().max().item() });
    assert!(off(&dy, &want) < room, "{what}: jvp is off by {:e}", off(&dy, &want));
    let u = drawn(draw, y.shape());
    let total = |x: &Tensor| (f(x) * u.clone()).sum();
    let gradient = grad(total, x);
    let (left, right) = ((&gradient * &dx).sum().item(), (&u * &dy).sum().item());
    assert!((left - right).abs() < 1e-11 * (1.0 + left.abs()), "{what}: {left} by vjp, {right} by jvp");
    if twice {
        let (_, second) = hvp(total, x, &dx);
        let want = differences(&|x: &Tensor| grad(total, x), x, &dx);
        let room = 1e-7 * (1.0 + if want.size() == 0 { 0.0 } else { want.abs().max().item() });
        assert!(
            off(&second, &want) < room,
            "{what}: the second derivative is off by {:e}",
            off(&second, &want)
        );
    }
}

/// The functions of square matrices, and of any.
const SQUARE: [(&str, fn(&Tensor) -> Tensor); 3] = [
    ("cholesky", cholesky),
    ("eigh", |a| {
        let (w, v) = eigh(a);
        joined(&[w, v])
    }),
    ("eigvalsh", eigvalsh),
];
const ANY: [(&str, fn(&Tensor) -> Tensor); 1] = [("qr", |a| {
    let (q, r) = qr(a);
    joined(&[q, r])
})];

#[test]
fn drawn_factors_have_their_derivatives() {
    let (mut draw, mut seen) = (Draw(71), std::collections::BTreeSet::new());
    for case in 0..num_cases(28) {
        let n = SIZES[case % SIZES.len()];
        let lead = if n > 5 { vec![] } else { draw.one(&[vec![], vec![2], vec![2, 1]]) };
        let a = determined(&mut draw, &lead, [n, n]);
        let (name, f) = SQUARE[case % SQUARE.len()];
        let what = format!("case {case}: {name} {lead:?} n={n}");
        check(&mut draw, &|a| joined(&[f(a)]), &a, n < 4, &what);
        let m = draw.one(&SIZES[..if n > 5 { 4 } else { 7 }]);
        let a = determined(&mut draw, &lead, [m, n]);
        let (name, f) = ANY[0];
        check(&mut draw, &f, &a, m * n < 9, &format!("case {case}: {name} {lead:?} {m}x{n}"));
        seen.insert((m.cmp(&n), lead.len()));
    }
    assert!(seen.len() > 7, "{seen:?}");
}

#[test]
fn drawn_solutions_have_their_derivatives() {
    let mut draw = Draw(72);
    for case in 0..num_cases(20) {
        let (m, n, p) = (1 + draw.below(5), 1 + draw.below(5), 1 + draw.below(3));
        let b = drawn(&mut draw, &[2, m, p]);
        let a = determined(&mut draw, &[2], [m, n]);
        check(&mut draw, &|a| joined(&[lstsq(a, &b)]), &a, case % 4 == 0, &format!("lstsq {m}x{n}"));
        check(&mut draw, &|b| joined(&[lstsq(&a, b)]), &b, false, &format!("lstsq {m}x{n}, right"));
        let a = determined(&mut draw, &[2], [m, m]);
        let triangle = Triangle { upper: draw.coin(), transposed: draw.coin(), unit_diagonal: false };
        check(
            &mut draw,
            &|a| joined(&[triangular_solve(a, &b, triangle)]),
            &a,
            true,
            &format!("{triangle:?}"),
        );
        let solution = |a: &Tensor| joined(&[cholesky_solve(&cholesky(a), &b)]);
        check(&mut draw, &solution, &a, false, &format!("cholesky_solve {m}"));
    }
}

#[test]
fn factors_multiply_to_their_matrices() {
    let mut draw = Draw(73);
    for _ in 0..num_cases(40) {
        let (m, n) = (draw.one(&SIZES), draw.one(&SIZES));
        let lead = draw.one(&[vec![], vec![2], vec![2, 1], vec![0]]);
        let dtype = draw.one(&[DType::F32, DType::F64]);
        let room = if dtype == DType::F32 { 1e-4 } else { 1e-12 };
        let a = determined(&mut draw, &lead, [n, n]).cast(dtype);
        let (even, lower) = (symmetric(&a), cholesky(&a));
        assert!(off(&lower.matmul(&turned(&lower)), &even) < room);
        let (w, v) = eigh(&a);
        assert!(off(&even.matmul(&v), &(&v * w.expand_dims(lead.len()))) < room);
        assert!(off(&eigvalsh(&a), &w) == 0.0);
        let one = Tensor::eye(dtype, n).broadcast_to(v.shape().clone());
        assert!(off(&turned(&v).matmul(&v), &one) < room);
        let a = determined(&mut draw, &lead, [m, n]).cast(dtype);
        let (q, r) = qr(&a);
        assert_eq!((q.shape()[lead.len() + 1], r.shape()[lead.len()]), (m.min(n), m.min(n)));
        assert!(off(&q.matmul(&r), &a) < room);
        let one = Tensor::eye(dtype, m.min(n)).broadcast_to([&lead[..], &[m.min(n); 2]].concat());
        assert!(off(&turned(&q).matmul(&q), &one) < room);
    }
}

#[test]
fn solutions_fit_and_leading_axes_broadcast() {
    let mut draw = Draw(74);
    for _ in 0..num_cases(40) {
        let (m, n, p) = (draw.one(&SIZES), draw.one(&SIZES), draw.below(4));
        let (of_a, of_b) = draw.one(&[
            (vec![], vec![]),
            (vec![2], vec![2]),
            (vec![], vec![3, 2]),
            (vec![1], vec![4]),
            (vec![3], vec![]),
            (vec![2, 1], vec![3]),
        ]);
        let a = determined(&mut draw, &of_a, [m, n]);
        let b = drawn(&mut draw, &[&of_b[..], &[m, p]].concat());
        let x = lstsq(&a, &b);
        let residual = a.matmul(&x) - &b;
        if m >= n {
            // The residual is orthogonal to the columns of a.
            let sums = turned(&a).matmul(&residual);
            assert!(off(&sums, &(&sums * 0.0)) < 1e-11);
        } else {
            assert!(off(&residual, &(&residual * 0.0)) < 1e-12);
            // x is a combination of the rows of a.
            let across = solve(&a.matmul(&turned(&a)), &b);
            assert!(off(&turned(&a).matmul(&across), &x) < 1e-12);
        }
        let v = drawn(&mut draw, &[m]);
        let y = lstsq(&a, &v);
        assert_eq!(y.shape().to_vec(), [&of_a[..], &[n]].concat());
        let a = determined(&mut draw, &of_a, [m, m]);
        let x = cholesky_solve(&cholesky(&a), &b);
        assert!(off(&solve(&symmetric(&a), &b), &x) < 1e-13);
        let upper = triangular_solve(&a, &b, Triangle::UPPER);
        let rows = place(m, |i, j| i.le(j)).cast(DType::F64);
        assert!(off(&solve(&(&a * rows), &b), &upper) < 1e-13);
    }
}

#[test]
fn gradients_by_symmetric_matrices_are_symmetric() {
    let mut draw = Draw(75);
    let a = determined(&mut draw, &[], [5, 5]);
    for (name, f) in SQUARE {
        let y = f(&a);
        let u = drawn(&mut draw, y.shape());
        let g = grad(|a: &Tensor| (f(a) * u.clone()).sum(), &a);
        assert!(off(&g, &turned(&g)) < 1e-15, "{name}");
    }
    // The sum of the logarithms of the diagonal of L is half of log det a, whose derivative is a^-1.
    let half = grad(|a: &Tensor| cholesky(a).diagonal().ln().sum() * 2.0, &a);
    assert!(off(&half, &inverse(&symmetric(&a))) < 1e-14);
    assert!(off(&grad(|a: &Tensor| eigvalsh(a).ln().sum(), &a), &half) < 1e-14);
}

#[test]
fn equal_eigenvalues_have_a_derivative_but_their_vectors_have_none() {
    let a = Tensor::eye(DType::F64, 3) * 2.0;
    let squares = grad(|a: &Tensor| eigvalsh(a).square().sum(), &a);
    assert_eq!(squares.to_vec(), (&a * 2.0).to_vec());
    let vectors = grad(|a: &Tensor| eigh(a).1.sum(), &a);
    assert!(vectors.to_vec().iter().any(|x| !x.is_finite()));
}

#[test]
fn matrices_without_factors_give_nan() {
    let mut draw = Draw(76);
    let good = determined(&mut draw, &[], [3, 3]);
    let bad = Tensor::from_vec(vec![3, 3], vec![1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let nan = Tensor::from_vec(vec![3, 3], vec![1.0, 0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0, 1.0]);
    let both = Tensor::stack(&[&good, &bad, &nan]);
    let lower = cholesky(&both).to_vec();
    assert_eq!(lower[..9], cholesky(&good).to_vec());
    let is_below = |i: usize| i % 3 <= i / 3 % 3;
    assert!((9..27).all(|i| if is_below(i) { lower[i].is_nan() } else { lower[i] == 0.0 }));
    let (w, v) = eigh(&both);
    assert!(w.to_vec()[6..].iter().chain(&v.to_vec()[18..]).all(|x| x.is_nan()));
    assert!(w.to_vec()[..6].iter().chain(&v.to_vec()[..18]).all(|x| x.is_finite()));
    // A column of zeros: the solution is not finite.
    let x = lstsq(&Tensor::from([[1.0, 0.0], [2.0, 0.0]]), &Tensor::from([1.0, 1.0]));
    assert!(x.to_vec().iter().any(|x| !x.is_finite()));
}

#[test]
fn compiled_and_mapped_factors_have_the_same_bits() {
    let mut draw = Draw(77);
    let (a, b) = (determined(&mut draw, &[5], [3, 3]), drawn(&mut draw, &[5, 3]));
    let all = |a: &Tensor, b: &Tensor| {
        let lower = cholesky(a);
        let ((w, v), (q, r)) = (eigh(a), qr(a));
        let x = triangular_solve(a, b, Triangle::LOWER);
        joined(&[cholesky_solve(&lower, b), lower, w, v, q, r, x, lstsq(a, b)])
    };
    let mapped = vmap(|x: &(Tensor, Tensor)| Ok(all(&x.0, &x.1)), &(a.clone(), b.clone())).unwrap();
    let compiled = jit(|a: Tensor, b: Tensor| vmap(|x: &(Tensor, Tensor)| Ok(all(&x.0, &x.1)), &(a, b)));
    let alone: Vec<f64> = (0..5).flat_map(|e| all(&a.index(e), &b.index(e)).to_vec()).collect();
    assert_eq!((mapped.to_vec(), compiled.call(&a, &b).unwrap().to_vec()), (alone.clone(), alone));
    // Right-hand sides of one matrix become columns of one system.
    let one = a.index(0);
    let shared = vmap(|b: &Tensor| Ok(triangular_solve(&one, b, Triangle::UPPER)), &b).unwrap();
    let alone: Vec<f64> =
        (0..5).flat_map(|e| triangular_solve(&one, &b.index(e), Triangle::UPPER).to_vec()).collect();
    assert_eq!(shared.to_vec(), alone);
}

#[test]
fn operands_that_do_not_fit_are_named() {
    let of = |shape: &[usize]| Tensor::zeros(shape.to_vec());
    let wide = of(&[2, 3]);
    let square = "is not a square matrix or a batch of them, [.., n, n], of floats";
    assert_eq!(refusal(|| cholesky(&wide)), format!("linalg::cholesky: {wide:?} {square}"));
    assert_eq!(refusal(|| eigh(&wide)), format!("linalg::eigh: {wide:?} {square}"));
    assert_eq!(refusal(|| eigvalsh(&wide)), format!("linalg::eigvalsh: {wide:?} {square}"));
    let vector = of(&[3]);
    let any = "is not a matrix or a batch of them, [.., m, n], of floats";
    assert_eq!(refusal(|| qr(&vector)), format!("linalg::qr: {vector:?} {any}"));
    assert_eq!(refusal(|| lstsq(&vector, &vector)), format!("linalg::lstsq: {vector:?} {any}"));
    assert_eq!(
        refusal(|| lstsq(&wide, &vector)),
        format!("linalg::lstsq: {wide:?} and {vector:?} do not fit ([.., m, n] and [m] or [.., m, p])")
    );
    assert_eq!(
        refusal(|| triangular_solve(&of(&[2, 2]), &vector, Triangle::LOWER)),
        format!(
            "linalg::triangular_solve: {:?} and {vector:?} do not fit ([.., n, n] and [n] or [.., n, m])",
            of(&[2, 2])
        )
    );
}
