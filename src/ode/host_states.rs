//! `State` for numbers, arrays and `Vec`s.
//!
//! The same sums in the same order for all of them, so that `f64`, `[f64; 1]` and `Vec<f64>` give the same bits:
//! `sum_i a_i k_i` over the non-zero `a_i` from left to right, then `y + dt * sum`; squares are added up in
//! [`PARTIAL_SUMS`] interleaved partial sums, which is what lets the compiler use vector registers. Arrays are
//! unrolled by the compiler; a `Vec` takes a loop compiled for its number of terms.

use super::{Clock, FieldError, Real, State, Tolerance};

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

macro_rules! number_state {
    ($($t:ty)*) => { $(
        impl State for $t {
            type Clock = f64;

            #[inline(always)]
            fn lincomb(&mut self, y: &Self, dt: &f64, a: &[f64], k: &[Self]) {
                *self = lincomb(*y, dt, a, |i| k[i]);
            }
            #[inline(always)]
            fn error_ratio(&mut self, dt: &f64, b: &[f64], k: &[Self], y0: &Self, y1: &Self, tol: &Tolerance) -> f64 {
                let e = weighted_sum(b, |i| k[i]).map_or(0.0, |sum| sum.scale_by(dt));
                let (rtol, atol) = tol.at(0);
                root_mean(&0.0, 1, |_| e.squared_ratio(*y0, *y1, rtol, atol))
            }
            #[inline(always)]
            fn scaled_error(&mut self, dt: &f64, b: &[f64], k: &[Self], y0: &Self, y1: &Self, tol: &Tolerance) {
                let e = weighted_sum(b, |i| k[i]).map_or(0.0, |sum| sum.scale_by(dt));
                let (rtol, atol) = tol.at(0);
                *self = e.ratio(*y0, *y1, rtol, atol);
            }
            #[inline(always)]
            fn num_components(&self) -> usize {
                1
            }
            #[inline(always)]
            fn keep(&mut self, m: &bool, new: &mut Self) {
                if *m {
                    *self = *new;
                }
            }
            #[inline(always)]
            fn first_non_finite(&self, _like: &f64) -> f64 {
                if Real::is_finite(*self) { -1.0 } else { 0.0 }
            }
        }
    )* };
}
number_state!(f64 f32);

impl<R: Real, const N: usize> State for [R; N] {
    type Clock = R::Clock;

    #[inline(always)]
    fn lincomb(&mut self, y: &Self, dt: &R::Clock, a: &[f64], k: &[Self]) {
        for j in 0..N {
            self[j] = lincomb(y[j], dt, a, |i| k[i][j]);
        }
    }
    #[inline(always)]
    fn error_ratio(
        &mut self,
        dt: &R::Clock,
        b: &[f64],
        k: &[Self],
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> R::Clock {
        let mut sums: [R::Clock; PARTIAL_SUMS] = std::array::from_fn(|_| dt.like(0.0));
        for j in 0..N {
            let (rtol, atol) = tol.uniform().unwrap_or_else(|| tol.at(j));
            // No closure around this: it would stay a call, compiled for less than the lanes around it.
            if let Some(sum) = weighted_sum(b, |i| k[i][j]) {
                let square = sum.scale_by(dt).squared_ratio(y0[j], y1[j], rtol, atol);
                sums[j % PARTIAL_SUMS] = sums[j % PARTIAL_SUMS].add(&square);
            }
        }
        add_up(&sums, N)
    }
    fn scaled_error(&mut self, dt: &R::Clock, b: &[f64], k: &[Self], y0: &Self, y1: &Self, tol: &Tolerance) {
        for j in 0..N {
            let (rtol, atol) = tol.at(j);
            let e = weighted_sum(b, |i| k[i][j]).map_or(y0[j] - y0[j], |sum| sum.scale_by(dt));
            self[j] = e.ratio(y0[j], y1[j], rtol, atol);
        }
    }
    #[inline(always)]
    fn num_components(&self) -> usize {
        N
    }
    #[inline(always)]
    fn keep(&mut self, m: &<R::Clock as Clock>::Mask, new: &mut Self) {
        match if R::LOCKSTEP { None } else { R::Clock::known(m) } {
            Some(true) => *self = *new,
            Some(false) => {}
            None => {
                for j in 0..N {
                    self[j] = R::select(m, new[j], self[j]);
                }
            }
        }
    }
    #[inline(always)]
    fn first_non_finite(&self, like: &R::Clock) -> R::Clock {
        let mut first = like.like(-1.0);
        for j in (0..N).rev() {
            first = R::Clock::select(&self[j].is_finite(), &first, &like.like(j as f64));
        }
        first
    }
}

/// Writes `finish(j, sum_i a_i k_i[j])` into each component j.
#[inline(always)]
fn each_sum<R: Real, const K: usize>(
    out: &mut [R],
    a: &[f64; K],
    k: &[&[R]; K],
    finish: impl Fn(usize, R) -> R,
) {
    let n = out.len();
    // One bounds check a term, not one a component.
    let k = k.map(|k| &k[..n]);
    for j in 0..n {
        let mut sum = k[0][j].scale(a[0]);
        for i in 1..K {
            sum = sum + k[i][j].scale(a[i]);
        }
        out[j] = finish(j, sum);
    }
}

/// [`each_sum`] over the non-zero `a_i`, in a loop made for their number; false where there is none.
#[inline(always)]
fn each_weighted_sum<R: Real>(
    out: &mut [R],
    a: &[f64],
    k: &[Vec<R>],
    finish: impl Fn(usize, R) -> R,
) -> bool {
    /// The most terms that have a loop of their own.
    const MOST: usize = 7;
    let (mut weights, mut terms, mut count) = ([0.0; MOST], [&[] as &[R]; MOST], 0);
    for (&a, k) in a.iter().zip(k).filter(|(a, _)| **a != 0.0) {
        if count < MOST {
            (weights[count], terms[count]) = (a, k);
        }
        count += 1;
    }
    macro_rules! with_terms {
        ($($n:literal)*) => {
            match count {
                0 => return false,
                $($n => {
                    let (weights, terms) = (weights.first_chunk::<$n>(), terms.first_chunk::<$n>());
                    if let (Some(weights), Some(terms)) = (weights, terms) {
                        each_sum(out, weights, terms, finish);
                    }
                })*
                _ => {
                    for j in 0..out.len() {
                        if let Some(sum) = weighted_sum(a, |i| k[i][j]) {
                            out[j] = finish(j, sum);
                        }
                    }
                }
            }
        };
    }
    with_terms!(1 2 3 4 5 6 7);
    true
}

impl<R: Real<Clock = f64>> State for Vec<R> {
    type Clock = f64;

