//! Sums over the parts of a job, bit-identical for every number of ranks.
//!
//! A rank adds the subtrees of the [tree](super::tree) in its range and sends their sums. Short arrays are
//! gathered by all ranks. Long arrays are cut into one chunk per rank: each rank receives its chunk from all
//! ranks, adds it in tree order and sends the result to all. For W f32 numbers, P ranks and one subtree per
//! rank, each rank sends `8 W (P - 1) / P` bytes; gathering would send `4 W (P - 1)`.

use super::tree::{cut, fold, roots};
use super::{OnSilent, Parts, World, WorldError, part};
use std::ops::Range;

/// [`Sum::many`] is gathered if it has at most this many bytes; otherwise it is sent in chunks.
const GATHERED: usize = 32 << 10;

/// An addend or a sum: a short array and a long array.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    /// Losses and counters.
    pub few: Vec<f64>,
    /// A gradient.
    pub many: Vec<f32>,
}

impl Sum {
    /// Adds a sum that follows this one in the tree.
    pub(crate) fn add(mut self, other: &Sum) -> Sum {
        self.few.iter_mut().zip(&other.few).for_each(|(a, b)| *a += b);
        add(&mut self.many, &other.many);
        self
    }
}

fn add(a: &mut [f32], b: &[f32]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}

/// The error of a rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// The first rank that failed.
    pub rank: usize,
    /// The error, as bytes.
    pub message: Vec<u8>,
}

/// The subtrees of `parts` parts that this rank adds.
pub(crate) fn subtrees(world: &World, parts: usize) -> Vec<Range<usize>> {
    roots(parts, &world.part(parts))
}

/// The sum over a subtree. `one` computes a part; parts are computed in parallel.
pub(crate) fn local<E: Send>(
    node: Range<usize>,
    one: &(impl Fn(usize) -> Result<Sum, E> + Sync),
) -> Result<Sum, E> {
    if node.len() == 1 {
        return one(node.start);
    }
    let at = cut(&node);
    let (left, right) = rayon::join(|| local(node.start..at, one), || local(at..node.end, one));
    Ok(left?.add(&right?))
}

impl World {
    /// The sum over all `parts` parts, from the sums of this rank's [subtrees] or its error. All ranks return
    /// the same result: the sum, or the error of the first rank that failed.
    pub(crate) fn sum(
        &self,
        parts: usize,
        mine: Result<Vec<Sum>, Vec<u8>>,
        on_silent: OnSilent<'_>,
    ) -> Result<Result<Sum, Failure>, WorldError> {
        let sizes = mine.as_ref().map_or((0, 0), |sums| (sums[0].few.len(), sums[0].many.len()));
        // All ranks without an error have the same lengths. If a rank has an error, no sum is computed.
        let is_gathered = 4 * sizes.1 <= GATHERED;
        let mut head = Vec::new();
        match &mine {
            Err(message) => {
                head.push(0);
                head.extend_from_slice(message);
            }
            Ok(sums) => {
                head.push(1);
                sums.iter().flat_map(|sum| &sum.few).for_each(|x| head.extend(x.to_le_bytes()));
                if is_gathered {
                    sums.iter().for_each(|sum| write(&mut head, &sum.many));
                }
            }
        }
        let heads = self.all_gather_or(&head, on_silent)?;
        if let Some(rank) = heads.iter().position(|head| head.first() != Some(&1)) {
            return Ok(Err(Failure { rank, message: heads.get(rank)[1..].to_vec() }));
        }
        let sums = mine.unwrap_or_default();
        let few = self.fold(
            parts,
            &heads,
            |bytes, count, k| {
                let numbers =
                    bytes[1..].chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap_or_default()));
                let each = sizes.0;
                debug_assert!(bytes.len() > 8 * each * count);
                numbers.skip(each * k).take(each).collect::<Vec<f64>>()
            },
            |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
        );
        let many = if is_gathered {
            self.fold(
                parts,
                &heads,
                |bytes, count, k| {
                    let first = 1 + 8 * sizes.0 * count + 4 * sizes.1 * k;
                    read(&bytes[first..first + 4 * sizes.1])
                },
                |a, b| add(a, b),
            )
        } else {
            self.chunked(parts, &sums, sizes.1, on_silent)?
        };
        Ok(Ok(Sum { few, many }))
    }

    /// Sums of long arrays, one chunk per rank.
    fn chunked(
        &self,
        parts: usize,
        sums: &[Sum],
        len: usize,
        on_silent: OnSilent<'_>,
    ) -> Result<Vec<f32>, WorldError> {
        let chunk = |rank: usize| part(len, rank, self.size());
        let mut mine = Parts::default();
        for rank in 0..self.size() {
            let mut bytes = Vec::with_capacity(4 * sums.len() * chunk(rank).len());
            sums.iter().for_each(|sum| write(&mut bytes, &sum.many[chunk(rank)]));
            mine.push(&bytes);
        }
        let all = self.all_to_all_or(&mine, on_silent)?;
        let size = 4 * chunk(self.rank()).len();
        let sum =
            self.fold(parts, &all, |bytes, _, k| read(&bytes[size * k..size * (k + 1)]), |a, b| add(a, b));
        let mut bytes = Vec::with_capacity(size);
        write(&mut bytes, &sum);
        Ok(read(self.all_gather_or(&bytes, on_silent)?.bytes()))
    }

    /// Adds the sums of all ranks' subtrees in tree order. `read(bytes, n, k)` reads the k-th of n sums that
    /// a rank sent.
    fn fold<T>(
        &self,
        parts: usize,
        all: &Parts,
        read: impl Fn(&[u8], usize, usize) -> T,
        add: impl Fn(&mut T, &T),
    ) -> T {
        let ranks = 0..self.size();
        let mut pieces = ranks.flat_map(|rank| {
            let nodes = roots(parts, &part(parts, rank, self.size()));
            let count = nodes.len();
            nodes.into_iter().enumerate().map(move |(k, node)| (node, rank, count, k))
        });
        let mut pieces = pieces.by_ref().peekable();
        let mut next = |node: &Range<usize>| {
            let piece = pieces.next_if(|(piece, ..)| piece == node);
            Ok::<_, std::convert::Infallible>(piece.map(|(_, rank, count, k)| read(all.get(rank), count, k)))
        };
        let sum = fold(0..parts, &mut next, &|mut a: T, b: T| {
            add(&mut a, &b);
            a
        });
        match sum {
            Ok(sum) => sum,
            Err(never) => match never {},
        }
    }
}

fn write(bytes: &mut Vec<u8>, numbers: &[f32]) {
    bytes.reserve(4 * numbers.len());
    numbers.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
}

fn read(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect()
}
