//! The verifier: checks the invariants of functions, node by node and body by body.
//!
//! [`super::infer`] defines which operands an operation takes; the verifier applies it to each node and adds
//! the checks that need more than one node: the order of the arena, inputs and outputs, the uses of opaque
//! values and tuples, and the signatures of loop bodies as documented at [`super::Solve`] and the other
//! loops. It checks every function before compilation and, in tests, the result of every transform. It does
//! not run again when a compiled function is called. It reports only the first fault, because later faults
//! are mostly consequences of the first.

use super::infer::need;
use super::{
    Cond, Custom, Func, GraphError, Literal, Node, NodeId, Op, Policy, Replay, Solve, Taps, TileOut, Tiles,
    TripInputs, Type, infer,
};
use crate::array::DType;

type Check = Result<(), String>;

/// Checks that a function is well formed, including the bodies of its loops.
///
/// # Errors
/// [`GraphError::Malformed`] with the first malformed node and the reason.
pub fn verify(f: &Func) -> Result<(), GraphError> {
    let nodes = f.nodes();
    for (k, &id) in f.inputs().iter().enumerate() {
        let ok = nodes.get(id.index()).is_some_and(|n| n.op == Op::Input(k));
        at(id, "input", need(ok, || format!("it must be input {k}")))?;
    }
    for (i, node) in nodes.iter().enumerate() {
        let id = NodeId(i as u32);
        if let Op::Input(k) = node.op {
            at(
                id,
                "input",
                need(f.inputs().get(k) == Some(&id), || format!("it is not listed as input {k}")),
            )?;
        }
        at(id, node.op.name(), check_node(&nodes[..i], node))?;
    }
    for (k, &id) in f.outputs().iter().enumerate() {
        let ty = nodes.get(id.index()).map(|n| &n.ty);
        let ok = ty.is_some_and(|ty| !matches!(ty, Type::Tuple(_)));
        at(
            id,
            "output",
            need(ok, || match ty {
                Some(_) => format!("output {k} is a tuple: return `proj` nodes that extract its values"),
                None => format!("output {k} is out of range: there are {} nodes", nodes.len()),
            }),
        )?;
    }
    Ok(())
}

fn at(id: NodeId, op: &'static str, check: Check) -> Result<(), GraphError> {
    check.map_err(|why| GraphError::Malformed { node: id.index(), op, why })
}

/// Checks a node, given the nodes before it.
pub(super) fn check_node(before: &[Node], node: &Node) -> Check {
    let late = node.args.iter().find(|a| a.index() >= before.len());
    need(late.is_none(), || {
        format!("its operand {} does not come before it", late.copied().unwrap_or(NodeId(0)))
    })?;
    let args: Vec<&Type> = node.args.iter().map(|a| &before[a.index()].ty).collect();
    check_operands(&node.op, &args)?;
    match &node.op {
        Op::Input(_) => {
            return need(!matches!(node.ty, Type::Tuple(_)), || "an input cannot be a tuple".into());
        }
        Op::Solve(s) => check_solve(s)?,
        Op::Replay(l) => {
            check_replay(l)?;
            check_search_and_tape(l, before, node)?;
        }
        Op::Tiles(t) => check_tiles(t)?,
        Op::Custom(c) => check_custom(c)?,
        Op::Cond(c) => check_cond(c)?,
        Op::Proj(k) => check_tape(*k, before, node)?,
        _ => need(is_array(&node.ty), || format!("its type is {}, not an array", node.ty))?,
    }
    if let Op::Const(Literal::Array(a)) = &node.op {
        let (has, wants) = (a.shape().size(), node.ty.shape().size());
        need(has == wants, || format!("its literal has {has} elements, but its type has {wants}"))?;
    }
    let ty = infer(&node.op, &args, Some(&node.ty)).map_err(|e| match e {
        GraphError::Operands { operands, why, .. } => format!("it does not take ({operands}): {why}"),
        other => other.to_string(),
    })?;
    need(ty == node.ty, || format!("its type is {}, but its operands give {ty}", node.ty))
}

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array { .. })
}

/// Tuples may only be operands of `proj`; schedules, tapes and sequences only of loops that take them.
fn check_operands(op: &Op, args: &[&Type]) -> Check {
    for (k, ty) in args.iter().enumerate() {
        let ok = match op {
            Op::Proj(_) => matches!(ty, Type::Tuple(_)),
            // Inference knows which operands of a replay are opaque.
            Op::Replay(_) => !matches!(ty, Type::Tuple(_)),
            _ => is_array(ty),
        };
        need(ok, || format!("its operand {k} is {ty}"))?;
    }
    Ok(())
}

