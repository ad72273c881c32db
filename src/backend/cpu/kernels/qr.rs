//! QR factorizations by Householder reflections, column after column.
//!
//! A reflection is `H = I - tau v v^T` with v = (1, ..), of which the entries behind the first are stored below the
//! diagonal. The signs are those of LAPACK. The order of the operations depends only on the sides of a matrix.
//!
//! # References
//! Golub, Van Loan (2013), Matrix Computations, sections 5.1 and 5.2.

use super::scalar::{Factorization, Number, Scalar, add_multiple, factor_each, multiply, plus};
use crate::simd::Level;

/// The numbers of work per matrix.
pub fn qr_work((m, n): (usize, usize)) -> usize {
    (m + m.min(n)) * n
}

/// Writes the factors of the m x n matrices `a` to `out`: for each, m rows with Q in their first k columns and zeros
/// behind it, and k rows of R, with k = min(m, n). `work` has the [room](super::room) for [`qr_work`].
pub fn qr<T: Scalar>(level: Level, (m, n): (usize, usize), a: &[T], out: &mut [T], work: &mut [T]) {
    factor_each(level, &Qr { m, n }, a, out, work);
}

/// QR factorizations of m x n matrices.
struct Qr {
    m: usize,
    n: usize,
}

impl<T: Scalar> Factorization<T> for Qr {
    fn sizes(&self) -> [usize; 3] {
        let size = qr_work((self.m, self.n));
        [self.m * self.n, size, size]
    }

    #[inline(always)]
    fn group<E: Number<Elem = T>, const FUSED: bool>(
        &self,
        level: Level,
        a: &[T],
        out: &mut [T],
        work: &mut [E],
    ) {
        let Qr { m, n } = *self;
        let (k, work) = (m.min(n), &mut work[..qr_work((m, n))]);
        let (q, r) = work.split_at_mut(m * n);
        E::load(level, a, m * n, q);
        for (j, row) in r.chunks_exact_mut(n).enumerate() {
            reduce::<E, FUSED>(n, j, q, row);
        }
        accumulate::<E, FUSED>(n, k, q, r);
        q.chunks_exact_mut(n).for_each(|row| row[k..].fill(E::zero()));
        r.chunks_exact_mut(n).enumerate().for_each(|(i, row)| row[..i].fill(E::zero()));
        E::store(level, work, out);
    }
}

/// Makes column j zero below the diagonal by a reflection, and moves row j to `row`. Its tau takes the place of the diagonal.
#[inline(always)]
fn reduce<E: Number, const FUSED: bool>(n: usize, j: usize, q: &mut [E], row: &mut [E]) {
    let (head, below) = q[j * n..].split_at_mut(n);
    let (diagonal, tau, factor) = reflection::<E, FUSED>(n, j, head[j], below);
    let sums = &mut row[j + 1..];
    sums.copy_from_slice(&head[j + 1..]);
    for line in below.chunks_exact_mut(n) {
        line[j] = line[j].mul(factor);
        add_multiple::<E, FUSED>(sums, line[j], &line[j + 1..]);
    }
    multiply(sums, tau.neg());
    for line in below.chunks_exact_mut(n) {
        let v = line[j];
        add_multiple::<E, FUSED>(&mut line[j + 1..], v, sums);
    }
    for (sum, &x) in sums.iter_mut().zip(&head[j + 1..]) {
        *sum = sum.add(x);
    }
    (row[j], head[j]) = (diagonal, tau);
}

/// The entry of R on the diagonal, tau, and the factor by which the entries below the diagonal become those of v.
#[inline(always)]
fn reflection<E: Number, const FUSED: bool>(n: usize, j: usize, first: E, below: &[E]) -> (E, E, E) {
    let (zero, one, small) = (E::zero(), E::one(), E::of(E::Elem::SMALL.mul(E::Elem::SMALL)));
    let column = || below.iter().skip(j).step_by(n);
    let squares = |scale: E| {
        column().fold(zero, |sum, &x| {
            let x = x.mul(scale);
            plus::<E, FUSED>(sum, x, x)
        })
    };
    let (mut scale, mut sum) = (one, squares(one));
    let size = plus::<E, FUSED>(sum, first, first);
    let is_usual = E::both(small.less(size), size.less(one.div(small)));
    if E::any(E::not(is_usual)) {
        let most = column().fold(first.magnitude(), |most, x| most.larger(x.magnitude()));
        scale = E::choose(is_usual, one, one.div(most.scale()));
        sum = E::choose(is_usual, sum, squares(scale));
    }
    // Sums are not negative. A NaN is not less than 0, but it is no zero.
    let is_zero = E::both(E::not(zero.less(sum)), sum.less(one));
    let scaled = first.mul(scale);
    let norm = plus::<E, FUSED>(sum, scaled, scaled).sqrt();
    let diagonal = E::choose(scaled.less(zero), norm, norm.neg());
    let (tau, factor) = (diagonal.sub(scaled).div(diagonal), scale.div(scaled.sub(diagonal)));
    let unless = |x: E, otherwise: E| E::choose(is_zero, otherwise, x);
    (unless(diagonal.div(scale), first), unless(tau, zero), unless(factor, zero))
}

/// The first k columns of the product of the reflections in q, in their place. The last row of R holds sums in its zeros.
#[inline(always)]
fn accumulate<E: Number, const FUSED: bool>(n: usize, k: usize, q: &mut [E], r: &mut [E]) {
    for j in (0..k).rev() {
        let (above, rows) = q.split_at_mut(j * n);
        let (head, below) = rows.split_at_mut(n);
        let tau = head[j];
        let sums = &mut r[(k - 1) * n..][..k - 1 - j];
        sums.fill(E::zero());
        for line in below.chunks_exact(n) {
            add_multiple::<E, FUSED>(sums, line[j], &line[j + 1..k]);
        }
        multiply(sums, tau.neg());
        head[j + 1..k].copy_from_slice(sums);
        for line in below.chunks_exact_mut(n) {
            let v = line[j];
            add_multiple::<E, FUSED>(&mut line[j + 1..k], v, sums);
            line[j] = tau.neg().mul(v);
        }
        head[j] = E::one().sub(tau);
        above.iter_mut().skip(j).step_by(n).for_each(|x| *x = E::zero());
    }
}
