//! Drawn programs of collective calls on 1 to 8 threads: what ranks receive, what they count, and how they fail.

use crate::ode::tests::draw::{Draw, num_cases};
use crate::time_source::TimeSource;
use crate::world::extra::Traffic;
use crate::world::sum::{Failure, Sum, local, subtrees};
use crate::world::{Parts, World, WorldError};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Gather,
    ToAll,
    Broadcast,
}

const CALLS: [Call; 3] = [Call::Gather, Call::ToAll, Call::Broadcast];

/// The bytes from one rank to another in a call: none, one, or up to 5,000, which all ranks can compute.
fn payload(seed: u64, call: usize, [from, to]: [usize; 2]) -> Vec<u8> {
    let mut draw = Draw(seed ^ (call as u64) << 32 ^ (from as u64) << 16 ^ to as u64);
    let length = draw.one(&[0, 1, 7, 5_000]);
    (0..length).map(|_| draw.bits() as u8).collect()
}

/// Makes call number `i`. Whether this rank received the bytes of the others.
fn make(world: &World, call: Call, seed: u64, i: usize) -> Result<bool, WorldError> {
    let (me, ranks) = (world.rank(), 0..world.size());
    let is_from = |all: Parts, to: usize| {
        all.len() == world.size() && (0..all.len()).all(|from| all.get(from) == payload(seed, i, [from, to]))
    };
    Ok(match call {
        Call::Gather => is_from(world.all_gather(&payload(seed, i, [me, 0]))?, 0),
        Call::ToAll => {
            let mine: Vec<Vec<u8>> = ranks.map(|to| payload(seed, i, [me, to])).collect();
            let mine = mine.iter().map(|bytes| &bytes[..]).collect();
            is_from(world.all_to_all_or(&mine, &mut |_| {})?, me)
        }
        Call::Broadcast => {
            let mut bytes = payload(seed, i, [me, 0]);
            world.broadcast(&mut bytes)?;
            bytes == payload(seed, i, [0, 0])
        }
    })
}

/// Bytes that a rank sends in call number `i`.
fn sent(call: Call, seed: u64, i: usize, me: usize, ranks: usize) -> usize {
    let to = |to: usize| payload(seed, i, [me, to]).len();
    match call {
        Call::Gather => to(0) * (ranks - 1),
        Call::ToAll => (0..ranks).filter(|&rank| rank != me).map(to).sum(),
        Call::Broadcast => {
            if me == 0 {
                to(0) * (ranks - 1)
            } else {
                0
            }
        }
    }
}

/// Up to 12 calls.
#[test]
fn any_program_of_calls_delivers_and_counts_the_bytes() {
    let (mut draw, mut drawn) = (Draw(1), [0; 9]);
    for case in 0..num_cases(60) {
        let (ranks, seed) = (1 + draw.below(8), draw.bits());
        let program: Vec<Call> = (0..draw.below(13)).map(|_| draw.one(&CALLS)).collect();
        let found = World::threads(ranks, |world| {
            let calls = program.iter().enumerate();
            let right = calls.map(|(i, &call)| make(world, call, seed, i)).collect::<Vec<_>>();
            (world.rank(), world.size(), world.is_root(), right, world.traffic())
        });
        for (me, (rank, size, is_root, right, traffic)) in found.into_iter().enumerate() {
            assert_eq!((rank, size, is_root), (me, ranks, me == 0));
            assert!(right.iter().all(|right| right == &Ok(true)), "case {case}, rank {me}: {right:?}");
            let bytes =
                program.iter().enumerate().map(|(i, &call)| sent(call, seed, i, me, ranks)).sum::<usize>();
            let exact = Traffic { calls: program.len() as u64, bytes: bytes as u64 };
            assert_eq!(traffic, exact, "case {case}, rank {me}: {program:?}");
        }
        drawn[ranks] += 1;
    }
    assert!(drawn[1..].iter().all(|&count| count > 0), "{drawn:?}");
}

