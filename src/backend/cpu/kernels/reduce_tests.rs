//! Reductions against naive versions at each level.

use super::{Elem, max_strip, min_strip, sum_cols, sum_rows, sum_strip};
use crate::simd::Level;

const LENGTHS: [usize; 10] = [0, 1, 5, 8, 16, 17, 64, 65, 100, 513];

fn data(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 64.0 - 7.5).collect()
}

macro_rules! float_tests {
    ($name:ident, $t:ident, $elem:expr) => {
        #[test]
        fn $name() {
            for level in Level::available() {
                for n in LENGTHS {
                    // Multiples of 1/64 whose sums stay below 2^18, so sums are exact in any order.
                    let a: Vec<$t> = data(n + 1).iter().map(|&x| x as $t).collect();
                    let a = &a[1..];
                    let p = a.as_ptr().cast();
                    let (mut sum, mut max, mut min): ($t, $t, $t) = (2.0, -3.0, 3.0);
                    // SAFETY: `a` holds `n` elements and each accumulator one.
                    unsafe {
                        sum_strip(level, $elem)((&raw mut sum).cast(), p, n);
                        max_strip(level, $elem)((&raw mut max).cast(), p, n);
                        min_strip(level, $elem)((&raw mut min).cast(), p, n);
                    }
                    assert_eq!(sum, 2.0 + a.iter().sum::<$t>(), "{level:?} {n}");
                    assert_eq!(max, a.iter().fold(-3.0, |x: $t, y| x.max(*y)), "{level:?} {n}");
                    assert_eq!(min, a.iter().fold(3.0, |x: $t, y| x.min(*y)), "{level:?} {n}");
                }
                for at in 0..70 {
                    let mut a: Vec<$t> = vec![1.0; 70];
                    a[at] = $t::NAN;
                    let (mut max, mut min): ($t, $t) = (0.0, 0.0);
                    // SAFETY: as above.
                    unsafe {
                        max_strip(level, $elem)((&raw mut max).cast(), a.as_ptr().cast(), 70);
                        min_strip(level, $elem)((&raw mut min).cast(), a.as_ptr().cast(), 70);
                    }
                    assert!(max.is_nan() && min.is_nan(), "{level:?}: the NaN at {at} must reach the result");
                }
            }
        }
    };
}

float_tests!(strips_of_f32_reduce_like_their_twins, f32, Elem::F32);
float_tests!(strips_of_f64_reduce_like_their_twins, f64, Elem::F64);

#[test]
fn strips_of_integers_reduce_with_wrapping_and_sign() {
    let a: Vec<u32> = (0..77u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let signed = || a.iter().map(|&x| x as i32);
    for level in Level::available() {
        let run = |f: super::ReduceFn, start: u32| {
            let mut acc = start;
            // SAFETY: `a` holds 77 words.
            unsafe { f((&raw mut acc).cast(), a.as_ptr().cast(), 77) };
            acc
        };
        let sum = a.iter().fold(5u32, |x, y| x.wrapping_add(*y));
        assert_eq!(run(sum_strip(level, Elem::I32), 5), sum);
        assert_eq!(run(max_strip(level, Elem::U32), 0), *a.iter().max().unwrap());
        assert_eq!(run(min_strip(level, Elem::U32), u32::MAX), *a.iter().min().unwrap());
        assert_eq!(run(max_strip(level, Elem::I32), i32::MIN as u32), signed().max().unwrap() as u32);
        assert_eq!(run(min_strip(level, Elem::I32), i32::MAX as u32), signed().min().unwrap() as u32);
    }
}

macro_rules! matrix_test {
    ($name:ident, $t:ident, $elem:expr) => {
        #[test]
        fn $name() {
            for level in Level::available() {
                for rows in [0, 1, 3, 16, 37] {
                    for cols in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 65, 130] {
                        let stride = cols + rows % 2 * 3;
                        let a: Vec<$t> = data(rows * stride + 1).iter().map(|&x| x.floor() as $t).collect();
                        let at = |r: usize, c: usize| a[1 + r * stride + c];
                        let p = a[1..].as_ptr().cast();
                        for accumulate in [false, true] {
                            let mut by_row = vec![7 as $t; rows + 1];
                            let dst = by_row.as_mut_ptr().cast();
                            // SAFETY: the buffers hold `rows` rows of `cols` elements, `stride` apart.
                            unsafe { sum_cols(level, $elem)(dst, p, rows, cols, stride, accumulate) };
                            for r in 0..rows {
                                let start = if accumulate { 7 as $t } else { 0 as $t };
                                let want = start + (0..cols).map(|c| at(r, c)).sum::<$t>();
                                assert_eq!(by_row[r], want, "{level:?} row {r} of {rows} x {cols}");
                            }
                            assert_eq!(by_row[rows], 7 as $t);
                        }
                        let mut by_col = vec![7 as $t; cols + 1];
                        // SAFETY: as above, with `cols` elements to write.
                        unsafe { sum_rows(level, $elem)(by_col.as_mut_ptr().cast(), p, rows, cols, stride) };
                        for c in 0..cols {
                            let want = 7 as $t + (0..rows).map(|r| at(r, c)).sum::<$t>();
                            assert_eq!(by_col[c], want, "{level:?} column {c} of {rows} x {cols}");
                        }
                        assert_eq!(by_col[cols], 7 as $t);
                    }
                }
            }
        }
    };
}

