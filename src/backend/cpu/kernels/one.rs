//! Operations on single elements in a register file.
//!
//! A loop's clock has about forty operations on single numbers per trip. A strip kernel for one number reads
//! the addresses of its operands from a table, computes the number of lanes and enters a loop. In this file,
//! an operation is a call that reads words from registers and writes one word. If an operation rounds once,
//! its result has the same bits at all levels. If its results differ between levels (functions, fused
//! chains), the level's strip kernel runs on the registers. Strip kernels do not run the other operations,
//! because a masked load of one element stalls on a preceding masked store (12 to 15 cycles on x86), and a
//! plain load does not.

use super::Elem;
use super::int_ops::{self, IntCompareOp, IntOp};
use super::ops::{self, CompareOp, FloatOp};
use super::strip::{StripFn, StripOp};
use crate::graph::FloatFn;
use crate::simd::lanes::{Float, Lanes, Mask};
use crate::simd::math::Math;
use crate::simd::portable::One;

/// An operation on registers; each register holds one element of any type.
///
/// # Safety
/// The registers that the instruction names exist, and the registers that its operation reads hold elements of its
/// type.
pub type OneFn = unsafe fn(registers: *mut u64, instr: &OneInstr);

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct OneInstr {
    /// The operation.
    pub run: OneFn,
    /// The equivalent strip kernel, for [`by_strip`].
    pub kernel: StripFn,
    /// The immediates.
    pub imm: [f64; 2],
    /// The register to write.
    pub dst: u16,
    /// The registers to read; unused entries are arbitrary.
    pub args: [u16; 3],
}

/// A vector of one 32-bit word.
type Words = crate::simd::portable::Array<u32, 1>;

unsafe fn get<T: Copy>(registers: *mut u64, instr: &OneInstr, k: usize) -> T {
    // SAFETY: `Gen::ones` has checked that all registers are in the file. An instruction reads operands of its
    // type, each of which is loaded or written before.
    unsafe { registers.add(instr.args[k] as usize).cast::<T>().read() }
}

unsafe fn put<T>(registers: *mut u64, instr: &OneInstr, x: T) {
    // SAFETY: `Gen::ones` has checked that all registers are in the file. A register holds any element.
    unsafe { registers.add(instr.dst as usize).cast::<T>().write(x) }
}

unsafe fn map<T: Math, O: FloatOp>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `get` and `put`; vectors of one element need no level.
    unsafe {
        let of = |k: usize| T::Of::<One>::splat(get(registers, instr, k));
        let imm = [T::Of::<One>::splat(T::from_f64(instr.imm[0])); 2];
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
        let x = T::Of::<One>::splat(get(registers, instr, 0));
        let y = T::Of::<One>::splat(get(registers, instr, 1));
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

unsafe fn copy<T: Copy>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe { put(registers, instr, get::<T>(registers, instr, 0)) }
}

unsafe fn select<T: Copy>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let (x, y) = (get::<T>(registers, instr, 1), get::<T>(registers, instr, 2));
        put(registers, instr, if get::<u32>(registers, instr, 0) != 0 { x } else { y });
    }
}

unsafe fn word<O: IntOp>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let x = Words::splat(get(registers, instr, 0));
        let y = if O::ARITY > 1 { Words::splat(get(registers, instr, 1)) } else { x };
        let mut out = 0u32;
        O::apply(x, y).store(&raw mut out);
        put(registers, instr, out);
    }
}

unsafe fn compare_words<O: IntCompareOp>(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `map`.
    unsafe {
        let x = Words::splat(get(registers, instr, 0));
        let y = Words::splat(get(registers, instr, 1));
        put(registers, instr, u32::from(O::apply(x, y).any()));
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

/// Runs the strip kernel of an instruction on one element.
///
/// # Safety
/// As for [`OneFn`]; the kernel's level is available, and if the written register is also an operand, the result is
/// no wider than this operand.
pub unsafe fn by_strip(registers: *mut u64, instr: &OneInstr) {
    // SAFETY: as for `get` and `put`. `Gen::assign` reuses the register of an operand only if its elements are at
    // least as wide as those of the result, and the kernel is one of the plan's level.
    unsafe {
        let at = |register: u16| registers.add(register as usize).cast::<u8>();
        let [a, b, c] = instr.args;
        (instr.kernel)(at(instr.dst), at(a), at(b), at(c), instr.imm, 1);
    }
}

/// The operation on single elements, with the same bits at all levels; `None` if [`by_strip`] must run it.
pub fn one(op: StripOp, elem: Elem) -> Option<OneFn> {
    match elem {
        Elem::F32 => moves::<u32>(op).or_else(|| float::<f32>(op)),
        Elem::F64 => moves::<u64>(op).or_else(|| float::<f64>(op)),
        Elem::I32 => moves::<u32>(op).or_else(|| words(op)).or_else(|| signed(op)),
        Elem::U32 => moves::<u32>(op).or_else(|| words(op)).or_else(|| unsigned(op)),
    }
}

/// The conversion of single elements, like `super::cast`.
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
        (Elem::F64, Elem::F64) => copy::<u64>,
        _ => copy::<u32>,
    }
}

fn moves<T: Copy>(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Copy => copy::<T>,
        StripOp::Select => select::<T>,
        _ => return None,
    })
}

