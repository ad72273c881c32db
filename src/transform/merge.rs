//! Merges tiles over the same rows, so that common values are computed once.
//!
//! The tiles of a gradient repeat the primal computation. To merge two tiles, both bodies are inlined into
//! one builder, where operands that are the same value outside become one input. Equal nodes then merge; such
//! a node may be a whole solve. Two tiles can merge unless one of them needs an output of the other. If the
//! cotangents are constants, the tiles of a gradient need no output of the primal tiles.
//!
//! The derivative rule cannot do this: it sees one node, and only the program shows whether the cotangents depend on
//! outputs of the primal tiles. Residuals cannot do it either: they would leave the tiles, which would then store the
//! values of all rows, and tapes cannot leave a body.

use crate::graph::{Builder, Func, Node, NodeId, NodeIds, Op, Tiles, Type};
use std::sync::Arc;

/// The same function with every group of tiles that can run together merged.
pub fn merge_tiles(f: &Func) -> Func {
    let mut f = f.clone();
    while let Some((first, second)) = pair(&f) {
        f = merged(&f, first, second);
    }
    f
}

fn tiles_of(node: &Node) -> Option<&Tiles> {
    match &node.op {
        Op::Tiles(t) => Some(t),
        _ => None,
    }
}

/// Two tiles over the same rows, neither of which needs an output of the other.
fn pair(f: &Func) -> Option<(usize, usize)> {
    let all: Vec<usize> = (0..f.nodes().len()).filter(|&i| tiles_of(&f.nodes()[i]).is_some()).collect();
    for (n, &first) in all.iter().enumerate() {
        let cut = |i: usize| tiles_of(&f.nodes()[i]).map(|t| (t.rows, t.tile));
        let alike: Vec<usize> = all[n + 1..].iter().copied().filter(|&i| cut(i) == cut(first)).collect();
        if alike.is_empty() {
            continue;
        }
        let after = dependents(f, first);
        if let Some(second) = alike.into_iter().find(|&i| !after[i]) {
            return Some((first, second));
        }
    }
    None
}

/// Which nodes depend on node `of`.
fn dependents(f: &Func, of: usize) -> Vec<bool> {
    let mut needs = vec![false; f.nodes().len()];
    needs[of] = true;
    for (i, node) in f.nodes().iter().enumerate().skip(of + 1) {
        needs[i] = node.args.iter().any(|a| needs[a.index()]);
    }
    needs
}

/// `f` with two of its tiles merged into one node, which comes after the operands of both.
fn merged(f: &Func, first: usize, second: usize) -> Func {
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    let later = dependents(f, first);
    let mut map: Vec<Option<NodeId>> = vec![None; f.nodes().len()];
    let insert = |b: &mut Builder, map: &mut Vec<Option<NodeId>>, i: usize| {
        let node = &f.nodes()[i];
        let x: NodeIds = node.args.iter().map(|a| at(map, a.index())).collect();
        map[i] = Some(match node.op {
            Op::Input(k) => ids[k],
            _ => b.push(node.op.clone(), &x, Some(&node.ty)),
        });
    };
    for i in (0..second).filter(|&i| !later[i]) {
        insert(&mut b, &mut map, i);
    }
    let operands = |i: usize| f.nodes()[i].args.iter().map(|a| at(&map, a.index())).collect::<Vec<_>>();
    let (x, y) = (operands(first), operands(second));
    let parts = |i: usize| tiles_of(&f.nodes()[i]).expect("invariant: tiles were found here");
    let (tiles, operands) = join(parts(first), &x, parts(second), &y);
    let shift = tiles.outs.len() - parts(second).outs.len();
    let both = b.push(Op::Tiles(Arc::new(tiles)), &operands, None);
    for i in (0..f.nodes().len()).filter(|&i| i != first && i != second && (later[i] || i > second)) {
        let node = &f.nodes()[i];
        match (&node.op, node.args.first().map(|a| a.index())) {
            (Op::Proj(k), Some(of)) if of == first => map[i] = Some(b.proj(both, *k)),
            (Op::Proj(k), Some(of)) if of == second => map[i] = Some(b.proj(both, shift + k)),
            _ => insert(&mut b, &mut map, i),
        }
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| at(&map, o.index())).collect();
    b.finish(&outputs)
}

fn at(map: &[Option<NodeId>], i: usize) -> NodeId {
    map[i].expect("invariant: operands are inserted before their users")
}

/// Merges two tiles; operands that are the same value become one input.
fn join(p: &Tiles, x: &[NodeId], q: &Tiles, y: &[NodeId]) -> (Tiles, Vec<NodeId>) {
    let union = |a: &[NodeId], c: &[NodeId]| {
        let mut all = a.to_vec();
        all.extend(c.iter().filter(|id| !a.contains(id)));
        all
    };
    let (x_rowed, x_shared) = x.split_at(p.num_rowed);
    let (y_rowed, y_shared) = y.split_at(q.num_rowed);
    // If an operand occurs twice in a list, both occurrences get the index of the first.
    let (rowed, shared) = (union(x_rowed, y_rowed), union(x_shared, y_shared));
    let find =
        |all: &[NodeId], id: NodeId| all.iter().position(|&a| a == id).expect("invariant: in the union");
    let body = |f: &Func, g: &Func| {
        // Operands of both tiles have the types that the first body gives them.
        let further = |own: &[NodeId], others: &[NodeId], at: usize| -> Vec<Type> {
            let new = (0..others.len()).filter(|&k| !own.contains(&others[k]));
            new.map(|k| g.input_type(at + k).clone()).collect()
        };
        let mut types = f.input_types();
        let of_shared = types.split_off(1 + p.num_rowed);
        types.extend(further(x_rowed, y_rowed, 1));
        types.extend(of_shared);
        types.extend(further(x_shared, y_shared, 1 + q.num_rowed));
        let (mut b, ids) = Builder::with_inputs(&types);
        let inputs = |rows: &[NodeId], whole: &[NodeId]| {
            let mut args = vec![ids[0]];
            args.extend(rows.iter().map(|&id| ids[1 + find(&rowed, id)]));
            args.extend(whole.iter().map(|&id| ids[1 + rowed.len() + find(&shared, id)]));
            args
        };
        let mut outputs = b.inline(f, &inputs(x_rowed, x_shared));
        outputs.extend(b.inline(g, &inputs(y_rowed, y_shared)));
        // Tiles inside the bodies merge, too.
        merge_tiles(&b.finish(&outputs))
    };
    let tail = p.tail.as_ref().zip(q.tail.as_ref()).map(|(f, g)| body(f, g));
    let outs = [&p.outs[..], &q.outs].concat();
    let tiles = Tiles { body: body(&p.body, &q.body), tail, num_rowed: rowed.len(), outs, ..*p };
    (tiles, [rowed, shared].concat())
}
