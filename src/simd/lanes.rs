//! The traits of generic kernels: a token for a level ([`Simd`]) and the operations of its lane types
//! ([`Lanes`], [`Float`], [`Int`]). This file does not depend on an instruction set.
//!
//! Integer operations on the bits of floats (exponents, signs) are methods of the float types (`bit_and`,
//! `bits_shl`, `bits_add`), so exp and ln need no integer lane types of two widths.

use super::math::Math;

/// A level as a type, with its lane types.
pub(crate) trait Simd: Copy + 'static {
    /// Lanes of f32.
    type F32: Float<Elem = f32>;
    /// Lanes of f64.
    type F64: Float<Elem = f64>;
    /// Lanes of u32, also used for i32.
    type U32: Int;

    /// Returns `n`, the end of a loop over vectors. It is called before each vector.
    ///
    /// The portable level, whose vectors are arrays, reads it from memory. Otherwise the optimizer treats
    /// such a loop as a loop over elements and vectorizes it again across vectors, with gathers, which makes
    /// kernels several times longer and slower.
    #[inline(always)]
    fn end(n: &usize) -> usize {
        *n
    }
    /// Transposes an 8 x 8 block of words; rows are `lds` apart at `src` and `ldd` at `dst`.
    /// # Safety
    /// Both blocks are valid and disjoint, and the level is available.
    #[inline(always)]
    unsafe fn transpose_8x8(src: *const u32, lds: usize, dst: *mut u32, ldd: usize) {
        // SAFETY: as the caller promises.
        unsafe { transpose_block::<u32, 8>(src, lds, dst, ldd) }
    }
    /// Transposes a 4 x 4 block of double words; rows are `lds` apart at `src` and `ldd` at `dst`.
    /// # Safety
    /// As for `transpose_8x8`.
    #[inline(always)]
    unsafe fn transpose_4x4(src: *const u64, lds: usize, dst: *mut u64, ldd: usize) {
        // SAFETY: as the caller promises.
        unsafe { transpose_block::<u64, 4>(src, lds, dst, ldd) }
    }
}

/// The plain transpose of an `N x N` block.
#[inline(always)]
unsafe fn transpose_block<T: Copy, const N: usize>(src: *const T, lds: usize, dst: *mut T, ldd: usize) {
    for r in 0..N {
        for c in 0..N {
            // SAFETY: the caller promises both blocks.
            unsafe { dst.add(c * ldd + r).write_unaligned(src.add(r * lds + c).read_unaligned()) };
        }
    }
}

/// A truth value per lane.
pub(crate) trait Mask: Copy {
    fn and(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn any(self) -> bool;
}

/// Operations of all lane types.
pub(crate) trait Lanes: Copy + 'static {
    type Elem: Copy + Default + PartialEq + std::fmt::Debug + 'static;
    type Mask: Mask;
    const LEN: usize;

    /// All lanes equal to `x`.
    /// # Safety
    /// The level of the type is available on this machine. The same holds for every unsafe method here.
    unsafe fn splat(x: Self::Elem) -> Self;
    /// Reads `LEN` elements from an address of any alignment.
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Reads the first `n < LEN` elements and accesses no memory after them; the other lanes are zero.
    unsafe fn load_part(p: *const Self::Elem, n: usize) -> Self;
    /// Writes `LEN` elements.
    unsafe fn store(self, p: *mut Self::Elem);
    /// Writes the first `n < LEN` elements and accesses no memory after them.
    unsafe fn store_part(self, p: *mut Self::Elem, n: usize);
    /// A mask that is true where the u32 at `p` is not zero. Reads the first `n <= LEN` numbers.
    unsafe fn load_mask(p: *const u32, n: usize) -> Self::Mask;
    /// Writes 1 or 0 for the first `n <= LEN` lanes.
    unsafe fn store_mask(mask: Self::Mask, p: *mut u32, n: usize);

    /// All lanes equal to `x`, made from an existing value (which proves the level).
    #[inline(always)]
    fn of(self, x: Self::Elem) -> Self {
        // SAFETY: `self` exists, so the level is available.
        unsafe { Self::splat(x) }
    }
    /// `a` where the mask is true, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    fn eq(self, other: Self) -> Self::Mask;
}

