//! Operations that move, gather or sum elements, as loops over multi-indices.
//!
//! For each element of the result, most of these operations only compute the index of its source. [`pick`]
//! then copies the elements, for all element types.

use super::elementwise::Float;
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{BinaryOp, ReduceOp, ScatterOp};

/// All multi-indices of a shape in row-major order.
fn indices(shape: &Shape) -> impl Iterator<Item = Vec<usize>> {
    let strides = shape.strides();
    (0..shape.size()).map(move |i| strides.iter().zip(&**shape).map(|(s, d)| i / s % d).collect())
}

/// The row-major index of a multi-index.
fn offset(shape: &Shape, index: &[usize]) -> usize {
    index.iter().zip(&**shape).fold(0, |at, (i, d)| at * d + i)
}

/// The elements at the given indices; 0 for `None`.
fn pick(x: &Data, from: impl Iterator<Item = Option<usize>>) -> Data {
    fn of<T: Copy + Default>(x: &[T], from: impl Iterator<Item = Option<usize>>) -> Vec<T> {
        from.map(|i| i.map_or(T::default(), |i| x[i])).collect()
    }
    match x {
        Data::F32(x) => Data::F32(of(x, from)),
        Data::F64(x) => Data::F64(of(x, from)),
        Data::I32(x) => Data::I32(of(x, from)),
        Data::U32(x) => Data::U32(of(x, from)),
        Data::Bool(x) => Data::Bool(of(x, from)),
    }
}

/// Appends the elements of one array to another.
pub(super) fn append(to: &mut Data, x: &Data) {
    match (to, x) {
        (Data::F32(to), Data::F32(x)) => to.extend(x),
        (Data::F64(to), Data::F64(x)) => to.extend(x),
        (Data::I32(to), Data::I32(x)) => to.extend(x),
        (Data::U32(to), Data::U32(x)) | (Data::Bool(to), Data::Bool(x)) => to.extend(x),
        (to, x) => panic!("invariant: {} appended to {}", x.dtype(), to.dtype()),
    }
}

/// Element `i` of an array of words.
pub(super) fn word(x: &Array, i: usize) -> u32 {
    match x.data() {
        Data::U32(v) => v[i],
        other => panic!("invariant: words must be u32, not {}", other.dtype()),
    }
}

pub(super) fn iota(dtype: DType, shape: &Shape, axis: usize) -> Data {
    let mut data = Data::zeros(dtype, shape.size());
    indices(shape).enumerate().for_each(|(i, index)| data.set_f64(i, index[axis] as f64));
    data
}

pub(super) fn broadcast(x: &Array, to: &Shape, dims: &[usize]) -> Data {
    let s = x.shape();
    let from = |index: Vec<usize>| -> Vec<usize> {
        (0..s.rank()).map(|i| if s[i] == 1 { 0 } else { index[dims[i]] }).collect()
    };
    pick(x.data(), indices(to).map(|index| Some(offset(s, &from(index)))))
}

pub(super) fn transpose(x: &Array, to: &Shape, perm: &[usize]) -> Data {
    let from = |index: Vec<usize>| {
        let mut at = vec![0; perm.len()];
        perm.iter().zip(index).for_each(|(&p, i)| at[p] = i);
        at
    };
    pick(x.data(), indices(to).map(|index| Some(offset(x.shape(), &from(index)))))
}

pub(super) fn slice(x: &Array, to: &Shape, start: &[usize]) -> Data {
    let from = |index: Vec<usize>| -> Vec<usize> { index.iter().zip(start).map(|(i, s)| i + s).collect() };
    pick(x.data(), indices(to).map(|index| Some(offset(x.shape(), &from(index)))))
}

pub(super) fn pad(x: &Array, to: &Shape, lo: &[usize]) -> Data {
    let s = x.shape();
    let from = |index: Vec<usize>| -> Option<Vec<usize>> {
        (0..s.rank()).map(|a| index[a].checked_sub(lo[a]).filter(|&i| i < s[a])).collect()
    };
    pick(x.data(), indices(to).map(|index| from(index).map(|at| offset(s, &at))))
}

