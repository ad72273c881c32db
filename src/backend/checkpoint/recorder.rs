//! The forward sweep: decides online which states are stored.
//!
//! One rule serves known and unknown numbers of steps. If the number is unknown and all slots are occupied, a
//! new state replaces the stored state whose loss costs least. It does so only if the replacement would not
//! increase the extra steps of a sweep that ended now (a tie replaces). If the number is known, the states of
//! the optimal placement are pinned, and the same rule uses the slots that the placement does not need yet. A
//! wrong expected number therefore costs some extra steps, but is never an error.
//!
//! Between two replacements, the cost of each candidate is a constant plus one closed form for two slots. A
//! decision therefore takes O(1) time; the first one after a replacement also evaluates O(c) closed forms.

use super::cost::{next_distance, steps_to_deliver};

/// A stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// The n of y_n.
    pub index: usize,
    /// The slot that holds y_n.
    pub slot: usize,
    /// Whether the rule must not replace this state: it is y_0, or it belongs to the placement for the
    /// expected number of steps.
    pinned: bool,
}

/// Decides which states to store, in a sweep y_0, y_1, ... of known or unknown length.
///
/// Invariants: `kept` ascends by index; its slots are `0 .. kept.len()` in some order; `kept[0]` is y_0 once
/// y_0 was visited; at most `slots` states are stored.
#[derive(Clone, Debug)]
pub struct Recorder {
    slots: usize,
    expected: Option<usize>,
    kept: Vec<StoredState>,
    next_pin: Pin,
    costs: Option<Costs>,
}

/// The next state in the placement for the expected number of steps, with the remaining slots and states.
#[derive(Clone, Copy, Debug)]
struct Pin {
    index: usize,
    slots: usize,
    states: usize,
}

/// Terms of the replacement rule that are constant between two replacements, for c stored states p_0, ...,
/// p_{c-1}.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// W without the last interval's term.
    stay: u64,
    /// The unpinned p_i with 1 <= i < c - 1 whose loss costs least, and this cost without the term of the
    /// last interval.
    inner: Option<(usize, u64)>,
    /// The same cost for p_{c-1}; `None` if it is pinned.
    last: Option<u64>,
}

impl Recorder {
    /// A recorder for at most `slots` states (0 counts as 1: y_0 is always stored), with the number of steps
    /// if it is known or expected.
    pub fn new(slots: usize, known: Option<usize>) -> Recorder {
        let next_pin = Pin { index: 0, slots: 0, states: 0 };
        let mut r = Recorder { slots: slots.max(1), expected: None, kept: Vec::new(), next_pin, costs: None };
        r.reset(known);
        r
    }

    /// Starts a new sweep with the same slots. Reuses its buffers, so nothing is allocated once a sweep of
    /// this length has run.
    pub fn reset(&mut self, known: Option<usize>) {
        let c = self.slots as u128;
        // For n + 1 <= (c + 1)(c + 2) / 2, the rule attains the optimum without pins.
        self.expected = known.filter(|&n| n as u128 + 1 > (c + 1).saturating_mul(c + 2) / 2);
        self.kept.clear();
        self.costs = None;
        let states = self.expected.map_or(0, |n| n + 1);
        self.next_pin = Pin { index: 0, slots: self.slots, states };
        self.advance_pin();
    }

    /// The maximum number of stored states.
    pub fn num_slots(&self) -> usize {
        self.slots
    }

    /// The stored states, ascending by index.
    pub fn kept(&self) -> &[StoredState] {
        &self.kept
    }

    /// Must be called for n = 0, 1, 2, ... when the step from y_n is accepted, but not for the end of the
    /// sweep, which the backward sweep does not need. Returns the slot in which to store y_n, if it is stored;
    /// the old state of the slot is lost.
    ///
    /// # Panics
    /// When a state with index n or above is stored, or the first call is not for n = 0.
    pub fn visit(&mut self, n: usize) -> Option<usize> {
        let next = self.kept.last().map_or(0, |p| p.index + 1);
        assert!(n >= next && (n == 0 || next > 0), "invariant: y_{n} visited, expected y_{next} or later");
        if self.expected.is_some_and(|end| n >= end) {
            self.release();
        }
        let pinned = n > 0 && self.next_pin.index == n;
        if pinned {
            self.advance_pin();
        }
        let slot = if self.kept.len() < self.slots {
            self.kept.len()
        } else {
            let lost = self.exchange(n, pinned)?;
            self.kept.remove(lost).slot
        };
        self.kept.push(StoredState { index: n, slot, pinned: pinned || n == 0 });
        self.costs = None;
        Some(slot)
    }