/// A rank that returns, panics or makes another call at a drawn call: the others have right results before it, and no rank
/// waits forever. They receive an error as soon as they need bytes from that rank.
#[test]
fn a_rank_that_leaves_the_program_is_an_error_of_all_that_need_it() {
    let (mut draw, mut drawn) = (Draw(2), [[0; 3]; 3]);
    for case in 0..num_cases(90) {
        let (ranks, seed, kind) = (2 + draw.below(7), draw.bits(), draw.below(3));
        let program: Vec<Call> = (0..=draw.below(6)).map(|_| draw.one(&CALLS)).collect();
        let (bad, at) = (draw.below(ranks), draw.below(program.len()));
        let job = |world: &World| {
            let mut right = Vec::new();
            for (i, &call) in program.iter().enumerate() {
                let is_bad = world.rank() == bad && i == at;
                assert!(!(is_bad && kind == 1), "rank {bad} breaks");
                if is_bad && kind == 0 {
                    return right;
                }
                let other = CALLS[(CALLS.iter().position(|&c| c == call).unwrap() + 1) % 3];
                right.push(make(world, if is_bad { other } else { call }, seed, i));
                if right.last().is_some_and(Result::is_err) {
                    break;
                }
            }
            right
        };
        let text = format!("case {case}: {program:?}, rank {bad} of {ranks} at {at}, kind {kind}");
        let found = catch_unwind(AssertUnwindSafe(|| World::threads(ranks, job)));
        let found = match found {
            Ok(found) => found,
            Err(panic) => {
                let message = panic.downcast::<String>().unwrap();
                assert!(kind == 1 && *message == format!("rank {bad} breaks"), "{text}: {message}");
                drawn[kind][0] += 1;
                continue;
            }
        };
        assert!(kind != 1, "{text}");
        for right in &found {
            assert!(right.iter().take(at).all(|right| right == &Ok(true)), "{text}: {right:?}");
            assert!(right.len() <= program.len(), "{text}");
        }
        let needs = |rank: usize| {
            rank != bad && program[at..].iter().any(|&call| call != Call::Broadcast || bad == 0)
        };
        if kind == 0 {
            for (rank, right) in found.iter().enumerate().filter(|(rank, _)| needs(*rank)) {
                let first =
                    at + program[at..].iter().position(|&c| c != Call::Broadcast || bad == 0).unwrap();
                let ended = matches!(&right[right.len() - 1], Err(WorldError::Ended { .. }));
                assert!(ended && right.len() <= first + 1, "{text}, rank {rank}: {right:?}");
                drawn[kind][1] += 1;
            }
        } else {
            // The first rank that arrives determines the call; at least one rank is told of both.
            let errors: Vec<&WorldError> = found.iter().flatten().filter_map(|x| x.as_ref().err()).collect();
            let differs = errors.iter().any(|error| matches!(error, WorldError::OtherCall { .. }));
            assert!(differs, "{text}: {found:?}");
            drawn[kind][2] += 1;
        }
    }
    assert!(drawn[0][1] > 20 && drawn[1][0] > 20 && drawn[2][2] > 20, "{drawn:?}");
}

/// The sum of a part of a job by its definition: an interval is the sum of the first parts, as many as the largest power
/// of two below its length, plus the sum of the others.
fn by_definition(node: &[Sum]) -> Sum {
    if let [one] = node {
        return one.clone();
    }
    let mut power = 1;
    while 2 * power < node.len() {
        power *= 2;
    }
    let (a, b) = (by_definition(&node[..power]), by_definition(&node[power..]));
    Sum {
        few: a.few.iter().zip(&b.few).map(|(a, b)| a + b).collect(),
        many: a.many.iter().zip(&b.many).map(|(a, b)| a + b).collect(),
    }
}

fn bits(sum: &Sum) -> (Vec<u64>, Vec<u32>) {
    (sum.few.iter().map(|x| x.to_bits()).collect(), sum.many.iter().map(|x| x.to_bits()).collect())
}

