//! The transpose of a replay: a loop in the opposite direction that carries cotangents.
//!
//! It reads the states of the loop and what the loop reads, stores the cotangents of the sequences that the loop
//! reads, sums the cotangents of its captures, and swaps taps and rows.

use super::pick;
use crate::graph::{
    Builder, Func, NodeId, Policy, Replay, ReplayOperands, ReplayValues, TripInputs, TripOutputs, Type,
    indices,
};
use crate::transform::bodies::{Source, plain_replay, resign};
use crate::transform::jvp::{add, or_zero};
use crate::transform::vjp::vjp_into;
use crate::transform::{TransformError, marked, placed, present};

/// A loop to transpose. A search is given by the replay of its step.
pub(super) struct Loop<'a> {
    pub(super) l: &'a Replay,
    /// The node of the loop.
    pub(super) y: NodeId,
    /// The positions of the node's values. The transpose reads the states or the tape.
    pub(super) places: ReplayValues<usize>,
    pub(super) x: ReplayOperands<NodeId>,
    /// The cotangents of the values.
    pub(super) g: ReplayValues<Option<NodeId>>,
    /// The operands whose cotangents are needed.
    pub(super) wanted: ReplayOperands<bool>,
}

/// The cotangents that the transposed loop computes and receives, by index.
struct Request {
    carry: Vec<usize>,
    xs: Vec<usize>,
    captures: Vec<usize>,
    rows: Vec<usize>,
    /// Carried values whose states have a cotangent.
    states: Vec<usize>,
    ys: Vec<usize>,
    sums: Vec<usize>,
    taps: Vec<usize>,
    /// Whether the states come from a tape; else they are sequences.
    from_tape: bool,
}

/// Returns an error unless the policy stores every state and the loop is not in lockstep.
pub(super) fn needs_all_states(l: &Replay) -> Result<(), TransformError> {
    match l.policy {
        Policy::Direct if l.lockstep().is_some() => Err(TransformError::SecondReverseOfRows),
        Policy::Direct => Ok(()),
        Policy::Checkpoint(_) => Err(TransformError::SecondReverse { adjoint: "RecursiveCheckpoint" }),
        Policy::Reversible => Err(TransformError::SecondReverse { adjoint: "Reversible" }),
        Policy::Forward => Err(TransformError::ForwardOnly),
    }
}

/// The cotangents of the operands. Only the operands that are wanted have one.
pub(super) fn transpose(
    b: &mut Builder,
    of: &Loop<'_>,
) -> Result<ReplayOperands<Option<NodeId>>, TransformError> {
    let Loop { l, y, places, x, g, wanted } = of;
    if l.policy == Policy::Forward {
        return Err(TransformError::ForwardOnly);
    }
    let request = Request {
        carry: marked(&wanted.carry),
        xs: marked(&wanted.xs),
        captures: marked(&wanted.captures),
        rows: marked(&wanted.rows),
        states: present(&g.states),
        ys: present(&g.ys),
        sums: present(&g.sums),
        taps: present(&g.tapped),
        // A tape suffices for a forward loop whose trips read no sequences. States with cotangents are sequences
        // that are stored already. Without carried values there is no state.
        from_tape: !l.is_reversed && l.num_carry > 0 && l.num_xs == 0 && present(&g.states).is_empty(),
    };
    if !request.from_tape && l.num_carry > 0 {
        needs_all_states(l)?;
    }
    let mut states = |at: &[usize]| at.iter().map(|&k| b.proj(*y, k)).collect::<Vec<NodeId>>();
    let (tape, sequences) = match (l.inverse.is_some(), request.from_tape) {
        (true, _) => (vec![], vec![]),
        (false, true) => (states(&places.tape), vec![]),
        (false, false) => (vec![], states(&places.states)),
    };
    let some = |g: &[Option<NodeId>]| g.iter().filter_map(|g| *g).collect::<Vec<NodeId>>();
    let operands = ReplayOperands {
        schedule: x.schedule.clone(),
        states: if tape.is_empty() { vec![] } else { x.carry.clone() },
        tape,
        carry: request.carry.iter().map(|&j| or_zero(b, g.carry[j], x.carry[j])).collect(),
        xs: [sequences, x.xs.clone(), some(&g.states), some(&g.ys)].concat(),
        captures: [x.captures.clone(), some(&g.sums)].concat(),
        rows: [x.rows.clone(), some(&g.tapped)].concat(),
    };
    let back = request.transposed(l)?;
    let (back, operands) = match &l.inverse {
        None => (back, operands),
        Some(inverse) => {
            let last: Vec<NodeId> = places.carry.iter().map(|&k| b.proj(*y, k)).collect();
            let carry = [last, operands.carry].concat();
            (retraced(&back, inverse), ReplayOperands { carry, ..operands })
        }
    };
    let values = back.places();
    let all = b.replay(back, operands);
    let carry = &values.carry[values.carry.len() - request.carry.len()..];
    let mut among =
        |n: usize, of: &[usize], at: &[usize]| placed(n, of, at.iter().map(|&at| b.proj(all, at)));
    Ok(ReplayOperands {
        schedule: vec![None],
        tape: vec![],
        states: vec![],
        carry: among(x.carry.len(), &request.carry, carry),
        xs: among(x.xs.len(), &request.xs, &values.ys),
        captures: among(x.captures.len(), &request.captures, &values.sums),
        rows: among(x.rows.len(), &request.rows, &values.tapped),
    })
}

