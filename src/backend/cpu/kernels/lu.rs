//! LU factorizations with partial pivoting, and solutions from the factors; small matrices of a batch are side by side.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on
//! the numbers of right-hand sides and matrices. The code is safe, and is compiled for the portable level
//! and for AVX2 with fused multiply-add; AVX-512 uses the latter, since most matrices are small.

use super::scalar::{Factorization, Number, Scalar, factor_each, minus};
use super::triangular::{Sides, solve_in_place};
use crate::graph::Triangle;
use crate::simd::Level;

/// The numbers of work per matrix.
pub fn lu_work(n: usize) -> usize {
    (n + 1) * n
}

/// Writes the factors of the n x n matrices `a` to `out`: for each, n rows and the permutation. `work` has the
/// [room](super::room) for [`lu_work`].
pub fn lu<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T], work: &mut [T]) {
    factor_each(level, &Lu { n }, a, out, work);
}

/// LU factorizations of matrices of order n.
struct Lu {
    n: usize,
}

impl<T: Scalar> Factorization<T> for Lu {
    fn sizes(&self) -> [usize; 3] {
        [self.n * self.n, lu_work(self.n), lu_work(self.n)]
    }

    #[inline(always)]
    fn group<E: Number<Elem = T>, const FUSED: bool>(
        &self,
        level: Level,
        a: &[T],
        out: &mut [T],
        work: &mut [E],
    ) {
        let (n, work) = (self.n, &mut work[..lu_work(self.n)]);
        let (rows, permutation) = work.split_at_mut(n * n);
        E::load(level, a, n * n, rows);
        factor::<E, FUSED>(n, rows, permutation);
        E::store(level, work, out);
    }
}

#[inline(always)]
fn factor<E: Number, const FUSED: bool>(n: usize, rows: &mut [E], permutation: &mut [E]) {
    let place = |i: usize| E::of(E::Elem::near(i as f64));
    permutation.iter_mut().enumerate().for_each(|(i, row)| *row = place(i));
    for k in 0..n {
        exchange(n, k, rows, permutation);
        eliminate::<E, FUSED>(n, k, rows);
    }
}

/// Exchanges row k with the row from k on whose entry in column k is the largest; the first of several.
#[inline(always)]
fn exchange<E: Number>(n: usize, k: usize, rows: &mut [E], permutation: &mut [E]) {
    let place = |i: usize| E::of(E::Elem::near(i as f64));
    let (mut pivot, mut largest) = (place(k), rows[k * n + k].magnitude());
    for i in k + 1..n {
        let size = rows[i * n + k].magnitude();
        let is_larger = largest.less(size);
        (pivot, largest) = (E::choose(is_larger, place(i), pivot), E::choose(is_larger, size, largest));
    }
    for i in k + 1..n {
        let is_pivot = E::both(E::not(pivot.less(place(i))), E::not(place(i).less(pivot)));
        if !E::any(is_pivot) {
            continue;
        }
        let swap = |x: &mut E, y: &mut E| {
            (*x, *y) = (E::choose(is_pivot, *y, *x), E::choose(is_pivot, *x, *y));
        };
        let (above, below) = rows.split_at_mut(i * n);
        above[k * n..][..n].iter_mut().zip(&mut below[..n]).for_each(|(x, y)| swap(x, y));
        let (above, below) = permutation.split_at_mut(i);
        swap(&mut above[k], &mut below[0]);
    }
}

/// Subtracts multiples of row k from the rows below it. A pivot of 0 has zeros below it, or a NaN; it subtracts nothing.
#[inline(always)]
fn eliminate<E: Number, const FUSED: bool>(n: usize, k: usize, rows: &mut [E]) {
    let (above, below) = rows.split_at_mut((k + 1) * n);
    let first = &above[k * n + k..];
    let pivot = first[0];
    let is_zero = E::both(E::not(E::zero().less(pivot.magnitude())), pivot.magnitude().less(E::one()));
    let has_zeros = E::any(is_zero);
    if has_zeros && E::LEN == 1 {
        return;
    }
    for row in below.chunks_exact_mut(n) {
        let row = &mut row[k..];
        let multiple = row[0].div(pivot);
        row[0] = E::choose(is_zero, row[0], multiple);
        for (entry, &above) in row[1..].iter_mut().zip(&first[1..]) {
            let left = minus::<E, FUSED>(*entry, multiple, above);
            *entry = if has_zeros { E::choose(is_zero, *entry, left) } else { left };
        }
    }
}

/// Writes the solutions for the right-hand sides `b` to `x`, by the factors of the matrices or of their transposes. A row
/// number beyond the matrix counts as the last row. `work` has the [room beside](super::room_beside) others for
/// [`solve_work`](super::solve_work).
///
/// L U x = P b, or y = P x of U^T L^T P x = b.
pub fn lu_solve<T: Scalar>(
    level: Level,
    (sides, transposed): (Sides, bool),
    factors: &[T],
    b: &[T],
    (x, work): (&mut [T], &mut [T]),
) {
    let (Sides { n, m }, size) = (sides, lu_work(sides.n));
    if n == 0 || m == 0 {
        return;
    }
    let permutations = factors.chunks_exact(size).map(|factors| &factors[n * n..]);
    let (lower, upper) = (Triangle::LOWER.unit_diagonal(), Triangle::UPPER);
    if transposed {
        x.copy_from_slice(b);
        let triangles = [upper.transposed(), lower.transposed()];
        solve_in_place(level, (sides, size), &triangles, factors, (&mut *x, work));
        x.chunks_exact_mut(n * m).zip(permutations).for_each(|(x, to)| place(n, m, to, x));
    } else {
        for ((x, b), from) in x.chunks_exact_mut(n * m).zip(b.chunks_exact(n * m)).zip(permutations) {
            let from = from.iter().map(|row| row.row().min(n - 1));
            if m == 1 {
                x.iter_mut().zip(from).for_each(|(x, row)| *x = b[row]);
            } else {
                x.chunks_exact_mut(m).zip(from).for_each(|(x, row)| x.copy_from_slice(&b[row * m..][..m]));
            }
        }
        solve_in_place(level, (sides, size), &[lower, upper], factors, (x, work));
    }
}

/// Moves row i of x to row `permutation[i]`, one cycle after another.
fn place<T: Scalar>(n: usize, m: usize, permutation: &[T], x: &mut [T]) {
    let to = |i: usize| permutation[i].row().min(n - 1);
    for i in 0..n {
        // A cycle is moved from its first row. At most n rows are looked at, so anything in `permutation` ends.
        let mut j = to(i);
        let mut left = n;
        while j > i && left > 0 {
            (j, left) = (to(j), left - 1);
        }
        if j != i {
            continue;
        }
        let (mut next, mut left) = (to(i), n);
        while next != i && left > 0 {
            (0..m).for_each(|c| x.swap(i * m + c, next * m + c));
            (next, left) = (to(next), left - 1);
        }
    }
}
