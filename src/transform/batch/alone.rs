//! Each example on its own: a part of a function as the body of tiles of one row.
//!
//! A search chooses its steps by the numbers it sees, so for several examples it is several searches. Its
//! schedule and its tape are opaque and cannot leave the body that made them. So from the first loop on,
//! whatever waits for it runs alone: reverse loops need the schedule, the cotangents between the two come
//! from ordinary nodes, and a loss that is finished inside lets the tiles of its gradient merge with its own
//! (`transform::merge_tiles`), which they cannot where a cotangent needs an output of the first. It knows
//! which nodes those are and no rule of any op.

use super::{Marks, Value, with_examples};
use crate::array::DType;
use crate::graph::{Builder, Func, NodeId, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// Up to this many examples are tiles side by side; more are tiles of tiles, about as many outside as
/// inside. The derivative by what examples share is a sum over tiles that keeps each tile's part: n parts,
/// or two times the root of n. At 500 examples of 18,448 parameters, 37 MB or 3.2.
const FLAT: usize = 64;

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array { .. })
}

/// Emits the nodes in `alone` as tiles of one row, and notes the values that others read.
pub(super) fn emit(
    b: &mut Builder,
    f: &Func,
    alone: &[bool],
    marks: &Marks,
    n: usize,
    map: &mut [Option<Value>],
) {
    let outs = read_outside(f, alone);
    if outs.is_empty() {
        return;
    }
    let inner = Inner::of(f, alone);
    let (rowed, shared): (Vec<NodeId>, Vec<NodeId>) =
        inner.inputs.iter().partition(|id| marks.any(id.index()));
    let body = inner.body(f, &rowed, &shared, &outs);
    let value = |id: &NodeId| map[id.index()].expect("invariant: what a loop reads comes first").id;
    let x: Vec<NodeId> = rowed.iter().chain(&shared).map(value).collect();
    let all = b.push(Op::Tiles(Arc::new(tiles(body, rowed.len(), n))), &x, None);
    for (k, o) in outs.iter().enumerate() {
        map[o.index()] = Some(Value { id: b.proj(all, k), on: true });
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

/// The body that runs `body`, which takes one row, for each of its `n` rows.
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

/// The arrays in `alone` that are outputs or operands of other nodes.
fn read_outside(f: &Func, alone: &[bool]) -> Vec<NodeId> {
    let mut read = vec![false; f.nodes().len()];
    f.outputs().iter().for_each(|o| read[o.index()] = true);
    for (_, node) in f.nodes().iter().enumerate().filter(|(i, _)| !alone[*i]) {
        node.args.iter().for_each(|a| read[a.index()] = true);
    }
    let all = (0..f.nodes().len()).filter(|&i| alone[i] && read[i] && is_array(&f.nodes()[i].ty));
    all.map(|i| NodeId(i as u32)).collect()
}

/// What a body contains: the nodes that run alone, and unmapped loops whose schedule or tape they read,
/// which run again for each example because neither can be handed in.
struct Inner {
    inside: Vec<bool>,
    /// Arrays from outside, in order.
    inputs: Vec<NodeId>,
}

impl Inner {
    fn of(f: &Func, alone: &[bool]) -> Inner {
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
        Inner { inside, inputs }
    }

    /// (row0, rowed.., shared..) -> outs.., all but the shared ones with an axis of length 1 in front.
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
            let args: Vec<NodeId> = node.args.iter().map(value).collect();
            map[i] = Some(b.push(node.op.clone(), &args, Some(&node.ty)));
        }
        let mut row = |id: &NodeId| {
            let y = map[id.index()].expect("invariant: a body computes what is read");
            b.reshape(y, with_examples(&ty(id), 1).shape().clone())
        };
        let outputs: Vec<NodeId> = outs.iter().map(&mut row).collect();
        b.finish(&outputs)
    }
}
