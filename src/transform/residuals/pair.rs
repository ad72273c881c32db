//! Matches a backward body with a forward body: finds the values of the backward body that the forward body
//! computes.
//!
//! Two nodes have the same value if they are the same operation on the same values. The loop that contains both
//! bodies determines which of their inputs are equal ([`crate::graph::loops`]); the match does not depend on
//! the purpose of the bodies.

use crate::graph::{BinaryOp, Builder, Func, NodeId, Op, Replay, Solve, TripInputs, Type, indices};
use std::collections::HashMap;

/// The match of a value of the backward body in another function.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Match {
    /// The value depends on a cotangent.
    Cotangent,
    /// The other function does not compute the value.
    Nowhere,
    At(NodeId),
}

impl Match {
    fn of(found: Option<NodeId>) -> Match {
        found.map_or(Match::Nowhere, Match::At)
    }

    pub fn at(self) -> Option<NodeId> {
        if let Match::At(id) = self { Some(id) } else { None }
    }
}

/// The nodes of a function, indexed by operation, values of the operands, and type.
struct ValueNumbers<'a> {
    known: HashMap<(&'a Op, Vec<NodeId>, &'a Type), NodeId>,
    /// For each node, the first node with the same value.
    same: Vec<NodeId>,
}

impl<'a> ValueNumbers<'a> {
    /// The values of `f`, whose inputs `step_times` equal its first input. If `accepted` is given, this flag
    /// is assumed to be true.
    fn of(f: &'a Func, step_times: &[NodeId], accepted: Option<NodeId>) -> Self {
        let mut known = HashMap::new();
        let mut same: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
        for (i, node) in f.nodes().iter().enumerate() {
            let args: Vec<NodeId> = node.args.iter().map(|a| same[a.index()]).collect();
            let id = NodeId(i as u32);
            same.push(match &node.op {
                _ if step_times.contains(&id) => f.inputs()[0],
                Op::Observe(_) => args[0],
                Op::Select if accepted == Some(flag(f, node.args[0])) => args[1],
                op => *known.entry((op, ordered(op, args), &node.ty)).or_insert(id),
            });
        }
        ValueNumbers { known, same }
    }

    fn canonical(&self, id: Option<NodeId>) -> Option<NodeId> {
        id.map(|id| self.same[id.index()])
    }

    fn find(&self, op: &Op, args: Vec<NodeId>, ty: &Type) -> Option<NodeId> {
        self.known.get(&(op, ordered(op, args), ty)).copied()
    }
}

/// Sorts the operands of commutative operations: simplification keeps their order within a body, but equal
/// values have different indices in the two bodies.
fn ordered(op: &Op, mut args: Vec<NodeId>) -> Vec<NodeId> {
    if let Op::Binary(op) = op
        && !matches!(op, BinaryOp::Sub | BinaryOp::Div)
    {
        args.sort();
    }
    args
}

/// The flag of which `mask` is a broadcast.
fn flag(f: &Func, mask: NodeId) -> NodeId {
    match &f.node(mask).op {
        Op::Broadcast { .. } | Op::Reshape => flag(f, f.node(mask).args[0]),
        _ => mask,
    }
}

fn is_input(f: &Func, id: NodeId, k: usize) -> bool {
    id == f.inputs()[k]
}

/// A forward body and a backward body, and which of their inputs are equal.
pub(super) struct Pair<'a> {
    pub forward: &'a Func,
    /// For each input of the backward body, the node of the forward body with the same value.
    inputs: Vec<Match>,
    /// The first step time, if it is a constant or a capture: the operation with which a backward body reads
    /// it.
    start: Option<Op>,
    /// The node of the forward body that is the last step time if the target is reached.
    aim: Option<NodeId>,
    /// Other inputs of the forward body that equal the step time before a trip.
    step_times: Vec<NodeId>,
    /// What an accepted attempt passes to the next trip; `None` if trips reuse no values of the previous
    /// trip.
    next: Option<Next>,
}

/// The values that an accepted attempt passes to the next one.
struct Next {
    accepted: NodeId,
    /// For each input of the next trip's backward body, the node of the forward body with the same value.
    inputs: Vec<Match>,
    /// For the values that only the search carries: their index, input and output.
    carried: Vec<(usize, NodeId, NodeId)>,
}

/// A value of the backward body that the search carries from trip to trip.
pub(super) struct Carried {
    pub value: NodeId,
    /// Its index among all values that the search carries.
    pub position: usize,
}

