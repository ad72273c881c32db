//! Functions that break an invariant, and the reasons that the verifier gives.

use super::*;
use crate::array::Array;
use crate::graph::{BinaryOp, Builder, Checkpoints, ReplayOperands};
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
    assert!(why.ends_with("it does not take (f32[2], f32[3]): the operands must have equal types"), "{why}");
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
        num_own: 0,
        num_first: 0,
        taps: Taps::default(),
        policy,
    }
}

fn solve_fault(s: Solve) -> String {
    let types = [Type::scalar(DType::U32), Type::scalar(D), f32s(&[2]), Type::scalar(B), f32s(&[3])].to_vec();
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
    let why = of(&|s| s.attempt = pass(&[scalar(D), f32s(&[2]), scalar(B), f32s(&[3])], &[2, 2, 2, 0, 1, 0]));
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
        let types = [scalar(DType::U32), scalar(D), Type::array(D, [6]), f32s(&[2]), scalar(B), f32s(&[3])];
        let out = vec![f32s(&[2]), scalar(B), Type::Schedule, Type::Tape, Type::array(D, [6]), f32s(&[6, 3])];
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
        let step = pass(&[step_types(), vec![f32s(&[3])]].concat(), &[4]);
        let of_rows = backward(&[4], &[f32s(&[3])]);
        let l = Replay { num_rows: 1, num_tap_rows, step: Some(step), ..of_rows };
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
    let why =
        op_fault(Op::Replay(Arc::new(Replay::new(bad))), &[Type::Schedule], Type::Tuple(vec![Type::Tape]));
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
fn a_replay_has_the_rows_of_its_search_and_the_states_of_its_tape() {
    for size in 1..=6 {
        let (mut b, x) = Builder::with_inputs(&[Type::Schedule, f32s(&[3]), f32s(&[size])]);
        let walk = pass(&[trip_types(), vec![f32s(&[3])]].concat(), &[4]);
        let walk = Replay { num_carry: 1, ..Replay::new(walk) };
        let tape = walk.places().tape[0];
        let walked = b.push(Op::Replay(Arc::new(walk)), &[x[0], x[1]], None);
        let tape = b.proj(walked, tape);
        let types = [trip_types(), vec![f32s(&[size]); 2]].concat();
        let back = Replay {
            step: Some(pass(&types[..5], &[4])),
            num_carry: 1,
            num_states: 1,
            is_reversed: true,
            policy: Policy::Direct,
            ..Replay::new(pass(&types, &[4]))
        };
        let operands = ReplayOperands {
            schedule: vec![x[0]],
            tape: vec![tape],
            states: vec![x[2]],
            carry: vec![x[2]],
            ..ReplayOperands::default()
        };
        let all = b.push(Op::Replay(Arc::new(back)), &operands.join(), None);
        let end = b.proj(all, 0);
        let found = verify(&b.finish(&[end])).map_err(|e| e.to_string());
        let why = format!("its state 0 is f32[{size}], not f32[3]");
        assert_eq!(found.is_ok(), size == 3, "{found:?}");
        assert!(found.map_or_else(|e| e.contains(&why), |()| true));
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

#[test]
fn a_backward_pass_has_the_residuals_of_its_search() {
    // A search with a residual f32[2] of its own step and one f32[3] of the next step.
    let fault = |last: usize, first: usize, of_back: &[usize], of_step: &[usize]| {
        let (mut b, x) = Builder::with_inputs(&[f32s(&[2]), f32s(&[3])]);
        let inputs = [Type::scalar(D), f32s(&[2]), Type::scalar(B), f32s(&[3])];
        let attempt = pass(&inputs, &[2, 2, 2, 0, 1, 2, 1, last]);
        let s =
            Solve { attempt, step: pass(&step_types(), &[4, 4, 5]), num_own: 1, num_first: 1, ..search() };
        let places = s.places();
        let (none, zero, no) = (b.splat(DType::U32, [], 0.0), b.splat(D, [], 0.0), b.splat(B, [], 0.0));
        let found = b.try_push(Op::Solve(Arc::new(s)), &[none, zero, x[0], no, x[first], x[1]], None);
        let found = found.map_err(|e| e.to_string())?;
        let [schedule, tape] = [places.schedule[0], places.tape[0]].map(|k| b.proj(found, k));
        let l = backward(&[&[4, 6], of_back].concat(), &[]);
        let step = Some(pass(&step_types(), &[&[4], of_step].concat()));
        let l = Replay { step, num_sums: 1, num_residuals: of_back.len(), ..l };
        let back = b.try_push(Op::Replay(Arc::new(l)), &[schedule, tape, x[0], x[0], x[1]], None);
        let back = back.map_err(|e| e.to_string())?;
        let end = b.proj(back, 0);
        verify(&b.finish(&[end])).map_err(|e| e.to_string())
    };
    assert_eq!(fault(3, 1, &[5, 6], &[4, 5]), Ok(()));
    let refused = [
        (fault(1, 1, &[5, 6], &[4, 5]), "its attempt's residual 1 is f32[2], not f32[3]"),
        (fault(3, 0, &[5, 6], &[4, 5]), "operand of the attempt 2 is f32[2] but the body takes f32[3]"),
        (fault(3, 1, &[5], &[4]), "its residual count is 1, not 2"),
        (fault(3, 1, &[6, 5], &[5, 4]), "its residual 0 is f32[3], not f32[2]"),
        (fault(3, 1, &[5, 6], &[5, 5]), "its step's residual 0 is f32[3], not f32[2]"),
        (fault(3, 1, &[5, 6], &[4]), "its step has 2 outputs, not 3"),
    ];
    for (found, why) in refused {
        let found = found.unwrap_err();
        assert!(found.ends_with(why), "{found}: {why}");
    }
    let walk = Replay {
        is_reversed: true,
        num_carry: 1,
        num_residuals: 1,
        ..Replay::new(pass(&step_types(), &[4, 4]))
    };
    let types = [Type::Schedule, f32s(&[2]), f32s(&[3])];
    let out = Type::Tuple(vec![f32s(&[2]), Type::Tape, f32s(&[2]).sequence()]);
    let why = op_fault(Op::Replay(Arc::new(walk)), &types, out);
    assert!(why.ends_with("it has 1 residuals but no tape"), "{why}");
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
