//! `Lu`: LU factorization with partial pivoting.
//!
//! The elimination is column-oriented, so all inner loops except row swaps read contiguous memory. As in
//! LINPACK, rows of a banded matrix are swapped only from the pivot's column on, and a right-hand side is swapped just
//! before the elimination of each column, so the matrix stays banded. A dense matrix swaps whole rows, as in LAPACK, so
//! that a right-hand side is swapped first and then solved by blocks of columns. SIMD lanes compare rows one after the
//! other and swap per lane, so each lane has the same pivots as it would have alone.
//!
//! # References
//! Golub, Van Loan (2013), Matrix Computations, sections 3.4 and 4.3.

use super::Matrix;
use super::blocks::{self, inverse_of, largest, subtract_rows};
use crate::ode::{Clock, Real};
use std::ops::Range;

/// A square matrix that is overwritten by its factors.
#[derive(Clone)]
pub struct Lu<R: Real> {
    /// The matrix to factor; afterwards its factors, with the inverses of the pivots on the diagonal.
    matrix: Matrix<R>,
    /// The pivot row of each column.
    pivots: Vec<usize>,
    /// For SIMD lanes, per column k and row below row k: the lanes that swapped this row with row k.
    swaps: Vec<<R::Clock as Clock>::Mask>,
    /// Number of superdiagonals before elimination.
    upper: usize,
}

impl<R: Real> Lu<R> {
    /// Allocates memory for n x n matrices with these numbers of subdiagonals and superdiagonals.
    pub fn new(n: usize, lower: usize, upper: usize) -> Self {
        let matrix = Matrix::zeros(n, lower, upper + lower);
        let upper = if matrix.lower() + 1 >= n { n.max(1) - 1 } else { upper };
        Lu { matrix, pivots: vec![0; n], swaps: Vec::new(), upper }
    }

