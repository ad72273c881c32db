//! Why a search ended early: the source of a non-finite number that its last attempt tested.
//!
//! The state after a rejected attempt is finite, so the outputs of the function do not lead to the cause. The
//! walk therefore starts at two flags of the attempt: whether it is accepted, and whether the search is still
//! running. These flags compare numbers or test whether numbers are finite. From the first tested number that
//! is neither finite nor a constant, the walk of `locate` continues to the source. A search that ended for
//! another reason has no such number. This module does not depend on the purpose of the search.

use super::locate::{Attempts, Located, Source, Trip, is_bad, leads_to_constant, placed, shifted, walk};
use super::loops::each_tile;
use super::{GraphError, Value, chosen, owned, values_of};
use crate::graph::{Func, Node, NodeId, Op, Solve, Tiles, UnaryOp};

/// The source of the non-finite number that ended a search of the function early, for the first such search.
/// `None` if there is no such search. A search in lockstep is skipped, because its rows are not examined
/// separately. A search in the body of another kind of loop is skipped, too.
///
/// # Errors
/// The errors of [`interpret_values`](super::interpret_values).
pub fn locate_ended(f: &Func, inputs: &[Value]) -> Result<Option<Source>, GraphError> {
    let values = values_of(f, inputs)?;
    for (i, node) in f.nodes().iter().enumerate() {
        let args: Vec<&Value> = node.args.iter().map(|a| &values[a.index()]).collect();
        match ended_in(node, &args)? {
            None => {}
            Some(Source::Input(k)) if is_bad(args[k]) => return walk(f, &values, node.args[k]).map(Some),
            Some(Source::Input(_)) => {}
            Some(Source::Origin(mut found)) => {
                found.node = NodeId(u32::try_from(i).expect("invariant: nodes are counted in u32"));
                return Ok(Some(Source::Origin(found)));
            }
        }
    }
    Ok(None)
}

/// [`locate_ended`] for one node; [`Source::Input`] counts the node's operands.
fn ended_in(node: &Node, args: &[&Value]) -> Result<Option<Source>, GraphError> {
    match &node.op {
        Op::Solve(s) if s.rows().is_none() => in_search(s, &owned(args)),
        Op::Tiles(t) => in_tiles(t, &owned(args)),
        Op::Custom(c) => locate_ended(&c.body, &owned(args)),
        Op::Cond(c) => {
            Ok(locate_ended(chosen(c, args[0]), &owned(&args[1..]))?.map(|found| shifted(found, 1)))
        }
        _ => Ok(None),
    }
}

fn in_search(s: &Solve, args: &[Value]) -> Result<Option<Source>, GraphError> {
    let made = Attempts::of(s, args)?;
    // A search may contain other searches. If an inner search of the last attempt ended early, this also
    // ended the outer search.
    let last = made.last();
    let found = match locate_ended(&s.attempt, &last)? {
        None if made.has_reached() => None,
        None => verdict(&s.attempt, &values_of(&s.attempt, &last)?).transpose()?,
        found => found,
    };
    found.map(|found| made.back_from_last(found)).transpose()
}

/// The source of the number because of which the attempt was rejected or the search ended.
fn verdict(attempt: &Func, values: &[Value]) -> Option<Located> {
    let tested = attempt.outputs()[..2].iter().find_map(|&from| tested_value(attempt, values, from));
    tested.map(|at| walk(attempt, values, at))
}

/// The first value, on the way from `from` to the inputs, that a comparison or `is_finite` reads and that is
/// neither finite nor constant.
fn tested_value(f: &Func, values: &[Value], from: NodeId) -> Option<NodeId> {
    let (mut ahead, mut seen) = (vec![from], vec![false; f.nodes().len()]);
    while let Some(at) = ahead.pop() {
        if std::mem::replace(&mut seen[at.index()], true) {
            continue;
        }
        let node = f.node(at);
        if matches!(node.op, Op::Compare(_) | Op::Unary(UnaryOp::IsFinite)) {
            let is_bad = |x: &&NodeId| is_bad(&values[x.index()]) && !leads_to_constant(f, **x);
            if let Some(bad) = node.args.iter().find(is_bad) {
                return Some(*bad);
            }
        }
        ahead.extend(&node.args);
    }
    None
}

fn in_tiles(t: &Tiles, args: &[Value]) -> Result<Option<Source>, GraphError> {
    for (row, body, inputs) in each_tile(t, args) {
        match locate_ended(body, &inputs)?.map(|found| placed(found, Trip::Tile { row })) {
            None => {}
            Some(Source::Input(i)) => return Ok(Some(Source::Input(i.saturating_sub(1)))),
            found => return Ok(found),
        }
    }
    Ok(None)
}
