//! A slow evaluator for tests, one element at a time.

use crate::array::{Array, Shape};
use crate::graph::*;

#[derive(Clone)]
enum Value {
    Array(Array),
    Schedule { knots: Vec<f64>, reached: bool },
    Opaque,
    Tuple(Vec<Value>),
}

impl Value {
    fn array(&self) -> &Array {
        match self {
            Value::Array(a) => a,
            _ => panic!("no array"),
        }
    }
}

fn make(ty: &Type, mut f: impl FnMut(usize) -> f64) -> Array {
    let mut a = Array::zeros(ty.dtype(), ty.shape().clone());
    for i in 0..a.data().len() {
        let x = f(i);
        a.data_mut().set_f64(i, x);
    }
    a
}

fn unravel(mut i: usize, shape: &Shape) -> Vec<usize> {
    let mut at = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        at[axis] = i % shape[axis];
        i /= shape[axis];
    }
    at
}

fn ravel(at: &[usize], shape: &Shape) -> usize {
    at.iter().zip(shape.iter()).fold(0, |i, (a, n)| i * n + a)
}

/// Outputs of a function whose outputs are arrays.
pub(crate) fn eval(f: &Func, inputs: &[Array]) -> Vec<Array> {
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Array).collect();
    run(f, &inputs).iter().map(|v| v.array().clone()).collect()
}

fn run(f: &Func, inputs: &[Value]) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for node in f.nodes() {
        let args: Vec<Value> = node.args.iter().map(|a| values[a.index()].clone()).collect();
        let v = match &node.op {
            Op::Input(k) => inputs[*k].clone(),
            Op::Proj(k) => match &args[0] {
                Value::Tuple(v) => v[*k].clone(),
                _ => panic!("no tuple"),
            },
            Op::Solve(s) => solve(s, &args),
            Op::Scan(s) => scan(s, &args),
            Op::Rev(r) => rev(r, &args),
            Op::Tiles(t) => tiles(t, &args),
            op => {
                let args: Vec<&Array> = args.iter().map(Value::array).collect();
                Value::Array(array_op(op, &args, &node.ty))
            }
        };
        values.push(v);
    }
    f.outputs().iter().map(|o| values[o.index()].clone()).collect()
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
        UnaryOp::Powf(p) => x.powf(f64::from_bits(p)),
        UnaryOp::Not => 1.0 - x,
        UnaryOp::IsFinite => f64::from(x.is_finite()),
    }
}

fn binary(op: BinaryOp, x: f64, y: f64) -> f64 {
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Max | BinaryOp::Min if x.is_nan() || y.is_nan() => f64::NAN,
        BinaryOp::Max | BinaryOp::Or => x.max(y),
        BinaryOp::Min | BinaryOp::And => x.min(y),
    }
}

fn array_op(op: &Op, x: &[&Array], ty: &Type) -> Array {
    let at = |k: usize, i: usize| x[k].data().get_f64(i);
    let shape = ty.shape();
    match op {
        Op::Const(Literal::Array(a)) => (**a).clone(),
        Op::Const(l) => make(ty, |_| l.as_splat().unwrap()),
        Op::Iota { axis } => make(ty, |i| unravel(i, shape)[*axis] as f64),
        Op::Unary(op) => make(ty, |i| unary(*op, at(0, i))),
        Op::Binary(op) => make(ty, |i| binary(*op, at(0, i), at(1, i))),
        Op::Compare(op) => make(ty, |i| {
            let (x, y) = (at(0, i), at(1, i));
            f64::from(match op {
                CompareOp::Eq => x == y,
                CompareOp::Ne => x != y,
                CompareOp::Lt => x < y,
                CompareOp::Le => x <= y,
            })
        }),
        Op::Select => make(ty, |i| if at(0, i) == 0.0 { at(2, i) } else { at(1, i) }),
        Op::Lincomb { coeffs } => make(ty, |i| {
            coeffs.iter().enumerate().fold(0.0, |s, (k, c)| f64::from_bits(*c).mul_add(at(k, i), s))
        }),
        Op::Cast | Op::StopGradient | Op::Reshape => make(ty, |i| at(0, i)),
        Op::Gather => {
            let row: usize = x[0].shape()[1..].iter().product();
            make(ty, |i| at(0, clamp(at(1, i / row), x[0].shape()[0]) * row + i % row))
        }
        Op::ScatterAdd => {
            let row: usize = x[0].shape()[1..].iter().product();
            let mut out = x[0].clone();
            for i in 0..x[2].data().len() {
                let to = clamp(at(1, i / row), x[0].shape()[0]) * row + i % row;
                let sum = out.data().get_f64(to) + at(2, i);
                out.data_mut().set_f64(to, sum);
            }
            out
        }
        Op::Dot { ta, tb } => {
            let (s, t) = (x[0].shape(), x[1].shape());
            let inner = if *ta { s[0] } else { s[1] };
            make(ty, |i| {
                let (m, n) = (i / shape[1], i % shape[1]);
                let a = |k: usize| at(0, if *ta { k * s[1] + m } else { m * s[1] + k });
                let b = |k: usize| at(1, if *tb { n * t[1] + k } else { k * t[1] + n });
                (0..inner).map(|k| a(k) * b(k)).sum()
            })
        }
        Op::RandomBits { stream } => make(ty, |i| {
            (at(0, 0) * 31.0 + at(0, 1) * 17.0 + at(1, 0) + i as f64 + f64::from(*stream)) % 4096.0
        }),
        Op::Reduce { op, axes } => reduce(*op, axes, x[0], ty),
        _ => moved(op, x, ty),
    }
}

