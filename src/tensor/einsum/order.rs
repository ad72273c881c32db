//! The contraction order of an einsum, two operands at a time, chosen for memory.
//!
//! The chosen order minimizes the largest array, including the result. Among orders with equally large arrays,
//! it minimizes multiplications and additions. The result is included because it is needed in any order:
//! intermediate arrays smaller than the result save no memory, so they are not worth more operations.
//!
//! Up to [`MAX_EXACT`] operands the search is exact, over subsets instead of orders: the array that results
//! from a subset depends only on the subset. The search has two passes. The first computes the smallest
//! possible size of the largest array. The second minimizes the number of operations, with no array above
//! this size. For more operands, a greedy search always contracts the pair that adds least to the total size
//! of the arrays. This is the greedy search of `opt_einsum` without its random restarts, because the order
//! must not differ between runs.

use super::spec::{Letters, Spec};
use std::fmt;

/// The maximum number of operands for the exact search: 8 operands have 3,025 splits of subsets.
pub(super) const MAX_EXACT: usize = 8;

/// One contraction of two arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumStep {
    /// The indices of the two arrays: operands count first, then the results of the steps.
    pub operands: [usize; 2],
    /// The specification of this step, with two operands.
    pub spec: String,
    /// Elements of the result.
    pub elements: usize,
    /// Multiplications and additions.
    pub flops: usize,
    pub(super) terms: [Vec<u8>; 2],
    pub(super) result: Vec<u8>,
}

/// The steps that compute an einsum, and their cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumPath {
    /// The contractions in order; empty for a single operand.
    pub steps: Vec<EinsumStep>,
    /// Elements of the largest array that a step computes, including the result.
    pub largest: usize,
    /// Multiplications and additions of all steps.
    pub flops: usize,
    /// The operands' indices after diagonals are taken and indices of a single operand are summed.
    pub(super) terms: Vec<Vec<u8>>,
}

impl fmt::Display for EinsumPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, s) in self.steps.iter().enumerate() {
            let ([a, b], new) = (s.operands, self.terms.len() + i);
            writeln!(f, "%{new} = %{a}, %{b}: {} ({} elements, {} flops)", s.spec, s.elements, s.flops)?;
        }
        write!(f, "largest: {} elements; {} flops", self.largest, self.flops)
    }
}

/// Pairs of arrays, in order: operands first, then results of pairs.
type Pairs = Vec<[usize; 2]>;

/// Chooses the order.
pub(super) fn plan(spec: &Spec) -> EinsumPath {
    let terms: Vec<Vec<u8>> = (0..spec.operands.len()).map(|k| needed(spec, k)).collect();
    let search = Search { spec, terms: terms.iter().map(|t| Letters::of(t)).collect() };
    let pairs = if terms.len() <= MAX_EXACT { search.exact() } else { search.greedy() };
    let mut arrays: Vec<Option<Vec<u8>>> = terms.iter().cloned().map(Some).collect();
    let mut steps = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let step = search.step(pair, &mut arrays);
        arrays.push(Some(step.result.clone()));
        steps.push(step);
    }
    let largest = steps.iter().map(|s| s.elements).max().unwrap_or(0);
    let flops = steps.iter().fold(0usize, |sum, s| sum.saturating_add(s.flops));
    EinsumPath { steps, largest, flops, terms }
}

/// The distinct indices of operand `k` that occur in the result or another operand.
fn needed(spec: &Spec, k: usize) -> Vec<u8> {
    let others = spec.operands.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, t)| t);
    let wanted = others.chain([&spec.result]).fold(Letters::default(), |s, t| s.or(Letters::of(t)));
    let term = &spec.operands[k];
    let distinct = term.iter().enumerate().filter(|(i, c)| !term[..*i].contains(c));
    distinct.map(|(_, &c)| c).filter(|&c| wanted.has(c)).collect()
}

struct Search<'a> {
    spec: &'a Spec,
    terms: Vec<Letters>,
}

