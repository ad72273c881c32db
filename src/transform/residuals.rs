//! What a backward trip would compute again although the forward trip did, named so that it can be kept.
//!
//! The derivative of a step starts with the step itself. Much of that the forward body has computed for the same
//! knots and the same state, by the same operations, hence to the same bits: the *residuals*. [`residuals`] finds
//! them, and cuts the backward body in two: [`Residuals::again`] makes them from the state, [`Residuals::backward`]
//! takes them. Who runs the loop decides trip by trip whether they are kept or made again; no value depends on it.
//!
//! It compares nodes and proves nothing by numbers: a value of the backward body is one of the forward body if the two
//! are the same operation on the same values, from the state, the knots and the captures up. That is why it runs on
//! finished bodies, whose constants and layouts are what they will be. Recording the residuals while a derivative is
//! taken would fix them before simplification, and put them into the signature of every loop and every rule for one.

use crate::graph::{Builder, Func, NodeId, Op, Rev, Scan, Solve, Type};
use std::collections::HashMap;

/// The bodies of a loop and of its backward pass, and what passes between them.
#[derive(Clone, Debug)]
pub struct Residuals {
    /// The attempt or the step of the loop, with the residuals behind its outputs.
    pub forward: Func,
    /// The residuals from the inputs of a step.
    pub again: Func,
    /// The body of the backward pass, with the residuals behind its inputs.
    pub backward: Func,
}

/// What the node `rev`, a backward pass, could take from the trips of the loop that filled its tape; nothing where the
/// loop is in lockstep (its attempts are not its rows' steps), or where all is as cheap to make as to fetch.
pub fn residuals(f: &Func, rev: NodeId) -> Option<Residuals> {
    let Op::Rev(r) = &f.node(rev).op else { return None };
    if r.rows().is_some() {
        return None;
    }
    let maker = *f.node(f.node(rev).args[1]).args.first()?;
    let pair = match &f.node(maker).op {
        Op::Solve(s) => Pair::of_solve(f, (s, maker), (r, rev)),
        Op::Scan(s) => Pair::of_scan(f, (s, maker), (r, rev)),
        _ => return None,
    };
    pair.split()
}

/// A value of a backward body among those of another function.
#[derive(Clone, Copy, PartialEq)]
enum Match {
    /// It depends on a cotangent.
    Cotangent,
    /// The other has no such value.
    Nowhere,
    At(NodeId),
}

impl Match {
    fn of(found: Option<NodeId>) -> Match {
        found.map_or(Match::Nowhere, Match::At)
    }

    fn at(self) -> Option<NodeId> {
        if let Match::At(id) = self { Some(id) } else { None }
    }
}

/// The values of a function, to be found by what they are.
struct Values<'a> {
    known: HashMap<(&'a Op, Vec<NodeId>, &'a Type), NodeId>,
    /// For each node the first one with its value.
    same: Vec<NodeId>,
}

impl<'a> Values<'a> {
    /// Those of `f`, of which some nodes are known to be others.
    fn of(f: &'a Func, known_as: impl Fn(NodeId) -> Option<NodeId>) -> Self {
        let mut known = HashMap::new();
        let mut same: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
        for (i, node) in f.nodes().iter().enumerate() {
            let args: Vec<NodeId> = node.args.iter().map(|a| same[a.index()]).collect();
            let id = NodeId(i as u32);
            same.push(match (known_as(id), &node.op) {
                (Some(other), _) => other,
                (None, Op::Observe(_)) => args[0],
                _ => *known.entry((&node.op, args, &node.ty)).or_insert(id),
            });
        }
        Values { known, same }
    }

    fn canonical(&self, id: Option<NodeId>) -> Option<NodeId> {
        id.map(|id| self.same[id.index()])
    }

    fn find(&self, op: &Op, args: Vec<NodeId>, ty: &Type) -> Option<NodeId> {
        self.known.get(&(op, args, ty)).copied()
    }
}

/// A forward body and a backward body, and which inputs of theirs are the same.
struct Pair<'a> {
    forward: &'a Func,
    r: &'a Rev,
    /// For each input of a step, the node of the forward body that has its value.
    inputs: Vec<Option<NodeId>>,
    /// The first knot, if a step takes it from there: an operation of a backward body without operands.
    start: Option<Op>,
    /// The last knot where it is the one aimed at: a node of the forward body.
    aim: Option<NodeId>,
    /// Further inputs of the forward body that are the knot before a trip.
    knots: Vec<NodeId>,
}

