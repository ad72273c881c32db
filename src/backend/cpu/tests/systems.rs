//! LU factorizations and linear systems: values, bits of a matrix alone and among others, singular matrices.
//!
//! Ranges: orders 0 to 64; no batch axes, one of 0, 1 or 17 matrices, and two axes; 0 to 7 right-hand sides; f32 and f64;
//! transposed or not; entries drawn uniformly, rows scaled by up to 1e6 either way, permuted rows of a triangular matrix,
//! two equal rows, a column of zeros, one NaN or infinite entry; every CPU level.

use super::{allocations, bits, run};
use crate::array::{Array, DType};
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{Builder, FactorOp, Func, Op, Type, interpret};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::simd::Level;

/// `a [.., n, n]`, `b [.., n, m]` to the factors and the solutions.
fn system(dtype: DType, lead: &[usize], (n, m): (usize, usize), transposed: bool) -> Func {
    let of = |last: [usize; 2]| Type::array(dtype, [lead, &last].concat());
    let (mut b, x) = Builder::with_inputs(&[of([n, n]), of([n, m])]);
    let factors = b.push(Op::Factor(FactorOp::Lu), &[x[0]], None);
    let solution = b.push(Op::LuSolve { transposed }, &[factors, x[0], x[1]], None);
    b.finish(&[factors, solution])
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Uniform,
    Scaled,
    Permuted,
    EqualRows,
    ZeroColumn,
    NaN,
    Infinite,
}

const KINDS: [Kind; 7] = [
    Kind::Uniform,
    Kind::Scaled,
    Kind::Permuted,
    Kind::EqualRows,
    Kind::ZeroColumn,
    Kind::NaN,
    Kind::Infinite,
];

/// The entries of one matrix, row by row.
pub(super) fn matrix(draw: &mut Draw, kind: Kind, n: usize, dtype: DType) -> Vec<f64> {
    let mut a: Vec<f64> = (0..n * n).map(|_| draw.uniform(-1.0, 1.0)).collect();
    if n == 0 {
        return a;
    }
    match kind {
        Kind::Uniform => {}
        Kind::Scaled => a.chunks_mut(n).for_each(|row| {
            let scale = draw.decade(-6.0, 6.0);
            row.iter_mut().for_each(|x| *x *= scale);
        }),
        Kind::Permuted => {
            // Each pivot is twice as large as the sum of the other entries.
            let mut order: Vec<usize> = (0..n).collect();
            (1..n).for_each(|i| order.swap(i, draw.below(i + 1)));
            for (row, &i) in a.chunks_mut(n).zip(&order) {
                row[..i].fill(0.0);
                row[i] = 2.0 + 2.0 * row.iter().map(|x| x.abs()).sum::<f64>();
            }
        }
        Kind::EqualRows => {
            let (i, j) = (draw.below(n), draw.below(n));
            // Without a second row, a row of zeros.
            let row = if i == j { vec![0.0; n] } else { a[i * n..][..n].to_vec() };
            a[j * n..][..n].copy_from_slice(&row);
        }
        Kind::ZeroColumn => {
            let j = draw.below(n);
            (0..n).for_each(|i| a[i * n + j] = 0.0);
        }
        Kind::NaN => a[draw.below(n * n)] = f64::NAN,
        Kind::Infinite => a[draw.below(n * n)] = draw.one(&[f64::INFINITY, f64::NEG_INFINITY]),
    }
    if dtype == DType::F32 {
        a.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    }
    a
}

pub(super) fn array(dtype: DType, shape: Vec<usize>, numbers: &[f64]) -> Array {
    let mut out = Array::zeros(dtype, shape);
    numbers.iter().enumerate().for_each(|(i, &x)| out.data_mut().set_f64(i, x));
    out
}

/// One matrix with its right-hand sides, and what a level has computed from it.
struct Entry<'a> {
    n: usize,
    m: usize,
    a: &'a [f64],
    b: &'a [f64],
    factors: &'a [f64],
    x: &'a [f64],
    transposed: bool,
    epsilon: f64,
}

