//! Singular values of a tall matrix whose columns have any scale.
//!
//! The columns are divided by their lengths, so that units of parameters do not matter. Householder reflections reduce
//! the matrix to a triangle; Jacobi rotations from the right then make its columns orthogonal. Their lengths are
//! the singular values, and the product of the rotations is V. Small singular values are more accurate than the eigenvalues
//! of the normal equations, whose condition number is the square (Demmel and Veselic 1992, Jacobi's method is more
//! accurate than QR).

/// `J = U S V^T D`: S the singular values, D the lengths of the columns of J.
pub(super) struct Factors {
    /// The lengths of the columns of J; 1 for a column of zeros.
    pub(super) lengths: Vec<f64>,
    /// The singular values, in the order of the rows of `v`.
    pub(super) singular: Vec<f64>,
    /// The columns of V.
    v: Vec<Vec<f64>>,
}

impl Factors {
    /// Of a row-major matrix of m rows and n columns.
    pub(super) fn of(j: &[f64], m: usize, n: usize) -> Factors {
        let mut columns: Vec<Vec<f64>> = (0..n).map(|k| (0..m).map(|i| j[i * n + k]).collect()).collect();
        let length = |column: &Vec<f64>| Some(norm(column)).filter(|x| *x > 0.0).unwrap_or(1.0);
        let lengths: Vec<f64> = columns.iter().map(length).collect();
        for (column, length) in columns.iter_mut().zip(&lengths) {
            column.iter_mut().for_each(|x| *x /= length);
        }
        triangle(&mut columns);
        let mut v: Vec<Vec<f64>> = (0..n).map(|k| (0..n).map(|i| f64::from(i == k)).collect()).collect();
        // A few sweeps suffice; the bound only ends a loop on numbers that rounding keeps apart.
        for _ in 0..60 {
            if !sweep(&mut columns, &mut v) {
                break;
            }
        }
        Factors { lengths, singular: columns.iter().map(|column| norm(column)).collect(), v }
    }

    fn largest(&self) -> f64 {
        self.singular.iter().copied().fold(0.0, f64::max)
    }

    /// The number of singular values above `tolerance` times the largest.
    pub(super) fn rank(&self, tolerance: f64) -> usize {
        let least = tolerance * self.largest();
        self.singular.iter().filter(|s| **s > least).count()
    }

    /// The change of the parameters that changes the product with J least: 1 for the parameter with the largest part,
    /// 0 for those with a part below a millionth.
    pub(super) fn undetermined(&self) -> Vec<f64> {
        let least = (0..self.singular.len()).min_by(|a, b| self.singular[*a].total_cmp(&self.singular[*b]));
        let v = &self.v[least.expect("invariant: there is a parameter")];
        let largest = (0..v.len()).fold(0, |best, i| if v[i].abs() > v[best].abs() { i } else { best });
        let unit = v[largest] / self.lengths[largest];
        let change = |(v_i, length): (&f64, &f64)| match v_i.abs() < 1e-6 * v[largest].abs() {
            true => 0.0,
            false => v_i / length / unit,
        };
        v.iter().zip(&self.lengths).map(change).collect()
    }

    /// `(J^T J)^-1`, row-major.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let n = self.lengths.len();
        let part = |i: usize, k: usize| self.v[k][i] / self.singular[k] / self.lengths[i];
        let entry = |i: usize, j: usize| (0..n).map(|k| part(i, k) * part(j, k)).sum::<f64>();
        (0..n * n).map(|at| entry((at / n).min(at % n), (at / n).max(at % n))).collect()
    }
}

/// The Euclidean norm, without overflow.
fn norm(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    match largest {
        0.0 => 0.0,
        _ => largest * x.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt(),
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Reduces the columns to an upper triangle by reflections from the left, and drops the rows below it.
fn triangle(columns: &mut [Vec<f64>]) {
    let n = columns.len();
    for k in 0..n {
        let mut w = columns[k][k..].to_vec();
        let length = norm(&w);
        if length > 0.0 {
            // At length 1, the square of w does not underflow.
            w.iter_mut().for_each(|x| *x /= length);
            w[0] += 1.0_f64.copysign(w[0]);
            let square = dot(&w, &w);
            for column in &mut columns[k..] {
                let factor = 2.0 * dot(&w, &column[k..]) / square;
                column[k..].iter_mut().zip(&w).for_each(|(x, w)| *x -= factor * w);
            }
        }
        columns[k][k + 1..].fill(0.0);
    }
    columns.iter_mut().for_each(|column| column.truncate(n));
}

/// Rotates every pair of columns to a right angle; false if all were at right angles up to rounding.
fn sweep(columns: &mut [Vec<f64>], v: &mut [Vec<f64>]) -> bool {
    let mut is_changed = false;
    for j in 1..columns.len() {
        for i in 0..j {
            let (a, b) = (dot(&columns[i], &columns[i]), dot(&columns[j], &columns[j]));
            let c = dot(&columns[i], &columns[j]);
            if c.abs() <= f64::EPSILON * (a * b).sqrt() {
                continue;
            }
            is_changed = true;
            let zeta = (b - a) / (2.0 * c);
            let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
            let cos = 1.0 / tangent.hypot(1.0);
            for all in [&mut *columns, &mut *v] {
                let (left, right) = all.split_at_mut(j);
                for (x, y) in left[i].iter_mut().zip(&mut right[0]) {
                    (*x, *y) = (cos * (*x - tangent * *y), cos * (tangent * *x + *y));
                }
            }
        }
    }
    is_changed
}
