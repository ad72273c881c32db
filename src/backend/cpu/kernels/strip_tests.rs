//! Strip kernels against naive versions: each operation, element type and level, odd lengths, unaligned
//! starts, in place, and NaN.

use super::{Arith, Elem, StripFn, StripOp, cast, strip};
use crate::graph::{FloatFn, erf, softplus};
use crate::simd::Level;

const IMM: [f64; 2] = [1.5, -0.75];
const LENGTHS: [usize; 9] = [0, 1, 3, 7, 8, 15, 17, 33, 300];

/// Small deterministic data (splitmix64) in `[-4, 4)`, with repeats so that equal values occur.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..n).map(|_| (next() >> 52) as f64 / 512.0 - 4.0).collect()
}

/// An element as stored in memory, with its exact value in f64.
trait Stored: Copy + Default {
    const ELEM: Elem;
    fn make(x: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! stored {
    ($($t:ident $elem:ident |$x:ident| $make:expr;)*) => {$(
        impl Stored for $t {
            const ELEM: Elem = Elem::$elem;
            fn make($x: f64) -> Self {
                $make
            }
            fn value(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}

stored! {
    f32 F32 |x| x as f32;
    f64 F64 |x| x;
    i32 I32 |x| x.floor() as i32;
    u32 U32 |x| (x.floor() as i32) as u32;
}

/// `x` one element after the start of a buffer, so that the address is not a multiple of a vector.
fn shifted<T: Stored>(x: &[f64]) -> Vec<T> {
    std::iter::once(T::default()).chain(x.iter().map(|&x| T::make(x))).collect()
}

/// Runs a kernel on `A -> D` with operand `a` of type `A` and `b`, `c` of type `B`.
fn run<A: Stored, B: Stored, D: Stored>(f: StripFn, a: &[f64], b: &[f64], c: &[f64]) -> Vec<D> {
    let (a_buf, b_buf, c_buf) = (shifted::<A>(a), shifted::<B>(b), shifted::<B>(c));
    let mut dst = shifted::<D>(&vec![77.0; a.len() + 1]);
    // SAFETY: the buffers hold the lengths given, and the tests force available levels only.
    unsafe {
        f(
            dst.as_mut_ptr().add(1).cast(),
            a_buf.as_ptr().add(1).cast(),
            b_buf.as_ptr().add(1).cast(),
            c_buf.as_ptr().add(1).cast(),
            IMM,
            a.len(),
        );
    }
    assert_eq!(dst.pop().unwrap().value(), 77.0, "wrote past the end");
    assert_eq!(dst[0].value(), 0.0, "wrote before the start");
    dst.split_off(1)
}

fn close(got: f64, want: f64, epsilon: f64) -> bool {
    got.to_bits() == want.to_bits()
        || (got.is_nan() && want.is_nan())
        || (got - want).abs() <= 4.0 * epsilon * want.abs().max(16.0)
}

type Twin = fn(f64, f64, f64) -> f64;

/// Operations on floats, without the functions of the table.
const OTHERS: [(StripOp, Twin); 17] = [
    (StripOp::Copy, |a, _, _| a),
    (StripOp::Add, |a, b, _| a + b),
    (StripOp::Sub, |a, b, _| a - b),
    (StripOp::Mul, |a, b, _| a * b),
    (StripOp::Div, |a, b, _| a / b),
    (StripOp::Max, |a, b, _| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }),
    (StripOp::Min, |a, b, _| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }),
    (StripOp::Neg, |a, _, _| -a),
    (StripOp::Abs, |a, _, _| a.abs()),
    (StripOp::Sign, |a, _, _| if a == 0.0 { a } else { a.signum() }),
    (StripOp::Square, |a, _, _| a * a),
    (StripOp::Recip, |a, _, _| 1.0 / a),
    (StripOp::Powf, |a, _, _| a.powf(IMM[0])),
    (StripOp::Scale, |a, _, _| a * IMM[0]),
    (StripOp::AddImm, |a, _, _| a + IMM[0]),
    (StripOp::Axpy, |a, b, _| a * IMM[0] + b),
    (StripOp::Axpy2, |a, b, c| a * IMM[0] + b * IMM[1] + c),
];

/// The function that a kernel is compared with. It is exhaustive, so that no function is left out.
fn twin(f: FloatFn) -> Twin {
    match f {
        FloatFn::Floor => |a, _, _| a.floor(),
        FloatFn::Sqrt => |a, _, _| a.sqrt(),
        FloatFn::Exp => |a, _, _| a.exp(),
        FloatFn::Ln => |a, _, _| a.ln(),
        FloatFn::Expm1 => |a, _, _| a.exp_m1(),
        FloatFn::Log1p => |a, _, _| a.ln_1p(),
        FloatFn::Atan => |a, _, _| a.atan(),
        FloatFn::Tanh => |a, _, _| a.tanh(),
        FloatFn::Sigmoid => |a, _, _| 1.0 / (1.0 + (-a).exp()),
        FloatFn::Softplus => |a, _, _| softplus(a),
        FloatFn::Erf => |a, _, _| erf(a),
        FloatFn::Sin => |a, _, _| a.sin(),
        FloatFn::Cos => |a, _, _| a.cos(),
    }
}

fn float_ops() -> impl Iterator<Item = (StripOp, Twin)> {
    OTHERS.into_iter().chain(FloatFn::ALL.iter().map(|&f| (StripOp::Float(f), twin(f))))
}

fn float_ops_equal_twins<T: Stored>(epsilon: f64) {
    for (op, twin) in float_ops() {
        for level in Level::available() {
            let f = strip(level, op, T::ELEM);
            for n in LENGTHS {
                let (mut a, mut b, c) = (noise(1, n), noise(2, n), noise(3, n));
                for (i, edge) in [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY].into_iter().enumerate() {
                    if n > 30 {
                        (a[i], b[i + 5]) = (edge, edge);
                    }
                }
                let got = run::<T, T, T>(f, &a, &b, &c);
                for i in 0..n {
                    let want = T::make(twin(a[i], b[i], c[i])).value();
                    let got = got[i].value();
                    assert!(
                        close(got, want, epsilon),
                        "{level:?} {op:?} {} {} {}: got {got}, expected {want}",
                        a[i],
                        b[i],
                        c[i]
                    );
                }
            }
        }
    }
}

#[test]
fn float_operations_equal_their_twins() {
    float_ops_equal_twins::<f32>(f64::from(f32::EPSILON));
    float_ops_equal_twins::<f64>(f64::EPSILON);
}

/// If `dst` is the operand at any position, the result is bitwise equal to that with a separate `dst`.
fn in_place<T: Stored>(op: StripOp) {
    for level in Level::available() {
        let f = strip(level, op, T::ELEM);
        let (a, b, c) = (noise(4, 77), noise(5, 77), noise(6, 77));
        let want: Vec<u64> = run::<T, T, T>(f, &a, &b, &c).iter().map(|x| x.value().to_bits()).collect();
        for position in 0..3 {
            let mut bufs = [shifted::<T>(&a), shifted::<T>(&b), shifted::<T>(&c)];
            let dst = bufs[position].as_mut_ptr();
            let [pa, pb, pc] =
                [0, 1, 2].map(|i| if i == position { dst.cast_const() } else { bufs[i].as_ptr() });
            // SAFETY: each buffer holds 78 elements; `dst` is one of the operands.
            unsafe {
                f(dst.add(1).cast(), pa.add(1).cast(), pb.add(1).cast(), pc.add(1).cast(), IMM, 77);
            }
            let got: Vec<u64> = bufs[position][1..].iter().map(|x| x.value().to_bits()).collect();
            assert_eq!(got, want, "{level:?} {op:?} in place of operand {position}");
        }
    }
}

#[test]
fn operations_work_in_place_of_each_operand() {
    for (op, _) in float_ops() {
        in_place::<f32>(op);
        in_place::<f64>(op);
    }
    for op in [StripOp::Add, StripOp::Sub, StripOp::Mul, StripOp::Max, StripOp::Lt, StripOp::Select] {
        in_place::<i32>(op);
        in_place::<u32>(op);
    }
}

fn compares<T: Stored>() {
    let ops: [(StripOp, fn(&f64, &f64) -> bool); 5] = [
        (StripOp::Eq, f64::eq),
        (StripOp::Ne, f64::ne),
        (StripOp::Lt, f64::lt),
        (StripOp::Le, f64::le),
        (StripOp::IsFinite, |a, _| a.is_finite()),
    ];
    let float = matches!(T::ELEM, Elem::F32 | Elem::F64);
    for (op, twin) in ops.into_iter().filter(|(op, _)| float || *op != StripOp::IsFinite) {
        for level in Level::available() {
            for n in LENGTHS {
                let (mut a, b) = (noise(7, n), noise(8, n).iter().map(|x| x.floor()).collect::<Vec<_>>());
                for i in (0..n).step_by(3) {
                    a[i] = b[i];
                }
                if float && n > 3 {
                    (a[1], a[2]) = (f64::NAN, f64::INFINITY);
                }
                let got = run::<T, T, u32>(strip(level, op, T::ELEM), &a, &b, &b);
                let want: Vec<u32> =
                    (0..n).map(|i| u32::from(twin(&T::make(a[i]).value(), &T::make(b[i]).value()))).collect();
                assert_eq!(got, want, "{level:?} {op:?} {:?}", T::ELEM);
            }
        }
    }
}

#[test]
fn comparisons_give_words_of_0_and_1() {
    compares::<f32>();
    compares::<f64>();
    compares::<i32>();
    compares::<u32>();
}

fn selects<T: Stored>() {
    for level in Level::available() {
        for n in LENGTHS {
            let words: Vec<f64> = noise(9, n).iter().map(|x| x.rem_euclid(3.0).floor()).collect();
            let (b, c) = (noise(10, n), noise(11, n));
            let got = run::<u32, T, T>(strip(level, StripOp::Select, T::ELEM), &words, &b, &c);
            for i in 0..n {
                let want = T::make(if words[i] == 0.0 { c[i] } else { b[i] });
                assert_eq!(got[i].value(), want.value(), "{level:?} {:?}", T::ELEM);
            }
        }
    }
}

#[test]
fn select_takes_b_where_the_word_is_not_0() {
    selects::<f32>();
    selects::<f64>();
    selects::<i32>();
    selects::<u32>();
}

/// Integer operations against `twin`, on words that use all bits.
fn int_case(op: StripOp, elem: Elem, twin: fn(u32, u32) -> u32) {
    for level in Level::available() {
        let words = |seed| -> Vec<u32> {
            noise(seed, 200)
                .iter()
                .map(|x| (x * 1e9) as i64 as u32)
                .chain([0, 1, u32::MAX, 1 << 31])
                .collect()
        };
        let (a, mut b) = (words(12), words(13));
        b[5..20].copy_from_slice(&a[5..20]);
        let mut dst = vec![0u32; a.len()];
        let f = strip(level, op, elem);
        let (pa, pb) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: the buffers have the same length.
        unsafe { f(dst.as_mut_ptr().cast(), pa, pb, std::ptr::null(), [3.0, 0.0], a.len()) };
        for i in 0..a.len() {
            assert_eq!(dst[i], twin(a[i], b[i]), "{level:?} {op:?} {elem:?} {} {}", a[i], b[i]);
        }
    }
}

#[test]
fn integer_operations_wrap_and_respect_sign() {
    for elem in [Elem::I32, Elem::U32] {
        int_case(StripOp::Add, elem, u32::wrapping_add);
        int_case(StripOp::Sub, elem, u32::wrapping_sub);
        int_case(StripOp::Mul, elem, u32::wrapping_mul);
        int_case(StripOp::Eq, elem, |a, b| u32::from(a == b));
    }
    int_case(StripOp::Max, Elem::U32, u32::max);
    int_case(StripOp::Min, Elem::U32, u32::min);
    int_case(StripOp::Lt, Elem::U32, |a, b| u32::from(a < b));
    int_case(StripOp::Le, Elem::U32, |a, b| u32::from(a <= b));
    int_case(StripOp::Max, Elem::I32, |a, b| (a as i32).max(b as i32) as u32);
    int_case(StripOp::Min, Elem::I32, |a, b| (a as i32).min(b as i32) as u32);
    int_case(StripOp::Lt, Elem::I32, |a, b| u32::from((a as i32) < (b as i32)));
    int_case(StripOp::Le, Elem::I32, |a, b| u32::from((a as i32) <= (b as i32)));
    int_case(StripOp::Neg, Elem::I32, |a, _| a.wrapping_neg());
    int_case(StripOp::Abs, Elem::I32, |a, _| (a as i32).wrapping_abs() as u32);
    int_case(StripOp::Sign, Elem::I32, |a, _| (a as i32).signum() as u32);
    int_case(StripOp::And, Elem::U32, |a, b| a & b);
    int_case(StripOp::Or, Elem::U32, |a, b| a | b);
    int_case(StripOp::Not, Elem::U32, |a, _| u32::from(a == 0));
}

fn casts<A: Stored, B: Stored>(twin: fn(A) -> B) {
    for level in Level::available() {
        for n in LENGTHS {
            let mut x: Vec<f64> = noise(14, n).iter().map(|x| x * 1e9).collect();
            if n > 4 && matches!(A::ELEM, Elem::F32 | Elem::F64) {
                x[2..4].copy_from_slice(&[f64::NAN, 1e30]);
            }
            let got = run::<A, A, B>(cast(level, A::ELEM, B::ELEM), &x, &x, &x);
            for i in 0..n {
                let want = twin(A::make(x[i])).value();
                assert!(
                    close(got[i].value(), want, 0.0),
                    "{level:?} {:?} to {:?}: {}",
                    A::ELEM,
                    B::ELEM,
                    x[i]
                );
            }
        }
    }
}

#[test]
fn casts_are_those_of_rust() {
    casts::<f32, f64>(f64::from);
    casts::<f32, i32>(|x| x as i32);
    casts::<f32, u32>(|x| x as u32);
    casts::<f64, f32>(|x| x as f32);
    casts::<f64, i32>(|x| x as i32);
    casts::<f64, u32>(|x| x as u32);
    casts::<i32, f32>(|x| x as f32);
    casts::<i32, f64>(f64::from);
    casts::<u32, f32>(|x| x as f32);
    casts::<u32, f64>(f64::from);
    casts::<i32, u32>(|x| x as u32);
    casts::<f64, f64>(|x| x);
}

#[test]
#[should_panic(expected = "invariant:")]
fn a_pair_without_a_kernel_is_an_invariant() {
    strip(Level::Portable, StripOp::Float(FloatFn::Exp), Elem::I32);
}

/// The result of a merged instruction is bitwise equal to that of its two parts in sequence.
fn chains_have_the_bits_of_their_parts<T: Stored>() {
    let values = |x: Vec<T>| x.into_iter().map(T::value).collect::<Vec<_>>();
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let parts = [(Arith::Add, StripOp::Add), (Arith::Sub, StripOp::Sub), (Arith::Mul, StripOp::Mul)];
    for level in Level::available() {
        for n in LENGTHS {
            // Numbers of this type, so that the conversion does not round.
            let [a, b, c] = [1, 2, 3].map(|seed| values(shifted::<T>(&noise(seed, n)).split_off(1)));
            let of = |op, a: &[f64], b: &[f64], c: &[f64]| {
                values(run::<T, T, T>(strip(level, op, T::ELEM), a, b, c))
            };
            for (first, op) in parts {
                let inner = of(op, &a, &b, &c);
                let from = (Arith::SubFrom, of(StripOp::Sub, &c, &inner, &c));
                let others = parts.map(|(second, op)| (second, of(op, &inner, &c, &c)));
                for (second, want) in others.into_iter().chain([from]) {
                    let got = of(StripOp::Then(first, second), &a, &b, &c);
                    assert_eq!(bits(&got), bits(&want), "{level:?} {first:?} {second:?}");
                }
            }
            let number = vec![T::make(IMM[0]).value(); n];
            let falls = of(StripOp::Sub, &number, &of(StripOp::Square, &a, &b, &c), &c);
            assert_eq!(bits(&of(StripOp::SubSquare, &a, &b, &c)), bits(&falls), "{level:?}");
            let gate = of(StripOp::Mul, &b, &falls, &c);
            assert_eq!(bits(&of(StripOp::Gate, &a, &b, &c)), bits(&gate), "{level:?}");
        }
    }
}

#[test]
fn chains_of_floats_have_the_bits_of_their_parts() {
    chains_have_the_bits_of_their_parts::<f32>();
    chains_have_the_bits_of_their_parts::<f64>();
}
