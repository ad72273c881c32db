//! Derivatives of the general loop ([`Loop`]). The forward derivative is a loop in the same direction, and
//! the reverse derivative is a loop in the opposite direction.
//!
//! The states of a loop are among its values, and are stored if a node reads them. The reverse derivative
//! reads the states and recomputes none. The cotangent of a sequence is a sequence. The general loop is
//! therefore closed under differentiation of any order. A [`Rev`] that stores all states equals two general
//! loops: one computes the states, and one runs backward along them. The reverse derivative of the `Rev` is
//! that of these two loops. If the number of stored states is bounded, the two loops would not keep the bound
//! on the memory, so the reverse derivative of the `Rev` is an error.

use super::TransformError;
use super::bodies::{Source, resign};
use super::flow::node_flows;
use super::jvp::{JvpRule, jvp_into, or_zero};
use super::loops::policy_of;
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents};
use crate::graph::{Builder, Func, Loop, NodeId, Op, Policy, Rev, Type};
use std::ops::Range;
use std::sync::Arc;

/// The ranges of operand indices of a loop node, by kind. The corresponding inputs of the body have indices
/// that are 3 higher.
struct Operands {
    carry: Range<usize>,
    xs: Range<usize>,
    captures: Range<usize>,
    rows: Range<usize>,
}

impl Operands {
    fn of(l: &Loop) -> Operands {
        let (xs, captures, rows) = (1 + l.num_carry, l.first_capture() - 3, l.first_row() - 3);
        Operands { carry: 1..xs, xs: xs..captures, captures: captures..rows, rows: rows..rows + l.num_rows }
    }

    fn kinds(&self) -> [Range<usize>; 4] {
        [self.carry.clone(), self.xs.clone(), self.captures.clone(), self.rows.clone()]
    }
}

/// The number of tap rows of a loop that taps or reads `num` values.
fn times(l: &Loop, num: usize) -> usize {
    if num > 0 { l.num_tap_rows } else { 0 }
}

/// Pushes a loop; the node's values are in the order carry, states, ys, sums, tapped.
fn push(b: &mut Builder, l: Loop, x: &[NodeId]) -> NodeId {
    b.push(Op::Loop(Arc::new(l)), x, None)
}

/// The sum of two sequences along one schedule.
pub(super) fn add(b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    let Type::Sequence { dtype, shape } = b.ty(x).clone() else {
        panic!("invariant: {x} is not a sequence");
    };
    let maker = b.node(x).args[0];
    let schedule = b.node(maker).args[0];
    let one = Type::array(dtype, shape);
    let trip = trip_types();
    let (mut body, ids) = Builder::with_inputs(&[&trip[..], &[one.clone(), one]].concat());
    let sum = body.add(ids[4], ids[5]);
    let l = Loop { num_xs: 2, num_ys: 1, ..plain(body.finish(&[sum])) };
    let (first, all) = (l.first_y(), push(b, l, &[schedule, x, y]));
    b.proj(all, first)
}

/// The types of first, last, t, t_next.
fn trip_types() -> [Type; 4] {
    use crate::array::DType::{Bool, F64};
    [Bool, Bool, F64, F64].map(Type::scalar)
}

/// A forward loop that carries no values and reads, stores, sums and taps none; callers set what they need.
fn plain(body: Func) -> Loop {
    Loop {
        body,
        is_reversed: false,
        num_carry: 0,
        num_xs: 0,
        num_ys: 0,
        num_sums: 0,
        num_rows: 0,
        num_tap_rows: 0,
        policy: Policy::Direct,
    }
}

