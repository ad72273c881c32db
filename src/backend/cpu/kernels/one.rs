//! Operations on single elements that pass from one to the next in a file of registers.
//!
//! A loop's clock is some forty operations on single numbers a trip. A strip kernel takes its operands' addresses from a
//! table, counts lanes and loops; here an operation is a call that reads two words and writes one. The values are those
//! of the strip kernels at single elements, whose bits are those of every level.

use super::Elem;
use super::int_ops::{self, IntCompareOp, IntOp};
use super::ops::{self, CompareOp, FloatOp};
use super::strip::StripOp;
use crate::simd::lanes::{Float, Lanes, Mask};
use crate::simd::math::Math;
use crate::simd::portable::One;

/// An operation on registers, each of which holds one element of any type.
///
/// # Safety
/// The registers that the instruction names are there, and those that its operation reads hold elements of its type.
pub type OneFn = unsafe fn(registers: *mut u64, instr: &OneInstr);

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct OneInstr {
    /// What is done.
    pub run: OneFn,
    /// The immediate.
    pub imm: f64,
    /// The register that is written.
    pub dst: u16,
    /// Those that are read; any where an operation reads fewer.
    pub args: [u16; 3],
}

/// A word of a comparison's mask.
type Words = crate::simd::portable::Array<u32, 1>;

unsafe fn get<T: Copy>(registers: *mut u64, instr: &OneInstr, k: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { registers.add(instr.args[k] as usize).cast::<T>().read() }
}

unsafe fn put<T>(registers: *mut u64, instr: &OneInstr, x: T) {
    // SAFETY: the caller's promise.
    unsafe { registers.add(instr.dst as usize).cast::<T>().write(x) }
}

unsafe fn map<T: Math, O: FloatOp>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: the caller's promise; single elements need no level.
    unsafe {
        let of = |k: usize| T::Of::<One>::splat(get(registers, instr, k));
        let imm = [T::Of::<One>::splat(T::from_f64(instr.imm)); 2];
        let x = of(0);
        let y = if O::ARITY > 1 { of(1) } else { x };
        let mut out = T::ZERO;
        O::apply(x, y, x, imm).store(&raw mut out);
        put(registers, instr, out);
    }
}

unsafe fn compare<T: Math, O: CompareOp>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let [x, y] = [0, 1].map(|k| T::Of::<One>::splat(get(registers, instr, k)));
        put(registers, instr, u32::from(O::apply(x, y).any()));
    }
}

unsafe fn is_finite<T: Math>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let x = T::Of::<One>::splat(get(registers, instr, 0));
        put(registers, instr, u32::from(x.abs().lt(x.of(T::INFINITY)).any()));
    }
}

unsafe fn select<T: Copy>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let [x, y]: [T; 2] = [1, 2].map(|k| get(registers, instr, k));
        put(registers, instr, if get::<u32>(registers, instr, 0) != 0 { x } else { y });
    }
}

unsafe fn word<O: IntOp, const SIGNED: bool>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let x = Words::splat(get(registers, instr, 0));
        let y = if O::ARITY > 1 { Words::splat(get(registers, instr, 1)) } else { x };
        let mut out = 0u32;
        O::apply(x, y, SIGNED).store(&raw mut out);
        put(registers, instr, out);
    }
}

unsafe fn compare_words<O: IntCompareOp, const SIGNED: bool>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let [x, y] = [0, 1].map(|k| Words::splat(get(registers, instr, k)));
        put(registers, instr, u32::from(O::apply(x, y, SIGNED).any()));
    }
}

unsafe fn not(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe { put(registers, instr, u32::from(get::<u32>(registers, instr, 0) == 0)) }
}

macro_rules! cast {
    ($($name:ident: $from:ident => $to:ident;)*) => {$(
        unsafe fn $name(registers: *mut u64, instr: &OneInstr) {
            // SAFETY: as for `map`.
            unsafe { put(registers, instr, get::<$from>(registers, instr, 0) as $to) }
        }
    )*};
}

