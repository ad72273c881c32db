//! Factorizations in f64, rounded once: the reference for the kernels. Where possible, the algorithm is another one.

use super::systems::{matrices, rounded};
use crate::array::{Array, Data};
use crate::graph::FactorOp;

type Rows = Vec<Vec<f64>>;

/// The factors of each matrix, packed as the operation says.
pub(super) fn factors(op: FactorOp, a: &Array) -> Data {
    let (count, [m, n]) = matrices(a);
    let mut out = Vec::with_capacity(count * op.rows([m, n]) * n);
    for e in 0..count {
        let entry = |i: usize, j: usize| a.data().get_f64((e * m + i) * n + j);
        let rows: Rows = (0..m).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        let found = match op {
            FactorOp::Lu => lu(rows),
            FactorOp::Cholesky => cholesky(&symmetric(&rows)),
            FactorOp::Qr => qr(rows, n),
            FactorOp::Eigh => eigh(symmetric(&rows)),
        };
        out.extend(found.into_iter().flatten());
    }
    rounded(a, &out)
}

fn symmetric(rows: &Rows) -> Rows {
    let n = rows.len();
    (0..n).map(|i| (0..n).map(|j| rows[i][j] * 0.5 + rows[j][i] * 0.5).collect()).collect()
}

/// The factors, with the permutation in the last row.
fn lu(mut rows: Rows) -> Rows {
    let n = rows.len();
    let mut permutation: Vec<f64> = (0..n).map(|i| i as f64).collect();
    for k in 0..n {
        // The first of the largest entries; a NaN is never larger.
        let mut pivot = k;
        for i in k + 1..n {
            if rows[i][k].abs() > rows[pivot][k].abs() {
                pivot = i;
            }
        }
        rows.swap(k, pivot);
        permutation.swap(k, pivot);
        let (above, below) = rows.split_at_mut(k + 1);
        let first = &above[k];
        if first[k] == 0.0 {
            continue;
        }
        for row in below {
            row[k] /= first[k];
            for j in k + 1..n {
                row[j] -= row[k] * first[j];
            }
        }
    }
    rows.push(permutation);
    rows
}

/// L, column after column.
fn cholesky(a: &Rows) -> Rows {
    let n = a.len();
    let mut lower = vec![vec![0.0; n]; n];
    let mut is_definite = true;
    for j in 0..n {
        for i in j..n {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let left = a[i][j] - known;
            if i == j {
                is_definite &= left > 0.0 && left < f64::INFINITY;
                lower[i][j] = left.sqrt();
            } else {
                lower[i][j] = left / lower[j][j];
            }
        }
    }
    if !is_definite {
        lower.iter_mut().enumerate().for_each(|(i, row)| row[..=i].fill(f64::NAN));
    }
    lower
}

/// Q, and below it R: each reflection is applied to all of a matrix and of an identity.
fn qr(mut r: Rows, n: usize) -> Rows {
    let m = r.len();
    let k = m.min(n);
    let mut q: Rows = (0..m).map(|i| (0..m).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for j in 0..k {
        let norm = r[j..].iter().fold(0.0, |norm: f64, row| norm.hypot(row[j]));
        let below = r[j + 1..].iter().fold(0.0, |norm: f64, row| norm.hypot(row[j]));
        if below == 0.0 {
            continue;
        }
        let diagonal = if r[j][j] < 0.0 { norm } else { -norm };
        let mut v: Vec<f64> = (0..m).map(|i| if i < j { 0.0 } else { r[i][j] / norm }).collect();
        v[j] -= diagonal / norm;
        let square: f64 = v.iter().map(|x| x * x).sum();
        for c in 0..n {
            let sum: f64 = (j..m).map(|i| v[i] * r[i][c]).sum();
            (j..m).for_each(|i| r[i][c] -= 2.0 / square * v[i] * sum);
        }
        for row in &mut q {
            let sum: f64 = row.iter().zip(&v).map(|(x, v)| x * v).sum();
            row.iter_mut().zip(&v).for_each(|(x, v)| *x -= 2.0 / square * v * sum);
        }
    }
    q.iter_mut().for_each(|row| {
        row.truncate(k);
        row.resize(n, 0.0);
    });
    r.truncate(k);
    r.iter_mut().enumerate().for_each(|(i, row)| row[..i].fill(0.0));
    q.extend(r);
    q
}

/// The eigenvectors as columns, and the eigenvalues, by rotations of all pairs in turn (Jacobi).
fn eigh(mut a: Rows) -> Rows {
    let n = a.len();
    if a.iter().flatten().any(|x| !x.is_finite()) {
        return vec![vec![f64::NAN; n]; n + 1];
    }
    let mut vectors: Rows = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for (p, q) in (0..30).flat_map(|_| (0..n).flat_map(|q| (0..q).map(move |p| (p, q)))) {
        if a[p][q] == 0.0 {
            continue;
        }
        let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
        let tangent = 1.0_f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        let sine = tangent * cosine;
        let turn = |x: &mut f64, y: &mut f64| (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
        let (above, below) = a.split_at_mut(q);
        above[p].iter_mut().zip(&mut below[0]).for_each(|(x, y)| turn(x, y));
        for row in a.iter_mut().chain(&mut vectors) {
            let (left, right) = row.split_at_mut(q);
            turn(&mut left[p], &mut right[0]);
        }
        (a[p][q], a[q][p]) = (0.0, 0.0);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    let sign = |j: usize| {
        let most = vectors.iter().fold(0.0, |most: f64, row| most.max(row[j].abs()));
        let entry = vectors.iter().find(|row| row[j].abs() >= 0.9 * most);
        if entry.is_some_and(|row| row[j] < 0.0) { -1.0 } else { 1.0 }
    };
    let mut out: Rows = vectors.iter().map(|row| order.iter().map(|&j| row[j] * sign(j)).collect()).collect();
    out.push(order.iter().map(|&j| a[j][j]).collect());
    out
}
