//! Error bounds of a plan relative to the interpreter, per element, by running error analysis.
//!
//! A function is interpreted node by node. Each element of a value has a radius: the first-order bound on its
//! distance from the same element of a plan, whose kernels round differently (functions by up to 8 ulp, sums
//! in other orders). Results that are exact in IEEE arithmetic have radius 0, so a plan must give the same
//! bits. After cancellation, the radius depends on the size of the terms. A tolerance for the whole array,
//! relative to its largest element, would accept a kernel that returns zeros for small elements.

mod factors;
mod systems;

use crate::array::{Array, DType, Data};
use crate::graph::{
    BinaryOp, Builder, CompareOp, FactorOp, Func, LineOp, Node, Op, ReduceOp, ScalarFn, ScatterOp, Type,
    UnaryOp, interpret,
};

/// A value and the radius of each of its elements.
pub(super) struct Ball {
    pub value: Array,
    pub radius: Vec<f64>,
}

impl Ball {
    fn exact(value: Array) -> Ball {
        let radius = vec![0.0; value.data().len()];
        Ball { value, radius }
    }

    /// Whether `got` is within the radius of element `i`.
    pub fn holds(&self, i: usize, got: f64) -> bool {
        let want = self.value.data().get_f64(i);
        got == want
            || got.is_nan() && want.is_nan()
            || (got - want).abs() <= self.radius[i]
            || self.radius[i].is_infinite()
    }

    fn is_exact(&self) -> bool {
        self.radius.iter().all(|&r| r == 0.0)
    }

    /// The radii as an array with the value's shape.
    fn radii(&self) -> Array {
        Array::from_vec(self.value.shape().clone(), self.radius.clone())
    }

    /// Absolute values in f64.
    fn sizes(&self) -> Array {
        let sizes = self.value.to_f64().into_iter().map(f64::abs).collect();
        Array::from_vec::<f64>(self.value.shape().clone(), sizes)
    }
}

/// The maximum number of terms whose roundings add up, because sums are computed in blocks and lanes.
const TERMS: usize = 64;

/// The outputs of a function without loops.
pub(super) fn outputs(func: &Func, inputs: &[Array]) -> Vec<Ball> {
    let mut balls: Vec<Ball> = Vec::new();
    for node in func.nodes() {
        let args: Vec<&Ball> = node.args.iter().map(|a| &balls[a.index()]).collect();
        let ball = match &node.op {
            Op::Input(k) => Ball::exact(inputs[*k].clone()),
            _ => ball(node, &args),
        };
        balls.push(ball);
    }
    let copy = |k: usize| Ball { value: balls[k].value.clone(), radius: balls[k].radius.clone() };
    func.outputs().iter().map(|o| copy(o.index())).collect()
}

/// Interprets one operation.
fn apply(op: &Op, args: &[&Array], ty: &Type) -> Array {
    let types: Vec<Type> = args.iter().map(|a| Type::array(a.dtype(), a.shape().clone())).collect();
    let (mut b, ids) = Builder::with_inputs(&types);
    let y = b.push(op.clone(), &ids, Some(ty));
    let args: Vec<Array> = args.iter().map(|&a| a.clone()).collect();
    interpret(&b.finish(&[y]), &args).expect("it is well formed").remove(0)
}

/// The same operation on f64 numbers, such as radii.
fn in_f64(node: &Node, args: &[&Array]) -> Vec<f64> {
    apply(&node.op, args, &Type::array(DType::F64, node.ty.shape().clone())).to_f64()
}

fn ball(node: &Node, x: &[&Ball]) -> Ball {
    let values: Vec<&Array> = x.iter().map(|b| &b.value).collect();
    let value = apply(&node.op, &values, &node.ty);
    let (unit, least) = match node.ty.dtype() {
        DType::F32 => (f64::from(f32::EPSILON) / 2.0, f64::from(f32::MIN_POSITIVE)),
        DType::F64 => (f64::EPSILON / 2.0, f64::MIN_POSITIVE),
        _ => (0.0, 0.0),
    };
    let mut radius = radii(node, x, &value, unit);
    for (r, y) in radius.iter_mut().zip(value.to_f64()) {
        // A result computed from infinities may have any value, and a subnormal number may be zero.
        if r.is_nan() {
            *r = f64::INFINITY;
        } else if *r > 0.0 || y != 0.0 && y.abs() < least {
            *r += least;
        }
    }
    Ball { value, radius }
}

