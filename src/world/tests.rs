//! Worlds of threads: collectives, tree sums, and ranks that fail.

mod drawn;

use super::sum::{Failure, Sum, local, subtrees};
use super::tree::{fold, roots};
use super::{Parts, World, WorldError, part};
use crate::time_source::TimeSource;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn every_rank_receives_what_the_others_send_in_order_of_the_ranks() {
    for ranks in [1, 2, 3, 5] {
        let found = World::threads(ranks, |world| {
            let mine = vec![world.rank() as u8; world.rank() + 1];
            let all = world.all_gather(&mine).unwrap();
            let to: Parts = (0..world.size())
                .map(|to| [world.rank() as u8, to as u8])
                .collect::<Vec<_>>()
                .iter()
                .map(|x| &x[..])
                .collect();
            let from = world.all_to_all_or(&to, &mut |_| {}).unwrap();
            let mut word = if world.is_root() { b"all".to_vec() } else { vec![9; 100] };
            world.broadcast(&mut word).unwrap();
            (all, from, word)
        });
        for (rank, (all, from, word)) in found.into_iter().enumerate() {
            assert_eq!(all.len(), ranks);
            assert!((0..ranks).all(|i| all.get(i) == vec![i as u8; i + 1]));
            assert!((0..ranks).all(|i| from.get(i) == [i as u8, rank as u8]));
            assert_eq!(word, b"all");
        }
    }
}

