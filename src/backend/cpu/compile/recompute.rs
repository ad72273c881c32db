//! Recomputes cheap values at their readers instead of storing them.
//!
//! A backward pass reads dozens of elementwise values of the forward pass, such as `x (1 - sigmoid x)` and
//! `sigmoid x`, which one kernel would store and another load. If at most [`MAX_CHAIN`] cheap operations
//! (sums, products, comparisons) compute such a value from operands that are stored in any case, each reader
//! gets copies of their nodes. The same operation on the same operands has the same bits, so no result
//! changes.
//!
//! The stored values of a unit are reduced greedily: a value is dropped if everything that it needs is
//! stored, and another value is stored if at least two values can be dropped for it. A minimum cut (as in
//! PyTorch's partitioner) would find the global optimum. Here, all candidates are in one unit, and the greedy
//! pass found the same sets on the networks tried.

use super::chaos::{self, Decision};
use super::fuse::{Kind, Unit, Units};
use super::places::Place;
use crate::graph::{Func, Op, UnaryOp};

/// A value with fewer elements stays in L1 between two kernels.
const MIN_SIZE: usize = 1024;
/// The longest chain that replaces a load: as many cheap instructions as a load from L2 takes.
const MAX_CHAIN: usize = 4;

/// Moves cheap values from the units that store them into the units that read them.
pub(crate) fn recompute(units: &mut Units, func: &Func) {
    for unit in 0..units.all.len() {
        let u = &units.all[unit];
        if u.kind == Kind::Fused
            && !u.nodes.is_empty()
            && u.size >= chaos::bound(Decision::Recompute, MIN_SIZE, &[1, 8, usize::MAX])
        {
            thin(units, func, unit);
        }
    }
}

/// The other units that read a node, and whether the node must be stored because one of them, or an output,
/// cannot recompute it.
#[derive(Clone, Default)]
struct Reads {
    by: Vec<usize>,
    hard: bool,
}

fn thin(units: &mut Units, func: &Func, unit: usize) {
    let nodes = units.all[unit].nodes.clone();
    let reads = readers(units, func, unit);
    let of = |id: usize| nodes.binary_search(&id).ok().map(|k| &reads[k]);
    let mut stored: Vec<usize> =
        nodes.iter().copied().filter(|&id| of(id).is_some_and(|r| !r.by.is_empty() || r.hard)).collect();
    let soft: Vec<usize> = stored
        .iter()
        .copied()
        .filter(|&id| of(id).is_some_and(|r| !r.hard) && is_cheap(&func.nodes()[id].op))
        .collect();
    let mut search = ChainSearch {
        units,
        func,
        unit,
        nodes: &nodes,
        extra: vec![],
        longest: chaos::bound(Decision::Recompute, MAX_CHAIN, &[1, 2, 8]),
    };
    let mut gone: Vec<usize> = Vec::new();
    search.remove(&soft, &mut stored, &mut gone, &of);
    loop {
        let mut best: Option<(usize, Vec<usize>, Vec<usize>)> = None;
        let left: Vec<usize> = soft.iter().copied().filter(|id| !gone.contains(id)).collect();
        for base in search.bases(&left, &stored, &of) {
            let (mut s, mut g) = (stored.clone(), gone.clone());
            search.take(base, &mut s);
            search.remove(&left, &mut s, &mut g, &of);
            search.extra.retain(|&x| x != base);
            if g.len() >= gone.len() + 2 && best.as_ref().is_none_or(|(_, _, b)| b.len() < g.len()) {
                best = Some((base, s, g));
            }
        }
        let Some((base, s, g)) = best else { break };
        search.take(base, &mut stored);
        (stored, gone) = (s, g);
    }
    let plans: Vec<(usize, Vec<usize>)> = gone
        .iter()
        .map(|&id| (id, search.chain(id, &stored, &of).expect("invariant: a dropped value has a chain").0))
        .collect();
    for (id, chain) in plans {
        for reader in of(id).map(|r| r.by.clone()).unwrap_or_default() {
            adopt(units, reader, unit, &chain);
        }
    }
    drop_unread(units, func, unit, &stored);
}

/// For each node of `unit`, its readers in other units.
fn readers(units: &Units, func: &Func, unit: usize) -> Vec<Reads> {
    let nodes = &units.all[unit].nodes;
    let mut reads = vec![Reads::default(); nodes.len()];
    for (other, u) in units.all.iter().enumerate().filter(|(other, _)| *other != unit) {
        for &id in &u.nodes {
            for place in &units.operands[id] {
                let Some(k) = place.root().and_then(|r| nodes.binary_search(&r).ok()) else { continue };
                if u.nodes.binary_search(&nodes[k]).is_ok() || units.unit_of(nodes[k]) != Some(unit) {
                    continue;
                }
                if !reads[k].by.contains(&other) {
                    reads[k].by.push(other);
                }
                reads[k].hard |= u.kind != Kind::Fused || !units.passes(place, u.size);
            }
        }
    }
    for out in func.outputs() {
        if let Some(k) = units.places[out.index()].root().and_then(|r| nodes.binary_search(&r).ok()) {
            reads[k].hard = true;
        }
    }
    reads
}

