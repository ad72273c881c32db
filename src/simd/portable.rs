//! Lanes as plain arrays of 128 bits. Every target can build this level, and the other levels are tested
//! against it. The compiler maps the loops over lanes to one register of SSE2 or NEON. Partial loads and
//! stores are function calls: when they were unrolled into every kernel, they were half of this level's code.
//! The only instruction set property used here is whether the target has fused multiply-add, because
//! `mul_add` without it is a call into the C library (30 times slower).

use std::ops::{BitAnd, BitOr, Not};

use super::lanes::{Float, Int, Lanes, Mask, Simd};

/// The token of the portable level.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Four lanes of a 32-bit element, or two lanes of a 64-bit element; one lane for [`One`].
#[derive(Clone, Copy)]
pub(crate) struct Array<T, const N: usize>([T; N]);

impl Simd for Portable {
    type F32 = Array<f32, 4>;
    type F64 = Array<f64, 2>;
    type U32 = Array<u32, 4>;

    #[inline(always)]
    fn end(n: &usize) -> usize {
        // SAFETY: a reference is readable.
        unsafe { std::ptr::read_volatile(n) }
    }
}

/// The token of single elements.
///
/// For operations that round once at every level, so not for `mul_add`. At the other levels a single element
/// is loaded with a mask. Such a load waits for a preceding masked store to the element (12 to 15 cycles on
/// x86), a plain load does not.
#[derive(Clone, Copy)]
pub(crate) struct One;

impl Simd for One {
    type F32 = Array<f32, 1>;
    type F64 = Array<f64, 1>;
    type U32 = Array<u32, 1>;
}

const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// The type of an element, and the integer type of its size for masks.
pub(crate) trait Element: Copy + Default + PartialEq + std::fmt::Debug + 'static {
    /// All ones where a mask holds, else zero.
    type Word: Copy + BitAnd<Output = Self::Word> + BitOr<Output = Self::Word> + Not<Output = Self::Word>;
    fn word(holds: bool) -> Self::Word;
    fn holds(word: Self::Word) -> bool;
    /// `a` where the word is all ones, else `b`.
    fn choose(word: Self::Word, a: Self, b: Self) -> Self;
}

macro_rules! element {
    ($($elem:ident: $word:ident |$x:ident| $bits:expr, $from:expr;)*) => {$(
        impl Element for $elem {
            type Word = $word;
            #[inline(always)]
            fn word(holds: bool) -> $word {
                $word::from(holds).wrapping_neg()
            }
            #[inline(always)]
            fn holds(word: $word) -> bool {
                word != 0
            }
            #[inline(always)]
            fn choose(word: $word, a: Self, b: Self) -> Self {
                let bits = |$x: $elem| $bits;
                let $x = (word & bits(a)) | (!word & bits(b));
                $from
            }
        }
    )*};
}

element! {
    u32: u32 |x| x, x;
    f32: u32 |x| x.to_bits(), f32::from_bits(x);
    f64: u64 |x| x.to_bits(), f64::from_bits(x);
}

/// Ones or zeros per lane, like the result of 128-bit comparisons. (With lanes of `bool`, a selection becomes
/// a selection of addresses, which moves vectors through memory.)
#[derive(Clone, Copy)]
pub(crate) struct Words<T: Element, const N: usize>([T::Word; N]);

/// `[f(0), f(1), ...]`. `array::from_fn` is not inlined across codegen units.
#[inline(always)]
fn each<T: Copy, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [f(0); N];
    for i in 1..N {
        all[i] = f(i);
    }
    all
}

impl<T: Element, const N: usize> Mask for Words<T, N> {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(each(|i| self.0[i] & other.0[i]))
    }
    #[inline(always)]
    fn not(self) -> Self {
        Self(each(|i| !self.0[i]))
    }
    #[inline(always)]
    fn any(self) -> bool {
        T::holds(self.0.into_iter().fold(T::word(false), |any, word| any | word))
    }
}

impl<T, const N: usize> Array<T, N> {
    #[inline(always)]
    fn zip<U: Copy>(self, other: Self, f: impl Fn(T, T) -> U) -> Array<U, N>
    where
        T: Copy,
    {
        Array(each(|i| f(self.0[i], other.0[i])))
    }
    #[inline(always)]
    fn map<U: Copy>(self, f: impl Fn(T) -> U) -> Array<U, N>
    where
        T: Copy,
    {
        Array(each(|i| f(self.0[i])))
    }
}

impl<T: Element, const N: usize> Array<T, N> {
    #[inline(always)]
    fn test(self, other: Self, f: impl Fn(T, T) -> bool) -> Words<T, N> {
        Words(each(|i| T::word(f(self.0[i], other.0[i]))))
    }
}

