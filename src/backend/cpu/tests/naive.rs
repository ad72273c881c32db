//! Evaluates a function in double precision, one element after the other, rounding to each node's type.

use crate::array::{Array, DType, Shape};
use crate::backend::cpu::kernels::philox_block;
use crate::graph::{BinaryOp, CompareOp, Func, Literal, Op, ReduceOp, UnaryOp, erf};

pub(super) fn eval(func: &Func, inputs: &[Array]) -> Vec<Vec<f64>> {
    let mut values: Vec<Vec<f64>> = Vec::new();
    for node in func.nodes() {
        let args: Vec<(&[f64], &Shape)> =
            node.args.iter().map(|a| (values[a.index()].as_slice(), func.node(*a).ty.shape())).collect();
        let (dtype, shape) = (node.ty.dtype(), node.ty.shape());
        let value = match &node.op {
            Op::Input(k) => inputs[*k].to_f64(),
            Op::Const(Literal::Array(a)) => a.to_f64(),
            op => element(op, &args, shape, dtype),
        };
        values.push(value.into_iter().map(|x| round(x, dtype)).collect());
    }
    func.outputs().iter().map(|o| values[o.index()].clone()).collect()
}

fn round(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => (x as f32).into(),
        DType::F64 | DType::Bool => x,
        DType::I32 => (x as i64 as i32).into(),
        DType::U32 => (x as i64 as u32).into(),
    }
}

fn split(mut i: usize, shape: &Shape) -> Vec<usize> {
    let mut at = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        at[axis] = i % shape[axis];
        i /= shape[axis];
    }
    at
}

fn join(at: &[usize], shape: &Shape) -> usize {
    at.iter().zip(shape.iter()).fold(0, |i, (a, len)| i * len + a)
}

type Arg<'a> = (&'a [f64], &'a Shape);

fn element(op: &Op, args: &[Arg], shape: &Shape, dtype: DType) -> Vec<f64> {
    let each = |f: &dyn Fn(usize) -> f64| (0..shape.size()).map(f).collect::<Vec<f64>>();
    match op {
        Op::Const(l) => each(&|_| l.as_splat().unwrap()),
        Op::Iota { axis } => each(&|i| split(i, shape)[*axis] as f64),
        Op::Unary(u) => each(&|i| unary(*u, args[0].0[i])),
        Op::Binary(b) => each(&|i| binary(*b, args[0].0[i], args[1].0[i])),
        Op::Compare(c) => each(&|i| f64::from(u8::from(compare(*c, args[0].0[i], args[1].0[i])))),
        Op::Select => each(&|i| if args[0].0[i] == 0.0 { args[2].0[i] } else { args[1].0[i] }),
        Op::Lincomb { coeffs } => each(&|i| {
            coeffs.iter().zip(args).fold(0.0, |sum, (c, a)| f64::from_bits(*c).mul_add(a.0[i], sum))
        }),
        Op::Cast if dtype == DType::Bool => each(&|i| f64::from(u8::from(args[0].0[i] != 0.0))),
        Op::Cast => each(&|i| args[0].0[i].trunc())
            .into_iter()
            .zip(args[0].0)
            .map(|(t, x)| cast(t, *x, dtype))
            .collect(),
        Op::StopGradient | Op::Reshape => args[0].0.to_vec(),
        Op::Broadcast { dims } => each(&|i| {
            let (x, s) = args[0];
            let at = split(i, shape);
            let from: Vec<usize> =
                dims.iter().zip(s.iter()).map(|(&d, &len)| if len == 1 { 0 } else { at[d] }).collect();
            x[join(&from, s)]
        }),
        Op::Transpose { perm } => each(&|i| {
            let at = split(i, shape);
            let mut from = vec![0; perm.len()];
            perm.iter().enumerate().for_each(|(k, &p)| from[p] = at[k]);
            args[0].0[join(&from, args[0].1)]
        }),
        Op::Slice { start, .. } => each(&|i| {
            let from: Vec<usize> = split(i, shape).iter().zip(start).map(|(a, s)| a + s).collect();
            args[0].0[join(&from, args[0].1)]
        }),
        Op::Pad { lo, .. } => each(&|i| {
            let at: Vec<Option<usize>> = split(i, shape)
                .iter()
                .zip(lo)
                .zip(args[0].1.iter())
                .map(|((a, l), len)| a.checked_sub(*l).filter(|x| x < len))
                .collect();
            at.into_iter().collect::<Option<Vec<_>>>().map_or(0.0, |at| args[0].0[join(&at, args[0].1)])
        }),
        Op::Concat { axis } => each(&|i| {
            let mut at = split(i, shape);
            let k = args.iter().position(|(_, s)| {
                let inside = at[*axis] < s[*axis];
                if !inside {
                    at[*axis] -= s[*axis];
                }
                inside
            });
            let (x, s) = args[k.unwrap()];
            x[join(&at, s)]
        }),
        Op::Reduce { op, axes } => reduce(*op, axes, args[0], shape, dtype),
        _ => indexed(op, args, shape),
    }
}

fn cast(truncated: f64, x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::I32 => (truncated as i32).into(),
        DType::U32 => (truncated as u32).into(),
        _ => x,
    }
}