fn clamp(i: f64, n: usize) -> usize {
    i.clamp(0.0, (n - 1) as f64) as usize
}

fn reduce(op: ReduceOp, axes: &[usize], x: &Array, ty: &Type) -> Array {
    let start = match op {
        ReduceOp::Sum => 0.0,
        ReduceOp::Max => f64::NEG_INFINITY,
        ReduceOp::Min => f64::INFINITY,
    };
    let mut out = make(ty, |_| start);
    for i in 0..x.data().len() {
        let mut to = unravel(i, x.shape());
        for &a in axes.iter().rev() {
            to.remove(a);
        }
        let to = ravel(&to, ty.shape());
        let (s, v) = (out.data().get_f64(to), x.data().get_f64(i));
        let r = match op {
            ReduceOp::Sum => s + v,
            ReduceOp::Max => binary(BinaryOp::Max, s, v),
            ReduceOp::Min => binary(BinaryOp::Min, s, v),
        };
        out.data_mut().set_f64(to, r);
    }
    out
}

fn moved(op: &Op, x: &[&Array], ty: &Type) -> Array {
    let shape = ty.shape();
    let from = x[0].shape();
    let get = |to: &[usize]| x[0].data().get_f64(ravel(to, from));
    match op {
        Op::Broadcast { dims } => make(ty, |i| {
            let to = unravel(i, shape);
            let at: Vec<usize> =
                dims.iter().enumerate().map(|(k, &d)| if from[k] == 1 { 0 } else { to[d] }).collect();
            get(&at)
        }),
        Op::Transpose { perm } => make(ty, |i| {
            let to = unravel(i, shape);
            let mut at = vec![0; perm.len()];
            perm.iter().enumerate().for_each(|(k, &p)| at[p] = to[k]);
            get(&at)
        }),
        Op::Slice { start, .. } => make(ty, |i| {
            let at: Vec<usize> = unravel(i, shape).iter().zip(start).map(|(a, s)| a + s).collect();
            get(&at)
        }),
        Op::Pad { lo, .. } => make(ty, |i| {
            let to = unravel(i, shape);
            let inside = (0..to.len()).all(|k| to[k] >= lo[k] && to[k] - lo[k] < from[k]);
            if !inside {
                return 0.0;
            }
            get(&to.iter().zip(lo).map(|(a, l)| a - l).collect::<Vec<_>>())
        }),
        Op::Concat { axis } => make(ty, |i| {
            let mut to = unravel(i, shape);
            let mut k = 0;
            while to[*axis] >= x[k].shape()[*axis] {
                to[*axis] -= x[k].shape()[*axis];
                k += 1;
            }
            x[k].data().get_f64(ravel(&to, x[k].shape()))
        }),
        other => panic!("{} is no array op", other.name()),
    }
}

fn scalar(x: f64) -> Value {
    Value::Array(Array::scalar(crate::array::DType::F64, x))
}

fn flag(x: bool) -> Value {
    Value::Array(Array::scalar(crate::array::DType::Bool, f64::from(x)))
}