    /// The index in `kept` of the state to replace by y_n, if a state can be replaced and the replacement is
    /// required or does not increase the cost.
    fn exchange(&mut self, n: usize, must: bool) -> Option<usize> {
        let c = self.slots;
        if c == 1 {
            return None;
        }
        let costs = *self.costs.get_or_insert_with(|| costs(&self.kept));
        let stay = costs.stay + steps_to_deliver(1, n + 1 - self.kept[c - 1].index);
        let inner = costs.inner.map(|(i, v)| (i, v + steps_to_deliver(2, n - self.kept[c - 1].index)));
        let last = costs.last.map(|v| (c - 1, v + steps_to_deliver(2, n - self.kept[c - 2].index)));
        let (i, v) = match (inner, last) {
            (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
            (a, b) => a.or(b),
        }?;
        (must || v <= stay).then_some(i)
    }

    /// Selects the next pin. There is no next pin when at most one slot or two states remain.
    fn advance_pin(&mut self) {
        let Pin { index, slots, states } = self.next_pin;
        self.next_pin = if slots >= 2 && states > 2 {
            let s = next_distance(slots, states);
            Pin { index: index + s, slots: slots - 1, states: states - s }
        } else {
            Pin { index: usize::MAX, slots: 0, states: 0 }
        };
    }

    /// Drops the expected number of steps, because the sweep continues past it.
    fn release(&mut self) {
        self.expected = None;
        self.next_pin = Pin { index: usize::MAX, slots: 0, states: 0 };
        self.kept.iter_mut().skip(1).for_each(|p| p.pinned = false);
        self.costs = None;
    }
}

/// The constants of [`Costs`] for a full table, c = `kept.len()` >= 2.
///
/// Without p_i, intervals i - 1 and i merge, and every later interval j + 1 becomes interval j, with c - j
/// slots. One pass from the end maintains the sums of the terms before (`prefix`) and after (`suffix`) the
/// merged interval.
fn costs(kept: &[StoredState]) -> Costs {
    let c = kept.len();
    let gap = |j: usize| kept[j + 1].index - kept[j].index;
    let stay: u64 = (0..c - 1).map(|j| steps_to_deliver(c - j, gap(j))).sum();
    let mut prefix = stay - steps_to_deliver(2, gap(c - 2));
    let mut suffix = 0;
    let mut inner: Option<(usize, u64)> = None;
    let last = (!kept[c - 1].pinned).then_some(prefix);
    for i in (1..c - 1).rev() {
        prefix -= steps_to_deliver(c - i + 1, gap(i - 1));
        if i + 2 < c {
            suffix += steps_to_deliver(c - i, gap(i + 1));
        }
        let v = prefix + steps_to_deliver(c - i + 1, gap(i - 1) + gap(i)) + suffix;
        if !kept[i].pinned && inner.is_none_or(|(_, best)| v <= best) {
            inner = Some((i, v));
        }
    }
    Costs { stay, inner, last }
}

#[cfg(test)]
mod tests {
    use super::super::cost::{extra_steps, fewest_extra};
    use super::*;

    fn recorded(n: usize, slots: usize, known: Option<usize>) -> Recorder {
        let mut r = Recorder::new(slots, known);
        (0..n).for_each(|i| _ = r.visit(i));
        r
    }

    /// The largest W / E over 1 to n steps; one sweep serves all lengths.
    fn worst(n: usize, c: usize) -> f64 {
        let (mut r, mut worst) = (Recorder::new(c, None), 1.0_f64);
        for i in 0..n {
            r.visit(i);
            let (w, e) = (extra_steps(r.kept(), i + 1, c), fewest_extra(i + 1, c));
            assert!(w >= e, "{w} < {e} at N = {}, c = {c}", i + 1);
            worst = worst.max(if e == 0 { 1.0 + w as f64 } else { w as f64 / e as f64 });
        }
        worst
    }