    /// Sets the entries to 0.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.matrix.fill(R::constant(0.0));
    }

    /// The entries of column j in `rows`, to write before [`factor`](Self::factor).
    #[inline(always)]
    pub fn column_mut(&mut self, j: usize, rows: Range<usize>) -> &mut [R] {
        debug_assert!(rows.start + self.upper >= j, "invariant: column {j} from row {} on", rows.start);
        self.matrix.column_mut(j, rows)
    }

    /// Factors the matrix. Entries that were not written after [`clear`](Self::clear) are 0.
    ///
    /// Returns the first column in which all possible pivots are 0, so that solutions are not finite. On SIMD
    /// lanes it returns `None`. Solutions are not finite either if an entry is not. If N is not 0, it is the number of rows
    /// as a compile-time constant.
    #[inline(always)]
    pub fn factor<const N: usize>(&mut self) -> Option<usize> {
        let n = if N > 0 { N } else { self.matrix.n() };
        if const { is_single::<R>() } && self.swaps_whole_rows() {
            return blocks::factor(&mut self.matrix.data[..n * n], &mut self.pivots[..n]);
        }
        self.swaps.clear();
        let mut singular = None;
        for k in 0..n {
            let below = n.min(k + self.matrix.lower() + 1);
            let right = n.min(k + self.matrix.upper() + 1);
            if R::LOCKSTEP {
                self.swap_lanes(k, below, right);
            } else {
                self.swap_largest(k, below, right);
            }
            let at = self.matrix.at(k, k);
            let pivot = self.matrix.data[at];
            if singular.is_none() && pivot.value() == 0.0 && !R::LOCKSTEP {
                singular = Some(k);
            }
            let inverse = inverse_of(pivot);
            self.matrix.data[at] = inverse;
            for entry in self.matrix.column_mut(k, k + 1..below) {
                *entry = *entry * inverse;
            }
            for j in k + 1..right {
                let (to, from) = (self.matrix.at(k, j), self.matrix.at(k + 1, k));
                let (before, after) = self.matrix.data.split_at_mut(to);
                let factors = &before[from..from + (below - k - 1)];
                let x = after[0];
                subtract_rows(&mut after[1..][..factors.len()], factors, x, const { is_single::<R>() });
            }
        }
        singular
    }

    /// Swaps row k with the row, from k on, that has the largest entry in column k by magnitude; the first
    /// one in a tie.
    #[inline(always)]
    fn swap_largest(&mut self, k: usize, below: usize, right: usize) {
        let row = k + largest(self.matrix.column(k, k..below));
        self.pivots[k] = row;
        if row != k {
            for j in k..right {
                let (a, b) = (self.matrix.at(k, j), self.matrix.at(row, j));
                self.matrix.data.swap(a, b);
            }
        }
    }

    /// In each lane, swaps row k with every row below it whose entry in column k is larger, by magnitude,
    /// than the entry that row k then has.
    #[inline(always)]
    fn swap_lanes(&mut self, k: usize, below: usize, right: usize) {
        for i in k + 1..below {
            let mask = self.matrix[(i, k)].exceeds(self.matrix[(k, k)]);
            for j in k..right {
                let (a, b) = (self.matrix.at(k, j), self.matrix.at(i, j));
                let (x, y) = (self.matrix.data[a], self.matrix.data[b]);
                self.matrix.data[a] = R::select(&mask, y, x);
                self.matrix.data[b] = R::select(&mask, x, y);
            }
            self.swaps.push(mask);
        }
    }

    /// Whether a swap of rows includes the factors of earlier columns.
    #[inline(always)]
    fn swaps_whole_rows(&self) -> bool {
        is_single::<R>() && self.matrix.lower() + 1 >= self.matrix.n()
    }

    /// The pivot of column k.
    pub fn pivot(&self, k: usize) -> R {
        R::constant(1.0) / self.matrix[(k, k)]
    }

    /// Replaces the right-hand side `b` by the solution. If N is not 0, it is the number of rows as a compile-time
    /// constant.
    #[inline(always)]
    pub fn solve<const N: usize>(&self, b: &mut [R]) {
        if const { is_single::<R>() } && self.swaps_whole_rows() {
            let n = if N > 0 { N } else { self.matrix.n() };
            let (factors, b) = (&self.matrix.data[..n * n], &mut b[..n]);
            self.swap_all(b);
            blocks::solve_lower(factors, b);
            return blocks::solve_upper(factors, b);
        }
        self.solve_for(b, R::mul);
    }

    /// Swaps the rows of a right-hand side as the rows of the matrix.
    #[inline(always)]
    fn swap_all<X>(&self, b: &mut [X]) {
        let pivots = &self.pivots[..b.len()];
        for k in 0..b.len() {
            b.swap(k, pivots[k]);
        }
    }

    /// As [`solve`](Self::solve), for a right-hand side of another number type. `times(entry, x)` is the product of an
    /// entry of the factors and x.
    #[inline(always)]
    pub fn solve_for<X: Real<Clock = R::Clock>>(&self, b: &mut [X], times: impl Fn(R, X) -> X) {
        let n = self.matrix.n();
        let b = &mut b[..n];
        let mut swap = 0;
        if self.swaps_whole_rows() {
            self.swap_all(b);
        }
        for k in 0..n {
            let below = n.min(k + self.matrix.lower() + 1);
            if R::LOCKSTEP {
                for i in k + 1..below {
                    let (x, y) = (b[k], b[i]);
                    b[k] = X::select(&self.swaps[swap], y, x);
                    b[i] = X::select(&self.swaps[swap], x, y);
                    swap += 1;
                }
            } else if !self.swaps_whole_rows() {
                b.swap(k, self.pivots[k]);
            }
            let x = b[k];
            for (b, &factor) in b[k + 1..below].iter_mut().zip(self.matrix.column(k, k + 1..below)) {
                *b = *b - times(factor, x);
            }
        }
        for k in (0..n).rev() {
            let rows = k.saturating_sub(self.matrix.upper())..k;
            let x = times(self.matrix[(k, k)], b[k]);
            b[k] = x;
            for (b, &entry) in b[rows.clone()].iter_mut().zip(self.matrix.column(k, rows)) {
                *b = *b - times(entry, x);
            }
        }
    }
}