matrix_test!(rows_and_columns_of_f32_sum_like_their_twins, f32, Elem::F32);
matrix_test!(rows_and_columns_of_f64_sum_like_their_twins, f64, Elem::F64);
matrix_test!(rows_and_columns_of_i32_sum_like_their_twins, i32, Elem::I32);

#[test]
fn a_row_sum_has_the_same_bits_whatever_the_number_of_rows() {
    let a: Vec<f32> = (0..40 * 77).map(|i| ((i * 7919) as f32).sin()).collect();
    for level in Level::available() {
        for cols in [7, 20, 77] {
            let sums = |rows: usize| {
                let mut out = vec![0f32; rows];
                // SAFETY: `a` holds 40 rows of 77.
                unsafe {
                    sum_cols(level, Elem::F32)(
                        out.as_mut_ptr().cast(),
                        a.as_ptr().cast(),
                        rows,
                        cols,
                        77,
                        false,
                    );
                }
                out
            };
            let all = sums(40);
            for rows in 1..40 {
                assert_eq!(sums(rows), all[..rows], "{level:?} {rows} rows of {cols}");
            }
            if cols > 8 {
                let mut strip = 0f32;
                // SAFETY: as above.
                unsafe { sum_strip(level, Elem::F32)((&raw mut strip).cast(), a.as_ptr().cast(), cols) };
                assert_eq!(strip, all[0], "{level:?}: a row of {cols} and a strip differ");
            }
        }
    }
}

#[test]
fn the_portable_level_reduces_in_the_order_of_avx2() {
    let level = Level::Avx2;
    if !Level::available().contains(&level) {
        return;
    }
    let narrow: Vec<f32> = (0..600).map(|i| ((i * 7919) as f32).sin()).collect();
    let wide: Vec<f64> = (0..600).map(|i| f64::from(i * 7919).sin()).collect();
    let zeros: Vec<f32> = wide.iter().map(|x| if *x < 0.0 { -0.0 } else { 0.0 }).collect();
    let operands = [
        (Elem::F32, narrow.as_ptr().cast::<u8>()),
        (Elem::F64, wide.as_ptr().cast()),
        (Elem::F32, zeros.as_ptr().cast()),
    ];
    for (elem, at) in operands {
        for reduce in [sum_strip, max_strip, min_strip] {
            for n in 0..600 {
                let bits = |level: Level| {
                    let mut acc = 0u64;
                    // SAFETY: 600 elements of the type lie there.
                    unsafe { reduce(level, elem)((&raw mut acc).cast(), at, n) };
                    acc
                };
                assert_eq!(bits(Level::Portable), bits(level), "{elem:?} {n}");
            }
        }
    }
}