    /// The rule as stated, without precomputed constants: computes every candidate's cost from scratch.
    fn naive(n: usize, c: usize) -> Vec<usize> {
        let w = |p: &[usize], end: usize| -> u64 {
            let ends = p[1..].iter().chain([&end]);
            p.iter().zip(ends).enumerate().map(|(j, (a, b))| steps_to_deliver(c - j, b - a)).sum()
        };
        let mut p = vec![0];
        for i in 1..n {
            if p.len() < c {
                p.push(i);
                continue;
            }
            let without = |k: usize| [&p[..k], &p[k + 1..], &[i]].concat();
            let best = (1..c).map(|k| (w(&without(k), i + 1), k)).min();
            if let Some((_, k)) = best.filter(|(v, _)| *v <= w(&p, i + 1)) {
                p = without(k);
            }
        }
        p
    }

    #[test]
    fn the_constants_give_the_rule_as_stated() {
        for c in [1, 2, 3, 4, 7, 12] {
            for n in [1, 5, 30, 77, 400] {
                let kept: Vec<usize> = recorded(n, c, None).kept().iter().map(|p| p.index).collect();
                assert_eq!(kept, naive(n, c), "N = {n}, c = {c}");
            }
        }
    }

    #[test]
    fn of_unknown_length_the_worst_case_is_near_the_optimum() {
        let bounds = [
            (2, 1.217),
            (3, 1.100),
            (4, 1.076),
            (5, 1.066),
            (8, 1.032),
            (10, 1.037),
            (16, 1.038),
            (32, 1.027),
            (64, 1.0005),
            (128, 1.0001),
        ];
        for (c, bound) in bounds {
            let got = worst(10_000, c);
            assert!((got - bound).abs() < 0.0006, "c = {c}: got {got}, expected {bound}");
        }
    }

    #[test]
    fn short_sweeps_are_optimal_without_knowing_their_length() {
        for c in 1..=30 {
            assert_eq!(worst((c + 1) * (c + 2) / 2 - 1, c), 1.0, "c = {c}");
        }
    }

    #[test]
    fn a_right_forecast_is_optimal() {
        for c in 1..=12 {
            for n in (0..300).chain([999, 1000, 5000]) {
                let r = recorded(n, c, Some(n));
                assert_eq!(extra_steps(r.kept(), n, c), fewest_extra(n, c), "N = {n}, c = {c}");
            }
        }
    }

    #[test]
    fn a_wrong_forecast_costs_little() {
        for (c, far) in [(2, 0.28), (3, 0.2), (4, 0.2), (5, 0.2), (8, 0.2), (16, 0.2), (32, 0.2)] {
            for f in (10..60).chain([100, 200, 400, 1000]) {
                let mut r = Recorder::new(c, Some(f));
                for n in 1..=2 * f {
                    r.visit(n - 1);
                    let (w, e) = (extra_steps(r.kept(), n, c) as f64, fewest_extra(n, c) as f64);
                    assert!(w <= e + (far * e).max(1.0), "N = {n}, F = {f}, c = {c}: {w} over {e}");
                    let near = n.abs_diff(f) * 20 <= f;
                    assert!(!near || w <= 1.07 * e, "N = {n}, F = {f}, c = {c}: {w} over {e}");
                }
            }
        }
    }

    #[test]
    fn as_many_slots_as_steps_keep_everything() {
        for c in [7, 100, usize::MAX] {
            let r = recorded(7, c, Some(7));
            let kept: Vec<_> = r.kept().iter().map(|p| (p.index, p.slot)).collect();
            assert_eq!(kept, (0..7).map(|n| (n, n)).collect::<Vec<_>>());
        }
        assert_eq!(recorded(9, 1, None).kept().len(), 1);
        assert_eq!(Recorder::new(0, None).num_slots(), 1);
    }

    #[test]
    fn a_reset_recorder_is_a_new_one_and_allocates_nothing() {
        let mut r = recorded(500, 6, None);
        let capacity = r.kept.capacity();
        for known in [Some(300), None] {
            r.reset(known);
            (0..300).for_each(|i| _ = r.visit(i));
            assert_eq!(r.kept(), recorded(300, 6, known).kept());
        }
        assert_eq!(r.kept.capacity(), capacity);
    }
}
