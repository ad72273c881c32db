//! Differentiable dependence between values.
//!
//! Only this module defines which values have derivatives with respect to which others: floats with respect
//! to floats, but not through `stop_gradient`, not through piecewise constants and not into schedules. The
//! dependence in a loop is the transitive closure of the dependence in its step. A carried value that does
//! not depend on the arguments is therefore not differentiated. Forward and reverse mode both use these
//! definitions and must not add their own.
//!
//! Each node has a set of inputs, not a single flag, because loops need to know which output depends on which
//! input. One pass over the function therefore answers all queries.

use crate::graph::{Cond, Custom, Func, Loop, Node, Op, Rev, Scan, Solve, Type, UnaryOp};

/// A set of small integers: inputs of a function, or operands of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    fn one(i: usize) -> Set {
        let mut s = Set::default();
        s.insert(i);
        s
    }

    pub(super) fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn contains(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    fn join(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    pub(super) fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..64 * self.0.len()).filter(|&i| self.contains(i))
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(items: I) -> Set {
        let mut s = Set::default();
        items.into_iter().for_each(|i| s.insert(i));
        s
    }
}

/// For each value of each node (one, or the values of a tuple), the inputs that it depends on.
pub(super) fn dependence(f: &Func) -> Vec<Vec<Set>> {
    let mut all: Vec<Vec<Set>> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        let values = match &node.op {
            Op::Input(k) if node.ty.is_float() => vec![Set::one(*k)],
            Op::Proj(k) => vec![all[node.args[0].index()][*k].clone()],
            _ => {
                let from = |args: &Set| {
                    let mut s = Set::default();
                    args.iter().for_each(|k| s.join(&all[node.args[k].index()][0]));
                    s
                };
                node_flows(f, node).iter().map(from).collect()
            }
        };
        all.push(values);
    }
    all
}

/// For each value of a node's result, the operands that it depends on; empty for `Proj`.
pub(super) fn node_flows(f: &Func, node: &Node) -> Vec<Set> {
    let floats = || (0..node.args.len()).filter(|&k| f.node(node.args[k]).ty.is_float());
    match &node.op {
        Op::Solve(s) => solve_flows(s),
        Op::Scan(s) => scan_flows(s),
        Op::Rev(r) => rev_flows(r),
        Op::Loop(l) => loop_flows(l),
        Op::Tiles(t) => {
            let mut of_outputs = output_dependence(&t.body);
            // The tail may read a shared operand that the body does not read.
            let of_tail = t.tail.iter().flat_map(output_dependence);
            of_outputs.iter_mut().zip(of_tail).for_each(|(body, tail)| body.join(&tail));
            of_outputs.iter().map(|s| s.iter().filter(|&k| k > 0).map(|k| k - 1).collect()).collect()
        }
        Op::Custom(c) => custom_flows(c),
        Op::Cond(c) => cond_flows(c),
        Op::StopGradient | Op::Unary(UnaryOp::Sign | UnaryOp::Floor) | Op::Proj(_) => vec![Set::default()],
        _ if !node.ty.is_float() => vec![Set::default()],
        _ => vec![floats().collect()],
    }
}

/// With a rule, every float result may depend on every float input, regardless of the body. An example is
/// rounding with the gradient of the identity.
fn custom_flows(c: &Custom) -> Vec<Set> {
    let results = (0..c.body.num_outputs()).map(|k| k < c.num_outs && c.body.output_type(k).is_float());
    if c.jvp.is_none() && c.vjp.is_none() {
        let flows = output_dependence(&c.body).into_iter().zip(results);
        return flows.map(|(set, on)| if on { set } else { Set::default() }).collect();
    }
    let all: Set = c.float_inputs().into_iter().collect();
    results.map(|on| if on { all.clone() } else { Set::default() }).collect()
}

/// The union of both branches; the predicate is operand 0.
fn cond_flows(c: &Cond) -> Vec<Set> {
    let both = output_dependence(&c.then).into_iter().zip(output_dependence(&c.otherwise));
    both.map(|(a, b)| a.iter().chain(b.iter()).map(|k| k + 1).collect()).collect()
}

