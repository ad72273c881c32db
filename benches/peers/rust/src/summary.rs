//! A summary of the measurements: time to equal error against the fastest other crate, and the cost of a step against a
//! hand-written loop.
//!
//! Equal tolerance is not equal error, so times are compared at equal error, on each method's curve of time against error,
//! interpolated log-log between two tolerances. The last crossing counts, beyond which every tighter tolerance has a smaller
//! error, so a lucky run at one tolerance does not.

use crate::record::Record;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of the hand-written loop among the solvers.
const HAND: &str = "hand";
const OURS: &str = "flowline";

/// Tolerance, error and time of a method, loosest tolerance first.
type Curve = Vec<[f64; 2]>;

/// A method that reaches an error, and its time.
struct Reached<'a> {
    ms: f64,
    peer: &'a str,
    method: &'a str,
}

/// All tables, one per problem.
pub fn of(records: &[Record]) -> String {
    let mut by_problem: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        by_problem.entry(record.title()).or_default().push(record);
    }
    let mut out = String::new();
    for (title, records) in &by_problem {
        equal_error(title, records, &mut out);
        per_step(title, records, &mut out);
    }
    out
}

fn equal_error(title: &str, records: &[&Record], out: &mut String) {
    let mut curves: BTreeMap<(&str, &str), Curve> = BTreeMap::new();
    for record in records.iter().filter(|r| r.timed.peer != HAND && r.timed.error > 0.0) {
        let key = (record.timed.peer, record.timed.method.as_str());
        curves.entry(key).or_default().push([record.timed.error, record.timed.ms]);
    }
    let fastest = |ours: bool, error: f64| {
        let reached = curves.iter().filter(|((peer, _), _)| (*peer == OURS) == ours);
        let reached = reached.filter_map(|((peer, method), curve)| {
            time_to(curve, error).map(|ms| Reached { ms, peer, method })
        });
        reached.min_by(|a, b| a.ms.total_cmp(&b.ms))
    };
    let mut rows = String::new();
    let mut logs = Vec::new();
    for exponent in (-24..=0).rev() {
        let error = 10.0_f64.powf(f64::from(exponent) / 2.0);
        if let (Some(ours), Some(theirs)) = (fastest(true, error), fastest(false, error)) {
            let ratio = theirs.ms / ours.ms;
            logs.push(ratio.ln());
            let (peer, method) = (theirs.peer, theirs.method);
            let (ms, theirs_ms, ours) = (ours.ms, theirs.ms, ours.method);
            let _ = writeln!(
                rows,
                "  {error:8.1e}  {ms:10.5} ms {ours:9}  {theirs_ms:10.5} ms {peer} {method:9}  {ratio:5.2} x"
            );
        }
    }
    if !logs.is_empty() {
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min).exp();
        let _ = writeln!(
            out,
            "{title}: time to equal error {mean:.2} x better on average, {least:.2} x at the least\n{rows}"
        );
    }
}

/// The time from which a curve stays below the error; `None` if it never does.
fn time_to(curve: &Curve, error: f64) -> Option<f64> {
    let above = curve.iter().rposition(|[e, _]| *e > error)?;
    let ([e0, ms0], [e1, ms1]) = (curve[above], *curve.get(above + 1)?);
    let part = (error / e0).ln() / (e1 / e0).ln();
    Some(ms0 * (ms1 / ms0).powf(part))
}

/// The time of a step relative to a step of the hand-written loop, which uses the same method.
fn per_step(title: &str, records: &[&Record], out: &mut String) {
    let ns = |r: &Record| r.timed.ms * 1e6 / r.timed.num_steps as f64;
    let of = |peer: &str| {
        records.iter().filter(|r| r.timed.peer == peer && r.timed.method == "tsit5").collect::<Vec<_>>()
    };
    let (ours, hand) = (of(OURS), of(HAND));
    let mut ratios: Vec<[f64; 3]> = ours
        .iter()
        .filter_map(|r| {
            let hand = hand.iter().find(|h| h.timed.tol == r.timed.tol)?;
            Some([ns(r) / ns(hand), ns(r), ns(hand)])
        })
        .collect();
    ratios.sort_by(|a, b| a[0].total_cmp(&b[0]));
    if let Some([ratio, ours, hand]) = ratios.get(ratios.len() / 2) {
        let _ = writeln!(
            out,
            "{title}: a step of tsit5 takes {ours:.1} ns, {ratio:.2} x a hand-written loop's {hand:.1} ns\n"
        );
    }
}