fn is_cheap(op: &Op) -> bool {
    match op {
        Op::Unary(u) => match u {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Not => true,
            UnaryOp::Powf(bits) => f64::from_bits(*bits) == 2.0,
            _ => false,
        },
        Op::Binary(b) => *b != crate::graph::BinaryOp::Div,
        Op::Compare(_) | Op::Select | Op::Cast => true,
        _ => false,
    }
}

/// Searches for chains of cheap nodes that start at stored values.
struct ChainSearch<'a> {
    units: &'a Units,
    func: &'a Func,
    unit: usize,
    nodes: &'a [usize],
    /// Values of other units that are stored for the readers.
    extra: Vec<usize>,
    /// The largest number of nodes of a chain.
    longest: usize,
}

impl ChainSearch<'_> {
    fn take(&mut self, base: usize, stored: &mut Vec<usize>) {
        if self.nodes.binary_search(&base).is_ok() {
            stored.push(base);
        } else {
            self.extra.push(base);
        }
    }

    /// The nodes to compute for `id`, in topological order, and the values that would have to be stored for
    /// them. `None` if these are more nodes than the longest chain has.
    fn chain<'r>(
        &self,
        id: usize,
        stored: &[usize],
        of: &impl Fn(usize) -> Option<&'r Reads>,
    ) -> Option<(Vec<usize>, Vec<usize>)> {
        let readers = &of(id)?.by;
        let (mut chain, mut missing, mut stack) = (vec![], vec![], vec![id]);
        while let Some(v) = stack.pop() {
            if chain.contains(&v) {
                continue;
            }
            chain.push(v);
            if chain.len() > self.longest {
                return None;
            }
            for root in self.units.operands[v].iter().filter_map(Place::root) {
                let inside = self.nodes.binary_search(&root).is_ok();
                if inside && (stored.contains(&root) && root != id) || !inside && self.is_free(root, readers)
                {
                    continue;
                }
                if inside && is_cheap(&self.func.nodes()[root].op) {
                    stack.push(root);
                } else if !missing.contains(&root) {
                    missing.push(root);
                }
            }
        }
        chain.sort_unstable();
        Some((chain, missing))
    }

    /// Whether a value of another unit is available to the readers at no cost.
    fn is_free(&self, root: usize, readers: &[usize]) -> bool {
        let bytes = self.func.nodes()[root].ty.bytes();
        let reads = |&r: &usize| {
            let u: &Unit = &self.units.all[r];
            let mut operands = u.nodes.iter().flat_map(|&id| &self.units.operands[id]);
            operands.any(|p| p.root() == Some(root))
        };
        self.extra.contains(&root)
            || self.units.unit_of(root).is_none()
            || bytes * 8 <= self.units.all[self.unit].size * 4
            || readers.iter().any(reads)
    }

    /// Drops from `stored` each value of `soft` whose chain needs no additional values.
    fn remove<'r>(
        &self,
        soft: &[usize],
        stored: &mut Vec<usize>,
        gone: &mut Vec<usize>,
        of: &impl Fn(usize) -> Option<&'r Reads>,
    ) {
        for &id in soft.iter().rev() {
            if stored.contains(&id)
                && self.chain(id, stored, of).is_some_and(|(_, missing)| missing.is_empty())
            {
                stored.retain(|&s| s != id);
                gone.push(id);
                // Values dropped earlier may depend on this value.
                let broken = |g: &usize| self.chain(*g, stored, of).is_none_or(|(_, m)| !m.is_empty());
                if gone.iter().any(broken) {
                    gone.pop();
                    stored.push(id);
                }
            }
        }
    }

    /// Values that would complete a chain if they were stored: each is the only missing value of its chain.
    fn bases<'r>(
        &self,
        soft: &[usize],
        stored: &[usize],
        of: &impl Fn(usize) -> Option<&'r Reads>,
    ) -> Vec<usize> {
        let missing = soft.iter().filter_map(|&id| self.chain(id, stored, of)).map(|(_, missing)| missing);
        let mut bases: Vec<usize> = missing.filter(|m| m.len() == 1).flatten().collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }
}

/// Adds copies of the nodes of a chain to `reader`.
fn adopt(units: &mut Units, reader: usize, unit: usize, chain: &[usize]) {
    for &id in chain {
        let Err(at) = units.all[reader].nodes.binary_search(&id) else { continue };
        units.all[reader].nodes.insert(at, id);
        let preds: Vec<usize> =
            units.operands[id].iter().filter_map(Place::root).filter_map(|r| units.unit_of(r)).collect();
        for pred in preds.into_iter().chain([unit]).filter(|&p| p != reader) {
            units.add_pred(reader, pred);
        }
    }
}

/// Removes nodes from `unit` that have no readers left.
fn drop_unread(units: &mut Units, func: &Func, unit: usize, stored: &[usize]) {
    let nodes = units.all[unit].nodes.clone();
    let mut needed: Vec<usize> = stored.to_vec();
    for &id in nodes.iter().rev() {
        if needed.contains(&id) || matches!(func.nodes()[id].op, Op::Reduce { .. }) {
            needed.push(id);
            needed.extend(units.operands[id].iter().filter_map(Place::root));
        }
    }
    units.all[unit].nodes.retain(|id| needed.contains(id));
}