fn indexed(op: &Op, args: &[Arg], shape: &Shape) -> Vec<f64> {
    let row = |s: &Shape| s[1..].iter().product::<usize>();
    let clamp = |k: f64, s: &Shape| (k.max(0.0) as usize).min(s[0] - 1);
    match op {
        Op::Gather => {
            let ((x, s), (index, _)) = (args[0], args[1]);
            index.iter().flat_map(|&k| x[clamp(k, s) * row(s)..][..row(s)].to_vec()).collect()
        }
        Op::ScatterAdd => {
            let ((x, s), (index, _), (u, _)) = (args[0], args[1], args[2]);
            let mut out = x.to_vec();
            for (i, &k) in index.iter().enumerate() {
                for j in 0..row(s) {
                    out[clamp(k, s) * row(s) + j] += u[i * row(s) + j];
                }
            }
            out
        }
        Op::Dot { ta, tb } => {
            let ((a, sa), (b, sb)) = (args[0], args[1]);
            let rank = shape.rank();
            let k = sa[if *ta { rank - 2 } else { rank - 1 }];
            let element = |x: &[f64], s: &Shape, turned: bool, mut at: Vec<usize>| {
                if turned {
                    at.swap(rank - 2, rank - 1);
                }
                x[join(&at, s)]
            };
            let sum = |i| -> f64 {
                let at = split(i, shape);
                let with = |axis: usize, l: usize| {
                    let mut at = at.clone();
                    at[axis] = l;
                    at
                };
                let left = |l| element(a, sa, *ta, with(rank - 1, l));
                let right = |l| element(b, sb, *tb, with(rank - 2, l));
                (0..k).map(|l| left(l) * right(l)).sum()
            };
            (0..shape.size()).map(sum).collect()
        }
        Op::Conv { .. } | Op::ConvKernel { .. } => convolved(op, args, shape),
        Op::RandomBits { stream } => {
            let key = [args[0].0[0] as u32, args[0].0[1] as u32];
            let start = args[1].0[0] as u64;
            (0..shape.size() as u64)
                .map(|i| {
                    philox_block(key, [((start + i) / 4) as u32, 0, *stream, 0])[((start + i) % 4) as usize]
                        .into()
                })
                .collect()
        }
        other => panic!("no naive {}", other.name()),
    }
}

/// Convolutions: the sum over all places of pictures, kernels and results that meet.
fn convolved(op: &Op, args: &[Arg], shape: &Shape) -> Vec<f64> {
    let ((a, sa), (b, sb)) = (args[0], args[1]);
    let rank = shape.rank();
    let (margins, turned, is_kernel) = match op {
        Op::Conv { margins, turned } => (margins, *turned, false),
        Op::ConvKernel { margins } => (margins, false, true),
        other => panic!("{} is no convolution", other.name()),
    };
    let taps = if is_kernel { shape } else { sb };
    let mut out = vec![0.0; shape.size()];
    for (i, x) in a.iter().enumerate() {
        let place = split(i, sa);
        for j in 0..b.len() {
            let other = split(j, sb);
            if place[..rank - 4] != other[..rank - 4] {
                continue;
            }
            // the tap and the place of the result that meet at this element of the picture
            let to = if is_kernel {
                let tap =
                    [0, 1].map(|d| (place[rank - 3 + d] + margins.lo[d]).wrapping_sub(other[rank - 3 + d]));
                let fits = place[rank - 4] == other[rank - 4] && (0..2).all(|d| tap[d] < taps[rank - 4 + d]);
                let to = [&place[..rank - 4], &tap, &[place[rank - 1], other[rank - 1]]].concat();
                fits.then_some(to)
            } else {
                let at = [0, 1].map(|d| other[rank - 4 + d]);
                let tap = [0, 1].map(|d| if turned { taps[rank - 4 + d] - 1 - at[d] } else { at[d] });
                let (c, o) = if turned { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
                let to = [0, 1].map(|d| (place[rank - 3 + d] + margins.lo[d]).wrapping_sub(tap[d]));
                let fits = place[rank - 1] == other[c] && (0..2).all(|d| to[d] < shape[rank - 3 + d]);
                fits.then(|| [&place[..rank - 3], &to, &[other[o]]].concat())
            };
            if let Some(to) = to {
                out[join(&to, shape)] += x * b[j];
            }
        }
    }
    out
}

fn reduce(op: ReduceOp, axes: &[usize], (x, s): Arg, shape: &Shape, dtype: DType) -> Vec<f64> {
    let start = match op {
        ReduceOp::Max if dtype == DType::I32 => i32::MIN.into(),
        ReduceOp::Min if dtype == DType::I32 => i32::MAX.into(),
        ReduceOp::Sum => 0.0,
        ReduceOp::Max => f64::NEG_INFINITY,
        ReduceOp::Min => f64::INFINITY,
    };
    let mut out = vec![start; shape.size()];
    for (i, &x) in x.iter().enumerate() {
        let at: Vec<usize> =
            split(i, s).into_iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, v)| v).collect();
        let o = &mut out[join(&at, shape)];
        *o = match op {
            ReduceOp::Sum => *o + x,
            ReduceOp::Max => binary(BinaryOp::Max, *o, x),
            ReduceOp::Min => binary(BinaryOp::Min, *o, x),
        };
    }
    out
}

fn unary(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign => {
            if x == 0.0 || x.is_nan() {
                x
            } else {
                x.signum()
            }
        }
        UnaryOp::Floor => x.floor(),
        UnaryOp::Exp => x.exp(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Ln => x.ln(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Erf => erf(x),
        UnaryOp::Powf(p) => x.powf(f64::from_bits(p)),
        UnaryOp::Not => 1.0 - x,
        UnaryOp::IsFinite => f64::from(u8::from(x.is_finite())),
    }
}

fn binary(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Max if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Min if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Max => a.max(b),
        BinaryOp::Min => a.min(b),
        BinaryOp::And => a * b,
        BinaryOp::Or => a.max(b),
    }
}

fn compare(op: CompareOp, a: f64, b: f64) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
    }
}
