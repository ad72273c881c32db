//! Which trajectories of an ensemble each rank solves.

/// The maximum number of trajectories in a block.
const BLOCK: usize = 32;
/// The minimum number of blocks per rank, unless a rank has fewer trajectories than that.
const BLOCKS: usize = 8;

/// Trajectories divided among ranks. Blocks of consecutive trajectories go to the ranks in turn: neighbors in
/// a sweep often take similar numbers of steps, so contiguous parts would differ in cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    num: usize,
    ranks: usize,
    block: usize,
}

impl Partition {
    /// Divides `num` trajectories among `ranks`.
    pub(super) fn new(num: usize, ranks: usize) -> Partition {
        Partition { num, ranks, block: (num / (BLOCKS * ranks)).clamp(1, BLOCK) }
    }
    /// The number of trajectories of a rank.
    pub(super) fn len(&self, rank: usize) -> usize {
        let (rounds, rest) = (self.num / self.round(), self.num % self.round());
        rounds * self.block + rest.saturating_sub(rank * self.block).min(self.block)
    }
    /// The trajectory that rank `rank` solves as its `k`th.
    pub(super) fn trajectory(&self, rank: usize, k: usize) -> usize {
        k / self.block * self.round() + rank * self.block + k % self.block
    }
    /// The rank that solves trajectory `i`, and its `k` there: the inverse of
    /// [`trajectory`](Self::trajectory).
    #[cfg(any(test, feature = "rayon"))]
    pub(super) fn place(&self, i: usize) -> (usize, usize) {
        let (round, within) = (i / self.round(), i % self.round());
        (within / self.block, round * self.block + within % self.block)
    }
    /// The number of trajectories in one block of every rank.
    fn round(&self) -> usize {
        self.ranks * self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trajectory_has_one_place_and_sizes_differ_by_one_block_at_most() {
        for num in [0, 1, 7, 100, 1000, 10_007] {
            for ranks in [1, 2, 3, 16, 31, 1000] {
                let partition = Partition::new(num, ranks);
                let sizes: Vec<usize> = (0..ranks).map(|rank| partition.len(rank)).collect();
                assert_eq!(sizes.iter().sum::<usize>(), num);
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= partition.block);
                for i in 0..num {
                    let (rank, k) = partition.place(i);
                    assert!(k < sizes[rank]);
                    assert_eq!(partition.trajectory(rank, k), i);
                }
            }
        }
    }

    #[test]
    fn ends_of_a_sweep_are_divided() {
        let partition = Partition::new(10_000, 2);
        for rank in 0..2 {
            let sum: usize = (0..partition.len(rank)).map(|k| partition.trajectory(rank, k)).sum();
            let mean = sum as f64 / partition.len(rank) as f64;
            assert!((mean - 5000.0).abs() < 20.0, "{mean}");
        }
    }
}