fn solve(s: &Solve, x: &[Value]) -> Value {
    let body = s.num_carry + s.num_ext;
    let (mut knot, mut state, captures) = (x[1].clone(), x[2..2 + body].to_vec(), &x[2 + body..]);
    let mut knots = vec![knot.array().data().get_f64(0)];
    for _ in 0..10_000 {
        let out = run(&s.attempt, &[&[knot], &state[..], captures].concat());
        let is = |k: usize| out[k].array().data().get_f64(0) != 0.0;
        knot = out[3].clone();
        state = out[4..].to_vec();
        if is(0) {
            knots.push(knot.array().data().get_f64(0));
        }
        if !is(1) {
            state.extend([Value::Schedule { knots, reached: is(2) }, Value::Opaque]);
            return Value::Tuple(state);
        }
    }
    panic!("the search does not end")
}

/// first, last, t, t_next of each trip.
fn trips(schedule: &Value) -> Vec<[Value; 4]> {
    let Value::Schedule { knots, reached } = schedule else { panic!("no schedule") };
    let n = knots.len() - 1;
    let last = |k: usize| flag(k + 1 == n && *reached);
    (0..n).map(|k| [flag(k == 0), last(k), scalar(knots[k]), scalar(knots[k + 1])]).collect()
}

fn scan(s: &Scan, x: &[Value]) -> Value {
    let (mut carry, captures) = (x[1..=s.num_carry].to_vec(), &x[1 + s.num_carry..]);
    for trip in trips(&x[0]) {
        carry = run(&s.step, &[&trip[..], &carry[..], captures].concat());
    }
    carry.push(Value::Opaque);
    Value::Tuple(carry)
}

fn rev(r: &Rev, x: &[Value]) -> Value {
    let mut states = vec![x[2..2 + r.num_carry].to_vec()];
    let (captures, ct) = x[2 + r.num_carry..].split_at(r.num_captures());
    let trips = trips(&x[0]);
    for trip in &trips {
        let next = run(&r.step, &[&trip[..], states.last().unwrap(), captures].concat());
        states.push(next);
    }
    let mut ct = ct.to_vec();
    assert_eq!(ct.len(), r.num_ct);
    let zero = |k: usize| make(r.bwd.output_type(k), |_| 0.0);
    let mut sums: Vec<Array> = (r.num_ct..r.bwd.num_outputs()).map(zero).collect();
    for (trip, state) in trips.iter().zip(&states).rev() {
        let mut out = run(&r.bwd, &[&trip[..], state, captures, &ct].concat());
        for (s, v) in sums.iter_mut().zip(out.split_off(r.num_ct)) {
            add(s, v.array());
        }
        ct = out;
    }
    ct.extend(sums.into_iter().map(Value::Array));
    Value::Tuple(ct)
}

fn add(s: &mut Array, v: &Array) {
    for i in 0..v.data().len() {
        let sum = s.data().get_f64(i) + v.data().get_f64(i);
        s.data_mut().set_f64(i, sum);
    }
}

fn tiles(t: &Tiles, x: &[Value]) -> Value {
    let mut out: Vec<Array> = (0..t.outs.len()).map(|k| make(&t.out_type(k), |_| 0.0)).collect();
    for tile in 0..t.num_tiles() {
        let first = tile * t.tile;
        let rows = t.tile.min(t.rows - first);
        let cut = |v: &Value| {
            let a = v.array();
            let width = a.data().len() / t.rows;
            let ty = Type::array(a.dtype(), a.shape().with_axis(0, rows));
            Value::Array(make(&ty, |i| a.data().get_f64(first * width + i)))
        };
        let mut args = vec![Value::Array(Array::scalar(crate::array::DType::U32, first as f64))];
        args.extend(x[..t.num_rowed].iter().map(cut));
        args.extend(x[t.num_rowed..].iter().cloned());
        let body = if rows == t.tile { &t.body } else { t.tail.as_ref().expect("a tail") };
        for (k, v) in run(body, &args).iter().enumerate() {
            match t.outs[k] {
                TileOut::Sum => add(&mut out[k], v.array()),
                TileOut::Rows => {
                    let width = out[k].data().len() / t.rows;
                    for i in 0..v.array().data().len() {
                        out[k].data_mut().set_f64(first * width + i, v.array().data().get_f64(i));
                    }
                }
            }
        }
    }
    Value::Tuple(out.into_iter().map(Value::Array).collect())
}