/// Verifies a body, and checks that the body's inputs are arrays.
fn check_body(what: &str, f: &Func) -> Check {
    verify(f).map_err(|e| format!("in its {what}: {e}"))?;
    let opaque = f.input_types().into_iter().position(|ty| !is_array(&ty));
    need(opaque.is_none(), || {
        let k = opaque.unwrap_or(0);
        format!("input {k} of its {what} is {}, not an array", f.input_type(k))
    })
}

fn same(what: &str, got: &[Type], want: &[Type]) -> Check {
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        need(got == want, || format!("{what} {k} is {got}, not {want}"))?;
    }
    need(got.len() == want.len(), || format!("{what} count is {}, not {}", got.len(), want.len()))
}

fn each_row(dtypes: &[DType], rows: Option<usize>) -> Vec<Type> {
    dtypes.iter().map(|&d| Type::array(d, rows.as_slice())).collect()
}

/// In lockstep, checks that the first axis of every value has length `rows`.
fn check_rows(what: &str, types: &[Type], rows: Option<usize>) -> Check {
    let Some(rows) = rows else { return Ok(()) };
    let other = types.iter().find(|ty| !is_array(ty) || ty.shape().first() != Some(&rows));
    need(other.is_none(), || format!("its {what} {} does not have {rows} rows", other.unwrap_or(&Type::Tape)))
}

fn check_solve(s: &Solve) -> Check {
    check_body("attempt", &s.attempt)?;
    check_body("step", &s.step)?;
    s.fits()?;
    let takes = s.attempt_inputs(&s.attempt.input_types());
    let gives = s.attempt_outputs(&s.attempt.output_types());
    let (rows, step) = (s.rows(), s.step_inputs(&s.step.input_types()));
    same("its attempt's step time", &takes.step_time, &each_row(&[DType::F64], rows))?;
    same("its attempt's live", &takes.live, &live(rows))?;
    same("its attempt's verdict", &gives.verdict, &each_row(&[DType::Bool; 3], rows))?;
    same("its attempt's next step time", &gives.step_time, &takes.step_time)?;
    same("its attempt's carry", &gives.carry, &takes.carry)?;
    same("its attempt's ext", &gives.ext, &takes.ext)?;
    let of_step = s.step_outputs(&s.step.output_types());
    let tapped = taps(&of_step.taps, s.taps)?;
    same("its attempt's tap", &gives.taps, &tapped)?;
    same("its attempt's residual", &[gives.own, gives.last].concat(), &of_step.residuals)?;
    check_rows("attempt's output", &s.attempt.output_types(), rows)?;
    check_trip("step", &step, rows)?;
    same("its step's carried input", &step.carry, &takes.carry)?;
    same("its step's capture", &step.captures, &takes.captures)?;
    same("its step's carry", &of_step.carry, &takes.carry)?;
    check_inverse(s.inverse.as_ref(), s.policy, (&s.step, s.num_carry), false)
}

/// Checks the inputs of a step before the carry.
fn check_trip(what: &str, inputs: &TripInputs<Type>, rows: Option<usize>) -> Check {
    let times = [DType::Bool, DType::Bool, DType::F64, DType::F64];
    same(&format!("its {what}'s input"), &inputs.trip, &each_row(&times, rows))?;
    same(&format!("its {what}'s live"), &inputs.live, &live(rows))
}

/// The types of the input `live`.
fn live(rows: Option<usize>) -> Vec<Type> {
    rows.map_or(vec![], |_| each_row(&[DType::Bool], rows))
}

/// Only the loop that runs a reversible solve back may have no inverse.
fn check_inverse(
    inverse: Option<&Func>,
    policy: Policy,
    (step, num_carry): (&Func, usize),
    is_backward: bool,
) -> Check {
    let Some(inverse) = inverse else {
        let ok = policy != Policy::Reversible || is_backward;
        return need(ok, || "it is reversible but has no inverse".into());
    };
    check_body("inverse", inverse)?;
    same("its inverse's input", &inverse.input_types(), &step.input_types())?;
    same("its inverse's output", &inverse.output_types(), &step.output_types()[..num_carry])
}

