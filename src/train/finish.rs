//! The end of a run: the best weights, the mass, the set of pictures, the test part, the report.

use super::best::Measured;
use super::evaluate::{DRAW_TOLERANCE, LogDensity, Mass, OUTER_MASS, Sampler, Score, crop, over_domain};
use super::images::bits_of_nats;
use super::model::Flow;
use super::pictures::{self, CORNER_POINTS, SAMPLES};
use super::session::{Session, cells_per_pixel};
use super::{Data, ImageFrame, Learned, Report, Stage};
use crate::data::{Estimate, Standard};
use crate::error::Result;
use crate::tensor::Tensor;

/// Told apart from the keys of updates, which are folds of small numbers.
pub(super) const SAMPLE_STREAM: u32 = u32::MAX;

/// Measures and draws what was learned.
pub(super) fn finish(mut session: Session) -> Result<Learned> {
    let validation = if let Some(score) = session.last_score {
        score
    } else {
        session.stage(Stage::Measuring)?;
        session.measure()?
    };
    let validation = take_best(&mut session, validation)?;
    if session.header.images.is_some() {
        return images(session, validation);
    }
    let mass = if let Some(image) = session.header.image.clone() {
        Some(plane(&mut session, &image)?)
    } else {
        space(&mut session)?;
        None
    };
    if let Some(folder) = &session.folder {
        let (header, mean_weight) = (&session.header, session.density.data.mean_weight());
        let entropy = header.entropy_nats();
        pictures::loss_curve(folder, &header.recipe, entropy, mean_weight, header.told_nats())?;
    }
    let report = report(&mut session, validation, mass.as_ref())?;
    Ok(Learned::new(session.state, session.header, Some(report), None))
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
    (session.density.on_note)(&format!("the weights after update {update} are the best ({nll} nats)"));
    Ok(Score { nll, ..last })
}

/// The measures and pictures of a set of images.
fn images(mut session: Session, validation: Score) -> Result<Learned> {
    session.stage(Stage::Measuring)?;
    let ema = session.state.ema.clone();
    let tolerances = session.images().map(|images| images.tolerances(&ema));
    session.tolerances = tolerances.expect("invariant: a run on images has images")?;
    session.stage(Stage::Drawing)?;
    if let Some(gallery) = session.gallery() {
        let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
        gallery.draw(&ema, &key, session.update)?;
        gallery.bits(super::metrics::read(&gallery.folder.file(super::METRICS_FILE))?.into_iter())?;
        pictures::loss_curve(gallery.folder, &session.header.recipe, None, 1.0, 0.0)?;
        // The program of the samples, and that of their ways.
        session.compiles += 2;
    }
    session.save()?;
    let report = report(&mut session, validation, None)?;
    let pixels = session.images().map(|images| images.transform.clone());
    Ok(Learned::new(session.state, session.header, Some(report), pixels))
}

/// The picture of points that are none of the plane.
fn space(session: &mut Session) -> Result<()> {
    session.stage(Stage::Drawing)?;
    let (Some(folder), Data::Points(points, _)) = (&session.folder, &session.density.data) else {
        return Ok(());
    };
    let (flow, standard) = (&session.state.ema, session.header.standard());
    // The program of the samples, or that of the density on a line.
    session.compiles += 1;
    if points.dim() == 1 {
        return pictures::line(folder, points, over_line(flow, &standard, pictures::on_line(points))?);
    }
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let mut samples = Vec::with_capacity(CORNER_POINTS * points.dim());
    let mut parts = Sampler::new().draw(flow, CORNER_POINTS, &key);
    parts.try_for_each(|part| part.map(|part| samples.extend(standard.to_units(&part))))?;
    pictures::corner(folder, points, &samples)
}

/// Places on a line, in units, each with the density there.
pub(super) fn over_line(flow: &Flow, standard: &Standard, places: Vec<f64>) -> Result<Vec<[f64; 2]>> {
    let there: Vec<f32> = standard.to_standard(&places).into_iter().map(|x| x as f32).collect();
    let density = LogDensity::for_points(places.len(), DRAW_TOLERANCE, DRAW_TOLERANCE);
    let found = density.eval_rows(flow, &there, 1)?;
    let told = |(x, log_prob): (f64, f32)| [x, (f64::from(log_prob) + standard.log_jacobian()).exp()];
    Ok(places.into_iter().zip(found).map(told).collect())
}

/// The mass over the plane, and its pictures.
fn plane(session: &mut Session, image: &ImageFrame) -> Result<Mass> {
    session.stage(Stage::Evaluating)?;
    let ema = session.state.ema.clone();
    let (cells, density, mass) = over_domain(&session.draw, &ema, image, cells_per_pixel(image))?;
    tell_missing(session, &mass);
    session.stage(Stage::Drawing)?;
    let learned = crop(image, &cells, &density, mass.margin);
    session.draw_map(&learned)?;
    if let (Some(folder), Some(artist)) = (&session.folder, &session.artist) {
        let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
        artist.comparison(folder, &learned)?;
        let mut points: Vec<[f64; 2]> = Vec::with_capacity(SAMPLES);
        let mut parts = Sampler::new().draw(&ema, SAMPLES, &key);
        parts.try_for_each(|part| part.map(|part| points.extend(part.as_chunks::<2>().0)))?;
        for p in &mut points {
            *p = image.to_pixels(*p);
        }
        artist.samples(folder, &points)?;
        artist.flow(folder, &ema, &key)?;
        // The program of the samples, and that of the flow.
        session.compiles += 2;
    }
    Ok(mass)
}

fn tell_missing(session: &mut Session, mass: &Mass) {
    if mass.outer >= OUTER_MASS {
        let what = if session.header.points.is_some() { "window" } else { "image" };
        let text = format!(
            "warning: the density reaches far beyond the {what}: {:.1e} of it still lies in the outermost band of 4 times the {what}'s sides, where {:.4} was found",
            mass.outer, mass.total
        );
        (session.density.on_note)(&text);
    }
}

/// Measures the test part, after everything that could depend on it, and tells the run.
fn report(session: &mut Session, validation: Score, mass: Option<&Mass>) -> Result<Report> {
    session.stage(Stage::Measuring)?;
    let test = session.test()?;
    let (header, recipe) = (&session.header, &session.header.recipe);
    let entropy_nats = header.entropy_nats();
    // No weights were chosen for a known density, and its gap is best known by the points of the test.
    let nll = if test.gap.is_some() { test.best_nll(entropy_nats) } else { validation.nll };
    let bits = |nll: Estimate| header.images.as_ref().map(|_| nll.times(bits_of_nats(1.0, header.dim())));
    let (bits_of_validation, bits_of_test) = (bits(validation.nll), bits(test.nll));
    let counters = session.counters();
    Ok(Report {
        updates: session.update,
        weights: super::num_weights(&session.state.model),
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
        tolerances: session.tolerances.clone(),
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
        files: session.folder.as_ref().map(pictures::files).unwrap_or_default(),
    })
}
