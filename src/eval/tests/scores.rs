//! Scores of flows that do not move, means over draws of noise, work in chunks, and histograms of points.

use super::still::{log_mean_exp, log_normal, normal, still};
use crate::data::{Estimate, Points, Rounding};
use crate::eval::draws::Draws;
use crate::eval::measure::{Lost, score};
use crate::eval::{
    Deadline, HeldOut, HeldOutRows, ImageFrame, LogDensity, PointsFrame, Score, Stopwatch, TrainingData, Work,
};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::time_source::TimeSource;

fn close(a: f64, b: f64, relative: f64) -> bool {
    a == b || (a - b).abs() < relative * (1.0 + a.abs().max(b.abs()))
}

/// The mean and its standard error from sums of pairs: `sum (x_i - x_j)^2 / (2 n^2 (n - 1))` over all i, j.
fn is_estimate_of(found: Estimate, values: &[f64]) -> bool {
    let n = values.len() as f64;
    let pairs: f64 = values.iter().flat_map(|a| values.iter().map(move |b| (a - b) * (a - b))).sum();
    let stderr = (values.len() > 1).then(|| (pairs / (2.0 * n * n * (n - 1.0))).sqrt());
    let same = match (found.stderr, stderr) {
        (Some(a), Some(b)) => close(a, b, 1e-5),
        (a, b) => a.is_none() && b.is_none(),
    };
    same && found.count as usize == values.len() && close(found.mean, values.iter().sum::<f64>() / n, 1e-6)
}

/// Tables of 1 to 4 columns, 1 to 12 rows and 1 to 9 draws per row; log-densities of -1e5 to 1e5, of which none, half or
/// all are -inf.
#[test]
fn the_mean_over_draws_is_the_logarithm_of_the_mean_density() {
    let (mut draw, mut drawn) = (Draw(21), [0; 4]);
    for i in 0..num_cases(1_000) {
        let (dim, n, count, seed) = (1 + draw.below(4), 1 + draw.below(12), 1 + draw.below(9), draw.bits());
        let steps: Vec<f64> =
            (0..dim).map(|_| if draw.coin() { 0.0 } else { draw.decade(-3.0, 1.0) }).collect();
        let points: Vec<f64> = (0..dim * n).map(|_| draw.uniform(-10.0, 10.0)).collect();
        let (zeros, center, spread) = (draw.one(&[0, 1, 2]), draw.uniform(-1e5, 1e5), draw.decade(-2.0, 3.0));
        let log_prob = |row: &[f64]| {
            let mut hash = Draw(row.iter().fold(0, |hash: u64, x| hash.rotate_left(9) ^ x.to_bits()));
            if hash.below(2) < zeros { f64::NEG_INFINITY } else { center + spread * (hash.unit() - 0.5) }
        };
        let draws = |count| Draws { rounding: Rounding::with_steps(steps.clone()), count, seed };
        let of_rows = |rows: &[f64]| Ok(rows.chunks(dim).map(log_prob).collect());
        let first = draw.below(100);
        let found = draws(count).mean((&points, dim), first, of_rows).unwrap();
        for (row, &found) in found.iter().enumerate() {
            let of_draw = |k: usize| {
                let mut noisy = points[row * dim..(row + 1) * dim].to_vec();
                let number = (first + row) * count + k;
                Rounding::with_steps(steps.clone()).add_noise(&mut noisy, seed, number as u64);
                log_prob(&noisy)
            };
            let all: Vec<f64> = (0..count).map(of_draw).collect();
            let exact = log_mean_exp(&all);
            assert!(close(found, exact, 1e-12), "case {i}, row {row}: {found} {exact} {all:?}");
            drawn[if exact.is_infinite() { 0 } else { 1 + zeros }] += 1;
        }
        let cut = draw.below(n + 1);
        let rest = draws(count).mean((&points[cut * dim..], dim), first + cut, of_rows).unwrap();
        assert_eq!(rest, found[cut..], "case {i}");
    }
    assert!(drawn[..3].iter().all(|&count| count > 100), "{drawn:?}");
}

