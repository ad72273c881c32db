//! Assigns offsets in the arena to buffers.
//!
//! A buffer lives from the step that first writes it to the step that last uses it. Buffers are placed largest
//! first, each into the smallest gap left by the buffers that live at the same time (XLA's
//! `GlobalDecreasingSizeBestFitHeap`). This method is deterministic, and on lifetimes like those of a plan it
//! is within a few percent of the lower bound. If a step may overwrite a buffer that no later step reads, its
//! result shares the bytes of this buffer. The pass and its tests use only lifetimes and sizes.

use super::chaos::{self, Decision};
use crate::backend::cpu::memory::aligned;
use std::cmp::Reverse;

/// The lifetime of a buffer in the arena, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub first: usize,
    pub last: usize,
    pub bytes: usize,
}

/// Offsets and arena size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// For each buffer with a lifetime, its offset.
    pub offsets: Vec<Option<usize>>,
    /// Size of the arena.
    pub bytes: usize,
    /// Lower bound on the size: the largest total size of buffers alive at one step.
    pub bound: usize,
    /// Size without any reuse.
    pub without_reuse: usize,
}

/// Places buffers. `in_place` lists (step, written, read): at that step, `written` may reuse the bytes of
/// `read` if the lifetime of `written` starts and the lifetime of `read` ends at this step. A step reuses the
/// bytes of a buffer once, even if its result is not read (if an empty part of it is, for example).
pub(crate) fn place(lives: &[Option<Life>], in_place: &[(usize, usize, usize)]) -> MemoryPlan {
    let mut merged: Vec<usize> = (0..lives.len()).collect();
    let mut groups: Vec<Option<Life>> = lives.to_vec();
    let mut reused_at: Vec<Option<usize>> = vec![None; lives.len()];
    for &(step, written, read) in in_place {
        let (w, r) = (find(&merged, written), find(&merged, read));
        let (Some(new), Some(old)) = (groups[w], groups[r]) else { continue };
        let fits = aligned(new.bytes) == aligned(old.bytes) && reused_at[r] != Some(step);
        if w != r && fits && new.first == step && old.last == step && !chaos::forgoes(Decision::Memory) {
            reused_at[r] = Some(step);
            groups[r] = Some(Life { last: new.last, ..old });
            groups[w] = None;
            merged[w] = r;
        }
    }
    let key = |(i, life): (usize, &Option<Life>)| life.map(|l| (Reverse(l.bytes), l.first, i));
    let mut order: Vec<_> = groups.iter().enumerate().filter_map(key).collect();
    order.sort_unstable();
    chaos::shuffle(Decision::Memory, &mut order);
    let mut placed: Vec<(Life, usize)> = Vec::new();
    let mut offsets = vec![None; lives.len()];
    for (_, _, i) in order {
        let Some(life) = groups[i] else { continue };
        let offset = best_fit(&placed, life);
        placed.push((life, offset));
        offsets[i] = Some(offset);
    }
    let ends = placed.iter().map(|(l, at)| at + aligned(l.bytes));
    let bytes = ends.max().unwrap_or(0);
    for i in 0..lives.len() {
        if lives[i].is_some() {
            offsets[i] = offsets[find(&merged, i)];
        }
    }
    let without_reuse = lives.iter().flatten().map(|l| aligned(l.bytes)).sum();
    MemoryPlan { offsets, bytes, bound: bound(&placed), without_reuse }
}

fn find(merged: &[usize], mut i: usize) -> usize {
    while merged[i] != i {
        i = merged[i];
    }
    i
}

fn best_fit(placed: &[(Life, usize)], life: Life) -> usize {
    let meets = |l: &Life| l.first <= life.last && life.first <= l.last;
    let mut taken: Vec<(usize, usize)> =
        placed.iter().filter(|(l, _)| meets(l)).map(|(l, at)| (*at, at + aligned(l.bytes))).collect();
    taken.sort_unstable();
    let need = aligned(life.bytes);
    let (mut end, mut best) = (0, None);
    for (from, to) in taken {
        if from >= end + need
            && best.is_none_or(|(gap, _)| from - end < gap)
            && !chaos::forgoes(Decision::Memory)
        {
            best = Some((from - end, end));
        }
        end = end.max(to);
    }
    best.map_or(end, |(_, at)| at)
}

fn bound(placed: &[(Life, usize)]) -> usize {
    let at = |step: usize| {
        placed.iter().filter(|(l, _)| l.first <= step && step <= l.last).map(|(l, _)| aligned(l.bytes)).sum()
    };
    placed.iter().map(|(l, _)| at(l.first)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two buffers share bytes while both are alive, other than by a pair of `in_place`.
    fn overlaps(lives: &[Option<Life>], plan: &MemoryPlan, in_place: &[(usize, usize, usize)]) -> bool {
        let all: Vec<(usize, Life, usize)> = (0..lives.len())
            .filter_map(|i| Some((i, lives[i]?, plan.offsets[i]?)))
            .filter(|(_, life, _)| life.bytes > 0)
            .collect();
        let takes_over = |w: (usize, Life, usize), r: (usize, Life, usize)| {
            w.2 == r.2 && w.1.first == r.1.last && in_place.contains(&(w.1.first, w.0, r.0))
        };
        (0..all.len()).any(|i| {
            (0..i).any(|j| {
                let (a, b) = (all[i], all[j]);
                let together = a.1.first <= b.1.last && b.1.first <= a.1.last;
                let shared = a.2 < b.2 + b.1.bytes && b.2 < a.2 + a.1.bytes;
                together && shared && !takes_over(a, b) && !takes_over(b, a)
            })
        })
    }

    fn life(first: usize, last: usize, bytes: usize) -> Life {
        Life { first, last, bytes }
    }

    #[test]
    fn live_buffers_never_overlap_and_the_arena_is_near_the_bound() {
        let mut seed = 7u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        let (mut bytes, mut bound) = (0, 0);
        for _ in 0..100 {
            let lives: Vec<Option<Life>> = (0..60)
                .map(|_| {
                    let first = next(100);
                    Some(life(first, first + next(12), 1 + next(5000)))
                })
                .collect();
            let plan = place(&lives, &[]);
            assert!(
                !overlaps(&lives, &plan, &[]) && plan.bytes >= plan.bound && plan.bytes <= plan.without_reuse
            );
            (bytes, bound) = (bytes + plan.bytes, bound + plan.bound);
        }
        assert!(bytes as f64 <= 1.1 * bound as f64, "{bytes} bytes, lower bound {bound}");
    }

    #[test]
    fn a_dying_operand_lends_its_bytes_once() {
        let lives = [life(0, 1, 640), life(1, 2, 640), life(1, 2, 640)].map(Some);
        let plan = place(&lives, &[(1, 1, 0), (1, 2, 0)]);
        assert_eq!((plan.offsets[0], plan.bytes), (plan.offsets[1], 1280));
        assert_ne!(plan.offsets[1], plan.offsets[2]);
        // The first result is not read by a later step.
        let lives = [life(0, 1, 640), life(1, 1, 640), life(1, 2, 640)].map(Some);
        let plan = place(&lives, &[(1, 1, 0), (1, 2, 0)]);
        assert_ne!(plan.offsets[1], plan.offsets[2]);
        let plan = place(&[life(0, 2, 640), life(1, 2, 640)].map(Some), &[(1, 1, 0)]);
        assert_ne!(plan.offsets[0], plan.offsets[1]);
    }
}
