//! Row-wise computations, split into tiles that run in parallel.

use super::output::Output;
use super::trace::{Check, VERDICT};
use super::{Tensor, Traced, align, apply, trace, try_trace};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{
    Builder, Func, MAX_ROWS, NodeId, Op, SearchOperands, SearchValues, Solve, TileOut, Tiles, Type,
};
use std::sync::Arc;

/// Runs `f` on tiles of about `target` rows, in parallel. The arrays in `rows` must have equally long first
/// axes. Each tile runs on one thread from start to end.
///
/// `f` receives the rows of its tile and returns (row results, sums). The row results are concatenated, and
/// the sums are added in tile order. Derivatives exist in forward and reverse mode. The split depends only on
/// the number of rows and `target`, so results do not depend on the number of threads. The result for a row
/// can depend only on rows of the same tile: an adaptive solve in `f`, for example, chooses its steps per
/// tile.
///
/// # Errors
/// If `f` returns a `Result`: its error, or, on concrete tensors, a solve in `f` that ended early, with its
/// outcome. If an operand is traced, such a solve is an error of the call that runs the program.
///
/// # Panics
/// If there are no rows or more than 2^32, the first axes differ, `target` is 0, or a row result does not
/// have the tile's rows. If `f` does not return a `Result`, the cases under "Errors" panic.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::map_rows;
/// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]);
/// let (squares, sums) = map_rows(&[x], 2, |x| (vec![x[0].square()], vec![x[0].sum()]));
/// assert_eq!((squares[0].to_vec(), sums[0].item()), (vec![1.0, 4.0, 9.0, 16.0], 10.0));
/// ```
#[track_caller]
pub fn map_rows<R: Output<Tree = RowsAndSums>>(
    rows: &[Tensor],
    target: usize,
    f: impl Fn(&[Tensor]) -> R,
) -> R::Of<RowsAndSums> {
    R::answer(tiled(rows, target, &|x| f(x).into_result()))
}

/// Row results, and sums.
type RowsAndSums = (Vec<Tensor>, Vec<Tensor>);

#[track_caller]
fn tiled(
    rows: &[Tensor],
    target: usize,
    f: &dyn Fn(&[Tensor]) -> Result<RowsAndSums>,
) -> Result<RowsAndSums> {
    let n = rows.first().map_or(0, |x| x.shape()[0]);
    assert!(
        n > 0 && rows.iter().all(|x| x.shape()[0] == n),
        "map_rows: the first axes must be equally long and not empty"
    );
    assert!(target > 0, "map_rows: `target` is 0, but a tile needs at least one row");
    assert!(
        n <= MAX_ROWS,
        "map_rows: {n} rows exceed the limit of {MAX_ROWS}; split them into several calls"
    );
    let tile = tile_rows(n, target);
    let (main, (num_rows, num_sums)) = body(rows, tile, f)?;
    let tail = match n % tile {
        0 => None,
        rest => Some(body(rows, rest, f)?.0),
    };
    let (mut bodies, captures) = align(&[&main].into_iter().chain(&tail).collect::<Vec<_>>());
    let (tail, func) = (tail.and_then(|_| bodies.pop()), bodies.remove(0));
    let num_checks = func.num_outputs() - num_rows - num_sums;
    let mut outs = vec![TileOut::Rows; num_rows];
    outs.extend(vec![TileOut::Sum; num_sums]);
    outs.extend(vec![TileOut::Rows; num_checks]);
    let tiles = Tiles { rows: n, tile, body: func, tail, num_rowed: rows.len(), outs };
    let mut results = tuple(Op::Tiles(Arc::new(tiles)), rows.iter().chain(&captures));
    for values in results.split_off(num_rows + num_sums) {
        Check { values }.settle()?;
    }
    let sums = results.split_off(num_rows);
    Ok((results, sums))
}

/// The number of rows per tile: the rows are divided evenly among as few tiles of at most `target` rows as
/// possible. The closest divisor of `rows` between 5/8 and 5/4 of this number replaces it. From 32 rows on,
/// there are at least two tiles.
pub(crate) fn tile_rows(rows: usize, target: usize) -> usize {
    let tiles = rows.div_ceil(target).max(if rows >= 32 { 2 } else { 1 });
    let balanced = rows.div_ceil(tiles);
    let near = (balanced * 5 / 8).max(1)..=(balanced * 5 / 4).min(rows);
    near.rev().filter(|t| rows.is_multiple_of(*t)).min_by_key(|t| t.abs_diff(balanced)).unwrap_or(balanced)
}

