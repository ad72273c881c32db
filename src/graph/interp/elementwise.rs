//! Elementwise operations, in the element type (erf and softplus: in f64, then rounded).
//!
//! A trait for floats lets each formula serve f32 and f64. Integers and booleans have few operations, which
//! are written separately.

use super::erf::erf;
use crate::array::{DType, Data, Element};
use crate::graph::{BinaryOp, CompareOp, ScalarFn, UnaryOp};

/// Operations on f32 or f64 numbers.
pub(super) trait Float: Element + PartialOrd {
    fn unary(self, op: UnaryOp) -> Self;
    fn binary(self, op: BinaryOp, b: Self) -> Self;
    fn lincomb(coeffs: &[u64], x: impl Iterator<Item = Self>) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => { $(
        impl Float for $t {
            fn unary(self, op: UnaryOp) -> Self {
                let x = self;
                match op {
                    UnaryOp::Neg => -x,
                    UnaryOp::Abs => x.abs(),
                    UnaryOp::Sign => if x.is_nan() || x == 0.0 { x } else { x.signum() },
                    UnaryOp::Floor => x.floor(),
                    UnaryOp::Exp => x.exp(),
                    UnaryOp::Expm1 => x.exp_m1(),
                    UnaryOp::Ln => x.ln(),
                    UnaryOp::Log1p => x.ln_1p(),
                    UnaryOp::Sqrt => x.sqrt(),
                    UnaryOp::Sin => x.sin(),
                    UnaryOp::Cos => x.cos(),
                    UnaryOp::Atan => x.atan(),
                    UnaryOp::Tanh => x.tanh(),
                    UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                    UnaryOp::Softplus => softplus(x.into()) as $t,
                    UnaryOp::Erf => erf(x.into()) as $t,
                    UnaryOp::Powf(p) => x.powf(f64::from_bits(p) as $t),
                    UnaryOp::Not | UnaryOp::IsFinite => panic!("invariant: {} gives no float", op.name()),
                }
            }

            fn binary(self, op: BinaryOp, b: Self) -> Self {
                let a = self;
                let nan = a.is_nan() || b.is_nan();
                match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Sub => a - b,
                    BinaryOp::Mul => a * b,
                    BinaryOp::Div => a / b,
                    BinaryOp::Max => if nan { <$t>::NAN } else { a.max(b) },
                    BinaryOp::Min => if nan { <$t>::NAN } else { a.min(b) },
                    BinaryOp::And | BinaryOp::Or => panic!("invariant: {} takes no float", op.name()),
                }
            }

            fn lincomb(coeffs: &[u64], mut x: impl Iterator<Item = Self>) -> Self {
                let mut terms = coeffs.iter().map(|&c| f64::from_bits(c) as $t);
                let first = terms.next().zip(x.next()).map(|(c, x)| c * x);
                let first = first.expect("invariant: a lincomb has a term");
                terms.zip(x).fold(first, |sum, (c, x)| c.mul_add(x, sum))
            }
        }
    )* };
}
float!(f32, f64);

/// `ln(1 + e^x)`
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn map<A: Copy, B>(a: &[A], f: impl Fn(A) -> B) -> Vec<B> {
    a.iter().map(|&a| f(a)).collect()
}

fn zip<A: Copy, B>(a: &[A], b: &[A], f: impl Fn(A, A) -> B) -> Vec<B> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

pub(super) fn unary(op: UnaryOp, x: &Data) -> Data {
    match (op, x) {
        (UnaryOp::IsFinite, Data::F32(x)) => Data::Bool(map(x, |x| u32::from(x.is_finite()))),
        (UnaryOp::IsFinite, Data::F64(x)) => Data::Bool(map(x, |x| u32::from(x.is_finite()))),
        (UnaryOp::Not, Data::Bool(x)) => Data::Bool(map(x, |x| u32::from(x == 0))),
        (_, Data::F32(x)) => Data::F32(map(x, |x| x.unary(op))),
        (_, Data::F64(x)) => Data::F64(map(x, |x| x.unary(op))),
        (UnaryOp::Neg, Data::I32(x)) => Data::I32(map(x, i32::wrapping_neg)),
        (UnaryOp::Abs, Data::I32(x)) => Data::I32(map(x, i32::wrapping_abs)),
        (UnaryOp::Sign, Data::I32(x)) => Data::I32(map(x, i32::signum)),
        _ => panic!("invariant: {} of {}", op.name(), x.dtype()),
    }
}

macro_rules! wrapping {
    ($op:expr, $a:expr, $b:expr, $variant:ident) => {
        Data::$variant(zip($a, $b, |a, b| match $op {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::Min => a.min(b),
            _ => panic!("invariant: {} of integers", $op.name()),
        }))
    };
}

