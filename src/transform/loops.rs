//! Derivatives of loops: the derivative of a loop is a loop over the derivative of its step.
//!
//! The search itself is not differentiated: its accepted step times are data, and a step leads from one step
//! time to the next. So vjp(Solve) = vjp(Scan) = [`Rev`] along the schedule, jvp(Solve) = [`Scan`] of
//! jvp(step) along the schedule of the same search, and jvp(Rev) = Rev of jvp(bwd). A Rev stores no states of
//! its own backward pass. Its vjp exists only if all forward states are stored; `sequence` implements it. The
//! *doubled* step or loop computes values and tangents together.
//!
//! Carried values have no tangent if they do not depend on the arguments, and no cotangent if no output with
//! a cotangent depends on them. The ext values of a search have neither tangents nor cotangents.

use super::TransformError;
use super::bodies::{Source, resign};
use super::flow::{Set, node_flows};
use super::jvp::{JvpRule, jvp_into, or_zero};
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents};
use crate::graph::{Builder, Checkpoints, Func, Loop, NodeId, Op, Policy, Rev, Scan, Solve, Taps, Type};
use std::sync::Arc;

/// The operands of a forward loop by role.
struct Parts<'a> {
    step: &'a Func,
    inverse: Option<&'a Func>,
    /// The number of inputs of the step before the carry.
    head: usize,
    num_carry: usize,
    policy: Policy,
    schedule: NodeId,
    /// The operand index of the first carry.
    carry: usize,
    /// The operand index of the first capture.
    captures: usize,
    num_captures: usize,
    taps: Taps,
    /// The value index of the first tapped value.
    tapped: usize,
}