impl Entry<'_> {
    fn lower(&self, i: usize, j: usize) -> f64 {
        match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => self.factors[i * self.n + j],
        }
    }

    fn upper(&self, i: usize, j: usize) -> f64 {
        if i <= j { self.factors[i * self.n + j] } else { 0.0 }
    }

    fn row(&self, i: usize) -> usize {
        self.factors[self.n * self.n + i] as usize
    }

    /// |L| |U| of the row of a that is row i of L U.
    fn size(&self, i: usize, j: usize) -> f64 {
        (0..=i.min(j)).map(|k| (self.lower(i, k) * self.upper(k, j)).abs()).sum()
    }

    /// Asserts that L U = P a, that no multiple exceeds 1, and that the residual of x is rounding error, within the
    /// bounds of Higham (2002), Accuracy and Stability of Numerical Algorithms, theorems 9.3 and 9.4.
    fn check(&self, what: &str) {
        let Entry { n, m, a, b, x, transposed, epsilon, .. } = *self;
        let unit = 4.0 * n as f64 * epsilon;
        let mut rows: Vec<usize> = (0..n).map(|i| self.row(i)).collect();
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f64 = (0..=i.min(j)).map(|k| self.lower(i, k) * self.upper(k, j)).sum();
            let off = (sum - a[rows[i] * n + j]).abs();
            assert!(off <= unit * self.size(i, j), "{what}: entry ({i}, {j}) of P a is off by {off:e}");
            assert!(self.lower(i, j).abs() <= 1.0, "{what}: the multiple ({i}, {j}) is {}", self.lower(i, j));
        }
        for c in 0..m {
            for i in 0..n {
                // Row i of P a, or column i of a.
                let entry = |j: usize| if transposed { a[rows[j] * n + i] } else { a[rows[i] * n + j] };
                let size = |j: usize| if transposed { self.size(j, i) } else { self.size(i, j) };
                let at = |j: usize| x[if transposed { rows[j] } else { j } * m + c];
                let right = b[if transposed { i } else { rows[i] } * m + c];
                let residual = (0..n).map(|j| entry(j) * at(j)).sum::<f64>() - right;
                let bound: f64 = (0..n).map(|j| size(j) * at(j).abs()).sum::<f64>() + right.abs();
                assert!(
                    residual.abs() <= 3.0 * unit * bound,
                    "{what}: residual {residual:e} of equation {i}"
                );
            }
        }
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..n), "{what}: the last row is no permutation");
    }

    /// Asserts that a matrix without a solution has none.
    fn check_singular(&self, what: &str) {
        for c in (0..self.m).filter(|_| self.n > 0) {
            let is_finite = (0..self.n).all(|i| self.x[i * self.m + c].is_finite());
            assert!(!is_finite, "{what}: a finite solution of a singular system");
        }
    }
}

#[test]
fn drawn_systems_are_solved_to_rounding_and_singular_ones_are_not() {
    let (mut draw, mut seen) = (Draw(38), [0; 7]);
    let mut largest = 0;
    for case in 0..num_cases(300) {
        let dtype = draw.one(&[DType::F32, DType::F64]);
        let lead = draw.one(&[vec![], vec![], vec![0], vec![1], vec![17], vec![2, 3]]);
        let count: usize = lead.iter().product();
        let n = if count > 1 { draw.below(9) } else { draw.below(65) };
        let (m, transposed) = (draw.one(&[0, 1, 1, 2, 7]), draw.coin());
        let kinds: Vec<Kind> = (0..count).map(|_| draw.one(&KINDS)).collect();
        let a: Vec<f64> = kinds.iter().flat_map(|kind| matrix(&mut draw, *kind, n, dtype)).collect();
        let b: Vec<f64> = (0..count * n * m).map(|_| f64::from(draw.uniform(-1.0, 1.0) as f32)).collect();
        let shape = |last: [usize; 2]| [&lead[..], &last].concat();
        let inputs = [array(dtype, shape([n, n]), &a), array(dtype, shape([n, m]), &b)];
        let f = system(dtype, &lead, (n, m), transposed);
        let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let reference = interpret(&f, &inputs).unwrap();
        let of_levels = Level::available().into_iter().map(|level| run(&Plan::compile(&f, level), &inputs));
        for (k, found) in of_levels.chain([reference]).enumerate() {
            let (factors, x) = (found[0].to_f64(), found[1].to_f64());
            for (e, kind) in kinds.iter().enumerate() {
                let part = |all: &'_ [f64], len: usize| all[e * len..][..len].to_vec();
                let (a, b, factors, x) =
                    (part(&a, n * n), part(&b, n * m), part(&factors, (n + 1) * n), part(&x, n * m));
                let (a, b, factors, x) = (&a[..], &b[..], &factors[..], &x[..]);
                let entry = Entry { n, m, a, b, factors, x, transposed, epsilon };
                let what = format!("case {case}, matrix {e}, {kind:?} {dtype} n={n} m={m} level {k}");
                // Uniform and scaled matrices of this size are regular.
                match kind {
                    Kind::Uniform | Kind::Scaled | Kind::Permuted => entry.check(&what),
                    // An unknown with an infinite multiple may be 0.
                    Kind::Infinite => {}
                    Kind::EqualRows | Kind::ZeroColumn | Kind::NaN => entry.check_singular(&what),
                }
                seen[*kind as usize] += 1;
            }
        }
        largest = largest.max(n);
    }
    assert!(seen.iter().all(|&n| n > 20) && largest > 50, "{seen:?}, up to {largest}");
}

