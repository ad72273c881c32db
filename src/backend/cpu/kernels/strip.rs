//! The table of strip kernels: from an operation and an element type to a function pointer.
//!
//! It knows which pairs exist. The operations themselves are in `ops` (floats) and `int_ops`; the planner that
//! picks them is elsewhere.

use super::Elem;
use super::int_ops::{self, IntCompare, IntMap};
use super::ops::{self, Compare, FloatOp, IsFinite, Map, Powf};
use crate::simd::Level;
use crate::simd::dispatch::entry_points;
use crate::simd::lanes::Simd;
use crate::simd::math::Math;
use crate::simd::portable::One;

/// A strip kernel: writes `n` elements to `dst` from the operands the operation reads.
///
/// # Safety
/// Each operand that the operation reads holds `n` readable elements, `dst` holds `n` writable ones, and the level it was made for is available. An operand is either disjoint from `dst` or
/// starts at the same address with elements no narrower than those of `dst`. Operands that the operation does
/// not read may be null.
pub type StripFn = unsafe fn(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, imm: [f64; 2], n: usize);

/// One elementwise instruction over operands `a`, `b`, `c` and immediates `imm`.
///
/// `fma` rounds once where the level has it (AVX2, AVX-512, aarch64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StripOp {
    /// `a`
    Copy,
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// The larger, NaN if either is.
    Max,
    /// The smaller, NaN if either is.
    Min,
    /// `-a`
    Neg,
    /// `|a|`
    Abs,
    /// -1, 1, or `a` itself for zeros and NaN.
    Sign,
    /// Largest integer not above `a`.
    Floor,
    /// Square root.
    Sqrt,
    /// `e^a`
    Exp,
    /// Natural logarithm.
    Ln,
    /// `e^a - 1`
    Expm1,
    /// `ln(1 + a)`
    Log1p,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-a)`
    Sigmoid,
    /// Error function.
    Erf,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// `a * a`
    Square,
    /// `1 / a`
    Recip,
    /// `a^imm[0]`, one call of the standard library an element.
    Powf,
    /// `a * imm[0]`
    Scale,
    /// `a + imm[0]`
    AddImm,
    /// `fma(a, imm[0], b)`
    Axpy,
    /// `fma(b, imm[1], fma(a, imm[0], c))`
    Axpy2,
    /// `second(first(a, b), c)`, each part rounded.
    Then(Arith, Arith),
    /// `imm[0] - a * a`, each part rounded.
    SubSquare,
    /// `b * (imm[0] - a * a)`, each part rounded.
    Gate,
    /// `a == b`, a word of 0 or 1.
    Eq,
    /// `a != b`, a word of 0 or 1; true if either is NaN.
    Ne,
    /// `a < b`, a word of 0 or 1.
    Lt,
    /// `a <= b`, a word of 0 or 1.
    Le,
    /// Neither infinite nor NaN, a word of 0 or 1.
    IsFinite,
    /// `b` where the word `a` is not 0, else `c`.
    Select,
    /// Bitwise and of words.
    And,
    /// Bitwise or of words.
    Or,
    /// 1 where the word is 0, else 0.
    Not,
}

/// A part of [`StripOp::Then`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `y - x`, no first part.
    SubFrom,
    /// `x * y`
    Mul,
}

/// A strip kernel before its level is chosen.
pub(super) trait StripKernel {
    /// # Safety
    /// As for [`StripFn`], and the level `S` is available.
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, imm: [f64; 2], n: usize);
}

entry_points!(
    /// The entry point of a strip kernel at a level.
    pub(super) entry,
    StripKernel,
    StripFn,
    (dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, imm: [f64; 2], n: usize)
);

/// The kernel of `op` on elements of type `elem` at `level`.
///
/// Comparisons, `IsFinite` and `Select` take the type of the compared or selected elements.
///
/// # Panics
/// If the pair has no kernel (a caller's type check would have refused it), with a message that starts with
/// `invariant:`.
pub fn strip(level: Level, op: StripOp, elem: Elem) -> StripFn {
    of_width(Width::Level(level), op, elem)
}

/// The kernel of `op` on one element alone, with the bits of every level; none if levels differ in how they round it.
pub fn strip_one(op: StripOp, elem: Elem) -> Option<StripFn> {
    use StripOp::{Axpy, Axpy2, Cos, Erf, Exp, Expm1, Ln, Log1p, Powf, Sigmoid, Sin, Tanh};
    let is_approximate =
        matches!(op, Axpy | Axpy2 | Exp | Ln | Expm1 | Log1p | Tanh | Sigmoid | Erf | Sin | Cos | Powf);
    (!is_approximate).then(|| of_width(Width::One, op, elem))
}

/// How many elements a kernel takes at once.
#[derive(Clone, Copy)]
enum Width {
    /// A vector of the level.
    Level(Level),
    One,
}

fn at<K: StripKernel>(width: Width) -> StripFn {
    unsafe fn one<K: StripKernel>(
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        c: *const u8,
        imm: [f64; 2],
        n: usize,
    ) {
        // SAFETY: single elements need no level; the caller keeps the kernel's conditions.
        unsafe { K::run::<One>(dst, a, b, c, imm, n) }
    }
    match width {
        Width::Level(level) => entry::<K>(level),
        Width::One => one::<K>,
    }
}

fn of_width(width: Width, op: StripOp, elem: Elem) -> StripFn {
    let made = match elem {
        Elem::F32 => float::<f32>(width, op),
        Elem::F64 => float::<f64>(width, op),
        Elem::I32 => int::<true>(width, op),
        Elem::U32 => int::<false>(width, op).or_else(|| logic(width, op)),
    };
    made.unwrap_or_else(|| panic!("invariant: no strip kernel for {op:?} on {elem:?}"))
}

fn map<T: Math, O: FloatOp>(width: Width) -> StripFn {
    at::<Map<T, O>>(width)
}

fn float<T: Math>(width: Width, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Copy => map::<T, ops::Copy>(width),
        StripOp::Add => map::<T, ops::Add>(width),
        StripOp::Sub => map::<T, ops::Sub>(width),
        StripOp::Mul => map::<T, ops::Mul>(width),
        StripOp::Div => map::<T, ops::Div>(width),
        StripOp::Max => map::<T, ops::Max>(width),
        StripOp::Min => map::<T, ops::Min>(width),
        StripOp::Scale => map::<T, ops::Scale>(width),
        StripOp::AddImm => map::<T, ops::AddImm>(width),
        StripOp::Axpy => map::<T, ops::Axpy>(width),
        StripOp::Axpy2 => map::<T, ops::Axpy2>(width),
        StripOp::Then(first, second) => return then::<T>(width, first, second),
        StripOp::SubSquare => map::<T, ops::SubSquare>(width),
        StripOp::Gate => map::<T, ops::Gate>(width),
        StripOp::Powf => at::<Powf<T>>(width),
        StripOp::Eq => at::<Compare<T, ops::Eq>>(width),
        StripOp::Ne => at::<Compare<T, ops::Ne>>(width),
        StripOp::Lt => at::<Compare<T, ops::Lt>>(width),
        StripOp::Le => at::<Compare<T, ops::Le>>(width),
        StripOp::IsFinite => at::<IsFinite<T>>(width),
        StripOp::Select => at::<ops::Select<T>>(width),
        _ => return float_unary::<T>(width, op),
    })
}

fn then<T: Math>(width: Width, first: Arith, second: Arith) -> Option<StripFn> {
    Some(match first {
        Arith::Add => after::<T, ops::Add>(width, second),
        Arith::Sub => after::<T, ops::Sub>(width, second),
        Arith::Mul => after::<T, ops::Mul>(width, second),
        Arith::SubFrom => return None,
    })
}

fn after<T: Math, P: FloatOp>(width: Width, second: Arith) -> StripFn {
    match second {
        Arith::Add => map::<T, ops::Then<P, ops::Add>>(width),
        Arith::Sub => map::<T, ops::Then<P, ops::Sub>>(width),
        Arith::SubFrom => map::<T, ops::Then<P, ops::SubFrom>>(width),
        Arith::Mul => map::<T, ops::Then<P, ops::Mul>>(width),
    }
}

fn float_unary<T: Math>(width: Width, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Neg => map::<T, ops::Neg>(width),
        StripOp::Abs => map::<T, ops::Abs>(width),
        StripOp::Sign => map::<T, ops::Sign>(width),
        StripOp::Floor => map::<T, ops::Floor>(width),
        StripOp::Sqrt => map::<T, ops::Sqrt>(width),
        StripOp::Exp => map::<T, ops::Exp>(width),
        StripOp::Ln => map::<T, ops::Ln>(width),
        StripOp::Expm1 => map::<T, ops::Expm1>(width),
        StripOp::Log1p => map::<T, ops::Log1p>(width),
        StripOp::Tanh => map::<T, ops::Tanh>(width),
        StripOp::Sigmoid => map::<T, ops::Sigmoid>(width),
        StripOp::Erf => map::<T, ops::Erf>(width),
        StripOp::Sin => map::<T, ops::Sin>(width),
        StripOp::Cos => map::<T, ops::Cos>(width),
        StripOp::Square => map::<T, ops::Square>(width),
        StripOp::Recip => map::<T, ops::Recip>(width),
        _ => return None,
    })
}

fn int<const SIGNED: bool>(width: Width, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Copy => at::<IntMap<int_ops::Copy, SIGNED>>(width),
        StripOp::Add => at::<IntMap<int_ops::Add, SIGNED>>(width),
        StripOp::Sub => at::<IntMap<int_ops::Sub, SIGNED>>(width),
        StripOp::Mul => at::<IntMap<int_ops::Mul, SIGNED>>(width),
        StripOp::Max => at::<IntMap<int_ops::Max, SIGNED>>(width),
        StripOp::Min => at::<IntMap<int_ops::Min, SIGNED>>(width),
        StripOp::Neg if SIGNED => at::<IntMap<int_ops::Neg, SIGNED>>(width),
        StripOp::Abs if SIGNED => at::<IntMap<int_ops::Abs, SIGNED>>(width),
        StripOp::Sign if SIGNED => at::<IntMap<int_ops::Sign, SIGNED>>(width),
        StripOp::Eq => at::<IntCompare<int_ops::Eq, SIGNED>>(width),
        StripOp::Ne => at::<IntCompare<int_ops::Ne, SIGNED>>(width),
        StripOp::Lt => at::<IntCompare<int_ops::Lt, SIGNED>>(width),
        StripOp::Le => at::<IntCompare<int_ops::Le, SIGNED>>(width),
        StripOp::Select => at::<int_ops::Select>(width),
        _ => return None,
    })
}

fn logic(width: Width, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::And => at::<IntMap<int_ops::And, false>>(width),
        StripOp::Or => at::<IntMap<int_ops::Or, false>>(width),
        StripOp::Not => at::<int_ops::Not>(width),
        _ => return None,
    })
}