/// The loop of values and tangents, in the same direction. For stored, summed and tapped values, it has only
/// the tangents.
pub(super) fn jvp_loop(b: &mut Builder, l: &Loop, rule: &JvpRule) -> Tangents {
    let at = Operands::of(l);
    let moving: Vec<usize> = (1..=l.num_carry).filter(|&k| rule.active[k - 1]).collect();
    let twin = |kind: &Range<usize>| -> Vec<usize> {
        if *kind == at.carry {
            moving.clone()
        } else {
            kind.clone().filter(|&k| rule.dx[k].is_some()).collect()
        }
    };
    let twins = at.kinds().map(|kind| twin(&kind));
    let (mut x, mut order, mut inputs) = (vec![rule.x[0]], vec![], trip_types().to_vec());
    for (kind, twin) in at.kinds().iter().zip(&twins) {
        x.extend(&rule.x[kind.clone()]);
        x.extend(twin.iter().map(|&k| rule.dx[k].unwrap_or_else(|| b.splat_like(rule.x[k], 0.0))));
        let each = kind.clone().map(|k| (k, false)).chain(twin.iter().map(|&k| (k, true)));
        for (k, tangent) in each {
            order.push((k, tangent));
            inputs.push(l.body.input_type(k + 3).clone());
        }
    }
    // Outputs of the body after the carry, by index. Their index among the node's values is num_carry higher.
    let kept: Vec<usize> =
        (l.num_carry..l.body.num_outputs()).filter(|k| rule.active[k + l.num_carry]).collect();
    let (mut body, ids) = Builder::with_inputs(&inputs);
    let (mut args, mut d) = (ids[..4].to_vec(), vec![None; l.body.num_inputs()]);
    for ((k, tangent), id) in order.into_iter().zip(&ids[4..]) {
        if tangent { d[k + 3] = Some(*id) } else { args.push(*id) }
    }
    let (y, dy) = jvp_into(&mut body, &l.body, &args, &d);
    let mut outputs = y[..l.num_carry].to_vec();
    let all = moving.iter().map(|k| k - 1).chain(kept.iter().copied());
    outputs.extend(all.map(|k| or_zero(&mut body, dy[k], y[k])));
    let within = |from: usize, n: usize| kept.iter().filter(|k| (from..from + n).contains(k)).count();
    let first_sum = l.num_carry + l.num_ys;
    let [num_ys, num_sums, num_taps] = [
        within(l.num_carry, l.num_ys),
        within(first_sum, l.num_sums),
        within(first_sum + l.num_sums, l.num_taps()),
    ];
    let num_rows = l.num_rows + twins[3].len();
    let doubled = Loop {
        body: body.finish(&outputs),
        num_carry: l.num_carry + moving.len(),
        num_xs: l.num_xs + twins[1].len(),
        num_ys,
        num_sums,
        num_rows,
        num_tap_rows: times(l, num_rows + num_taps),
        ..*l
    };
    let (nc, first_y, state) = (l.num_carry, doubled.first_y(), doubled.first_state());
    let all = push(b, doubled, &x);
    let mut out = vec![None; rule.active.len()];
    for (i, &k) in moving.iter().enumerate() {
        out[k - 1] = Some(b.proj(all, nc + i));
        out[nc + k - 1] = Some(b.proj(all, state + nc + i));
    }
    for (i, &k) in kept.iter().enumerate() {
        out[nc + k] = Some(b.proj(all, first_y + i));
    }
    out
}

/// The cotangents that a reverse loop must compute, and the cotangents that it receives, by index.
struct Request {
    /// Operands of the loop whose cotangents are needed, by kind.
    wrt: [Vec<usize>; 4],
    /// Carried values whose states have a cotangent.
    states: Vec<usize>,
    /// Outputs of the body that have a cotangent, by kind: ys, sums, taps.
    given: [Vec<usize>; 3],
}

impl Request {
    fn of(l: &Loop, rule: &VjpRule) -> Request {
        let flows = node_flows(rule.f, rule.node);
        let counts = |k: usize| flows.iter().zip(rule.g).any(|(s, g)| g.is_some() && s.contains(k));
        let at = Operands::of(l);
        let mut wrt = at.kinds().map(|kind| kind.filter(|&k| rule.on[k] && counts(k)).collect::<Vec<_>>());
        wrt[0] = at.carry.filter(|&k| rule.active[k - 1] && counts(k)).collect();
        let nc = l.num_carry;
        let given = |from: usize, n: usize| (from..from + n).filter(|k| rule.g[k + nc].is_some()).collect();
        let (first_sum, first_tap) = (nc + l.num_ys, nc + l.num_ys + l.num_sums);
        let states = wrt[0].iter().map(|k| k - 1).filter(|j| rule.g[nc + j].is_some()).collect();
        let given = [given(nc, l.num_ys), given(first_sum, l.num_sums), given(first_tap, l.num_taps())];
        Request { wrt, states, given }
    }

