//! Lowers searches, tiles and conditionals: compiles their bodies and assigns their buffers. `lower_replay` lowers the
//! other loops.

use super::chaos::{self, Decision};
use super::codegen::elem;
use super::lower::Lower;
use super::places::Place;
use crate::backend::checkpoint::{StepBytes, TapeShape, num_slots, residual_budget};
use crate::backend::cpu::address::Address;
use crate::backend::cpu::kernels::{StripOp, strip};
use crate::backend::cpu::memory::aligned;
use crate::backend::cpu::plan::{Plan, Trips};
use crate::backend::cpu::report::{CompiledBody, Space, StoringLoop};
use crate::backend::cpu::run::cond::Cond;
use crate::backend::cpu::run::lockstep::LockstepRows;
use crate::backend::cpu::run::loops::{Carried, Solve};
use crate::backend::cpu::run::residuals::StoredResiduals;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::tape::SlotLayout;
use crate::backend::cpu::run::taps::{Tap, TapCotangent, Tapped};
use crate::backend::cpu::run::tiles::{Out, Tiles};
use crate::backend::cpu::run::totals::Total;
use crate::backend::{BodyKind, LoopReport};
use crate::graph::{self, Func, NodeId, Op, TileOut, Type, indices};
use crate::transform::{Residuals, plain_search, residuals};
use std::sync::Arc;

/// The loop data that a plan's workspace needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spaces {
    /// Workspaces of bodies, in order.
    pub inner: Vec<Plan>,
    pub tapes: Vec<TapeShape>,
    /// Bytes of a state and number of slots, per loop that reads states.
    pub restorers: Vec<(usize, usize)>,
    /// Bytes per trip, per sequence.
    pub sequences: Vec<usize>,
    pub schedules: usize,
    pub tiles: usize,
}

/// The schedule and the tape that a loop node produces.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub schedule: usize,
    /// The tape, if a node reads it.
    pub tape: Option<usize>,
}

