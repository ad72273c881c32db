//! Derivatives of row tiles: tiles of the derivative of the body.
//!
//! The tangent of a row is a row, and the tangent of a shared value is shared. In reverse, the cotangent of a
//! sum over tiles is shared, and the cotangent of a shared value is a sum over tiles. The tiles of a vjp
//! recompute the primal values that they need; a separate pass (`merge`) merges them with the forward tiles
//! where possible.

use super::jvp::{JvpRule, jvp_into, or_zero};
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents, TransformError, marked, placed, present};
use crate::graph::{Builder, Func, NodeId, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// A builder with the inputs of the derivative of a body: `row0, rowed..`, further rowed, `shared..`, further shared.
/// Returns the nodes of the body's own inputs, and those of the further ones.
fn with_more(
    t: &Tiles,
    body: &Func,
    rowed: impl Iterator<Item = Type>,
    shared: impl Iterator<Item = Type>,
) -> (Builder, Vec<NodeId>, Vec<NodeId>) {
    let mut b = Builder::new();
    let mut own = body.input_types();
    let own_shared = own.split_off(1 + t.num_rowed);
    let mut inputs = |types: Vec<Type>| types.into_iter().map(|ty| b.input(ty)).collect::<Vec<_>>();
    let (row, more) = (inputs(own), inputs(rowed.collect()));
    let (all, further) = (inputs(own_shared), inputs(shared.collect()));
    (b, [row, all].concat(), [more, further].concat())
}

fn operands(t: &Tiles, x: &[NodeId], rowed: Vec<NodeId>, shared: Vec<NodeId>) -> Vec<NodeId> {
    let (own, rest) = x.split_at(t.num_rowed);
    [own, &rowed, rest, &shared].concat()
}

pub(super) fn jvp_tiles(b: &mut Builder, t: &Tiles, rule: &JvpRule) -> Tangents {
    let (rowed, shared): (Vec<usize>, Vec<usize>) =
        present(rule.dx).into_iter().partition(|&k| k < t.num_rowed);
    let outs = marked(rule.active);
    let derive = |body: &Func| jvp_body(t, body, &rowed, &shared, &outs);
    let d = |ks: &[usize]| ks.iter().filter_map(|&k| rule.dx[k]).collect();
    let x = operands(t, rule.x, d(&rowed), d(&shared));
    let tiles = Tiles {
        rows: t.rows,
        tile: t.tile,
        body: derive(&t.body),
        tail: t.tail.as_ref().map(derive),
        num_rowed: t.num_rowed + rowed.len(),
        outs: outs.iter().map(|&k| t.outs[k]).collect(),
    };
    let all = b.push(Op::Tiles(Arc::new(tiles)), &x, None);
    placed(t.outs.len(), &outs, (0..).map(|i| b.proj(all, i)))
}

fn jvp_body(t: &Tiles, body: &Func, rowed: &[usize], shared: &[usize], outs: &[usize]) -> Func {
    let of = |k: &usize| body.input_type(1 + k).clone();
    let (mut b, x, further) = with_more(t, body, rowed.iter().map(of), shared.iter().map(of));
    let d = placed(x.len() - 1, &[rowed, shared].concat(), further);
    let (values, tangents) = jvp_into(&mut b, body, &x, &[&[None], &d[..]].concat());
    let outputs: Vec<NodeId> = outs.iter().map(|&k| or_zero(&mut b, tangents[k], values[k])).collect();
    b.finish(&outputs)
}

pub(super) fn vjp_tiles(b: &mut Builder, t: &Tiles, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let wrt = rule.wanted();
    let (rowed, shared): (Vec<usize>, Vec<usize>) =
        present(rule.g).into_iter().partition(|&o| t.outs[o] == TileOut::Rows);
    let g = |ks: &[usize]| ks.iter().filter_map(|&o| rule.g[o]).collect();
    let x = operands(t, rule.x, g(&rowed), g(&shared));
    let derive = |body: &Func| vjp_body(t, body, &rowed, &shared, &wrt);
    let tiles = Tiles {
        rows: t.rows,
        tile: t.tile,
        body: derive(&t.body)?,
        tail: t.tail.as_ref().map(derive).transpose()?,
        num_rowed: t.num_rowed + rowed.len(),
        outs: wrt.iter().map(|&k| if k < t.num_rowed { TileOut::Rows } else { TileOut::Sum }).collect(),
    };
    let all = b.push(Op::Tiles(Arc::new(tiles)), &x, None);
    Ok(placed(rule.x.len(), &wrt, (0..).map(|i| b.proj(all, i))))
}

fn vjp_body(
    t: &Tiles,
    body: &Func,
    rowed: &[usize],
    shared: &[usize],
    wrt: &[usize],
) -> Result<Func, TransformError> {
    let of = |o: &usize| body.output_type(*o).clone();
    let (mut b, x, further) = with_more(t, body, rowed.iter().map(of), shared.iter().map(of));
    let g = placed(t.outs.len(), &[rowed, shared].concat(), further);
    let active: Vec<bool> = (0..x.len()).map(|k| k > 0 && wrt.contains(&(k - 1))).collect();
    let (_, found) = vjp_into(&mut b, body, &x, &active, &g)?;
    let outputs: Vec<NodeId> = wrt.iter().map(|&k| or_zero(&mut b, found[1 + k], x[1 + k])).collect();
    Ok(b.finish(&outputs))
}
