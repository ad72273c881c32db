//! Matrix products and transposes against naive versions. The result of a row must not depend on other rows.

use super::{
    Activation, Elem, Epilogue, Gemm, RowFactors, StripOp, gemm_f32, gemm_f64, gemm_layer_f32, pack,
    packed_len, strip, takes_packed, transpose_4, transpose_8,
};
use crate::graph::FloatFn;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::simd::Level;

fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / 8_388_608.0 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

trait Real: Copy + PartialEq + std::fmt::Debug + 'static {
    const EPSILON: f64;
    fn round(x: f64) -> Self;
    fn value(self) -> f64;
    unsafe fn gemm(level: Level, shape: &Gemm, a: *const Self, b: *const Self, c: *mut Self);
}

macro_rules! real {
    ($t:ident, $gemm:ident) => {
        impl Real for $t {
            const EPSILON: f64 = $t::EPSILON as f64;
            fn round(x: f64) -> Self {
                x as $t
            }
            fn value(self) -> f64 {
                self as f64
            }
            unsafe fn gemm(level: Level, shape: &Gemm, a: *const Self, b: *const Self, c: *mut Self) {
                // SAFETY: tests pass matrices with the extents of the shape, at a level of the machine.
                unsafe { $gemm(level, shape, a, b, c) }
            }
        }
    };
}
real!(f32, gemm_f32);
real!(f64, gemm_f64);

/// The memory layout of A.
#[derive(Clone, Copy, Debug)]
enum Layout {
    RowMajor,
    Transposed,
    /// Elements are adjacent along neither axis.
    Spread,
}

/// A shape with strides for the layout; B and C have `pad` unused columns, and so has A unless it is spread.
fn shape(m: usize, n: usize, k: usize, layout: Layout, pad: usize, accumulate: bool) -> Gemm {
    let (rsa, csa) = match layout {
        Layout::RowMajor => (k + pad, 1),
        Layout::Transposed => (1, m + pad),
        Layout::Spread => (2 * k + 1, 2),
    };
    Gemm { m, n, k, rsa, csa, ldb: n + pad, ldc: n + pad, accumulate, packed: false }
}

/// The product on data that depends on the indices only; returns C as stored in memory.
fn product<T: Real>(level: Level, s: &Gemm) -> Vec<T> {
    // SAFETY: the buffers hold what the shape describes.
    product_by(s, |a, b, c| unsafe { T::gemm(level, s, a, b, c) })
}

/// Elements after C that no product may change.
const MARGIN: usize = 80;

/// The result of `run` on the same data, with each matrix one element after the start of its buffer.
fn product_by<T: Real>(s: &Gemm, run: impl FnOnce(*const T, *const T, *mut T)) -> Vec<T> {
    let (na, nb, nc) = (s.m * s.rsa + s.k * s.csa, s.k * s.ldb, s.m * s.ldc);
    let fill = |seed, n| noise(seed, n + 1).into_iter().map(T::round).collect::<Vec<T>>();
    let mut a = vec![T::round(f64::NAN); na + 1];
    for i in 0..s.m {
        for (p, x) in noise(i as u64 + 10, s.k).into_iter().enumerate() {
            a[1 + i * s.rsa + p * s.csa] = T::round(x);
        }
    }
    let (b, mut c) = (fill(2, nb), fill(3, nc + MARGIN));
    let beyond = c[1 + nc..].to_vec();
    run(a[1..].as_ptr(), b[1..].as_ptr(), c[1..].as_mut_ptr());
    assert_eq!(c.split_off(1 + nc), beyond, "a write after C: {s:?}");
    c.split_off(1)
}

fn expected<T: Real>(s: &Gemm) -> Vec<f64> {
    let (b, c) = (noise(2, s.k * s.ldb + 1), noise(3, s.m * s.ldc + 1));
    let round = |x: f64| T::round(x).value();
    let mut out: Vec<f64> = c[1..].iter().map(|&x| round(x)).collect();
    for i in 0..s.m {
        let row = noise(i as u64 + 10, s.k);
        for j in 0..s.n {
            let start = if s.accumulate { out[i * s.ldc + j] } else { 0.0 };
            let dot: f64 = (0..s.k).map(|p| round(row[p]) * round(b[1 + p * s.ldb + j])).sum();
            out[i * s.ldc + j] = start + dot;
        }
    }
    out
}

fn check<T: Real>(s: &Gemm, what: Layout) {
    let want = expected::<T>(s);
    for level in Level::available() {
        let got = product::<T>(level, s);
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let tolerance = 4.0 * T::EPSILON * (s.k as f64).sqrt().max(1.0) * want.abs().max(2.0);
            assert!(
                (got.value() - want).abs() <= tolerance,
                "{level:?} {what:?} {s:?} at {i}: got {got:?}, expected {want}"
            );
        }
    }
}