impl<'a> Pair<'a> {
    fn of_solve(f: &Func, (s, solve): (&'a Solve, NodeId), (r, rev): (&'a Rev, NodeId)) -> Pair<'a> {
        let (x, to) = (&f.node(solve).args, &f.node(rev).args);
        let (body, nc) = (&s.attempt, s.num_carry);
        let knot = body.inputs()[0];
        let (accept, next) = (body.outputs()[0], body.outputs()[3]);
        // What starts as the knot and goes on as the knot is the knot: a clock that the search carries.
        let carried =
            (nc..nc + s.num_ext).filter(|j| x[s.first_carry() + j] == x[1] && body.outputs()[4 + j] == next);
        let knots: Vec<NodeId> = carried.map(|j| body.inputs()[1 + j]).collect();
        // The knot where the attempt is accepted.
        let next = match (&body.node(next).op, &body.node(next).args[..]) {
            (Op::Select, [when, new, old]) if *when == accept && (*old == knot || knots.contains(old)) => {
                *new
            }
            _ => next,
        };
        let first_capture = s.first_carry() + nc + s.num_ext;
        let mut inputs = vec![None, None, Some(knot), Some(next)];
        inputs.extend((0..nc).map(|j| Some(body.inputs()[1 + j])));
        let captured = |id: &NodeId| x[first_capture..].iter().position(|c| c == id);
        let captures = &to[2 + nc..2 + nc + r.num_captures()];
        inputs.extend(captures.iter().map(|id| captured(id).map(|c| body.inputs()[1 + nc + s.num_ext + c])));
        // An accepted knot that may be the one aimed at chooses between that and others.
        let aim = match (&body.node(next).op, &body.node(next).args[..]) {
            (Op::Select, [_, aim, _]) => Some(*aim),
            _ => None,
        };
        let start = match &f.node(x[1]).op {
            op @ Op::Const(_) => Some(op.clone()),
            _ => captures.iter().position(|id| *id == x[1]).map(|c| Op::Input(4 + nc + c)),
        };
        Pair { forward: body, r, inputs, start, aim, knots }
    }

    fn of_scan(f: &Func, (s, scan): (&'a Scan, NodeId), (r, rev): (&'a Rev, NodeId)) -> Pair<'a> {
        let (x, to) = (&f.node(scan).args, &f.node(rev).args);
        let (body, nc) = (&s.step, s.num_carry);
        let mut inputs: Vec<_> = body.inputs()[..4 + nc].iter().map(|&id| Some(id)).collect();
        let captured = |id: &NodeId| x[1 + nc..].iter().position(|c| c == id);
        let captures = &to[2 + nc..2 + nc + r.num_captures()];
        inputs.extend(captures.iter().map(|id| captured(id).map(|c| body.inputs()[4 + nc + c])));
        Pair { forward: body, r, inputs, start: None, aim: None, knots: vec![] }
    }

    /// For each node of the backward body, the node of the forward body that has its value.
    fn matched(&self) -> Vec<Match> {
        let bwd = &self.r.bwd;
        let values =
            Values::of(self.forward, |id| self.knots.contains(&id).then(|| self.forward.inputs()[0]));
        let aim = values.canonical(self.aim);
        let mut all: Vec<Match> = Vec::with_capacity(bwd.nodes().len());
        let is = |id: NodeId, k: usize| id == bwd.inputs()[k];
        for node in bwd.nodes() {
            let own = match (&node.op, &node.args[..]) {
                (Op::Input(k), _) => {
                    self.inputs.get(*k).map_or(Match::Cotangent, |&id| Match::of(values.canonical(id)))
                }
                // Bodies are recorded one after the other, each with observers of its own.
                (Op::Observe(_), [x]) => all[x.index()],
                (_, args) if args.iter().any(|a| all[a.index()] == Match::Cotangent) => Match::Cotangent,
                // The knots of a step are those of the loop at either end too.
                (Op::Select, [flag, knot, t])
                    if is(*flag, 0) && is(*t, 2) && self.start.as_ref() == Some(&bwd.node(*knot).op)
                        || is(*flag, 1) && is(*t, 3) && aim.is_some() && all[knot.index()].at() == aim =>
                {
                    all[t.index()]
                }
                (op, args) => {
                    let args: Option<Vec<NodeId>> = args.iter().map(|a| all[a.index()].at()).collect();
                    Match::of(args.and_then(|args| values.find(op, args, &node.ty)))
                }
            };
            all.push(own);
        }
        all
    }

    fn split(&self) -> Option<Residuals> {
        let (bwd, matched) = (&self.r.bwd, self.matched());
        let kept = kept(bwd, &matched);
        if kept.is_empty() {
            return None;
        }
        let from: Vec<NodeId> = kept.iter().filter_map(|id| matched[id.index()].at()).collect();
        let outputs = [self.forward.outputs(), &from].concat();
        let forward = with_outputs(self.forward, &outputs);
        let types: Vec<Type> = kept.iter().map(|&id| bwd.node(id).ty.clone()).collect();
        Some(Residuals { forward, again: self.again(&kept), backward: taking(bwd, &kept, &types) })
    }

    /// The part of the backward body that makes what is kept.
    fn again(&self, kept: &[NodeId]) -> Func {
        let bwd = &self.r.bwd;
        let num = self.inputs.len();
        let (mut b, ids) = Builder::with_inputs(&bwd.input_types()[..num]);
        let mut map: Vec<Option<NodeId>> = Vec::with_capacity(bwd.nodes().len());
        for node in bwd.nodes() {
            let args: Option<Vec<NodeId>> = node.args.iter().map(|a| map[a.index()]).collect();
            map.push(match (&node.op, args) {
                (Op::Input(k), _) => ids.get(*k).copied(),
                (op, Some(args)) => Some(b.push(op.clone(), &args, Some(&node.ty))),
                (_, None) => None,
            });
        }
        let outputs: Vec<NodeId> = kept.iter().filter_map(|id| map[id.index()]).collect();
        b.finish(&outputs)
    }
}

