//! The end of a run: the best weights, the test part, the total probability, the report.
//!
//! The test part is scored once, with the final weights. Under a time limit each task may take a share of the
//! remaining time. It processes as many points, cells of the plane or samples as fit into its share, at the
//! speed that is measured during training and at the end, so it also ends in time on a loaded machine.

use super::best::{Criterion, Measured};
use super::session::Session;
use super::{
    Activity, Flow, ImageFrame, PointsFrame, TrainReport, TrainedFlow, Trainer, TrainingData, start,
};
#[cfg(feature = "plot")]
use super::{PlotsKind, figures};
use crate::data::{Estimate, grouped};
use crate::error::Result;
use crate::eval::{
    HeldOut, OUTER_MASS, OnPlane, QUADRATURE_ERROR, Sampler, Score, TotalProbability, bits_of_nats,
    side_at_most,
};
use crate::io::run::RunFolder;

/// Fractions of the remaining time: for scores of points and the table of tolerances; for the total
/// probability, or the test score of images.
const MEASURES: f64 = 0.3;
const PLANE: f64 = 0.5;

/// Scores and plots the trained flow.
pub(super) fn finish(mut session: Session) -> Result<TrainedFlow> {
    let validation = validation(&mut session)?;
    let nll = validation.best_nll(session.header.frames.entropy_nats());
    let update = session.judging.kept.map_or(session.update, |kept| kept.update);
    let by = Criterion::Validation { nll_nats: nll.mean, nll_stderr_nats: nll.stderr };
    session.judging.kept = Some(Measured { by, update, rows: None });
    if session.header.selects_by_estimate() {
        let estimator = session.judging.estimator.as_ref();
        session.judging.last_estimate = estimator.map(|of| of.estimate(&session.state.ema)).transpose()?;
    }
    session.stage(Activity::Testing)?;
    let share = if session.header.frames.images.is_some() { PLANE } else { MEASURES };
    let by = session.timing.budget.deadline(&session.timing.watch).share(share);
    let scores = (validation, session.test(&by)?);
    if session.header.frames.images.is_some() {
        return images(session, scores);
    }
    let mass = if let Some(image) = session.header.frames.image.clone() {
        Some(plane(&mut session, &image)?)
    } else {
        #[cfg(feature = "plot")]
        figures::space(&mut session)?;
        None
    };
    #[cfg(feature = "plot")]
    figures::loss(&session)?;
    #[cfg(feature = "plot")]
    figures::estimates(&session)?;
    let report = report(&mut session, scores, mass.as_ref());
    session.keep_scores(report.scores())?;
    Ok(TrainedFlow::new(session.state, session.header, Some(report), None))
}

/// Chooses the final weights; returns their validation score. Under a time limit, checks score few rows, so the
/// final weights are scored again on as many rows as there is time for. Checks of the estimate score no rows.
fn validation(session: &mut Session) -> Result<Score> {
    if start::is_fitted_again(session) {
        return before_fitting_again(session);
    }
    if session.timing.budget.is_limited() || session.header.selects_by_estimate() {
        let is_earlier = |measured: &Measured, session: &Session| measured.update < session.update;
        if let Some((measured, flow)) = best(session).filter(|(measured, _)| is_earlier(measured, session)) {
            restore(session, measured, flow)?;
            session.judging.last_score = None;
        }
        let known = session.judging.last_score.filter(|_| !session.timing.budget.is_limited());
        return known.map_or_else(|| measured(session), Ok);
    }
    let last = match session.judging.last_score {
        Some(score) => score,
        None => measured(session)?,
    };
    let Some((measured, flow)) = best(session).filter(|(measured, _)| measured.by.nats() < last.nll.mean)
    else {
        return Ok(last);
    };
    restore(session, measured, flow)?;
    Ok(Score { nll: estimate(&measured.by, last.nll.count), ..last })
}

/// The validation score of a run that has ended as a mixture, of the mixture that did not know the validation rows.
fn before_fitting_again(session: &mut Session) -> Result<Score> {
    let (chosen, flow) =
        best(session).expect("invariant: the best weights are those before the first update");
    let fitted = std::mem::replace(&mut session.state.ema, flow);
    let score = measured(session);
    session.state.ema = fitted;
    session.judging.kept = Some(chosen);
    score
}

/// The number by which weights were selected, over `count` rows.
fn estimate(by: &Criterion, count: u64) -> Estimate {
    let stderr = match *by {
        Criterion::Validation { nll_stderr_nats, .. } => nll_stderr_nats,
        Criterion::Estimate { kl_estimate_stderr_nats, .. } => Some(kl_estimate_stderr_nats),
    };
    Estimate { mean: by.nats(), stderr, count }
}

