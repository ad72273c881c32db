//! Values that a search carries for nobody.
//!
//! A carried value counts if it is asked for, or leads to a flag, the knot, a tap or a value that counts. The others
//! are sums that nothing reads, the integrals of a backward solve whose gradients are not wanted above all, and go
//! out of the loop with the work that makes them. Where the tape has a reader they stay: its layout is that of the
//! carry, and every loop that reads it must agree on it.

use super::prune::Found;
use crate::graph::{Func, NodeId, Solve};
use crate::transform::bodies::{Source, resign};

/// The search without what it carries for nobody, its operands, and where its values are found.
pub(super) fn without_idle(
    s: &Solve,
    x: &[NodeId],
    asked: &[bool],
    found: &mut [Found],
) -> Option<(Solve, Vec<NodeId>)> {
    let n = s.num_carry + s.num_ext;
    if asked[n + 1] || s.inverse.is_some() {
        return None;
    }
    let counts = counting(s, &asked[..n]);
    let kept: Vec<usize> = (0..n).filter(|&j| counts[j]).collect();
    let num_carry = kept.iter().filter(|&&j| j < s.num_carry).count();
    if kept.len() == n || num_carry == 0 {
        return None;
    }
    for (j, found) in found.iter_mut().enumerate() {
        *found = match kept.iter().position(|&k| k == j) {
            Some(at) => Found::Value(at),
            None if j < n => Found::Nowhere,
            None => Found::Value(j - n + kept.len()),
        };
    }
    let carried: Vec<usize> = kept.iter().copied().filter(|&j| j < s.num_carry).collect();
    let rows = |from: usize, f: &Func| (from..f.num_outputs()).collect::<Vec<_>>();
    let outputs: Vec<usize> =
        (0..4).chain(kept.iter().map(|j| 4 + j)).chain(rows(4 + n, &s.attempt)).collect();
    let attempt = without(&s.attempt, s.attempt_head(), n, &kept, &outputs);
    let outputs: Vec<usize> = carried.iter().copied().chain(rows(s.num_carry, &s.step)).collect();
    let step = without(&s.step, s.head(), s.num_carry, &carried, &outputs);
    let first = s.first_carry();
    let mut operands = x[..first].to_vec();
    operands.extend(kept.iter().map(|j| x[first + j]));
    operands.extend(&x[first + n..]);
    Some((Solve { attempt, step, num_carry, num_ext: kept.len() - num_carry, ..s.clone() }, operands))
}

/// Which of the carried values count.
fn counting(s: &Solve, asked: &[bool]) -> Vec<bool> {
    let mut counts = asked.to_vec();
    let (n, at, at_step) = (counts.len(), s.attempt_head(), s.head());
    loop {
        let live = |k: usize| k < 4 || counts.get(k - 4).is_none_or(|c| *c);
        let by_attempt = reached(&s.attempt, live);
        let by_step = reached(&s.step, |k| k >= s.num_carry || counts[k]);
        let more: Vec<bool> = (0..n)
            .map(|j| counts[j] || by_attempt[at + j] || j < s.num_carry && by_step[at_step + j])
            .collect();
        if more == counts {
            return counts;
        }
        counts = more;
    }
}

/// The inputs that the outputs chosen by `wanted` depend on.
fn reached(f: &Func, wanted: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut on = vec![false; f.nodes().len()];
    let outputs = f.outputs().iter().enumerate().filter(|(k, _)| wanted(*k));
    outputs.for_each(|(_, id)| on[id.index()] = true);
    for i in (0..on.len()).rev() {
        if on[i] {
            f.nodes()[i].args.iter().for_each(|a| on[a.index()] = true);
        }
    }
    f.inputs().iter().map(|id| on[id.index()]).collect()
}

/// `f` without those of the `n` inputs from `at` on that are not in `kept`, and with these outputs.
fn without(f: &Func, at: usize, n: usize, kept: &[usize], outputs: &[usize]) -> Func {
    let place = |k: usize| match k.checked_sub(at) {
        Some(j) if j < n => kept.iter().position(|&i| i == j).map(|i| at + i),
        Some(j) => Some(at + kept.len() + j - n),
        None => Some(k),
    };
    let types = (0..f.num_inputs()).filter(|&k| place(k).is_some()).map(|k| f.input_type(k).clone());
    // An input that is gone still needs a value to stand for it; no output depends on it.
    let sources = (0..f.num_inputs()).map(|k| place(k).map_or(Source::Splat(0.0), Source::Input));
    resign(f, &types.collect::<Vec<_>>(), &sources.collect::<Vec<_>>(), outputs)
}