/// `f` with other outputs.
fn with_outputs(f: &Func, outputs: &[NodeId]) -> Func {
    Func::new(f.nodes().to_vec(), f.inputs().to_vec(), outputs.to_vec())
}

/// `f` with the values of `kept` as further inputs.
fn taking(f: &Func, kept: &[NodeId], types: &[Type]) -> Func {
    let own = f.input_types();
    let (mut b, ids) = Builder::with_inputs(&[&own[..], types].concat());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let args: Vec<NodeId> = node.args.iter().map(|a| map[a.index()]).collect();
        let given = kept.iter().position(|id| id.index() == i);
        map.push(match (given, &node.op) {
            (Some(k), _) => ids[own.len() + k],
            // Whoever looks at what trips compute has seen it there.
            (None, Op::Observe(_)) => args[0],
            (None, Op::Input(k)) => ids[*k],
            (None, op) => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// Which values of a backward body are worth keeping, in the order of its nodes.
///
/// From what reads cotangents, down through what they need: a value that the forward body has, and that takes a product
/// or more to make, is kept as it is, for it lies in memory there anyway; what takes less is made of what is kept.
fn kept(bwd: &Func, matched: &[Match]) -> Vec<NodeId> {
    let nodes = bwd.nodes();
    let is_primal = |id: &NodeId| matched[id.index()] != Match::Cotangent;
    let mut is_hard = vec![false; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        is_hard[i] = is_hard_op(&node.op) || node.args.iter().any(|a| is_hard[a.index()]);
    }
    let (mut wanted, mut found) = (vec![false; nodes.len()], vec![]);
    bwd.outputs().iter().filter(|id| is_primal(id)).for_each(|id| wanted[id.index()] = true);
    for (i, node) in nodes.iter().enumerate().rev() {
        match matched[i] {
            Match::Cotangent => {
                node.args.iter().filter(|id| is_primal(id)).for_each(|id| wanted[id.index()] = true);
            }
            of if wanted[i] => {
                let is_array = matches!(node.ty, Type::Array { .. });
                if of.at().is_some() && is_hard[i] && is_array {
                    found.push(NodeId(i as u32));
                } else {
                    node.args.iter().for_each(|a| wanted[a.index()] = true);
                }
            }
            _ => {}
        }
    }
    found.reverse();
    let mut easy = vec![false; nodes.len()];
    found.iter().for_each(|id| easy[id.index()] = true);
    for (i, node) in nodes.iter().enumerate() {
        let is_input = matches!(node.op, Op::Input(_)) && matched[i] != Match::Cotangent;
        let is_made = !is_hard_op(&node.op) && node.args.iter().all(|a| easy[a.index()]);
        // Of two values of which each is easily made of the other the first one is kept.
        if easy[i] && is_made && is_hard[i] {
            found.retain(|id| id.index() != i);
        }
        easy[i] |= is_input || is_made && matched[i] != Match::Cotangent;
    }
    found
}

/// Whether an operation costs so much more than its result's way through memory that the result had better be kept.
fn is_hard_op(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot { .. }
            | Op::Conv { .. }
            | Op::ConvKernel { .. }
            | Op::RandomBits { .. }
            | Op::ScatterAdd
            | Op::Solve(_)
            | Op::Scan(_)
            | Op::Rev(_)
            | Op::Loop(_)
            | Op::Tiles(_)
            | Op::Custom(_)
            | Op::Cond(_)
    )
}