/// The types of taps; there must be taps if and only if there are rows.
fn taps(taps: &[Type], rows: Taps) -> Result<Vec<Type>, String> {
    let num_rows = rows.num_rows();
    need(taps.is_empty() == (num_rows == 0), || format!("it taps {} values in {num_rows} rows", taps.len()))?;
    need((rows.every == 0) == (rows.groups == 0), || {
        format!("it taps {} groups of {} trips", rows.groups, rows.every)
    })?;
    Ok(taps.to_vec())
}

/// A replay has the rows of the search whose schedule it follows, and the states and residuals of the loop that fills its
/// tape.
fn check_search_and_tape(l: &Replay, before: &[Node], node: &Node) -> Check {
    let maker = |id: NodeId| before[id.index()].args.first().map(|a| &before[a.index()].op);
    let operands = l.operands(&node.args);
    if let Some(Op::Solve(s)) = maker(operands.schedule[0]) {
        let (own, of_search) = (l.num_tap_rows, s.taps.num_rows());
        need(own == 0 || own == of_search, || {
            format!("it has {own} tap rows, but its search has {of_search}")
        })?;
        let rows = |rows: Option<usize>| rows.map_or("one row".into(), |n| format!("{n} rows in lockstep"));
        let (own, of_search) = (l.lockstep(), s.rows());
        need(own == of_search, || format!("it runs {}, but its search {}", rows(own), rows(of_search)))?;
    }
    let tape = operands.tape.first().and_then(|&tape| maker(tape));
    let Some(of) = tape.and_then(Op::states) else { return Ok(()) };
    let types =
        |outputs: &[usize]| outputs.iter().map(|&k| of.body.output_type(k).clone()).collect::<Vec<_>>();
    same("its state", &l.inputs(&l.body.input_types()).states, &types(&of.carry))?;
    same("its residual", &l.outputs(&l.body.output_types()).residuals, &types(&of.residuals))
}

/// Only forward loops that read no states fill a tape.
fn check_tape(k: usize, before: &[Node], node: &Node) -> Check {
    let Some(Op::Replay(l)) = node.args.first().map(|a| &before[a.index()].op) else { return Ok(()) };
    let fills = !l.is_reversed && !l.reads_states();
    need(fills || !l.places().tape.contains(&k), || "it is the tape of a loop that fills none".into())
}

fn check_replay(l: &Replay) -> Check {
    check_body("body", &l.body)?;
    l.step.iter().try_for_each(|step| check_body("step", step))?;
    l.fits()?;
    let (rows, takes, gives) =
        (l.lockstep(), l.inputs(&l.body.input_types()), l.outputs(&l.body.output_types()));
    check_trip("body", &takes, rows)?;
    same("its body's carry", &gives.carry, &takes.carry)?;
    let opaque = l.body.output_types().into_iter().find(|ty| !is_array(ty));
    need(opaque.is_none(), || format!("its body returns a {}", opaque.unwrap_or(Type::Tape)))?;
    let inexact = gives.sums.iter().chain(&takes.rows).find(|ty| !ty.is_float());
    need(inexact.is_none(), || format!("it sums a {}", inexact.unwrap_or(&Type::Tape)))?;
    let at_times = gives.taps.len() + takes.rows.len();
    need(at_times == 0 || l.num_tap_rows > 0, || {
        format!("it taps and reads {at_times} values but has no tap rows")
    })?;
    if rows.is_some() {
        let sequences = l.num_xs + l.num_ys;
        need(sequences == 0, || format!("it has {sequences} sequences in lockstep"))?;
        for types in [&takes.carry, &takes.states, &takes.rows, &gives.taps, &gives.residuals] {
            check_rows("body's value", types, rows)?;
        }
    }
    if let Some(step) = &l.step {
        let of = l.step_inputs(&step.input_types());
        check_trip("step", &of, rows)?;
        same("its step's state", &of.carry, &takes.states)?;
        same("its step's capture", &of.captures, &takes.captures)?;
        same("its step's row", &of.rows, &takes.rows)?;
        let of_step = l.step_outputs(&step.output_types());
        same("its step's next state", &of_step.carry, &takes.states)?;
        same("its step's residual", &of_step.residuals, &gives.residuals)?;
    }
    let has_tape = !l.is_reversed || l.reads_states();
    need(has_tape || l.num_residuals == 0, || format!("it has {} residuals but no tape", l.num_residuals))?;
    let is_plain = !l.is_reversed && !l.reads_states() && l.num_xs + l.num_rows == 0;
    need(l.inverse.is_none() || is_plain, || "it has an inverse but is more than a forward step".into())?;
    need(l.policy != Policy::Reversible || !l.reads_states(), || "it is reversible but reads states".into())?;
    check_inverse(l.inverse.as_ref(), l.policy, (&l.body, l.num_carry), l.is_reversed)
}

