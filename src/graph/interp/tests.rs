//! Each operation, on numbers small enough to check by hand.

use super::*;
use crate::array::{DType, Shape};
use crate::graph::{
    BinaryOp, Builder, Checkpoints, CompareOp, NodeId, Policy, ReduceOp, Replay, ScatterOp, Solve, TapRows,
    Taps, TileOut, Tiles, UnaryOp, verify,
};

fn f32s(shape: impl Into<Shape>, v: &[f32]) -> Array {
    Array::from_vec(shape, v.to_vec())
}

fn f64s(shape: impl Into<Shape>, v: &[f64]) -> Array {
    Array::from_vec(shape, v.to_vec())
}

fn bools(v: &[u32]) -> Array {
    Array::new([v.len()], Data::Bool(v.to_vec()))
}

fn type_of(a: &Array) -> Type {
    Type::array(a.dtype(), a.shape().clone())
}

/// The only output of the function that `build` makes, evaluated at `inputs`.
fn eval(inputs: &[Array], build: impl Fn(&mut Builder, &[NodeId]) -> NodeId) -> Array {
    let types: Vec<Type> = inputs.iter().map(type_of).collect();
    let (mut b, x) = Builder::with_inputs(&types);
    let y = build(&mut b, &x);
    let f = b.finish(&[y]);
    verify(&f).unwrap();
    interpret(&f, inputs).unwrap().remove(0)
}

fn op(op: Op, inputs: &[Array], hint: Option<Type>) -> Array {
    eval(inputs, |b, x| b.push(op.clone(), x, hint.as_ref()))
}

fn unary(u: UnaryOp, x: f64) -> f64 {
    op(Op::Unary(u), &[f64s([1], &[x])], None).to_f64()[0]
}

#[test]
fn unary_functions_are_those_of_std() {
    let x = 0.7_f64;
    let table = [
        (UnaryOp::Neg, -x),
        (UnaryOp::Abs, x),
        (UnaryOp::Sign, 1.0),
        (UnaryOp::Floor, 0.0),
        (UnaryOp::Exp, x.exp()),
        (UnaryOp::Expm1, x.exp_m1()),
        (UnaryOp::Ln, x.ln()),
        (UnaryOp::Log1p, x.ln_1p()),
        (UnaryOp::Sqrt, x.sqrt()),
        (UnaryOp::Sin, x.sin()),
        (UnaryOp::Cos, x.cos()),
        (UnaryOp::Atan, x.atan()),
        (UnaryOp::Tanh, x.tanh()),
        (UnaryOp::Sigmoid, 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::Powf(2.5_f64.to_bits()), x.powf(2.5)),
    ];
    for (u, want) in table {
        assert_eq!(unary(u, x), want, "{}", u.name());
    }
    assert_eq!(unary(UnaryOp::Floor, -0.5), -1.0);
    assert_eq!([-3.0, 0.0].map(|x| unary(UnaryOp::Sign, x)), [-1.0, 0.0]);
    assert!(unary(UnaryOp::Sign, f64::NAN).is_nan());
    assert_eq!(unary(UnaryOp::Sigmoid, -1000.0), 0.0);
    assert!((unary(UnaryOp::Erf, x) - 0.677_801_193_837_418_4).abs() < 2e-16);
    assert!((unary(UnaryOp::Softplus, x) - 1.103_186_048_885_458).abs() < 3e-16);
    assert_eq!([-1e3, 1e3].map(|x| unary(UnaryOp::Softplus, x)), [0.0, 1e3]);
    let finite = op(Op::Unary(UnaryOp::IsFinite), &[f32s([3], &[1.0, f32::NAN, f32::INFINITY])], None);
    assert_eq!(finite, bools(&[1, 0, 0]));
    assert_eq!(op(Op::Unary(UnaryOp::Not), &[bools(&[1, 0])], None), bools(&[0, 1]));
    let ints = Array::from_vec([3], vec![-2, 0, 5]);
    assert_eq!(op(Op::Unary(UnaryOp::Abs), &[ints], None).to_f64(), [2.0, 0.0, 5.0]);
}