impl Request {
    /// The loop in the opposite direction.
    fn transposed(&self, l: &Replay) -> Result<Replay, TransformError> {
        // Only a tape has residuals.
        let plain = (!self.from_tape || l.inverse.is_some()).then(|| plain_replay(l));
        let l = plain.as_ref().unwrap_or(l);
        let (body, further) = self.body(l)?;
        let num_states = if self.from_tape { l.num_carry } else { 0 };
        let num_rows = l.num_rows + self.taps.len();
        Ok(Replay {
            step: self.from_tape.then(|| self.step(l, &further)),
            body,
            inverse: None,
            is_reversed: !l.is_reversed,
            num_carry: self.carry.len(),
            num_states,
            num_xs: l.num_carry - num_states + l.num_xs + self.states.len() + self.ys.len(),
            num_ys: self.xs.len(),
            num_sums: self.captures.len(),
            num_rows,
            num_tap_rows: if num_rows + self.rows.len() > 0 { l.num_tap_rows } else { 0 },
            num_residuals: l.num_residuals,
            policy: l.policy,
        })
    }

    /// The step that recomputes states: a trip that also takes the captures and rows of the transpose.
    fn step(&self, l: &Replay, further: &[Type]) -> Func {
        let (takes, gives) = (l.inputs(&l.body.input_types()), l.outputs(&indices(l.body.num_outputs())));
        let of_taps = pick(&l.outputs(&l.body.output_types()).taps, &self.taps);
        let places = indices(l.body.num_inputs() + further.len() + of_taps.len());
        let all = TripInputs {
            captures: [&takes.captures[..], further].concat(),
            rows: [&takes.rows[..], &of_taps].concat(),
            ..takes.clone()
        };
        let places = all.like(&places);
        let own = takes.with(&places, |own, places| places[..own.len()].to_vec());
        let sources: Vec<Source> = own.join().into_iter().map(Source::Input).collect();
        resign(&l.body, &all.join(), &sources, &[gives.carry, gives.residuals].concat())
    }

