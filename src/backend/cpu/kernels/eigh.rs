//! Eigenvalues and eigenvectors of symmetric matrices: Householder tridiagonalization, then implicit QL steps.
//!
//! The eigenvectors are the rows of a matrix until they are complete, because a rotation of two rows is one loop over
//! contiguous numbers. The order of the operations depends only on the order and the entries of a matrix.
//!
//! # References
//! Golub, Van Loan (2013), Matrix Computations, section 8.3; Dubrulle, Martin, Wilkinson (1968), The implicit QL
//! algorithm, Numerische Mathematik 12.

use super::scalar::{Factorization, Number, Scalar, add_multiple, dot, factor_each, minus, multiply, plus};
use crate::simd::Level;

/// The largest number of QL steps per eigenvalue. About two are needed.
const MAX_STEPS: usize = 50;

/// The numbers of work per matrix.
pub fn eigh_work(n: usize) -> usize {
    n * n + 3 * n
}

/// Writes the eigenvectors of the symmetric parts of the n x n matrices `a` to `out`, as columns of n rows, and the
/// eigenvalues, ascending, to one more row. All are NaN if an entry is not finite. `work` has the [room](super::room) for
/// [`eigh_work`].
pub fn eigh<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T], work: &mut [T]) {
    if n == 0 {
        return;
    }
    factor_each(level, &Eigh { n }, a, &mut *out, work);
    for out in out.chunks_exact_mut((n + 1) * n) {
        let (rows, values) = out.split_at_mut(n * n);
        sort(n, rows, values);
        rows.chunks_exact_mut(n).for_each(turn);
        transpose(n, rows);
    }
}

/// Eigenvectors and eigenvalues of matrices of order n.
struct Eigh {
    n: usize,
}

impl<T: Scalar> Factorization<T> for Eigh {
    fn sizes(&self) -> [usize; 3] {
        [self.n * self.n, (self.n + 1) * self.n, eigh_work(self.n)]
    }

    /// Writes the eigenvectors as rows, and the eigenvalues, in any order.
    #[inline(always)]
    fn group<E: Number<Elem = T>, const FUSED: bool>(
        &self,
        level: Level,
        a: &[T],
        out: &mut [T],
        work: &mut [E],
    ) {
        let n = self.n;
        let (rows, rest) = work[..eigh_work(n)].split_at_mut(n * n);
        E::load(level, a, n * n, rows);
        let (values, rest) = rest.split_at_mut(n);
        let (off, sums) = rest.split_at_mut(n);
        let half = E::of(T::near(0.5));
        for i in 0..n {
            for j in 0..=i {
                // The sum of two entries could overflow.
                let x = rows[i * n + j].mul(half).add(rows[j * n + i].mul(half));
                (rows[i * n + j], rows[j * n + i]) = (x, x);
            }
        }
        // The sum is 0, or NaN if an entry is not finite.
        let (mut most, mut sum) = (E::zero(), E::zero());
        for &x in &*rows {
            (most, sum) = (most.larger(x.magnitude()), sum.add(x.mul(E::zero())));
        }
        let scale = most.scale();
        multiply(rows, E::one().div(scale));
        tridiagonalize::<E, FUSED>(n, rows, (values, off), sums);
        accumulate::<E, FUSED>(n, rows);
        let is_found = diagonalize::<E, FUSED>(n, rows, values, off);
        let is_found = E::both(is_found, sum.less(E::one()));
        multiply(values, scale);
        let found = &mut work[..(n + 1) * n];
        for x in &mut *found {
            // A rotation by 0, which other matrices of the group may cause, changes at most the sign of a zero.
            *x = E::choose(is_found, x.add(E::zero()), E::of(T::NAN));
        }
        E::store(level, found, out);
    }
}