/// Lanes of floating-point numbers.
pub(crate) trait Float: Lanes<Elem: Math> {
    /// Whether `mul_add` rounds once.
    const FUSED: bool;

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * b + c`, fused if [`Self::FUSED`].
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    /// `min(self, bound)`; NaN if `self` is NaN.
    fn at_most(self, bound: Self) -> Self;
    /// `max(self, bound)`; NaN if `self` is NaN.
    fn at_least(self, bound: Self) -> Self;
    fn lt(self, other: Self) -> Self::Mask;
    fn le(self, other: Self) -> Self::Mask;

    /// Lanes with the given bit pattern (its low half for f32).
    fn of_bits(self, bits: u64) -> Self;
    fn bit_and(self, other: Self) -> Self;
    fn bit_or(self, other: Self) -> Self;
    fn bit_xor(self, other: Self) -> Self;
    /// Shifts the bit pattern left.
    fn bits_shl(self, n: u32) -> Self;
    /// Shifts the bit pattern right, filling with zeros.
    fn bits_shr(self, n: u32) -> Self;
    /// Adds the bit patterns as integers, wrapping.
    fn bits_add(self, other: Self) -> Self;

    /// `self * 2^n` for an integral `n`, correct even if the result is subnormal or infinite.
    ///
    /// Uses two steps of half the exponent each. Only the last step can round, because the result of the
    /// first step is normal for `self` in `[1/2, 2]` and `|n| <= 1.5 * bias`, as in all callers.
    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        let half = n.half_integral();
        self.mul(half.exp2_integral()).mul(n.sub(half).exp2_integral())
    }
    /// An integer within 1/2 of `self / 2`, if `self` is integral.
    #[inline(always)]
    fn half_integral(self) -> Self {
        self.mul(self.of(Self::Elem::HALF)).floor()
    }
    /// `2^self`, if `self` is integral and the result is a normal number.
    #[inline(always)]
    fn exp2_integral(self) -> Self {
        let shifted = self.add(self.of(Self::Elem::ROUND));
        shifted.bits_shl(Self::Elem::MANTISSA).bits_add(self.of_bits(Self::Elem::ONE_BITS))
    }
    /// The nearest integer, ties to even, for `|self| < 2^(MANTISSA - 2)`.
    #[inline(always)]
    fn round_small(self) -> Self {
        let magic = self.of(Self::Elem::ROUND);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.bit_and(self.of_bits(!Self::Elem::SIGN_BIT))
    }
    #[inline(always)]
    fn neg(self) -> Self {
        self.bit_xor(self.of_bits(Self::Elem::SIGN_BIT))
    }
    /// The magnitude of `self` with the sign of `sign`.
    #[inline(always)]
    fn with_sign_of(self, sign: Self) -> Self {
        self.abs().bit_or(sign.bit_and(sign.of_bits(Self::Elem::SIGN_BIT)))
    }
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        self.eq(self).not()
    }
    /// The larger operand; NaN if either operand is NaN.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(other.is_nan(), other, self.at_least(other))
    }
    /// The smaller operand; NaN if either operand is NaN.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(other.is_nan(), other, self.at_most(other))
    }

    /// An array whose first `LEN` entries are the lanes.
    #[inline(always)]
    fn to_array(self) -> [Self::Elem; 16] {
        const { assert!(Self::LEN <= 16) };
        let mut out = [Self::Elem::default(); 16];
        // SAFETY: `LEN` elements fit, by the assertion.
        unsafe { self.store(out.as_mut_ptr()) };
        out
    }
    /// `f(input)` in the lanes where `mask` is true, `self` in the others.
    #[inline(always)]
    fn patch(self, mask: Self::Mask, input: Self, f: fn(Self::Elem) -> Self::Elem) -> Self {
        if !mask.any() {
            return self;
        }
        let mut values = input.to_array();
        for v in &mut values[..Self::LEN] {
            *v = f(*v);
        }
        // SAFETY: `self` proves the level, and the array holds `LEN` elements.
        Self::select(mask, unsafe { Self::load(values.as_ptr()) }, self)
    }
    /// The sum of the lanes as a balanced tree: lane `i` with lane `i + LEN/2`, and so on.
    #[inline(always)]
    fn reduce_add(self) -> Self::Elem {
        let mut x = self.to_array();
        let mut half = Self::LEN / 2;
        while half > 0 {
            for i in 0..half {
                x[i] = x[i].plus(x[i + half]);
            }
            half /= 2;
        }
        x[0]
    }
}

/// Lanes of 32-bit integers. `signed` chooses between signed and unsigned comparison.
pub(crate) trait Int: Lanes<Elem = u32> {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn max(self, other: Self, signed: bool) -> Self;
    fn min(self, other: Self, signed: bool) -> Self;
    fn lt(self, other: Self, signed: bool) -> Self::Mask;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The high and the low halves of the 64-bit products `self * by`.
    fn mul_wide(self, by: u32) -> (Self, Self);
    /// The numbers `first..first + LEN` (wrapping) in the lane order that [`Self::store_blocks`] undoes.
    fn block_numbers(self, first: u32) -> Self;
    /// Writes word `j` of block `first + i` to `p[4 i + j]`; `words[j]` holds it in the lane that
    /// [`Self::block_numbers`] assigned to `first + i`. With this permutation, the 4 x 4 transposes within
    /// 128 bits leave the blocks in order.
    /// # Safety
    /// `4 LEN` elements are writable at `p`.
    unsafe fn store_blocks(words: [Self; 4], p: *mut u32);
}