#[test]
fn products_equal_the_naive_ones() {
    let ms = [0, 1, 2, 3, 5, 13, 29];
    let ns = [0, 1, 2, 3, 4, 5, 8, 16, 17, 31, 48, 64, 65, 80, 100];
    let ks = [0, 1, 2, 3, 4, 7, 64, 257];
    for (i, m) in ms.into_iter().enumerate() {
        for (j, n) in ns.into_iter().enumerate() {
            for (l, k) in ks.into_iter().enumerate() {
                let layout = [Layout::RowMajor, Layout::Transposed, Layout::Spread][(i + j + l) % 3];
                let s = shape(m, n, k, layout, (i + j) % 2 * 3, (j + l) % 2 == 0);
                check::<f32>(&s, layout);
                check::<f64>(&s, layout);
            }
        }
    }
}

#[test]
fn large_products_with_copied_panels_equal_the_naive_ones() {
    for (m, n, k) in [(33, 300, 300), (25, 260, 513), (70, 1, 600), (130, 4, 300), (141, 2, 64)] {
        for layout in [Layout::RowMajor, Layout::Transposed] {
            check::<f32>(&shape(m, n, k, layout, 1, true), layout);
            check::<f64>(&shape(m, n, k, layout, 0, false), layout);
        }
    }
}

