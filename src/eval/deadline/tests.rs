//! Deadlines on machines of constant and of changing speed.

use super::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

const KIND: [Work; 3] = [Work::Score, Work::Grid, Work::Figures];

fn done(_: Range<usize>) -> Result<(), ()> {
    Ok(())
}

#[test]
fn chunks_stop_where_the_next_would_come_too_late() {
    // A unit takes 0.003 s, and compiling 0.2 s.
    let machine = || {
        let mut machine = Machine::new(0, f64::INFINITY);
        (machine.slow, machine.compiling_s) = (1.0, 0.2);
        machine.takes(Work::Score, 0.003);
        Stopwatch::new(machine.time())
    };
    let (watch, mut progress) = (machine(), Vec::new());
    let by = watch.deadline(2.0, 4.0);
    let found = by.in_chunks((Work::Score, 1_000, 10, 10), |share| progress.push(share), done).unwrap();
    // 0.2 + 60 x 0.03 = 2 s, less 0.2 x the last chunk.
    assert!((580..=600).contains(&found) && found == 10 * progress.len(), "{found} {progress:?}");
    assert!(by.left_s() < 0.1 && watch.time.now_s() <= 2.0, "{by:?}");
    assert!(!by.fits(Work::Score, 100.0) && by.count(Work::Score, 1_000) < 20);
    // The first units are done in any case, and all without a deadline.
    assert_eq!(machine().deadline(0.0, 0.0).in_chunks((Work::Score, 100, 10, 10), |_| (), done), Ok(10));
    assert_eq!(machine().no_deadline().in_chunks((Work::Score, 95, 10, 0), |_| (), done), Ok(95));
    // A share of the time, and kinds of work that were not measured.
    let by = watch.deadline(watch.time.now_s() + 8.0, 1e9);
    assert!((by.share(0.25).left_s() - 2.0).abs() < 1e-9);
    assert_eq!(watch.expected_s(Work::Samples, 10.0), watch.expected_s(Work::Score, 10.0));
    assert!(watch.knows(Work::Score) && !watch.knows(Work::Samples));
}

#[test]
fn the_load_of_one_kind_of_work_is_that_of_the_others() {
    let watch = Stopwatch::new(TimeSource::set());
    let work = |work: Work, seconds: f64| {
        let run = || {
            watch.time.advance(seconds);
            Ok::<_, ()>(())
        };
        watch.run(work, 1.0, run).unwrap();
    };
    work(Work::Update, 1.0);
    work(Work::Score, 2.0);
    work(Work::Update, 5.0);
    assert_eq!(watch.expected_s(Work::Score, 3.0), 30.0);
    work(Work::Grid, 10.0);
    work(Work::Update, 1.0);
    assert_eq!([Work::Score, Work::Grid].map(|kind| watch.expected_s(kind, 1.0)), [2.0, 2.0]);
    // Short measurements are averaged.
    work(Work::Figures, 0.01);
    work(Work::Figures, 0.05);
    let load = watch.expected_s(Work::Score, 1.0) / 2.0;
    assert!((1.3..1.5).contains(&load), "{load}");
}

/// Deadlines after 3 to 60 s, three kinds of work of 1 ms to 0.1 s per piece, and speeds that change by factors of up
/// to 8 every 0.05 to 20 s: all admitted work ends by the latest time. At a constant speed it ends by the deadline and
/// takes most of the time. `FLOWLINE_MACHINES` sets the number of machines.
#[test]
fn admitted_work_ends_in_time_on_a_machine_whose_speed_changes() {
    let count = std::env::var("FLOWLINE_MACHINES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let (mut constant, mut short, mut late, mut used) = (0, 0, 0, 0.0);
    for seed in 0..count {
        let mut rng = SmallRng::seed_from_u64(seed);
        let change_s = if seed % 4 == 0 { f64::INFINITY } else { 0.05 * 400f64.powf(rng.random()) };
        let mut machine = Machine::new(seed, change_s);
        KIND.iter().for_each(|&kind| machine.takes(kind, 1e-3 * 100f64.powf(rng.random())));
        let watch = Stopwatch::new(machine.time());
        KIND.iter().for_each(|&kind| watch.run(kind, 1.0, || Ok::<_, ()>(())).unwrap());
        let at_s = watch.time.now_s() + rng.random_range(3.0..60.0);
        let (by, latest_s) = (watch.deadline(at_s, at_s + 2.0), at_s + 2.0);
        let mut refused = 0;
        while refused < 30 {
            let (kind, before_s) = (KIND[rng.random_range(0..3)], watch.time.now_s());
            let n = rng.random_range(1..40);
            match rng.random_range(0..3) {
                0 => drop(by.in_chunks((kind, n, 1, 0), |_| (), done)),
                1 => {
                    let whole = by.share(rng.random()).fits(kind, n as f64);
                    whole.then(|| watch.run(kind, n as f64, || done(0..n)).unwrap());
                }
                _ => {
                    let fit = by.share(0.5).count(kind, n) as f64;
                    by.fits(kind, fit).then(|| watch.run(kind, fit, || done(0..n)).unwrap());
                }
            }
            refused += usize::from(watch.time.now_s() == before_s);
        }
        let now_s = watch.time.now_s();
        assert!(now_s <= latest_s, "seed {seed}: {now_s} s, at most {latest_s} s");
        if change_s.is_infinite() {
            assert!(now_s <= at_s, "seed {seed}: {now_s} s at a constant speed, at most {at_s} s");
            (constant, used) = (constant + 1, used + now_s / at_s);
        }
        short += usize::from(change_s < 0.2);
        late += usize::from(now_s > at_s);
    }
    assert!(constant > 0 && short > 0, "{constant} {short}");
    assert!(used / f64::from(constant) > 0.8, "{used} of {constant}");
    eprintln!("{late} of {count} ended after the deadline, and all by the latest time");
}
