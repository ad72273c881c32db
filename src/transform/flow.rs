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

use super::set::Set;
use crate::graph::{
    Cond, Custom, FactorOp, Func, LineOp, Node, Op, Replay, ReplayValues, ScalarFn, SearchValues, Solve,
    TripOutputs, Type, UnaryOp, indices,
};

/// For each value of each node (one, or the values of a tuple), the inputs that it depends on.
pub(super) fn dependence(f: &Func) -> Vec<Vec<Set>> {
    let mut all: Vec<Vec<Set>> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        let values = match &node.op {
            Op::Input(k) if has_derivative(&node.ty) => vec![Set::one(*k)],
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

/// Whether an output of a function has a derivative with respect to input k.
pub fn depends_on(f: &Func, k: usize) -> bool {
    output_dependence(f).iter().any(|set| set.contains(k))
}

/// Whether values of this type have derivatives.
fn has_derivative(ty: &Type) -> bool {
    ty.is_float() || matches!(ty, Type::Sequence { dtype, .. } if dtype.is_float())
}

/// For each value of a node's result, the operands that it depends on; empty for `Proj`.
pub(super) fn node_flows(f: &Func, node: &Node) -> Vec<Set> {
    let floats = || (0..node.args.len()).filter(|&k| f.node(node.args[k]).ty.is_float());
    match &node.op {
        Op::Solve(s) => solve_flows(s),
        Op::Replay(l) => replay_flows(l),
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
        Op::Scalar(ScalarFn::Round) | Op::Lines(LineOp::CumMax) => vec![Set::default()],
        Op::Scalar(ScalarFn::Polygamma) => vec![[1].into_iter().collect()],
        // Their derivatives are rules of `tensor::linalg`.
        Op::Factor(FactorOp::Cholesky | FactorOp::Qr | FactorOp::Eigh) => vec![Set::default()],
        // The derivative of a solution is one by the matrix, not by its factors.
        Op::LuSolve { .. } => vec![[1, 2].into_iter().collect()],
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

/// For each output of a function, the inputs that it depends on.
fn output_dependence(f: &Func) -> Vec<Set> {
    let all = dependence(f);
    f.outputs().iter().map(|o| all[o.index()].first().cloned().unwrap_or_default()).collect()
}

/// For each output of a body after any number of trips, the operands that it depends on. `carry` has the input and
/// the operand of each carried value; `of_input` has the operands on which each input depends in the first trip.
/// Flags and step times are data.
fn after_trips(body: &Func, carry: &[(usize, usize)], of_input: &[Set]) -> Vec<Set> {
    let inputs = output_dependence(body);
    let mut sets: Vec<Set> = inputs.iter().map(|set| joined(set.iter().map(|k| &of_input[k]))).collect();
    for (set, &(input, operand)) in sets.iter_mut().zip(carry) {
        if body.input_type(input).is_float() {
            set.insert(operand);
        }
    }
    // Transitive closure: an output absorbs the carried values that the body reads for it.
    loop {
        let before = sets.clone();
        for (set, inputs) in sets.iter_mut().zip(&inputs) {
            for (of_carry, _) in before.iter().zip(carry).filter(|(_, (input, _))| inputs.contains(*input)) {
                set.join(of_carry);
            }
        }
        if before == sets {
            return sets;
        }
    }
}

fn joined<'a>(sets: impl Iterator<Item = &'a Set>) -> Set {
    let mut all = Set::default();
    sets.for_each(|set| all.join(set));
    all
}

/// A set for each input of a body: the operand of the same name, none for the others.
fn of_inputs(num: usize, pairs: &[(&[usize], &[usize])]) -> Vec<Set> {
    let mut all = vec![Set::default(); num];
    for (inputs, operands) in pairs {
        inputs.iter().zip(*operands).for_each(|(&input, &operand)| all[input].insert(operand));
    }
    all
}

fn pairs(inputs: &[usize], operands: &[usize]) -> Vec<(usize, usize)> {
    inputs.iter().copied().zip(operands.iter().copied()).collect()
}

fn solve_flows(s: &Solve) -> Vec<Set> {
    let (inputs, operands) =
        (s.step_inputs(&indices(s.step.num_inputs())), s.operands(&indices(s.num_operands())));
    let of_input = of_inputs(
        s.step.num_inputs(),
        &[(&inputs.carry, &operands.carry), (&inputs.captures, &operands.captures)],
    );
    let sets = after_trips(&s.step, &pairs(&inputs.carry, &operands.carry), &of_input);
    let TripOutputs { carry, taps: tapped, .. } = s.step_outputs(&sets);
    let none = |n: usize| vec![Set::default(); n];
    SearchValues { carry, ext: none(s.num_ext), schedule: none(1), tape: none(1), tapped }.join()
}

fn positions(l: &Replay) -> crate::graph::ReplayOperands<usize> {
    let num_tape = usize::from(l.reads_states());
    let num = 1 + num_tape + l.num_states + l.num_carry + l.num_xs + l.num_captures() + l.num_rows;
    l.operands(&indices(num))
}

/// For each value of the states that a loop reads, the operands that it depends on.
pub(super) fn state_flows(l: &Replay) -> Vec<Set> {
    let Some(step) = &l.step else { return vec![] };
    let (inputs, operands) = (l.step_inputs(&indices(step.num_inputs())), positions(l));
    let of_input = of_inputs(
        step.num_inputs(),
        &[
            (&inputs.carry, &operands.states),
            (&inputs.captures, &operands.captures),
            (&inputs.rows, &operands.rows),
        ],
    );
    let sets = after_trips(step, &pairs(&inputs.carry, &operands.states), &of_input);
    l.step_outputs(&sets).carry
}

/// A sequence of states depends on the same operands as the carry.
fn replay_flows(l: &Replay) -> Vec<Set> {
    let (inputs, operands) = (l.inputs(&indices(l.body.num_inputs())), positions(l));
    let mut of_input = of_inputs(
        l.body.num_inputs(),
        &[
            (&inputs.carry, &operands.carry),
            (&inputs.xs, &operands.xs),
            (&inputs.captures, &operands.captures),
            (&inputs.rows, &operands.rows),
        ],
    );
    inputs.states.iter().zip(state_flows(l)).for_each(|(&k, set)| of_input[k] = set);
    let sets = after_trips(&l.body, &pairs(&inputs.carry, &operands.carry), &of_input);
    let of = l.outputs(&sets);
    let states = if l.lockstep().is_some() { vec![] } else { of.carry.clone() };
    let tape = vec![Set::default()];
    ReplayValues { carry: of.carry, tape, states, ys: of.ys, sums: of.sums, tapped: of.taps }.join()
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
