//! The end of a run: the best weights, the test part, the mass, the set of pictures, the report.
//!
//! The test part is measured once, when the weights are final. Under a time limit each part may take a share of what is left,
//! and does as much as fits: points that are measured, cells of the plane, samples in the pictures. The rate is that of the
//! part itself, so that it fits on a loaded machine too.

use super::best::Measured;
use super::session::Session;
use super::{Activity, ImageFrame, Objective, TrainConfig, TrainReport, TrainedFlow, TrainingData};
use crate::data::Estimate;
use crate::error::Result;
use crate::eval::pictures::{self, CORNER_POINTS, SAMPLES};
use crate::eval::{HeldOut, Mass, OUTER_MASS, OnPlane, Sampler, Score, bits_of_nats};
use crate::io::run::metrics::{self, Row};
use crate::io::run::{METRICS_FILE, RunFolder};
use crate::plot;
use crate::tensor::Tensor;

/// Told apart from the keys of updates, which are folds of small numbers.
pub(super) const SAMPLE_STREAM: u32 = u32::MAX;
/// Shares of the time left that may go, one after the other, to measuring, to the plane, to samples.
const MEASURES: f64 = 0.3;
const PLANE: f64 = 0.5;
const DRAWS: f64 = 0.4;

/// Measures and draws what was learned.
pub(super) fn finish(mut session: Session) -> Result<TrainedFlow> {
    let validation = if let Some(score) = session.last_score {
        score
    } else {
        session.stage(Activity::Measuring)?;
        let by = session.clock.deadline().share(MEASURES);
        let score = session.measure(by)?;
        let nll = score.best_nll(session.header.frames.entropy_nats());
        session.tallies.measured(session.last_phase(), nll.mean, nll.stderr);
        score
    };
    let validation = take_best(&mut session, validation)?;
    session.stage(Activity::Testing)?;
    let by =
        session.clock.deadline().share(if session.header.frames.images.is_some() { PLANE } else { MEASURES });
    let scores = (validation, session.test(by)?);
    if session.header.frames.images.is_some() {
        return images(session, scores);
    }
    let mass = if let Some(image) = session.header.frames.image.clone() {
        Some(plane(&mut session, &image)?)
    } else {
        space(&mut session)?;
        None
    };
    if let Some(folder) = &session.folder {
        let (header, mean_weight) = (&session.header, session.trainer.data.mean_weight());
        let entropy = header.frames.entropy_nats();
        loss_curve(folder, &header.recipe, entropy, mean_weight, header.frames.told_nats())?;
    }
    let report = report(&mut session, scores, mass.as_ref());
    Ok(TrainedFlow::new(session.state, session.header, Some(report), None))
}

/// Puts the best weights in place of the last where those are worse; what the validation part says of what is left.
fn take_best(session: &mut Session, last: Score) -> Result<Score> {
    let best = session.best.take().and_then(|best| Some((best.measured?, best.flow)));
    let Some((measured, flow)) = best.filter(|(measured, _)| measured.nll_nats < last.nll.mean) else {
        return Ok(last);
    };
    let Measured { nll_nats: mean, nll_stderr_nats: stderr, update } = measured;
    let nll = Estimate { mean, stderr, ..last.nll };
    session.state.ema = flow;
    session.save()?;
    (session.trainer.on_note)(&format!("the weights after update {update} are the best ({nll} nats)"));
    Ok(Score { nll, ..last })
}

/// The measures and pictures of a set of images.
fn images(mut session: Session, scores: (Score, Score)) -> Result<TrainedFlow> {
    session.stage(Activity::Measuring)?;
    let (ema, by) = (session.state.ema.clone(), session.clock.deadline());
    let HeldOut::Images(images) = &mut session.held_out else {
        unreachable!("invariant: a run on images has images");
    };
    session.tallies.counters.tolerances = images.tolerances(&ema, by.share(MEASURES))?;
    session.stage(Activity::Drawing)?;
    if let Some(gallery) = session.gallery() {
        let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
        gallery.draw(&ema, &key, session.update, by)?;
        gallery.bits(metrics::read(&gallery.folder.file(METRICS_FILE))?.into_iter())?;
        loss_curve(gallery.folder, &session.header.recipe, None, 1.0, 0.0)?;
        // The program of the samples, and that of their ways.
        session.compiles += 2;
    }
    session.save()?;
    let report = report(&mut session, scores, None);
    let pixels = session.held_out.images().map(|images| images.transform.clone());
    Ok(TrainedFlow::new(session.state, session.header, Some(report), pixels))
}

/// The picture of points that are none of the plane.
fn space(session: &mut Session) -> Result<()> {
    session.stage(Activity::Drawing)?;
    let (Some(folder), TrainingData::Points(points, _)) = (&session.folder, &session.trainer.data) else {
        return Ok(());
    };
    let (flow, standard) = (&session.state.ema, session.header.standard());
    // The program of the samples, or that of the density on a line.
    session.compiles += 1;
    if points.dim() == 1 {
        return pictures::line(
            folder,
            points,
            pictures::over_line(flow, &standard, pictures::on_line(points))?,
        );
    }
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let mut samples = Vec::with_capacity(CORNER_POINTS * points.dim());
    let mut parts = Sampler::new().draw(flow, CORNER_POINTS, &key);
    parts.try_for_each(|part| part.map(|part| samples.extend(standard.inverse_transform(&part))))?;
    pictures::corner(folder, points, &samples)
}

