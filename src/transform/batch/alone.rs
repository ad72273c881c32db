//! Runs each example alone: a part of a function becomes the body of tiles of one row.
//!
//! The steps of a search depend on its values, so several examples need several searches. The schedule and
//! the tape of a search are opaque and cannot leave their body. Every node over examples that depends on a
//! search therefore also runs alone. There are three reasons: reverse loops need the schedule; ordinary nodes
//! compute the cotangents between loops; and if the loss is computed inside the tiles, the tiles of its
//! gradient can merge with the tiles of the loss (`transform::merge_tiles`). Tiles cannot merge if a
//! cotangent needs an output of the first tiles. [`Marks`] determines the nodes that run alone. This module
//! emits them, and contains no rule of an op.

use super::{MappedValue, Marks, with_examples};
use crate::array::DType;
use crate::graph::{Builder, Func, NodeId, NodeIds, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// Up to this number of examples, there is one level of tiles. More examples become nested tiles, with about
/// as many outer tiles as inner tiles. The derivative with respect to shared values is a sum over tiles,
/// which stores a term for each tile: n terms, or 2 sqrt(n) terms with nested tiles. For 500 examples and
/// 18,448 parameters, these are 37 MB or 3.2 MB.
const FLAT: usize = 64;

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array { .. })
}

/// Emits the nodes in `alone` as tiles of one row, and records the values that other nodes read.
pub(super) fn emit(
    b: &mut Builder,
    f: &Func,
    alone: &[bool],
    marks: &Marks,
    n: usize,
    map: &mut [Option<MappedValue>],
) {
    let outs = read_outside(f, alone);
    if outs.is_empty() {
        return;
    }
    let inner = AloneBody::of(f, alone);
    let (rowed, shared): (Vec<NodeId>, Vec<NodeId>) =
        inner.inputs.iter().partition(|id| marks.any(id.index()));
    let body = inner.body(f, &rowed, &shared, &outs);
    let value = |id: &NodeId| map[id.index()].expect("invariant: the operands of a loop come before it").id;
    let x: Vec<NodeId> = rowed.iter().chain(&shared).map(value).collect();
    let all = b.push(Op::Tiles(Arc::new(tiles(body, rowed.len(), n))), &x, None);
    for (k, o) in outs.iter().enumerate() {
        map[o.index()] = Some(MappedValue { id: b.proj(all, k), on: true });
    }
}

/// Tiles that run `body`, which takes one row, for each of `n` rows.
fn tiles(body: Func, num_rowed: usize, n: usize) -> Tiles {
    let outs = vec![TileOut::Rows; body.num_outputs()];
    if n <= FLAT {
        return Tiles { rows: n, tile: 1, body, tail: None, num_rowed, outs };
    }
    let tile = n.isqrt();
    let tail = (!n.is_multiple_of(tile)).then(|| rows(&body, num_rowed, n % tile));
    Tiles { rows: n, tile, body: rows(&body, num_rowed, tile), tail, num_rowed, outs }
}

/// The body of outer tiles: it runs `body`, which takes one row, for each of its `n` rows.
fn rows(body: &Func, num_rowed: usize, n: usize) -> Func {
    let mut types = body.input_types();
    for ty in &mut types[1..=num_rowed] {
        *ty = ty.with_shape(ty.shape().with_axis(0, n));
    }
    let (mut b, x) = Builder::with_inputs(&types);
    let all = b.push(Op::Tiles(Arc::new(tiles(body.clone(), num_rowed, n))), &x[1..], None);
    let outputs = b.projections(all);
    b.finish(&outputs)
}

/// The arrays in `alone` that are outputs of `f` or operands of nodes that do not run alone.
fn read_outside(f: &Func, alone: &[bool]) -> Vec<NodeId> {
    let mut read = vec![false; f.nodes().len()];
    f.outputs().iter().for_each(|o| read[o.index()] = true);
    for (_, node) in f.nodes().iter().enumerate().filter(|(i, _)| !alone[*i]) {
        node.args.iter().for_each(|a| read[a.index()] = true);
    }
    let all = (0..f.nodes().len()).filter(|&i| alone[i] && read[i] && is_array(&f.nodes()[i].ty));
    all.map(|i| NodeId(i as u32)).collect()
}

/// The contents of a body: the nodes that run alone, and unmapped loops whose schedule or tape they read.
/// These loops run again for each example because schedules and tapes cannot be inputs.
struct AloneBody {
    inside: Vec<bool>,
    /// The arrays from outside that the body reads, in the order of their nodes.
    inputs: Vec<NodeId>,
}

impl AloneBody {
    fn of(f: &Func, alone: &[bool]) -> AloneBody {
        let (mut inside, mut read) = (alone.to_vec(), vec![false; alone.len()]);
        for (i, node) in f.nodes().iter().enumerate().rev() {
            if inside[i] {
                for a in &node.args {
                    inside[a.index()] |= !is_array(&f.node(*a).ty);
                    read[a.index()] = true;
                }
            }
        }
        let inputs = (0..alone.len()).filter(|&i| read[i] && !inside[i]).map(|i| NodeId(i as u32)).collect();
        AloneBody { inside, inputs }
    }

    /// (row0, rowed.., shared..) -> outs.., where rowed and outs have a leading axis of length 1.
    fn body(&self, f: &Func, rowed: &[NodeId], shared: &[NodeId], outs: &[NodeId]) -> Func {
        let ty = |id: &NodeId| f.node(*id).ty.clone();
        let mut types = vec![Type::scalar(DType::U32)];
        types.extend(rowed.iter().map(|id| with_examples(&ty(id), 1)));
        types.extend(shared.iter().map(ty));
        let (mut b, x) = Builder::with_inputs(&types);
        let mut map: Vec<Option<NodeId>> = vec![None; f.nodes().len()];
        for (k, id) in rowed.iter().enumerate() {
            map[id.index()] = Some(b.reshape(x[1 + k], ty(id).shape().clone()));
        }
        for (k, id) in shared.iter().enumerate() {
            map[id.index()] = Some(x[1 + rowed.len() + k]);
        }
        for (i, node) in f.nodes().iter().enumerate().filter(|(i, _)| self.inside[*i]) {
            let value = |a: &NodeId| map[a.index()].expect("invariant: a body is closed");
            let args: NodeIds = node.args.iter().map(value).collect();
            map[i] = Some(b.push(node.op.clone(), &args, Some(&node.ty)));
        }
        let mut row = |id: &NodeId| {
            let y = map[id.index()].expect("invariant: a body computes its outputs");
            b.reshape(y, with_examples(&ty(id), 1).shape().clone())
        };
        let outputs: Vec<NodeId> = outs.iter().map(&mut row).collect();
        b.finish(&outputs)
    }
}