    /// The transpose of a trip. It maps `ct.., state.., x..`, ct of `states..`, ct of `ys..`, `capture..`, ct
    /// of `sums..`, `row..`, ct of `taps..` to the needed cotangents.
    fn body(&self, l: &Loop) -> Result<Func, TransformError> {
        let [ys, sums, taps] = &self.given;
        let (of, out) = (|k: usize| l.body.input_type(k).clone(), |k: &usize| l.body.output_type(*k).clone());
        let mut types = trip_types().to_vec();
        types.extend(self.wrt[0].iter().map(|k| of(k + 3)));
        types.extend((4..l.first_capture()).map(of));
        types.extend(self.states.iter().chain(ys).map(out));
        types.extend((l.first_capture()..l.first_row()).map(of));
        types.extend(sums.iter().map(out));
        types.extend((l.first_row()..l.body.num_inputs()).map(of));
        types.extend(taps.iter().map(out));
        let (mut b, ids) = Builder::with_inputs(&types);
        let mut rest = ids[4..].iter().copied();
        let mut take = |n: usize| rest.by_ref().take(n).collect::<Vec<NodeId>>();
        let (ct, mut x, mut g) =
            (take(self.wrt[0].len()), ids[..4].to_vec(), vec![None; l.body.num_outputs()]);
        x.extend(take(l.num_carry + l.num_xs));
        let of_states = take(self.states.len());
        let mut give =
            |ks: &[usize], ids: Vec<NodeId>| ks.iter().zip(ids).for_each(|(&k, id)| g[k] = Some(id));
        give(&self.wrt[0].iter().map(|k| k - 1).collect::<Vec<_>>(), ct);
        give(ys, take(ys.len()));
        x.extend(take(l.num_captures()));
        give(sums, take(sums.len()));
        x.extend(take(l.num_rows));
        give(taps, take(taps.len()));
        let needed: Vec<usize> = self.wrt.iter().flatten().map(|k| k + 3).collect();
        // Body outputs are ct.., ys (of xs).., sums (of captures).., taps (of rows)..: the order of operands.
        let active: Vec<bool> = (0..x.len()).map(|k| needed.contains(&k)).collect();
        let (_, mut found) = vjp_into(&mut b, &l.body, &x, &active, &g)?;
        for (&j, id) in self.states.iter().zip(of_states) {
            found[4 + j] = super::jvp::add(&mut b, found[4 + j], Some(id));
        }
        let outputs: Vec<NodeId> = needed.iter().map(|&k| or_zero(&mut b, found[k], x[k])).collect();
        Ok(b.finish(&outputs))
    }
}

/// The transposed loop, which runs in the opposite direction.
pub(super) fn vjp_loop(b: &mut Builder, l: &Loop, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    stored(l.policy)?;
    let (request, at, nc) = (Request::of(l, rule), Operands::of(l), l.num_carry);
    let [ys, sums, taps] = &request.given;
    let given = |ks: &[usize]| ks.iter().filter_map(|k| rule.g[k + nc]).collect::<Vec<_>>();
    let mut x = vec![rule.x[0]];
    for &k in &request.wrt[0] {
        x.push(or_zero(b, rule.g[k - 1], rule.x[k]));
    }
    for j in 0..nc {
        x.push(b.proj(rule.y, l.first_state() + j));
    }
    x.extend(&rule.x[at.xs]);
    x.extend(request.states.iter().filter_map(|j| rule.g[nc + j]));
    x.extend(given(ys));
    x.extend(&rule.x[at.captures]);
    x.extend(given(sums));
    x.extend(&rule.x[at.rows]);
    x.extend(given(taps));
    let (num_rows, num_taps) = (l.num_rows + taps.len(), request.wrt[3].len());
    let back = Loop {
        body: request.body(l)?,
        is_reversed: !l.is_reversed,
        num_carry: request.wrt[0].len(),
        num_xs: nc + l.num_xs + request.states.len() + ys.len(),
        num_ys: request.wrt[1].len(),
        num_sums: request.wrt[2].len(),
        num_rows,
        num_tap_rows: times(l, num_rows + num_taps),
        policy: l.policy,
    };
    let (carry, first_y) = (back.num_carry, back.first_y());
    let all = push(b, back, &x);
    let mut out = vec![None; rule.x.len()];
    for (i, &k) in request.wrt.iter().flatten().enumerate().filter(|(_, k)| rule.on[**k]) {
        out[k] = Some(b.proj(all, if i < carry { i } else { first_y + i - carry }));
    }
    Ok(out)
}

