//! Loop-invariant code motion: moves computations that depend only on captures out of loop bodies.
//!
//! A body may run thousands of times on the same captures. Nodes that depend only on captures are computed
//! outside and become additional captures: products and functions of weights, random numbers from captured
//! keys, transposes. If a product uses a transposed capture, the capture is transposed once, outside, since
//! kernels read the other layout faster. Views and repetitions (broadcasts, reshapes, slices) stay in the
//! body: they are cheap there and would need memory outside.
//!
//! The backend cannot do this, because it sees one body at a time and cannot change the signature of a loop.
//! Moving views, too, would replace registers by memory traffic.

use super::bodies::{depending, rebuild};
use crate::graph::{Builder, Func, NodeId, NodeIds, Op, Policy, Replay, Solve, Tiles, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// The same function with loop-invariant computations moved out of bodies, innermost bodies first.
pub fn hoist(f: &Func) -> Func {
    rebuild(f, |b, op, x, ty| {
        let op = op.map_bodies(hoist);
        match &op {
            Op::Solve(s) => solve(b, s, x),
            Op::Replay(l) => replay(b, l, x),
            Op::Tiles(t) => tiles(b, t, x),
            _ => b.push(op, x, Some(ty)),
        }
    })
}

fn solve(b: &mut Builder, s: &Solve, x: &[NodeId]) -> NodeId {
    let mut operands = s.operands(x);
    let mut out = Outside::new(b, &operands.captures);
    let bodies = out.hoist(&[(&s.attempt, s.first_attempt_capture()), (&s.step, s.first_step_capture())]);
    let found = out.found;
    operands.captures.extend(found);
    let [attempt, step] = <[Func; 2]>::try_from(bodies).expect("invariant: as many as were given");
    // All derivatives have been taken, so the inverse is unused.
    let policy = without_inverse(s.policy);
    let smaller = Solve { attempt, step, inverse: None, policy, ..*s };
    b.search(smaller, operands)
}

fn replay(b: &mut Builder, l: &Replay, x: &[NodeId]) -> NodeId {
    let mut operands = l.operands(x);
    let mut out = Outside::new(b, &operands.captures);
    let of_step = l.step.iter().map(|step| (step, l.first_step_capture()));
    let bodies: Vec<(&Func, usize)> = of_step.chain([(&l.body, l.first_capture())]).collect();
    let mut bodies = out.hoist(&bodies);
    let found = out.found;
    operands.captures.extend(found);
    let body = bodies.pop().expect("invariant: as many as were given");
    let policy = without_inverse(l.policy);
    let smaller = Replay { body, step: bodies.pop(), inverse: None, policy, ..*l };
    b.replay(smaller, operands)
}

/// The policy of a loop without its inverse.
fn without_inverse(policy: Policy) -> Policy {
    if policy == Policy::Reversible { Policy::Forward } else { policy }
}

fn tiles(b: &mut Builder, t: &Tiles, x: &[NodeId]) -> NodeId {
    let mut out = Outside::new(b, &x[t.num_rowed..]);
    let mut bodies = vec![(&t.body, 1 + t.num_rowed)];
    bodies.extend(t.tail.as_ref().map(|tail| (tail, 1 + t.num_rowed)));
    let mut bodies = out.hoist(&bodies).into_iter();
    let body = bodies.next().expect("invariant: as many as were given");
    let operands = [x, &out.found].concat();
    let tiles = Tiles { body, tail: bodies.next(), outs: t.outs.clone(), ..*t };
    b.push(Op::Tiles(Arc::new(tiles)), &operands, None)
}

/// The function around bodies that share their captured operands.
struct Outside<'a> {
    b: &'a mut Builder,
    captures: &'a [NodeId],
    /// The values moved out: additional captures of the bodies.
    found: Vec<NodeId>,
}

