//! Groups nodes into units; each unit becomes one kernel.
//!
//! Elementwise nodes with the same number of elements are merged as long as the units stay acyclic, and a
//! reduction joins the unit that computes its operand. A product absorbs the nodes of its layer
//! ([`Units::layer`]). Every other computed node is its own unit. A value stays inside a unit only if
//! producer and reader visit the elements in the same order. Any other access (a broadcast, a slice, a result
//! of a reduction) needs the finished buffer and is an edge *between* units. Merging is greedy in topological
//! order. A search for the best partition (as burn-fusion does over operation streams) would cost more than
//! it saves, because the main gain is that chains of elementwise operations stay in L1.
//!
//! Reachability is stored as bit sets. The pass does not depend on kernels or on the memory plan.

use super::chaos::{self, Decision};
use super::places::{Geometry, Operand, Place, is_layout, place};
use crate::graph::{Func, Op};
use crate::transform::Set;

/// The maximum number of nodes per unit. More nodes gain nothing and slow down register allocation.
const MAX_NODES: usize = 256;
/// The maximum number of buffers that a unit reads. Strips of more buffers do not fit into L1 together.
const MAX_STREAMS: usize = 24;
/// Below this number of elements, a transposed view is read in place without a copy, and streams are so short
/// that their number is not limited.
const SMALL: usize = 256;
/// A repeated constant of at most this many bytes is stored in the plan. A kernel writes a larger one in each
/// run.
const MAX_SPLAT_BYTES: usize = 16 << 10;

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A strip program: elementwise nodes, and reductions at the end.
    Fused,
    /// A view copied into its own buffer; the node is the layout operation.
    Move,
    /// Any other operation; a product may absorb the nodes of its layer (see [`Units::layer`]).
    Single,
}

/// A group of nodes that becomes one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub kind: Kind,
    /// Its nodes in topological order; empty if the unit was merged into another.
    pub nodes: Vec<usize>,
    /// Elements that a fused unit iterates over.
    pub size: usize,
    /// The geometry of its reductions, if any.
    pub geometry: Option<Geometry>,
    /// Units whose results it reads.
    pub preds: Vec<usize>,
    /// The predecessors that must finish before it starts.
    pub blocking: Vec<usize>,
    /// The roots of its operands, including those that the unit computes itself after a merge.
    roots: Vec<usize>,
}

/// The grouping of a function's live nodes.
#[derive(Default)]
pub(crate) struct Units {
    pub all: Vec<Unit>,
    /// The place of each node's value.
    pub places: Vec<Place>,
    /// The places of the operands of each computed node.
    pub operands: Vec<Vec<Place>>,
    /// The unit that computes a root, before merges.
    pub made_by: Vec<Option<usize>>,
    /// The unit that absorbed each unit; the unit itself if it was not merged.
    merged: Vec<usize>,
    /// Units that a unit depends on, directly or indirectly.
    pub reach: Vec<Set>,
    /// Fused units that read a root.
    readers: Vec<Vec<usize>>,
    /// Fused units of one element, whose cost is mostly their call.
    scalars: Vec<usize>,
    /// Number of readers of each node, including outputs of the function.
    pub num_readers: Vec<usize>,
}

/// Groups the nodes of `func`, the output of [`super::prepare::prepare`].
pub(crate) fn group(func: &Func) -> Units {
    let n = func.nodes().len();
    let mut u = Units {
        made_by: vec![None; n],
        operands: vec![Vec::new(); n],
        readers: vec![Vec::new(); n],
        num_readers: vec![0; n],
        ..Units::default()
    };
    let live = live(func);
    let args = func.nodes().iter().zip(&live).filter(|(_, live)| **live).flat_map(|(n, _)| &n.args);
    args.chain(func.outputs()).for_each(|a| u.num_readers[a.index()] += 1);
    for id in 0..n {
        if !live[id] {
            u.places.push(Place::Opaque { node: id });
            continue;
        }
        let at = place(func, id, &u.places);
        u.places.push(at);
        u.add(func, id);
    }
    u
}

fn live(func: &Func) -> Vec<bool> {
    let mut live = vec![false; func.nodes().len()];
    func.outputs().iter().for_each(|o| live[o.index()] = true);
    for (i, node) in func.nodes().iter().enumerate().rev() {
        if live[i] {
            node.args.iter().for_each(|a| live[a.index()] = true);
        }
    }
    live
}

impl Units {
    /// The unit that computes a root, if it is computed.
    pub fn unit_of(&self, root: usize) -> Option<usize> {
        self.made_by[root].map(|u| self.current(u))
    }

    /// How often the buffer of a root is read, by computed nodes and as outputs of the function: also through views of it,
    /// which [`Units::num_readers`] counts as readers.
    pub fn num_reads(&self, root: usize, func: &Func) -> usize {
        let outputs = func.outputs().iter().map(|o| &self.places[o.index()]);
        self.operands.iter().flatten().chain(outputs).filter(|place| place.root() == Some(root)).count()
    }