#[test]
fn parts_are_contiguous_and_differ_by_one_at_most() {
    for n in [0, 1, 7, 16, 1000] {
        for of in [1, 2, 3, 16, 31] {
            let parts: Vec<Range<usize>> = (0..of).map(|i| part(n, i, of)).collect();
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((parts[0].start, parts[of - 1].end), (0, n));
            let sizes: Vec<usize> = parts.iter().map(Range::len).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}

/// The sum as a bracketed expression.
fn brackets(parts: usize, cuts: &[usize]) -> String {
    let mut pieces = cuts.windows(2).flat_map(|cut| roots(parts, &(cut[0]..cut[1]))).peekable();
    let text = |node: Range<usize>| {
        let leaf = &mut |node: &Range<usize>| Ok::<_, ()>((node.len() == 1).then(|| node.start.to_string()));
        fold(node, leaf, &|a, b| format!("({a} {b})")).unwrap()
    };
    let next = &mut |node: &Range<usize>| Ok::<_, ()>(pieces.next_if_eq(node).map(text));
    let whole = fold(0..parts, next, &|a, b| format!("({a} {b})")).unwrap();
    assert!(pieces.next().is_none(), "a subtree is left over");
    whole
}

#[test]
fn the_tree_cuts_at_the_largest_power_of_two_below_the_length() {
    assert_eq!(brackets(1, &[0, 1]), "0");
    assert_eq!(brackets(4, &[0, 4]), "((0 1) (2 3))");
    assert_eq!(brackets(7, &[0, 7]), "(((0 1) (2 3)) ((4 5) 6))");
}

#[test]
fn a_sum_has_one_order_however_its_parts_are_cut() {
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for _ in 0..300 {
        let parts = 1 + below(40);
        let mut cuts: Vec<usize> = (0..below(8)).map(|_| below(parts + 1)).chain([0, parts]).collect();
        cuts.sort_unstable();
        assert_eq!(brackets(parts, &cuts), brackets(parts, &[0, parts]), "{cuts:?}");
    }
}

/// Part i of a job: numbers whose sum depends on the order.
fn one(i: usize, len: usize) -> Sum {
    let number = |k: usize| ((i * 7919 + k * 104_729) % 1_000_003) as f32 * 1e-3 + 1e4 / (i + 1) as f32;
    Sum { few: vec![0.1 * i as f64, 1.0 / (i + 3) as f64], many: (0..len).map(number).collect() }
}

#[test]
fn a_sum_has_the_same_bits_on_any_number_of_ranks_gathered_and_in_chunks() {
    for parts in [1, 3, 16, 21] {
        // Up to 8,192 numbers are gathered. The two longer lengths are odd, so chunks differ in size for an
        // even number of ranks.
        for len in [0, 1, 5, 8_192, 8_193, 20_011] {
            let whole = local(0..parts, &|i| Ok::<_, ()>(one(i, len))).unwrap();
            for ranks in [1, 2, 3, 4, 16].into_iter().filter(|&ranks| ranks <= parts) {
                let sums = World::threads(ranks, |world| {
                    let mine = subtrees(world, parts);
                    let mine = mine.into_iter().map(|node| local(node, &|i| Ok(one(i, len)))).collect();
                    world.sum(parts, mine, &mut |_| {}).unwrap()
                });
                assert!(
                    sums.iter().all(|sum| sum.as_ref() == Ok(&whole)),
                    "{parts} parts, {ranks} ranks, {len}"
                );
            }
        }
    }
}

#[test]
fn chunks_send_as_many_bytes_as_the_formula_says() {
    let (ranks, len) = (4, 100_000);
    let sent = World::threads(ranks, |world| {
        let mine = subtrees(world, 16).into_iter().map(|node| local(node, &|i| Ok(one(i, len)))).collect();
        world.sum(16, mine, &mut |_| {}).unwrap().unwrap();
        world.traffic()
    });
    // The gradient in chunks; a flag and two losses to every other rank.
    let (gradient, head) = (8 * len * (ranks - 1) / ranks, (1 + 2 * 8) * (ranks - 1));
    assert!(sent.iter().all(|sent| (sent.calls, sent.bytes) == (3, (gradient + head) as u64)), "{sent:?}");
}

#[test]
fn the_first_failure_is_the_answer_on_every_rank() {
    let found = World::threads(4, |world| {
        let mine = match world.rank() {
            rank @ (1 | 3) => Err(format!("shard of {rank}").into_bytes()),
            _ => Ok(vec![one(0, 10_000)]),
        };
        world.sum(4, mine, &mut |_| {}).unwrap()
    });
    let want = Failure { rank: 1, message: b"shard of 1".to_vec() };
    assert!(found.iter().all(|found| found.as_ref() == Err(&want)));
}

#[test]
fn an_error_of_one_rank_is_an_error_of_all() {
    let found = World::threads(3, |world| {
        let reason = "no such file".to_owned();
        let mine = if world.rank() == 1 { Err(WorldError::Mpi { reason }) } else { Ok(world.rank()) };
        world.agree(mine).unwrap_err().to_string()
    });
    assert_eq!(found[1], "MPI cannot be used: no such file");
    assert_eq!(found[0], "rank 1 (this process): MPI cannot be used: no such file");
    assert_eq!(found[2], found[0]);
}

#[test]
fn the_first_value_that_differs_is_named_with_both() {
    let found = World::threads(3, |world| {
        let data = if world.rank() == 2 { "3f" } else { "91" };
        world.compare(&[("options", "same".to_owned()), ("data", data.to_owned())]).unwrap_err().to_string()
    });
    assert!(found.iter().all(|text| text == "data differs on rank 2 (this process): 3f, but rank 0 has 91"));
}

/// Values of up to 2,000 characters that differ in one place: the message is short, and its parts differ.
#[test]
fn the_difference_of_long_values_is_shown_in_one_line() {
    for length in [1, 59, 60, 61, 200, 2_000] {
        for at in [0, length / 2, length - 1] {
            let value = |c: char| -> String { (0..length).map(|i| if i == at { c } else { 'é' }).collect() };
            let found = World::threads(2, |world| {
                let value = value(if world.rank() == 0 { 'a' } else { 'b' });
                world.compare(&[("configuration", value)]).unwrap_err()
            });
            for error in found {
                let WorldError::Differs { theirs, ours, .. } = &error else { panic!("{error}") };
                assert!(theirs.contains('b') && ours.contains('a'), "{length} {at}: {error}");
                assert!(error.to_string().chars().count() < 220, "{error}");
                assert_eq!(length <= 60, *theirs == value('b'), "{length} {at}: {error}");
            }
        }
    }
}

#[test]
fn a_silent_rank_is_named_when_the_deadline_is_over() {
    let (time, gave_up) = (TimeSource::set(), AtomicUsize::new(0));
    let found = World::threads_by(&time, 3, |world| {
        world.set_deadline(Some(Duration::from_millis(200)));
        if world.rank() == 1 {
            // Silent until both others have given up. The time stands still until both wait for this rank, so that neither
            // is silent for the other.
            while gave_up.load(Ordering::SeqCst) < 2 {
                if time.num_waited() == 2 {
                    time.advance(0.05);
                }
                std::thread::yield_now();
            }
            return None;
        }
        let mut seen = None;
        let error = world.all_gather_or(b"x", &mut |e| seen = Some(e.clone())).unwrap_err();
        gave_up.fetch_add(1, Ordering::SeqCst);
        assert_eq!(seen.as_ref(), Some(&error));
        Some(error)
    });
    let want = WorldError::Silent { ranks: vec![(1, "this process".to_owned())], seconds: 0 };
    assert_eq!(found, [Some(want.clone()), None, Some(want)]);
}

#[test]
fn a_rank_that_has_ended_or_makes_another_call_is_named() {
    let found = World::threads(3, |world| match world.rank() {
        2 => None,
        _ => Some(world.all_gather(b"x").unwrap_err()),
    });
    let want = WorldError::Ended { rank: 2, host: "this process".to_owned() };
    assert_eq!(found, [Some(want.clone()), Some(want), None]);
    let has_called = AtomicUsize::new(0);
    let texts = World::threads(2, |world| {
        if world.is_root() {
            let error = world.broadcast(&mut vec![1]).map_err(|e| e.to_string()).err();
            has_called.store(1, Ordering::SeqCst);
            return error;
        }
        // A broadcast does not wait for the other ranks, so it has ended.
        while has_called.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        world.all_gather(b"x").map_err(|e| e.to_string()).err()
    });
    assert_eq!(texts[0], None);
    let text = texts[1].as_deref().unwrap();
    assert!(
        text.starts_with("rank 0 (this process) calls broadcast where this rank calls all_gather"),
        "{text}"
    );
}

#[test]
#[should_panic(expected = "rank 1 breaks")]
fn a_rank_that_panics_ends_the_job_with_its_panic() {
    World::threads(2, |world| {
        assert!(world.rank() == 0, "rank {} breaks", world.rank());
        let _ = world.all_gather(b"x");
    });
}