fn radii(node: &Node, x: &[&Ball], value: &Array, unit: f64) -> Vec<f64> {
    match &node.op {
        Op::Const(_) | Op::Iota { .. } | Op::RandomBits { .. } => vec![0.0; value.data().len()],
        Op::StopGradient
        | Op::Reshape
        | Op::Broadcast { .. }
        | Op::Transpose { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Concat { .. }
        | Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, .. } => largest(node, x),
        Op::Gather => {
            assert!(x[1].is_exact(), "indices of taken rows must be exact");
            in_f64(node, &[&x[0].radii(), &x[1].value])
        }
        Op::Scatter(ScatterOp::Max | ScatterOp::Set) => {
            assert!(x[1].is_exact(), "indices of updated rows must be exact");
            in_f64(node, &[&x[0].radii(), &x[1].value, &x[2].radii()])
        }
        Op::Scatter(ScatterOp::Add) => {
            assert!(x[1].is_exact(), "indices of added rows must be exact");
            let moved = in_f64(node, &[&x[0].radii(), &x[1].value, &x[2].radii()]);
            let sizes = in_f64(node, &[&x[0].sizes(), &x[1].value, &x[2].sizes()]);
            // The summation order is specified, so rounding is equal if the terms are equal.
            let rounded = |(m, s): (f64, f64)| if m == 0.0 { 0.0 } else { m + 2.0 * TERMS as f64 * unit * s };
            moved.into_iter().zip(sizes).map(rounded).collect()
        }
        Op::Lines(LineOp::CumSum { .. }) => {
            let (moved, sizes) = (in_f64(node, &[&x[0].radii()]), in_f64(node, &[&x[0].sizes()]));
            let terms = x[0].value.shape().last().copied().unwrap_or(0);
            // The order of the additions is specified, so rounding is equal if the terms are equal.
            let rounded = |(m, s): (f64, f64)| if m == 0.0 { 0.0 } else { m + 2.0 * terms as f64 * unit * s };
            moved.into_iter().zip(sizes).map(rounded).collect()
        }
        Op::Lines(LineOp::CumMax) => in_f64(node, &[&x[0].radii()]),
        Op::Lines(LineOp::Argsort) => {
            assert!(x[0].is_exact(), "sorted elements must be exact");
            vec![0.0; value.data().len()]
        }
        Op::Reduce { op: ReduceOp::Sum, axes } => {
            let terms: usize = axes.iter().map(|&a| x[0].value.shape()[a]).product();
            let (moved, sizes) = (in_f64(node, &[&x[0].radii()]), in_f64(node, &[&x[0].sizes()]));
            let rounded = |(m, s)| m + terms.min(TERMS) as f64 * unit * s;
            moved.into_iter().zip(sizes).map(rounded).collect()
        }
        Op::Dot { .. } | Op::Conv { .. } | Op::ConvKernel { .. } => product(node, x, unit),
        Op::Factor(FactorOp::Lu) => systems::factors(x[0], value, unit),
        Op::Factor(op) => factors::radii(*op, x[0], value, unit),
        Op::TriangularSolve(triangle) => factors::triangular(*triangle, [x[0], x[1]], value, unit),
        Op::LuSolve { transposed } => systems::solutions(x[0], x[2], (value, *transposed), unit),
        _ => elementwise(node, x, value, unit),
    }
}

/// The radii of an operation that only copies elements; for a maximum or minimum, the largest radius of its
/// operands.
fn largest(node: &Node, x: &[&Ball]) -> Vec<f64> {
    let moved: Vec<Array> = x.iter().map(|b| b.radii()).collect();
    let op = match &node.op {
        Op::Reduce { axes, .. } => Op::Reduce { op: ReduceOp::Max, axes: axes.clone() },
        op => op.clone(),
    };
    let ty = Type::array(DType::F64, node.ty.shape().clone());
    let radii = apply(&op, &moved.iter().collect::<Vec<_>>(), &ty).to_f64();
    radii.into_iter().map(|r| r.max(0.0)).collect()
}