/// For each output of a step, the inputs from `head` on that it depends on. The inputs before `head` are
/// flags and step times, which are data.
fn step_dependence(f: &Func, head: usize) -> Vec<Set> {
    output_dependence(f).iter().map(|s| s.iter().filter(|&k| k >= head).collect()).collect()
}

/// For each output of a function, the inputs that it depends on.
fn output_dependence(f: &Func) -> Vec<Set> {
    let all = dependence(f);
    f.outputs().iter().map(|o| all[o.index()].first().cloned().unwrap_or_default()).collect()
}

/// For each carry after any number of trips, then for each tap, the inputs of the step that it depends on.
fn carried(step: &Func, head: usize, num_carry: usize) -> Vec<Set> {
    let mut sets = step_dependence(step, head);
    for (j, s) in
        sets.iter_mut().take(num_carry).enumerate().filter(|(j, _)| step.input_type(head + j).is_float())
    {
        s.insert(head + j);
    }
    close(&mut sets, head, num_carry);
    sets
}

/// Transitive closure: `sets[j]` absorbs `sets[i]` if `sets[j]` contains `at + i`.
fn close(sets: &mut [Set], at: usize, n: usize) {
    loop {
        let before = sets.to_vec();
        for j in 0..sets.len() {
            for i in (0..n).filter(|i| before[j].contains(at + i)) {
                sets[j].join(&before[i]);
            }
        }
        if before == sets {
            return;
        }
    }
}

fn solve_flows(s: &Solve) -> Vec<Set> {
    let (first, head) = (s.first_carry(), s.head());
    let at = |k: usize| k - head + first + if k < head + s.num_carry { 0 } else { s.num_ext };
    let mut flows: Vec<Set> =
        carried(&s.step, head, s.num_carry).into_iter().map(|set| set.iter().map(at).collect()).collect();
    let taps = flows.split_off(s.num_carry);
    flows.extend((0..s.num_ext + 2).map(|_| Set::default()));
    flows.extend(taps);
    flows
}

pub(super) fn scan_flows(s: &Scan) -> Vec<Set> {
    let head = s.head();
    let carry = carried(&s.step, head, s.num_carry).into_iter();
    let carry = carry.map(|set| set.iter().map(|k| k - head + 1).collect());
    let mut flows: Vec<Set> = carry.collect();
    flows.insert(s.num_carry, Set::default());
    flows
}

/// A sequence of states depends on the same operands as the carry.
fn loop_flows(l: &Loop) -> Vec<Set> {
    let all = carried(&l.body, 4, l.num_carry).into_iter().map(|set| set.iter().map(|k| k - 3).collect());
    let mut flows: Vec<Set> = all.collect();
    let states = flows[..l.num_carry].to_vec();
    flows.splice(l.num_carry..l.num_carry, states);
    flows
}

fn rev_flows(r: &Rev) -> Vec<Set> {
    let head = r.head();
    backward(r).into_iter().map(|set| set.iter().map(|k| k - head + 2).collect()).collect()
}

/// For each output of a reverse loop, the inputs of its backward step that it depends on.
fn backward(r: &Rev) -> Vec<Set> {
    let head = r.head();
    let states = carried(&r.step, head, r.num_carry);
    let at = head + r.num_carry + r.num_captures();
    let mut sets = step_dependence(&r.bwd, head);
    (0..r.num_ct).for_each(|j| sets[j].insert(at + j));
    for set in &mut sets {
        let via: Vec<usize> = (0..r.num_carry).filter(|i| set.contains(head + i)).collect();
        for i in via {
            set.join(&states[i]);
        }
    }
    close(&mut sets, at, r.num_ct);
    sets
}

/// The operands of a node whose value depends on the inputs in `wrt`.
pub(super) fn active_args(node: &Node, all: &[Vec<Set>], wrt: &Set) -> Vec<bool> {
    let active = |id: &crate::graph::NodeId| all[id.index()].first().is_some_and(|s| s.meets(wrt));
    node.args.iter().map(active).collect()
}

/// The number of values of a node's result.
pub(super) fn num_values(ty: &Type) -> usize {
    match ty {
        Type::Tuple(types) => types.len(),
        _ => 1,
    }
}