cast! {
    f32_to_f64: f32 => f64;
    f32_to_i32: f32 => i32;
    f32_to_u32: f32 => u32;
    f64_to_f32: f64 => f32;
    f64_to_i32: f64 => i32;
    f64_to_u32: f64 => u32;
    i32_to_f32: i32 => f32;
    i32_to_f64: i32 => f64;
    u32_to_f32: u32 => f32;
    u32_to_f64: u32 => f64;
}

/// The operation on single elements, with the bits of every level; none if levels differ in how they round it.
pub fn one(op: StripOp, elem: Elem) -> Option<OneFn> {
    match elem {
        Elem::F32 => float::<f32>(op),
        Elem::F64 => float::<f64>(op),
        Elem::I32 => int::<true>(op),
        Elem::U32 => int::<false>(op),
    }
}

/// The conversion of single elements ([`super::cast`]).
pub fn cast_one(from: Elem, to: Elem) -> OneFn {
    match (from, to) {
        (Elem::F32, Elem::F64) => f32_to_f64,
        (Elem::F32, Elem::I32) => f32_to_i32,
        (Elem::F32, Elem::U32) => f32_to_u32,
        (Elem::F64, Elem::F32) => f64_to_f32,
        (Elem::F64, Elem::I32) => f64_to_i32,
        (Elem::F64, Elem::U32) => f64_to_u32,
        (Elem::I32, Elem::F32) => i32_to_f32,
        (Elem::I32, Elem::F64) => i32_to_f64,
        (Elem::U32, Elem::F32) => u32_to_f32,
        (Elem::U32, Elem::F64) => u32_to_f64,
        (Elem::F64, Elem::F64) => map::<f64, ops::Copy>,
        _ => word::<int_ops::Copy, false>,
    }
}

fn float<T: Math>(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Copy => map::<T, ops::Copy>,
        StripOp::Add => map::<T, ops::Add>,
        StripOp::Sub => map::<T, ops::Sub>,
        StripOp::Mul => map::<T, ops::Mul>,
        StripOp::Div => map::<T, ops::Div>,
        StripOp::Max => map::<T, ops::Max>,
        StripOp::Min => map::<T, ops::Min>,
        StripOp::Scale => map::<T, ops::Scale>,
        StripOp::AddImm => map::<T, ops::AddImm>,
        StripOp::Neg => map::<T, ops::Neg>,
        StripOp::Abs => map::<T, ops::Abs>,
        StripOp::Sign => map::<T, ops::Sign>,
        StripOp::Floor => map::<T, ops::Floor>,
        StripOp::Sqrt => map::<T, ops::Sqrt>,
        StripOp::Square => map::<T, ops::Square>,
        StripOp::Recip => map::<T, ops::Recip>,
        StripOp::Eq => compare::<T, ops::Eq>,
        StripOp::Ne => compare::<T, ops::Ne>,
        StripOp::Lt => compare::<T, ops::Lt>,
        StripOp::Le => compare::<T, ops::Le>,
        StripOp::IsFinite => is_finite::<T>,
        StripOp::Select => select::<T>,
        _ => return None,
    })
}