    /// Records that unit `u` reads a result of unit `pred`.
    pub fn add_pred(&mut self, u: usize, pred: usize) {
        insert(&mut self.all[u].preds, pred);
    }

    /// Units whose results unit `u` reads.
    pub fn preds(&self, u: usize) -> impl Iterator<Item = usize> + '_ {
        self.all[u].preds.iter().map(|&p| self.current(p)).filter(move |&p| p != u)
    }

    fn current(&self, mut unit: usize) -> usize {
        while self.merged[unit] != unit {
            unit = self.merged[unit];
        }
        unit
    }

    fn add(&mut self, func: &Func, id: usize) {
        let node = &func.nodes()[id];
        let args = node.args.iter().map(|a| a.index());
        match &node.op {
            Op::Input(_) | Op::Const(_) | Op::Iota { .. } => {}
            Op::Proj(_) => self.made_by[id] = self.made_by[node.args[0].index()],
            op if is_layout(op) => {
                if self.places[id].root() == Some(id) {
                    let from = self.places[node.args[0].index()].clone();
                    self.push(id, Kind::Move, 0, None, vec![from]);
                }
            }
            op if self.layer(func, id, op) => {}
            op if op.is_elementwise() => {
                let operands = args.map(|a| self.straight(a, func)).collect();
                self.push(id, Kind::Fused, node.ty.shape().size(), None, operands);
                self.join(id);
            }
            Op::Reduce { axes, .. } => {
                let from = node.args[0].index();
                let shape = func.nodes()[from].ty.shape();
                let operands = vec![self.straight(from, func)];
                self.push(id, Kind::Fused, shape.size(), Geometry::of(shape, axes), operands);
                self.join(id);
            }
            op => {
                let operand = |(k, a)| match op {
                    Op::Dot { .. } if k == 0 => self.held(a, func),
                    Op::Dot { .. } => self.rows(a, func),
                    Op::Concat { .. } | Op::Pad { .. } => self.straight(a, func),
                    _ => self.whole(a, func),
                };
                // A solution is computed from the factors alone; the matrix is there for derivatives.
                let is_read = |k: &usize| !(matches!(op, Op::LuSolve { .. }) && *k == 1);
                let operands = args.enumerate().filter(|(k, _)| is_read(k)).map(operand).collect();
                self.push(id, Kind::Single, 0, None, operands);
            }
        }
    }

    /// The place of node `id`; a large transposed view is first copied into its own buffer.
    fn straight(&mut self, id: usize, func: &Func) -> Place {
        match &self.places[id] {
            Place::At(o) if o.view.is_transposed() && o.view.size() >= SMALL => self.moved(id, func),
            at => at.clone(),
        }
    }

    /// The place of node `id`, a batch of matrices; if its rows are not contiguous, they are first copied.
    fn rows(&mut self, id: usize, func: &Func) -> Place {
        match &self.places[id] {
            Place::At(o) if o.view.dims.last().is_some_and(|d| d.stride != 1 && d.len != 1) => {
                self.moved(id, func)
            }
            _ => self.held(id, func),
        }
    }

    /// The place of node `id`; a large repeated constant is first written to a buffer.
    fn held(&mut self, id: usize, func: &Func) -> Place {
        match &self.places[id] {
            Place::Splat { .. } if func.nodes()[id].ty.bytes() > MAX_SPLAT_BYTES => self.moved(id, func),
            at => at.clone(),
        }
    }

    /// The place of node `id` in a contiguous buffer; other views are first copied.
    fn whole(&mut self, id: usize, func: &Func) -> Place {
        match &self.places[id] {
            Place::At(o) if !o.view.is_linear() => self.moved(id, func),
            _ => self.held(id, func),
        }
    }

    fn moved(&mut self, id: usize, func: &Func) -> Place {
        let from = std::mem::replace(&mut self.places[id], Place::own(id, func.nodes()[id].ty.shape()));
        assert!(from.root() != Some(id), "invariant: %{id} would be copied onto itself");
        self.push(id, Kind::Move, 0, None, vec![from]);
        self.places[id].clone()
    }

    fn push(&mut self, id: usize, kind: Kind, size: usize, geometry: Option<Geometry>, operands: Vec<Place>) {
        let unit = self.all.len();
        let mut u = Unit {
            kind,
            nodes: vec![id],
            size,
            geometry,
            preds: vec![],
            blocking: vec![],
            roots: operands.iter().filter_map(Place::root).collect(),
        };
        let mut reach = Set::default();
        for place in &operands {
            let Some(pred) = place.root().and_then(|r| self.unit_of(r)) else { continue };
            insert(&mut u.preds, pred);
            if kind != Kind::Fused || !self.passes(place, size) {
                insert(&mut u.blocking, pred);
            }
            reach.insert(pred);
            reach.join(&self.reach[pred]);
        }
        self.all.push(u);
        self.merged.push(unit);
        self.reach.push(reach);
        self.made_by[id] = Some(unit);
        self.operands[id] = operands;
    }

    /// Whether a reader that visits `size` elements in order can read this operand within the producer's unit.
    pub fn passes(&self, place: &Place, size: usize) -> bool {
        let Place::At(Operand { root, view }) = place else { return true };
        let Some(unit) = self.unit_of(*root) else { return true };
        // The result of a reduction differs from the elements that its unit iterates over.
        let Place::At(whole) = &self.places[*root] else { return false };
        let made = &self.all[unit];
        made.kind == Kind::Fused
            && size > 0
            && made.size == size
            && whole.view.size() == size
            && view.size() == size
            && view.offset == 0
            && view.is_linear()
            && made.geometry.is_none_or(|g| g.reduced != 1)
    }

    /// Merges the new unit of node `id` with units that compute or share its operands; a unit of one element
    /// also with recent units of one element.
    fn join(&mut self, id: usize) {
        let mut unit = self.made_by[id].expect("invariant: the node was just assigned a unit");
        let (roots, size) = (self.all[unit].roots.clone(), self.all[unit].size);
        let mut candidates: Vec<usize> = roots.iter().filter_map(|&r| self.unit_of(r)).collect();
        candidates.sort_unstable();
        candidates.reverse();
        for &r in &roots {
            candidates.extend(self.readers[r].iter().rev().take(2));
        }
        if size == 1 {
            candidates.extend(self.scalars.iter().rev().take(4));
        }
        chaos::shuffle(Decision::Fusion, &mut candidates);
        for c in candidates {
            let c = self.current(c);
            if c != unit && self.may_merge(c, unit) && !chaos::forgoes(Decision::Fusion) {
                self.merge(c, unit);
                unit = c;
            }
        }
        for r in roots {
            insert(&mut self.readers[r], unit);
        }
        if size == 1 {
            insert(&mut self.scalars, unit);
        }
    }

    fn may_merge(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.all[a], &self.all[b]);
        let geometry = x.geometry.is_none() || y.geometry.is_none() || x.geometry == y.geometry;
        x.kind == Kind::Fused
            && y.kind == Kind::Fused
            && x.size == y.size
            && geometry
            && x.nodes.len() + y.nodes.len() <= MAX_NODES
            && (x.size < SMALL || self.streams(a, b) <= MAX_STREAMS)
            && !self.blocks(a, b)
            && !self.blocks(b, a)
    }

    /// Whether `from` must finish before `to` starts, directly or through another unit.
    fn blocks(&self, from: usize, to: usize) -> bool {
        self.all[to].blocking.iter().any(|&p| self.current(p) == from)
            || self.preds(to).any(|p| p != from && self.reach[p].contains(from))
    }

    fn streams(&self, a: usize, b: usize) -> usize {
        let mut roots: Vec<usize> = [a, b].iter().flat_map(|&u| &self.all[u].roots).copied().collect();
        roots.sort_unstable();
        roots.dedup();
        roots.retain(|&r| self.unit_of(r).is_none_or(|u| u != a && u != b));
        roots.len()
    }

    fn merge(&mut self, keep: usize, gone: usize) {
        let old = std::mem::take(&mut self.all[gone].nodes);
        let gone_unit = self.all[gone].clone();
        let unit = &mut self.all[keep];
        unit.nodes.extend(old);
        unit.nodes.sort_unstable();
        unit.geometry = unit.geometry.or(gone_unit.geometry);
        for p in gone_unit.preds.into_iter().filter(|&p| p != keep) {
            insert(&mut unit.preds, p);
        }
        gone_unit.blocking.into_iter().for_each(|p| insert(&mut unit.blocking, p));
        gone_unit.roots.into_iter().for_each(|r| insert(&mut unit.roots, r));
        self.merged[gone] = keep;
        let mut reach = self.reach[keep].clone();
        reach.join(&self.reach[gone]);
        reach.remove(keep);
        reach.remove(gone);
        for w in 0..self.all.len() {
            if w != keep && w != gone && (self.reach[w].contains(keep) || self.reach[w].contains(gone)) {
                self.reach[w].join(&reach);
                self.reach[w].insert(keep);
            }
        }
        self.reach[keep] = reach;
    }

    /// The units in dependency order, depth first from the outputs, so that a value is computed shortly
    /// before its first reader.
    pub fn schedule(&self, func: &Func) -> Vec<usize> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.all.len()];
        let roots = func.outputs().iter().filter_map(|o| self.places[o.index()].root());
        for unit in roots.filter_map(|r| self.unit_of(r)) {
            let mut stack = vec![(unit, false)];
            while let Some((u, ready)) = stack.pop() {
                if ready {
                    // All values of a unit may be recomputed in others.
                    order.extend((!self.all[u].nodes.is_empty()).then_some(u));
                } else if !std::mem::replace(&mut seen[u], true) {
                    stack.push((u, true));
                    let mut preds: Vec<usize> = self.preds(u).filter(|&p| !seen[p]).collect();
                    preds.sort_unstable();
                    preds.dedup();
                    stack.extend(preds.into_iter().rev().map(|p| (p, false)));
                }
            }
        }
        order
    }
}

pub fn insert(list: &mut Vec<usize>, x: usize) {
    if !list.contains(&x) {
        list.push(x);
    }
}