/// The matches of a backward body's values in the forward body.
pub(super) struct Matches {
    /// Matches with values of the same trip.
    pub now: Vec<Match>,
    /// Matches with values of the previous trip.
    pub before: Vec<Match>,
    /// Values matched with values that the search carries.
    pub carried: Vec<Carried>,
}

impl Matches {
    pub fn is_cotangent(&self, id: NodeId) -> bool {
        self.now[id.index()] == Match::Cotangent
    }

    /// Whether this trip or the previous trip has computed the value.
    pub fn has(&self, id: NodeId) -> bool {
        self.now[id.index()].at().or(self.before[id.index()].at()).is_some()
    }
}

/// For each capture of a backward pass, the input of the forward body that is the same capture.
fn captured(of_back: &[NodeId], of_forward: &[NodeId], inputs: &[NodeId]) -> Vec<Option<NodeId>> {
    let of = |id: &NodeId| of_forward.iter().position(|c| c == id).map(|c| inputs[c]);
    of_back.iter().map(of).collect()
}

/// The nodes of the forward body that equal the inputs of a backward body, given the step times and the state.
fn of_backward(
    l: &Replay,
    step_times: [Option<NodeId>; 2],
    state: &[NodeId],
    captured: &[Option<NodeId>],
) -> Vec<Match> {
    let all = l.inputs(&vec![Match::Cotangent; l.body.num_inputs()]);
    let trip = [None, None, step_times[0], step_times[1]].map(Match::of).to_vec();
    let states = state.iter().map(|&id| Match::At(id)).collect();
    let captures = captured.iter().map(|&id| Match::of(id)).collect();
    TripInputs { trip, states, captures, ..all }.join()
}