/// Returns an error for a reverse derivative unless every state is stored.
fn stored(policy: Policy) -> Result<(), TransformError> {
    match policy {
        Policy::Direct => Ok(()),
        Policy::Checkpoint(_) => Err(TransformError::SecondReverse { adjoint: "RecursiveCheckpoint" }),
        Policy::Reversible => Err(TransformError::SecondReverse { adjoint: "Reversible" }),
        Policy::Forward => Err(TransformError::ForwardOnly),
    }
}

/// The reverse derivative of a [`Rev`], computed as that of the two loops that it equals.
pub(super) fn vjp_rev(b: &mut Builder, r: &Rev, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    stored(policy_of(b, rule.x[1]))?;
    if r.rows().is_some() {
        return Err(TransformError::SecondReverseOfRows);
    }
    let without_tape = |k: usize| k != 1;
    let pick =
        |ids: &[NodeId]| (0..ids.len()).filter(|&k| without_tape(k)).map(|k| ids[k]).collect::<Vec<_>>();
    let x = pick(rule.x);
    let types: Vec<Type> = x.iter().map(|&id| b.ty(id).clone()).collect();
    let f = as_loops(r, &types);
    let on: Vec<bool> = (0..rule.on.len()).filter(|&k| without_tape(k)).map(|k| rule.on[k]).collect();
    let (_, mut found) = vjp_into(b, &f, &x, &on, rule.g)?;
    found.insert(1, None);
    Ok(found)
}

/// A [`Rev`] that stores every state, as two loops. The function maps `schedule, carry0.., captures..,
/// ct_carry.., ct_tapped..` to `ct_carry0.., ct_captures..`.
fn as_loops(r: &Rev, types: &[Type]) -> Func {
    let (mut b, x) = Builder::with_inputs(types);
    let (nc, np) = (r.num_carry, r.num_captures());
    let walk = Loop { num_carry: nc, ..plain(r.step.clone()) };
    let first_state = walk.first_state();
    let walked = push(&mut b, walk, &x[..1 + nc + np]);
    let (captures, cts) = (&x[1 + nc..1 + nc + np], &x[1 + nc + np..]);
    let mut operands = vec![x[0]];
    operands.extend(&cts[..r.num_ct]);
    operands.extend((0..nc).map(|j| b.proj(walked, first_state + j)));
    operands.extend(captures);
    operands.extend(&cts[r.num_ct..]);
    // Converts the order of inputs of a backward step, `state.., captures.., ct..`, to that of a loop, `ct..,
    // state.., captures..`.
    let place = |k: usize| match k {
        k if (4..4 + nc + np).contains(&k) => k + r.num_ct,
        k if (4 + nc + np..4 + nc + np + r.num_ct).contains(&k) => k - nc - np,
        k => k,
    };
    let own = r.bwd.input_types();
    let mut turned = own.clone();
    (0..own.len()).for_each(|k| turned[place(k)] = own[k].clone());
    let sources: Vec<Source> = (0..own.len()).map(|k| Source::Input(place(k))).collect();
    let body = resign(&r.bwd, &turned, &sources, &(0..r.bwd.num_outputs()).collect::<Vec<_>>());
    let back = Loop {
        is_reversed: true,
        num_carry: r.num_ct,
        num_xs: nc,
        num_sums: r.wrt.len(),
        num_rows: r.num_ct_taps,
        num_tap_rows: r.taps.num_rows(),
        ..plain(body)
    };
    let first_sum = back.first_sum();
    let all = push(&mut b, back, &operands);
    let values = (0..r.num_ct).chain(first_sum..first_sum + r.wrt.len());
    let outputs: Vec<NodeId> = values.map(|k| b.proj(all, k)).collect();
    b.finish(&outputs)
}
