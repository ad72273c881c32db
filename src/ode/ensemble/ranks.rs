//! Ensembles over ranks: each rank solves some of the trajectories, and every rank receives all results in
//! order.
//!
//! Before the solve, the ranks compare their settings, and each compares its own trajectories with those that the rank
//! before it has in their place. Otherwise results of different parameters would be mixed without an error. Static fields
//! of a `vector_field!` are not compared: only their `Debug` is known, which may contain addresses.

use super::LaneFloat;
use super::many::Results;
use super::partition::Partition;
use crate::ode::{Outcome, Stats, Warning};
use crate::world::{World, WorldError};
use rayon::prelude::*;

/// The number of counters of a trajectory.
const COUNTERS: usize = 6;
/// The number of words of a row after the state: the counters, six numbers of the outcome, whether stiffness
/// was detected, and when.
const BESIDE: usize = COUNTERS + 6 + 2;

/// Refuses ranks that solve another ensemble: `settings` are named values, and `words` calls its second argument with the
/// parameters and y0 of a trajectory.
///
/// # Errors
/// [`WorldError::Differs`] for a setting, [`WorldError::OtherProblems`] for a trajectory, or if a rank has ended.
pub(super) fn check_same(
    world: &World,
    num: usize,
    settings: &[(&str, String)],
    words: impl Fn(usize, &mut dyn FnMut(f64)) + Sync,
) -> Result<(), WorldError> {
    world.compare(settings)?;
    let (size, partition) = (world.size(), Partition::new(num, world.size()));
    let hash_of = |i: usize| {
        let mut hash = mixed(0, i as u64);
        words(i, &mut |x| hash = mixed(hash, if x.is_nan() { f64::NAN } else { x }.to_bits()));
        hash
    };
    // The sum does not depend on the order in which threads add the hashes, each of which contains its index.
    let of_rank = |rank: usize| {
        let hashes = (0..partition.len(rank)).into_par_iter().with_min_len(HASHED);
        hashes.map(|k| hash_of(partition.trajectory(rank, k))).reduce(|| 0, u64::wrapping_add)
    };
    let next = |rank: usize| (rank + 1) % size;
    let mine = [world.rank(), next(world.rank())].map(of_rank);
    let all = world.all_gather(&mine.map(u64::to_le_bytes).concat())?;
    let differs = |rank: &usize| all.get(*rank)[8..] != all.get(next(*rank))[..8];
    match (0..size).find(differs) {
        None => Ok(()),
        Some(rank) => {
            let ranks = [rank, next(rank)].map(|rank| (rank, world.host(rank)));
            Err(WorldError::OtherProblems { ranks })
        }
    }
}

/// The smallest number of trajectories that a thread hashes.
const HASHED: usize = 4096;

/// A hash with one more word. For a given hash, different words give different hashes.
fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

/// The results of all ranks, in the order of the trajectories. `num` is the number of trajectories on all
/// ranks, `dim` the number of components of each.
///
/// # Errors
/// If a rank has ended.
pub(super) fn gather<T: LaneFloat>(
    world: &World,
    mine: &Results<T>,
    (num, dim): (usize, usize),
) -> Result<Results<T>, WorldError> {
    let len = dim + BESIDE;
    let mut bytes = Vec::with_capacity(8 * len * mine.outcomes.len());
    for i in 0..mine.outcomes.len() {
        bytes.extend(row(mine, i, dim).flat_map(u64::to_le_bytes));
    }
    let all = world.all_gather(&bytes)?;
    let partition = Partition::new(num, world.size());
    let mut found = Results { y1: vec![], stats: vec![], outcomes: vec![], warnings: vec![] };
    let mut words = vec![0; len];
    for i in 0..num {
        let (rank, k) = partition.place(i);
        let row = &all.get(rank)[8 * len * k..][..8 * len];
        for (word, bytes) in words.iter_mut().zip(row.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        let (y, beside) = words.split_at(dim);
        found.y1.extend(y.iter().map(|&bits| T::of(f64::from_bits(bits))));
        found.stats.push(Stats {
            num_steps: beside[0],
            num_accepted: beside[1],
            num_rejected: beside[2],
            num_fn_evals: beside[3],
            num_jac_evals: beside[4],
            num_factorizations: beside[5],
        });
        let number = |k: usize| f64::from_bits(beside[COUNTERS + k]);
        let outcome = Outcome::decode(number(0), number(1), number(2), number(3), number(4), number(5));
        found.outcomes.push(outcome.expect("invariant: every trajectory has ended"));
        found.warnings.push((beside[COUNTERS + 6] == 1).then(|| Warning::Stiff { t: number(7) }));
    }
    Ok(found)
}

/// The results of a trajectory as words of 64 bits.
fn row<T: LaneFloat>(of: &Results<T>, i: usize, dim: usize) -> impl Iterator<Item = u64> {
    let y = of.y1[i * dim..(i + 1) * dim].iter().map(|y| y.value().to_bits());
    let Stats { num_steps, num_accepted, num_rejected, num_fn_evals, num_jac_evals, num_factorizations } =
        of.stats[i];
    let counters: [u64; COUNTERS] =
        [num_steps, num_accepted, num_rejected, num_fn_evals, num_jac_evals, num_factorizations];
    let outcome = of.outcomes[i].encode().map(f64::to_bits);
    let stiff = of.warnings[i].map_or([0, 0], |warning| match warning {
        Warning::Stiff { t } => [1, t.to_bits()],
        Warning::Grazing { .. } => [0, 0],
    });
    y.chain(counters).chain(outcome).chain(stiff)
}