pub(super) fn binary(op: BinaryOp, a: &Data, b: &Data) -> Data {
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => Data::F32(zip(a, b, |a, b| a.binary(op, b))),
        (Data::F64(a), Data::F64(b)) => Data::F64(zip(a, b, |a, b| a.binary(op, b))),
        (Data::I32(a), Data::I32(b)) => wrapping!(op, a, b, I32),
        (Data::U32(a), Data::U32(b)) => wrapping!(op, a, b, U32),
        (Data::Bool(a), Data::Bool(b)) => Data::Bool(zip(a, b, |a, b| match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            _ => panic!("invariant: {} of truth values", op.name()),
        })),
        _ => panic!("invariant: {} of {} and {}", op.name(), a.dtype(), b.dtype()),
    }
}

pub(super) fn compare(op: CompareOp, a: &Data, b: &Data) -> Data {
    fn of<T: Copy + PartialOrd>(op: CompareOp, a: &[T], b: &[T]) -> Data {
        Data::Bool(zip(a, b, |a, b| {
            u32::from(match op {
                CompareOp::Eq => a == b,
                CompareOp::Ne => a != b,
                CompareOp::Lt => a < b,
                CompareOp::Le => a <= b,
            })
        }))
    }
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => of(op, a, b),
        (Data::F64(a), Data::F64(b)) => of(op, a, b),
        (Data::I32(a), Data::I32(b)) => of(op, a, b),
        (Data::U32(a), Data::U32(b)) | (Data::Bool(a), Data::Bool(b)) => of(op, a, b),
        _ => panic!("invariant: {} of {} and {}", op.name(), a.dtype(), b.dtype()),
    }
}

pub(super) fn select(p: &Data, a: &Data, b: &Data) -> Data {
    fn of<T: Copy>(p: &[u32], a: &[T], b: &[T]) -> Vec<T> {
        (0..p.len()).map(|i| if p[i] == 0 { b[i] } else { a[i] }).collect()
    }
    match (p, a, b) {
        (Data::Bool(p), Data::F32(a), Data::F32(b)) => Data::F32(of(p, a, b)),
        (Data::Bool(p), Data::F64(a), Data::F64(b)) => Data::F64(of(p, a, b)),
        (Data::Bool(p), Data::I32(a), Data::I32(b)) => Data::I32(of(p, a, b)),
        (Data::Bool(p), Data::U32(a), Data::U32(b)) => Data::U32(of(p, a, b)),
        (Data::Bool(p), Data::Bool(a), Data::Bool(b)) => Data::Bool(of(p, a, b)),
        _ => panic!("invariant: select of {}, {} and {}", p.dtype(), a.dtype(), b.dtype()),
    }
}

pub(super) fn lincomb(coeffs: &[u64], x: &[&Data]) -> Data {
    fn of<T: Float>(coeffs: &[u64], x: &[&Data]) -> Data {
        let x: Vec<&[T]> = x.iter().map(|x| T::slice(x).expect("invariant: operands of one type")).collect();
        T::into_data((0..x[0].len()).map(|i| T::lincomb(coeffs, x.iter().map(|x| x[i]))).collect())
    }
    match x[0].dtype() {
        DType::F32 => of::<f32>(coeffs, x),
        DType::F64 => of::<f64>(coeffs, x),
        other => panic!("invariant: lincomb of {other}"),
    }
}

/// A function computed in f64, rounded once.
pub(super) fn scalar(f: ScalarFn, x: &[&Data]) -> Data {
    let mut out = Data::zeros(x[0].dtype(), x[0].len());
    for i in 0..x[0].len() {
        let operands: Vec<f64> = x.iter().map(|x| x.get_f64(i)).collect();
        out.set_f64(i, f.at(&operands));
    }
    out
}

/// Conversions follow `as`: floats to integers truncate and saturate (NaN gives 0), integers wrap; a
/// conversion to boolean tests whether the number differs from 0, so NaN becomes true.
pub(super) fn cast(x: &Data, to: DType) -> Data {
    macro_rules! cast {
        ($x:expr) => {
            match to {
                DType::F32 => Data::F32(map($x, |x| x as f32)),
                DType::F64 => Data::F64(map($x, |x| x as f64)),
                DType::I32 => Data::I32(map($x, |x| x as i32)),
                DType::U32 => Data::U32(map($x, |x| x as u32)),
                DType::Bool => Data::Bool(map($x, |x| u32::from(x as f64 != 0.0))),
            }
        };
    }
    match x {
        Data::F32(x) => cast!(x),
        Data::F64(x) => cast!(x),
        Data::I32(x) => cast!(x),
        Data::U32(x) | Data::Bool(x) => cast!(x),
    }
}
