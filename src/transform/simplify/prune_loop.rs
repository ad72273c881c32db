//! Removes unused inputs and outputs from the body of a general loop, as `prune` does for the other loops.
//!
//! First, unused stored, summed and tapped values are removed with their computation. Then inputs that the
//! body does not read are removed. Carried values and their states stay.

use super::prune::{NewPlace, plan};
use crate::graph::{Builder, Loop, NodeId, Op};
use crate::transform::bodies::{Source, resign, used_inputs};
use std::sync::Arc;

pub(super) fn general(
    b: &Builder,
    l: &Loop,
    x: &[NodeId],
    needed: &[bool],
    found: &mut [NewPlace],
) -> (Op, Vec<NodeId>) {
    let nc = l.num_carry;
    // After the carry, output k of the body is value nc + k of the node.
    let kept: Vec<usize> = (nc..l.body.num_outputs()).filter(|k| needed[nc + k]).collect();
    found[2 * nc..].fill(NewPlace::Nowhere);
    kept.iter().enumerate().for_each(|(i, &k)| found[nc + k] = NewPlace::Value(2 * nc + i));
    let outputs: Vec<usize> = (0..nc).chain(kept.iter().copied()).collect();
    let own: Vec<Source> = (0..l.body.num_inputs()).map(Source::Input).collect();
    let body = resign(&l.body, &l.body.input_types(), &own, &outputs);
    let within = |from: usize, n: usize| kept.iter().filter(|k| (from..from + n).contains(k)).count();
    let (num_ys, num_sums) = (within(nc, l.num_ys), within(nc + l.num_ys, l.num_sums));

    // Unread inputs are removed: sequences and rows first, since their indices count inputs before removal.
    let used = used_inputs(&body);
    let stays = |k: usize| used[k] || k < 4 + nc || (l.first_capture()..l.first_row()).contains(&k);
    let inputs: Vec<usize> = (0..body.num_inputs()).filter(|&k| stays(k)).collect();
    let place = |k: usize| inputs.iter().position(|&i| i == k).map_or(Source::Splat(0.0), Source::Input);
    let sources: Vec<Source> = (0..body.num_inputs()).map(place).collect();
    let types: Vec<_> = inputs.iter().map(|&k| body.input_type(k).clone()).collect();
    let body = resign(&body, &types, &sources, &(0..outputs.len()).collect::<Vec<_>>());
    let x: Vec<NodeId> = std::iter::once(x[0]).chain(inputs[4..].iter().map(|&k| x[k - 3])).collect();
    let num_of = |from: usize, to: usize| inputs.iter().filter(|k| (from..to).contains(k)).count();
    let num_rows = num_of(l.first_row(), l.body.num_inputs());
    let num_taps = kept.len() - num_ys - num_sums;
    let num_tap_rows = if num_rows + num_taps > 0 { l.num_tap_rows } else { 0 };
    let num_xs = num_of(4 + nc, l.first_capture());
    let smaller = Loop { body, num_xs, num_ys, num_sums, num_rows, num_tap_rows, ..*l };

    let (at, n) = (smaller.first_capture(), smaller.num_captures());
    let used = &used_inputs(&smaller.body)[at..at + n];
    let (before, rest) = x.split_at(at - 3);
    let (captures, rows) = rest.split_at(n);
    let p = plan(b, captures, used, &vec![false; n], &smaller.body.input_types()[at..at + n]);
    let body = p.apply_all(&smaller.body, at);
    (Op::Loop(Arc::new(Loop { body, ..smaller })), [before, &p.operands, rows].concat())
}
