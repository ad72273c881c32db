//! The figures at the end of a run, with the feature `plot`.

mod estimates;

pub(super) use estimates::draw as estimates;

use super::best::{Criterion, Measured};
use super::budget::End;
use super::session::Session;
use super::{Activity, Flow, ImageFrame, Objective, PlotsKind, TrainConfig, TrainingData};
use crate::cnf::config::of_class;
use crate::data::{Points, grouped};
use crate::error::{Error, Result};
use crate::eval::figures::{self, Artist, CORNER_POINTS, SAMPLES};
use crate::eval::{Deadline, Inner, Sampler, Work};
use crate::io::run::metrics::{self, Row};
use crate::io::run::{METRICS_FILE, RunFolder};
use crate::plot;
use crate::tensor::Tensor;
use rayon::prelude::*;

/// Folded into the key of a run for its samples. Updates fold in their number, which is smaller.
pub(super) const SAMPLE_STREAM: u32 = u32::MAX;
/// Fraction of the remaining time that samples may take, and trajectories after them.
const DRAWS: f64 = 0.3;
/// The time of figures in multiples of the time of one heat map.
const COMPARISON: f64 = 2.0;
const SAMPLE_PLOT: f64 = 3.0;
const PANELS: f64 = 3.0;
const ANIMATION: f64 = 10.0;
const FIELD: f64 = 4.0;
const LOSS: f64 = 1.0;
const CORNER: f64 = 5.0;
/// Largest number of cells along the longer side of the target density under a time limit.
const TARGET_CELLS: usize = 1024;

/// Adds what the figures of a run need.
pub(super) fn needed(session: &Session, end: End) -> End {
    let (rows, has_plane) = (session.judging.draw.rows_per_call(), end.cells > 0);
    let estimates = if session.judging.estimator.is_some() { 2.0 * LOSS } else { 0.0 };
    match session.plots {
        _ if session.folder.is_none() => end,
        PlotsKind::None => end,
        PlotsKind::Density => End { figures: 1.0 + LOSS, ..end },
        PlotsKind::All if has_plane => End {
            samples: rows,
            trajectories: figures::FLOW_LEAST,
            figures: 1.0 + COMPARISON + SAMPLE_PLOT + PANELS + ANIMATION + FIELD + LOSS + estimates,
            ..end
        },
        PlotsKind::All => End { samples: 2 * rows, figures: CORNER + LOSS, ..end },
    }
}

/// Draws the figures of a set of images.
pub(super) fn images(session: &mut Session, ema: &Flow, by: &Deadline) -> Result<()> {
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
    session.programs.compiles += 2;
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
    session.programs.compiles += 1;
    // Flows of classes, each with its share of the rows.
    let flows = shares(points, flow);
    if points.dim() == 1 {
        let mut line: Vec<[f64; 2]> = figures::on_line(points).into_iter().map(|x| [x, 0.0]).collect();
        for (share, flow) in &flows {
            let found = figures::over_line(flow, &standard, figures::on_line(points))?;
            line.iter_mut().zip(found).for_each(|(sum, [_, p])| sum[1] += share * p);
        }
        return figures::line(folder, points, line);
    }
    let by = session.timing.budget.deadline(&session.timing.watch);
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let (rows, mut samples) =
        (session.judging.draw.rows_per_call(), Vec::with_capacity(CORNER_POINTS * points.dim()));
    let sampler = Sampler::of_rows(rows);
    // The first part of each class comes before the second part of any, so that a time limit leaves no class out.
    let parts = |(k, (share, flow)): (u32, &(f64, Flow))| {
        let (count, key) = ((share * CORNER_POINTS as f64).round() as usize, key.clone());
        let key = if k == 0 { key } else { key.fold_in(k << 16) };
        let flow = flow.clone();
        let part =
            move |(i, start): (u32, usize)| (i, flow.clone(), (count - start).min(rows), key.fold_in(i));
        (0..).zip((0..count).step_by(rows)).map(part)
    };
    let mut parts: Vec<_> = (0..).zip(&flows).flat_map(parts).collect();
    parts.sort_by_key(|part| part.0);
    let mut parts = parts.into_iter();
    by.share(0.5).in_chunks(
        (Work::Samples, CORNER_POINTS, rows, 0),
        |_| (),
        |_| {
            for (_, flow, n, key) in parts.by_ref().take(flows.len()) {
                samples.extend(standard.inverse_transform(&sampler.part(&flow, n, &key)?));
            }
            Ok::<_, Error>(())
        },
    )?;
    if samples.is_empty() || !by.fits(Work::Figures, CORNER) {
        (session.trainer.on_note)("time limit: corner.png is left out");
        return Ok(());
    }
    by.watch.run(Work::Figures, CORNER, || figures::corner(folder, points, &samples))
}

/// The flow of each class with its share of the points; without classes, the flow.
fn shares(points: &Points, flow: &Flow) -> Vec<(f64, Flow)> {
    let (counts, rows) = (points.class_counts(), points.len() as f64);
    if counts.is_empty() {
        return vec![(1.0, flow.clone())];
    }
    let of = |(k, count): (usize, usize)| Some((count as f64 / rows, of_class(flow, k)?));
    counts.into_iter().enumerate().filter_map(of).collect()
}