    /// The transpose of a trip, and the types of the captures that it has in addition to those of the loop.
    fn body(&self, l: &Replay) -> Result<(Func, Vec<Type>), TransformError> {
        let takes = l.inputs(&l.body.input_types());
        let gives = l.outputs(&l.body.output_types());
        let further = pick(&gives.sums, &self.sums);
        let (states, stored) =
            if self.from_tape { (takes.carry.clone(), vec![]) } else { (vec![], takes.carry.clone()) };
        // Groups of one kind follow one another: the loop's own values, then the cotangents that it receives.
        let of_states = pick(&takes.carry, &self.states);
        let of_ys = pick(&gives.ys, &self.ys);
        let types = TripInputs {
            trip: takes.trip.clone(),
            live: takes.live.clone(),
            carry: pick(&takes.carry, &self.carry),
            states,
            xs: [&stored[..], &takes.xs, &of_states, &of_ys].concat(),
            captures: [&takes.captures[..], &further].concat(),
            rows: [&takes.rows[..], &pick(&gives.taps, &self.taps)].concat(),
        };
        let (mut b, ids) = Builder::with_inputs(&types.clone().join());
        let ids = types.like(&ids);
        let mut xs = ids.xs.into_iter();
        let mut take = |n: usize| xs.by_ref().take(n).collect::<Vec<NodeId>>();
        let stored = take(stored.len());
        let (own_xs, of_states, of_ys) = (take(l.num_xs), take(of_states.len()), take(of_ys.len()));
        let (captures, of_sums) = ids.captures.split_at(takes.captures.len());
        let (rows, of_taps) = ids.rows.split_at(takes.rows.len());
        let x = TripInputs {
            trip: ids.trip,
            live: ids.live,
            carry: if self.from_tape { ids.states } else { stored },
            states: vec![],
            xs: own_xs,
            captures: captures.to_vec(),
            rows: rows.to_vec(),
        };
        let g = TripOutputs {
            carry: given(l.num_carry, &self.carry, &ids.carry),
            ys: given(l.num_ys, &self.ys, &of_ys),
            sums: given(l.num_sums, &self.sums, of_sums),
            taps: given(gives.taps.len(), &self.taps, of_taps),
            residuals: vec![None; l.num_residuals],
        };
        let active = TripInputs {
            trip: vec![false; takes.trip.len()],
            live: vec![false; takes.live.len()],
            carry: wanted(l.num_carry, &self.carry),
            states: vec![],
            xs: wanted(l.num_xs, &self.xs),
            captures: wanted(takes.captures.len(), &self.captures),
            rows: wanted(l.num_rows, &self.rows),
        };
        let (values, found) = vjp_into(&mut b, &l.body, &x.clone().join(), &active.join(), &g.join())?;
        let mut found = l.inputs(&found);
        for (&j, id) in self.states.iter().zip(of_states) {
            found.carry[j] = add(&mut b, found.carry[j], Some(id));
        }
        let mut only = |found: &[Option<NodeId>], x: &[NodeId], of: &[usize]| -> Vec<NodeId> {
            of.iter().map(|&k| or_zero(&mut b, found[k], x[k])).collect()
        };
        let outputs = TripOutputs {
            carry: only(&found.carry, &x.carry, &self.carry),
            ys: only(&found.xs, &x.xs, &self.xs),
            sums: only(&found.captures, &x.captures, &self.captures),
            taps: only(&found.rows, &x.rows, &self.rows),
            residuals: l.outputs(&values).residuals,
        };
        Ok((b.finish(&outputs.join()), further))
    }
}

/// `n` cotangents, of which those at `of` are given.
fn given(n: usize, of: &[usize], ids: &[NodeId]) -> Vec<Option<NodeId>> {
    let mut g = vec![None; n];
    of.iter().zip(ids).for_each(|(&k, &id)| g[k] = Some(id));
    g
}

/// `n` flags, of which those at `of` are set.
fn wanted(n: usize, of: &[usize]) -> Vec<bool> {
    (0..n).map(|k| of.contains(&k)).collect()
}

/// The transposed loop without stored states: `inverse` recovers the state before each trip from the state after
/// it, which the loop carries before its cotangents.
fn retraced(back: &Replay, inverse: &Func) -> Replay {
    let own = back.inputs(&back.body.input_types());
    let types = TripInputs { carry: [&own.states[..], &own.carry].concat(), states: vec![], ..own.clone() };
    let (mut b, ids) = Builder::with_inputs(&types.clone().join());
    let ids = types.like(&ids);
    let (after, cts) = ids.carry.split_at(back.num_states);
    let of_inverse = TripInputs {
        carry: after.to_vec(),
        captures: ids.captures[..inverse.num_inputs() - ids.trip.len() - ids.live.len() - after.len()]
            .to_vec(),
        xs: vec![],
        rows: vec![],
        ..ids.clone()
    };
    let before = b.inline(inverse, &of_inverse.join());
    let of_body = TripInputs { carry: cts.to_vec(), states: before.clone(), ..ids };
    let cotangents = b.inline(&back.body, &of_body.join());
    let body = b.finish(&[before, cotangents].concat());
    Replay { body, step: None, num_carry: back.num_states + back.num_carry, num_states: 0, ..back.clone() }
}
