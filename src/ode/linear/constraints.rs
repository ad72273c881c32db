//! `Constraints`: the algebraic equations of `M y' = f(t, y)`.
//!
//! Gaussian elimination of M, once per solve, turns each equation into a multiple-free one: `f_i` minus
//! multiples of earlier equations. An equation whose row of M becomes zero is algebraic, even if M has no zero
//! row. The elimination processes the rows in order and chooses the pivot column of each row, so rows stay
//! sparse if M is sparse. An entry is zero if it cancels to rounding errors of its terms. This criterion does
//! not depend on the scales of equations and components. We considered the null space of M by a singular value
//! decomposition, but it depends on these scales and is dense.

use super::Matrix;
use crate::ode::Real;
use std::collections::BTreeSet;

/// A sparse row: columns in ascending order, and their entries.
pub type Row = Vec<(usize, f64)>;

/// An entry that is at most this fraction of the sum of its terms' magnitudes is rounding error.
const CANCELED: f64 = 1e-11;

/// The elimination of a singular matrix M.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// Per equation, the earlier equations and their multiples that are subtracted from it.
    multiples: Vec<Row>,
    /// Per equation, its row of M after the elimination; empty if the equation is algebraic.
    rows: Vec<Row>,
}

impl Constraints {
    /// Eliminates M; `None` if M is nonsingular, so that no equation is algebraic.
    pub fn of(mass: &Matrix<f64>) -> Option<Constraints> {
        let n = mass.n();
        let (sizes, mut sum) = (column_sizes(mass), Sum::new(n));
        let (mut multiples, mut rows) = (Vec::with_capacity(n), Vec::<Row>::with_capacity(n));
        // The equation that has its pivot in a column, and the column of each equation's pivot.
        let (mut owner, mut pivots) = (vec![None; n], vec![(0, 0.0); n]);
        for i in 0..n {
            let (row, mut subtracted) = (row_of(mass, i), Row::new());
            let mut pending: BTreeSet<usize> = row.iter().filter_map(|&(j, _)| owner[j]).collect();
            sum.add(&row, 1.0);
            while let Some(k) = pending.pop_first() {
                let (column, pivot): (usize, f64) = pivots[k];
                let factor = sum.entry(column) / pivot;
                if factor != 0.0 {
                    sum.add(&rows[k], -factor);
                    pending.extend(rows[k].iter().filter_map(|&(j, _)| owner[j]).filter(|&next| next > k));
                    subtracted.push((k, factor));
                }
                sum.clear(column);
            }
            let row = sum.take(CANCELED);
            let relative = |&(j, x): &(usize, f64)| x.abs() / sizes[j];
            if let Some(&pivot) = row.iter().max_by(|a, b| relative(a).total_cmp(&relative(b))) {
                owner[pivot.0] = Some(i);
                pivots[i] = pivot;
            }
            rows.push(row);
            multiples.push(subtracted);
        }
        let is_singular = rows.iter().any(Row::is_empty);
        is_singular.then_some(Constraints { multiples, rows })
    }

    /// The rows of M after the elimination; empty for algebraic equations.
    #[cfg(feature = "autodiff")]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether equation i is algebraic after the elimination.
    pub fn is_algebraic(&self, i: usize) -> bool {
        self.rows[i].is_empty()
    }

    /// Replaces f by the right-hand sides of the equations after the elimination.
    pub fn reduce<R: Real>(&self, f: &mut [R]) {
        for (i, subtracted) in self.multiples.iter().enumerate() {
            for &(k, multiple) in subtracted {
                f[i] = f[i] - f[k].scale(multiple);
            }
        }
    }

    /// For each equation, the sum of the magnitudes of the terms that [`reduce`](Self::reduce) adds, 0 if it
    /// adds none; `sizes` are the magnitudes of f.
    pub fn terms(&self, sizes: &[f64]) -> Vec<f64> {
        let (mut sums, mut terms) = (sizes.to_vec(), vec![0.0; sizes.len()]);
        for (i, subtracted) in self.multiples.iter().enumerate() {
            for &(k, multiple) in subtracted {
                sums[i] += multiple.abs() * sums[k];
            }
            terms[i] = if subtracted.is_empty() { 0.0 } else { sums[i] };
        }
        terms
    }

    /// The matrix whose product with a change of y is the change of M y in the equations with derivatives, and
    /// the change of the right-hand side in the algebraic equations. `jacobian(i)` is row i of df/dy. Entries
    /// that cancel to the fraction `canceled` of their terms are 0.
    pub fn system(&self, jacobian: &dyn Fn(usize) -> Row, canceled: f64) -> Vec<Row> {
        let n = self.rows.len();
        let mut needed: Vec<bool> = (0..n).map(|i| self.is_algebraic(i)).collect();
        for i in (0..n).rev().filter(|&i| !self.multiples[i].is_empty()) {
            if needed[i] {
                self.multiples[i].iter().for_each(|&(k, _)| needed[k] = true);
            }
        }
        let (mut reduced, mut sum) = (Vec::<Row>::with_capacity(n), Sum::new(n));
        for i in 0..n {
            if needed[i] {
                sum.add(&jacobian(i), 1.0);
                self.multiples[i].iter().for_each(|&(k, multiple)| sum.add(&reduced[k], -multiple));
            }
            reduced.push(sum.take(canceled));
        }
        for (row, mass) in reduced.iter_mut().zip(&self.rows) {
            if !mass.is_empty() {
                row.clone_from(mass);
            }
        }
        reduced
    }
}

