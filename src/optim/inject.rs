//! Hyper-parameters as leaves of the optimizer state.

use super::Optimizer;
use super::hyper::MapNumber;
use super::part::{Memory, Part, Slot, Transform};

/// The inner optimizer with its hyper-parameters read from the state, under `hyper`.
///
/// `init` copies them into the state; later updates ignore the numbers of the inner optimizer.
#[derive(Clone, Debug)]
pub(super) struct Inject {
    pub inner: Optimizer,
}

impl Transform for Inject {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        self.inner.init_slots(slots, &mut memory.within("inner"));
        self.inner.map_numbers("hyper", &mut |name, x| {
            memory.put(name, x.clone());
            x.clone()
        });
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let inner = self.inner.map_numbers("hyper", &mut |name, _| {
            let x = memory.take(name);
            memory.put(name, x.clone());
            x
        });
        inner.apply_slots(slots, &mut memory.within("inner"));
    }

    fn map_numbers(&self, _: &mut MapNumber) -> Part {
        Part::Inject(self.clone())
    }

    fn needs_value(&self) -> bool {
        self.inner.needs_value()
    }
}