/// Draws the figures of a density over the plane; `learned` are its values. Under a time limit, figures for which
/// there is no time are left out.
pub(super) fn plane(
    session: &mut Session,
    image: &ImageFrame,
    (ema, learned, sampler): (&Flow, &Inner, &Sampler),
    finest: usize,
) -> Result<()> {
    if session.plots == PlotsKind::None {
        return Ok(());
    }
    session.stage(Activity::Drawing)?;
    let update = (session.judging.kept.map_or(session.update, |kept| kept.update), session.update);
    let by = session.timing.budget.deadline(&session.timing.watch);
    let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
    let Some(folder) = &session.folder else { return Ok(()) };
    let artist = Artist::new(&session.header.frames, image, session.trainer.data.title());
    by.watch.run(Work::Figures, 1.0, || artist.density(folder, learned, update))?;
    if session.plots == PlotsKind::Density {
        return Ok(());
    }
    let (on_stage, data) = (&mut session.trainer.on_stage, &session.trainer.data);
    let points = figures::samples(ema, image, &key, (sampler, &by.share(DRAWS)), |share| {
        on_stage(Activity::Drawing, share);
    })?;
    let way = figures::trajectories(ema, image, &key, &by.share(DRAWS))?;
    let truth = || {
        let side = if by.is_limited() { finest.min(TARGET_CELLS) } else { finest };
        let cells = (side * side) as f64;
        by.fits(Work::Target, cells)
            .then(|| by.watch.run(Work::Target, cells, || Ok::<_, Error>(data.truth(image, side))))
            .transpose()
    };
    let truth = truth()?;
    let (artist, truth, points, way) = (&artist, truth.as_ref(), &points, way.as_ref());
    let figures: [Figure<'_>; 5] = [
        (
            "comparison.png",
            COMPARISON,
            truth.map(|truth| -> Draw<'_> { Box::new(move || artist.comparison(folder, learned, truth)) }),
        ),
        (
            "samples.png",
            SAMPLE_PLOT,
            (!points.is_empty())
                .then(|| -> Draw<'_> { Box::new(|| artist.samples(folder, learned, points)) }),
        ),
        ("flow.png", PANELS, way.map(|way| -> Draw<'_> { Box::new(move || artist.flow(folder, way)) })),
        (
            "flow.gif",
            ANIMATION,
            way.map(|way| -> Draw<'_> { Box::new(move || artist.animation(folder, way)) }),
        ),
        ("field.png", FIELD, way.map(|way| -> Draw<'_> { Box::new(move || artist.field(folder, ema, way)) })),
    ];
    let left_out = draw(figures, &by)?;
    let is_reduced = learned.1.max(learned.2) < finest || points.len() < SAMPLES || !left_out.is_empty();
    if is_reduced {
        let (_, rows, cols) = *learned;
        let samples = grouped(points.len() as u64);
        let mut left = left_out.join(", ");
        if !left.is_empty() {
            left.insert_str(0, "; left out: ");
        }
        let text = format!(
            "time limit: the figures show {rows} x {cols} cells of the density and {samples} samples{left}"
        );
        (session.trainer.on_note)(&text);
    }
    // One program for trajectories, and one for the velocity.
    session.programs.compiles += 2 * usize::from(way.is_some());
    Ok(())
}

/// Draws a figure.
type Draw<'a> = Box<dyn Fn() -> Result<()> + Sync + 'a>;
/// The name of a figure, its time in multiples of the time of one heat map, and how it is drawn if its data are there.
type Figure<'a> = (&'static str, f64, Option<Draw<'a>>);

/// Draws the figures for which there is time, on all cores; returns the names of the others.
fn draw<const N: usize>(figures: [Figure<'_>; N], by: &Deadline) -> Result<Vec<&'static str>> {
    let (mut planned, mut ready, mut left_out) = (0.0, Vec::new(), Vec::new());
    for (name, units, draw) in figures {
        match draw.filter(|_| by.fits(Work::Figures, planned + units)) {
            Some(draw) => {
                planned += units;
                ready.push(draw);
            }
            None => left_out.push(name),
        }
    }
    let drawn = || ready.par_iter().map(|draw| draw()).collect::<Vec<_>>();
    // If several figures fail, the error is that of the first one in this order.
    by.watch.run(Work::Figures, planned, || drawn().into_iter().collect::<Result<()>>())?;
    Ok(left_out)
}

/// Draws the loss curve of a run.
pub(super) fn loss(session: &Session) -> Result<()> {
    let Some(folder) = session.folder.as_ref().filter(|_| session.plots != PlotsKind::None) else {
        return Ok(());
    };
    let frames = &session.header.frames;
    let (unit, shift) = (session.trainer.data.mean_weight(), frames.reported_nats());
    session.timing.watch.run(Work::Figures, LOSS, || {
        loss_curve(folder, &session.header.config, (unit, shift), session.judging.kept, frames.entropy_nats())
    })
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
    let nll_stderr = match kept.map(|kept| kept.by) {
        Some(Criterion::Validation { nll_stderr_nats, .. }) => nll_stderr_nats,
        _ => last.and_then(|row| row.nll_stderr_nats),
    };
    let kept = kept.map(|kept| [kept.update as f64, kept.by.nats()]);
    let curve = plot::LossCurve { phases: &phases, nll: &nll, kept, nll_stderr, entropy };
    Ok(plot::loss_curve(&curve)?.save(folder.target("loss.png")?)?)
}