fn int<const SIGNED: bool>(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Copy => word::<int_ops::Copy, SIGNED>,
        StripOp::Add => word::<int_ops::Add, SIGNED>,
        StripOp::Sub => word::<int_ops::Sub, SIGNED>,
        StripOp::Mul => word::<int_ops::Mul, SIGNED>,
        StripOp::Max => word::<int_ops::Max, SIGNED>,
        StripOp::Min => word::<int_ops::Min, SIGNED>,
        StripOp::And => word::<int_ops::And, SIGNED>,
        StripOp::Or => word::<int_ops::Or, SIGNED>,
        StripOp::Neg if SIGNED => word::<int_ops::Neg, SIGNED>,
        StripOp::Abs if SIGNED => word::<int_ops::Abs, SIGNED>,
        StripOp::Sign if SIGNED => word::<int_ops::Sign, SIGNED>,
        StripOp::Eq => compare_words::<int_ops::Eq, SIGNED>,
        StripOp::Ne => compare_words::<int_ops::Ne, SIGNED>,
        StripOp::Lt => compare_words::<int_ops::Lt, SIGNED>,
        StripOp::Le => compare_words::<int_ops::Le, SIGNED>,
        StripOp::Not => not,
        StripOp::Select => select::<u32>,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{cast, strip};
    use super::*;
    use crate::simd::Level;

    const OPS: [StripOp; 26] = {
        use StripOp::*;
        [
            Copy, Add, Sub, Mul, Div, Max, Min, Scale, AddImm, Neg, Abs, Sign, Floor, Sqrt, Square, Recip,
            Eq, Ne, Lt, Le, IsFinite, Select, And, Or, Not, Tanh,
        ]
    };

    /// Elements of a type, as the words that a register holds.
    fn elements(elem: Elem) -> Vec<u64> {
        let numbers = [0.0, -0.0, 1.0, -2.5, 3.0e9, f64::NAN, f64::INFINITY, -1e-310];
        match elem {
            Elem::F64 => numbers.map(f64::to_bits).to_vec(),
            Elem::F32 => numbers.map(|x| u64::from((x as f32).to_bits())).to_vec(),
            _ => vec![0, 1, 7, u64::from(u32::MAX), 1 << 31],
        }
    }

    #[test]
    fn single_elements_have_the_bits_of_the_strip_kernels() {
        for elem in [Elem::F32, Elem::F64, Elem::I32, Elem::U32] {
            for op in OPS {
                let Some(run) = one(op, elem) else { continue };
                let is_logic = matches!(op, StripOp::And | StripOp::Or | StripOp::Not);
                if is_logic && elem != Elem::U32 {
                    continue;
                }
                let kernel = strip(Level::detect(), op, elem);
                for &a in &elements(elem) {
                    for &b in &elements(elem) {
                        let first = if op == StripOp::Select { u64::from(a != 0) } else { a };
                        let mut registers = [first, b, a, 0, 0];
                        let instr = OneInstr { run, imm: 1.25, dst: 3, args: [0, 1, 2] };
                        let at = registers.as_mut_ptr();
                        // SAFETY: five registers, of which the operation reads three and writes one.
                        unsafe {
                            (instr.run)(at, &instr);
                            let of = |k: usize| at.add(k).cast::<u8>();
                            kernel(of(4), of(0), of(1), of(2), [1.25, 0.0], 1);
                        }
                        let is_nan = |x: u64| match elem {
                            Elem::F64 => f64::from_bits(x).is_nan(),
                            Elem::F32 => f32::from_bits(x as u32).is_nan(),
                            _ => false,
                        };
                        let same =
                            registers[3] == registers[4] || is_nan(registers[3]) && is_nan(registers[4]);
                        assert!(same, "{op:?} {elem:?} {a:x} {b:x}: {:x} {:x}", registers[3], registers[4]);
                    }
                }
            }
            for to in [Elem::F32, Elem::F64, Elem::I32, Elem::U32] {
                for a in elements(elem) {
                    let instr = OneInstr { run: cast_one(elem, to), imm: 0.0, dst: 1, args: [0; 3] };
                    let mut registers = [a, 0, 0];
                    let at = registers.as_mut_ptr();
                    // SAFETY: as above.
                    unsafe {
                        (instr.run)(at, &instr);
                        let of = |k: usize| at.add(k).cast::<u8>();
                        cast(Level::detect(), elem, to)(of(2), of(0), of(0), of(0), [0.0; 2], 1);
                    }
                    assert_eq!(registers[1], registers[2], "{elem:?} to {to:?}: {a:x}");
                }
            }
        }
    }
}
