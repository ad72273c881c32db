//! Each example on its own: a part of a function as the body of tiles of one row.
//!
//! A search chooses its steps by the numbers it sees, so for several examples it is several searches. Its
//! schedule and its tape are opaque and cannot leave the body that made them; a reverse loop needs both, and
//! the cotangents between the two come from ordinary nodes. So the part that runs alone is everything on a
//! way from one loop to another. It knows which nodes those are and no rule of any op.

use super::{Value, with_examples};
use crate::graph::{Builder, Func, NodeId, Op, TileOut, Tiles, Type};
use std::sync::Arc;

/// How the nodes of a function fall apart around its mapped loops.
pub(super) struct Parts {
    /// Mapped loops and tiles, and what lies between them.
    pub(super) alone: Vec<bool>,
    /// These, and what depends on them.
    pub(super) waits: Vec<bool>,
}

impl Parts {
    pub(super) fn of(f: &Func, on: &[bool]) -> Parts {
        let nodes = f.nodes();
        let mut waits = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            waits[i] = on[i] && (is_tuple(&node.ty) || node.args.iter().any(|a| waits[a.index()]));
        }
        let mut needed = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate().rev() {
            if needed[i] || (on[i] && is_tuple(&node.ty)) {
                node.args.iter().for_each(|a| needed[a.index()] = true);
            }
        }
        // the values of a tuple leave it one by one
        let taken = |i: usize| matches!(nodes[i].op, Op::Proj(_));
        let alone = (0..nodes.len()).map(|i| waits[i] && (needed[i] || is_tuple(&nodes[i].ty) || taken(i)));
        Parts { alone: alone.collect(), waits }
    }
}

fn is_tuple(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(_))
}

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array { .. })
}

/// Emits the nodes in `alone` as tiles of one row, and notes the values that others read.
pub(super) fn emit(
    b: &mut Builder,
    f: &Func,
    alone: &[bool],
    on: &[bool],
    n: usize,
    map: &mut [Option<Value>],
) {
    let outs = read_outside(f, alone);
    if outs.is_empty() {
        return;
    }
    let inner = Inner::of(f, alone);
    let (rowed, shared): (Vec<NodeId>, Vec<NodeId>) = inner.inputs.iter().partition(|id| on[id.index()]);
    let body = inner.body(f, &rowed, &shared, &outs);
    let tiles = Tiles {
        rows: n,
        tile: 1,
        body,
        tail: None,
        num_rowed: rowed.len(),
        outs: vec![TileOut::Rows; outs.len()],
    };
    let value = |id: &NodeId| map[id.index()].expect("invariant: what a loop reads comes first").id;
    let x: Vec<NodeId> = rowed.iter().chain(&shared).map(value).collect();
    let all = b.push(Op::Tiles(Arc::new(tiles)), &x, None);
    for (k, o) in outs.iter().enumerate() {
        map[o.index()] = Some(Value { id: b.proj(all, k), on: true });
    }
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
        let mut types = vec![Type::scalar(crate::array::DType::U32)];
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