/// 0 to 400 held-out rows in 1 to 4 columns, of which any number is scored in chunks of 64 to 256, with and without the
/// true density, also when the time is over.
#[test]
fn a_score_is_the_mean_over_the_rows_that_there_is_time_for() {
    let (mut draw, mut drawn) = (Draw(22), [0; 4]);
    for i in 0..num_cases(40) {
        let (dim, n) = (1 + draw.below(4), draw.one(&[0, 1, 63, 64, 65, 200, 400]));
        let most = draw.one(&[1, 64, 100, usize::MAX]);
        let density = LogDensity::for_points(draw.one(&[1, 100, 256]), 1e-4, 1e-4);
        let points: Vec<f32> = (0..n * dim).map(|_| normal(&mut draw) as f32).collect();
        let log_q: Vec<f64> = points
            .chunks(dim)
            .map(|x| log_normal(&x.iter().map(|&x| x.into()).collect::<Vec<_>>()))
            .collect();
        let log_p = draw.coin().then(|| (0..n).map(|_| draw.uniform(-5.0, 0.0)).collect::<Vec<f64>>());
        let rows = HeldOutRows { points, log_p: log_p.clone(), places: Vec::new(), labels: Vec::new() };
        let is_late = draw.coin();
        let watch = Stopwatch::new(TimeSource::on(|now_s, _, units| now_s + units));
        let by = if is_late { watch.deadline(0.0, 0.0) } else { watch.no_deadline() };
        let found = score(&density, &still(dim), (&rows, most), dim, &by, |_| ()).unwrap();
        let scored = most.min(n).min(if is_late { density.rows_per_call() } else { n });
        if scored == 0 {
            assert_eq!(found, Score::default(), "case {i}");
            drawn[3] += 1;
            continue;
        }
        let nll: Vec<f64> = log_q[..scored].iter().map(|q| -q).collect();
        assert!(is_estimate_of(found.nll, &nll), "case {i}, {scored} of {n}: {found:?}");
        assert_eq!((found.gap.is_some(), found.lost), (log_p.is_some(), None));
        if let Some((gap, log_p)) = found.gap.zip(log_p) {
            let of_rows: Vec<f64> = log_p.iter().zip(&log_q).map(|(p, q)| p - q).take(scored).collect();
            assert!(is_estimate_of(gap, &of_rows), "case {i}, {scored} of {n}: {gap:?}");
            let entropy = draw.uniform(-3.0, 3.0);
            assert!(close(found.best_nll(Some(entropy)).mean, entropy + gap.mean, 1e-12));
        }
        assert_eq!(found.best_nll(None), found.nll);
        drawn[if scored < most.min(n) { 0 } else { 1 + usize::from(scored < n) }] += 1;
    }
    assert!(drawn.iter().all(|&count| count > 2), "{drawn:?}");
}

/// Parts of 1 to 900 rows with a true density: parts are drawn in turn until the standard error is 0.002, until there are
/// 32,768 rows, or until the time is over; the score is that of all rows together.
#[test]
fn a_known_density_is_scored_on_new_parts_until_the_gap_is_precise() {
    let (mut draw, mut drawn) = (Draw(23), [0; 3]);
    let (density, flow) = (LogDensity::for_points(64, 1e-4, 1e-4), still(1));
    for i in 0..num_cases(16) {
        let (n, spread, seed) = (draw.one(&[1, 30, 900_usize]), draw.one(&[1e-4, 0.02, 1.0]), draw.bits());
        let of_part = |part: u32| {
            let mut draw = Draw(seed ^ u64::from(part));
            let points: Vec<f32> = (0..n).map(|_| normal(&mut draw) as f32).collect();
            let gaps: Vec<f64> = (0..n).map(|_| spread * normal(&mut draw)).collect();
            let log_p = points.iter().zip(&gaps).map(|(&x, gap)| log_normal(&[x.into()]) + gap).collect();
            (HeldOutRows { points, log_p: Some(log_p), places: Vec::new(), labels: Vec::new() }, gaps)
        };
        let (parts, is_late) = (2 + draw.below(4), n < 900 || draw.coin());
        let asked = std::cell::RefCell::new(Vec::new());
        let fresh = |part: u32| {
            assert!(!is_late || part < 2 * parts as u32, "case {i}: part {part} of {parts}");
            asked.borrow_mut().push(part);
            Some(of_part(part).0)
        };
        let empty = HeldOutRows { points: Vec::new(), log_p: None, places: Vec::new(), labels: Vec::new() };
        let held_out = HeldOut::Rows { validation: empty, test: None };
        // A second for each row, so that the time is over after some parts.
        let watch = Stopwatch::new(TimeSource::on(|now_s, _, units| now_s + units));
        let at_s = parts as f64 * 1.3 * n.next_multiple_of(64) as f64;
        let by = if is_late { watch.deadline(at_s, 1e9) } else { watch.no_deadline() };
        let found = held_out.test(fresh, &density, &flow, &by, |_| ()).unwrap();
        let asked = asked.into_inner();
        assert!(asked.iter().copied().eq(0..asked.len() as u32), "case {i}: {asked:?}");
        let gaps: Vec<f64> = asked.iter().flat_map(|&part| of_part(part).1).collect();
        let gap = found.gap.unwrap();
        assert_eq!((gap.count, found.nll.count), (gaps.len() as u64, gaps.len() as u64));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((gap.mean - mean).abs() < 1e-5, "case {i}: {gap:?} {mean}");
        let before = gaps.len() - n;
        let is_precise = gap.stderr.is_some_and(|stderr| stderr <= 0.002);
        if is_precise {
            drawn[0] += 1;
        } else if gaps.len() >= 1 << 15 {
            assert!(before < 1 << 15, "case {i}: {gap:?}");
            drawn[1] += 1;
        } else {
            assert!(is_late, "case {i}: {gap:?}");
            drawn[2] += 1;
        }
        assert!(before < 1 << 15 && (is_late || gap.count > 1), "case {i}: {gap:?}");
    }
    assert!(drawn.iter().all(|&count| count > 0), "{drawn:?}");
}