/// 1 to 40 parts of 0 to 3 numbers in f64 and 0 to 8,200 in f32, with magnitudes of 1e-30 to 1e30, zeros of both signs and
/// infinities, on 1 to 8 ranks, of which none or some fail with 0 to 200 bytes.
#[test]
fn a_sum_has_the_bits_of_its_definition_on_any_number_of_ranks() {
    let (mut draw, mut drawn) = (Draw(3), [0; 4]);
    for case in 0..num_cases(60) {
        let parts = 1 + draw.below(40);
        let ranks = 1 + draw.below(parts.min(8));
        let (few, many) = (draw.below(4), draw.one(&[0, 1, 3, 100, 8_191, 8_192, 8_193, 8_200]));
        let number = |draw: &mut Draw| match draw.below(50) {
            0 => 0.0,
            1 => -0.0,
            2 if case % 5 == 0 => f64::INFINITY,
            _ => draw.decade(-30.0, 30.0) * draw.one(&[1.0, -1.0]),
        };
        let all: Vec<Sum> = (0..parts)
            .map(|_| Sum {
                few: (0..few).map(|_| number(&mut draw)).collect(),
                many: (0..many).map(|_| number(&mut draw) as f32).collect(),
            })
            .collect();
        let fails: Vec<Option<Vec<u8>>> = (0..ranks)
            .map(|_| (case % 3 == 0 && draw.coin()).then(|| vec![draw.bits() as u8; draw.one(&[0, 1, 200])]))
            .collect();
        let found = World::threads(ranks, |world| {
            let of = |node: Range<usize>| local(node, &|i| Ok::<_, ()>(all[i].clone())).unwrap();
            let mine: Vec<Sum> = subtrees(world, parts).into_iter().map(of).collect();
            let mine = fails[world.rank()].clone().map_or(Ok(mine), Err);
            (world.sum(parts, mine, &mut |_| {}).unwrap(), world.traffic().calls)
        });
        // Up to 32 KiB are gathered; longer arrays are gathered, sent in chunks, and gathered again.
        let calls = if many <= 8_192 || fails.iter().any(Option::is_some) { 1 } else { 3 };
        assert!(found.iter().all(|(_, made)| *made == calls), "case {case}, {many} on {ranks} ranks");
        let found: Vec<_> = found.into_iter().map(|(sum, _)| sum).collect();
        let text = format!("case {case}: {parts} parts of {few} and {many} on {ranks} ranks");
        if let Some(rank) = fails.iter().position(Option::is_some) {
            let exact = Err(Failure { rank, message: fails[rank].clone().unwrap() });
            assert!(found.iter().all(|found| found == &exact), "{text}");
            drawn[0] += 1;
            continue;
        }
        let exact = bits(&by_definition(&all));
        assert!(found.iter().all(|found| bits(found.as_ref().unwrap()) == exact), "{text}");
        drawn[1 + usize::from(many > 8_192)] += 1;
        drawn[3] += usize::from(ranks == 8);
    }
    assert!(drawn.iter().all(|&count| count > 2), "{drawn:?}");
}

