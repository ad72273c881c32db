//! Radii of LU factors and of the solutions of linear systems.
//!
//! They are first-order bounds, doubled. Factors are those of a matrix that is off by 4 n units of |L| |U| (Higham 2002,
//! Accuracy and Stability of Numerical Algorithms, theorem 9.3). A radius is infinite if the second order counts, or if
//! another row could have the pivot.

use super::super::{Rng, f64s};
use super::{Ball, outputs};
use crate::array::Array;
use crate::graph::tests::arbitrary::regular;
use crate::graph::{Builder, FactorOp, Op};
use std::cmp::Ordering;
use std::ops::Mul;

/// The largest relative change for which the first order is the bound.
const SMALL: f64 = 0.1;

/// A matrix, row by row.
#[derive(Clone)]
pub(super) struct Matrix(Vec<Vec<f64>>);

impl Matrix {
    pub(super) fn new((rows, columns): (usize, usize), f: impl Fn(usize, usize) -> f64) -> Matrix {
        Matrix((0..rows).map(|i| (0..columns).map(|j| f(i, j)).collect()).collect())
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.0[i][j]
    }

    pub(super) fn sides(&self) -> (usize, usize) {
        (self.0.len(), self.0.first().map_or(0, Vec::len))
    }

    pub(super) fn map(&self, f: impl Fn(usize, usize, f64) -> f64) -> Matrix {
        Matrix::new(self.sides(), |i, j| f(i, j, self.at(i, j)))
    }

    pub(super) fn sizes(&self) -> Matrix {
        self.map(|_, _, x| x.abs())
    }

    pub(super) fn plus(&self, other: &Matrix) -> Matrix {
        self.map(|i, j, x| x + other.at(i, j))
    }

    pub(super) fn transposed(&self) -> Matrix {
        let (rows, columns) = self.sides();
        Matrix::new((columns, rows), |i, j| self.at(j, i))
    }

    /// The inverse of a lower triangular matrix.
    pub(super) fn inverse(&self) -> Matrix {
        let n = self.0.len();
        let mut x = Matrix::new((n, n), |i, j| f64::from(u8::from(i == j)));
        for i in 0..n {
            for j in 0..n {
                let known: f64 = (0..i).map(|k| self.at(i, k) * x.at(k, j)).sum();
                x.0[i][j] = (x.at(i, j) - known) / self.at(i, i);
            }
        }
        x
    }

    /// Whether each row has a sum of at most [`SMALL`]; not if an entry is NaN.
    pub(super) fn is_small(&self) -> bool {
        self.0.iter().all(|row| row.iter().sum::<f64>() <= SMALL)
    }
}

impl Mul for &Matrix {
    type Output = Matrix;

    fn mul(self, other: &Matrix) -> Matrix {
        let sum = |i: usize, j| self.0[i].iter().zip(&other.0).map(|(x, row)| x * row[j]).sum();
        Matrix::new((self.0.len(), other.sides().1), sum)
    }
}

/// Magnitudes of the parts of one factorization P a = L U.
struct Parts {
    lower: Matrix,
    upper: Matrix,
    of_lower: Matrix,
    of_upper: Matrix,
    /// The row of a that is row i of L U.
    rows: Vec<usize>,
}

impl Parts {
    /// Matrix e of a batch of factors.
    fn new(factors: &Array, e: usize, n: usize) -> Parts {
        let at = |i: usize, j: usize| factors.data().get_f64((e * (n + 1) + i) * n + j);
        let lower = Matrix::new((n, n), |i, j| match i.cmp(&j) {
            Ordering::Less => 0.0,
            Ordering::Equal => 1.0,
            Ordering::Greater => at(i, j),
        });
        let upper = Matrix::new((n, n), |i, j| if i <= j { at(i, j) } else { 0.0 });
        Parts {
            of_lower: lower.inverse().sizes(),
            of_upper: upper.transposed().inverse().transposed().sizes(),
            lower: lower.sizes(),
            upper: upper.sizes(),
            rows: (0..n).map(|i| at(n, i) as usize).collect(),
        }
    }

    /// The backward error of a factorization or of a solution with the factors.
    fn rounding(&self, unit: f64) -> Matrix {
        let n = self.rows.len();
        (&self.lower * &self.upper).map(|_, _, x| 4.0 * n as f64 * unit * x)
    }
}

/// The number of matrices, their rows and their columns.
pub(super) fn sides(x: &Array) -> (usize, usize, usize) {
    let (lead, &[rows, columns]) = x.shape().split_last_chunk().expect("a matrix has two axes");
    (lead.iter().product(), rows, columns)
}

