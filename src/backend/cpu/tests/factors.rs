//! Cholesky and QR factorizations, eigenvalues and eigenvectors, triangular systems: residuals, bits of a matrix alone and
//! among others, matrices without factors.
//!
//! Ranges: orders 0 to 70 (several blocks of a Cholesky factorization), 0 to 12 in batches (matrices side by side); no batch
//! axes, one of 0, 1, 7 or 17 matrices, and two axes; tall and wide matrices; f32 and f64; entries drawn uniformly, of
//! magnitudes 1e-18 to 1e18, of low rank, zeros, whole numbers, products of two vectors of whole numbers (ones, too), rows and
//! columns of magnitudes down to 1e-15 and 1e-150, entries near the largest float, a large antisymmetric part, one NaN or
//! infinite entry; every CPU level and the interpreter.

use super::systems::array;
use super::{allocations, bits, run};
use crate::array::{Array, DType};
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{Builder, FactorOp, Func, Op, Triangle, Type, interpret};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::simd::Level;

const OPS: [FactorOp; 3] = [FactorOp::Cholesky, FactorOp::Qr, FactorOp::Eigh];

fn func(op: FactorOp, dtype: DType, shape: &[usize]) -> Func {
    let (mut b, x) = Builder::with_inputs(&[Type::array(dtype, shape)]);
    let y = b.push(Op::Factor(op), &x, None);
    b.finish(&[y])
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Uniform,
    Scaled,
    LowRank,
    Zero,
    Whole,
    Outer,
    Graded,
    Largest,
    Skewed,
    Broken,
}

const KINDS: [Kind; 10] = [
    Kind::Uniform,
    Kind::Scaled,
    Kind::LowRank,
    Kind::Zero,
    Kind::Whole,
    Kind::Outer,
    Kind::Graded,
    Kind::Largest,
    Kind::Skewed,
    Kind::Broken,
];

