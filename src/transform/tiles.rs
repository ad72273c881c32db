//! Derivatives of row tiles: tiles of the derivative of the body.
//!
//! The tangent of a row is a row, and the tangent of a shared value is shared. In reverse, the cotangent of a
//! sum over tiles is shared, and the cotangent of a shared value is a sum over tiles. The tiles of a vjp
//! recompute the primal values that they need; a separate pass (`merge`) merges them with the forward tiles
//! where possible.

use super::jvp::{JvpRule, jvp_into, or_zero};
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents};
use super::{TransformError, flow::node_flows};
use crate::graph::{Builder, Func, NodeId, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// The inputs of the derivative of a body: `row0, rowed..`, further rowed, `shared..`, further shared.
struct TileInputs {
    rowed: usize,
    shared: usize,
    extra_rowed: usize,
}

impl TileInputs {
    fn types(&self, body: &Func, rowed: Vec<Type>, shared: Vec<Type>) -> Vec<Type> {
        let mut types = body.input_types();
        let tail = types.split_off(1 + self.rowed);
        types.extend(rowed);
        types.extend(tail);
        types.extend(shared);
        types
    }

    /// Splits inputs into the body's own inputs, the further rowed inputs and the further shared inputs.
    /// `first` is 1 in a body, which has row0, and 0 for the operands of the node.
    fn split(&self, ids: &[NodeId], first: usize) -> (Vec<NodeId>, Vec<NodeId>, Vec<NodeId>) {
        let (own, rest) = ids.split_at(first + self.rowed);
        let (rowed, rest) = rest.split_at(self.extra_rowed);
        let (shared, extra) = rest.split_at(self.shared);
        ([own, shared].concat(), rowed.to_vec(), extra.to_vec())
    }
}

fn operands(t: &Tiles, x: &[NodeId], rowed: Vec<NodeId>, shared: Vec<NodeId>) -> Vec<NodeId> {
    let (own, rest) = x.split_at(t.num_rowed);
    [own, &rowed, rest, &shared].concat()
}

pub(super) fn jvp_tiles(b: &mut Builder, t: &Tiles, rule: &JvpRule) -> Tangents {
    let (rowed, shared): (Vec<usize>, Vec<usize>) =
        (0..rule.x.len()).filter(|&k| rule.dx[k].is_some()).partition(|&k| k < t.num_rowed);
    let outs: Vec<usize> = (0..t.outs.len()).filter(|&k| rule.active[k]).collect();
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
    let mut found = vec![None; t.outs.len()];
    outs.iter().enumerate().for_each(|(i, &k)| found[k] = Some(b.proj(all, i)));
    found
}

fn jvp_body(t: &Tiles, body: &Func, rowed: &[usize], shared: &[usize], outs: &[usize]) -> Func {
    let layout = TileInputs {
        rowed: t.num_rowed,
        shared: body.num_inputs() - 1 - t.num_rowed,
        extra_rowed: rowed.len(),
    };
    let of = |ks: &[usize]| ks.iter().map(|&k| body.input_type(1 + k).clone()).collect();
    let (mut b, ids) = Builder::with_inputs(&layout.types(body, of(rowed), of(shared)));
    let (x, d_rowed, d_shared) = layout.split(&ids, 1);
    let mut d = vec![None; x.len()];
    for (&k, id) in rowed.iter().chain(shared).zip(d_rowed.into_iter().chain(d_shared)) {
        d[1 + k] = Some(id);
    }
    let (values, tangents) = jvp_into(&mut b, body, &x, &d);
    let outputs: Vec<NodeId> = outs.iter().map(|&k| or_zero(&mut b, tangents[k], values[k])).collect();
    b.finish(&outputs)
}

pub(super) fn vjp_tiles(b: &mut Builder, t: &Tiles, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let flows = node_flows(rule.f, rule.node);
    let counts = |k: usize| flows.iter().zip(rule.g).any(|(s, g)| g.is_some() && s.contains(k));
    let wrt: Vec<usize> = (0..rule.x.len()).filter(|&k| rule.on[k] && counts(k)).collect();
    let (rowed, shared): (Vec<usize>, Vec<usize>) =
        (0..t.outs.len()).filter(|&o| rule.g[o].is_some()).partition(|&o| t.outs[o] == TileOut::Rows);
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
    let mut found = vec![None; rule.x.len()];
    wrt.iter().enumerate().for_each(|(i, &k)| found[k] = Some(b.proj(all, i)));
    Ok(found)
}

fn vjp_body(
    t: &Tiles,
    body: &Func,
    rowed: &[usize],
    shared: &[usize],
    wrt: &[usize],
) -> Result<Func, TransformError> {
    let layout = TileInputs {
        rowed: t.num_rowed,
        shared: body.num_inputs() - 1 - t.num_rowed,
        extra_rowed: rowed.len(),
    };
    let of = |ks: &[usize]| ks.iter().map(|&o| body.output_type(o).clone()).collect();
    let (mut b, ids) = Builder::with_inputs(&layout.types(body, of(rowed), of(shared)));
    let (x, g_rowed, g_shared) = layout.split(&ids, 1);
    let mut g = vec![None; t.outs.len()];
    for (&o, id) in rowed.iter().chain(shared).zip(g_rowed.into_iter().chain(g_shared)) {
        g[o] = Some(id);
    }
    let active: Vec<bool> = (0..x.len()).map(|k| k > 0 && wrt.contains(&(k - 1))).collect();
    let (_, found) = vjp_into(&mut b, body, &x, &active, &g)?;
    let outputs: Vec<NodeId> = wrt.iter().map(|&k| or_zero(&mut b, found[1 + k], x[1 + k])).collect();
    Ok(b.finish(&outputs))
}