#[test]
fn a_system_has_the_same_bits_alone_and_among_others() {
    let mut draw = Draw(39);
    for _ in 0..num_cases(40) {
        let (n, m, transposed) = (1 + draw.below(12), 2 + draw.below(4), draw.coin());
        let count = draw.one(&[2, 3, 8, 11]);
        let a: Vec<f64> = (0..count).flat_map(|_| matrix(&mut draw, Kind::Uniform, n, DType::F64)).collect();
        let b: Vec<f64> = (0..count * n * m).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let all = [array(DType::F64, vec![count, n, n], &a), array(DType::F64, vec![count, n, m], &b)];
        let (e, c) = (draw.below(count), draw.below(m));
        let column: Vec<f64> = (0..n).map(|i| b[(e * n + i) * m + c]).collect();
        let one =
            [array(DType::F64, vec![n, n], &a[e * n * n..][..n * n]), array(DType::F64, vec![n, 1], &column)];
        for level in Level::available() {
            let of = |lead: &[usize], m, x: &[Array]| {
                run(&Plan::compile(&system(DType::F64, lead, (n, m), transposed), level), x)
            };
            let (many, alone) = (of(&[count], m, &all), of(&[], 1, &one));
            assert_eq!(bits(&alone[0]), bits(&many[0])[e * (n + 1) * n..][..(n + 1) * n], "{level:?}");
            let found: Vec<u64> = (0..n).map(|i| bits(&many[1])[(e * n + i) * m + c]).collect();
            assert_eq!(bits(&alone[1]), found, "{level:?}");
        }
    }
}

#[test]
fn any_numbers_as_factors_give_a_result() {
    let mut draw = Draw(40);
    for count in [1, 9] {
        let (mut b, x) =
            Builder::with_inputs(&[4, 3, 3].map(|rows| Type::array(DType::F64, [count, rows, 3])));
        let y = [false, true].map(|transposed| b.push(Op::LuSolve { transposed }, &x, None));
        let f = b.finish(&y);
        for _ in 0..50 {
            let odd = [f64::NAN, f64::INFINITY, -7.0, 0.5, 2.0, 2.0, 1e300, 0.0];
            let factors: Vec<f64> = (0..count * 12).map(|_| draw.one(&odd)).collect();
            let ones = vec![1.0; count * 9];
            let inputs = [(4, &factors), (3, &ones), (3, &ones)]
                .map(|(rows, numbers)| array(DType::F64, vec![count, rows, 3], numbers));
            Level::available().into_iter().for_each(|level| drop(run(&Plan::compile(&f, level), &inputs)));
            interpret(&f, &inputs).unwrap();
        }
    }
}

#[test]
fn a_run_of_systems_allocates_nothing() {
    let f = system(DType::F64, &[5], (4, 2), true);
    let plan = Plan::compile(&f, Level::detect());
    let inputs = f.input_types().iter().map(|ty| super::Rng(7).array(ty)).collect::<Vec<_>>();
    let mut outputs: Vec<Array> =
        f.output_types().iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    let (refs, mut ws) = (inputs.iter().collect::<Vec<_>>(), Workspace::new());
    plan.run_arrays(&mut ws, &refs, &mut outputs);
    let before = allocations();
    plan.run_arrays(&mut ws, &refs, &mut outputs);
    assert_eq!(allocations(), before);
}
