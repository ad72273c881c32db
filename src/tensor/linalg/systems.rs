//! Which systems the operands of a solver describe: leading axes, right-hand sides, element types.

use super::{lead, order, program};
use crate::array::{DType, Shape};
use crate::tensor::Tensor;

/// From matrices and right-hand sides `[.., m, p]`, of equal leading axes and one element type, to solutions `[.., n, p]`.
type Solution<'a> = &'a dyn Fn(&Tensor, &Tensor) -> Tensor;

/// The solutions for square matrices `[.., n, n]` and right-hand sides `[n]` or `[.., n, m]`.
#[track_caller]
pub(super) fn solved(name: &str, (a, b): (&Tensor, &Tensor), solution: Solution) -> Tensor {
    order(name, a);
    of_sides(name, "[.., n, n] and [n] or [.., n, m]", (a, b), solution)
}

/// The solutions for matrices `[.., m, n]` and right-hand sides `[m]` or `[.., m, p]`.
#[track_caller]
pub(super) fn right_hand_sides(name: &str, (a, b): (&Tensor, &Tensor), solution: Solution) -> Tensor {
    of_sides(name, "[.., m, n] and [m] or [.., m, p]", (a, b), solution)
}

#[track_caller]
fn of_sides(name: &str, what: &str, (a, b): (&Tensor, &Tensor), solution: Solution) -> Tensor {
    let (_, &[m, n]) = a.shape().split_last_chunk().expect("invariant: a matrix has two axes");
    let is_vector = b.rank() == 1;
    let rows = if is_vector { b.expand_dims(1) } else { b.clone() };
    let fits = rows.rank() >= 2 && rows.shape()[rows.rank() - 2] == m;
    let (of_a, of_b) = (lead(a), if fits { lead(&rows) } else { vec![] });
    let batch = Shape::from(of_a.clone()).broadcast(&of_b.into()).filter(|_| fits);
    assert!(b.dtype().is_float(), "linalg::{name}: the right-hand side {b:?} is not of floats; cast it");
    let Some(batch) = batch else {
        panic!("linalg::{name}: {a:?} and {b:?} do not fit ({what})");
    };
    let dtype = if a.dtype() == b.dtype() { a.dtype() } else { DType::F64 };
    let (a, rows) = (a.cast(dtype), rows.cast(dtype));
    let batch = batch.to_vec();
    let x = program(&[&a, &rows], &mut |x| {
        let (a, b) = (&x[0], &x[1]);
        if of_a.iter().all(|&len| len == 1) && !batch.is_empty() {
            return vec![of_one_matrix(&a.reshape([m, n]), b, solution)];
        }
        let a = a.broadcast_to([&batch[..], &[m, n]].concat());
        let b = b.broadcast_to([&batch[..], &b.shape()[b.rank() - 2..]].concat());
        vec![solution(&a, &b)]
    });
    let x = x.into_iter().next().expect("invariant: a solution");
    // One matrix, or several of batch axes of length 1, has a solution without the axes of b.
    let x = x.reshape([&batch[..], &[n, rows.shape()[rows.rank() - 1]]].concat());
    if is_vector { x.reshape(x.shape().without_axes(&[x.rank() - 1])) } else { x }
}

/// The solutions of systems with one matrix: the right-hand sides `[.., n, m]` become the columns of one system.
fn of_one_matrix(a: &Tensor, b: &Tensor, solution: Solution) -> Tensor {
    let last = b.rank() - 2;
    let forth: Vec<usize> = [last].into_iter().chain(0..last).chain([last + 1]).collect();
    let back: Vec<usize> = (1..=last).chain([0, last + 1]).collect();
    let wide = b.permute(&forth);
    let columns = wide.reshape([wide.shape()[0], wide.shape()[1..].iter().product()]);
    let x = solution(a, &columns);
    let shape = wide.shape().with_axis(0, x.shape()[0]);
    x.reshape(shape).permute(&back)
}