/// Results of 1 to 8 ranks of which any fail; named values of up to 100 characters, which differ on some ranks in one
/// character or by one at the end.
#[test]
fn ranks_agree_on_the_first_error_and_the_first_difference() {
    let (mut draw, mut drawn) = (Draw(4), [0; 4]);
    for case in 0..num_cases(80) {
        let ranks = 1 + draw.below(8);
        let fails: Vec<bool> = (0..ranks).map(|_| draw.below(6) == 0).collect();
        let message = |rank: usize| "é".repeat(rank) + " is not there";
        let names: Vec<String> = (0..=draw.below(4)).map(|i| format!("value {i}")).collect();
        let letters = ['a', 'é', '\0', '漢', ' '];
        let base: Vec<Vec<char>> =
            names.iter().map(|_| (0..draw.below(100)).map(|_| draw.one(&letters)).collect()).collect();
        let (which, differ) = (draw.below(names.len()), [0; 8].map(|_| draw.below(5) == 0));
        let (at, is_longer) = (draw.below(100), draw.coin());
        let value = |rank: usize, i: usize| -> String {
            let mut text = base[i].clone();
            match at % text.len().max(1) {
                _ if i < which || !differ[rank] => {}
                at if at < text.len() && !is_longer => text[at] = 'b',
                _ => text.push('b'),
            }
            text.into_iter().collect()
        };
        let found = World::threads(ranks, |world| {
            let rank = world.rank();
            let mine = if fails[rank] { Err(WorldError::Mpi { reason: message(rank) }) } else { Ok(rank) };
            let values: Vec<(&str, String)> =
                names.iter().enumerate().map(|(i, name)| (&name[..], value(rank, i))).collect();
            (world.agree(mine), world.compare(&values))
        });
        let first = fails.iter().position(|&fails| fails);
        let other = (1..ranks).find(|&rank| differ[rank] != differ[0]);
        for (rank, (agreed, compared)) in found.into_iter().enumerate() {
            let text = format!("case {case}, rank {rank} of {ranks}: {agreed:?} {compared:?}");
            match (first, agreed) {
                (None, Ok(mine)) => assert_eq!(mine, rank, "{text}"),
                (Some(first), Err(WorldError::Mpi { reason })) => {
                    assert!(first == rank && reason == message(rank), "{text}");
                }
                (Some(first), Err(WorldError::Rank { rank: of, message: told, .. })) => {
                    assert!(of == first && rank != first && told.ends_with(&message(first)), "{text}");
                }
                _ => panic!("{text}"),
            }
            match (other, compared) {
                (None, Ok(())) => {}
                (Some(other), Err(WorldError::Differs { rank: of, what, theirs, ours, .. })) => {
                    assert!(of == other && what == names[which], "{text}");
                    let [with, without] = if differ[other] { [theirs, ours] } else { [ours, theirs] };
                    assert!(with.contains('b') && !without.contains('b'), "{text}");
                    assert!(with.chars().count() <= 66, "{text}");
                }
                _ => panic!("{text}"),
            }
        }
        drawn[usize::from(first.is_some())] += 1;
        drawn[2 + usize::from(other.is_some())] += 1;
    }
    assert!(drawn.iter().all(|&count| count > 10), "{drawn:?}");
}

/// 2 to 6 ranks, of which at least one makes no call and at least one waits 0 to 3 s of the time of the test.
#[test]
fn all_silent_ranks_are_named_after_the_deadline() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let mut draw = Draw(5);
    for case in 0..num_cases(12) {
        let ranks = 2 + draw.below(5);
        let (asks, silent) = (draw.below(ranks), draw.below(ranks - 1));
        let silent = if silent >= asks { silent + 1 } else { silent };
        let is_silent: Vec<bool> = (0..ranks).map(|r| r == silent || r != asks && draw.coin()).collect();
        let waiting = is_silent.iter().filter(|silent| !**silent).count();
        let deadline = Duration::from_millis(draw.below(3_000) as u64);
        let (time, gave_up) = (TimeSource::set(), AtomicUsize::new(0));
        let found = World::threads_by(&time, ranks, |world| {
            world.set_deadline(Some(deadline));
            if !is_silent[world.rank()] {
                let error = world.all_gather(&[1]).unwrap_err();
                gave_up.fetch_add(1, SeqCst);
                return Some((error, time.now_s()));
            }
            // The time stands still until all others wait, then goes on to the deadline. If they do not give up then, this
            // rank ends, which they report as another error.
            for _ in 0..1_000_000 {
                if gave_up.load(SeqCst) == waiting {
                    break;
                }
                let is_early = time.now_s() < deadline.as_secs_f64();
                if world.rank() == silent && time.num_waited() == waiting && is_early {
                    time.advance(0.25);
                }
                std::thread::yield_now();
            }
            None
        });
        for (rank, found) in found.into_iter().enumerate() {
            assert_eq!(found.is_none(), is_silent[rank], "case {case}, rank {rank}");
            if let Some((WorldError::Silent { ranks: named, seconds }, now_s)) = found {
                let mut names = (0..ranks).filter(|&r| is_silent[r]);
                if deadline.is_zero() {
                    // A rank that gives up at once may not have waited for those that call later.
                    assert!(named.iter().any(|(rank, _)| *rank == silent), "case {case}: {named:?}");
                } else {
                    assert!(
                        named.iter().all(|(rank, _)| names.next() == Some(*rank)),
                        "case {case}: {named:?}"
                    );
                    assert_eq!(names.next(), None, "case {case}: {named:?}");
                }
                assert!(seconds == deadline.as_secs() && now_s >= deadline.as_secs_f64(), "case {case}");
            } else {
                assert!(is_silent[rank], "case {case}, rank {rank}: {found:?}");
            }
        }
    }
}