pub(super) fn concat(x: &[&Array], to: &Shape, axis: usize) -> Data {
    let mut all = Data::zeros(x[0].dtype(), 0);
    for x in x {
        append(&mut all, x.data());
    }
    let from = |mut index: Vec<usize>| {
        let mut before = 0;
        for x in x {
            let s = x.shape();
            if index[axis] < s[axis] {
                return before + offset(s, &index);
            }
            index[axis] -= s[axis];
            before += s.size();
        }
        panic!("invariant: index out of range of the concatenated arrays")
    };
    pick(&all, indices(to).map(|index| Some(from(index))))
}

/// Folds each element into the accumulator at its `target`.
fn fold<T: Copy>(x: &[T], n: usize, target: &[usize], start: T, f: impl Fn(T, T) -> T) -> Vec<T> {
    let mut acc = vec![start; n];
    x.iter().zip(target).for_each(|(&x, &t)| acc[t] = f(acc[t], x));
    acc
}

/// Floats are summed in f64 in row-major order and rounded once. Sums of integers wrap. The sum and the
/// maximum of booleans are their logical or, the minimum is their logical and. The empty sum is 0, an empty
/// maximum is the smallest value of the type, and an empty minimum is the largest value.
pub(super) fn reduce(op: ReduceOp, x: &Array, to: &Shape, axes: &[usize]) -> Data {
    let (n, s) = (to.size(), x.shape());
    let kept: Vec<usize> = (0..s.rank()).filter(|a| !axes.contains(a)).collect();
    let target = |index: Vec<usize>| offset(to, &kept.iter().map(|&a| index[a]).collect::<Vec<_>>());
    let target: Vec<usize> = indices(s).map(target).collect();
    let floats = |x: &[f64]| match op {
        ReduceOp::Sum => fold(x, n, &target, 0.0, |a, b| a + b),
        ReduceOp::Max => fold(x, n, &target, f64::NEG_INFINITY, |a, b| a.binary(BinaryOp::Max, b)),
        ReduceOp::Min => fold(x, n, &target, f64::INFINITY, |a, b| a.binary(BinaryOp::Min, b)),
    };
    match (op, x.data()) {
        (_, Data::F32(_)) => Data::F32(floats(&x.to_f64()).into_iter().map(|x| x as f32).collect()),
        (_, Data::F64(v)) => Data::F64(floats(v)),
        (ReduceOp::Sum, Data::I32(v)) => Data::I32(fold(v, n, &target, 0, i32::wrapping_add)),
        (ReduceOp::Max, Data::I32(v)) => Data::I32(fold(v, n, &target, i32::MIN, i32::max)),
        (ReduceOp::Min, Data::I32(v)) => Data::I32(fold(v, n, &target, i32::MAX, i32::min)),
        (ReduceOp::Sum, Data::U32(v)) => Data::U32(fold(v, n, &target, 0, u32::wrapping_add)),
        (ReduceOp::Max, Data::U32(v)) => Data::U32(fold(v, n, &target, 0, u32::max)),
        (ReduceOp::Min, Data::U32(v)) => Data::U32(fold(v, n, &target, u32::MAX, u32::min)),
        (ReduceOp::Sum | ReduceOp::Max, Data::Bool(v)) => Data::Bool(fold(v, n, &target, 0, |a, b| a | b)),
        (ReduceOp::Min, Data::Bool(v)) => Data::Bool(fold(v, n, &target, 1, |a, b| a & b)),
    }
}

/// The row numbers in an index, clamped to axis 0 of `x`.
fn rows(x: &Array, index: &Array) -> Vec<usize> {
    let Data::I32(index) = index.data() else { panic!("invariant: an index is i32") };
    let last = x.shape()[0] as i64 - 1;
    index.iter().map(|&i| i64::from(i).clamp(0, last) as usize).collect()
}