/// Whether R is one number, not lanes or a dual number.
const fn is_single<R: Real>() -> bool {
    R::UNROLLED && !R::LOCKSTEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::linear::blocks::BLOCK;
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::ode::{Dual, Lanes};

    /// Pseudorandom numbers between -1 and 1.
    fn entry(i: usize, j: usize, seed: f64) -> f64 {
        (seed + 12.9898 * i as f64 + 78.233 * j as f64).sin()
    }

    /// Sets the entries of a matrix.
    fn write<R: Real>(lu: &mut Lu<R>, entry: impl Fn(usize, usize) -> R) {
        let n = lu.matrix.n();
        lu.clear();
        for j in 0..n {
            let rows = j.saturating_sub(lu.upper)..n.min(j + lu.matrix.lower() + 1);
            lu.column_mut(j, rows.clone()).iter_mut().zip(rows).for_each(|(to, i)| *to = entry(i, j));
        }
    }

    /// The largest residual of a system whose solution is all ones.
    fn residual(n: usize, lower: usize, upper: usize) -> f64 {
        let is_inside = |i: usize, j: usize| i <= j + lower && j <= i + upper;
        let a = |i, j| if is_inside(i, j) { entry(i, j, 1.0) } else { 0.0 };
        let mut lu = Lu::<f64>::new(n, lower, upper);
        write(&mut lu, a);
        assert_eq!(lu.factor::<0>(), None);
        let mut x: Vec<f64> = (0..n).map(|i| (0..n).map(|j| a(i, j)).sum()).collect();
        let b = x.clone();
        lu.solve::<0>(&mut x);
        let product = |i: usize| (0..n).map(|j| a(i, j) * x[j]).sum::<f64>();
        (0..n).map(|i| (product(i) - b[i]).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn an_entry_that_is_not_finite_gives_a_solution_that_is_not() {
        for n in 1..=9 {
            for (place, bad) in (0..n * n).flat_map(|place| [(place, f64::INFINITY), (place, f64::NAN)]) {
                let is_diagonal = |i: usize, j: usize| if i == j { 2.0 } else { 0.0 };
                for scale in [1.0, -1.0] {
                    let mut lu = Lu::<f64>::new(n, n - 1, n - 1);
                    write(&mut lu, |i, j| if i * n + j == place { scale * bad } else { is_diagonal(i, j) });
                    lu.factor::<0>();
                    let mut x = vec![1.0; n];
                    lu.solve::<0>(&mut x);
                    assert!(x.iter().any(|x| !x.is_finite()), "{bad} at {place} of {n}: {x:?}");
                }
            }
        }
    }

    #[test]
    fn dense_and_banded_systems_are_solved_to_rounding() {
        for (n, lower, upper) in
            [(1, 0, 0), (2, 1, 1), (7, 6, 6), (30, 29, 29), (40, 2, 3), (40, 0, 5), (9, 3, 0)]
        {
            let residual = residual(n, lower, upper);
            assert!(residual < 1e-11, "{n} {lower} {upper}: {residual:e}");
        }
    }

    #[test]
    fn single_numbers_have_the_bits_of_dual_numbers_whatever_the_blocks() {
        let (mut draw, mut seen, mut singular, mut planted) = (Draw(40), [[0; 2]; BLOCK], 0, 0);
        for _ in 0..num_cases(400) {
            let (n, is_banded) = (draw.below(41), draw.coin());
            let [lower, upper] = [0; 2].map(|_| if is_banded { draw.below(4) } else { n.max(1) - 1 });
            // Small integers have ties and zeros.
            let is_integer = draw.coin();
            let number = |draw: &mut Draw| {
                let x = draw.uniform(-3.0, 3.0);
                if is_integer { x.round() } else { x }
            };
            let mut entries: Vec<f64> = (0..n * n).map(|_| number(&mut draw)).collect();
            let b: Vec<f64> = (0..n).map(|_| number(&mut draw)).collect();
            if n > 0 && draw.below(3) == 0 {
                const SPECIAL: [f64; 6] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 5e-324, -1e300];
                entries[draw.below(n * n)] = SPECIAL[draw.below(6)];
                planted += 1;
            }

            let (mut lu, mut of_duals) = (Lu::<f64>::new(n, lower, upper), Lu::new(n, lower, upper));
            write(&mut lu, |i, j| entries[i * n + j]);
            write(&mut of_duals, |i, j| Dual::<f64, 1>::from(entries[i * n + j]));
            let mut of_constant_size = lu.clone();
            let found = lu.factor::<0>();
            assert_eq!(found, of_duals.factor::<0>());
            singular += usize::from(found.is_some());
            let (mut x, mut one_by_one) = (b.clone(), b.clone());
            lu.solve::<0>(&mut x);
            lu.solve_for(&mut one_by_one, |entry, x: f64| entry * x);
            let mut as_duals: Vec<Dual<f64, 1>> = b.iter().map(|&x| Dual::from(x)).collect();
            of_duals.solve::<0>(&mut as_duals);
            let duals: Vec<f64> = as_duals.iter().map(|x| x.value()).collect();
            // A NaN has no defined bits.
            let bits = |x: &[f64]| -> Vec<u64> {
                x.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect()
            };
            assert_eq!(bits(&x), bits(&duals), "{n} {lower} {upper}");
            assert_eq!(bits(&x), bits(&one_by_one), "{n} {lower} {upper}");
            let mut same = b.clone();
            macro_rules! solve {
                ($($n:literal)*) => {
                    match n {
                        $($n => {
                            assert_eq!(of_constant_size.factor::<$n>(), found);
                            of_constant_size.solve::<$n>(&mut same);
                        })*
                        _ => same = x.clone(),
                    }
                };
            }
            solve!(1 2 3 4);
            assert_eq!(bits(&x), bits(&same), "{n} {lower} {upper}");
            seen[n % BLOCK][usize::from(lu.swaps_whole_rows())] += 1;
        }
        let all_seen = seen.iter().flatten().all(|&count| count > 10) && singular > 10 && planted > 10;
        assert!(
            all_seen,
            "sizes modulo {BLOCK}, banded and dense: {seen:?}; singular: {singular}, special: {planted}"
        );
    }

    #[test]
    fn a_column_without_a_pivot_is_named() {
        let mut lu = Lu::<f64>::new(3, 2, 2);
        // The third equation is the sum of the others.
        let rows = [[1.0, 2.0, 4.0], [2.0, 1.0, 8.0], [3.0, 3.0, 12.0]];
        write(&mut lu, |i, j| rows[i][j]);
        assert_eq!(lu.factor::<0>(), Some(2));
    }

    #[test]
    fn each_lane_pivots_as_it_does_beside_others() {
        const N: usize = 5;
        let solution = |seeds: [f64; 4]| {
            let number = |i, j| Lanes::new(seeds.map(|seed| entry(i, j, seed)));
            let mut lu = Lu::<Lanes<f64, 4>>::new(N, N - 1, N - 1);
            write(&mut lu, number);
            lu.factor::<0>();
            let mut b: Vec<_> = (0..N).map(|i| number(i, N)).collect();
            lu.solve::<0>(&mut b);
            b
        };
        let (together, alone) = (solution([1.0, 2.0, 3.0, 4.0]), solution([3.0; 4]));
        for i in 0..N {
            assert_eq!(together[i].lane(2).to_bits(), alone[i].lane(0).to_bits());
        }
        for seed in 0..4 {
            let at = |i, j| entry(i, j, (seed + 1) as f64);
            for i in 0..N {
                let sum: f64 = (0..N).map(|j| at(i, j) * together[j].lane(seed)).sum();
                assert!((sum - at(i, N)).abs() < 1e-13, "{seed} {i}");
            }
        }
    }
}
