//! The verifier: checks the invariants of functions, node by node and body by body.
//!
//! [`super::infer`] defines which operands an operation takes; the verifier applies it to each node and adds
//! the checks that need more than one node: the order of the arena, inputs and outputs, the uses of opaque
//! values and tuples, and the signatures of loop bodies as documented at [`super::Solve`] and the other
//! loops. It checks every function before compilation and, in tests, the result of every transform. It does
//! not run again when a compiled function is called. It reports only the first fault, because later faults
//! are mostly consequences of the first.

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

fn need(ok: bool, why: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(why()) }
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
            check_rows_of_search(l, before, node)?;
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
    let tapped = taps(&s.step.output_types()[s.num_carry..], s.taps)?;
    same("its attempt's tap", &gives.taps, &tapped)?;
    check_rows("attempt's output", &s.attempt.output_types(), rows)?;
    check_trip("step", &step, rows)?;
    same("its step's carried input", &step.carry, &takes.carry)?;
    same("its step's capture", &step.captures, &takes.captures)?;
    same("its step's carry", &s.step.output_types()[..s.num_carry], &takes.carry)?;
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

/// A replay has the tap rows of the search whose schedule it follows.
fn check_rows_of_search(l: &Replay, before: &[Node], node: &Node) -> Check {
    let maker = |id: NodeId| before[id.index()].args.first().map(|a| &before[a.index()].op);
    let Some(Op::Solve(s)) = node.args.first().and_then(|&schedule| maker(schedule)) else { return Ok(()) };
    let (own, of_search) = (l.num_tap_rows, s.taps.num_rows());
    need(own == 0 || own == of_search, || format!("it has {own} tap rows, but its search has {of_search}"))
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
        for types in [&takes.carry, &takes.states, &takes.rows, &gives.taps] {
            check_rows("body's value", types, rows)?;
        }
    }
    if let Some(step) = &l.step {
        let of = l.step_inputs(&step.input_types());
        check_trip("step", &of, rows)?;
        same("its step's state", &of.carry, &takes.states)?;
        same("its step's capture", &of.captures, &takes.captures)?;
        same("its step's next state", &step.output_types(), &takes.states)?;
    }
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
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::graph::{BinaryOp, Builder, Checkpoints};
    use std::sync::Arc;

    fn f32s(dims: &[usize]) -> Type {
        Type::array(DType::F32, dims)
    }

    fn node(op: Op, args: &[u32], ty: Type) -> Node {
        Node { op, args: args.iter().map(|&a| NodeId(a)).collect(), ty }
    }

    fn fault(nodes: Vec<Node>, inputs: &[u32], outputs: &[u32]) -> String {
        let ids = |v: &[u32]| v.iter().map(|&i| NodeId(i)).collect();
        verify(&Func::new(nodes, ids(inputs), ids(outputs))).unwrap_err().to_string()
    }

    /// A function that returns its inputs at `outputs`.
    fn pass(types: &[Type], outputs: &[usize]) -> Func {
        let (b, x) = Builder::with_inputs(types);
        let outputs: Vec<NodeId> = outputs.iter().map(|&k| x[k]).collect();
        b.finish(&outputs)
    }

    /// The fault of a function with a single operation on inputs of the given types.
    fn op_fault(op: Op, types: &[Type], ty: Type) -> String {
        let n = types.len() as u32;
        let ids: Vec<u32> = (0..n).collect();
        let mut nodes: Vec<Node> =
            types.iter().enumerate().map(|(k, t)| node(Op::Input(k), &[], t.clone())).collect();
        nodes.push(node(op, &ids, ty));
        match verify(&Func::new(nodes, ids.iter().map(|&i| NodeId(i)).collect(), vec![])) {
            Ok(()) => String::new(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn arguments_come_before_their_users() {
        let add = |args: &[u32]| node(Op::Binary(BinaryOp::Add), args, f32s(&[2]));
        let nodes = vec![node(Op::Input(0), &[], f32s(&[2])), add(&[0, 2]), add(&[0, 0])];
        let why = "node %1 (add) is not well formed: its operand %2 does not come before it";
        assert_eq!(fault(nodes, &[0], &[1]), why);
    }

    #[test]
    fn inputs_and_outputs_are_nodes_of_their_kind() {
        let input = |k| node(Op::Input(k), &[], f32s(&[2]));
        let why = fault(vec![input(0)], &[3], &[]);
        assert_eq!(why, "node %3 (input) is not well formed: it must be input 0");
        let why = fault(vec![input(0), input(1)], &[0], &[]);
        assert_eq!(why, "node %1 (input) is not well formed: it is not listed as input 1");
        let why = fault(vec![input(0)], &[0], &[0, 7]);
        assert_eq!(why, "node %7 (output) is not well formed: output 1 is out of range: there are 1 nodes");
        let why = fault(vec![node(Op::Input(0), &[], Type::Tuple(vec![]))], &[0], &[]);
        assert_eq!(why, "node %0 (input) is not well formed: an input cannot be a tuple");
    }

    #[test]
    fn types_equal_the_inferred_ones() {
        let why = op_fault(Op::Binary(BinaryOp::Add), &[f32s(&[2]), f32s(&[2])], f32s(&[3]));
        assert!(why.ends_with("its type is f32[3], but its operands give f32[2]"), "{why}");
        let why = op_fault(Op::Binary(BinaryOp::Add), &[f32s(&[2]), f32s(&[3])], f32s(&[3]));
        assert!(
            why.ends_with("it does not take (f32[2], f32[3]): the operands must have equal types"),
            "{why}"
        );
        let why = op_fault(Op::Cast, &[f32s(&[2])], Type::Tape);
        assert!(why.ends_with("its type is tape, not an array"), "{why}");
        let three = Literal::Array(Arc::new(Array::from_vec([3], vec![0.0f32; 3])));
        let why = op_fault(Op::Const(three), &[], f32s(&[2]));
        assert!(why.ends_with("its literal has 3 elements, but its type has 2"), "{why}");
    }

    #[test]
    fn tuples_and_opaque_values_go_where_they_are_wanted() {
        let why = op_fault(Op::StopGradient, &[Type::Schedule], Type::Schedule);
        assert!(why.ends_with("its operand 0 is schedule"), "{why}");
        let why = op_fault(Op::Proj(0), &[f32s(&[2])], f32s(&[2]));
        assert!(why.ends_with("its operand 0 is f32[2]"), "{why}");
        let (mut b, x) = Builder::with_inputs(&[f32s(&[4, 2])]);
        let tuple = b.push(tiles(tile(4, None)), &x, None);
        let why = verify(&b.finish(&[tuple])).unwrap_err().to_string();
        assert!(why.ends_with("output 0 is a tuple: return `proj` nodes that extract its values"));
    }

    const B: DType = DType::Bool;
    const D: DType = DType::F64;

    fn trip_types() -> Vec<Type> {
        each_row(&[B, B, D, D], None)
    }

    fn step_types() -> Vec<Type> {
        [trip_types(), vec![f32s(&[2]), f32s(&[3])]].concat()
    }

    fn search() -> Solve {
        let scalar = Type::scalar;
        // step time, carry, ext: bool, capture; every output is an input
        let attempt = pass(&[scalar(D), f32s(&[2]), scalar(B), f32s(&[3])], &[2, 2, 2, 0, 1, 2]);
        let policy = Policy::Checkpoint(Checkpoints::Auto);
        Solve {
            attempt,
            step: pass(&step_types(), &[4]),
            inverse: None,
            num_carry: 1,
            num_ext: 1,
            taps: Taps::default(),
            policy,
        }
    }

    fn solve_fault(s: Solve) -> String {
        let types =
            [Type::scalar(DType::U32), Type::scalar(D), f32s(&[2]), Type::scalar(B), f32s(&[3])].to_vec();
        let out = vec![f32s(&[2]), Type::scalar(B), Type::Schedule, Type::Tape];
        op_fault(Op::Solve(Arc::new(s)), &types, Type::Tuple(out))
    }

    #[test]
    fn a_solve_has_the_documented_signature() {
        assert_eq!(solve_fault(search()), "");
        let of = |change: &dyn Fn(&mut Solve)| {
            let mut s = search();
            change(&mut s);
            solve_fault(s)
        };
        let scalar = Type::scalar;
        let why =
            of(&|s| s.attempt = pass(&[scalar(D), f32s(&[2]), scalar(B), f32s(&[3])], &[2, 2, 2, 0, 1, 0]));
        assert!(why.ends_with("its attempt's ext 0 is f64[], not bool[]"), "{why}");
        let why = of(&|s| s.step = pass(&step_types(), &[5]));
        assert!(why.ends_with("its step's carry 0 is f32[3], not f32[2]"), "{why}");
        let why = of(&|s| s.step = pass(&step_types()[..5], &[4]));
        assert!(why.ends_with("its attempt has 1 captures, its step 0"), "{why}");
        let why = of(&|s| s.num_ext = 9);
        assert!(why.ends_with("its attempt has 4 inputs, fewer than 11"), "{why}");
        let why = of(&|s| s.step = pass(&[Type::Tape], &[]));
        assert!(why.ends_with("input 0 of its step is tape, not an array"), "{why}");
    }

    #[test]
    fn taps_come_after_the_carry_and_need_times() {
        let scalar = Type::scalar;
        let inputs = [scalar(D), f32s(&[2]), scalar(B), f32s(&[3])];
        let fault = |taps: &[usize], step: &[usize], num_times: usize| {
            let attempt = pass(&inputs, &[&[2, 2, 2, 0, 1, 2], taps].concat());
            let step = pass(&step_types(), &[&[4], step].concat());
            let s = Solve { attempt, step, taps: Taps::at(num_times), ..search() };
            let types =
                [scalar(DType::U32), scalar(D), Type::array(D, [6]), f32s(&[2]), scalar(B), f32s(&[3])];
            let out =
                vec![f32s(&[2]), scalar(B), Type::Schedule, Type::Tape, Type::array(D, [6]), f32s(&[6, 3])];
            op_fault(Op::Solve(Arc::new(s)), &types, Type::Tuple(out))
        };
        assert_eq!(fault(&[0, 3], &[3, 5], 6), "");
        let why = fault(&[0, 3], &[5, 3], 6);
        assert!(why.ends_with("its attempt's tap 0 is f64[], not f32[3]"), "{why}");
        let why = fault(&[0, 3], &[3, 5], 0);
        assert!(why.ends_with("it taps 2 values in 0 rows"), "{why}");
        let why = fault(&[], &[], 6);
        assert!(why.ends_with("it taps 0 values in 6 rows"), "{why}");
        let back = |num_tap_rows: usize| {
            let l = Replay { num_rows: 1, num_tap_rows, ..backward(&[4], &[f32s(&[3])]) };
            let types = [Type::Schedule, Type::Tape, f32s(&[2]), f32s(&[2]), f32s(&[3]), f32s(&[6, 3])];
            op_fault(
                Op::Replay(Arc::new(l)),
                &types,
                Type::Tuple(vec![f32s(&[2]), Type::Tape, f32s(&[2]).sequence()]),
            )
        };
        assert_eq!(back(6), "");
        assert!(back(0).ends_with("it taps and reads 1 values but has no tap rows"), "{}", back(0));
    }

    /// A reversed loop with a cotangent, a state and a capture, whose body returns its inputs at `outputs`.
    fn backward(outputs: &[usize], further: &[Type]) -> Replay {
        let types = [&trip_types()[..], &[f32s(&[2]), f32s(&[2]), f32s(&[3])], further].concat();
        Replay {
            step: Some(pass(&step_types(), &[4])),
            is_reversed: true,
            num_carry: 1,
            num_states: 1,
            num_sums: outputs.len() - 1,
            ..Replay::new(pass(&types, outputs))
        }
    }

    #[test]
    fn a_fault_in_a_body_names_the_body() {
        let bad = Func::new(vec![], vec![], vec![NodeId(0)]);
        let why = op_fault(
            Op::Replay(Arc::new(Replay::new(bad))),
            &[Type::Schedule],
            Type::Tuple(vec![Type::Tape]),
        );
        let want = "node %1 (replay) is not well formed: in its body: node %0 (output) is not well formed: \
                    output 0 is out of range: there are 0 nodes";
        assert_eq!(why, want);
    }

    #[test]
    fn a_replay_that_reads_states_has_the_documented_signature() {
        let fault = |change: &dyn Fn(&mut Replay), outputs: &[usize]| {
            let mut l = backward(outputs, &[]);
            change(&mut l);
            let out =
                [&[f32s(&[2]), Type::Tape, f32s(&[2]).sequence()][..], &vec![f32s(&[3]); outputs.len() - 1]];
            let types = [Type::Schedule, Type::Tape, f32s(&[2]), f32s(&[2]), f32s(&[3])];
            op_fault(Op::Replay(Arc::new(l)), &types, Type::Tuple(out.concat()))
        };
        assert_eq!(fault(&|_| {}, &[4, 6]), "");
        assert_eq!(fault(&|_| {}, &[4, 6, 6]), "");
        let why = fault(&|l| l.num_sums = 2, &[4, 6]);
        assert!(why.ends_with("its body has 2 outputs, fewer than 3"), "{why}");
        let why = fault(&|l| l.num_carry = 3, &[4, 6]);
        assert!(why.ends_with("its body has 7 inputs, fewer than 8"), "{why}");
        let why = fault(&|l| l.step = None, &[4, 6]);
        assert!(why.ends_with("it reads 1 states without a step"), "{why}");
        let why = fault(&|l| l.step = Some(pass(&step_types(), &[5])), &[4, 6]);
        assert!(why.ends_with("its step's next state 0 is f32[3], not f32[2]"), "{why}");
        let why = fault(&|_| {}, &[6, 6]);
        assert!(why.ends_with("its body's carry 0 is f32[3], not f32[2]"), "{why}");
        let why = fault(&|l| l.is_reversed = false, &[4, 6]);
        assert!(why.ends_with("it reads states but runs forward"), "{why}");
        let why = fault(&|l| l.policy = Policy::Reversible, &[4, 6]);
        assert!(why.ends_with("it is reversible but reads states"), "{why}");
        let why = fault(&|l| l.inverse = Some(l.body.clone()), &[4, 6]);
        assert!(why.ends_with("it has an inverse but is more than a forward step"), "{why}");
        // Counts that no function can have, alone and in sums that overflow.
        for n in [usize::MAX, usize::MAX / 2, 1 << 63] {
            let why = fault(&|l| (l.num_carry, l.num_xs) = (n, n), &[4, 6]);
            assert!(why.contains("its body has 7 inputs, fewer than"), "{why}");
            let why = fault(&|l| (l.num_ys, l.num_sums) = (n, n), &[4, 6]);
            assert!(why.contains("its body has 2 outputs, fewer than"), "{why}");
        }
    }

    #[test]
    fn only_forward_loops_fill_a_tape_and_tap_rows_are_those_of_the_search() {
        let types = [Type::Schedule, f32s(&[2]), f32s(&[3])];
        let tape_of = |is_reversed: bool| {
            let (mut b, x) = Builder::with_inputs(&types);
            let walk = Replay { num_carry: 1, is_reversed, ..Replay::new(pass(&step_types(), &[4])) };
            let place = walk.places().tape[0];
            let walked = b.push(Op::Replay(Arc::new(walk)), &x, None);
            let tape = b.proj(walked, place);
            verify(&b.finish(&[tape]))
        };
        assert_eq!(tape_of(false), Ok(()));
        let why = tape_of(true).unwrap_err().to_string();
        assert!(why.ends_with("it is the tape of a loop that fills none"), "{why}");
        for num_tap_rows in [5, 6, 7] {
            let (mut b, x) = Builder::with_inputs(&[f32s(&[2]), f32s(&[3])]);
            let attempt =
                pass(&[Type::scalar(D), f32s(&[2]), Type::scalar(B), f32s(&[3])], &[2, 2, 2, 0, 1, 2, 3]);
            let step = pass(&step_types(), &[4, 5]);
            let s = Solve { attempt, step, taps: Taps::at(6), ..search() };
            let (place, replay) = (s.places().schedule[0], Replay { num_tap_rows, ..s.replay() });
            let (none, zero, no) = (b.splat(DType::U32, [], 0.0), b.splat(D, [], 0.0), b.splat(B, [], 0.0));
            let times = b.splat(D, [6], 0.5);
            let found = b.push(Op::Solve(Arc::new(s)), &[none, zero, times, x[0], no, x[1]], None);
            let schedule = b.proj(found, place);
            let again = b.push(Op::Replay(Arc::new(replay)), &[schedule, x[0], x[1]], None);
            let end = b.proj(again, 0);
            let found = verify(&b.finish(&[end])).map_err(|e| e.to_string());
            let why = format!("it has {num_tap_rows} tap rows, but its search has 6");
            assert_eq!(found.is_ok(), num_tap_rows == 6, "{found:?}");
            assert!(found.err().is_none_or(|e| e.ends_with(&why)), "{why}");
        }
    }

    fn tile(rows: usize, tail: Option<usize>) -> Tiles {
        let body = |n: usize| pass(&[Type::scalar(DType::U32), f32s(&[n, 2])], &[1]);
        Tiles { rows, tile: 4, body: body(4), tail: tail.map(body), num_rowed: 1, outs: vec![TileOut::Rows] }
    }

    fn tiles(t: Tiles) -> Op {
        Op::Tiles(Arc::new(t))
    }

    #[test]
    fn tiles_cover_all_rows() {
        let fault = |t: Tiles| {
            let ty = f32s(&[t.rows, 2]);
            op_fault(tiles(t), std::slice::from_ref(&ty), Type::Tuple(vec![ty.clone()]))
        };
        assert_eq!(fault(tile(8, None)), "");
        assert_eq!(fault(tile(7, Some(3))), "");
        assert!(fault(tile(7, None)).ends_with("it has no tail for the remaining 3 rows"));
        assert!(fault(tile(8, Some(3))).ends_with("it has a tail, but no rows remain"));
        assert!(fault(tile(7, Some(2))).ends_with("its tail's input 1 is f32[2,2], not f32[3,2]"));
        let mut t = tile(8, None);
        t.body = pass(&[Type::scalar(DType::U32), f32s(&[3, 2])], &[1]);
        assert!(fault(t).ends_with("input 1 of its body is f32[3,2], not 4 rows"));
    }
}
