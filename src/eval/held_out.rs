//! What training never sees, and what it says of a flow: the validation part, and the test part.

use super::measure::{LogDensity, Rows, Score, score};
use super::{Deadline, Images};
use crate::cnf::config::Flow;
use crate::data::Estimate;
use crate::error::Result;
use std::time::Instant;

/// Standard error of the gap at the end, in nats, and the most points that it is measured by: a flow whose gap is 0.1 nats
/// needs about 50,000.
const GAP_STDERR: f64 = 0.002;
const GAP_POINTS: u64 = 1 << 16;

/// What training never sees.
pub(crate) enum HeldOut {
    /// Points, of which those of a known density's test are drawn when they are measured.
    Rows { validation: Rows, test: Option<Rows> },
    /// Images, and the others beside them.
    Images(Box<Images>),
}

impl HeldOut {
    /// What the validation part says of a flow, by as many of its points as there is time for.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn validation(
        &self,
        density: &LogDensity,
        flow: &Flow,
        by: Deadline,
        told: impl FnMut(f64),
    ) -> Result<Score> {
        match self {
            HeldOut::Rows { validation, .. } => score(density, flow, validation, flow.base.dim, by, told),
            HeldOut::Images(images) => Ok(Score { nll: images.watch(flow)?, gap: None }),
        }
    }

    /// What the test part says of a flow, by as many of its points as there is time for. Points of a known density are
    /// drawn part by part, by `fresh`, until the gap is known well enough.
    ///
    /// # Errors
    /// As [`HeldOut::validation`].
    pub fn test(
        &self,
        fresh: impl Fn(u32) -> Option<Rows>,
        density: &LogDensity,
        flow: &Flow,
        by: Deadline,
        mut told: impl FnMut(f64),
    ) -> Result<Score> {
        told(0.0);
        match self {
            HeldOut::Images(images) => Ok(Score { nll: images.test(flow, by, &mut told)?, gap: None }),
            HeldOut::Rows { test: Some(rows), .. } => score(density, flow, rows, flow.base.dim, by, told),
            HeldOut::Rows { test: None, .. } => {
                let (begun, mut all) = (Instant::now(), None);
                let next = |part: u32| -> Result<Option<Estimate>> {
                    let a_part_s = begun.elapsed().as_secs_f64() / f64::from(part.max(1));
                    if part > 0 && !by.fits(a_part_s) {
                        return Ok(None);
                    }
                    let rows = fresh(part).expect("invariant: only a known density has no test rows");
                    let found = score(density, flow, &rows, flow.base.dim, Deadline(None), |_| ())?;
                    let so_far = all.map_or(found, |all: Score| all.merge(found));
                    all = Some(so_far);
                    let stderr = so_far.gap.and_then(|gap| gap.stderr).unwrap_or(f64::INFINITY);
                    told((GAP_STDERR / stderr).powi(2).min(1.0));
                    Ok(found.gap)
                };
                Estimate::until(GAP_STDERR, GAP_POINTS, next)?;
                Ok(all.expect("invariant: the first part is always drawn"))
            }
        }
    }

    /// The images, where they are some.
    pub fn images(&self) -> Option<&Images> {
        match self {
            HeldOut::Images(images) => Some(images),
            HeldOut::Rows { .. } => None,
        }
    }
}
