//! The leading axes of kernels that run once per entry of a batch.
//!
//! A batch stores only the number of entries and their distances in each buffer. Iterating over the entries
//! allocates nothing, because an allocation takes longer than an 8 x 8 product.

/// A batch axis: the number of entries, and the distance between entries in each of `N` buffers, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis<const N: usize> {
    pub len: usize,
    pub strides: [usize; N],
}

/// The batch axes, outermost first; none for a single entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch<const N: usize>(Box<[Axis<N>]>);

impl<const N: usize> Batch<N> {
    /// The fewest axes that visit the same entries in the same order.
    pub fn new(axes: impl Iterator<Item = Axis<N>>) -> Batch<N> {
        let mut out: Vec<Axis<N>> = Vec::new();
        for axis in axes.filter(|a| a.len != 1) {
            match out.last_mut() {
                Some(o) if o.strides == axis.strides.map(|s| s * axis.len) => {
                    *o = Axis { len: o.len * axis.len, ..axis };
                }
                _ => out.push(axis),
            }
        }
        Batch(out.into())
    }

    /// The innermost axis, and the batch without it.
    pub fn split_last(&self) -> Option<(Axis<N>, Batch<N>)> {
        self.0.split_last().map(|(&last, rest)| (last, Batch(rest.into())))
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.0.iter().map(|a| a.len).product()
    }

    /// The offsets of the last entry, which are the largest, or `None` if there are no entries.
    pub fn last(&self) -> Option<[usize; N]> {
        let mut at = [0; N];
        for axis in &self.0 {
            let steps = axis.len.checked_sub(1)?;
            at.iter_mut().zip(axis.strides).for_each(|(a, s)| *a += steps * s);
        }
        Some(at)
    }

    /// Calls `f` with the offsets of each entry in the `N` buffers, in elements from the first entry.
    #[inline]
    pub fn each(&self, mut f: impl FnMut([usize; N])) {
        if self.0.is_empty() {
            return f([0; N]);
        }
        walk(&self.0, [0; N], &mut f);
    }
}

fn walk<const N: usize>(axes: &[Axis<N>], mut at: [usize; N], f: &mut impl FnMut([usize; N])) {
    let Some((axis, rest)) = axes.split_first() else { return f(at) };
    for _ in 0..axis.len {
        walk(rest, at, f);
        at.iter_mut().zip(axis.strides).for_each(|(a, s)| *a += s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_axes_merge_and_each_entry_is_visited_in_order() {
        let axis = |len, strides| Axis { len, strides };
        let batch =
            Batch::new([axis(2, [12, 6]), axis(1, [7, 7]), axis(3, [4, 2]), axis(2, [5, 0])].into_iter());
        assert_eq!(*batch.0, [axis(6, [4, 2]), axis(2, [5, 0])]);
        let mut seen = vec![];
        batch.each(|at| seen.push(at));
        assert_eq!(seen[..5], [[0, 0], [5, 0], [4, 2], [9, 2], [8, 4]]);
        assert_eq!((seen.len(), batch.count(), batch.last()), (12, 12, seen.last().copied()));
        let (one, none) = (Batch::<1>::new([].into_iter()), Batch::new([axis(0, [3, 3])].into_iter()));
        assert_eq!((one.count(), none.count()), (1, 0));
        assert_eq!((one.last(), none.last()), (Some([0]), None));
        none.each(|at| panic!("expected no entry, got {at:?}"));
    }
}