/// The mass over the plane, and its pictures.
fn plane(session: &mut Session, image: &ImageFrame) -> Result<Mass> {
    session.stage(Activity::Evaluating)?;
    let (ema, by) = (session.state.ema.clone(), session.clock.deadline());
    let (finest, on_stage) = (image.side() * image.cells_per_pixel(), &mut session.trainer.on_stage);
    let plane = OnPlane { density: &session.draw, flow: &ema, frame: image };
    let told = &mut |share| on_stage(Activity::Evaluating, share);
    let (learned, mass) = plane.over_domain(finest, by.share(PLANE), told)?;
    tell_missing(session, &mass);
    session.stage(Activity::Drawing)?;
    if session.folder.is_none() {
        return Ok(mass);
    }
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let on_stage = &mut session.trainer.on_stage;
    let (points, way) =
        pictures::draws(&ema, image, &key, by.share(DRAWS), |share| on_stage(Activity::Drawing, share))?;
    // The program of the samples, and that of the flow.
    session.compiles += 2;
    if learned.1.max(learned.2) < finest || points.len() < SAMPLES {
        let (_, rows, cols) = learned;
        let samples = points.len();
        let text = format!(
            "the time limit leaves room for {rows} x {cols} cells of the plane and {samples} samples"
        );
        (session.trainer.on_note)(&text);
    }
    let update = session.update;
    if let Some((artist, folder)) = session.artist() {
        let maps = || {
            artist.density(folder, &learned, update)?;
            artist.comparison(folder, &learned)
        };
        let scatters = || rayon::join(|| artist.samples(folder, &points), || artist.flow(folder, way));
        let (of_maps, (of_samples, of_flow)) = rayon::join(maps, scatters);
        of_maps.and(of_samples).and(of_flow)?;
    }
    Ok(mass)
}

fn tell_missing(session: &mut Session, mass: &Mass) {
    if mass.outer >= OUTER_MASS {
        let what = if session.header.frames.points.is_some() { "window" } else { "image" };
        let text = format!(
            "warning: the density reaches far beyond the {what}: {:.1e} of it still lies in the outermost band of 4 times the {what}'s sides, where {:.4} was found",
            mass.outer, mass.total
        );
        (session.trainer.on_note)(&text);
    }
}

/// The loss of every update and the NLL where it was measured. A weighted likelihood is divided by the mean weight, so
/// that it has the entropy as its floor like the others; `told_nats` is added where NLLs are told in units.
fn loss_curve(
    folder: &RunFolder,
    recipe: &TrainConfig,
    entropy_nats: Option<f64>,
    mean_weight: f64,
    told_nats: f64,
) -> Result<()> {
    let rows: Vec<Row> = metrics::read(&folder.file(METRICS_FILE))?;
    // A run that was over when its rows were lost has none to draw.
    if rows.is_empty() {
        return Ok(());
    }
    let of = |objective: Objective| -> Vec<[f64; 2]> {
        let (unit, shift) =
            if objective == Objective::MaximumLikelihood { (mean_weight, told_nats) } else { (1.0, 0.0) };
        let mine = rows.iter().filter(|row| row.phase == objective.name());
        mine.map(|row| [row.update as f64, row.loss / unit + shift]).collect()
    };
    let losses: Vec<_> = recipe.phases.iter().map(|p| (p.objective, of(p.objective))).collect();
    let phases: Vec<plot::LossPhase> = losses
        .iter()
        .filter(|(_, loss)| !loss.is_empty())
        .map(|(objective, loss)| plot::LossPhase { name: objective.title(), unit: objective.unit(), loss })
        .collect();
    let nll: Vec<[f64; 2]> =
        rows.iter().filter_map(|row| row.nll_nats.map(|nll| [row.update as f64, nll])).collect();
    let nll_stderr = rows.iter().rfind(|row| row.nll_nats.is_some()).and_then(|row| row.nll_stderr_nats);
    let curve = plot::LossCurve { phases: &phases, nll: &nll, nll_stderr, entropy: entropy_nats };
    Ok(plot::loss_curve(&curve)?.save(folder.file("loss.png"))?)
}

/// What is told of a run, by what the validation and the test part said.
fn report(session: &mut Session, (validation, test): (Score, Score), mass: Option<&Mass>) -> TrainReport {
    let counters = session.counters().clone();
    let (header, recipe) = (&session.header, &session.header.recipe);
    let entropy_nats = header.frames.entropy_nats();
    // No weights were chosen for a known density, and its gap is best known by the points of the test.
    let nll = if test.gap.is_some() { test.best_nll(entropy_nats) } else { validation.nll };
    let bits =
        |nll: Estimate| header.frames.images.as_ref().map(|_| nll.times(bits_of_nats(1.0, header.dim())));
    let (bits_of_validation, bits_of_test) = (bits(validation.nll), bits(test.nll));
    TrainReport {
        updates: session.update,
        weights: crate::nn::num_params(&session.state.model),
        loss: session.tallies.loss,
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
        mass: mass.map(|mass| mass.total),
        mass_outer: mass.map(|mass| mass.outer),
        first_update_s: counters.first_update_s,
        phases: session.tallies.phase_reports(),
        compiles: session.compiles + session.measure_traces() + session.draw.traces(),
        resumed_from_update: session.resumed_from,
        states_kept_max: counters.states_kept_max,
        plan_peak_bytes: counters.plan_peak_bytes,
        peak_rss_mb: counters.peak_rss_mb,
        seconds_to_gap: session.tallies.seconds_to_gap.clone(),
        threads: rayon::current_num_threads(),
        seed: recipe.seed,
        files: session.folder.as_ref().map(RunFolder::files).unwrap_or_default(),
    }
}
