//! LU factorizations and linear systems in f64, rounded once: the reference for the kernels.

use crate::array::{Array, Data};

/// The number of matrices of a batch, and their rows and columns.
fn matrices(x: &Array) -> (usize, [usize; 2]) {
    let (lead, &last) = x.shape().split_last_chunk().expect("invariant: a matrix has two axes");
    (lead.iter().product(), last)
}

fn rounded(like: &Array, values: &[f64]) -> Data {
    let mut out = Data::zeros(like.dtype(), values.len());
    values.iter().enumerate().for_each(|(i, x)| out.set_f64(i, *x));
    out
}

/// The factors of each matrix, with the permutation in the last row.
pub(super) fn lu(a: &Array) -> Data {
    let (count, [n, _]) = matrices(a);
    let mut out = Vec::with_capacity(count * (n + 1) * n);
    for e in 0..count {
        let entry = |i: usize, j: usize| a.data().get_f64((e * n + i) * n + j);
        let mut rows: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
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
        out.extend(rows.into_iter().flatten().chain(permutation));
    }
    rounded(a, &out)
}

/// The solutions for the right-hand sides b.
pub(super) fn lu_solve(factors: &Array, b: &Array, transposed: bool) -> Data {
    let (count, [n, m]) = matrices(b);
    let mut out = vec![0.0; count * n * m];
    for (e, c) in (0..count).flat_map(|e| (0..m).map(move |c| (e, c))) {
        let factor = |i: usize, j: usize| factors.data().get_f64((e * (n + 1) + i) * n + j);
        let row = |i: usize| (factor(n, i) as usize).min(n - 1);
        let right = |i: usize| b.data().get_f64((e * n + i) * m + c);
        let mut x: Vec<f64> = (0..n).map(|i| right(if transposed { i } else { row(i) })).collect();
        for k in 0..n {
            if transposed {
                x[k] /= factor(k, k);
            }
            for i in k + 1..n {
                x[i] -= x[k] * if transposed { factor(k, i) } else { factor(i, k) };
            }
        }
        for k in (0..n).rev() {
            if !transposed {
                x[k] /= factor(k, k);
            }
            for i in 0..k {
                x[i] -= x[k] * if transposed { factor(k, i) } else { factor(i, k) };
            }
        }
        for (i, x) in x.into_iter().enumerate() {
            out[(e * n + if transposed { row(i) } else { i }) * m + c] = x;
        }
    }
    rounded(b, &out)
}
