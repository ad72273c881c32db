//! A list whose entries keep their indices while others are added and removed.
//!
//! For registries of live objects. Adding and removing take constant time, and all entries are in one vector.
//! The number of heap blocks of a registry therefore depends only on its size. The number of heap blocks of a
//! tree would also depend on the order in which entries were added and removed.

/// Entries by index. A new entry uses the index that was removed last, if there is one.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The removed index that the next entry reuses.
    free: Option<usize>,
    len: usize,
}

#[derive(Debug)]
enum Slot<T> {
    Full(T),
    /// A free index, with the free index that is reused after it.
    Free(Option<usize>),
}

impl<T> Slab<T> {
    pub const fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: None, len: 0 }
    }

    /// Adds an entry and returns its index.
    pub fn insert(&mut self, entry: T) -> usize {
        self.len += 1;
        let Some(place) = self.free else {
            self.slots.push(Slot::Full(entry));
            return self.slots.len() - 1;
        };
        if let Slot::Free(next) = self.slots[place] {
            self.free = next;
        }
        self.slots[place] = Slot::Full(entry);
        place
    }

    /// Removes an entry. If no entry remains, the vector is dropped, so that an empty registry holds no heap
    /// block.
    pub fn remove(&mut self, place: usize) {
        self.slots[place] = Slot::Free(self.free);
        self.free = Some(place);
        self.len -= 1;
        if self.len == 0 {
            *self = Slab::new();
        }
    }

    /// The entry at an index; `None` if it was removed.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match self.slots.get_mut(place) {
            Some(Slot::Full(entry)) => Some(entry),
            _ => None,
        }
    }

    /// All entries, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| if let Slot::Full(entry) = slot { Some(entry) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_an_empty_slab_holds_nothing() {
        let mut slab = Slab::new();
        let [a, b, c] = ["a", "b", "c"].map(|x| slab.insert(x));
        slab.remove(a);
        slab.remove(b);
        assert_eq!((slab.insert("d"), slab.insert("e"), slab.insert("f")), (b, a, 3));
        assert_eq!(slab.iter().copied().collect::<Vec<_>>(), ["e", "d", "c", "f"]);
        assert_eq!((slab.get_mut(c).copied(), slab.slots.len()), (Some("c"), 4));
        for place in [a, b, c, 3] {
            slab.remove(place);
        }
        assert_eq!((slab.slots.capacity(), slab.iter().count(), slab.get_mut(c)), (0, 0, None));
    }
}