fn check_custom(c: &Custom) -> Check {
    check_body("body", &c.body)?;
    let outputs = c.body.output_types();
    need(c.num_outs <= outputs.len(), || {
        format!("its body has {} outputs, fewer than {}", outputs.len(), c.num_outs)
    })?;
    let opaque = outputs.iter().find(|ty| !is_array(ty));
    need(opaque.is_none(), || format!("its body returns a {}", opaque.unwrap_or(&Type::Tape)))?;
    let inputs = c.body.input_types();
    let of = |types: &[Type], ks: &[usize]| ks.iter().map(|&k| types[k].clone()).collect::<Vec<_>>();
    let (x, y) = (of(&inputs, &c.float_inputs()), of(&outputs, &c.float_outs()));
    for (name, rule, takes, gives) in [("jvp", &c.jvp, &x, &y), ("vjp", &c.vjp, &y, &x)] {
        if let Some(rule) = rule {
            check_body(name, rule)?;
            let wanted = [&c.primal_types()[..], takes].concat();
            same(&format!("its {name}'s input"), &rule.input_types(), &wanted)?;
            same(&format!("its {name}'s output"), &rule.output_types(), gives)?;
        }
    }
    Ok(())
}

fn check_cond(c: &Cond) -> Check {
    check_body("then", &c.then)?;
    check_body("otherwise", &c.otherwise)?;
    let outputs = c.then.output_types();
    let opaque = outputs.iter().find(|ty| !is_array(ty));
    need(opaque.is_none(), || format!("its branches return a {}", opaque.unwrap_or(&Type::Tape)))?;
    same("its otherwise's input", &c.otherwise.input_types(), &c.then.input_types())?;
    same("its otherwise's output", &c.otherwise.output_types(), &outputs)
}

/// An array type with `from` rows on axis 0, changed to `to` rows; `None` if `ty` is no such type.
fn with_rows(ty: &Type, from: usize, to: usize) -> Option<Type> {
    (is_array(ty) && ty.shape().first() == Some(&from)).then(|| ty.with_shape(ty.shape().with_axis(0, to)))
}

fn check_tiles(t: &Tiles) -> Check {
    check_body("body", &t.body)?;
    need(t.tile > 0, || format!("it has {} rows in tiles of {}", t.rows, t.tile))?;
    let (inputs, outputs) = (t.body.input_types(), t.body.output_types());
    let rowed = 1 + t.num_rowed;
    need(inputs.len() >= rowed, || format!("its body has {} inputs, fewer than {rowed}", inputs.len()))?;
    same("its body's input", &inputs[..1], &[Type::scalar(DType::U32)])?;
    need(t.outs.len() == outputs.len(), || {
        format!("its body has {} outputs, not {}", outputs.len(), t.outs.len())
    })?;
    let rest = t.rows % t.tile;
    let cut = |what: &str, k: usize, ty: &Type| {
        with_rows(ty, t.tile, rest)
            .ok_or_else(|| format!("{what} {k} of its body is {ty}, not {} rows", t.tile))
    };
    let (mut tail_inputs, mut tail_outputs) = (inputs.clone(), outputs.clone());
    for k in 1..rowed {
        tail_inputs[k] = cut("input", k, &inputs[k])?;
    }
    for (k, ty) in outputs.iter().enumerate() {
        match t.outs[k] {
            TileOut::Rows => tail_outputs[k] = cut("output", k, ty)?,
            TileOut::Sum => need(is_array(ty) && ty.dtype() != DType::Bool, || {
                format!("output {k} of its body is {ty}, which cannot be summed")
            })?,
        }
    }
    match &t.tail {
        None => need(rest == 0, || format!("it has no tail for the remaining {rest} rows")),
        Some(_) if rest == 0 => Err("it has a tail, but no rows remain".into()),
        Some(tail) => {
            check_body("tail", tail)?;
            same("its tail's input", &tail.input_types(), &tail_inputs)?;
            same("its tail's output", &tail.output_types(), &tail_outputs)
        }
    }
}

#[cfg(test)]
mod tests;
