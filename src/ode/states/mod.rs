//! The states of the host: numbers, arrays, `Vec`s, nalgebra, ndarray, and compounds of them.
//!
//! The same sums in the same order for all of them, so that `f64`, `[f64; 1]` and `Vec<f64>` give the same bits:
//! `sum_i a_i k_i` over the non-zero `a_i` from left to right, then `y + dt * sum`; squares are added up in
//! [`PARTIAL_SUMS`] interleaved partial sums, which is what lets the compiler use vector registers. What is on the
//! stack is unrolled by the compiler ([`arrays`]); what is on the heap takes a loop compiled for its number of terms
//! ([`heap`]). Each kind of state only says where its numbers lie; none may sum on its own, or bits would differ.

mod arrays;
mod compound;
mod heap;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
mod numbers;

use super::{Clock, Real};

pub use compound::{DriveOn, Part};

/// Interleaved partial sums of squares: as many as an AVX-512 register has f64.
const PARTIAL_SUMS: usize = 8;

/// `sum_i a_i k(i)` over the non-zero `a_i`; `None` where there is none.
#[inline(always)]
fn weighted_sum<R: Real>(a: &[f64], k: impl Fn(usize) -> R) -> Option<R> {
    let mut sum = None;
    for (i, &a) in a.iter().enumerate() {
        if a != 0.0 {
            sum = Some(match sum {
                None => k(i).scale(a),
                Some(sum) => k(i).scale_add(a, sum),
            });
        }
    }
    sum
}

#[inline(always)]
fn lincomb<R: Real>(y: R, dt: &R::Clock, a: &[f64], k: impl Fn(usize) -> R) -> R {
    match weighted_sum(a, k) {
        None => y,
        Some(sum) => y + sum.scale_by(dt),
    }
}

/// `sqrt(mean_j square(j))` over n components.
#[inline(always)]
fn root_mean<C: Clock>(zero: &C, n: usize, square: impl Fn(usize) -> C) -> C {
    let mut sums: [C; PARTIAL_SUMS] = std::array::from_fn(|_| zero.clone());
    for j in 0..n {
        let sum = &mut sums[j % PARTIAL_SUMS];
        *sum = sum.add(&square(j));
    }
    add_up(&sums, n)
}

#[inline(always)]
fn add_up<C: Clock>(sums: &[C; PARTIAL_SUMS], n: usize) -> C {
    let mut total = sums[0].clone();
    for sum in &sums[1..PARTIAL_SUMS.min(n.max(1))] {
        total = total.add(sum);
    }
    total.mul(&total.like(1.0 / n.max(1) as f64)).sqrt()
}
