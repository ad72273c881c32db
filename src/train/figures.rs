//! The figures at the end of a run, with the feature `plot`.

use super::best::Measured;
use super::session::Session;
use super::{Activity, Flow, ImageFrame, Objective, PlotsKind, TrainConfig, TrainingData};
use crate::data::grouped;
use crate::error::Result;
use crate::eval::figures::{self, CORNER_POINTS, SAMPLES};
use crate::eval::{Deadline, Inner, Sampler};
use crate::io::run::metrics::{self, Row};
use crate::io::run::{METRICS_FILE, RunFolder};
use crate::plot;
use crate::tensor::Tensor;

/// Folded into the key of a run for its samples. Updates fold in their number, which is smaller.
pub(super) const SAMPLE_STREAM: u32 = u32::MAX;
/// Fraction of the remaining time that sampling may take.
const DRAWS: f64 = 0.4;

/// Draws the figures of a set of images.
pub(super) fn images(session: &mut Session, ema: &Flow, by: Deadline) -> Result<()> {
    if session.plots == PlotsKind::None {
        return Ok(());
    }
    session.stage(Activity::Drawing)?;
    let Some(gallery) = session.gallery() else { return Ok(()) };
    if session.plots == PlotsKind::Density {
        return loss(session);
    }
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    gallery.draw(ema, &key, session.update, by)?;
    gallery.bits(metrics::read(&gallery.folder.file(METRICS_FILE))?.into_iter())?;
    loss(session)?;
    // One program for samples, and one for trajectories, which is counted even if there was no time for them.
    session.compiles += 2;
    Ok(())
}

/// Draws the figure of points with one coordinate or more than two.
pub(super) fn space(session: &mut Session) -> Result<()> {
    if session.plots == PlotsKind::None {
        return Ok(());
    }
    session.stage(Activity::Drawing)?;
    let (Some(folder), TrainingData::Points(points, _)) = (&session.folder, &session.trainer.data) else {
        return Ok(());
    };
    let (flow, standard) = (&session.state.ema, session.header.standard());
    // One program is compiled: for samples, or for the density of points with one coordinate.
    session.compiles += 1;
    if points.dim() == 1 {
        return figures::line(folder, points, figures::over_line(flow, &standard, figures::on_line(points))?);
    }
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let mut samples = Vec::with_capacity(CORNER_POINTS * points.dim());
    let mut parts = Sampler::new().draw(flow, CORNER_POINTS, &key);
    parts.try_for_each(|part| part.map(|part| samples.extend(standard.inverse_transform(&part))))?;
    figures::corner(folder, points, &samples)
}

/// Draws the figures of a density over the plane; `learned` are its values.
pub(super) fn plane(
    session: &mut Session,
    image: &ImageFrame,
    (ema, learned): (&Flow, &Inner),
    finest: usize,
) -> Result<()> {
    if session.folder.is_none() || session.plots == PlotsKind::None {
        return Ok(());
    }
    session.stage(Activity::Drawing)?;
    let update = (session.kept.map_or(session.update, |kept| kept.update), session.update);
    if session.plots == PlotsKind::Density {
        return session.artist().map_or(Ok(()), |(artist, folder)| artist.density(folder, learned, update));
    }
    let by = session.clock.deadline();
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let on_stage = &mut session.trainer.on_stage;
    let (points, way) =
        figures::draws(ema, image, &key, by.share(DRAWS), |share| on_stage(Activity::Drawing, share))?;
    // Two programs were compiled: one for samples, one for trajectories.
    session.compiles += 2;
    if learned.1.max(learned.2) < finest || points.len() < SAMPLES {
        let (_, rows, cols) = *learned;
        let samples = grouped(points.len() as u64);
        let text = format!(
            "time limit: the figures show {rows} x {cols} cells of the density and {samples} samples"
        );
        (session.trainer.on_note)(&text);
    }
    if let Some((artist, folder)) = session.artist() {
        let maps = || {
            artist.density(folder, learned, update)?;
            artist.comparison(folder, learned)
        };
        let scatters =
            || rayon::join(|| artist.samples(folder, learned, &points), || artist.flow(folder, way));
        let (of_maps, (of_samples, of_flow)) = rayon::join(maps, scatters);
        of_maps.and(of_samples).and(of_flow)?;
    }
    Ok(())
}

/// Draws the loss curve of a run.
pub(super) fn loss(session: &Session) -> Result<()> {
    let Some(folder) = session.folder.as_ref().filter(|_| session.plots != PlotsKind::None) else {
        return Ok(());
    };
    let frames = &session.header.frames;
    let (unit, shift) = (session.trainer.data.mean_weight(), frames.reported_nats());
    loss_curve(folder, &session.header.config, (unit, shift), session.kept, frames.entropy_nats())
}

/// Draws the loss of every update and the validation NLLs. The loss of maximum likelihood is divided by
/// `mean_weight`, so that its lower bound is the entropy, and `reported_nats` is added, so that it has the
/// coordinates of the NLLs.
fn loss_curve(
    folder: &RunFolder,
    config: &TrainConfig,
    (mean_weight, reported_nats): (f64, f64),
    kept: Option<Measured>,
    entropy: Option<f64>,
) -> Result<()> {
    let rows: Vec<Row> = metrics::read(&folder.file(METRICS_FILE))?;
    // If the rows of a finished run were lost, there is nothing to draw.
    if rows.is_empty() {
        return Ok(());
    }
    let of = |objective: Objective| -> Vec<[f64; 2]> {
        let (unit, shift) =
            if objective == Objective::MaximumLikelihood { (mean_weight, reported_nats) } else { (1.0, 0.0) };
        let mine = rows.iter().filter(|row| row.phase == objective.name());
        mine.map(|row| [row.update as f64, row.loss / unit + shift]).collect()
    };
    let losses: Vec<_> = config.phases.iter().map(|p| (p.objective, of(p.objective))).collect();
    let phases: Vec<plot::LossPhase> = losses
        .iter()
        .filter(|(_, loss)| !loss.is_empty())
        .map(|(objective, loss)| plot::LossPhase { name: objective.title(), unit: objective.unit(), loss })
        .collect();
    let nll: Vec<[f64; 2]> =
        rows.iter().filter_map(|row| row.nll_nats.map(|nll| [row.update as f64, nll])).collect();
    let last = rows.iter().rfind(|row| row.nll_nats.is_some());
    let nll_stderr = kept.map_or(last.and_then(|row| row.nll_stderr_nats), |kept| kept.nll_stderr_nats);
    let kept = kept.map(|kept| [kept.update as f64, kept.nll_nats]);
    let curve = plot::LossCurve { phases: &phases, nll: &nll, kept, nll_stderr, entropy };
    Ok(plot::loss_curve(&curve)?.save(folder.target("loss.png")?)?)
}