/// Scores the weights on the validation part.
fn measured(session: &mut Session) -> Result<Score> {
    session.stage(Activity::Measuring)?;
    let by = session.timing.budget.deadline(&session.timing.watch).share(MEASURES);
    let score = session.measure(usize::MAX, &by)?;
    let nll = score.best_nll(session.header.frames.entropy_nats());
    session.programs.tallies.measured(session.last_phase(), nll.mean, nll.stderr);
    Ok(score)
}

/// The best weights of the checks during training.
fn best(session: &mut Session) -> Option<(Measured, Flow)> {
    session.judging.best.take().and_then(|best| Some((best.measured?, best.flow)))
}

/// Replaces the last weights with the best ones.
fn restore(session: &mut Session, measured: Measured, flow: Flow) -> Result<()> {
    let Measured { update, by, .. } = measured;
    let nats = estimate(&by, 0);
    session.state.ema = start::fitted_again(session, &measured, flow);
    session.judging.kept = Some(measured);
    session.save()?;
    let [at, updates] = [update, session.update].map(grouped);
    let name = match by {
        Criterion::Validation { .. } => "validation NLL",
        Criterion::Estimate { .. } => "estimate of the KL divergence",
    };
    (session.trainer.on_note)(&format!(
        "restored the best weights: update {at} of {updates}, {name} {nats} nats"
    ));
    if start::is_fitted_again(session) {
        (session.trainer.on_note)(start::FITTED_AGAIN);
        if session.header.frames.points.as_ref().is_some_and(|frame| frame.classes().is_some()) {
            (session.trainer.on_note)(start::CLASSES_ALIKE);
        }
        return Ok(());
    }
    if matches!(by, Criterion::Estimate { .. }) {
        return Ok(());
    }
    if is_early(update, session.update) && session.header.config.patience.is_none() {
        let patience = session.header.checks().usual_patience();
        (session.trainer.on_note)(&format!(
            "note: the flow overfits after update {at}; `patience` {patience} ends such a run early"
        ));
    }
    Ok(())
}

/// Whether the best weights are from the first quarter of a run.
fn is_early(update: u64, updates: u64) -> bool {
    4 * update <= updates
}

/// Evaluates a run on a set of images.
fn images(mut session: Session, scores: (Score, Score)) -> Result<TrainedFlow> {
    session.stage(Activity::Measuring)?;
    let (ema, by) = (session.state.ema.clone(), session.timing.budget.deadline(&session.timing.watch));
    let HeldOut::Images(images) = &mut session.held_out else {
        unreachable!("invariant: a run on images has images");
    };
    session.programs.tallies.counters.tolerances = images.tolerances(&ema, &by.share(MEASURES))?;
    #[cfg(feature = "plot")]
    figures::images(&mut session, &ema, &by)?;
    let report = report(&mut session, scores, None);
    session.keep_scores(report.scores())?;
    let pixels = session.held_out.images().map(|images| images.transform.clone());
    Ok(TrainedFlow::new(session.state, session.header, Some(report), pixels))
}

/// Computes the total probability over the plane, and draws the figures.
fn plane(session: &mut Session, image: &ImageFrame) -> Result<TotalProbability> {
    session.stage(Activity::Evaluating)?;
    let (ema, by) = (session.state.ema.clone(), session.timing.budget.deadline(&session.timing.watch));
    // The total probability of a large image does not need the cells.
    let finest = if image.is_large() && !has_figures(session) { 1 } else { side_at_most(image.finest()) };
    let Trainer { on_stage, data, .. } = &mut session.trainer;
    let of = if let TrainingData::Image(image) = data { Some(&*image) } else { None };
    let (density, sampler) = (&session.judging.draw, Sampler::of_rows(session.judging.draw.rows_per_call()));
    let plane = OnPlane { density, sampler: &sampler, flow: &ema, frame: image, image: of };
    let progress = &mut |share| on_stage(Activity::Evaluating, share);
    #[cfg_attr(not(feature = "plot"), expect(unused_variables, reason = "only figures show the values"))]
    let (learned, mass) = plane.over_domain(finest, &by.share(PLANE), progress)?;
    tell_missing(session, &mass);
    #[cfg(feature = "plot")]
    figures::plane(session, image, (&ema, &learned, &sampler), finest)?;
    session.programs.compiles += sampler.traces();
    Ok(mass)
}

/// Whether a figure shows the density.
#[cfg(feature = "plot")]
fn has_figures(session: &Session) -> bool {
    session.folder.is_some() && session.plots != PlotsKind::None
}