impl<T: Element, const N: usize> Lanes for Array<T, N> {
    type Elem = T;
    type Mask = Words<T, N>;
    const LEN: usize = N;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller promises `N` readable elements.
        Self(unsafe { p.cast::<[T; N]>().read_unaligned() })
    }
    #[inline(never)]
    unsafe fn load_part(p: *const T, n: usize) -> Self {
        let mut out = [T::default(); N];
        for (i, x) in out.iter_mut().enumerate().take(n) {
            // SAFETY: the caller promises `n` readable elements.
            *x = unsafe { p.add(i).read_unaligned() };
        }
        Self(out)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: the caller promises `N` writable elements.
        unsafe { p.cast::<[T; N]>().write_unaligned(self.0) };
    }
    #[inline(never)]
    unsafe fn store_part(self, p: *mut T, n: usize) {
        for (i, x) in self.0.into_iter().enumerate().take(n) {
            // SAFETY: the caller promises `n` writable elements.
            unsafe { p.add(i).write_unaligned(x) };
        }
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const u32, n: usize) -> Self::Mask {
        // SAFETY: the caller promises `n` readable words.
        let words: Array<u32, N> = unsafe { if n == N { Array::load(p) } else { Array::load_part(p, n) } };
        Words(each(|i| T::word(words.0[i] != 0)))
    }
    #[inline(always)]
    unsafe fn store_mask(mask: Self::Mask, p: *mut u32, n: usize) {
        let words = Array::<u32, N>(each(|i| u32::from(T::holds(mask.0[i]))));
        // SAFETY: the caller promises `n` writable words.
        unsafe { if n == N { words.store(p) } else { words.store_part(p, n) } }
    }
    #[inline(always)]
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self {
        Self(each(|i| T::choose(mask.0[i], a.0[i], b.0[i])))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> Self::Mask {
        self.test(other, |x, y| x == y)
    }
}

macro_rules! float {
    ($elem:ident, $bits:ident, $n:literal) => {
        impl Float for Array<$elem, $n> {
            const FUSED: bool = FUSED;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.zip(other, |x, y| x + y)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.zip(other, |x, y| x - y)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.zip(other, |x, y| x * y)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self.zip(other, |x, y| x / y)
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                Self(each(|i| {
                    if FUSED { self.0[i].mul_add(b.0[i], c.0[i]) } else { self.0[i] * b.0[i] + c.0[i] }
                }))
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                self.neg().mul_add(b, c)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.map($elem::sqrt)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self.map($elem::floor)
            }
            // Without SSE4.1, `floor` calls the C library for each lane.
            #[inline(always)]
            fn half_integral(self) -> Self {
                self.map(|x| 0.5 * x).round_small()
            }
            #[inline(always)]
            fn at_most(self, bound: Self) -> Self {
                self.zip(bound, |x, b| if b < x { b } else { x })
            }
            #[inline(always)]
            fn at_least(self, bound: Self) -> Self {
                self.zip(bound, |x, b| if b > x { b } else { x })
            }
            #[inline(always)]
            fn lt(self, other: Self) -> Self::Mask {
                self.test(other, |x, y| x < y)
            }
            #[inline(always)]
            fn le(self, other: Self) -> Self::Mask {
                self.test(other, |x, y| x <= y)
            }
            #[inline(always)]
            fn of_bits(self, bits: u64) -> Self {
                Self([$elem::from_bits(bits as $bits); $n])
            }
            #[inline(always)]
            fn bit_and(self, other: Self) -> Self {
                self.zip(other, |x, y| $elem::from_bits(x.to_bits() & y.to_bits()))
            }
            #[inline(always)]
            fn bit_or(self, other: Self) -> Self {
                self.zip(other, |x, y| $elem::from_bits(x.to_bits() | y.to_bits()))
            }
            #[inline(always)]
            fn bit_xor(self, other: Self) -> Self {
                self.zip(other, |x, y| $elem::from_bits(x.to_bits() ^ y.to_bits()))
            }
            #[inline(always)]
            fn bits_shl(self, n: u32) -> Self {
                self.map(|x| $elem::from_bits(x.to_bits() << n))
            }
            #[inline(always)]
            fn bits_shr(self, n: u32) -> Self {
                self.map(|x| $elem::from_bits(x.to_bits() >> n))
            }
            #[inline(always)]
            fn bits_add(self, other: Self) -> Self {
                self.zip(other, |x, y| $elem::from_bits(x.to_bits().wrapping_add(y.to_bits())))
            }
        }
    };
}

float!(f32, u32, 4);
float!(f32, u32, 1);
float!(f64, u64, 2);
float!(f64, u64, 1);

impl<const N: usize> Int for Array<u32, N> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, u32::wrapping_add)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, u32::wrapping_sub)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, u32::wrapping_mul)
    }
    #[inline(always)]
    fn max(self, other: Self, signed: bool) -> Self {
        Self::select(self.lt(other, signed), other, self)
    }
    #[inline(always)]
    fn min(self, other: Self, signed: bool) -> Self {
        Self::select(self.lt(other, signed), self, other)
    }
    #[inline(always)]
    fn lt(self, other: Self, signed: bool) -> Self::Mask {
        self.test(other, |x, y| if signed { (x as i32) < (y as i32) } else { x < y })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.zip(other, |x, y| x & y)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.zip(other, |x, y| x | y)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.zip(other, |x, y| x ^ y)
    }
    #[inline(always)]
    fn mul_wide(self, by: u32) -> (Self, Self) {
        let wide = |x: u32| u64::from(x) * u64::from(by);
        (self.map(|x| (wide(x) >> 32) as u32), self.map(|x| wide(x) as u32))
    }
    #[inline(always)]
    fn block_numbers(self, first: u32) -> Self {
        Self(each(|i| first.wrapping_add(i as u32)))
    }
    #[inline(always)]
    unsafe fn store_blocks(words: [Self; 4], p: *mut u32) {
        for i in 0..N {
            for (j, word) in words.iter().enumerate() {
                // SAFETY: the caller promises `4 N` elements.
                unsafe { p.add(4 * i + j).write_unaligned(word.0[i]) };
            }
        }
    }
}
