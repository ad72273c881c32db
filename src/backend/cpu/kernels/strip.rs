//! The table of strip kernels: from an operation, an element type and a CPU level to a function pointer.
//!
//! This file defines which pairs of operation and element type have a kernel. The operations are in `ops`
//! (floats) and `int_ops`. The planner selects them.

use super::Elem;
use super::int_ops::{self, IntCompare, IntMap};
use super::ops::{self, Compare, FloatOp, IsFinite, Map, Powf};
use crate::graph::FloatFn;
use crate::simd::Level;
use crate::simd::dispatch::entry_points;
use crate::simd::lanes::Simd;
use crate::simd::math::Math;

/// A strip kernel: writes `n` elements to `dst`, computed from the operands that the operation reads.
///
/// # Safety
/// Each operand that the operation reads holds `n` readable elements, `dst` holds `n` writable ones, and the
/// kernel's level is available. An operand is either disjoint from `dst` or starts at the same address with
/// elements no narrower than those of `dst`. Operands that the operation does not read may be null.
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
    /// The larger, NaN if either is NaN.
    Max,
    /// The smaller, NaN if either is NaN.
    Min,
    /// `-a`
    Neg,
    /// `|a|`
    Abs,
    /// -1, 1, or `a` itself for zeros and NaN.
    Sign,
    /// A function of `a`.
    Float(FloatFn),
    /// `a * a`
    Square,
    /// `1 / a`
    Recip,
    /// `a^imm[0]`, one call of the standard library per element.
    Powf,
    /// The function `ScalarFn::ALL[imm[0]]` of `a`, or of `a` and `b`, one call per element.
    Scalar,
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
    /// `y - x`, not allowed as a first part.
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
/// If the pair has no kernel (a type check in the caller should reject it); the message starts with
/// `invariant:`.
pub fn strip(level: Level, op: StripOp, elem: Elem) -> StripFn {
    let made = match elem {
        Elem::F32 => moves(level, op, false).or_else(|| float::<f32>(level, op)),
        Elem::F64 => moves(level, op, true).or_else(|| float::<f64>(level, op)),
        Elem::I32 => moves(level, op, false).or_else(|| word(level, op)).or_else(|| signed(level, op)),
        Elem::U32 => moves(level, op, false).or_else(|| word(level, op)).or_else(|| unsigned(level, op)),
    };
    made.unwrap_or_else(|| panic!("invariant: no strip kernel for {op:?} on {elem:?}"))
}

/// Operations that only copy or select elements, of 8 or 4 bytes.
fn moves(level: Level, op: StripOp, is_wide: bool) -> Option<StripFn> {
    Some(match (op, is_wide) {
        (StripOp::Copy, false) => entry::<IntMap<int_ops::Copy>>(level),
        (StripOp::Copy, true) => map::<f64, ops::Copy>(level),
        (StripOp::Select, false) => entry::<int_ops::Select>(level),
        (StripOp::Select, true) => entry::<ops::Select>(level),
        _ => return None,
    })
}

fn map<T: Math, O: FloatOp>(level: Level) -> StripFn {
    entry::<Map<T, O>>(level)
}

fn float<T: Math>(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Add => map::<T, ops::Add>(level),
        StripOp::Sub => map::<T, ops::Sub>(level),
        StripOp::Mul => map::<T, ops::Mul>(level),
        StripOp::Div => map::<T, ops::Div>(level),
        StripOp::Max => map::<T, ops::Max>(level),
        StripOp::Min => map::<T, ops::Min>(level),
        StripOp::Scale => map::<T, ops::Scale>(level),
        StripOp::AddImm => map::<T, ops::AddImm>(level),
        StripOp::Axpy => map::<T, ops::Axpy>(level),
        StripOp::Axpy2 => map::<T, ops::Axpy2>(level),
        StripOp::Then(first, second) => return then::<T>(level, first, second),
        StripOp::SubSquare => map::<T, ops::SubSquare>(level),
        StripOp::Gate => map::<T, ops::Gate>(level),
        StripOp::Powf => entry::<Powf<T>>(level),
        StripOp::Scalar => ops::scalar::<T>,
        StripOp::Eq => entry::<Compare<T, ops::Eq>>(level),
        StripOp::Ne => entry::<Compare<T, ops::Ne>>(level),
        StripOp::Lt => entry::<Compare<T, ops::Lt>>(level),
        StripOp::Le => entry::<Compare<T, ops::Le>>(level),
        StripOp::IsFinite => entry::<IsFinite<T>>(level),
        _ => return float_unary::<T>(level, op),
    })
}