/// |a b - a' b'| is at most ra |b| + |a| rb + ra rb, plus the rounding of the sum.
fn product(node: &Node, x: &[&Ball], unit: f64) -> Vec<f64> {
    let [a, b] = [x[0], x[1]].map(|b| (b.sizes(), b.radii()));
    let sums = [(&a.0, &b.0), (&a.1, &b.0), (&a.0, &b.1), (&a.1, &b.1)].map(|(l, r)| in_f64(node, &[l, r]));
    (0..sums[0].len())
        .map(|i| sums[0][i] * unit * TERMS as f64 + sums[1][i] + sums[2][i] + sums[3][i])
        .collect()
}

fn elementwise(node: &Node, x: &[&Ball], value: &Array, unit: f64) -> Vec<f64> {
    let at = |i: usize| -> (Vec<f64>, Vec<f64>) {
        x.iter().map(|b| (b.value.data().get_f64(i), b.radius[i])).unzip()
    };
    let one = |i: usize| {
        let ((v, r), y) = (at(i), value.data().get_f64(i));
        let moved = spread(node, x, &v, &r, y);
        let exact = r.iter().all(|&r| r == 0.0);
        let rounded = if y.is_finite() { size(&node.op, &v, y) } else { 0.0 };
        moved + roundings(&node.op, exact, value.data()) * unit * rounded
    };
    (0..value.data().len()).map(one).collect()
}

/// Half units in the last place by which a result may differ, for operands that are exact (`exact`) or not.
fn roundings(op: &Op, exact: bool, value: &Data) -> f64 {
    let is_float = value.dtype().is_float();
    match op {
        Op::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Floor) | Op::Select => 0.0,
        Op::Binary(BinaryOp::Max | BinaryOp::Min) => 0.0,
        Op::Unary(u) if *u != UnaryOp::Sqrt && is_float => 16.0,
        // Levels without a fused multiply-add round twice per term.
        Op::Lincomb { coeffs } => 2.0 * coeffs.len() as f64,
        _ if exact => 0.0,
        // The error of the standard library, or of a sum of terms, for another operand.
        Op::Scalar(_) => 16.0,
        _ => 2.0,
    }
}

/// The magnitude that roundings are relative to: that of the result, or for a `Lincomb` the sum of the
/// magnitudes of its terms.
fn size(op: &Op, v: &[f64], y: f64) -> f64 {
    match op {
        Op::Lincomb { coeffs } => coeffs.iter().zip(v).map(|(c, v)| (f64::from_bits(*c) * v).abs()).sum(),
        // Near a zero, terms of the size of ln Gamma(12) cancel.
        Op::Scalar(ScalarFn::LnGamma | ScalarFn::Polygamma) => 20.0 + y.abs(),
        _ => y.abs(),
    }
}