/// The entries of one m x n matrix. For a Cholesky factorization, it is positive definite if it is uniform or scaled.
fn matrix(draw: &mut Draw, kind: Kind, op: FactorOp, [m, n]: [usize; 2], dtype: DType) -> Vec<f64> {
    let mut a: Vec<f64> = (0..m * n).map(|_| draw.uniform(-1.0, 1.0)).collect();
    match kind {
        Kind::Zero => a.fill(0.0),
        Kind::Whole => a.iter_mut().for_each(|x| *x = (3.0 * *x).round()),
        Kind::LowRank => (0..m * n).for_each(|i| a[i] = a[i / n.max(1) * n] * a[i % n.max(1)]),
        Kind::Outer => {
            let least = draw.one(&[1.0, -2.0]);
            let x: Vec<f64> = (0..m.max(n)).map(|_| draw.uniform(least - 0.4, 1.4).round()).collect();
            (0..m * n).for_each(|i| a[i] = x[i / n] * x[i % n]);
        }
        Kind::Graded => {
            let digits = if dtype == DType::F32 { 15.0 } else { 150.0 };
            let scale: Vec<f64> = (0..m.max(n)).map(|_| draw.decade(-digits, 0.0)).collect();
            (0..m * n).for_each(|i| a[i] *= scale[i / n] * scale[i % n]);
        }
        Kind::Largest => {
            let largest = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
            // Sums over a row or a column do not overflow.
            let scale = largest / (if op == FactorOp::Eigh { 1.2 } else { 1e3 } * m.max(n) as f64);
            a.iter_mut().for_each(|x| *x *= scale);
        }
        Kind::Skewed if m == n => {
            (0..n * n).for_each(|i| a[i] += f64::from((i / n).cmp(&(i % n)) as i32) * 1e10);
        }
        Kind::Uniform | Kind::Scaled | Kind::Broken | Kind::Skewed => {}
    }
    if op == FactorOp::Cholesky && matches!(kind, Kind::Uniform | Kind::Scaled) {
        (0..n).for_each(|i| a[i * n + i] += n as f64);
    }
    if kind == Kind::Scaled {
        // One magnitude for the matrix, because symmetric ones cannot have one per row.
        let scale = draw.decade(-18.0, 18.0);
        a.iter_mut().for_each(|x| *x *= scale);
    }
    if kind == Kind::Broken && m * n > 0 {
        a[draw.below(m * n)] = draw.one(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    }
    if dtype == DType::F32 {
        a.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    }
    a
}

/// The largest entry of `sum over k of l(i, k) r(k, j)` minus `want(i, j)`.
fn residual(
    [rows, inner, columns]: [usize; 3],
    l: impl Fn(usize, usize) -> f64,
    r: impl Fn(usize, usize) -> f64,
    want: impl Fn(usize, usize) -> f64,
) -> f64 {
    let off = |i: usize, j: usize| ((0..inner).map(|k| l(i, k) * r(k, j)).sum::<f64>() - want(i, j)).abs();
    let all = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
    all.map(|(i, j)| off(i, j)).fold(0.0, |most: f64, x| if x <= most { most } else { x })
}

fn one(i: usize, j: usize) -> f64 {
    f64::from(u8::from(i == j))
}

/// Asserts that the factors are those of the matrix, up to rounding.
fn check(op: FactorOp, [m, n]: [usize; 2], a: &[f64], found: &[f64], epsilon: f64, what: &str) {
    // In units of about the largest entry, no square overflows. By a power of two, no number is rounded.
    let most = a.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let unit = if most > 0.0 { 2.0_f64.powi(most.log2().floor() as i32) } else { 1.0 };
    let a: Vec<f64> = a.iter().map(|x| x / unit).collect();
    let symmetric = |i: usize, j: usize| 0.5 * (a[i * n + j] + a[j * n + i]);
    let parts: Vec<f64> = match op {
        FactorOp::Eigh => (0..n * n).map(|i| symmetric(i / n, i % n)).collect(),
        _ => a.clone(),
    };
    let size = parts.iter().map(|x| x * x).sum::<f64>().sqrt();
    let room = 8.0 * (m + n) as f64 * epsilon;
    let at = |i: usize, j: usize| found[i * n + j];
    let (off, units) = match op {
        FactorOp::Cholesky => {
            assert!((0..n).all(|i| at(i, i) > 0.0 && (i + 1..n).all(|j| at(i, j) == 0.0)), "{what}: shape");
            (residual([n; 3], |i, k| at(i, k) / unit, |k, j| at(j, k), symmetric), 0.0)
        }
        FactorOp::Qr => {
            let k = m.min(n);
            let r = |i: usize, j: usize| at(m + i, j) / unit;
            assert!((0..k).all(|i| (0..i).all(|j| r(i, j) == 0.0)), "{what}: R is not triangular");
            assert!((0..m).all(|i| (k..n).all(|j| at(i, j) == 0.0)), "{what}: there is something behind Q");
            let off = residual([m, k, n], at, r, |i, j| a[i * n + j]);
            (off, residual([k, m, k], |i, k| at(k, i), at, one))
        }
        FactorOp::Eigh => {
            let w = |j: usize| at(n, j) / unit;
            assert!((1..n).all(|j| w(j - 1) <= w(j)), "{what}: the eigenvalues do not ascend");
            for j in 0..n {
                let most = (0..n).fold(0.0, |most: f64, i| most.max(at(i, j).abs()));
                let entry = (0..n).map(|i| at(i, j)).find(|x| x.abs() >= 0.90001 * most);
                // An entry near the bound may be the first one before rounding.
                let is_near = (0..n).any(|i| (at(i, j).abs() - 0.9 * most).abs() < 1e-4 * most);
                assert!(entry.is_some_and(|x| x > 0.0) || is_near, "{what}: the sign of vector {j}");
            }
            let off = residual([n; 3], symmetric, at, |i, j| at(i, j) * w(j));
            (off, residual([n; 3], |i, k| at(k, i), at, one))
        }
        FactorOp::Lu => unreachable!("its test is in `systems`"),
    };
    assert!(off <= room * size, "{what}: a residual of {off:e} for a matrix of size {size:e}");
    assert!(units <= room, "{what}: the vectors are off by {units:e}");
}

/// Asserts the results of a matrix without factors.
fn check_broken(op: FactorOp, n: usize, found: &[f64], what: &str) {
    let all = |rows: usize, holds: &dyn Fn(usize, usize) -> bool| {
        (0..rows).all(|i| (0..n).all(|j| !holds(i, j) || found[i * n + j].is_nan()))
    };
    match op {
        FactorOp::Cholesky => assert!(all(n, &|i, j| j <= i), "{what}: the factor is not NaN"),
        FactorOp::Eigh => assert!(all(n + 1, &|_, _| true), "{what}: a result is not NaN"),
        _ => assert!(found.iter().any(|x| !x.is_finite()), "{what}: all results are finite"),
    }
}

#[test]
fn drawn_matrices_have_their_factors() {
    let (mut draw, mut seen, mut largest) = (Draw(61), [[0; KINDS.len()]; 3], 0);
    for case in 0..num_cases(240) {
        let (op, dtype) = (OPS[case % 3], draw.one(&[DType::F32, DType::F64]));
        let lead = draw.one(&[vec![], vec![], vec![0], vec![1], vec![7], vec![17], vec![2, 3]]);
        let count: usize = lead.iter().product();
        let limit = if count > 1 { 13 } else { draw.one(&[9, 34, 71]) };
        let n = draw.below(limit);
        let m = if op == FactorOp::Qr { draw.below(limit) } else { n };
        let kinds: Vec<Kind> = (0..count).map(|_| draw.one(&KINDS)).collect();
        let a: Vec<f64> = kinds.iter().flat_map(|kind| matrix(&mut draw, *kind, op, [m, n], dtype)).collect();
        let shape = [&lead[..], &[m, n]].concat();
        let f = func(op, dtype, &shape);
        let inputs = [array(dtype, shape, &a)];
        let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let reference = interpret(&f, &inputs).unwrap();
        let levels = Level::available();
        let of_levels = levels.iter().map(|&level| run(&Plan::compile(&f, level), &inputs));
        for (k, found) in of_levels.chain([reference]).enumerate() {
            let found = found[0].to_f64();
            for (e, kind) in kinds.iter().enumerate() {
                let size = op.rows([m, n]) * n;
                let (a, found) = (&a[e * m * n..][..m * n], &found[e * size..][..size]);
                let what =
                    format!("case {case}, matrix {e}, {} {kind:?} {dtype} {m}x{n} level {k}", op.name());
                let has_factors = op != FactorOp::Cholesky || matches!(kind, Kind::Uniform | Kind::Scaled);
                match kind {
                    // The interpreter does not scale.
                    Kind::Largest | Kind::Graded if k == levels.len() && dtype == DType::F64 => {}
                    Kind::Broken if m * n > 0 => check_broken(op, n, found, &what),
                    Kind::Zero if op == FactorOp::Cholesky => check_broken(op, n, found, &what),
                    _ if has_factors || n == 0 => check(op, [m, n], a, found, epsilon, &what),
                    // Whether rounding errors make a pivot positive is not known.
                    _ => {}
                }
                seen[case % 3][*kind as usize] += 1;
            }
        }
        largest = largest.max(n);
    }
    assert!(seen.as_flattened().iter().all(|&n| n > 10) && largest > 60, "{seen:?}, up to {largest}");
}

#[test]
fn a_matrix_has_the_same_bits_alone_and_among_others() {
    let mut draw = Draw(62);
    for case in 0..num_cases(60) {
        let (op, dtype) = (OPS[case % 3], draw.one(&[DType::F32, DType::F64]));
        let (n, count) = (1 + draw.below(24), draw.one(&[2, 7, 8, 9, 17]));
        let m = if op == FactorOp::Qr { 1 + draw.below(24) } else { n };
        let mut one = || {
            let kind = draw.one(&KINDS);
            matrix(&mut draw, kind, op, [m, n], dtype)
        };
        let a: Vec<f64> = (0..count).flat_map(|_| one()).collect();
        for level in Level::available() {
            let of = |lead: &[usize], a: &[f64]| {
                let shape = [lead, &[m, n]].concat();
                let f = func(op, dtype, &shape);
                run(&Plan::compile(&f, level), &[array(dtype, shape, a)]).remove(0)
            };
            let (many, size) = (of(&[count], &a), op.rows([m, n]) * n);
            for e in 0..count {
                let alone = of(&[], &a[e * m * n..][..m * n]);
                // NaNs may differ in their bits.
                let same = |i: usize| {
                    let (x, y) = (alone.data().get_f64(i), many.data().get_f64(e * size + i));
                    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
                };
                assert!((0..size).all(same), "case {case}, matrix {e}, {} {m}x{n} {level:?}", op.name());
            }
        }
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_has_no_cholesky_factor() {
    for n in [1, 2, 5, 16, 17, 40, 65] {
        for place in [0, n / 2, n - 1] {
            let entry = |i: usize| match (i / n, i % n) {
                (row, column) if row != column => 0.1 / n as f64,
                (row, _) => {
                    if row == place {
                        -1.0
                    } else {
                        1.0
                    }
                }
            };
            let inputs = [array(DType::F64, vec![n, n], &(0..n * n).map(entry).collect::<Vec<_>>())];
            let f = func(FactorOp::Cholesky, DType::F64, &[n, n]);
            for level in Level::available() {
                let found = run(&Plan::compile(&f, level), &inputs)[0].to_f64();
                check_broken(FactorOp::Cholesky, n, &found, &format!("n={n} {level:?}"));
                assert!((0..n).all(|i| found[i * n + i + 1..(i + 1) * n].iter().all(|&x| x == 0.0)));
            }
        }
    }
}

#[test]
fn drawn_triangular_systems_are_solved_to_rounding() {
    let mut draw = Draw(63);
    for case in 0..num_cases(120) {
        let dtype = draw.one(&[DType::F32, DType::F64]);
        let (n, m, count) = (draw.below(34), draw.one(&[0, 1, 1, 2, 7]), draw.below(4));
        let triangle = Triangle { upper: draw.coin(), transposed: draw.coin(), unit_diagonal: draw.coin() };
        let numbers = |draw: &mut Draw, len: usize| -> Vec<f64> {
            (0..len).map(|_| f64::from(draw.uniform(-1.0, 1.0) as f32)).collect()
        };
        let (mut a, b) = (numbers(&mut draw, count * n * n), numbers(&mut draw, count * n * m));
        // The other triangle is not read, nor is a diagonal of ones.
        let is_read = |i: usize, j: usize| if triangle.upper { i < j } else { i > j };
        for (place, x) in a.iter_mut().enumerate() {
            let (i, j) = (place / n % n, place % n);
            *x = match i == j {
                true if triangle.unit_diagonal => f64::NAN,
                true => *x + f64::from(x.signum() as f32),
                _ if is_read(i, j) => *x / 8.0,
                _ => f64::NAN,
            };
        }
        let types = [Type::array(dtype, [count, n, n]), Type::array(dtype, [count, n, m])];
        let (mut build, x) = Builder::with_inputs(&types);
        let y = build.push(Op::TriangularSolve(triangle), &x, None);
        let f = build.finish(&[y]);
        let inputs = [array(dtype, vec![count, n, n], &a), array(dtype, vec![count, n, m], &b)];
        let a = inputs[0].to_f64();
        let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let levels = Level::available();
        let of_levels = levels.iter().map(|&level| run(&Plan::compile(&f, level), &inputs));
        for found in of_levels.chain([interpret(&f, &inputs).unwrap()]) {
            let x = found[0].to_f64();
            for (e, c) in (0..count).flat_map(|e| (0..m).map(move |c| (e, c))) {
                let entry = |i: usize, j: usize| match i == j {
                    true if triangle.unit_diagonal => 1.0,
                    same if same || is_read(i, j) => a[(e * n + i) * n + j],
                    _ => 0.0,
                };
                let at = |i: usize, j: usize| if triangle.transposed { entry(j, i) } else { entry(i, j) };
                for i in 0..n {
                    let terms: Vec<f64> = (0..n).map(|j| at(i, j) * x[(e * n + j) * m + c]).collect();
                    let off = (terms.iter().sum::<f64>() - b[(e * n + i) * m + c]).abs();
                    let size: f64 = terms.iter().map(|x| x.abs()).sum::<f64>() + b[(e * n + i) * m + c].abs();
                    assert!(
                        off <= 4.0 * n as f64 * epsilon * size,
                        "case {case}: {triangle:?} n={n} off {off:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_triangular_system_has_the_same_bits_alone_and_among_others() {
    let mut draw = Draw(64);
    for _ in 0..num_cases(40) {
        let (n, m, count) = (1 + draw.below(20), 2 + draw.below(5), draw.one(&[1, 2, 11]));
        let triangle = Triangle { upper: draw.coin(), transposed: draw.coin(), unit_diagonal: draw.coin() };
        let mut numbers = |len: usize| -> Vec<f64> { (0..len).map(|_| draw.uniform(0.5, 1.0)).collect() };
        let (a, b) = (numbers(count * n * n), numbers(count * n * m));
        let (e, c) = (draw.below(count), draw.below(m));
        let column: Vec<f64> = (0..n).map(|i| b[(e * n + i) * m + c]).collect();
        for level in Level::available() {
            let of = |[count, m]: [usize; 2], a: &[f64], b: &[f64]| {
                let types = [[count, n, n], [count, n, m]].map(|shape| Type::array(DType::F64, shape));
                let (mut build, x) = Builder::with_inputs(&types);
                let y = build.push(Op::TriangularSolve(triangle), &x, None);
                let f = build.finish(&[y]);
                let x = [array(DType::F64, vec![count, n, n], a), array(DType::F64, vec![count, n, m], b)];
                bits(&run(&Plan::compile(&f, level), &x)[0])
            };
            let (many, alone) = (of([count, m], &a, &b), of([1, 1], &a[e * n * n..][..n * n], &column));
            assert!((0..n).all(|i| many[(e * n + i) * m + c] == alone[i]), "{triangle:?} {level:?}");
        }
    }
}

#[test]
fn a_run_of_factorizations_allocates_nothing() {
    for (op, shape) in OPS.iter().flat_map(|&op| [vec![5, 4, 4], vec![40, 40]].map(|shape| (op, shape))) {
        let f = func(op, DType::F64, &shape);
        let plan = Plan::compile(&f, Level::detect());
        let inputs = f.input_types().iter().map(|ty| super::Rng(7).array(ty)).collect::<Vec<_>>();
        let mut outputs: Vec<Array> =
            f.output_types().iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
        let (refs, mut ws) = (inputs.iter().collect::<Vec<_>>(), Workspace::new());
        plan.run_arrays(&mut ws, &refs, &mut outputs);
        let before = allocations();
        plan.run_arrays(&mut ws, &refs, &mut outputs);
        assert_eq!(allocations(), before, "{}", op.name());
    }
}