fn float<T: Math>(op: StripOp) -> Option<OneFn> {
    Some(match op {
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
        StripOp::Float(FloatFn::Floor) => map::<T, ops::Floor>,
        StripOp::Float(FloatFn::Sqrt) => map::<T, ops::Sqrt>,
        StripOp::Square => map::<T, ops::Square>,
        StripOp::Recip => map::<T, ops::Recip>,
        StripOp::Eq => compare::<T, ops::Eq>,
        StripOp::Ne => compare::<T, ops::Ne>,
        StripOp::Lt => compare::<T, ops::Lt>,
        StripOp::Le => compare::<T, ops::Le>,
        StripOp::IsFinite => is_finite::<T>,
        _ => return None,
    })
}

fn words(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Add => word::<int_ops::Add>,
        StripOp::Sub => word::<int_ops::Sub>,
        StripOp::Mul => word::<int_ops::Mul>,
        StripOp::Eq => compare_words::<int_ops::Eq>,
        StripOp::Ne => compare_words::<int_ops::Ne>,
        _ => return None,
    })
}

fn signed(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Neg => word::<int_ops::Neg>,
        StripOp::Abs => word::<int_ops::Abs>,
        StripOp::Sign => word::<int_ops::Sign>,
        _ => return ordered::<true>(op),
    })
}

fn unsigned(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::And => word::<int_ops::And>,
        StripOp::Or => word::<int_ops::Or>,
        StripOp::Not => not,
        _ => return ordered::<false>(op),
    })
}

fn ordered<const SIGNED: bool>(op: StripOp) -> Option<OneFn> {
    Some(match op {
        StripOp::Max => word::<int_ops::Max<SIGNED>>,
        StripOp::Min => word::<int_ops::Min<SIGNED>>,
        StripOp::Lt => compare_words::<int_ops::Lt<SIGNED>>,
        StripOp::Le => compare_words::<int_ops::Le<SIGNED>>,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{cast, strip};
    use super::*;
    use crate::simd::Level;

    const OPS: [StripOp; 25] = {
        use StripOp::*;
        [
            Copy,
            Add,
            Sub,
            Mul,
            Div,
            Max,
            Min,
            Scale,
            AddImm,
            Neg,
            Abs,
            Sign,
            Float(FloatFn::Floor),
            Float(FloatFn::Sqrt),
            Square,
            Recip,
            Eq,
            Ne,
            Lt,
            Le,
            IsFinite,
            Select,
            And,
            Or,
            Not,
        ]
    };

    /// Elements of a type, as the words of registers.
    fn elements(elem: Elem) -> Vec<u64> {
        let numbers = [0.0, -0.0, 1.0, -2.5, 3.0e9, f64::NAN, f64::INFINITY, -1e-310];
        match elem {
            Elem::F64 => numbers.map(f64::to_bits).to_vec(),
            Elem::F32 => numbers.map(|x| u64::from((x as f32).to_bits())).to_vec(),
            _ => vec![0, 1, 7, u64::from(u32::MAX), 1 << 31],
        }
    }

    /// Whether the operation and the strip kernel return equal bits for `operands`, or both return NaN.
    fn agree(run: OneFn, kernel: StripFn, elem: Elem, operands: [u64; 3]) -> bool {
        let mut registers = [operands[0], operands[1], operands[2], 0, 0];
        for (run, dst) in [(run, 3), (by_strip as OneFn, 4)] {
            let instr = OneInstr { run, kernel, imm: [1.25, 0.0], dst, args: [0, 1, 2] };
            // SAFETY: five registers, of which the operation reads three and writes one.
            unsafe { (instr.run)(registers.as_mut_ptr(), &instr) };
        }
        let is_nan = |x: u64| match elem {
            Elem::F64 => f64::from_bits(x).is_nan(),
            Elem::F32 => f32::from_bits(x as u32).is_nan(),
            _ => false,
        };
        registers[3] == registers[4] || is_nan(registers[3]) && is_nan(registers[4])
    }

    #[test]
    fn single_elements_have_the_bits_of_the_strip_kernels_of_every_level() {
        const ELEMS: [Elem; 4] = [Elem::F32, Elem::F64, Elem::I32, Elem::U32];
        for (level, elem) in Level::available().into_iter().flat_map(|l| ELEMS.map(|elem| (l, elem))) {
            for (op, run) in OPS.into_iter().filter_map(|op| Some((op, one(op, elem)?))) {
                let kernel = strip(level, op, elem);
                for (a, b) in
                    elements(elem).into_iter().flat_map(|a| elements(elem).into_iter().map(move |b| (a, b)))
                {
                    let first = if op == StripOp::Select { u64::from(a != 0) } else { a };
                    assert!(agree(run, kernel, elem, [first, b, a]), "{level:?} {op:?} {elem:?} {a:x} {b:x}");
                }
            }
            for (to, a) in ELEMS.into_iter().flat_map(|to| elements(elem).into_iter().map(move |a| (to, a))) {
                let same = agree(cast_one(elem, to), cast(level, elem, to), Elem::U32, [a; 3]);
                assert!(same, "{level:?} {elem:?} to {to:?}: {a:x}");
            }
        }
        assert!(one(StripOp::Float(FloatFn::Tanh), Elem::F32).is_none());
    }
}