#[test]
fn rows_that_a_score_leaves_out_are_counted_and_the_first_is_named() {
    let rows =
        |places: Vec<String>| HeldOutRows { points: vec![0.0; 6], log_p: None, places, labels: Vec::new() };
    let named = (0..6).map(|i| format!("a.csv line {}", i + 2)).collect();
    let held_out = HeldOut::Rows { validation: rows(named), test: Some(rows(Vec::new())) };
    let mut draw = Draw(24);
    for _ in 0..num_cases(50) {
        let (count, first, is_test) = (1 + draw.below(4), draw.below(6), draw.coin());
        let score = Score { lost: Some(Lost { count, first }), ..Score::default() };
        let text = held_out.lost(&score, is_test).unwrap();
        let place =
            if is_test { format!("point {}", first + 1) } else { format!("a.csv line {}", first + 2) };
        let others = ["", " and another row", " and 2 other rows", " and 3 other rows"][count - 1];
        let part = if is_test { "test" } else { "validation" };
        assert!(text.contains(&format!("the {part} score leaves out {place}{others}: ")), "{text}");
        assert_eq!(held_out.lost(&Score::default(), is_test), None);
        // The first row of merged scores is that of the first score that has one.
        let other = Score { lost: draw.coin().then_some(Lost { count: 7, first: 5 }), ..Score::default() };
        let all = score.merge(other).lost.unwrap();
        assert_eq!((all.first, all.count), (first, count + other.lost.map_or(0, |lost| lost.count)));
        assert_eq!(other.merge(score).lost.map(|lost| lost.count), Some(all.count));
    }
}