    fn lincomb(&mut self, y: &Self, dt: &f64, a: &[f64], k: &[Self]) {
        let y = &y[..self.len()];
        if !each_weighted_sum(self, a, k, |j, sum| y[j] + sum.scale_by(dt)) {
            self.copy_from_slice(y);
        }
    }
    fn error_ratio(&mut self, dt: &f64, b: &[f64], k: &[Self], y0: &Self, y1: &Self, tol: &Tolerance) -> f64 {
        let n = self.len();
        if !each_weighted_sum(self, b, k, |_, sum| sum.scale_by(dt)) {
            return 0.0;
        }
        let (e, y0, y1) = (&self[..n], &y0[..n], &y1[..n]);
        let mut sums = [0.0; PARTIAL_SUMS];
        let Some((rtol, atol)) = tol.uniform() else {
            for j in 0..n {
                let (rtol, atol) = tol.at(j);
                sums[j % PARTIAL_SUMS] += e[j].squared_ratio(y0[j], y1[j], rtol, atol);
            }
            return add_up(&sums, n);
        };
        let whole = n - n % PARTIAL_SUMS;
        for j in (0..whole).step_by(PARTIAL_SUMS) {
            let (e, y0, y1) = (&e[j..][..PARTIAL_SUMS], &y0[j..][..PARTIAL_SUMS], &y1[j..][..PARTIAL_SUMS]);
            for i in 0..PARTIAL_SUMS {
                sums[i] += e[i].squared_ratio(y0[i], y1[i], rtol, atol);
            }
        }
        for j in whole..n {
            sums[j - whole] += e[j].squared_ratio(y0[j], y1[j], rtol, atol);
        }
        add_up(&sums, n)
    }
    fn scaled_error(&mut self, dt: &f64, b: &[f64], k: &[Self], y0: &Self, y1: &Self, tol: &Tolerance) {
        if !each_weighted_sum(self, b, k, |_, sum| sum.scale_by(dt)) {
            // No term: no error. y0 - y0 is the zero of any kind of number.
            self.iter_mut().zip(y0).for_each(|(e, &y)| *e = y - y);
        }
        for j in 0..self.len() {
            let (rtol, atol) = tol.at(j);
            self[j] = self[j].ratio(y0[j], y1[j], rtol, atol);
        }
    }
    fn num_components(&self) -> usize {
        self.len()
    }
    fn keep(&mut self, m: &bool, new: &mut Self) {
        if *m {
            std::mem::swap(self, new);
        }
    }
    fn first_non_finite(&self, _like: &f64) -> f64 {
        self.iter().position(|x| !x.is_finite()).map_or(-1.0, |j| j as f64)
    }
    fn conforms(&self, y: &Self) -> Result<(), FieldError> {
        if self.len() == y.len() {
            return Ok(());
        }
        Err(format!("the field returned {} components for a state of {}", self.len(), y.len()).into())
    }
}
