//! Accuracy of each function except `power` at each level on dense sweeps. f32 is compared with f64. f64 is
//! compared with a double-double reference or with the standard library, whose errors are at most about 1 ulp
//! where it is used, so the allowed error is 1 ulp smaller.

use super::{Math, atan, cos, erf, exp, expm1, ln, log1p, sigmoid, sin, softplus, tanh};
use crate::graph::softplus as softplus_of_std;
use crate::simd::Level;
use crate::simd::dispatch::{Task, enter};
use crate::simd::lanes::{Float, Lanes, Simd};

/// A function on lanes, as a type.
trait Function {
    fn apply<V: Float>(x: V) -> V;
}

struct Apply<'a, T, F>(&'a [T], &'a mut [T], F);

impl<T: Math, F: Function> Task for Apply<'_, T, F> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let len = T::Of::<S>::LEN;
        for (x, y) in self.0.chunks(len).zip(self.1.chunks_mut(len)) {
            // SAFETY: the chunks hold the lanes that are read and written.
            unsafe {
                if x.len() == len {
                    F::apply(T::Of::<S>::load(x.as_ptr())).store(y.as_mut_ptr());
                } else {
                    F::apply(T::Of::<S>::load_part(x.as_ptr(), x.len())).store_part(y.as_mut_ptr(), x.len());
                }
            }
        }
    }
}

macro_rules! functions {
    ($($name:ident $f:ident;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn apply<V: Float>(x: V) -> V {
                $f(x)
            }
        }
    )*};
}

functions! {
    Exp exp; Expm1 expm1; Tanh tanh; Sigmoid sigmoid; Ln ln; Log1p log1p; Sin sin; Cos cos;
    Erf erf; Atan atan; Softplus softplus;
}

fn apply<T: Math, F: Function>(level: Level, f: F, x: &[T]) -> Vec<T> {
    let mut y = vec![T::ZERO; x.len()];
    // SAFETY: the tests use only available levels.
    unsafe { enter(level, Apply(x, &mut y, f)) };
    y
}