/// Traces `f` for a tile. Also returns the number of its row results and the number of its sums.
fn body(
    rows: &[Tensor],
    tile: usize,
    f: &dyn Fn(&[Tensor]) -> Result<RowsAndSums>,
) -> Result<(Traced, (usize, usize))> {
    let mut types = vec![Type::scalar(DType::U32)];
    types.extend(rows.iter().map(|x| x.ty().with_shape(x.shape().with_axis(0, tile))));
    let mut counts = (0, 0);
    let Traced { func, captures, num_outputs } = try_trace(&types, &mut |x| {
        let (mut out, sums) = f(&x[1..])?;
        assert!(
            out.iter().all(|y| y.rank() > 0 && y.shape()[0] == tile),
            "map_rows: a row result must have the tile's {tile} rows"
        );
        counts = (out.len(), sums.len());
        out.extend(sums);
        Ok::<_, Error>(out)
    })?;
    let func = spread_checks(&func, num_outputs, tile);
    Ok((Traced { num_outputs: func.num_outputs(), func, captures }, counts))
}

/// Converts the checks of solves, the outputs from `first` on, to row results: each row of the tile receives
/// the worst row of the check.
fn spread_checks(f: &Func, first: usize, tile: usize) -> Func {
    let again = trace(&f.input_types(), &mut |x| {
        let mut out = apply(f, x);
        for check in &mut out[first..] {
            let mut worst = worst_row(check);
            if worst.shape()[1] > VERDICT {
                // Row numbers of the tile become row numbers of the batch.
                let row = &worst.column(VERDICT) + x[0].cast(DType::F64);
                worst = Tensor::concat(&[&worst.slice(1, 0..VERDICT), &row.reshape([1, 1])], 1);
            }
            *check = worst.broadcast_to([tile, worst.shape()[1]]);
        }
        out
    });
    again.func
}

/// The first row of a check with the highest status. The row is selected as a whole, because maxima of single
/// columns would mix the time of one solve with the step of another. There are several rows if a tile
/// contains tiles.
pub(super) fn worst_row(check: &Tensor) -> Tensor {
    let n = check.shape()[0];
    if n == 1 {
        return check.clone();
    }
    let (status, rows) = (check.column(0), Tensor::iota(DType::F64, [n], 0));
    let first = status.eq(status.max()).select(&rows, &Tensor::scalar(DType::F64, n as f64)).min();
    check.take_clamped(&first.reshape([1]))
}

/// The worst of a check with one row and of further checks, as one row.
pub(super) fn worst_check(check: Tensor, further: &[Tensor]) -> Tensor {
    let one = |check: &Tensor| check.slice(1, 0..VERDICT);
    let all: Vec<Tensor> = std::iter::once(check).chain(further.iter().map(one)).collect();
    worst_row(&Tensor::concat(&all, 0))
}

/// Applies an operation that returns a tuple; returns the arrays of the tuple, without its opaque values.
pub(crate) fn tuple<'a>(op: Op, args: impl Iterator<Item = &'a Tensor>) -> Vec<Tensor> {
    let args: Vec<Tensor> = args.cloned().collect();
    let (mut b, ids) = Builder::with_inputs(&args.iter().map(Tensor::ty).collect::<Vec<_>>());
    let node = b.push(op, &ids, None);
    let arrays: Vec<NodeId> =
        b.projections(node).into_iter().filter(|&p| matches!(b.ty(p), Type::Array { .. })).collect();
    apply(&b.finish(&arrays), &args)
}

/// Applies a search; returns its arrays by name, without its schedule and tape.
pub(crate) fn search(s: Solve, x: SearchOperands<Tensor>) -> SearchValues<Tensor> {
    let args = x.clone().join();
    let (mut b, ids) = Builder::with_inputs(&args.iter().map(Tensor::ty).collect::<Vec<_>>());
    let places = SearchValues { schedule: vec![], tape: vec![], ..s.places() };
    let node = b.search(s, x.like(&ids));
    let arrays = places.clone().map(|k| b.proj(node, k)).join();
    places.like(&apply(&b.finish(&arrays), &args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_by_a_scalar_counts_the_rows_of_a_shorter_last_tile() {
        let rows = Tensor::from([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let sum =
            |x: &Tensor| map_rows(std::slice::from_ref(&rows), 4, |y| (vec![&y[0] * x], vec![])).0[0].sum();
        let gradient = crate::tensor::grad(sum, &Tensor::from(0.5));
        assert_eq!(gradient.item(), 28.0);
    }

    #[test]
    fn tiles_are_balanced_and_at_least_two() {
        let got: Vec<usize> = [1, 31, 32, 100, 500, 1000, 1024, 4096].map(|n| tile_rows(n, 64)).to_vec();
        assert_eq!(got, [1, 31, 16, 50, 50, 50, 64, 64]);
        assert_eq!(tile_rows(997, 64), 63);
    }
}
