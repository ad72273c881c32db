//! Sets of small integers.

/// A set of small integers, one bit each: inputs of a function, operands of a node, units of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(Vec<u64>);

impl Set {
    /// The set of one number.
    pub(super) fn one(i: usize) -> Set {
        let mut s = Set::default();
        s.insert(i);
        s
    }

    /// Adds a number.
    pub fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// Removes a number.
    pub fn remove(&mut self, i: usize) {
        if let Some(w) = self.0.get_mut(i / 64) {
            *w &= !(1 << (i % 64));
        }
    }

    /// Whether the number is in the set.
    pub fn contains(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    /// Adds all numbers of another set.
    pub fn join(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    /// Whether the sets have a common number.
    pub(super) fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The numbers, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..64 * self.0.len()).filter(|&i| self.contains(i))
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(items: I) -> Set {
        let mut s = Set::default();
        items.into_iter().for_each(|i| s.insert(i));
        s
    }
}