impl Search<'_> {
    /// The indices that remain after the operands of a subset are contracted to one array. A subset has one
    /// bit per operand.
    fn left_of(&self, subset: usize) -> Letters {
        let (mut inside, mut outside) = (Letters::default(), Letters::of(&self.spec.result));
        for (k, &t) in self.terms.iter().enumerate() {
            if subset >> k & 1 == 1 {
                inside = inside.or(t);
            } else {
                outside = outside.or(t);
            }
        }
        inside.and(outside)
    }

    /// The number of multiplications of two arrays' elements, and of additions if some index is summed.
    fn flops(&self, a: Letters, b: Letters, result: Letters) -> usize {
        let all = a.or(b);
        self.spec.size(all).saturating_mul(if all == result { 1 } else { 2 })
    }

    /// The optimal order, by dynamic programming over subsets.
    fn exact(&self) -> Pairs {
        let all = (1usize << self.terms.len()) - 1;
        let left: Vec<Letters> = (0..=all).map(|s| self.left_of(s)).collect();
        let sizes: Vec<usize> = left.iter().map(|&l| self.spec.size(l)).collect();
        let mut leanest = vec![0; all + 1];
        for s in (1..=all).filter(|s| !s.is_power_of_two()) {
            let rest = splits(s).map(|(p, q)| leanest[p].max(leanest[q])).min();
            leanest[s] = rest.unwrap_or(0).max(sizes[s]);
        }
        let mut best: Vec<Option<(usize, usize)>> = vec![None; all + 1];
        for s in (1..=all).filter(|&s| leanest[s] <= leanest[all]) {
            if s.is_power_of_two() {
                best[s] = Some((0, 0));
                continue;
            }
            let cost = |(p, q): (usize, usize)| {
                let parts = best[p]?.0.saturating_add(best[q]?.0);
                Some((parts.saturating_add(self.flops(left[p], left[q], left[s])), p))
            };
            best[s] = splits(s).filter_map(cost).min();
        }
        let mut pairs = Vec::new();
        collect(all, &best, self.terms.len(), &mut pairs);
        pairs
    }

    /// The greedy order: always the pair that adds least to the total size of the arrays; on ties, the pair
    /// with fewer operations.
    fn greedy(&self) -> Pairs {
        let mut held: Vec<(usize, Letters)> = self.terms.iter().copied().enumerate().collect();
        let mut pairs = Vec::new();
        while held.len() > 1 {
            let mut best = None;
            for j in 1..held.len() {
                for i in 0..j {
                    let result = self.joined(&held, i, j);
                    let size = |l| self.spec.size(l) as i128;
                    let growth = size(result) - size(held[i].1) - size(held[j].1);
                    let key = (growth, self.flops(held[i].1, held[j].1, result), i, j);
                    if best.as_ref().is_none_or(|(k, _)| key < *k) {
                        best = Some((key, result));
                    }
                }
            }
            let Some(((.., i, j), result)) = best else { break };
            let (b, a) = (held.remove(j), held.remove(i));
            pairs.push([a.0, b.0]);
            held.push((self.terms.len() + pairs.len() - 1, result));
        }
        pairs
    }

    /// The indices that remain after two arrays of `held` are contracted.
    fn joined(&self, held: &[(usize, Letters)], i: usize, j: usize) -> Letters {
        let others = held.iter().enumerate().filter(|(k, _)| *k != i && *k != j).map(|(_, h)| h.1);
        let wanted = others.fold(Letters::of(&self.spec.result), Letters::or);
        held[i].1.or(held[j].1).and(wanted)
    }

    /// The contraction of two arrays, which are removed from `arrays`. The result's indices are in the order
    /// of the product: shared indices, indices of the left factor, indices of the right factor.
    fn step(&self, [i, j]: [usize; 2], arrays: &mut [Option<Vec<u8>>]) -> EinsumStep {
        let mut take = |k: usize| arrays[k].take().expect("invariant: an array is read once");
        let (a, b) = (take(i), take(j));
        let rest = arrays.iter().flatten().fold(Letters::of(&self.spec.result), |s, t| s.or(Letters::of(t)));
        let is_last = arrays.iter().flatten().next().is_none();
        let orders = [([i, j], [&a, &b]), ([j, i], [&b, &a])].map(|(operands, terms)| {
            let result = self.result(terms, rest, is_last);
            let moved = self.moved(terms, &result, is_last);
            (moved, operands, terms, result)
        });
        let [first, second] = orders;
        let (_, operands, terms, result) = if second.0 < first.0 { second } else { first };
        let [x, y, z] =
            [terms[0], terms[1], &result].map(|t| t.iter().map(|&c| c as char).collect::<String>());
        let (p, q, r) = (Letters::of(&a), Letters::of(&b), Letters::of(&result));
        EinsumStep {
            operands,
            spec: format!("{x},{y}->{z}"),
            elements: self.spec.size(r),
            flops: self.flops(p, q, r),
            terms: terms.map(Clone::clone),
            result,
        }
    }

    fn result(&self, [a, b]: [&Vec<u8>; 2], rest: Letters, is_last: bool) -> Vec<u8> {
        // Shared axes may be in any order at no cost: use the result's order in the last step.
        let order = if is_last { &self.spec.result } else { a };
        let mut out: Vec<u8> =
            order.iter().copied().filter(|c| a.contains(c) && b.contains(c) && rest.has(*c)).collect();
        out.extend(a.iter().copied().filter(|c| !b.contains(c)));
        out.extend(b.iter().copied().filter(|c| !a.contains(c)));
        out
    }

    /// The number of elements that must be transposed before or after a product: those of the right factor
    /// unless its summed indices come first, and those of the last result unless its indices are in the order
    /// of the specification.
    fn moved(&self, [a, b]: [&Vec<u8>; 2], result: &[u8], is_last: bool) -> usize {
        let own: Vec<bool> =
            b.iter().filter(|c| !(a.contains(c) && result.contains(c))).map(|c| !a.contains(c)).collect();
        let right = if own.is_sorted() { 0 } else { self.spec.size(Letters::of(b)) };
        let in_order = !is_last || *result == self.spec.result;
        right.saturating_add(if in_order { 0 } else { self.spec.size(Letters::of(result)) })
    }
}

/// The splits of a subset into two parts, each split once: the part with the first operand, then the other
/// part.
fn splits(subset: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = subset & subset.wrapping_neg();
    let rest = subset ^ first;
    let mut part = Some(0usize);
    std::iter::from_fn(move || {
        // The proper subsets of `rest`, ascending.
        let p = part?;
        let next = p.wrapping_sub(rest) & rest;
        part = (next != 0 && next != rest).then_some(next);
        (p != rest).then_some((first | p, rest ^ p))
    })
}

/// Appends the pairs that contract a subset; returns the index of its array.
fn collect(s: usize, best: &[Option<(usize, usize)>], operands: usize, pairs: &mut Pairs) -> usize {
    if s.is_power_of_two() {
        return s.trailing_zeros() as usize;
    }
    let (_, p) = best[s].expect("invariant: a part of a chosen order has a split");
    let pair = [p, s ^ p].map(|part| collect(part, best, operands, pairs));
    pairs.push(pair);
    operands + pairs.len() - 1
}