impl<'a> Outside<'a> {
    fn new(b: &'a mut Builder, captures: &'a [NodeId]) -> Outside<'a> {
        Outside { b, captures, found: vec![] }
    }

    /// The bodies without the nodes that move out. Each body comes with the index of its first capture.
    fn hoist(&mut self, bodies: &[(&Func, usize)]) -> Vec<Func> {
        let moved: Vec<_> = bodies.iter().map(|(f, at)| self.moved(f, *at)).collect();
        let types: Vec<Type> = self.found.iter().map(|&id| self.b.ty(id).clone()).collect();
        let behind = |at: usize| at + self.captures.len();
        bodies.iter().zip(&moved).map(|((f, at), m)| without(f, behind(*at), &types, m)).collect()
    }

    /// Finds the nodes of a body that move out and inserts them outside; maps each moved value to its index in
    /// `found`.
    fn moved(&mut self, f: &Func, at: usize) -> HashMap<Hoisted, usize> {
        let captured = at..at + self.captures.len();
        let moves = depending(f, |k| !captured.contains(&k));
        // The nodes that depend only on captured inputs.
        let fixed: Vec<bool> = moves.iter().map(|moves| !moves).collect();
        let mut moved = HashMap::new();
        let mut outer: HashMap<NodeId, NodeId> = HashMap::new();
        for place in places(f, &fixed) {
            let mut id = self.bring_out(f, at, place.node, &mut outer);
            if place.turned {
                id = self.b.turn(id);
            }
            let k = self.found.iter().position(|&x| x == id).unwrap_or_else(|| {
                self.found.push(id);
                self.found.len() - 1
            });
            moved.insert(place, k);
        }
        moved
    }

    /// Copies an invariant node of a body, and the nodes that it reads, to the outside of the loop.
    fn bring_out(&mut self, f: &Func, at: usize, id: NodeId, outer: &mut HashMap<NodeId, NodeId>) -> NodeId {
        if let Some(&known) = outer.get(&id) {
            return known;
        }
        let node = f.node(id);
        let new = if let Op::Input(k) = node.op {
            self.captures[k - at]
        } else {
            let x: NodeIds = node.args.iter().map(|&a| self.bring_out(f, at, a, outer)).collect();
            self.b.push(node.op.clone(), &x, Some(&node.ty))
        };
        outer.insert(id, new);
        new
    }
}

/// A value of a body that comes from outside, directly or transposed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Hoisted {
    node: NodeId,
    turned: bool,
}

/// Whether an operation is as cheap in the body as reading its result would be.
fn is_view(op: &Op) -> bool {
    matches!(
        op,
        Op::Input(_)
            | Op::Const(_)
            | Op::Iota { .. }
            | Op::Broadcast { .. }
            | Op::Reshape
            | Op::Slice { .. }
            | Op::StopGradient
    )
}

/// The values that move out, in the order of the nodes.
fn places(f: &Func, fixed: &[bool]) -> Vec<Hoisted> {
    // Invariant nodes that a remaining node reads; a view remains in the body, so it is a reader too.
    let mut read = vec![false; f.nodes().len()];
    f.outputs().iter().for_each(|o| read[o.index()] = true);
    let mut turned = vec![false; f.nodes().len()];
    let mut straight = vec![false; f.nodes().len()];
    for i in (0..f.nodes().len()).rev() {
        let node = &f.nodes()[i];
        if fixed[i] && !(read[i] && is_view(&node.op)) {
            straight[i] = read[i] && matches!(node.ty, Type::Array { .. });
            continue;
        }
        for (k, a) in node.args.iter().enumerate() {
            if reads_turned(f, fixed, i, k) {
                turned[a.index()] = true;
            } else {
                read[a.index()] = true;
            }
        }
    }
    let place = |i: usize, turned: bool| Hoisted { node: NodeId(i as u32), turned };
    let all = 0..f.nodes().len();
    all.flat_map(|i| [(straight[i], false), (turned[i], true)].map(|(on, t)| on.then(|| place(i, t))))
        .flatten()
        .collect()
}

/// Whether node `i` is a product that varies, and its operand `k` an invariant matrix that it reads
/// transposed.
fn reads_turned(f: &Func, fixed: &[bool], i: usize, k: usize) -> bool {
    let node = &f.nodes()[i];
    let Op::Dot { ta, tb } = node.op else { return false };
    k == 1 && tb && !ta && !fixed[i] && fixed[node.args[1].index()]
}

/// A body with additional inputs of the given types from index `behind` on, which replace the moved values.
fn without(f: &Func, behind: usize, types: &[Type], moved: &HashMap<Hoisted, usize>) -> Func {
    let own = f.input_types();
    let (mut b, ids) = Builder::with_inputs(&[&own[..behind], types, &own[behind..]].concat());
    let extra = &ids[behind..behind + types.len()];
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let here = |turned| Hoisted { node: NodeId(i as u32), turned };
        let mut x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        if let Some(&k) = moved.get(&here(false)) {
            map.push(extra[k]);
            continue;
        }
        let mut op = node.op.clone();
        if let (Op::Dot { ta, tb: true }, [_, w]) = (&node.op, &node.args[..])
            && let Some(&k) = moved.get(&Hoisted { node: *w, turned: true })
        {
            op = Op::Dot { ta: *ta, tb: false };
            x[1] = extra[k];
        }
        map.push(match op {
            Op::Input(k) if k < behind => ids[k],
            Op::Input(k) => ids[k + types.len()],
            _ => b.push(op, &x, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}