/// 0 to 60 units in chunks of 1 to 12, of which up to 20 are done in any case; deadlines before the start, at 0 and later;
/// work that fails at a drawn chunk.
#[test]
fn chunks_are_contiguous_and_end_at_the_deadline_or_the_first_error() {
    let (mut draw, mut drawn) = (Draw(25), [0; 4]);
    for i in 0..num_cases(3_000) {
        let (n, chunk, least) = (draw.below(60), 1 + draw.below(12), draw.below(20));
        let each_s = draw.one(&[0.0, 0.1, 1.0]);
        let watch = Stopwatch::new(TimeSource::on(move |now_s, _, units| now_s + each_s * units));
        let at_s = draw.one(&[-1.0, 0.0, 1.0, 10.0, f64::INFINITY]);
        let by = if at_s.is_infinite() { watch.no_deadline() } else { watch.deadline(at_s, at_s + 1e9) };
        let (fails, mut is_known) = (draw.one(&[0, 1, 3, 100]), draw.coin());
        if is_known {
            watch.run(Work::Grid, 1.0, || Ok::<_, ()>(())).unwrap();
        }
        let mut now_s = watch.time.now_s();
        let (mut parts, mut done) = (Vec::new(), Vec::new());
        let found = by.in_chunks(
            (Work::Grid, n, chunk, least),
            |share| done.push(share),
            |part| {
                parts.push(part);
                if parts.len() > fails { Err("failed") } else { Ok(()) }
            },
        );
        // The same, chunk by chunk.
        let (mut from, mut expected) = (0, Vec::new());
        let mut end = Ok(());
        while from < n {
            let takes_s = if is_known { each_s * chunk as f64 } else { 0.0 };
            if from >= least && at_s.is_finite() && takes_s > 0.8 * (at_s - now_s).max(0.0) {
                break;
            }
            expected.push(from..n.min(from + chunk));
            if expected.len() > fails {
                end = Err("failed");
                break;
            }
            from = n.min(from + chunk);
            (now_s, is_known) = (now_s + each_s * chunk as f64, true);
        }
        assert_eq!(parts, expected, "case {i}: {n} in {chunk}, {least} in any case, {each_s} s, {at_s} s");
        assert_eq!(found, end.map(|()| from), "case {i}");
        let shares = expected.iter().map(|part| part.end as f64 / n as f64);
        assert_eq!(done, shares.take(parts.len() - usize::from(end.is_err())).collect::<Vec<_>>());
        assert_eq!(watch.knows(Work::Grid), is_known);
        let fit = by.count(Work::Grid, n);
        assert!(fit == n || each_s * fit as f64 <= 0.8 * by.left_s() + 1e-9, "case {i}: {fit}");
        let left = by.share(0.25).left_s();
        assert!(left == by.left_s() || (left - 0.25 * by.left_s()).abs() < 1e-9, "case {i}: {left}");
        drawn[if end.is_err() { 0 } else { 1 + usize::from(from < n) + usize::from(from == 0 && n > 0) }] +=
            1;
    }
    assert!(drawn.iter().all(|&count| count > 20), "{drawn:?}");
}

/// Machines that become 1 to 8 times slower. Two of four kinds of work are first measured on the slow machine. After half a
/// second of any known kind, the expected time of all of them is right.
#[test]
fn a_measured_half_second_tells_the_speed_of_all_kinds_of_work() {
    let mut draw = Draw(26);
    for i in 0..num_cases(1_000) {
        let kinds = [Work::Score, Work::Grid, Work::Update, Work::Figures];
        let each_s = kinds.map(|_| draw.decade(-4.0, 0.0));
        let watch = Stopwatch::new(TimeSource::set());
        let mut least_s = [f64::INFINITY; 4];
        let mut run = |kind: usize, slow: f64, seconds: f64| {
            let work = || {
                watch.time.advance(seconds);
                Ok::<_, ()>(())
            };
            watch.run(kinds[kind], seconds / (each_s[kind] * slow), work).unwrap();
            least_s[kind] = least_s[kind].min(each_s[kind] * slow);
        };
        let known = [1, 2, 4];
        let slow = [1.0, draw.uniform(1.0, 8.0), draw.uniform(1.0, 8.0)];
        for (round, slow) in slow.into_iter().enumerate() {
            let before = if round == 0 { 0 } else { known[round - 1] };
            run(draw.below(before.max(1)), slow, draw.uniform(0.5, 3.0));
            (before..known[round]).for_each(|kind| run(kind, slow, draw.uniform(0.01, 3.0)));
            for (kind, each_s) in kinds.into_iter().zip(each_s).take(known[round]) {
                let (found, exact) = (watch.expected_s(kind, 7.0), 7.0 * each_s * slow);
                assert!((found / exact - 1.0).abs() < 1e-9, "case {i}, round {round}: {found} {exact}");
            }
        }
        // The machine of one kind becomes faster than ever.
        let (kind, fast) = (draw.below(4), draw.uniform(0.1, 1.0));
        run(kind, fast, draw.uniform(0.5, 3.0));
        let each_s = each_s[kind] * fast;
        assert!((watch.expected_s(kinds[kind], 7.0) / (7.0 * each_s) - 1.0).abs() < 1e-9, "case {i}");
        let units = draw.uniform(0.0, 50.0);
        let by = watch.deadline(watch.time.now_s() + draw.uniform(0.0, 60.0), watch.time.now_s() + 40.0);
        // In time at the present speed with a fifth to spare, and at the latest if it becomes 8 times slower than ever.
        let fits = each_s * units <= 0.8 * by.left_s() && 8.0 * least_s[kind] * units <= 40.0;
        assert_eq!(by.fits(kinds[kind], units), fits, "case {i}");
        assert!(!by.share(0.0).fits(kinds[kind], units) || units * each_s < 1e-9);
        assert!(Deadline::none().fits(kinds[kind], f64::MAX));
    }
}

