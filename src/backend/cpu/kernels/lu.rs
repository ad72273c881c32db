//! LU factorizations with partial pivoting, and solutions from the factors; small matrices of a batch are side by side.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on
//! the numbers of right-hand sides and matrices. The code is safe, and is compiled for the portable level
//! and for AVX2 with fused multiply-add; AVX-512 uses the latter, since most matrices are small.

use super::scalar::{Factorization, Number, Scalar, each_group, minus};
use super::triangular::substitute;
use crate::graph::Triangle;
use crate::simd::{Level, Work, is_fused, run_narrow};

/// The numbers of work per matrix that is factored side by side with others.
pub fn lu_work(n: usize) -> usize {
    (n + 1) * n
}

/// Writes the factors of the n x n matrices `a` to `out`: for each, n rows and the permutation. `work` has the
/// [room beside](super::room_beside) others for [`lu_work`].
pub fn lu<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T], work: &mut [T]) {
    if n == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Factor::<T, true> { level, n, a, out, work }),
        false => Factor::<T, false> { level, n, a, out, work }.run(),
    }
}

struct Factor<'a, T, const FUSED: bool> {
    level: Level,
    n: usize,
    a: &'a [T],
    out: &'a mut [T],
    work: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Factor<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Factor { level, n, a, out, work } = self;
        let sizes = [n * n, lu_work(n)];
        if !work.is_empty() {
            return each_group(
                (level, &Order::<FUSED> { n }),
                [sizes[0], sizes[1], sizes[1]],
                (a, out),
                work,
            );
        }
        for (a, out) in a.chunks_exact(sizes[0]).zip(out.chunks_exact_mut(sizes[1])) {
            let (rows, permutation) = out.split_at_mut(n * n);
            rows.copy_from_slice(a);
            factor::<T, FUSED>(n, rows, permutation);
        }
    }
}

/// The order of matrices side by side.
struct Order<const FUSED: bool> {
    n: usize,
}

impl<T: Scalar, const FUSED: bool> Factorization<T> for Order<FUSED> {
    #[inline(always)]
    fn group<E: Number<Elem = T>>(&self, level: Level, a: &[T], out: &mut [T], work: &mut [E]) {
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

/// The shape of a group of systems with one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The order of the matrices.
    pub n: usize,
    /// The number of right-hand sides of each matrix.
    pub m: usize,
}

/// The numbers of work per matrix of systems that are solved side by side with others.
pub fn lu_solve_work(Sides { n, m }: Sides) -> usize {
    n * n + n * m
}

/// Writes the solutions for the right-hand sides `b` to `x`, by the factors of the matrices or of their transposes. A row
/// number beyond the matrix counts as the last row. `work` has the [room beside](super::room_beside) others for
/// [`lu_solve_work`].
pub fn lu_solve<T: Scalar>(
    level: Level,
    (sides, transposed): (Sides, bool),
    factors: &[T],
    b: &[T],
    (x, work): (&mut [T], &mut [T]),
) {
    if sides.n == 0 || sides.m == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Solve::<T, true> { level, sides, transposed, factors, b, x, work }),
        false => Solve::<T, false> { level, sides, transposed, factors, b, x, work }.run(),
    }
}

struct Solve<'a, T, const FUSED: bool> {
    level: Level,
    sides: Sides,
    transposed: bool,
    factors: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
    work: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Solve<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Solve { level, sides, transposed, factors, b, x, work } = self;
        let Sides { n, m } = sides;
        let size = lu_work(n);
        if !work.is_empty() {
            let work = T::Lanes::split(work);
            let all = factors.chunks(T::Lanes::LEN * size).zip(b.chunks(T::Lanes::LEN * n * m));
            for ((factors, b), x) in all.zip(x.chunks_mut(T::Lanes::LEN * n * m)) {
                beside::<T::Lanes, FUSED>(level, (sides, transposed), factors, b, (x, &mut *work));
            }
            return;
        }
        for ((factors, b), x) in
            factors.chunks_exact(size).zip(b.chunks_exact(n * m)).zip(x.chunks_exact_mut(n * m))
        {
            let (rows, permutation) = factors.split_at(n * n);
            if transposed {
                x.copy_from_slice(b);
                both::<T, FUSED>(sides, transposed, rows, x);
                place(n, m, permutation, x);
            } else {
                for (x, row) in x.chunks_exact_mut(m).zip(permutation) {
                    x.copy_from_slice(&b[row.row().min(n - 1) * m..][..m]);
                }
                both::<T, FUSED>(sides, transposed, rows, x);
            }
        }
    }
}

/// L U x = P b, where x holds P b; or y = P x of U^T L^T P x = b, where x holds b and y takes its place.
#[inline(always)]
fn both<E: Number, const FUSED: bool>(sides: Sides, transposed: bool, rows: &[E], x: &mut [E]) {
    let (lower, upper) = (Triangle::LOWER.unit_diagonal(), Triangle::UPPER);
    if transposed {
        substitute::<E, FUSED>(sides, upper.transposed(), rows, x);
        substitute::<E, FUSED>(sides, lower.transposed(), rows, x);
    } else {
        substitute::<E, FUSED>(sides, lower, rows, x);
        substitute::<E, FUSED>(sides, upper, rows, x);
    }
}

/// The solutions of a group of systems side by side.
#[inline(always)]
fn beside<E: Number, const FUSED: bool>(
    level: Level,
    (sides, transposed): (Sides, bool),
    factors: &[E::Elem],
    b: &[E::Elem],
    (out, work): (&mut [E::Elem], &mut [E]),
) {
    let Sides { n, m } = sides;
    let (rows, x) = work[..n * n + n * m].split_at_mut(n * n);
    E::load(level, factors, lu_work(n), rows);
    let (factors, of_b) = (E::group(factors, lu_work(n)), E::group(b, n * m));
    let row = |matrix: usize, i: usize| E::entry(&factors, matrix, n * n + i).row().min(n - 1);
    if transposed {
        E::load(level, b, n * m, x);
        both::<E, FUSED>(sides, transposed, rows, x);
        // Numbers that are no permutation may leave rows without a value.
        out.fill(E::Elem::default());
        for (i, x) in x.iter().enumerate() {
            x.write_at(out, n * m, |matrix| row(matrix, i / m) * m + i % m);
        }
    } else {
        for (i, x) in x.iter_mut().enumerate() {
            *x = E::collect(|matrix| E::entry(&of_b, matrix, row(matrix, i / m) * m + i % m));
        }
        both::<E, FUSED>(sides, transposed, rows, x);
        E::store(level, x, out);
    }
}

/// Moves row i of x to row `permutation[i]`, one cycle after another.
#[inline(always)]
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