impl<'a> Parts<'a> {
    fn of_solve(b: &mut Builder, s: &'a Solve, y: NodeId) -> Parts<'a> {
        let schedule = b.proj(y, s.num_carry + s.num_ext);
        Parts {
            step: &s.step,
            inverse: s.inverse.as_ref(),
            head: s.head(),
            num_carry: s.num_carry,
            policy: s.policy,
            schedule,
            carry: s.first_carry(),
            captures: s.first_carry() + s.num_carry + s.num_ext,
            num_captures: s.num_captures(),
            taps: s.taps,
            tapped: s.first_tapped(),
        }
    }

    fn of_scan(s: &'a Scan, x: &[NodeId]) -> Parts<'a> {
        Parts {
            step: &s.step,
            inverse: s.inverse.as_ref(),
            head: s.head(),
            num_carry: s.num_carry,
            policy: s.policy,
            schedule: x[0],
            carry: 1,
            captures: 1 + s.num_carry,
            num_captures: s.num_captures(),
            taps: s.taps,
            tapped: s.first_tapped(),
        }
    }

    fn num_taps(&self) -> usize {
        self.step.num_outputs() - self.num_carry
    }
}

pub(super) fn jvp_solve(b: &mut Builder, s: &Solve, rule: &JvpRule) -> Tangents {
    let parts = Parts::of_solve(b, s, rule.y);
    jvp_forward(b, &parts, rule)
}

pub(super) fn jvp_scan(b: &mut Builder, s: &Scan, rule: &JvpRule) -> Tangents {
    jvp_forward(b, &Parts::of_scan(s, rule.x), rule)
}

/// Which values of a loop have tangents, by index.
struct Moving {
    /// The number of inputs of the step before the carry.
    head: usize,
    carry: Vec<usize>,
    captures: Vec<usize>,
    /// Those of `captures` whose tangent is zero. The body of the loop does not read this tangent.
    still: Vec<usize>,
}

impl Moving {
    /// The input types of the doubled step.
    fn types(&self, step: &Func, num_carry: usize) -> Vec<Type> {
        let of = |k: usize| step.input_type(k).clone();
        let captures = self.head + num_carry;
        let mut types: Vec<Type> = (0..captures).map(of).collect();
        types.extend(self.carry.iter().map(|&j| of(self.head + j)));
        types.extend((captures..step.num_inputs()).map(of));
        types.extend(self.captures.iter().map(|&c| of(captures + c)));
        types
    }

    /// The operands after the schedule for a doubled loop.
    fn operands(
        &self,
        b: &mut Builder,
        carry: &[NodeId],
        captures: &[NodeId],
        d: (&Tangents, &Tangents),
    ) -> Vec<NodeId> {
        let mut ids = carry.to_vec();
        ids.extend(self.carry.iter().map(|&j| or_zero(b, d.0[j], carry[j])));
        ids.extend(captures);
        ids.extend(self.captures.iter().map(|&c| or_zero(b, d.1[c], captures[c])));
        ids
    }

    /// Splits the inputs of a doubled step into values and tangents, in the order of the step's inputs.
    fn split(&self, ids: &[NodeId], num_carry: usize, num_captures: usize) -> (Vec<NodeId>, Tangents) {
        let first = self.head + num_carry;
        let at = first + self.carry.len();
        let mut x = ids[..first].to_vec();
        x.extend(&ids[at..at + num_captures]);
        let mut d = vec![None; x.len()];
        for (i, &j) in self.carry.iter().enumerate() {
            d[self.head + j] = Some(ids[first + i]);
        }
        for (i, &c) in self.captures.iter().enumerate().filter(|(_, c)| !self.still.contains(c)) {
            d[first + c] = Some(ids[at + num_captures + i]);
        }
        (x, d)
    }

    /// The doubled step. Instead of its taps, it returns the tangents of the taps in `taps`.
    fn step(&self, step: &Func, num_carry: usize, taps: &[usize]) -> Func {
        let (mut b, ids) = Builder::with_inputs(&self.types(step, num_carry));
        let (x, d) = self.split(&ids, num_carry, step.num_inputs() - self.head - num_carry);
        let (values, tangents) = jvp_into(&mut b, step, &x, &d);
        let mut outputs = values[..num_carry].to_vec();
        for j in self.carry.iter().copied().chain(taps.iter().map(|i| num_carry + i)) {
            outputs.push(or_zero(&mut b, tangents[j], values[j]));
        }
        b.finish(&outputs)
    }
}

pub(super) fn present(d: &[Option<NodeId>]) -> Vec<usize> {
    (0..d.len()).filter(|&k| d[k].is_some()).collect()
}

fn jvp_forward(b: &mut Builder, p: &Parts, rule: &JvpRule) -> Tangents {
    let (carry, captures) = (p.carry..p.carry + p.num_carry, p.captures..p.captures + p.num_captures);
    let (d_carry, d_captures) = (rule.dx[carry.clone()].to_vec(), rule.dx[captures.clone()].to_vec());
    let moving = Moving {
        head: p.head,
        carry: (0..p.num_carry).filter(|&j| rule.active[j]).collect(),
        captures: present(&d_captures),
        still: vec![],
    };
    let mut x = vec![p.schedule];
    x.extend(moving.operands(b, &rule.x[carry], &rule.x[captures], (&d_carry, &d_captures)));
    let taps: Vec<usize> = (0..p.num_taps()).filter(|i| rule.active[p.tapped + i]).collect();
    let scan = Scan {
        step: moving.step(p.step, p.num_carry, &taps),
        inverse: p.inverse.map(|f| moving.step(f, p.num_carry, &[])),
        num_carry: p.num_carry + moving.carry.len(),
        taps: p.taps.only_if(!taps.is_empty()),
        policy: p.policy,
    };
    let first_tapped = scan.first_tapped();
    let all = b.push(Op::Scan(Arc::new(scan)), &x, None);
    let mut out = vec![None; rule.active.len()];
    for (i, &j) in moving.carry.iter().enumerate() {
        out[j] = Some(b.proj(all, p.num_carry + i));
    }
    for (k, &i) in taps.iter().enumerate() {
        out[p.tapped + i] = Some(b.proj(all, first_tapped + k));
    }
    out
}

/// The policy of the search that filled a tape.
pub(super) fn policy_of(b: &Builder, tape: NodeId) -> Policy {
    let maker = b.node(tape).args.first().map(|&a| &b.node(a).op);
    match maker {
        Some(Op::Solve(s)) => s.policy,
        Some(Op::Scan(s)) => s.policy,
        _ => Policy::Checkpoint(Checkpoints::Auto),
    }
}

/// Values, captures and cotangents are doubled. The tape of the forward pass has no tangents. If a state has
/// a tangent, a Scan of the doubled step therefore fills a new tape.
pub(super) fn jvp_rev(b: &mut Builder, r: &Rev, rule: &JvpRule) -> Tangents {
    let (nc, np) = (r.num_carry, r.num_captures());
    let (carry, captures, cts) = (2..2 + nc, 2 + nc..2 + nc + np, 2 + nc + np..2 + nc + np + r.num_ct);
    let taps = cts.end..cts.end + r.num_ct_taps;
    let d = |at: std::ops::Range<usize>| rule.dx[at].to_vec();
    let (d_carry, d_captures, d_cts) = (d(carry.clone()), d(captures.clone()), d(cts.clone()));
    let moving_cts: Vec<usize> = (0..r.num_ct).filter(|&j| rule.active[j]).collect();
    let moving_taps = present(&rule.dx[taps.clone()]);
    let moving_sums: Vec<usize> = (r.num_ct..rule.active.len()).filter(|&k| rule.active[k]).collect();
    // `wrt` lists the tangent of a sum under the tangent of its capture, so the captures of these sums need
    // tangents.
    let summed: Vec<usize> = moving_sums.iter().map(|&k| r.wrt[k - r.num_ct]).collect();
    let (some, is_summed) = (|c: usize| d_captures[c].is_some(), |c: usize| summed.contains(&c));
    let moving = Moving {
        head: r.head(),
        carry: moving_carries(r, &d_carry, &d_captures),
        captures: (0..np).filter(|&c| some(c) || is_summed(c)).collect(),
        still: (0..np).filter(|&c| !some(c) && is_summed(c)).collect(),
    };
    let mut x = vec![rule.x[0], rule.x[1]];
    x.extend(moving.operands(b, &rule.x[carry], &rule.x[captures], (&d_carry, &d_captures)));
    let (num_carry, step) = (nc + moving.carry.len(), moving.step(&r.step, nc, &[]));
    if !moving.carry.is_empty() {
        let (step, policy) = (step.clone(), policy_of(b, rule.x[1]));
        let scan = Scan { step, inverse: None, num_carry, taps: Taps::default(), policy };
        let forward: Vec<NodeId> = [&x[..1], &x[2..]].concat();
        let forward = b.push(Op::Scan(Arc::new(scan)), &forward, None);
        x[1] = b.proj(forward, num_carry);
    }
    x.extend(&rule.x[cts.clone()]);
    x.extend(moving_cts.iter().map(|&j| or_zero(b, d_cts[j], rule.x[cts.start + j])));
    x.extend(&rule.x[taps.clone()]);
    x.extend(moving_taps.iter().filter_map(|&i| rule.dx[taps.start + i]));
    let bwd = doubled_bwd(r, &moving, [&moving_cts, &moving_taps, &moving_sums]);
    let tangent_of = |c: &usize| np + moving.captures.iter().position(|m| m == c).unwrap_or_default();
    let wrt = r.wrt.iter().copied().chain(summed.iter().map(tangent_of)).collect();
    let num_ct = r.num_ct + moving_cts.len();
    let num_ct_taps = r.num_ct_taps + moving_taps.len();
    let rev = Rev { step, bwd, num_carry, num_ct, num_ct_taps, taps: r.taps, wrt };
    let all = b.push(Op::Rev(Arc::new(rev)), &x, None);
    let mut out = vec![None; rule.active.len()];
    for (i, &j) in moving_cts.iter().enumerate() {
        out[j] = Some(b.proj(all, r.num_ct + i));
    }
    for (i, &k) in moving_sums.iter().enumerate() {
        out[k] = Some(b.proj(all, num_ct + r.wrt.len() + i));
    }
    out
}

/// The carries that depend on a value with a tangent, at any trip.
fn moving_carries(r: &Rev, d_carry: &Tangents, d_captures: &Tangents) -> Vec<usize> {
    let (step, policy) = (r.step.clone(), Policy::Direct);
    let step = Scan { step, inverse: None, num_carry: r.num_carry, taps: Taps::default(), policy };
    let moves: Set = present(d_carry)
        .into_iter()
        .chain(present(d_captures).into_iter().map(|c| r.num_carry + c))
        .collect();
    let flows = super::flow::scan_flows(&step);
    (0..r.num_carry).filter(|&j| flows[j].iter().any(|k| moves.contains(k - 1))).collect()
}

/// `bwd` with tangents. Its outputs are `ct..`, their tangents, `sums..`, and their tangents.
fn doubled_bwd(r: &Rev, moving: &Moving, [moving_cts, moving_taps, moving_sums]: [&[usize]; 3]) -> Func {
    let (nc, np) = (r.num_carry, r.num_captures());
    let mut types = moving.types(&r.step, nc);
    let states = types.len();
    let first = moving.head + nc + np;
    let ct = |j: usize| r.bwd.input_type(first + j).clone();
    types.extend((0..r.num_ct).map(ct));
    types.extend(moving_cts.iter().map(|&j| ct(j)));
    let taps = types.len();
    types.extend((0..r.num_ct_taps).map(|i| ct(r.num_ct + i)));
    types.extend(moving_taps.iter().map(|&i| ct(r.num_ct + i)));
    let (mut b, ids) = Builder::with_inputs(&types);
    let (mut x, mut d) = moving.split(&ids[..states], nc, np);
    x.extend(&ids[states..states + r.num_ct]);
    x.extend(&ids[taps..taps + r.num_ct_taps]);
    d.resize(x.len(), None);
    for (i, &j) in moving_cts.iter().enumerate() {
        d[first + j] = Some(ids[states + r.num_ct + i]);
    }
    for (k, &i) in moving_taps.iter().enumerate() {
        d[first + r.num_ct + i] = Some(ids[taps + r.num_ct_taps + k]);
    }
    let (values, tangents) = jvp_into(&mut b, &r.bwd, &x, &d);
    let mut outputs = values[..r.num_ct].to_vec();
    outputs.extend(moving_cts.iter().map(|&j| or_zero(&mut b, tangents[j], values[j])));
    outputs.extend(&values[r.num_ct..]);
    outputs.extend(moving_sums.iter().map(|&k| or_zero(&mut b, tangents[k], values[k])));
    b.finish(&outputs)
}

pub(super) fn vjp_solve(b: &mut Builder, s: &Solve, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let parts = Parts::of_solve(b, s, rule.y);
    let tape = b.proj(rule.y, s.num_carry + s.num_ext + 1);
    vjp_forward(b, &parts, tape, rule)
}

pub(super) fn vjp_scan(b: &mut Builder, s: &Scan, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let tape = b.proj(rule.y, s.num_carry);
    vjp_forward(b, &Parts::of_scan(s, rule.x), tape, rule)
}

fn vjp_forward(
    b: &mut Builder,
    p: &Parts,
    tape: NodeId,
    rule: &VjpRule,
) -> Result<Cotangents, TransformError> {
    if p.policy == Policy::Forward {
        return Err(TransformError::ForwardOnly);
    }
    // An operand is active if a value that has a cotangent depends on it.
    let flows = node_flows(rule.f, rule.node);
    let counts = |k: usize| flows.iter().zip(rule.g).any(|(s, g)| g.is_some() && s.contains(k));
    let cts: Vec<usize> = (0..p.num_carry).filter(|&j| rule.active[j] && counts(p.carry + j)).collect();
    let wrt: Vec<usize> =
        (0..p.num_captures).filter(|&c| rule.on[p.captures + c] && counts(p.captures + c)).collect();
    let taps = present(&rule.g[p.tapped..p.tapped + p.num_taps()]);
    let bwd = backward_step(p, &cts, &taps, &wrt)?;
    let carry = &rule.x[p.carry..p.carry + p.num_carry];
    let mut x = vec![p.schedule, tape];
    x.extend(carry);
    x.extend(&rule.x[p.captures..p.captures + p.num_captures]);
    x.extend(cts.iter().map(|&j| or_zero(b, rule.g[j], carry[j])));
    x.extend(taps.iter().filter_map(|&i| rule.g[p.tapped + i]));
    let rows = p.taps.only_if(!taps.is_empty());
    let all: Vec<NodeId> = if let Some(inverse) = p.inverse {
        let back = retraced(p.num_carry, inverse, &bwd, [cts.len(), taps.len(), rows.num_rows()]);
        (0..p.num_carry).for_each(|j| x[2 + j] = b.proj(rule.y, j));
        let (states, rest) = x[2..].split_at(p.num_carry);
        let (captures, rest) = rest.split_at(p.num_captures);
        let (g, rows) = rest.split_at(cts.len());
        let values = (p.num_carry..p.num_carry + cts.len()).chain(back.first_sum()..back.first_tapped());
        let values: Vec<usize> = values.collect();
        let operands = [&[p.schedule], states, g, captures, rows].concat();
        let all = b.push(Op::Loop(Arc::new(back)), &operands, None);
        values.into_iter().map(|k| b.proj(all, k)).collect()
    } else {
        let (step, num_carry, num_ct, num_ct_taps) = (untapped(p), p.num_carry, cts.len(), taps.len());
        let wrt = wrt.clone();
        let rev = Rev { step, bwd, num_carry, num_ct, num_ct_taps, taps: rows, wrt };
        let all = b.push(Op::Rev(Arc::new(rev)), &x, None);
        b.projections(all)
    };
    let mut out = vec![None; rule.x.len()];
    let to = cts.iter().map(|&j| p.carry + j).chain(wrt.iter().map(|&c| p.captures + c));
    for (i, k) in to.enumerate().filter(|(_, k)| rule.on[*k]) {
        out[k] = Some(all[i]);
    }
    Ok(out)
}

/// The backward loop that needs no stored states: `inverse` recovers the state before each trip, and `bwd` is
/// evaluated at this state.
fn retraced(
    num_carry: usize,
    inverse: &Func,
    bwd: &Func,
    [num_ct, num_rows, num_tap_rows]: [usize; 3],
) -> Loop {
    let own = bwd.input_types();
    let (trip, rest) = own.split_at(4);
    let (state, rest) = rest.split_at(num_carry);
    let (captures, rest) = rest.split_at(rest.len() - num_ct - num_rows);
    let (ct, rows) = rest.split_at(num_ct);
    let (mut b, x) = Builder::with_inputs(&[trip, state, ct, captures, rows].concat());
    let (trip, rest) = x.split_at(4);
    let (state, rest) = rest.split_at(num_carry);
    let (ct, rest) = rest.split_at(num_ct);
    let (captures, rows) = rest.split_at(captures.len());
    let before = b.inline(inverse, &[trip, state, captures].concat());
    let cotangents = b.inline(bwd, &[trip, &before, captures, ct, rows].concat());
    let body = b.finish(&[before, cotangents].concat());
    Loop {
        body,
        is_reversed: true,
        num_carry: num_carry + num_ct,
        num_xs: 0,
        num_ys: 0,
        num_sums: bwd.num_outputs() - num_ct,
        num_rows,
        num_tap_rows,
        policy: Policy::Reversible,
    }
}

/// The step without its taps.
fn untapped(p: &Parts) -> Func {
    if p.num_taps() == 0 {
        return p.step.clone();
    }
    let own: Vec<Source> = (0..p.step.num_inputs()).map(Source::Input).collect();
    resign(p.step, &p.step.input_types(), &own, &(0..p.num_carry).collect::<Vec<_>>())
}

/// The vjp of a step with respect to the carries in `cts` and the captures in `wrt`, for cotangents of these
/// carries and of `taps`.
fn backward_step(p: &Parts, cts: &[usize], taps: &[usize], wrt: &[usize]) -> Result<Func, TransformError> {
    let mut types = p.step.input_types();
    types.extend(cts.iter().map(|&j| p.step.input_type(p.head + j).clone()));
    types.extend(taps.iter().map(|&i| p.step.output_type(p.num_carry + i).clone()));
    let (mut b, ids) = Builder::with_inputs(&types);
    let (x, g) = ids.split_at(p.step.num_inputs());
    let needed: Vec<usize> =
        cts.iter().map(|&j| p.head + j).chain(wrt.iter().map(|&c| p.head + p.num_carry + c)).collect();
    let active: Vec<bool> = (0..x.len()).map(|k| needed.contains(&k)).collect();
    let mut cotangents = vec![None; p.step.num_outputs()];
    let out = cts.iter().copied().chain(taps.iter().map(|i| p.num_carry + i));
    out.zip(g).for_each(|(k, &g)| cotangents[k] = Some(g));
    let (_, found) = vjp_into(&mut b, p.step, x, &active, &cotangents)?;
    let outputs: Vec<NodeId> = needed.iter().map(|&k| or_zero(&mut b, found[k], x[k])).collect();
    Ok(b.finish(&outputs))
}
