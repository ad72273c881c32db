//! The plain states: numbers, arrays, `Vec`s, nalgebra, ndarray, and compounds of them.
//!
//! All of them use the same sums in the same order, so `f64`, `[f64; 1]` and `Vec<f64>` give the same bits:
//! `sum_i a_i k_i` over the non-zero `a_i` from left to right, then `y + dt * sum`, fused if the stages
//! [are](Stages::FUSED). Squares are added in [`PARTIAL_SUMS`] interleaved partial sums, which lets the
//! compiler use vector registers. The compiler unrolls loops over small stack states ([`arrays`]); heap
//! states use a loop compiled for the number of terms ([`heap`]). A kind of state with a loop of its own must
//! add the same terms in the same order.

mod arrays;
mod compound;
mod heap;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
mod numbers;

use super::{Clock, Real, Stages};

pub use compound::{DriveOn, Part};

/// The number of interleaved partial sums of squares: as many as an AVX-512 register holds f64.
pub(super) const PARTIAL_SUMS: usize = 8;

/// The maximum number of stages of a method whose weights are [known](Stages::KNOWN) at compile time.
pub(super) const MOST_TERMS: usize = 16;

/// Whether code over an array of n numbers is unrolled: true for lanes, and for few numbers, whose stages
/// nearly fit into registers. For larger arrays, loops over components in vector registers are faster
/// (Pleiades, 28 components: 680 ns per step of Tsit5 instead of 1,150).
#[inline(always)]
const fn in_registers<R: Real>(n: usize) -> bool {
    n <= FEW || R::LOCKSTEP
}

/// `sum_i a_i k_i` over the non-zero `a_i`, of the component that `pick` selects; `None` if all `a_i` are 0.
#[inline(always)]
fn weighted_sum<S, K: Stages<S> + ?Sized, R: Real>(a: &[f64], k: &K, pick: impl Fn(&S) -> R) -> Option<R> {
    let mut sum = None;
    macro_rules! add {
        ($i:expr) => {
            if a[$i] != 0.0 {
                let k = pick(k.stage($i));
                sum = Some(match sum {
                    None => k.scale(a[$i]),
                    Some(sum) => k.scale_add(K::FUSED, a[$i], sum),
                });
            }
        };
    }
    // The optimizer does not reliably unroll a loop over many weights.
    macro_rules! add_each {
        ($($i:literal)*) => { $( if $i < a.len() { add!($i) } )* };
    }
    if K::KNOWN {
        debug_assert!(a.len() <= MOST_TERMS, "invariant: a known method of {} stages", a.len());
        add_each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    } else {
        for i in 0..a.len() {
            add!(i);
        }
    }
    sum
}

/// The maximum number of components whose loops are [unrolled](in_registers).
const FEW: usize = 8;

/// `sum_i a_i k_i[j]` for each of `n` components j, over the non-zero `a_i`; `None` if all `a_i` are 0.
///
/// For weights that are not compile-time constants: a term is added to all components before the next term,
/// so that each weight is tested once.
#[inline(always)]
fn sums_of_few<S, K: Stages<S> + ?Sized, R: Real>(
    n: usize,
    a: &[f64],
    k: &K,
    pick: impl Fn(&S, usize) -> R,
) -> Option<[R; FEW]> {
    let first = a.iter().position(|&a| a != 0.0)?;
    let mut sums = [pick(k.stage(first), 0); FEW];
    for j in 0..n {
        sums[j] = pick(k.stage(first), j).scale(a[first]);
    }
    for i in first + 1..a.len() {
        if a[i] != 0.0 {
            for j in 0..n {
                sums[j] = pick(k.stage(i), j).scale_add(K::FUSED, a[i], sums[j]);
            }
        }
    }
    Some(sums)
}

#[inline(always)]
fn lincomb<S, K: Stages<S> + ?Sized, R: Real>(
    y: R,
    dt: &R::Clock,
    a: &[f64],
    k: &K,
    pick: impl Fn(&S) -> R,
) -> R {
    match weighted_sum(a, k, pick) {
        None => y,
        Some(sum) => sum.scale_by_add(K::FUSED, dt, y),
    }
}

/// [`PARTIAL_SUMS`] zeros. An array literal, because a closure for `array::from_fn` might not be inlined.
#[inline(always)]
pub(crate) fn partial_sums<C: Clock>(zero: &C) -> [C; PARTIAL_SUMS] {
    let zero = || zero.clone();
    [zero(), zero(), zero(), zero(), zero(), zero(), zero(), zero()]
}

/// The square root of the mean of `square(j)` over n components.
#[inline(always)]
fn root_mean<C: Clock>(zero: &C, n: usize, square: impl Fn(usize) -> C) -> C {
    let mut sums = partial_sums(zero);
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