#[cfg(not(feature = "plot"))]
fn has_figures(_: &Session) -> bool {
    false
}

fn tell_missing(session: &mut Session, mass: &TotalProbability) {
    if mass.points.is_none() && mass.error >= QUADRATURE_ERROR {
        let text = format!(
            "warning: the total probability is known only to ± {:.1e}: the density is too thin for the grid{}",
            mass.error,
            if session.timing.budget.is_limited() { ", and the time limit allows no finer one" } else { "" }
        );
        (session.trainer.on_note)(&text);
    }
    if mass.outer >= OUTER_MASS {
        let what = if session.header.frames.points.is_some() { "window" } else { "image" };
        let text = format!(
            "warning: the density reaches far beyond the {what}: the total probability is {:.4}, of which {:.1e} lies at the edge of the region of integration (its longer side is at most 4 times that of the {what})",
            mass.total, mass.outer
        );
        (session.trainer.on_note)(&text);
    }
}

/// The report of a run, with its validation and test scores.
fn report(
    session: &mut Session,
    (validation, test): (Score, Score),
    mass: Option<&TotalProbability>,
) -> TrainReport {
    let counters = session.counters().clone();
    let (header, config) = (&session.header, &session.header.config);
    let entropy_nats = header.frames.entropy_nats();
    // For a known density no weights were selected, and the test points give the most precise KL divergence.
    let nll = if test.gap.is_some() { test.best_nll(entropy_nats) } else { validation.nll };
    let bits =
        |nll: Estimate| header.frames.images.as_ref().map(|_| nll.times(bits_of_nats(1.0, header.dim())));
    let (bits_of_validation, bits_of_test) = (bits(validation.nll), bits(test.nll));
    let estimate = session.judging.last_estimate.filter(|_| header.selects_by_estimate());
    let is_toy = matches!(session.trainer.data, TrainingData::Toy(_));
    TrainReport {
        updates: session.update,
        weights: crate::nn::num_params(&session.state.model),
        loss: session.programs.tallies.loss,
        nll_nats: nll.mean,
        nll_stderr_nats: nll.stderr,
        entropy_nats,
        validation_nats: validation.nll.mean,
        validation_stderr_nats: validation.nll.stderr,
        validation_rows: validation.nll.count,
        test_nll_nats: test.nll.mean,
        test_nll_stderr_nats: test.nll.stderr,
        test_rows: test.nll.count,
        bits_per_dim: bits_of_validation.map(|bits| bits.mean),
        bits_per_dim_stderr: bits_of_validation.and_then(|bits| bits.stderr),
        bits_per_dim_draws: bits_of_validation.map(|_| 1),
        test_bits_per_dim: bits_of_test.map(|bits| bits.mean),
        test_bits_per_dim_stderr: bits_of_test.and_then(|bits| bits.stderr),
        tolerances: counters.tolerances,
        gap_nats: entropy_nats.map(|entropy| nll.mean - entropy),
        gap_stderr_nats: test.gap.and_then(|gap| gap.stderr),
        kl_estimate_nats: estimate.map(|estimate| estimate.nats),
        kl_estimate_stderr_nats: estimate.map(|estimate| estimate.stderr),
        start_normals: config.start_normals(),
        learned_from: is_toy.then(|| config.learned_from()),
        total_probability: mass.map(|mass| mass.total),
        total_probability_error: mass.map(|mass| mass.error),
        total_probability_points: mass.and_then(|mass| mass.points),
        outer_probability: mass.map(|mass| mass.outer),
        first_update_s: counters.first_update_s,
        phases: session.programs.tallies.phase_reports(),
        compiles: session.programs.compiles + session.measure_traces() + session.judging.draw.traces(),
        resumed_from_update: session.resumed_from,
        states_kept_max: counters.states_kept_max,
        plan_peak_bytes: counters.plan_peak_bytes,
        peak_rss_mb: counters.peak_rss_mb,
        seconds_to_gap: session.programs.tallies.seconds_to_gap.clone(),
        dequantized_columns: header.frames.points.as_ref().map(PointsFrame::dequantized).unwrap_or_default(),
        class_names: header.frames.points.as_ref().map_or_else(Vec::new, |points| points.class_names.clone()),
        label_column: header.frames.points.as_ref().and_then(|points| points.label_column.clone()),
        num_dropped: header.frames.points.as_ref().and_then(|points| points.num_dropped),
        threads: rayon::current_num_threads(),
        seed: config.seed,
        files: session.folder.as_ref().map(RunFolder::files).unwrap_or_default(),
    }
}