/// Tables of 2 to 60 rows in units of 1e-100 to 1e100, on windows of 1 to 90 cells along the longer side.
#[test]
fn histograms_of_points_count_the_rows_of_each_cell() {
    let (mut draw, mut drawn) = (Draw(27), [0; 2]);
    for i in 0..num_cases(200) {
        let units = [0; 2].map(|_| draw.decade(-100.0, 100.0));
        let rows: Vec<[f64; 2]> =
            (0..2 + draw.below(60)).map(|_| units.map(|unit| unit * normal(&mut draw))).collect();
        let (n, points) = (rows.len(), Points::from_rows(rows.clone()).unwrap());
        let frame = ImageFrame::of_points(&points, &PointsFrame::of(&points, String::new()));
        let side = 1 + draw.below(90);
        let (values, rows_of, cols) = TrainingData::from(points).truth(&frame, side);
        let cells = |n: usize| (n as f64 * side as f64 / frame.side() as f64 - 1e-9).ceil().min(64.0);
        assert_eq!([rows_of as f64, cols as f64], [cells(frame.height), cells(frame.width)]);
        let window = frame.window();
        let size = [(window.x[1] - window.x[0]) / cols as f64, (window.y[1] - window.y[0]) / rows_of as f64];
        let place = |p: &[f64; 2]| [(p[0] - window.x[0]) / size[0], (p[1] - window.y[0]) / size[1]];
        if rows.iter().flat_map(place).any(|cells| (cells - cells.round()).abs() < 1e-9) {
            continue; // A row between two cells.
        }
        let mut counts = vec![0.0; rows_of * cols];
        for p in &rows {
            let hits = |k: usize, p: f64, from: f64, size: f64| {
                let ends = [from + size * k as f64, from + size * (k + 1) as f64];
                (ends[0].min(ends[1])..ends[0].max(ends[1])).contains(&p)
            };
            let cell = (0..rows_of * cols).find(|cell| {
                hits(cell % cols, p[0], window.x[0], size[0]) && hits(cell / cols, p[1], window.y[0], size[1])
            });
            counts[cell.unwrap_or_else(|| panic!("case {i}: {p:?} is outside of {window:?}"))] += 1.0;
        }
        let area = size[0].abs() * size[1].abs();
        for (found, count) in values.iter().zip(&counts) {
            assert!((found * area * n as f64 - count).abs() < 1e-9, "case {i}: {found} {count}");
        }
        drawn[usize::from(rows_of == 64)] += 1;
    }
    assert!(drawn.iter().all(|&count| count > 30), "{drawn:?}");
}

/// 0 to 500 points in 1 to 4 dimensions, of which all, some or none lie within the reach, in either order.
#[test]
fn densities_are_0_beyond_the_reach() {
    let (mut draw, mut drawn) = (Draw(28), [0; 2]);
    for i in 0..num_cases(12) {
        let (dim, n, reach) = (1 + draw.below(4), draw.one(&[0, 1, 65, 500]), draw.decade(-1.0, 1.0));
        let points: Vec<f32> = (0..n * dim).map(|_| normal(&mut draw) as f32).collect();
        let density = LogDensity::for_points(draw.one(&[1, 100, 2000]), 1e-4, 1e-4).within(reach);
        let density = if draw.coin() { density.by_distance() } else { density };
        let found = density.eval_rows(&still(dim), &points, dim).unwrap();
        assert_eq!(found.len(), n);
        for (x, found) in points.chunks(dim).zip(found) {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let is_near = x.iter().map(|x| x * x).sum::<f64>() <= reach * reach;
            let exact = if is_near { log_normal(&x) } else { f64::NEG_INFINITY };
            assert!(close(found.into(), exact, 1e-6), "case {i}: {x:?} {found} {exact}");
            drawn[usize::from(is_near)] += 1;
        }
    }
    assert!(drawn.iter().all(|&count| count > 100), "{drawn:?}");
}