/// The nonzero entries of row i.
pub fn row_of<R: Real>(matrix: &Matrix<R>, i: usize) -> Row {
    let columns = i.saturating_sub(matrix.lower())..matrix.n().min(i.saturating_add(matrix.upper() + 1));
    columns.map(|j| (j, matrix[(i, j)].value())).filter(|&(_, x)| x != 0.0).collect()
}

/// The largest entry of each column, relative to the largest entry of its row.
fn column_sizes(mass: &Matrix<f64>) -> Vec<f64> {
    let mut sizes = vec![0.0_f64; mass.n()];
    for i in 0..mass.n() {
        let row = row_of(mass, i);
        let largest = row.iter().fold(0.0_f64, |largest, &(_, x)| largest.max(x.abs()));
        for (j, x) in row {
            sizes[j] = sizes[j].max(x.abs() / largest);
        }
    }
    sizes
}

/// A sum of sparse rows, with the sum of the magnitudes of the terms of each entry.
struct Sum {
    values: Vec<f64>,
    sizes: Vec<f64>,
    /// The columns with terms.
    touched: Vec<usize>,
}

impl Sum {
    fn new(n: usize) -> Sum {
        Sum { values: vec![0.0; n], sizes: vec![0.0; n], touched: Vec::new() }
    }

    fn add(&mut self, row: &Row, factor: f64) {
        for &(j, x) in row {
            let term = x * factor;
            if self.sizes[j] == 0.0 {
                self.touched.push(j);
            }
            self.values[j] += term;
            self.sizes[j] += term.abs();
        }
    }

    /// The entry in column j; 0 if it is rounding error.
    fn entry(&self, j: usize) -> f64 {
        if self.values[j].abs() <= CANCELED * self.sizes[j] { 0.0 } else { self.values[j] }
    }

    fn clear(&mut self, j: usize) {
        self.values[j] = 0.0;
    }

    /// The sum without entries that are at most the fraction `canceled` of their terms. Starts the next sum.
    fn take(&mut self, canceled: f64) -> Row {
        self.touched.sort_unstable();
        let mut row = Row::new();
        for j in self.touched.drain(..) {
            // A NaN is kept.
            let is_zero = self.values[j].abs() <= canceled * self.sizes[j];
            if !is_zero && self.sizes[j] != 0.0 {
                row.push((j, self.values[j]));
            }
            (self.values[j], self.sizes[j]) = (0.0, 0.0);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;

    fn matrix(n: usize, f: impl Fn(usize, usize) -> f64) -> Matrix<f64> {
        let mut matrix = Matrix::zeros(n, n, n);
        for i in 0..n {
            (0..n).for_each(|j| matrix[(i, j)] = f(i, j));
        }
        matrix
    }

    #[test]
    fn products_of_thin_factors_have_their_rank_at_every_scale() {
        let (mut draw, mut ranks) = (Draw(2), [0; 9]);
        for seed in 0..400 {
            let n = 1 + seed % 8;
            let rank = (seed / 8) % (n + 1);
            // M = A B with n x rank and rank x n factors, rows and columns scaled by 1e-8 to 1e12.
            let mut numbers = |n: usize| -> Vec<f64> { (0..n).map(|_| draw.uniform(-1.0, 1.0)).collect() };
            let (a, b) = (numbers(n * rank), numbers(rank * n));
            let scales: Vec<f64> = numbers(2 * n).iter().map(|x| 10.0_f64.powf(2.0 + 10.0 * x)).collect();
            let product = |i, j| (0..rank).map(|r| a[i * rank + r] * b[r * n + j]).sum::<f64>();
            let mass = matrix(n, |i, j| scales[i] * product(i, j) * scales[n + j]);
            let constraints = Constraints::of(&mass);
            let algebraic = constraints.as_ref().map_or(0, |c| (0..n).filter(|&i| c.is_algebraic(i)).count());
            assert_eq!(algebraic, n - rank, "n={n}, rank={rank}, seed {seed}");
            ranks[rank] += 1;
            // The combinations of rows that are algebraic give 0 for every column of M.
            let Some(constraints) = constraints else { continue };
            for j in 0..n {
                let mut column: Vec<f64> = (0..n).map(|i| mass[(i, j)]).collect();
                let terms = constraints.terms(&column.iter().map(|x| x.abs()).collect::<Vec<_>>());
                constraints.reduce(&mut column);
                for i in (0..n).filter(|&i| constraints.is_algebraic(i)) {
                    assert!(column[i].abs() <= 1e-12 * terms[i], "n={n}, rank={rank}, seed {seed}");
                }
            }
        }
        assert!(ranks.iter().all(|&count| count > 0), "{ranks:?}");
    }
}
