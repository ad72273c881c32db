//! The validation and test parts, and the scores of a flow on them.

use super::deadline::Work;
use super::measure::{HeldOutRows, LogDensity, Score, score};
use super::most::at_most;
use super::{Deadline, Images};
use crate::cnf::config::Flow;
use crate::data::Estimate;
use crate::error::Result;

/// Target standard error of the final KL divergence in nats, and the maximum number of points. With these, a flow with a KL
/// divergence of 0.1 nats has an error of about 0.0025 nats.
const GAP_STDERR: f64 = 0.002;
const GAP_POINTS: usize = 1 << 15;

/// The validation and test parts.
pub(crate) enum HeldOut {
    /// Points. `test` is `None` for a known density, whose test points are sampled during scoring.
    Rows { validation: HeldOutRows, test: Option<HeldOutRows> },
    /// Image sets.
    Images(Box<Images>),
}

impl HeldOut {
    /// The validation score of a flow: over the first `most` points or images, or as many of them as there is
    /// time for. Both are in random order.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn validation(
        &self,
        density: &LogDensity,
        flow: &Flow,
        most: usize,
        by: &Deadline,
        mut progress: impl FnMut(f64),
    ) -> Result<Score> {
        match self {
            HeldOut::Rows { validation, .. } => {
                score(density, flow, (validation, most), flow.base.dim, by, progress)
            }
            HeldOut::Images(images) => {
                Ok(Score { nll: images.watch(flow, most, by, &mut progress)?, ..Score::default() })
            }
        }
    }

    /// The test score of a flow, over as many points as there is time for. For a known density, `fresh`
    /// samples the points of each part, until the KL divergence is precise enough.
    ///
    /// # Errors
    /// As [`HeldOut::validation`].
    pub fn test(
        &self,
        fresh: impl Fn(u32) -> Option<HeldOutRows>,
        density: &LogDensity,
        flow: &Flow,
        by: &Deadline,
        mut progress: impl FnMut(f64),
    ) -> Result<Score> {
        progress(0.0);
        match self {
            HeldOut::Images(images) => {
                Ok(Score { nll: images.test(flow, by, &mut progress)?, ..Score::default() })
            }
            HeldOut::Rows { test: Some(rows), .. } => {
                score(density, flow, (rows, usize::MAX), flow.base.dim, by, progress)
            }
            HeldOut::Rows { test: None, .. } => {
                let (mut all, mut units) = (None, 0.0);
                let next = |part: u32| -> Result<Option<Estimate>> {
                    if part > 0 && !by.fits(Work::Score, units) {
                        return Ok(None);
                    }
                    let rows = fresh(part).expect("invariant: only a known density has no test rows");
                    let found = score(density, flow, (&rows, usize::MAX), flow.base.dim, &by.open(), |_| ())?;
                    units = (rows.points.len() / flow.base.dim) as f64;
                    let so_far = all.map_or(found, |all: Score| all.merge(found));
                    all = Some(so_far);
                    let stderr = so_far.gap.and_then(|gap| gap.stderr).unwrap_or(f64::INFINITY);
                    progress((GAP_STDERR / stderr).powi(2).min(1.0));
                    Ok(found.gap)
                };
                Estimate::until(GAP_STDERR, at_most(GAP_POINTS) as u64, next)?;
                Ok(all.expect("invariant: the first part is always drawn"))
            }
        }
    }

    /// A warning if a score leaves rows out. `is_test` tells which part it is of.
    pub fn lost(&self, score: &Score, is_test: bool) -> Option<String> {
        let lost = score.lost?;
        let (part, rows) = match self {
            HeldOut::Rows { test, .. } if is_test => ("test", test.as_ref()),
            HeldOut::Rows { validation, .. } => ("validation", Some(validation)),
            HeldOut::Images(_) => return None,
        };
        let place = rows.and_then(|rows| rows.places.get(lost.first)).cloned();
        let place = place.unwrap_or_else(|| format!("point {}", lost.first + 1));
        let others = match lost.count - 1 {
            0 => String::new(),
            1 => " and another row".to_owned(),
            n => format!(" and {n} other rows"),
        };
        Some(format!(
            "warning: the {part} score leaves out {place}{others}: the solve from there ended early; a lower `lr` gives a flow that is easier to solve"
        ))
    }

    /// The kind of work of a validation check, the number of rows of a call, and of the validation part.
    pub fn checks(&self, density: &LogDensity, dim: usize) -> (Work, usize, usize) {
        match self {
            HeldOut::Rows { validation, .. } => {
                (Work::Score, density.rows_per_call(), validation.points.len() / dim)
            }
            HeldOut::Images(images) => (Work::ImageScore, images.rows_per_call(), images.watched()),
        }
    }

    /// The images, if the data are image sets.
    pub fn images(&self) -> Option<&Images> {
        match self {
            HeldOut::Images(images) => Some(images),
            HeldOut::Rows { .. } => None,
        }
    }
}