/// Reduces the matrix by reflections to a tridiagonal one, with the diagonal `values` and `off` beside it. Row k keeps
/// the reflection `I - tau v v^T` that made its column zero: tau on the diagonal, v behind it.
#[inline(always)]
fn tridiagonalize<E: Number, const FUSED: bool>(
    n: usize,
    rows: &mut [E],
    (values, off): (&mut [E], &mut [E]),
    sums: &mut [E],
) {
    let (zero, half) = (E::zero(), E::of(E::Elem::near(0.5)));
    let small = E::of(E::Elem::SMALL.mul(E::Elem::SMALL));
    for k in 0..n {
        let (head, below) = rows[k * n..].split_at_mut(n);
        values[k] = head[k];
        off[k] = head.get(k + 1).copied().unwrap_or(zero);
        head[k] = zero;
        if k + 2 >= n {
            continue;
        }
        let (tau, v) = head[k..].split_first_mut().expect("invariant: a row");
        let (first, rest) = (v[0], dot::<E, FUSED>(&v[1..], &v[1..]));
        // Smaller entries are no larger than the rounding errors of the matrix, whose largest entry is near 1.
        let is_zero = E::not(small.less(rest));
        let unless = |x: E, otherwise: E| E::choose(is_zero, otherwise, x);
        let norm = plus::<E, FUSED>(rest, first, first).sqrt();
        let beta = E::choose(first.less(zero), norm, norm.neg());
        off[k] = unless(beta, first);
        *tau = unless(beta.sub(first).div(beta), zero);
        multiply(v, unless(E::one().div(first.sub(beta)), zero));
        v[0] = E::one();
        // w = tau (A v - tau (v^T A v) v / 2), and A - v w^T - w v^T.
        let w = &mut sums[k + 1..n];
        w.fill(zero);
        for (line, &x) in below.chunks_exact(n).zip(&*v) {
            add_multiple::<E, FUSED>(w, x, &line[k + 1..]);
        }
        let shift = tau.mul(dot::<E, FUSED>(w, v)).mul(half).neg();
        add_multiple::<E, FUSED>(w, shift, v);
        multiply(w, *tau);
        for (i, line) in below.chunks_exact_mut(n).enumerate() {
            let (x, y) = (v[i], w[i]);
            for (entry, (&v, &w)) in line[k + 1..].iter_mut().zip(v.iter().zip(&*w)) {
                *entry = minus::<E, FUSED>(minus::<E, FUSED>(*entry, x, w), y, v);
            }
        }
    }
}

/// The transpose of the product of the reflections, in their place.
#[inline(always)]
fn accumulate<E: Number, const FUSED: bool>(n: usize, rows: &mut [E]) {
    for k in (0..n).rev() {
        let (head, below) = rows[k * n..].split_at_mut(n);
        let (tau, v) = head[k..].split_first_mut().expect("invariant: a row");
        for line in below.chunks_exact_mut(n) {
            let (first, line) = line[k..].split_first_mut().expect("invariant: a row");
            *first = E::zero();
            // The last two rows have no reflection.
            if k + 2 < n {
                let factor = tau.mul(dot::<E, FUSED>(line, v)).neg();
                add_multiple::<E, FUSED>(line, factor, v);
            }
        }
        *tau = E::one();
        v.fill(E::zero());
    }
}

/// Makes the tridiagonal matrix diagonal by rotations, which `rows` collect. The result tells whether the step limit was not
/// reached. A matrix that reaches it has no further entries beside the diagonal, so that it does not stop the others.
#[inline(always)]
fn diagonalize<E: Number, const FUSED: bool>(n: usize, rows: &mut [E], d: &mut [E], e: &mut [E]) -> E::Mask {
    let mut is_found = E::zero().less(E::one());
    for l in 0..n {
        for steps in 0..=MAX_STEPS {
            let part = Part::of(l, n, d, e);
            if part.end == l {
                break;
            }
            if steps == MAX_STEPS {
                let is_stuck = E::zero().less(part.len);
                is_found = E::both(is_found, E::not(is_stuck));
                e.iter_mut().for_each(|x| *x = E::choose(is_stuck, E::zero(), *x));
                break;
            }
            step::<E, FUSED>(n, (l, &part), rows, (d, e));
        }
    }
    is_found
}

/// The rows l, l + 1, .. of a tridiagonal matrix up to the first negligible entry beside the diagonal.
struct Part<E> {
    /// The number of entries that are not negligible.
    len: E,
    /// The last entry on the diagonal.
    last: E,
    /// The largest end of the parts of a group.
    end: usize,
}

impl<E: Number> Part<E> {
    #[inline(always)]
    fn of(l: usize, n: usize, d: &[E], e: &[E]) -> Part<E> {
        let half_unit = E::of(E::Elem::EPSILON.mul(E::Elem::near(0.5)));
        // The largest entry of the matrix is near 1, so smaller entries are no larger than its rounding errors.
        let least = E::of(E::Elem::SMALL.add(E::Elem::SMALL));
        let mut part = Part { len: E::zero(), last: d[l], end: l };
        let mut is_inside = E::zero().less(E::one());
        for i in l..n - 1 {
            let bound = d[i].magnitude().add(d[i + 1].magnitude()).mul(half_unit).larger(least);
            is_inside = E::both(is_inside, bound.less(e[i].magnitude()));
            if !E::any(is_inside) {
                break;
            }
            part.len = E::choose(is_inside, part.len.add(E::one()), part.len);
            part.last = E::choose(is_inside, d[i + 1], part.last);
            part.end = i + 1;
        }
        part
    }
}