impl<'a> Pair<'a> {
    pub fn of_solve(f: &Func, (s, solve): (&'a Solve, NodeId), (l, back): (&Replay, NodeId)) -> Pair<'a> {
        let (x, to) = (s.operands(&f.node(solve).args), l.operands(&f.node(back).args));
        let body = &s.attempt;
        let (takes, gives) = (s.attempt_inputs(body.inputs()), s.attempt_outputs(body.outputs()));
        let (step_time, start) = (takes.step_time[0], x.step_time[0]);
        let (accepted, next) = (gives.verdict[0], gives.step_time[0]);
        // A carried value that starts as the step time and is updated to each new step time always equals it.
        let equal = (0..s.num_ext).filter(|&j| x.ext[j] == start && gives.ext[j] == next);
        let step_times: Vec<NodeId> = equal.map(|j| takes.ext[j]).collect();
        // The step time if the attempt is accepted.
        let next = match (&body.node(next).op, &body.node(next).args[..]) {
            (Op::Select, [when, new, old])
                if *when == accepted && (*old == step_time || step_times.contains(old)) =>
            {
                *new
            }
            _ => next,
        };
        let captured = captured(&to.captures, &x.captures, &takes.captures);
        let inputs = of_backward(l, [Some(step_time), Some(next)], &takes.carry, &captured);
        let num_carry = takes.carry.len();
        let carried = takes.ext.iter().zip(&gives.ext).enumerate();
        let trip_behind = Next {
            accepted,
            inputs: of_backward(l, [Some(next), None], &gives.carry, &captured),
            carried: carried.map(|(j, (&input, &output))| (num_carry + j, input, output)).collect(),
        };
        // If an accepted step may end at the target, its step time is a select between the target and another
        // time.
        let aim = match (&body.node(next).op, &body.node(next).args[..]) {
            (Op::Select, [_, aim, _]) => Some(*aim),
            _ => None,
        };
        let start = if let op @ Op::Const(_) = &f.node(start).op {
            Some(op.clone())
        } else {
            let at = l.inputs(&indices(l.body.num_inputs())).captures;
            to.captures.iter().position(|id| *id == start).map(|c| Op::Input(at[c]))
        };
        Pair { forward: body, inputs, start, aim, step_times, next: Some(trip_behind) }
    }

    pub fn of_replay(
        f: &Func,
        (forward, maker): (&'a Replay, NodeId),
        (l, back): (&Replay, NodeId),
    ) -> Pair<'a> {
        let (x, to) = (forward.operands(&f.node(maker).args), l.operands(&f.node(back).args));
        let body = &forward.body;
        let takes = forward.inputs(body.inputs());
        let captured = captured(&to.captures, &x.captures, &takes.captures);
        let mut inputs = of_backward(l, [takes.trip[2], takes.trip[3]].map(Some), &takes.carry, &captured);
        let at = l.inputs(&indices(l.body.num_inputs())).trip;
        at.iter().zip(&takes.trip).for_each(|(&k, &id)| inputs[k] = Match::At(id));
        Pair { forward: body, inputs, start: None, aim: None, step_times: vec![], next: None }
    }

    /// Computes values of a backward body for the first trip from the inputs of the forward body. Later trips
    /// reuse these values from the previous trip. The values therefore depend only on the first step time, on
    /// the state and on captures of the forward body.
    pub fn at_first(&self, bwd: &Func, values: &[NodeId]) -> Func {
        let own = self.forward.inputs();
        let (mut b, ids) = Builder::with_inputs(&self.forward.input_types());
        let mut map: Vec<Option<NodeId>> = Vec::with_capacity(bwd.nodes().len());
        for node in bwd.nodes() {
            let args: Option<Vec<NodeId>> = node.args.iter().map(|a| map[a.index()]).collect();
            map.push(match (&node.op, &node.args[..], args) {
                (Op::Input(k), ..) => {
                    let input = self.inputs[*k].at();
                    input.and_then(|id| own.iter().position(|o| *o == id)).map(|k| ids[k])
                }
                // The observer was called with this value before the search began.
                (Op::Observe(_), [x], _) => map[x.index()],
                (Op::Select, [flag, _, t], _) if is_input(bwd, *flag, 0) && is_input(bwd, *t, 2) => {
                    map[t.index()]
                }
                (op, _, Some(args)) => Some(b.push(op.clone(), &args, Some(&node.ty))),
                (_, _, None) => None,
            });
        }
        let outputs: Vec<NodeId> = values.iter().filter_map(|id| map[id.index()]).collect();
        b.finish(&outputs)
    }

    /// Finds the matches of all values of a backward body.
    pub fn find(&self, bwd: &Func) -> Matches {
        let values = ValueNumbers::of(self.forward, &self.step_times, None);
        let now = self.matched(bwd, &values, &self.inputs, &[]);
        let Some(next) = &self.next else {
            return Matches { before: vec![Match::Nowhere; now.len()], now, carried: vec![] };
        };
        let at_end = ValueNumbers::of(self.forward, &self.step_times, Some(next.accepted));
        let before = self.matched(bwd, &at_end, &next.inputs, &[]);
        let (mut carried, mut known) = (vec![], vec![]);
        for &(position, input, output) in &next.carried {
            let output = at_end.canonical(Some(output));
            let is_it = |i: &usize| now[*i] == Match::Nowhere && before[*i].at() == output;
            if let Some(i) = (0..now.len()).find(is_it).filter(|_| output != at_end.canonical(Some(input))) {
                known.push((NodeId(i as u32), input));
                carried.push(Carried { value: NodeId(i as u32), position });
            }
        }
        if carried.is_empty() {
            return Matches { now, before: vec![Match::Nowhere; before.len()], carried };
        }
        let mut now = self.matched(bwd, &values, &self.inputs, &known);
        // These values are stored with the residuals of the previous trip, not of this trip.
        known.iter().for_each(|(value, _)| now[value.index()] = Match::Nowhere);
        Matches { now, before, carried }
    }

    /// For each node of the backward body, the node of the forward body with the same value, given that its
    /// inputs match `inputs` and that the nodes in `known` match.
    fn matched(
        &self,
        bwd: &Func,
        values: &ValueNumbers<'_>,
        inputs: &[Match],
        known: &[(NodeId, NodeId)],
    ) -> Vec<Match> {
        let aim = values.canonical(self.aim);
        let mut all: Vec<Match> = Vec::with_capacity(bwd.nodes().len());
        let is = |id: NodeId, k: usize| is_input(bwd, id, k);
        for (i, node) in bwd.nodes().iter().enumerate() {
            let own = match (&node.op, &node.args[..]) {
                _ if known.iter().any(|(id, _)| id.index() == i) => {
                    Match::of(known.iter().find(|(id, _)| id.index() == i).map(|(_, input)| *input))
                }
                (Op::Input(k), _) => match inputs[*k] {
                    Match::At(id) => Match::of(values.canonical(Some(id))),
                    other => other,
                },
                // Each body has been recorded with its own observers, so observers are matched through their
                // operand.
                (Op::Observe(_), [x]) => all[x.index()],
                (_, args) if args.iter().any(|a| all[a.index()] == Match::Cotangent) => Match::Cotangent,
                // The first step starts at the start of the loop, and the last step ends at the target.
                (Op::Select, [flag, step_time, t])
                    if is(*flag, 0) && is(*t, 2) && self.start.as_ref() == Some(&bwd.node(*step_time).op)
                        || is(*flag, 1)
                            && is(*t, 3)
                            && aim.is_some()
                            && all[step_time.index()].at() == aim =>
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
}