/// An element has the same bits for any number of rows and columns and any layout of A.
fn bits_depend_on_the_sum_alone<T: Real>() {
    for level in Level::available() {
        for k in [2, 64, 600] {
            let whole = product::<T>(level, &shape(67, 1, k, Layout::RowMajor, 301, false));
            for (m, n) in [(1, 1), (2, 3), (7, 4), (31, 5), (64, 64), (67, 300)] {
                for layout in [Layout::RowMajor, Layout::Transposed, Layout::Spread] {
                    let s = Gemm { ldb: 302, ldc: 302, ..shape(m, n, k, layout, 0, false) };
                    let part = product::<T>(level, &s);
                    for i in 0..m {
                        let (got, want) = (part[i * 302], whole[i * 302]);
                        assert_eq!(got, want, "{level:?} {layout:?} {s:?} row {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_whatever_surrounds_it() {
    bits_depend_on_the_sum_alone::<f32>();
    bits_depend_on_the_sum_alone::<f64>();
}

/// Ranges: one row for every second case, else up to 40; up to 160 columns and 300 terms; A by rows or columns; with and
/// without a sum before. Panels that stand abreast, single ones and the rest of one all occur.
#[test]
fn a_packed_factor_gives_the_same_bits() {
    let mut draw = Draw(401);
    let mut seen = [0; 3];
    for _ in 0..num_cases(150) {
        let m = if draw.coin() { 1 } else { 1 + draw.below(40) };
        let terms = draw.one(&[8, 129, 301]);
        let (n, k) = (1 + draw.below(160), draw.below(terms));
        let layout = draw.one(&[Layout::RowMajor, Layout::Transposed]);
        let s = shape(m, n, k, layout, draw.below(4), draw.coin());
        seen = [0, 1, 2].map(|q| seen[q] + usize::from(m == 1 && k > 0 && [n >= 64, n < 32, n % 4 > 0][q]));
        packed_is_plain::<f32>(&s);
        packed_is_plain::<f64>(&s);
    }
    assert!(seen.iter().all(|&n| n > 5), "{seen:?}");
}

fn packed_is_plain<T: Real>(s: &Gemm) {
    let double = size_of::<T>() == 8;
    for level in Level::available() {
        let plain: Vec<T> = product(level, s);
        let mut copy = vec![T::round(f64::NAN); packed_len(level, double, s.k, s.n) + 1];
        let packed = product_by::<T>(s, |a, b, c| {
            // SAFETY: the buffers hold what the shape describes.
            unsafe {
                pack(level, double, (s.k, s.n, s.ldb), b.cast(), copy.as_mut_ptr().cast());
                T::gemm(
                    level,
                    &Gemm { packed: takes_packed(s.n), ..*s },
                    a,
                    if takes_packed(s.n) { copy.as_ptr() } else { b },
                    c,
                );
            }
        });
        assert_eq!(packed, plain, "{level:?} {s:?}");
    }
}

#[test]
fn transposes_move_each_element_and_nothing_else() {
    for level in Level::available() {
        for (rows, cols) in [(0, 5), (5, 0), (1, 1), (3, 5), (8, 8), (9, 17), (64, 33), (500, 2)] {
            let (lds, ldd) = (cols + 3, rows + 1);
            let src: Vec<u64> = (0..rows * lds).map(|i| i as u64 * 0x1_0000_0001 + 1).collect();
            let src32: Vec<u32> = src.iter().map(|&x| x as u32).collect();
            let (mut dst, mut dst32) = (vec![0; cols * ldd], vec![0; cols * ldd]);
            // SAFETY: the buffers hold the matrices with their strides.
            unsafe {
                transpose_8(level, rows, cols, src.as_ptr(), lds, dst.as_mut_ptr(), ldd);
                transpose_4(level, rows, cols, src32.as_ptr(), lds, dst32.as_mut_ptr(), ldd);
            }
            for c in 0..cols {
                for r in 0..ldd {
                    let want = if r < rows { src[r * lds + c] } else { 0 };
                    assert_eq!(dst[c * ldd + r], want, "{level:?} {rows} x {cols}");
                    assert_eq!(dst32[c * ldd + r], want as u32, "{level:?} {rows} x {cols}");
                }
            }
        }
    }
}

/// The result of `gemm_layer_f32` is bitwise equal to that of a product followed by the strip kernels, row by
/// row.
fn layer(level: Level, s: &Gemm, activation: Activation, with: (bool, bool)) {
    let (m, n) = (s.m, s.n);
    let product: Vec<f32> = product(level, s);
    let [bias, gate, shift] =
        [8, 9, 10].map(|seed| noise(seed, n).into_iter().map(|x| x as f32).collect::<Vec<_>>());
    let op = |op, x: &mut [f32], y: &[f32]| {
        let p = x.as_mut_ptr().cast::<u8>();
        // SAFETY: both strips have the same length.
        unsafe { strip(level, op, Elem::F32)(p, p, y.as_ptr().cast(), std::ptr::null(), [0.0; 2], x.len()) };
    };
    let mut want = product.clone();
    for i in 0..m {
        let row = &mut want[i * s.ldc..][..n];
        if with.0 {
            op(StripOp::Add, row, &bias);
        }
        if with.1 {
            op(StripOp::Mul, row, &gate);
            op(StripOp::Add, row, &shift);
        }
        match activation {
            Activation::Identity => {}
            Activation::Tanh => op(StripOp::Float(FloatFn::Tanh), row, &[]),
            Activation::Sigmoid => op(StripOp::Float(FloatFn::Sigmoid), row, &[]),
        }
    }
    let epilogue = Epilogue {
        rows: RowFactors {
            bias: if with.0 { bias.as_ptr() } else { std::ptr::null() },
            gate: if with.1 { gate.as_ptr() } else { std::ptr::null() },
            shift: if with.1 { shift.as_ptr() } else { std::ptr::null() },
        },
        activation,
    };
    let got: Vec<f32> = product_by(s, |a, b, c| {
        // SAFETY: the buffers hold what the shape and the epilogue describe.
        unsafe { gemm_layer_f32(level, s, &epilogue, a, b, c) };
    });
    assert_eq!(got, want, "{level:?} {s:?} {activation:?} {with:?}");
}

/// Shapes without rows, columns or terms, and drawn ones: up to 40 x 40, or with more than 64 KiB of elements, whose
/// epilogue runs per panel.
#[test]
fn a_layer_is_a_product_then_strips() {
    let activations = [Activation::Identity, Activation::Tanh, Activation::Sigmoid];
    let empty = [(3, 0, 2), (0, 4, 2), (20, 3, 0), (29, 80, 0), (300, 80, 0)];
    let (mut draw, mut large, mut copied) = (Draw(40), 0, 0);
    let drawn: Vec<_> = (0..num_cases(24))
        .map(|case| {
            let (m, n) = match case % 3 {
                0 => (60 + draw.below(60), 280 + draw.below(60)),
                1 => (250 + draw.below(100), 70 + draw.below(30)),
                _ => (1 + draw.below(40), 1 + draw.below(40)),
            };
            large += usize::from(m * n * size_of::<f32>() > 64 << 10);
            copied += usize::from(n >= 280);
            (m, n, draw.below(200))
        })
        .collect();
    for level in Level::available() {
        for (i, &(m, n, k)) in empty.iter().chain(&drawn).enumerate() {
            let (activation, pad) = (activations[i % 3], 3 * (i / 3 % 2));
            let s = shape(m, n, k, Layout::RowMajor, pad, i % 2 == 0);
            layer(level, &s, activation, (true, draw.coin()));
            layer(level, &s, activation, (draw.coin(), draw.coin()));
        }
    }
    assert!(large >= 16 && copied >= 8, "{large} {copied}");
}