/// The radii of the factors `value` of the matrices a. The permutation has none.
pub(super) fn factors(a: &Ball, value: &Array, unit: f64) -> Vec<f64> {
    let (count, n, _) = sides(&a.value);
    let mut radii = vec![];
    for e in 0..count {
        let parts = Parts::new(value, e, n);
        let of_a = Matrix::new((n, n), |i, j| a.radius[(e * n + parts.rows[i]) * n + j]);
        let off = of_a.plus(&parts.rounding(unit));
        let off = &(&parts.of_lower * &off) * &parts.of_upper;
        let lower = &parts.lower * &off.map(|i, j, x| if i > j { x } else { 0.0 });
        let upper = &off.map(|i, j, x| if i > j { 0.0 } else { x }) * &parts.upper;
        let both = lower.plus(&upper);
        let is_clear = (0..n).all(|i| (0..i).all(|j| parts.lower.at(i, j) + 2.0 * lower.at(i, j) < 1.0));
        let is_bound = is_clear && off.is_small();
        let size = |i, j| if i > j { parts.lower.at(i, j) } else { parts.upper.at(i, j) };
        for (i, j) in (0..=n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let radius = if i < n { 2.0 * both.at(i, j) + unit * size(i, j) } else { 0.0 };
            radii.push(if is_bound { radius } else { f64::INFINITY });
        }
    }
    radii
}

/// The radii of the solutions `value` of systems with these factors and right-hand sides.
pub(super) fn solutions(
    factors: &Ball,
    b: &Ball,
    (value, transposed): (&Array, bool),
    unit: f64,
) -> Vec<f64> {
    let (count, n, m) = sides(&b.value);
    let mut radii = vec![f64::INFINITY; count * n * m];
    for e in 0..count {
        let parts = Parts::new(&factors.value, e, n);
        let of_factors = Matrix::new((n, n), |i, j| factors.radius[(e * (n + 1) + i) * n + j]);
        let moved = &of_factors.map(|i, j, r| if i > j { r } else { 0.0 }) * &parts.upper;
        let moved = moved.plus(&(&parts.lower * &of_factors.map(|i, j, r| if i > j { 0.0 } else { r })));
        let mut off = moved.plus(&parts.rounding(unit));
        let mut inverse = &parts.of_upper * &parts.of_lower;
        if transposed {
            (off, inverse) = (off.transposed(), inverse.transposed());
        }
        // L U x = P b, or U^T L^T P x = b.
        let straight = |i: usize| if transposed { i } else { parts.rows[i] };
        let turned = |i: usize| if transposed { parts.rows[i] } else { i };
        let x = Matrix::new((n, m), |i, c| value.data().get_f64((e * n + turned(i)) * m + c).abs());
        let of_b = Matrix::new((n, m), |i, c| b.radius[(e * n + straight(i)) * m + c]);
        if !(&inverse * &off).is_small() {
            continue;
        }
        let radius = &inverse * &(&off * &x).plus(&of_b);
        for (i, c) in (0..n).flat_map(|i| (0..m).map(move |c| (i, c))) {
            radii[(e * n + turned(i)) * m + c] = 2.0 * radius.at(i, c) + unit * x.at(i, c);
        }
    }
    radii
}

#[test]
fn radii_are_small_for_regular_matrices_and_infinite_if_pivots_nearly_tie() {
    for n in 0..10 {
        let (mut b, x) = Builder::with_inputs(&[f64s([n, n]), f64s([n, 2])]);
        let a = regular(&mut b, x[0], &(0..n).rev().collect::<Vec<_>>());
        let factors = b.push(Op::Factor(FactorOp::Lu), &[a], None);
        let solve = |transposed| b.push(Op::LuSolve { transposed }, &[factors, a, x[1]], None);
        let [straight, turned] = [false, true].map(solve);
        let f = b.finish(&[factors, straight, turned]);
        let mut rng = Rng(n as u64);
        let at: Vec<Array> = f.input_types().iter().map(|ty| rng.array(ty)).collect();
        for (k, ball) in outputs(&f, &at).into_iter().enumerate() {
            let largest = ball.radius.iter().fold(0.0, |m: f64, r| m.max(*r));
            assert!(largest < 1e-11 && (n == 0 || largest > 1e-16), "output {k}, n={n}: {largest:e}");
        }
    }
    let (mut b, x) = Builder::with_inputs(&[f64s([2, 2])]);
    let factors = b.push(Op::Factor(FactorOp::Lu), &[x[0]], None);
    let f = b.finish(&[factors]);
    for (first, is_near) in [(1.0 - f64::EPSILON, true), (0.5, false)] {
        let ball = &outputs(&f, &[Array::from_vec([2, 2], vec![first, 2.0, 1.0, 3.0])])[0];
        assert_eq!(ball.radius.iter().all(|r| r.is_infinite()), is_near, "{:?}", ball.radius);
    }
}
