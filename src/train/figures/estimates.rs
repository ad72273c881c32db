//! `gap.png` and `loss_by_t.png`: the estimates of the KL divergence of a run, and its loss by time.

use super::LOSS;
use crate::data::{Estimate, grouped};
use crate::error::Result;
use crate::eval::Work;
use crate::io::run::metrics::{self, Row};
use crate::io::run::{METRICS_FILE, RunFolder};
use crate::plot::Axes;
use crate::train::PlotsKind;
use crate::train::session::Session;

/// Number of curves of the loss by time.
const CURVES: usize = 4;
/// The lower end of an error on a logarithmic axis, as a share of the value: the whole error may reach below 0.
const LOWEST: f64 = 0.2;

/// Draws the estimates of a run, if it has any.
pub(in crate::train) fn draw(session: &Session) -> Result<()> {
    let Some(folder) = session.folder.as_ref().filter(|_| session.plots == PlotsKind::All) else {
        return Ok(());
    };
    if session.judging.estimator.is_none() {
        return Ok(());
    }
    let (entropy, kept) =
        (session.header.frames.entropy_nats(), session.judging.kept.map(|kept| kept.update));
    let earlier = kept.filter(|&update| update < session.update && session.header.selects_by_estimate());
    session.timing.watch.run(Work::Figures, 2.0 * LOSS, || {
        let rows = metrics::read(&folder.file(METRICS_FILE))?;
        let estimates: Vec<(u64, [f64; 10])> =
            rows.iter().filter_map(|row| Some((row.update, row.kl_estimate?))).collect();
        gap(folder, &rows, &estimates, (entropy, earlier))?;
        loss_by_t(folder, &estimates)
    })
}

/// `[x, y, low, high]` of a value with its error, on a logarithmic axis.
fn with_error(update: u64, value: f64, error: f64) -> Option<[f64; 4]> {
    let is_shown = value > 0.0 && value.is_finite() && error.is_finite();
    is_shown.then(|| [update as f64, value, (value - error).max(LOWEST * value), value + error])
}

/// The estimates over updates with a band of one standard error, and the KL divergences of the validation points.
fn gap(
    folder: &RunFolder,
    rows: &[Row],
    estimates: &[(u64, [f64; 10])],
    (entropy, kept): (Option<f64>, Option<u64>),
) -> Result<()> {
    let found: Vec<[f64; 4]> = estimates
        .iter()
        .filter_map(|&(update, [nats, stderr, ..])| with_error(update, nats, stderr))
        .collect();
    let measured: Vec<[f64; 4]> = rows
        .iter()
        .filter_map(|row| with_error(row.update, row.nll_nats? - entropy?, row.nll_stderr_nats?))
        .collect();
    let Some(&[_, last, low, high]) = found.last() else { return Ok(()) };
    let title = Estimate { mean: last, stderr: Some((high - last).max(last - low)), count: 0 };
    let title = format!("Estimate of the KL divergence, without a solve: {title} nats");
    let mut axes = Axes::new("updates", "KL divergence (nats)").title(&title).log_y();
    axes = axes.band("", &found.iter().map(|&[x, _, low, high]| [x, low, high]).collect::<Vec<_>>(), 0);
    axes = axes.lines("estimate", &[found.iter().map(|&[x, y, ..]| [x, y]).collect()], 0);
    if !measured.is_empty() {
        axes = axes.error_bars("measured on the validation points", &measured, 1);
    }
    if let Some(update) = kept {
        axes = axes.vline(update as f64, "best");
    }
    Ok(axes.render()?.save(folder.target("gap.png")?)?)
}

/// The squared error of the velocity in eighths of t, after some updates of the run.
fn loss_by_t(folder: &RunFolder, estimates: &[(u64, [f64; 10])]) -> Result<()> {
    let mut axes = Axes::new("t", "mean squared error of the velocity")
        .title("Loss by time: noise at t = 0, data at t = 1")
        .log_y();
    let mut is_empty = true;
    for (color, &i) in shown(estimates.len()).iter().enumerate() {
        let (update, [_, _, loss_by_t @ ..]) = estimates[i];
        let width = 1.0 / loss_by_t.len() as f64;
        let step = |(part, &loss): (usize, &f64)| {
            (loss > 0.0 && loss.is_finite())
                .then_some([[part as f64 * width, loss], [(part as f64 + 1.0) * width, loss]])
        };
        let steps: Vec<[f64; 2]> = loss_by_t.iter().enumerate().filter_map(step).flatten().collect();
        if !steps.is_empty() {
            let noun = if update == 1 { "update" } else { "updates" };
            axes = axes.lines(&format!("{} {noun}", grouped(update)), &[steps], color);
            is_empty = false;
        }
    }
    if is_empty {
        return Ok(());
    }
    Ok(axes.render()?.save(folder.target("loss_by_t.png")?)?)
}

/// Up to four of n places, whose ratios are about equal; the last is n - 1.
fn shown(n: usize) -> Vec<usize> {
    let place = |k: usize| (n as f64).powf(k as f64 / (CURVES - 1) as f64).round() as usize;
    let mut places: Vec<usize> = (0..CURVES).filter_map(|k| place(k).checked_sub(1)).collect();
    places.dedup();
    places.retain(|&i| i < n);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_estimates_are_shown() {
        assert_eq!(
            [shown(50), shown(1), shown(2), shown(0)],
            [vec![0, 3, 13, 49], vec![0], vec![0, 1], vec![]]
        );
    }

    #[test]
    fn errors_stay_above_zero() {
        assert_eq!(with_error(3, 0.1, 0.02), Some([3.0, 0.1, 0.08, 0.12000000000000001]));
        assert_eq!(with_error(3, 0.1, 0.3).map(|bar| bar[2]), Some(0.1 * LOWEST));
        assert_eq!([with_error(3, -0.1, 0.3), with_error(3, f64::NAN, 0.3)], [None, None]);
    }
}