fn then<T: Math>(level: Level, first: Arith, second: Arith) -> Option<StripFn> {
    Some(match first {
        Arith::Add => after::<T, ops::Add>(level, second),
        Arith::Sub => after::<T, ops::Sub>(level, second),
        Arith::Mul => after::<T, ops::Mul>(level, second),
        Arith::SubFrom => return None,
    })
}

fn after<T: Math, P: FloatOp>(level: Level, second: Arith) -> StripFn {
    match second {
        Arith::Add => map::<T, ops::Then<P, ops::Add>>(level),
        Arith::Sub => map::<T, ops::Then<P, ops::Sub>>(level),
        Arith::SubFrom => map::<T, ops::Then<P, ops::SubFrom>>(level),
        Arith::Mul => map::<T, ops::Then<P, ops::Mul>>(level),
    }
}

fn float_unary<T: Math>(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Neg => map::<T, ops::Neg>(level),
        StripOp::Abs => map::<T, ops::Abs>(level),
        StripOp::Sign => map::<T, ops::Sign>(level),
        StripOp::Float(f) => function::<T>(level, f),
        StripOp::Square => map::<T, ops::Square>(level),
        StripOp::Recip => map::<T, ops::Recip>(level),
        _ => return None,
    })
}

/// Defines the kernels of the table of functions.
macro_rules! functions {
    ($($(#[$doc:meta])* $op:ident $name:ident $domain:ident;)*) => {
        fn function<T: Math>(level: Level, f: FloatFn) -> StripFn {
            match f { $(FloatFn::$op => map::<T, ops::$op>(level)),* }
        }
    };
}
crate::graph::functions::float_functions!(functions);

/// Operations that are the same for signed and unsigned words.
fn word(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Add => entry::<IntMap<int_ops::Add>>(level),
        StripOp::Sub => entry::<IntMap<int_ops::Sub>>(level),
        StripOp::Mul => entry::<IntMap<int_ops::Mul>>(level),
        StripOp::Eq => entry::<IntCompare<int_ops::Eq>>(level),
        StripOp::Ne => entry::<IntCompare<int_ops::Ne>>(level),
        _ => return None,
    })
}

fn signed(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Neg => entry::<IntMap<int_ops::Neg>>(level),
        StripOp::Abs => entry::<IntMap<int_ops::Abs>>(level),
        StripOp::Sign => entry::<IntMap<int_ops::Sign>>(level),
        _ => return ordered::<true>(level, op),
    })
}

fn unsigned(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::And => entry::<IntMap<int_ops::And>>(level),
        StripOp::Or => entry::<IntMap<int_ops::Or>>(level),
        StripOp::Not => entry::<int_ops::Not>(level),
        _ => return ordered::<false>(level, op),
    })
}

fn ordered<const SIGNED: bool>(level: Level, op: StripOp) -> Option<StripFn> {
    Some(match op {
        StripOp::Max => entry::<IntMap<int_ops::Max<SIGNED>>>(level),
        StripOp::Min => entry::<IntMap<int_ops::Min<SIGNED>>>(level),
        StripOp::Lt => entry::<IntCompare<int_ops::Lt<SIGNED>>>(level),
        StripOp::Le => entry::<IntCompare<int_ops::Le<SIGNED>>>(level),
        _ => return None,
    })
}