/// The distance of `y` from `want` in units of the last place of the rounded `want`.
fn ulps32(y: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if y.is_nan() || want.is_nan() || rounded.is_infinite() || y.is_infinite() {
        let same = (y.is_nan() && want.is_nan()) || y == rounded;
        return if same { 0.0 } else { f64::INFINITY };
    }
    let exponent = (rounded.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 127;
    (f64::from(y) - want).abs() / 2f64.powi(exponent - 23)
}

fn ulps64(y: f64, want: f64) -> f64 {
    if y.is_nan() && want.is_nan() {
        return 0.0;
    }
    let ordered = |x: f64| {
        let b = x.to_bits() as i64;
        if b < 0 { i64::MIN - b } else { b }
    };
    ordered(y).abs_diff(ordered(want)) as f64
}

/// Every 20,011th f32, and a fine sweep of `[lo, hi]`.
fn sweep32(lo: f32, hi: f32) -> Vec<f32> {
    let all = (0..u32::MAX / 20_011).map(|i| f32::from_bits(i * 20_011));
    let fine = (0..100_000).map(|i| lo + (hi - lo) * (i as f32 / 100_000.0));
    let edges = [0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, -1e-45, f32::MAX, f32::INFINITY];
    all.chain(fine).chain(edges).chain(edges.map(|x| -x)).collect()
}

/// f64 numbers of every exponent, and a fine sweep of `[lo, hi]`.
fn sweep64(lo: f64, hi: f64) -> Vec<f64> {
    let all = (0..60_000u64).map(|i| f64::from_bits(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let fine = (0..60_000).map(|i| lo + (hi - lo) * (f64::from(i) / 60_000.0));
    let edges = [0.0, -0.0, 1.0, -1.0, f64::MIN_POSITIVE, 5e-324, -5e-324, f64::MAX, f64::INFINITY, f64::NAN];
    all.chain(fine).chain(edges).chain(edges.map(|x| -x)).collect()
}

fn check<T: Math, F: Function + Copy>(
    f: F,
    reference: fn(T) -> f64,
    x: &[T],
    ulps: fn(T, f64) -> f64,
    limit: f64,
) {
    let want: Vec<f64> = x.iter().map(|&x| reference(x)).collect();
    for level in Level::available() {
        let y = apply(level, f, x);
        for ((&x, &y), &want) in x.iter().zip(&y).zip(&want) {
            let off = ulps(y, want);
            assert!(off <= limit, "{level:?}: f({x:?}) = {y:?}, {off} ulp off {want:?}");
            let (zero, sign) = (x == T::ZERO && want == 0.0, format!("{y:?}").starts_with('-'));
            assert!(!zero || sign == want.is_sign_negative(), "{level:?}: the sign of f({x:?})");
        }
    }
}

/// An unevaluated sum of two f64, with about 106 bits.
#[derive(Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn new(a: f64, b: f64) -> Self {
        let sum = a + b;
        let part = sum - a;
        Self(sum, (a - (sum - part)) + (b - part))
    }
    fn plus(self, other: Self) -> Self {
        let Self(hi, lo) = Self::new(self.0, other.0);
        Self::new(hi, lo + self.1 + other.1)
    }
    fn times(self, other: Self) -> Self {
        let hi = self.0 * other.0;
        Self::new(hi, self.0.mul_add(other.0, -hi) + self.0 * other.1 + self.1 * other.0)
    }
    fn over(self, other: Self) -> Self {
        let q = self.0 / other.0;
        let rest = self.plus(other.times(Self(-q, 0.0)));
        Self::new(q, rest.0 / other.0)
    }
    /// Taylor's series at `x / 1024`, doubled ten times by `expm1(2a) = expm1(a) (expm1(a) + 2)`.
    fn expm1(x: f64) -> Self {
        let x = Self(x / 1024.0, 0.0);
        let mut sum = Self(0.0, 0.0);
        for k in (1..=16).rev() {
            sum = sum.plus(Self(1.0, 0.0)).times(x).over(Self(f64::from(k), 0.0));
        }
        (0..10).fold(sum, |e, _| e.times(e.plus(Self(2.0, 0.0))))
    }
}

/// The reference for tanh. glibc's tanh has errors above 2 ulp for some arguments, so it is used only for
/// tiny and for large ones.
fn tanh_reference(x: f64) -> f64 {
    if !(1e-8..30.0).contains(&x.abs()) {
        return x.tanh();
    }
    let e = Double::expm1(2.0 * x);
    e.over(e.plus(Double(2.0, 0.0))).0
}

fn expm1_reference(x: f64) -> f64 {
    if (1e-8..30.0).contains(&x.abs()) { Double::expm1(x).0 } else { x.exp_m1() }
}

/// One step of Newton's method from the functions of `std`, in double-double: `y + (1 + e^x) e^-y - 1`.
fn softplus_reference(x: f64) -> f64 {
    let y = softplus_of_std(x);
    if !(1e-8..30.0).contains(&x.abs()) {
        return y;
    }
    let (one, sum) = (Double(1.0, 0.0), Double::expm1(x).plus(Double(2.0, 0.0)));
    y + sum.times(Double::expm1(-y).plus(one)).plus(Double(-1.0, 0.0)).0
}

fn sigmoid_reference(x: f64) -> f64 {
    if !(1e-8..30.0).contains(&x.abs()) {
        return if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    }
    let one = Double(1.0, 0.0);
    one.over(Double::expm1(-x).plus(Double(2.0, 0.0))).0
}

/// `2 / sqrt(pi) x e^(-x^2) sum of (2 x^2)^n / (2n+1)!!` (Abramowitz and Stegun, 7.1.6), whose terms are
/// positive.
fn erf_reference(x: f64) -> f64 {
    let two_over_root_pi = Double(std::f64::consts::FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17);
    if x.abs() < 1e-8 || x.is_nan() {
        return two_over_root_pi.0 * x;
    }
    if x.abs() >= 6.0 {
        return 1f64.copysign(x);
    }
    let (one, square) = (Double(1.0, 0.0), Double(x, 0.0).times(Double(x, 0.0)));
    let terms = 30 + (4.0 * square.0) as i32;
    let sum = (1..=terms)
        .rev()
        .fold(one, |sum, n| sum.times(square).over(Double(f64::from(n) + 0.5, 0.0)).plus(one));
    let growth = Double::expm1(square.0).plus(one).times(Double(1.0, square.1));
    sum.times(Double(x, 0.0)).times(two_over_root_pi).over(growth).0
}

/// `x / (1 + x^2) sum of (2n)!! / (2n+1)!! y^n`, `y = x^2 / (1 + x^2)` (Euler), whose terms are positive; above
/// 1 `pi/2 - atan(1/x)`. The terms left out are below `e^-60 = 1e-26`.
fn atan_double(x: f64) -> Double {
    let (one, half_pi) = (Double(1.0, 0.0), Double(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17));
    let a = x.abs();
    if x.is_nan() || a < 1e-18 {
        return Double(x, 0.0);
    }
    let t = if a > 1.0 { one.over(Double(a.min(1e40), 0.0)) } else { Double(a, 0.0) };
    let square = t.times(t);
    let y = square.over(square.plus(one));
    let terms = 2 + (60.0 / -y.0.ln()) as i32;
    let sum = (1..=terms).rev().fold(one, |sum, n| {
        let ratio = Double(f64::from(n), 0.0).over(Double(f64::from(n) + 0.5, 0.0));
        sum.times(y).times(ratio).plus(one)
    });
    let angle = sum.times(t).over(square.plus(one));
    let angle = if a > 1.0 { half_pi.plus(angle.times(Double(-1.0, 0.0))) } else { angle };
    Double(angle.0.copysign(x), angle.1 * x.signum())
}

macro_rules! accuracy {
    ($($test:ident: $f:ident, $reference:expr, $lo:expr, $hi:expr;)*) => {$(
        #[test]
        fn $test() {
            let reference: fn(f64) -> f64 = $reference;
            check($f, |x: f32| $reference(f64::from(x)), &sweep32($lo as f32, $hi as f32), ulps32, 4.0);
            check($f, reference, &sweep64($lo, $hi), ulps64, 3.0);
        }
    )*};
}

accuracy! {
    exp_is_within_4_ulp: Exp, f64::exp, -750.0, 710.0;
    expm1_is_within_4_ulp: Expm1, expm1_reference, -3.0, 3.0;
    tanh_is_within_4_ulp: Tanh, tanh_reference, -20.0, 20.0;
    sigmoid_is_within_4_ulp: Sigmoid, sigmoid_reference, -40.0, 40.0;
    ln_is_within_4_ulp: Ln, f64::ln, 0.3, 3.0;
    log1p_is_within_4_ulp: Log1p, f64::ln_1p, -0.9999, 3.0;
    softplus_is_within_4_ulp: Softplus, softplus_reference, -40.0, 40.0;
    sin_is_within_4_ulp: Sin, f64::sin, -20.0, 20.0;
    cos_is_within_4_ulp: Cos, f64::cos, -1e5, 1e5;
    erf_is_within_4_ulp: Erf, erf_reference, -6.5, 6.5;
    atan_is_within_4_ulp: Atan, f64::atan, -4.0, 4.0;
}

#[test]
fn the_double_double_reference_doubles() {
    // e - 1, computed by mpmath with 50 digits.
    let e = Double::expm1(1.0);
    assert_eq!(e.0, 1.718_281_828_459_045_3);
    assert!((e.1 + 7.747_991_575_210_629_4e-17).abs() < 1e-29, "{:e}", e.1);
}

#[test]
fn the_double_double_reference_of_erf_has_its_digits() {
    // Computed by mpmath with 60 digits.
    for (x, want) in [
        (0.5, 0.520_499_877_813_046_5),
        (1.625, 0.978_443_733_239_983_7),
        (3.0, 0.999_977_909_503_001_4),
        (5.5, 0.999_999_999_999_992_7),
    ] {
        assert_eq!(erf_reference(x), want);
    }
}

#[test]
fn erf_never_leaves_its_range_and_ends_in_one() {
    let x: Vec<f64> = (0..200_000).map(|i| f64::from(i) * 5e-5).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    for level in Level::available() {
        let (y, z) = (apply(level, Erf, &x), apply(level, Erf, &narrow));
        assert!(y.iter().all(|&y| y <= 1.0) && z.iter().all(|&z| z <= 1.0));
        assert!(y[120_000..].iter().all(|&y| y == 1.0) && z[80_000..].iter().all(|&z| z == 1.0));
    }
}

/// Drawn: 2,000 numbers in each binade from 2^-12 to 2^7.
#[test]
fn tanh_never_leaves_its_range_is_odd_and_ends_in_one() {
    let hash = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
    let binade = |e: i32| (0..2000).map(move |i| 2f64.powi(e) * (1.0 + hash(i) as f64 / 2f64.powi(53)));
    let mut x: Vec<f64> = (-12..7).flat_map(binade).collect();
    x.extend([0.0, f64::INFINITY]);
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let (minus, narrow_minus): (Vec<f64>, Vec<f32>) = x.iter().zip(&narrow).map(|(x, z)| (-x, -z)).unzip();
    for level in Level::available() {
        let (y, z) = (apply(level, Tanh, &x), apply(level, Tanh, &narrow));
        assert!(y.iter().all(|&y| y <= 1.0) && z.iter().all(|&z| z <= 1.0));
        let opposite = apply(level, Tanh, &minus);
        assert!(y.iter().zip(&opposite).all(|(a, b)| a.to_bits() == (-b).to_bits()));
        let opposite = apply(level, Tanh, &narrow_minus);
        assert!(z.iter().zip(&opposite).all(|(a, b)| a.to_bits() == (-b).to_bits()));
        let ends = x.iter().zip(y.iter().zip(&z)).filter(|&(&x, _)| x > 22.0);
        assert!(ends.clone().count() > 2000 && ends.into_iter().all(|(_, (&y, &z))| y == 1.0 && z == 1.0));
    }
}

#[test]
fn the_double_double_reference_of_atan_has_its_digits() {
    // Computed by mpmath with 60 digits.
    for (x, want, low) in [
        (0.25, 0.244_978_663_126_864_14, 1.069_875_561_873_445_1e-17),
        (0.75, 0.643_501_108_793_284_4, 1.583_478_505_144_428_6e-17),
        (1.0, std::f64::consts::FRAC_PI_4, 3.061_616_997_868_383e-17),
        (1.625, 1.019_141_344_266_349_7, 1.000_401_886_936_679_9e-17),
        (5.5, 1.390_942_827_002_418_4, -9.843_712_133_488_843e-17),
        (1e9, 1.570_796_325_794_896_7, -7.807_189_396_823_994e-17),
    ] {
        let Double(hi, lo) = atan_double(x);
        assert_eq!(hi, want, "{x}");
        assert!((lo - low).abs() <= 1e-25 * want, "{x}: {lo:e} is not {low:e}");
    }
}

/// The error of `y` in units of the last place of the rounded `want`.
fn off64(y: f64, want: Double) -> f64 {
    let unit = 2f64.powi((want.0.abs().max(f64::MIN_POSITIVE).to_bits() >> 52) as i32 - 1075);
    ((y - want.0) - want.1).abs() / unit
}

/// Drawn: 2,000 numbers in each binade from 2^-8 to 2^5, the 2,000 neighbors of each end of a range and of 1, where
/// the argument of the polynomial is 0; all of them also negative; zeros, infinities and subnormal numbers.
#[test]
fn atan_is_within_1_ulp_rises_and_has_the_same_bits_at_all_levels() {
    let hash = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
    let binade = |e: i32| (0..2000).map(move |i| 2f64.powi(e) * (1.0 + hash(i) as f64 / 2f64.powi(53)));
    let mut wide: Vec<f64> = (-8..5).flat_map(binade).collect();
    let mut narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    for end in [0.5625, 1.0, 2.0f64] {
        wide.extend((0..2000).map(|i| f64::from_bits(end.to_bits() - 1000 + i)));
        narrow.extend((0..2000).map(|i| f32::from_bits((end as f32).to_bits() - 1000 + i)));
    }
    wide.extend([0.0, f64::INFINITY, f64::MIN_POSITIVE / 8.0]);
    narrow.extend([0.0, f32::INFINITY, f32::MIN_POSITIVE / 8.0]);
    wide.extend(wide.clone().iter().map(|x| -x));
    narrow.extend(narrow.clone().iter().map(|x| -x));
    wide.sort_by(f64::total_cmp);
    narrow.sort_by(f32::total_cmp);
    let (y, z) = (apply(Level::Portable, Atan, &wide), apply(Level::Portable, Atan, &narrow));
    let worst = |offs: &mut dyn Iterator<Item = f64>| offs.fold(0.0, f64::max);
    let positive = wide.iter().zip(&y).filter(|(x, _)| (1e-3..1e3).contains(*x));
    let wide_off = worst(&mut positive.map(|(&x, &y)| off64(y, atan_double(x))));
    let narrow_off = worst(&mut narrow.iter().zip(&z).map(|(&x, &z)| ulps32(z, f64::from(x).atan())));
    assert!(wide_off < 1.0 && narrow_off < 1.0, "{wide_off} and {narrow_off} ulp");
    assert!(wide_off > 0.7 && narrow_off > 0.7, "the draws find no large error");
    assert!(y.is_sorted() && z.is_sorted());
    // An odd function: -0 and 0 included.
    assert!(y.iter().zip(y.iter().rev()).all(|(a, b)| a.to_bits() == (-b).to_bits()));
    assert!(z.iter().zip(z.iter().rev()).all(|(a, b)| a.to_bits() == (-b).to_bits()));
    let bits64 = |y: &[f64]| y.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    let bits32 = |z: &[f32]| z.iter().map(|z| z.to_bits()).collect::<Vec<_>>();
    for level in Level::available() {
        let (at_level, narrow_at_level) = (apply(level, Atan, &wide), apply(level, Atan, &narrow));
        assert_eq!(bits64(&at_level), bits64(&y), "{level:?}");
        assert_eq!(bits32(&narrow_at_level), bits32(&z), "{level:?}");
    }
}
