//! Operations along the last axis: the reference for the kernels.

use crate::array::{Array, Data};
use crate::graph::LineOp;

macro_rules! cumulative {
    ($x:expr, $n:expr, $reverse:expr, $add:expr) => {{
        let mut out = $x.to_vec();
        for line in out.chunks_exact_mut($n) {
            if $reverse {
                line.reverse();
            }
            (1..line.len()).for_each(|i| line[i] = $add(line[i - 1], line[i]));
            if $reverse {
                line.reverse();
            }
        }
        out
    }};
}

pub(super) fn lines(op: LineOp, x: &Array) -> Data {
    let n = *x.shape().last().expect("invariant: a line has an axis");
    if n == 0 || x.shape().size() == 0 {
        return Data::zeros(if op == LineOp::Argsort { crate::array::DType::I32 } else { x.dtype() }, 0);
    }
    match (op, x.data()) {
        (LineOp::CumSum { reverse }, Data::F32(x)) => Data::F32(cumulative!(x, n, reverse, |a, b| a + b)),
        (LineOp::CumSum { reverse }, Data::F64(x)) => Data::F64(cumulative!(x, n, reverse, |a, b| a + b)),
        (LineOp::CumSum { reverse }, Data::I32(x)) => {
            Data::I32(cumulative!(x, n, reverse, i32::wrapping_add))
        }
        (LineOp::CumSum { reverse }, Data::U32(x)) => {
            Data::U32(cumulative!(x, n, reverse, u32::wrapping_add))
        }
        (LineOp::CumMax, Data::F32(x)) => {
            Data::F32(cumulative!(x, n, false, |a: f32, b| if b > a || f32::is_nan(b) && !a.is_nan() {
                b
            } else {
                a
            }))
        }
        (LineOp::CumMax, Data::F64(x)) => {
            Data::F64(cumulative!(x, n, false, |a: f64, b| if b > a || f64::is_nan(b) && !a.is_nan() {
                b
            } else {
                a
            }))
        }
        (LineOp::CumMax, Data::I32(x)) => Data::I32(cumulative!(x, n, false, std::cmp::max)),
        (LineOp::CumMax, Data::U32(x)) => Data::U32(cumulative!(x, n, false, std::cmp::max)),
        (LineOp::Argsort, x) => Data::I32(
            (0..x.len() / n)
                .flat_map(|line| {
                    let at = |i: i32| x.get_f64(line * n + i as usize);
                    let mut order: Vec<i32> = (0..n as i32).collect();
                    // All types are exact in f64; stable.
                    order.sort_by(|&i, &j| {
                        let (a, b) = (at(i), at(j));
                        a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                    });
                    order
                })
                .collect(),
        ),
        (op, x) => panic!("invariant: {} of {}", op.name(), x.dtype()),
    }
}
