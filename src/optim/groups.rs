//! Groups of leaves by path: one optimizer per group, and frozen leaves.

use super::Optimizer;
use super::hyper::MapNumber;
use super::moments::no_update;
use super::part::{Memory, Part, Slot, Transform};
use std::fmt;
use std::sync::Arc;

/// Maps a leaf's path to the index of its optimizer in a partition.
#[derive(Clone)]
pub(super) struct GroupOf(pub Arc<dyn Fn(&str) -> usize + Send + Sync>);

impl fmt::Debug for GroupOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupOf")
    }
}

/// Selects leaves by path; `None` selects all.
#[derive(Clone, Default)]
pub(super) struct Include(pub Option<Arc<dyn Fn(&str) -> bool + Send + Sync>>);

impl Include {
    pub fn holds(&self, path: &str) -> bool {
        self.0.as_ref().is_none_or(|f| f(path))
    }
}

impl fmt::Debug for Include {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some leaves" } else { "all leaves" })
    }
}

/// Sets updates to zero.
#[derive(Clone, Debug)]
pub(super) struct Freeze;

impl Transform for Freeze {
    fn apply(&self, slots: &mut [Slot], _: &mut Memory) {
        slots.iter_mut().for_each(|s| s.update = no_update(&s.weight).broadcast_to(s.weight.shape().clone()));
    }

    fn map_numbers(&self, _: &mut MapNumber) -> Part {
        Part::Freeze(Freeze)
    }
}

/// One optimizer per group of leaves.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    pub group_of: GroupOf,
    pub groups: Vec<Optimizer>,
}

impl Partition {
    /// The indices of the leaves in each group.
    #[track_caller]
    fn members(&self, slots: &[Slot]) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.groups.len()];
        for (i, slot) in slots.iter().enumerate() {
            let g = (self.group_of.0)(&slot.path);
            assert!(
                g < self.groups.len(),
                "leaf {} is assigned to group {g}, but there are {} groups, counted from 0",
                slot.path,
                self.groups.len()
            );
            members[g].push(i);
        }
        members
    }
}

impl Transform for Partition {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        for ((g, group), members) in self.groups.iter().enumerate().zip(self.members(slots)) {
            let own: Vec<Slot> = members.iter().map(|&i| slots[i].clone()).collect();
            group.init_slots(&own, &mut memory.within(&g.to_string()));
        }
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        for ((g, group), members) in self.groups.iter().enumerate().zip(self.members(slots)) {
            let mut own: Vec<Slot> = members.iter().map(|&i| slots[i].clone()).collect();
            group.apply_slots(&mut own, &mut memory.within(&g.to_string()));
            members.into_iter().zip(own).for_each(|(i, slot)| slots[i] = slot);
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let groups = self.groups.iter().enumerate();
        let groups = groups.map(|(g, o)| o.map_numbers(&g.to_string(), f)).collect();
        Part::Partition(Partition { group_of: self.group_of.clone(), groups })
    }

    fn needs_value(&self) -> bool {
        self.groups.iter().any(Optimizer::needs_value)
    }
}