/// One implicit QL step on the parts that begin at row l. A part of length 0 stays as it is.
#[inline(always)]
fn step<E: Number, const FUSED: bool>(
    n: usize,
    (l, part): (usize, &Part<E>),
    rows: &mut [E],
    (d, e): (&mut [E], &mut [E]),
) {
    let (zero, one, small) = (E::zero(), E::one(), E::of(E::Elem::SMALL));
    let ratio = d[l + 1].sub(d[l]).div(e[l].add(e[l]));
    let root = plus::<E, FUSED>(one, ratio, ratio).sqrt();
    let signed = E::choose(ratio.less(zero), root.neg(), root);
    let mut g = part.last.sub(d[l]).add(e[l].div(ratio.add(signed)));
    let (mut sine, mut cosine, mut shift) = (one, one, zero);
    let mut is_on = zero.less(part.len);
    for i in (l..part.end).rev() {
        let place = E::of(E::Elem::near((i - l) as f64));
        let is_inside = E::both(is_on, place.less(part.len));
        let (f, b) = (sine.mul(e[i]), cosine.mul(e[i]));
        let radius = plus::<E, FUSED>(f.mul(f), g, g).sqrt();
        // The first rotation of a step makes an entry beside the diagonal zero. So does one by a negligible radius, which ends
        // the step: its squares may be 0.
        let is_later = place.add(one).less(part.len);
        e[i + 1] = E::choose(is_inside, E::choose(is_later, radius, zero), e[i + 1]);
        let moves = E::both(is_inside, small.less(radius));
        let stops = E::both(is_inside, E::not(small.less(radius)));
        d[i + 1] = E::choose(stops, d[i + 1].sub(shift), d[i + 1]);
        is_on = E::both(is_on, E::not(stops));
        let (s, c) = (f.div(radius), g.div(radius));
        let middle = d[i + 1].sub(shift);
        let slope = plus::<E, FUSED>(d[i].sub(middle).mul(s), c.add(c), b);
        let (moved, next) = (s.mul(slope), c.mul(slope).sub(b));
        d[i + 1] = E::choose(moves, middle.add(moved), d[i + 1]);
        (sine, cosine) = (E::choose(moves, s, sine), E::choose(moves, c, cosine));
        (shift, g) = (E::choose(moves, moved, shift), E::choose(moves, next, g));
        let (s, c) = (E::choose(moves, s, zero), E::choose(moves, c, one));
        let (first, second) = rows[i * n..][..2 * n].split_at_mut(n);
        for (x, y) in first.iter_mut().zip(second) {
            let (p, q) = (*x, *y);
            *y = plus::<E, FUSED>(s.mul(p), c, q);
            *x = minus::<E, FUSED>(c.mul(p), s, q);
        }
    }
    let is_on = E::both(is_on, zero.less(part.len));
    d[l] = E::choose(is_on, d[l].sub(shift), d[l]);
    e[l] = E::choose(is_on, g, e[l]);
}

/// Sorts the eigenvalues, with the rows of their vectors.
fn sort<T: Scalar>(n: usize, rows: &mut [T], values: &mut [T]) {
    for i in 0..n {
        let mut least = i;
        for j in i + 1..n {
            least = if values[j] < values[least] { j } else { least };
        }
        if least != i {
            values.swap(i, least);
            let (above, below) = rows.split_at_mut(least * n);
            above[i * n..][..n].swap_with_slice(&mut below[..n]);
        }
    }
}

/// Makes the first entry positive that has at least nine tenths of the largest magnitude.
fn turn<T: Scalar>(vector: &mut [T]) {
    let most = vector.iter().fold(T::zero(), |most, x| most.larger(x.magnitude()));
    let bound = most.mul(T::near(0.9));
    let entry = vector.iter().find(|x| x.magnitude() >= bound);
    if entry.is_some_and(|&x| x < T::zero()) {
        vector.iter_mut().for_each(|x| *x = x.neg());
    }
}

fn transpose<T: Scalar>(n: usize, rows: &mut [T]) {
    for i in 1..n {
        for j in 0..i {
            rows.swap(i * n + j, j * n + i);
        }
    }
}
