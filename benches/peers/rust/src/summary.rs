//! A summary of the measurements: time to equal error against the fastest other crate, and the cost of a step against a
//! hand-written loop.

use crate::curves::{Curves, OURS};
use crate::record::Record;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of the hand-written loop among the solvers.
const HAND: &str = "hand";

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
    let curves = Curves::of(records);
    let mut rows = String::new();
    let mut logs = Vec::new();
    for exponent in (-24..=0).rev() {
        let error = 10.0_f64.powf(f64::from(exponent) / 2.0);
        let ours = curves.fastest(error, |peer| peer == OURS);
        let theirs = curves.fastest(error, |peer| peer != OURS && peer != HAND);
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
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