/// The bound on the change of a result if the operands change by their radii.
fn spread(node: &Node, x: &[&Ball], v: &[f64], r: &[f64], y: f64) -> f64 {
    if r.iter().all(|&r| r == 0.0) {
        return 0.0;
    }
    match &node.op {
        Op::Unary(u) => unary(*u, v[0], r[0], y),
        Op::Binary(op) => binary(*op, [v[0], v[1]], [r[0], r[1]]),
        Op::Scalar(f) => {
            // Twice the largest difference at some points around the operands.
            let off = |a: f64, b: f64| {
                let moved: Vec<f64> =
                    v.iter().zip(r).zip([a, b]).map(|((v, r), part)| v + part * r).collect();
                (f.at(&moved) - f.at(v)).abs()
            };
            let parts = [-1.0, -0.5, 0.0, 0.5, 1.0];
            let all: Vec<f64> = parts.iter().flat_map(|&a| parts.map(|b| off(a, b))).collect();
            if all.iter().any(|x| x.is_nan()) { f64::NAN } else { 2.0 * all.into_iter().fold(0.0, f64::max) }
        }
        Op::Compare(op) => {
            let near = (v[0] - v[1]).abs() <= r[0] + r[1];
            let never = matches!(op, CompareOp::Le | CompareOp::Lt) && v[0].is_nan();
            f64::from(u8::from(near && !never))
        }
        Op::Select if r[0] > 0.0 => (v[1] - v[2]).abs() + r[1].max(r[2]),
        Op::Select => {
            if v[0] == 0.0 {
                r[2]
            } else {
                r[1]
            }
        }
        Op::Lincomb { coeffs } => coeffs.iter().zip(r).map(|(c, r)| f64::from_bits(*c).abs() * r).sum(),
        Op::Cast => match (x[0].value.dtype().is_float(), node.ty.dtype()) {
            (_, DType::Bool) => f64::from(u8::from(v[0].abs() <= r[0])),
            (true, DType::I32 | DType::U32) => (v[0] + r[0]).trunc() - (v[0] - r[0]).trunc(),
            (_, DType::I32 | DType::U32) => f64::INFINITY,
            _ => r[0],
        },
        other => panic!("no error bound for {}", other.name()),
    }
}

fn unary(op: UnaryOp, x: f64, r: f64, y: f64) -> f64 {
    let of = |x: f64| -> f64 {
        let one = |x: f64| Array::from_vec([1], vec![x]);
        let (mut b, ids) = Builder::with_inputs(&[Type::array(DType::F64, [1])]);
        let value = b.unary(op, ids[0]);
        interpret(&b.finish(&[value]), &[one(x)]).expect("invariant: a function of a float")[0].to_f64()[0]
    };
    match op {
        // No slope exceeds 1.
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Not => r,
        UnaryOp::IsFinite => {
            if r.is_finite() {
                0.0
            } else {
                1.0
            }
        }
        UnaryOp::Powf(_) => (of(x + r) - y).abs().max((of(x - r) - y).abs()),
        // Twice the largest difference at some points of the interval.
        _ => {
            let off = [-1.0, -0.5, 0.5, 1.0].map(|part| (of(x + part * r) - of(x)).abs());
            if off.iter().any(|x| x.is_nan()) { f64::NAN } else { 2.0 * off.into_iter().fold(0.0, f64::max) }
        }
    }
}

fn binary(op: BinaryOp, [a, b]: [f64; 2], [ra, rb]: [f64; 2]) -> f64 {
    match op {
        BinaryOp::Add | BinaryOp::Sub => ra + rb,
        BinaryOp::Mul => a.abs() * rb + b.abs() * ra + ra * rb,
        BinaryOp::Div if rb < b.abs() => (ra + (a / b).abs() * rb) / (b.abs() - rb),
        BinaryOp::Div => f64::INFINITY,
        BinaryOp::Max | BinaryOp::Min | BinaryOp::And | BinaryOp::Or => ra.max(rb),
    }
}

#[test]
fn what_cancels_has_the_radius_of_its_parts_and_what_is_exact_none() {
    let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F64, [2]), Type::array(DType::F64, [2])]);
    let (exp, square) = (b.unary(UnaryOp::Exp, x[0]), b.mul(x[0], x[1]));
    let (small, twice) = (b.scale(exp, 1e-9), b.scale(square, 2.0));
    let (rest, tiny) = (b.sub(exp, x[1]), b.scale(small, 1e-9));
    let f = b.finish(&[square, twice, rest, tiny]);
    let at = [Array::from_vec([2], vec![0.0f64, 1.0]), Array::from_vec([2], vec![1.0f64, 2.0])];
    let balls = outputs(&f, &at);
    assert!(balls[0].is_exact() && balls[1].is_exact());
    let near = |k: usize, want: f64| balls[k].radius.iter().all(|&r| r > want / 4.0 && r < want * 4.0);
    assert!(near(2, 2e-15) && near(3, 3e-33), "{:?} {:?}", balls[2].radius, balls[3].radius);
    assert!(balls[3].holds(0, 1e-18) && !balls[3].holds(0, 0.0) && !balls[1].holds(1, 4.0 + 1e-15));
}