#[test]
fn f32_is_computed_in_f32() {
    let out = eval(&[f32s([1], &[1e8]), f32s([1], &[1.0])], |b, x| {
        let sum = b.add(x[0], x[1]);
        b.sub(sum, x[0])
    });
    assert_eq!(out.to_f64(), [0.0]);
    assert_eq!(op(Op::Unary(UnaryOp::Exp), &[f32s([1], &[0.3])], None), f32s([1], &[0.3_f32.exp()]));
}

#[test]
fn binary_functions_wrap_integers_and_keep_nan() {
    let two = |o, a: Array, b: Array| op(Op::Binary(o), &[a, b], None).to_f64();
    let nan = f64::NAN;
    assert_eq!(two(BinaryOp::Div, f64s([1], &[1.0]), f64s([1], &[4.0])), [0.25]);
    let max = two(BinaryOp::Max, f64s([3], &[1.0, nan, 2.0]), f64s([3], &[3.0, 0.0, nan]));
    assert!(max[0] == 3.0 && max[1].is_nan() && max[2].is_nan());
    let min = two(BinaryOp::Min, f64s([2], &[1.0, nan]), f64s([2], &[3.0, 0.0]));
    assert!(min[0] == 1.0 && min[1].is_nan());
    let (a, b) = (Array::from_vec([1], vec![u32::MAX]), Array::from_vec([1], vec![2u32]));
    assert_eq!(two(BinaryOp::Add, a.clone(), b.clone()), [1.0]);
    assert_eq!(two(BinaryOp::Mul, a, b), [f64::from(u32::MAX - 1)]);
    let (a, b) = (bools(&[0, 0, 1, 1]), bools(&[0, 1, 0, 1]));
    assert_eq!(two(BinaryOp::And, a.clone(), b.clone()), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(two(BinaryOp::Or, a, b), [0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn comparisons_with_nan_are_false_but_ne() {
    let (a, b) = (f32s([3], &[1.0, 2.0, f32::NAN]), f32s([3], &[2.0, 2.0, 2.0]));
    let of = |c| op(Op::Compare(c), &[a.clone(), b.clone()], None);
    assert_eq!(of(CompareOp::Eq), bools(&[0, 1, 0]));
    assert_eq!(of(CompareOp::Ne), bools(&[1, 0, 1]));
    assert_eq!(of(CompareOp::Lt), bools(&[1, 0, 0]));
    assert_eq!(of(CompareOp::Le), bools(&[1, 1, 0]));
}

#[test]
fn unselected_elements_have_no_effect() {
    let out =
        op(Op::Select, &[bools(&[1, 0]), f32s([2], &[1.0, f32::NAN]), f32s([2], &[f32::NAN, 2.0])], None);
    assert_eq!(out.to_f64(), [1.0, 2.0]);
}

#[test]
fn a_lincomb_rounds_once_per_term() {
    let c = [3.0_f64, 0.1].map(f64::to_bits).to_vec();
    let (x, y) = (0.123_f32, 7.77_f32);
    let out = op(Op::Lincomb { coeffs: c }, &[f32s([1], &[x]), f32s([1], &[y])], None);
    assert_eq!(out, f32s([1], &[0.1_f32.mul_add(y, 3.0 * x)]));
}

#[test]
fn casts_truncate_saturate_and_wrap_as_in_rust() {
    let cast = |x: Array, d| {
        let ty = Type::array(d, x.shape().clone());
        op(Op::Cast, &[x], Some(ty)).to_f64()
    };
    let x = f64s([4], &[-1.7, 2.9, 1e20, f64::NAN]);
    assert_eq!(cast(x.clone(), DType::I32), [-1.0, 2.0, f64::from(i32::MAX), 0.0]);
    assert_eq!(cast(x.clone(), DType::U32), [0.0, 2.0, f64::from(u32::MAX), 0.0]);
    assert_eq!(cast(x, DType::Bool), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(cast(Array::from_vec([1], vec![-1i32]), DType::U32), [f64::from(u32::MAX)]);
    assert_eq!(cast(bools(&[0, 1]), DType::F32), [0.0, 1.0]);
    assert_eq!(cast(f64s([1], &[0.1]), DType::F32), [f64::from(0.1_f32)]);
}

#[test]
fn movement_takes_elements_from_where_it_says() {
    let x = f32s([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let to = |shape: &[usize]| Some(Type::array(DType::F32, shape));
    let of = |o: Op, ty: Option<Type>| op(o, std::slice::from_ref(&x), ty).to_f64();
    assert_eq!(of(Op::Transpose { perm: vec![1, 0] }, None), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(of(Op::Slice { start: vec![1, 1], limit: vec![2, 3] }, None), [5.0, 6.0]);
    let padded = of(Op::Pad { lo: vec![0, 1], hi: vec![1, 0] }, None);
    assert_eq!(padded, [0.0, 1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(of(Op::Reshape, to(&[3, 2])), x.to_f64());
    let row = op(Op::Broadcast { dims: vec![1] }, &[f32s([2], &[1.0, 2.0])], to(&[2, 2])).to_f64();
    assert_eq!(row, [1.0, 2.0, 1.0, 2.0]);
    let column = op(Op::Broadcast { dims: vec![0] }, &[f32s([2], &[1.0, 2.0])], to(&[2, 2])).to_f64();
    assert_eq!(column, [1.0, 1.0, 2.0, 2.0]);
    let stretched = op(Op::Broadcast { dims: vec![0, 1] }, &[f32s([2, 1], &[1.0, 2.0])], to(&[2, 2]));
    assert_eq!(stretched.to_f64(), column);
    let joined = op(Op::Concat { axis: 1 }, &[f32s([2, 1], &[9.0, 8.0]), x.clone()], None).to_f64();
    assert_eq!(joined, [9.0, 1.0, 2.0, 3.0, 8.0, 4.0, 5.0, 6.0]);
    assert_eq!(op(Op::Iota { axis: 1 }, &[], to(&[2, 2])).to_f64(), [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn a_transpose_of_three_axes_is_not_its_inverse() {
    let x = f64s([2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let out = op(Op::Transpose { perm: vec![2, 0, 1] }, &[x], None);
    assert_eq!((&**out.shape(), out.to_f64()), (&[3, 2, 1][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
}

#[test]
fn reductions_sum_in_f64_and_keep_nan() {
    let of = |o, x: &Array, axes: &[usize]| {
        op(Op::Reduce { op: o, axes: axes.to_vec() }, std::slice::from_ref(x), None).to_f64()
    };
    let x = f32s([2, 3], &[1e8, 1.0, -1e8, 4.0, f32::NAN, 6.0]);
    let sums = of(ReduceOp::Sum, &x, &[1]);
    assert!(sums[0] == 1.0 && sums[1].is_nan());
    let max = of(ReduceOp::Max, &x, &[0]);
    assert!(max[0] == f64::from(1e8_f32) && max[1].is_nan() && max[2] == 6.0);
    assert!(of(ReduceOp::Min, &x, &[0, 1])[0].is_nan());
    assert_eq!(of(ReduceOp::Min, &Array::from_vec([3], vec![3, -5, 2]), &[0]), [-5.0]);
    assert_eq!(of(ReduceOp::Max, &bools(&[0, 1, 0]), &[0]), [1.0]);
    assert_eq!(of(ReduceOp::Min, &bools(&[1, 0]), &[0]), [0.0]);
    let empty = f32s([0], &[]);
    assert_eq!(
        (of(ReduceOp::Sum, &empty, &[0]), of(ReduceOp::Max, &empty, &[0])),
        (vec![0.0], vec![f64::NEG_INFINITY])
    );
}

#[test]
fn rows_out_of_range_are_clamped() {
    let x = f32s([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let index = Array::from_vec([4], vec![-7, 1, 2, 99]);
    let rows = op(Op::Gather, &[x.clone(), index.clone()], None).to_f64();
    assert_eq!(rows, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0, 6.0]);
    let ones = f32s([4, 2], &[1.0; 8]);
    let added = op(Op::Scatter(ScatterOp::Add), &[x.clone(), index.clone(), ones], None).to_f64();
    assert_eq!(added, [2.0, 3.0, 4.0, 5.0, 7.0, 8.0]);
    let updates = f32s([4, 2], &[0.0, 9.0, f32::NAN, 0.0, 7.0, 0.0, 6.0, 8.0]);
    let rows =
        |s| format!("{:?}", op(Op::Scatter(s), &[x.clone(), index.clone(), updates.clone()], None).to_f64());
    assert_eq!(rows(ScatterOp::Max), "[1.0, 9.0, NaN, 4.0, 7.0, 8.0]");
    assert_eq!(rows(ScatterOp::Set), "[0.0, 9.0, NaN, 0.0, 6.0, 8.0]");
}

#[test]
fn a_product_reads_either_operand_transposed() {
    let a = f64s([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let at = f64s([3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let b = f64s([3, 2], &[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
    let bt = f64s([2, 3], &[7.0, 9.0, 11.0, 8.0, 10.0, 12.0]);
    for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
        let args = [if ta { at.clone() } else { a.clone() }, if tb { bt.clone() } else { b.clone() }];
        assert_eq!(op(Op::Dot { ta, tb }, &args, None).to_f64(), [58.0, 64.0, 139.0, 154.0]);
    }
}

#[test]
fn a_batch_of_products_is_each_of_them() {
    let a = f64s([2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    let b = f64s([2, 2, 1], &[5.0, 6.0, 7.0, 8.0]);
    let dot = |a: &Array, b: &Array, ta, tb| op(Op::Dot { ta, tb }, &[a.clone(), b.clone()], None).to_f64();
    assert_eq!(dot(&a, &b, false, false), [17.0, 53.0]);
    assert_eq!(dot(&b, &a, true, true), [17.0, 53.0]);
    assert_eq!(dot(&a, &a, true, false), [1.0, 2.0, 2.0, 4.0, 9.0, 12.0, 12.0, 16.0]);
}

#[test]
fn random_bits_start_anywhere_in_a_stream() {
    let key = Array::from_vec([2], vec![1u32, 2]);
    let start = |i: u32| Array::from_vec(Shape::scalar(), vec![i]);
    let ty = Some(Type::array(DType::U32, [2, 3]));
    let bits = op(Op::RandomBits { stream: 5 }, &[key, start(3)], ty);
    let want: Vec<u32> = (3..9).map(|i| philox_word([1, 2], 5, i)).collect();
    assert_eq!(bits, Array::from_vec([2, 3], want));
}

const F64: Type = Type::Array { dtype: DType::F64, shape: Shape::scalar() };
const BOOL: Type = Type::Array { dtype: DType::Bool, shape: Shape::scalar() };

/// y' = y + (t_next - t) a y + 100 first + 1000 last, of scalars.
fn step() -> Func {
    let (mut b, x) = Builder::with_inputs(&[BOOL, BOOL, F64, F64, F64, F64]);
    let h = b.sub(x[3], x[2]);
    let ay = b.mul(x[5], x[4]);
    let hay = b.mul(h, ay);
    let y = b.add(x[4], hay);
    let (first, last) = (b.cast(x[0], DType::F64), b.cast(x[1], DType::F64));
    let marks =
        b.push(Op::Lincomb { coeffs: [100.0_f64, 1000.0].map(f64::to_bits).to_vec() }, &[first, last], None);
    let y = b.add(y, marks);
    b.finish(&[y])
}

/// The vjp of [`step`] with respect to the state and a: from trip, cotangent, state and a.
fn bwd() -> Func {
    let (mut b, x) = Builder::with_inputs(&[BOOL, BOOL, F64, F64, F64, F64, F64]);
    let (ct, y, a) = (x[4], x[5], x[6]);
    let h = b.sub(x[3], x[2]);
    let ha = b.mul(h, a);
    let c = b.mul(ha, ct);
    let hy = b.mul(h, y);
    let ct_a = b.mul(hy, ct);
    let ct = b.add(ct, c);
    b.finish(&[ct, ct_a])
}

/// Steps of 0.25 up to time 1. Every other attempt is rejected. The ext value counts the attempts.
fn attempt() -> Func {
    let (mut b, x) = Builder::with_inputs(&[F64, F64, F64, F64]);
    let (t, y, count, a) = (x[0], x[1], x[2], x[3]);
    let [zero, one, quarter, half] = [0.0, 1.0, 0.25, 0.5].map(|c| b.splat(DType::F64, Shape::scalar(), c));
    let halved = b.mul(count, half);
    let whole = b.unary(UnaryOp::Floor, halved);
    let odd = b.compare(CompareOp::Ne, halved, whole);
    let moved = b.add(t, quarter);
    let next = b.select(odd, moved, t);
    let (first, reached) = (b.compare(CompareOp::Eq, t, zero), b.compare(CompareOp::Le, one, next));
    let last = b.binary(BinaryOp::And, odd, reached);
    let stepped = b.inline(&step(), &[first, last, t, next, y, a])[0];
    let y1 = b.select(odd, stepped, y);
    let count1 = b.add(count, one);
    let running = b.unary(UnaryOp::Not, last);
    b.finish(&[odd, running, last, next, y1, count1])
}

fn search(step: Func) -> Op {
    let policy = Policy::Checkpoint(Checkpoints::Count(2));
    Op::Solve(Arc::new(Solve {
        attempt: attempt(),
        step,
        inverse: None,
        num_carry: 1,
        num_ext: 1,
        num_own: 0,
        num_first: 0,
        taps: Taps::default(),
        policy,
    }))
}

/// The backward pass of a loop with this step: it carries the cotangent of y and sums the cotangents of a.
fn backward(step: Func) -> Replay {
    let step = Some(step);
    Replay { step, is_reversed: true, num_carry: 1, num_states: 1, num_sums: 1, ..Replay::new(bwd()) }
}

/// (y0, a, ct) -> (y from the search, number of attempts, y from the replay, ct_y0, ct_a)
fn whole(step_of_back: Func) -> Func {
    let (mut b, x) = Builder::with_inputs(&[F64, F64, F64]);
    let (expected, zero) =
        (b.splat(DType::U32, Shape::scalar(), 0.0), b.splat(DType::F64, Shape::scalar(), 0.0));
    let found = b.push(search(step()), &[expected, zero, x[0], zero, x[1]], None);
    let [y, count, schedule, tape] = b.projections(found)[..] else { panic!("four values") };
    let scan = Replay { num_carry: 1, ..Replay::new(step()) };
    let again = b.push(Op::Replay(Arc::new(scan)), &[schedule, x[0], x[1]], None);
    let again = b.proj(again, 0);
    let back = backward(step_of_back);
    let places = back.places();
    let back = b.push(Op::Replay(Arc::new(back)), &[schedule, tape, x[0], x[2], x[1]], None);
    let (ct, ct_a) = (b.proj(back, places.carry[0]), b.proj(back, places.sums[0]));
    b.finish(&[y, count, again, ct, ct_a])
}

fn scalars(v: &[f64]) -> Vec<Array> {
    v.iter().map(|&x| Array::scalar(DType::F64, x)).collect()
}

#[test]
fn a_search_a_replay_and_its_reverse_agree() {
    let out = |y0: f64, a: f64| -> Vec<f64> {
        let f = whole(step());
        verify(&f).unwrap();
        let out = interpret(&f, &scalars(&[y0, a, 1.0])).unwrap();
        out.iter().map(|a| a.to_f64()[0]).collect()
    };
    let (y0, a) = (0.75, 0.5);
    let [y, count, again, ct, ct_a] = out(y0, a)[..] else { panic!("five values") };
    let g = 1.0 + 0.25 * a;
    let by_hand = (((y0 * g + 100.0) * g) * g) * g + 1000.0;
    assert!((y - by_hand).abs() < 1e-9 && y == again, "{y} {again} {by_hand}");
    assert_eq!(count, 8.0);
    assert!((ct - g.powi(4)).abs() < 1e-12);
    let d = 1e-5;
    let difference = (out(y0, a + d)[0] - out(y0, a - d)[0]) / (2.0 * d);
    assert!((ct_a - difference).abs() < 1e-6, "{ct_a} {difference}");
}

#[test]
fn a_step_that_differs_from_the_attempt_is_detected() {
    let (mut b, x) = Builder::with_inputs(&[BOOL, BOOL, F64, F64, F64, F64]);
    let y = b.inline(&step(), &x)[0];
    let y = b.scale(y, 1.0 + f64::EPSILON);
    let e = interpret(&whole(b.finish(&[y])), &scalars(&[0.75, 0.5, 1.0])).unwrap_err();
    assert!(
        e.to_string().ends_with("the state recomputed before step 1 differs from the one on the tape"),
        "{e}"
    );
}

#[test]
fn an_empty_schedule_returns_its_inputs() {
    let schedule = Value::Schedule(Arc::new(Schedule {
        step_times: vec![2.0],
        reached: true,
        held: TapRows::default(),
        rows: vec![],
    }));
    let (mut b, x) = Builder::with_inputs(&[Type::Schedule, F64, F64]);
    let scan = Replay { num_carry: 1, ..Replay::new(step()) };
    let out = b.push(Op::Replay(Arc::new(scan)), &x, None);
    let (y, tape) = (b.proj(out, 0), b.proj(out, 1));
    let back = backward(step());
    let places = back.places();
    let back = b.push(Op::Replay(Arc::new(back)), &[x[0], tape, x[1], x[1], x[2]], None);
    let (ct, ct_a) = (b.proj(back, places.carry[0]), b.proj(back, places.sums[0]));
    let inputs = [vec![schedule], scalars(&[3.0, 4.0]).into_iter().map(Value::from).collect()].concat();
    let out = interpret_values(&b.finish(&[y, ct, ct_a]), &inputs).unwrap();
    assert_eq!(out.iter().map(|v| v.array().to_f64()[0]).collect::<Vec<_>>(), [3.0, 3.0, 0.0]);
}

#[test]
fn last_is_false_where_the_search_stopped_short() {
    let trip = |reached, i| {
        let s = Schedule { step_times: vec![0.0, 1.0, 2.0], reached, held: TapRows::default(), rows: vec![] };
        s.trip(i).map(|v| v.array().to_f64()[0])
    };
    assert_eq!(trip(true, 0), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(trip(true, 1), [0.0, 1.0, 1.0, 2.0]);
    assert_eq!(trip(false, 1), [0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn tiles_split_rows_and_join_the_results() {
    let body = |rows: usize| {
        let types =
            [Type::scalar(DType::U32), Type::array(DType::F32, [rows, 2]), Type::array(DType::F32, [2])];
        let (mut b, x) = Builder::with_inputs(&types);
        let shared = b.broadcast(x[2], &Shape::from([rows, 2]), vec![1]);
        let scaled = b.mul(x[1], shared);
        let total = b.reduce(ReduceOp::Sum, scaled, vec![0]);
        let row0 = b.reshape(x[0], [1]);
        let row0 = b.broadcast(row0, &Shape::from([rows]), vec![0]);
        b.finish(&[scaled, total, row0])
    };
    let outs = vec![TileOut::Rows, TileOut::Sum, TileOut::Rows];
    let tiles = Tiles { rows: 5, tile: 2, body: body(2), tail: Some(body(1)), num_rowed: 1, outs };
    let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [5, 2]), Type::array(DType::F32, [2])]);
    let out = b.push(Op::Tiles(Arc::new(tiles)), &x, None);
    let outs = b.projections(out);
    let rows: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let f = b.finish(&outs);
    verify(&f).unwrap();
    let out = interpret(&f, &[f32s([5, 2], &rows), f32s([2], &[1.0, 10.0])]).unwrap();
    assert_eq!(out[0].to_f64(), [0.0, 10.0, 2.0, 30.0, 4.0, 50.0, 6.0, 70.0, 8.0, 90.0]);
    assert_eq!(out[1].to_f64(), [20.0, 250.0]);
    assert_eq!(out[2].to_f64(), [0.0, 0.0, 2.0, 2.0, 4.0]);
}

#[test]
fn wrong_inputs_and_opaque_outputs_are_errors() {
    let (b, x) = Builder::with_inputs(&[Type::array(DType::F32, [2])]);
    let f = b.finish(&x);
    let e = interpret(&f, &[f32s([3], &[0.0; 3])]).unwrap_err();
    assert_eq!(e.to_string(), "func does not take (f32[3]): input 0 must be f32[2]");
    let e = interpret(&f, &[]).unwrap_err();
    assert_eq!(e.to_string(), "func does not take (): it takes 1 inputs, not 0");
    let (mut b, x) = Builder::with_inputs(&[F64, F64]);
    let expected = b.splat(DType::U32, Shape::scalar(), 0.0);
    let zero = b.splat(DType::F64, Shape::scalar(), 0.0);
    let found = b.push(search(step()), &[expected, zero, x[0], zero, x[1]], None);
    let tape = b.proj(found, 3);
    let e = interpret(&b.finish(&[tape]), &scalars(&[1.0, 1.0])).unwrap_err();
    assert!(e.to_string().ends_with("output 0 is a tape, not an array"), "{e}");
}
