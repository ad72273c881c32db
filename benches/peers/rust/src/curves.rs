//! Times at equal error.
//!
//! Methods have different errors at the same tolerance, so their times are compared at the same error. The time is
//! read from each method's curve of time against error, interpolated between two tolerances in logarithms. If a
//! curve reaches an error several times, the tightest tolerance counts, so that one run with a small error by
//! chance does not.

use crate::record::Record;
use std::collections::BTreeMap;

pub const OURS: &str = "flowline";

/// Tolerance, error and time of a method, loosest tolerance first.
type Curve = Vec<[f64; 2]>;

/// A method that reaches an error, and its time.
pub struct Reached<'a> {
    pub ms: f64,
    pub peer: &'a str,
    pub method: &'a str,
}

/// The curves of all methods of a problem.
pub struct Curves<'a>(BTreeMap<(&'a str, &'a str), Curve>);

impl<'a> Curves<'a> {
    pub fn of(records: &[&'a Record]) -> Self {
        let mut curves: BTreeMap<_, Curve> = BTreeMap::new();
        for record in records.iter().filter(|r| r.timed.error > 0.0) {
            let key = (record.timed.peer, record.timed.method.as_str());
            curves.entry(key).or_default().push([record.timed.error, record.timed.ms]);
        }
        Curves(curves)
    }

    /// Extends the curves to an error of 1, at the time of the loosest tolerance.
    #[allow(dead_code, reason = "for stiff problems alone")]
    pub fn starting_at_one(mut self) -> Self {
        for curve in self.0.values_mut() {
            let [error, ms] = curve[0];
            curve.insert(0, [error.max(1.0), ms]);
        }
        self
    }

    /// The fastest method at this error, of the peers that the argument selects.
    pub fn fastest(&self, error: f64, among: impl Fn(&str) -> bool) -> Option<Reached<'a>> {
        let reached = self.0.iter().filter(|((peer, _), _)| among(peer));
        let reached = reached.filter_map(|((peer, method), curve)| {
            time_to(curve, error).map(|ms| Reached { ms, peer, method })
        });
        reached.min_by(|a, b| a.ms.total_cmp(&b.ms))
    }
}

/// The time from which a curve stays below the error; `None` if it never does.
fn time_to(curve: &Curve, error: f64) -> Option<f64> {
    let above = curve.iter().rposition(|[e, _]| *e > error)?;
    let ([e0, ms0], [e1, ms1]) = (curve[above], *curve.get(above + 1)?);
    let part = (error / e0).ln() / (e1 / e0).ln();
    Some(ms0 * (ms1 / ms0).powf(part))
}
