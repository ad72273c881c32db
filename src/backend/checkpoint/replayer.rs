//! The backward sweep: delivers y_{N-1}, ..., y_0 from the stored states.
//!
//! The replayer is an iterator of [`Action`]s over a stack of stored states and one running state. The slot
//! of a delivered state becomes free. On the way to the requested state, states at the optimal distances are
//! stored in free slots, so the number of extra steps is exactly W (see [`super::cost`]). Recursion over
//! subranges would give the same sequence. An explicit stack is reused without allocation, and returns
//! control to the owner of the states between actions.

use super::cost::next_distance;
use super::{Recorder, StoredState};

/// What to do with the running state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Loads the running state from the slot. The state is only read until the next `Store` into this slot, so
    /// the slot itself may serve as the running state, without a copy.
    Load {
        /// The slot.
        slot: usize,
    },
    /// Advances the running state from y_step to y_{step + 1}.
    Advance {
        /// Index of the step, from 0.
        step: usize,
    },
    /// Stores the running state in the slot; it stays the running state.
    Store {
        /// The slot.
        slot: usize,
    },
    /// The running state is y_step; run the adjoint of the step that starts there.
    Deliver {
        /// Index of the step, from 0.
        step: usize,
    },
}

/// Yields the actions of a backward sweep.
///
/// Invariants: `stack` ascends by index and starts with y_0; its slots, `free` and
/// `fresh .. slots` are disjoint; every state below `remaining` is still to be delivered.
#[derive(Clone, Debug, Default)]
pub struct Replayer {
    slots: usize,
    stack: Vec<(usize, usize)>,
    free: Vec<usize>,
    fresh: usize,
    remaining: usize,
    running: Option<usize>,
    store_at: Option<usize>,
    num_extra: u64,
}

impl Replayer {
    /// A replayer with nothing to deliver.
    pub fn new() -> Replayer {
        Replayer::default()
    }

    /// Starts a backward sweep over `n` steps from a recorder's stored states. Reuses its buffers, so nothing
    /// is allocated once a sweep from this many slots has run.
    pub fn start(&mut self, recorder: &Recorder, n: usize) {
        self.reset(recorder.kept(), recorder.num_slots(), n);
    }

    /// Like [`Replayer::start`], from an explicit table.
    ///
    /// # Panics
    /// When `n > 0` and y_0 is not stored, or more states are stored than there are slots.
    pub fn reset(&mut self, kept: &[StoredState], slots: usize, n: usize) {
        assert!(n == 0 || kept.first().is_some_and(|p| p.index == 0), "invariant: y_0 is always stored");
        assert!(kept.len() <= slots, "invariant: {} states in {slots} slots", kept.len());
        let used = kept.partition_point(|p| p.index < n);
        self.stack.clear();
        self.stack.extend(kept[..used].iter().map(|p| (p.index, p.slot)));
        self.free.clear();
        self.free.reserve(kept.len());
        self.free.extend(kept[used..].iter().map(|p| p.slot));
        (self.slots, self.fresh, self.remaining) = (slots, kept.len(), n);
        (self.running, self.store_at, self.num_extra) = (None, None, 0);
    }

    /// The number of recomputed steps in the actions so far; W after the last action.
    pub fn num_extra(&self) -> u64 {
        self.num_extra
    }

    /// The slot of the last stored state that is not delivered yet; the next `Load` reads this slot.
    pub fn next_slot(&self) -> Option<usize> {
        self.stack.last().map(|&(_, slot)| slot)
    }

    /// The next slot to store into. The number of stored states never exceeds the number of slots.
    fn take_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }
}

impl Iterator for Replayer {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let wanted = self.remaining.checked_sub(1)?;
        let &(top, slot) = self.stack.last().expect("invariant: y_0 is on the stack until it is delivered");
        let Some(at) = self.running else {
            self.running = Some(top);
            return Some(Action::Load { slot });
        };
        if at == wanted {
            self.remaining = wanted;
            self.running = None;
            if at == top {
                self.stack.pop();
                self.free.push(slot);
            }
            return Some(Action::Deliver { step: wanted });
        }
        if self.store_at == Some(at) {
            self.store_at = None;
            let slot = self.take_slot();
            self.stack.push((at, slot));
            return Some(Action::Store { slot });
        }
        if self.store_at.is_none() && at == top {
            let slots = (self.slots - self.stack.len()).saturating_add(1);
            let states = wanted - at + 1;
            self.store_at = (slots >= 2 && states > 2).then(|| at + next_distance(slots, states));
        }
        self.running = Some(at + 1);
        self.num_extra += 1;
        Some(Action::Advance { step: at })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::{extra_steps, fewest_extra};
    use super::*;

