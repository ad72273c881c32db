//! Work that is done row by row: cut into tiles that run in parallel.

use super::trace::Check;
use super::{Tensor, Traced, align, apply, register_check, trace};
use crate::array::{DType, Shape};
use crate::graph::{Builder, Func, NodeId, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// Runs `f` on tiles of about `target` rows of `rows` (arrays of equal first axis), in parallel; a
/// tile's work runs on one thread from start to end.
///
/// `f` gets the rows of its tile and returns (row results, sums): the first are put one below the
/// other, the second are added up in tile order. Both work for gradients in either direction. The
/// cut follows from the shapes alone, so results do not depend on the number of threads. `f` must
/// treat rows independently, or accept that a tile is all it sees (an adaptive solve in `f` chooses
/// its steps for its tile).
///
/// # Panics
/// When there is no row, the first axes differ, or a row result has not the tile's rows.
///
/// # Examples
/// ```
/// use flowline::prelude::*;
/// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]);
/// let (squares, sums) = map_rows(&[x], 2, |x| (vec![x[0].square()], vec![x[0].sum()]));
/// assert_eq!((squares[0].to_vec(), sums[0].item()), (vec![1.0, 4.0, 9.0, 16.0], 10.0));
/// ```
#[track_caller]
pub fn map_rows(
    rows: &[Tensor],
    target: usize,
    f: impl Fn(&[Tensor]) -> (Vec<Tensor>, Vec<Tensor>),
) -> (Vec<Tensor>, Vec<Tensor>) {
    let n = rows.first().map_or(0, |x| x.shape()[0]);
    assert!(n > 0 && rows.iter().all(|x| x.shape()[0] == n), "map_rows: first axes must be equal and not 0");
    let tile = tile_rows(n, target);
    let main = body(rows, tile, &f);
    let tail = (!n.is_multiple_of(tile)).then(|| body(rows, n % tile, &f));
    let (mut bodies, captures) = align(&[&main].into_iter().chain(&tail).collect::<Vec<_>>());
    let (tail, func) = (tail.and_then(|_| bodies.pop()), bodies.remove(0));
    let (num_rows, num_sums) = main.aux;
    let num_checks = func.num_outputs() - num_rows - num_sums;
    let mut outs = vec![TileOut::Rows; num_rows];
    outs.extend(vec![TileOut::Sum; num_sums]);
    outs.extend(vec![TileOut::Rows; num_checks]);
    let tiles = Tiles { rows: n, tile, body: func, tail, num_rowed: rows.len(), outs };
    let mut results = tuple(Op::Tiles(Arc::new(tiles)), rows.iter().chain(&captures));
    for values in results.split_off(num_rows + num_sums) {
        register_check(Check { values });
    }
    let sums = results.split_off(num_rows);
    (results, sums)
}

/// Rows of a tile: balanced, at most about 5/4 of `target`, a divisor of `rows` if one lies near, and
/// at least two tiles from 32 rows on.
pub(crate) fn tile_rows(rows: usize, target: usize) -> usize {
    let tiles = rows.div_ceil(target).max(if rows >= 32 { 2 } else { 1 });
    let balanced = rows.div_ceil(tiles);
    let near = (balanced * 5 / 8).max(1)..=(balanced * 5 / 4).min(rows);
    near.rev().filter(|t| rows.is_multiple_of(*t)).min_by_key(|t| t.abs_diff(balanced)).unwrap_or(balanced)
}

fn body(
    rows: &[Tensor],
    tile: usize,
    f: &impl Fn(&[Tensor]) -> (Vec<Tensor>, Vec<Tensor>),
) -> Traced<(usize, usize)> {
    let mut types = vec![Type::scalar(DType::U32)];
    types.extend(rows.iter().map(|x| x.ty().with_shape(x.shape().with_axis(0, tile))));
    let mut traced = trace(&types, |x| {
        let (mut out, sums) = f(&x[1..]);
        assert!(
            out.iter().all(|y| y.rank() > 0 && y.shape()[0] == tile),
            "map_rows: a row result must have the tile's {tile} rows"
        );
        let counts = (out.len(), sums.len());
        out.extend(sums);
        (out, counts)
    });
    traced.func = spread_checks(&traced, tile);
    traced.num_outputs = traced.func.num_outputs();
    traced
}

/// Checks as row results: repeated over the tile's rows when they are of one row.
fn spread_checks(traced: &Traced<(usize, usize)>, tile: usize) -> Func {
    let f = &traced.func;
    let again = trace(&f.input_types(), |x| {
        let mut out = apply(f, x);
        for check in &mut out[traced.num_outputs..] {
            let worst = check.max_axes(&[0]).reshape(Shape::from([1, check.shape()[1]]));
            *check = worst.broadcast_to([tile, worst.shape()[1]]);
        }
        (out, ())
    });
    again.func
}

/// Applies an operation that gives a tuple; returns the arrays of the tuple, without its opaque values.
pub(crate) fn tuple<'a>(op: Op, args: impl Iterator<Item = &'a Tensor>) -> Vec<Tensor> {
    let args: Vec<Tensor> = args.cloned().collect();
    let (mut b, ids) = Builder::with_inputs(&args.iter().map(Tensor::ty).collect::<Vec<_>>());
    let node = b.push(op, &ids, None);
    let arrays: Vec<NodeId> =
        b.projections(node).into_iter().filter(|&p| matches!(b.ty(p), Type::Array { .. })).collect();
    apply(&b.finish(&arrays), &args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_balanced_and_at_least_two() {
        let got: Vec<usize> = [1, 31, 32, 100, 500, 1000, 1024, 4096].map(|n| tile_rows(n, 64)).to_vec();
        assert_eq!(got, [1, 31, 16, 50, 50, 50, 64, 64]);
        assert_eq!(tile_rows(997, 64), 63);
    }
}