impl Lower<'_> {
    /// The addresses of the operands `at`.
    pub fn operands(&mut self, id: usize, at: &[usize]) -> Box<[Address]> {
        at.iter().map(|&k| self.operand(id, k)).collect()
    }

    pub fn operand(&mut self, id: usize, k: usize) -> Address {
        let place = self.units.operands[id][k].clone();
        let ty = self.func.node(self.func.nodes()[id].args[k]).ty.clone();
        self.held(&place, &ty)
    }

    /// The node that extracts output `k` of a tuple node.
    fn proj(&self, id: usize, k: usize) -> Option<usize> {
        let is_it = |n: &graph::Node| matches!(n.op, Op::Proj(p) if p == k) && n.args[0].index() == id;
        self.func.nodes().iter().position(is_it)
    }

    /// The nodes that read output `k` of a tuple node.
    fn readers(&self, id: usize, k: usize) -> Vec<usize> {
        let Some(proj) = self.proj(id, k) else { return vec![] };
        let nodes = self.func.nodes();
        (0..nodes.len()).filter(|&i| nodes[i].args.iter().any(|a| a.index() == proj)).collect()
    }

    /// The location of output `k` of a tuple node; an unread output gets a buffer too.
    pub fn result(&mut self, id: usize, k: usize, ty: &Type) -> Address {
        let proj = self.proj(id, k);
        proj.and_then(|p| self.buffers.get(p)).unwrap_or_else(|| self.buffers.arena(ty.bytes()))
    }

    pub fn results(&mut self, id: usize, at: &[usize], types: &[Type]) -> Box<[Address]> {
        at.iter().zip(types).map(|(&k, ty)| self.result(id, k, ty)).collect()
    }

    pub fn temporaries(&mut self, types: &[Type]) -> Box<[Address]> {
        types.iter().map(|ty| self.buffers.arena(ty.bytes())).collect()
    }

    /// The carried values: the operands `from` before the first trip, the results `to` after the last one.
    pub fn carried(&mut self, id: usize, from: &[usize], to: &[usize], types: &[Type]) -> Carried {
        Carried {
            initial: self.operands(id, from),
            result: self.results(id, to, types),
            other: self.temporaries(types),
            bytes: types.iter().map(Type::bytes).collect(),
        }
    }

    /// The node and the index of its output that is operand `k`: a schedule, a tape or a sequence.
    pub fn maker(&self, id: usize, k: usize) -> (usize, usize) {
        let Place::Opaque { node } = self.units.operands[id][k] else {
            panic!("invariant: operand {k} of %{id} is an output of a loop");
        };
        let node = &self.func.nodes()[node];
        let Op::Proj(output) = node.op else {
            panic!("invariant: the plan that reads an output of a loop has the loop")
        };
        (node.args[0].index(), output)
    }

    /// The schedule and tape of the loop whose output is operand `k`.
    pub fn made(&self, id: usize, k: usize) -> Made {
        let (maker, _) = self.maker(id, k);
        self.made.iter().find(|(id, _)| *id == maker).expect("invariant: loops are lowered in order").1
    }

    /// Whether any node reads output `k` of loop node `id`: a schedule, a tape or a sequence.
    pub fn is_read(&self, id: usize, k: usize) -> bool {
        !self.readers(id, k).is_empty()
    }

    pub fn body(&mut self, kind: BodyKind, func: &Func, trips: Trips) -> Plan {
        let plan = Plan::of_body(func, self.level, trips);
        self.bodies.push(CompiledBody { kind, trips: 1, plan: plan.clone(), spaces: vec![] });
        plan
    }

    /// Sums over trips: the results `at`.
    pub fn totals(&mut self, id: usize, at: &[usize], types: &[Type]) -> Box<[Total]> {
        let at = self.results(id, at, types);
        at.iter().zip(types).map(|(&at, ty)| Total { at, bytes: ty.bytes() }).collect()
    }

    pub fn inner(&mut self, plan: &Plan) -> usize {
        self.spaces.inner.push(plan.clone());
        let space = self.spaces.inner.len() - 1;
        self.runs_in(plan, Space::Body(space));
        space
    }

    /// Records the workspace that a body runs in, since bodies are compiled in one order and get their
    /// workspaces in another order.
    fn runs_in(&mut self, plan: &Plan, space: Space) {
        let of = self.bodies.iter_mut().find(|body| Arc::ptr_eq(&body.plan.0, &plan.0));
        of.expect("invariant: `body` compiled it").spaces.push(space);
    }

    /// Adds the tape of node `id` to the workspace data; returns its index.
    pub fn tape(
        &mut self,
        id: usize,
        layout: &SlotLayout,
        left: Option<&StoredResiduals>,
        policy: graph::Policy,
    ) -> usize {
        let step = StepBytes { state: layout.bytes, residuals: left.map_or(0, |left| left.layout.bytes) };
        let budget = residual_budget(policy, step, self.known_steps(id));
        self.spaces.tapes.push(TapeShape {
            state_bytes: step.state,
            num: num_slots(policy, step.state),
            residual_bytes: step.residuals,
            budget: chaos::bound(
                Decision::Residuals,
                budget,
                &[0, 3 * step.state + 5 * step.residuals / 2, budget],
            ),
            lead: usize::from(left.is_some_and(|left| !left.first_trip.is_empty())),
        });
        self.spaces.tapes.len() - 1
    }

    /// The residuals of a loop whose tape is output `tape`. `None` if the budget is too small, or if not
    /// exactly one backward pass reads the tape, since each pass would need different residuals.
    pub fn residuals(
        &self,
        id: usize,
        tape: usize,
        state: usize,
        policy: graph::Policy,
    ) -> Option<Residuals> {
        let budget =
            |residuals| residual_budget(policy, StepBytes { state, residuals }, self.known_steps(id));
        let [rev] = self.readers(id, tape)[..] else { return None };
        let found = (budget(0) > 0).then(|| residuals(self.func, NodeId(rev as u32))).flatten()?;
        let types = found.recompute.output_types();
        let fits = budget(SlotLayout::of(types.iter().map(Type::bytes)).bytes) > 0;
        (fits && !chaos::forgoes(Decision::Residuals)).then_some(found)
    }

    /// The number of steps of search `id`, if it is a constant of the program.
    fn known_steps(&self, id: usize) -> Option<usize> {
        let node = &self.func.nodes()[id];
        let (Op::Solve(_), Some(expected)) = (&node.op, node.args.first()) else { return None };
        self.func.node(*expected).splat().map(|steps| steps as usize).filter(|&steps| steps > 0)
    }

    /// Compiles a forward body, with spare buffers for residuals that are not stored. `first` are the operands `first`
    /// of a search.
    pub fn forward(
        &mut self,
        (id, kind): (usize, BodyKind),
        own: &Func,
        (residuals, first): (Option<&Residuals>, &[usize]),
        trips: Trips,
    ) -> (Plan, Option<StoredResiduals>) {
        let left = residuals.map(|r| {
            let types = r.recompute.output_types();
            let layout = SlotLayout::of(types.iter().map(Type::bytes));
            let first_trip = self.operands(id, first);
            StoredResiduals { layout, first_trip, first: own.num_outputs(), spare: self.temporaries(&types) }
        });
        (self.body(kind, residuals.map_or(own, |r| &r.forward), trips), left)
    }

    /// If a tape is read, adds a report of how it stores its states.
    pub fn keeps(&mut self, is_read: bool, policy: graph::Policy, tape: usize) {
        if is_read {
            let report = LoopReport::new(self.spaces.tapes[tape], policy);
            self.loops.push(StoringLoop { report, tape, restorers: vec![] });
        }
    }

    /// The taps of a loop. `trip` has the types of one trip's taps, `rows` the types of the results `at`.
    pub fn taps(&mut self, id: usize, at: &[usize], trip: &[Type], rows: &[Type]) -> Box<[Tap]> {
        let all = at.iter().zip(trip.iter().zip(rows)).map(|(&k, (ty, rows))| Tap {
            trip: self.buffers.arena(ty.bytes()),
            rows: self.result(id, k, rows),
            bytes: ty.bytes(),
        });
        all.collect()
    }

    /// The values that a trip reads from the operands `at`: the sums of the tap rows that it holds.
    pub fn tap_rows(&mut self, id: usize, at: &[usize], types: &[Type]) -> Box<[TapCotangent]> {
        let all = at.iter().zip(types).map(|(&k, ty)| TapCotangent {
            rows: self.operand(id, k),
            sum: self.buffers.arena(ty.bytes()),
            zeros: self.buffers.arena(ty.bytes()),
            add: strip(self.level, StripOp::Add, elem(ty.dtype())),
            len: ty.shape().size(),
            bytes: ty.bytes(),
        });
        all.collect()
    }

    /// The additional buffers of a loop in lockstep with `num` rows that parks values of `types`.
    pub fn rows(&mut self, num: usize, types: &[Type]) -> LockstepRows {
        let buffers = &mut self.buffers;
        let flags = [0; 3].map(|_| buffers.arena(num * size_of::<u32>()));
        let verdicts = [0; 3].map(|_| buffers.arena(num * size_of::<u32>()));
        let step_times = [0; 2].map(|_| buffers.arena(num * size_of::<f64>()));
        LockstepRows { num, flags, step_times, verdicts, parked: self.temporaries(types) }
    }

    pub fn solve(&mut self, id: usize, s: &graph::Solve) {
        let (operands, places) = (s.operands(&indices(self.func.nodes()[id].args.len())), s.places());
        let plain = plain_search(s);
        let gives = plain.attempt_outputs(&plain.attempt.output_types());
        let types = [&gives.carry[..], &gives.ext].concat();
        let from = [&operands.carry[..], &operands.ext].concat();
        let to = [&places.carry[..], &places.ext].concat();
        let carried = self.carried(id, &from, &to, &types);
        let captures = self.operands(id, &operands.captures);
        let times = operands.times.first().map(|&k| self.operand(id, k));
        let tapped = (s.taps.num_rows() > 0).then_some(Tapped { taps: s.taps, times });
        let rows: Vec<Type> = gives.taps.iter().map(|ty| s.taps.tapped(ty, s.rows())).collect();
        let taps = self.taps(id, &places.tapped, &gives.taps, &rows);
        let layout = SlotLayout::of(gives.carry.iter().map(Type::bytes));
        let tape = places.tape[0];
        let residuals = self.residuals(id, tape, layout.bytes, s.policy);
        let trips = captured(s.first_attempt_capture(), captures.len());
        let residuals_of = (residuals.as_ref(), &operands.first[..]);
        let (attempt, left) = self.forward((id, BodyKind::Attempt), &plain.attempt, residuals_of, trips);
        let of_tape = self.tape(id, &layout, left.as_ref(), s.policy);
        let made = Made { schedule: self.spaces.schedules, tape: Some(of_tape) };
        self.halves.extend(residuals.map(|r| (of_tape, r)));
        self.spaces.schedules += s.rows().unwrap_or(1);
        self.made.push((id, made));
        let records = self.is_read(id, tape);
        self.keeps(records, s.policy, of_tape);
        let rows = s.rows().map(|n| self.rows(n, if records { &gives.carry } else { &[] }));
        let space = self.inner(&attempt);
        let step = Solve {
            space,
            attempt,
            expected: self.operand(id, operands.expected[0]),
            step_time: self.operand(id, operands.step_time[0]),
            tapped,
            taps,
            carried,
            captures,
            rows,
            layout,
            left,
            records,
            // Taps also read the schedule, for the previous step time.
            is_replayed: tapped.is_some() || self.is_read(id, places.schedule[0]),
            schedule: made.schedule,
            tape: of_tape,
        };
        self.push(Step::Solve(Box::new(step)), vec![]);
    }

    pub fn cond(&mut self, id: usize, c: &graph::Cond) {
        let pred = self.operand(id, 0);
        let inputs: Vec<usize> = (1..=c.then.num_inputs()).collect();
        let (inputs, types) = (self.operands(id, &inputs), c.then.output_types());
        let outputs = self.results(id, &indices(types.len()), &types);
        let branches = [
            self.body(BodyKind::Then, &c.then, Trips::default()),
            self.body(BodyKind::Otherwise, &c.otherwise, Trips::default()),
        ];
        let [space, _] = branches.each_ref().map(|plan| self.inner(plan));
        self.push(Step::Cond(Box::new(Cond { pred, branches, inputs, outputs, space })), vec![]);
    }

    pub fn tiles(&mut self, id: usize, t: &graph::Tiles) {
        let num = t.num_tiles();
        let body = self.body(BodyKind::Tile, &t.body, Trips::default());
        if let Some(body) = self.bodies.last_mut() {
            body.trips = num - usize::from(t.tail.is_some());
        }
        let tail = t.tail.as_ref().map(|f| self.body(BodyKind::LastTile, f, Trips::default()));
        let rowed = (0..t.num_rowed).map(|k| {
            let ty = t.body.input_type(1 + k);
            (self.operand(id, k), ty.bytes() / t.tile.max(1))
        });
        let rowed = rowed.collect();
        let shared: Vec<usize> = (t.num_rowed..t.body.num_inputs() - 1).collect();
        let shared = self.operands(id, &shared);
        let outs = t.outs.iter().enumerate().map(|(k, out)| {
            let (ty, whole) = (t.body.output_type(k).clone(), t.out_type(k));
            let at = self.result(id, k, &whole);
            match out {
                TileOut::Rows => Out::Rows { at, row: ty.bytes() / t.tile.max(1) },
                TileOut::Sum => {
                    let stride = aligned(ty.bytes());
                    let parts = self.buffers.arena(stride * num.saturating_sub(1));
                    let add = strip(self.level, StripOp::Add, elem(ty.dtype()));
                    Out::Sum { at, parts, stride, add, len: ty.shape().size(), elem: ty.dtype().size() }
                }
            }
        });
        let outs = outs.collect();
        let space = self.spaces.tiles;
        self.spaces.tiles += 1;
        self.runs_in(&body, Space::Tiles(space));
        if let Some(tail) = &tail {
            self.runs_in(tail, Space::LastTile(space));
        }
        let step = Tiles {
            body,
            tail,
            rows: t.tile,
            row0: (0..num).map(|i| (i * t.tile) as u32).collect(),
            #[cfg(test)]
            order: chaos::order(Decision::Tiles, num - usize::from(t.tail.is_some())),
            rowed,
            shared,
            outs,
            space,
        };
        self.push(Step::Tiles(Box::new(step)), vec![]);
    }
}

pub fn captured(first: usize, num: usize) -> Trips {
    Trips { captured: first..first + num, ..Trips::default() }
}