    /// States form a hash chain: a state reached by a wrong path has a wrong value.
    fn step(y: u64, n: usize) -> u64 {
        (y ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    }

    /// Memory of c slots that rejects loads from empty slots and slots that do not exist.
    struct Machine {
        slots: Vec<Option<u64>>,
        chain: Vec<u64>,
    }

    impl Machine {
        fn new(n: usize, c: usize) -> Machine {
            let mut chain = vec![1];
            (0..n).for_each(|i| chain.push(step(chain[i], i)));
            Machine { slots: vec![None; c], chain }
        }

        fn record(&mut self, n: usize, c: usize, known: Option<usize>) -> Recorder {
            let mut r = Recorder::new(c, known);
            for i in 0..n {
                if let Some(slot) = r.visit(i) {
                    self.slots[slot] = Some(self.chain[i]);
                }
            }
            r
        }

        /// Runs the sweep; returns the number of recomputed steps.
        fn replay(&mut self, replayer: &mut Replayer, n: usize) -> u64 {
            let (mut y, mut due, mut extra) = (None, n, 0);
            for action in replayer.by_ref() {
                match action {
                    Action::Load { slot } => y = Some(self.slots[slot].expect("a slot that was filled")),
                    Action::Store { slot } => self.slots[slot] = y,
                    Action::Advance { step: i } => {
                        assert_eq!(y, Some(self.chain[i]));
                        y = y.map(|y| step(y, i));
                        extra += 1;
                    }
                    Action::Deliver { step: i } => {
                        assert_eq!((i + 1, y), (due, Some(self.chain[i])));
                        due = i;
                    }
                }
            }
            assert_eq!(due, 0, "all states are delivered");
            extra
        }
    }

    fn simulate(n: usize, c: usize, known: Option<usize>) -> u64 {
        let mut machine = Machine::new(n, c);
        let recorder = machine.record(n, c, known);
        let mut replayer = Replayer::new();
        replayer.start(&recorder, n);
        let extra = machine.replay(&mut replayer, n);
        assert_eq!(extra, extra_steps(recorder.kept(), n, c), "N = {n}, c = {c}, known {known:?}");
        assert_eq!(extra, replayer.num_extra());
        assert!(extra >= fewest_extra(n, c));
        extra
    }

    #[test]
    fn every_state_is_delivered_at_the_cost_of_the_table() {
        for c in 1..=20 {
            for n in 0..=150 {
                let extra = simulate(n, c, None);
                let e = fewest_extra(n, c);
                assert!(n + 1 > (c + 1) * (c + 2) / 2 || extra == e, "N = {n}, c = {c}");
                assert!(n > c || extra == 0, "N = {n}, c = {c}");
                assert!(c > 1 || extra == (n * n.saturating_sub(1) / 2) as u64, "N = {n}");
            }
        }
        for (n, c) in [(1000, 2), (1000, 5), (4000, 10), (2000, 128)] {
            simulate(n, c, None);
        }
    }

    #[test]
    fn with_the_number_known_the_cost_is_the_optimum() {
        for c in 1..=12 {
            for n in (0..=120).chain([1000]) {
                assert_eq!(simulate(n, c, Some(n)), fewest_extra(n, c), "N = {n}, c = {c}");
            }
        }
    }

    #[test]
    fn a_forecast_too_long_or_too_short_still_delivers() {
        for c in [1, 2, 3, 5, 9] {
            for f in [0, 1, 20, 60, 100] {
                for n in 0..=140 {
                    simulate(n, c, Some(f));
                }
            }
        }
    }

    #[test]
    fn a_visit_to_the_end_of_the_sweep_does_no_harm() {
        for (n, c) in [(5, 3), (6, 8), (40, 4)] {
            let mut machine = Machine::new(n + 1, c);
            let recorder = machine.record(n + 1, c, None);
            let mut replayer = Replayer::new();
            replayer.start(&recorder, n);
            machine.replay(&mut replayer, n);
        }
    }

    #[test]
    fn a_sweep_that_keeps_all_loads_and_delivers_only() {
        let mut recorder = Recorder::new(usize::MAX, None);
        (0..3).for_each(|i| _ = recorder.visit(i));
        let mut replayer = Replayer::new();
        replayer.start(&recorder, 3);
        let want = [2, 1, 0].map(|i| [Action::Load { slot: i }, Action::Deliver { step: i }]).concat();
        assert_eq!(replayer.by_ref().collect::<Vec<_>>(), want);
        assert_eq!(replayer.num_extra(), 0);
    }

    #[test]
    fn a_second_sweep_from_the_same_table_is_the_same_and_allocates_nothing() {
        let recorder = Machine::new(300, 6).record(300, 6, None);
        let mut replayer = Replayer::new();
        replayer.start(&recorder, 300);
        let first: Vec<Action> = replayer.by_ref().collect();
        let capacity = (replayer.stack.capacity(), replayer.free.capacity());
        replayer.start(&recorder, 300);
        assert_eq!(first, replayer.by_ref().collect::<Vec<_>>());
        assert_eq!(capacity, (replayer.stack.capacity(), replayer.free.capacity()));
    }
}