pub(super) fn gather(x: &Array, index: &Array) -> Data {
    let row: usize = x.shape()[1..].iter().product();
    pick(x.data(), rows(x, index).into_iter().flat_map(|r| (r * row..(r + 1) * row).map(Some)))
}

/// Combines the updates in the element type, in order.
pub(super) fn scatter(op: ScatterOp, x: &Array, index: &Array, updates: &Array) -> Data {
    fn each<T: Copy>(out: &mut [T], updates: &[T], targets: &[usize], f: impl Fn(T, T) -> T) {
        targets.iter().zip(updates).for_each(|(&t, &u)| out[t] = f(out[t], u));
    }
    let row: usize = x.shape()[1..].iter().product();
    let targets: Vec<usize> = rows(x, index).into_iter().flat_map(|r| r * row..(r + 1) * row).collect();
    let mut out = x.data().clone();
    let max = |a: f64, b: f64| a.binary(BinaryOp::Max, b);
    match (op, &mut out, updates.data()) {
        (ScatterOp::Add, Data::F32(out), Data::F32(u)) => each(out, u, &targets, |a, b| a + b),
        (ScatterOp::Add, Data::F64(out), Data::F64(u)) => each(out, u, &targets, |a, b| a + b),
        (ScatterOp::Add, Data::I32(out), Data::I32(u)) => each(out, u, &targets, i32::wrapping_add),
        (ScatterOp::Add, Data::U32(out), Data::U32(u)) => each(out, u, &targets, u32::wrapping_add),
        (ScatterOp::Max, Data::F32(out), Data::F32(u)) => {
            each(out, u, &targets, |a, b| max(a.into(), b.into()) as f32);
        }
        (ScatterOp::Max, Data::F64(out), Data::F64(u)) => each(out, u, &targets, max),
        (ScatterOp::Max, Data::I32(out), Data::I32(u)) => each(out, u, &targets, i32::max),
        (ScatterOp::Max, Data::U32(out), Data::U32(u)) => each(out, u, &targets, u32::max),
        (ScatterOp::Set, Data::F32(out), Data::F32(u)) => each(out, u, &targets, |_, b| b),
        (ScatterOp::Set, Data::F64(out), Data::F64(u)) => each(out, u, &targets, |_, b| b),
        (ScatterOp::Set, Data::I32(out), Data::I32(u)) => each(out, u, &targets, |_, b| b),
        (ScatterOp::Set, Data::U32(out), Data::U32(u)) => each(out, u, &targets, |_, b| b),
        (ScatterOp::Set, Data::Bool(out), Data::Bool(u)) => each(out, u, &targets, |_, b| b),
        (op, out, u) => panic!("invariant: {} of {} and {}", op.name(), out.dtype(), u.dtype()),
    }
    out
}

/// Each element is a sum over the inner index in ascending order, in f64, rounded once.
pub(super) fn dot(a: &Array, b: &Array, ta: bool, tb: bool) -> Data {
    let (batch, &[a_rows, a_cols]) = matrices(a.shape());
    let (_, &[b_rows, b_cols]) = matrices(b.shape());
    let (m, inner) = if ta { (a_cols, a_rows) } else { (a_rows, a_cols) };
    let n = if tb { b_rows } else { b_cols };
    let at = |i: usize, k: usize| if ta { k * a_cols + i } else { i * a_cols + k };
    let bt = |k: usize, j: usize| if tb { j * b_cols + k } else { k * b_cols + j };
    let count = batch.iter().product();
    let mut out = Data::zeros(a.dtype(), count * m * n);
    for e in 0..count {
        let (a0, b0) = (e * m * inner, e * inner * n);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let term = |k| a.data().get_f64(a0 + at(i, k)) * b.data().get_f64(b0 + bt(k, j));
            out.set_f64((e * m + i) * n + j, (0..inner).fold(0.0, |sum, k| sum + term(k)));
        }
    }
    out
}

/// The batch axes and the matrix shape of a batch of matrices.
fn matrices(shape: &Shape) -> (&[usize], &[usize; 2]) {
    shape.split_last_chunk().expect("invariant: a matrix product has two axes")
}
