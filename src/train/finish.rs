//! The end of a run: the mass, the set of pictures, the report.

use super::evaluate::{Mass, OUTER_MASS, Sampler, crop, over_domain};
use super::pictures::{self, SAMPLES};
use super::session::{Session, cells_per_pixel};
use super::{Learned, Report, Stage};
use crate::error::Result;
use crate::tensor::Tensor;

/// Told apart from the keys of updates, which are folds of small numbers.
const SAMPLE_STREAM: u32 = u32::MAX;

/// Measures and draws what was learned.
pub(super) fn finish(mut session: Session) -> Result<Learned> {
    let image = session.header.image.clone();
    let nll_nats = if let Some(nll) = session.last_nll {
        nll
    } else {
        (session.density.on_stage)(Stage::Measuring);
        session.measure()?
    };
    (session.density.on_stage)(Stage::Evaluating);
    let ema = session.state.ema.clone();
    let (cells, density, mass) = over_domain(&session.draw, &ema, &image, cells_per_pixel(image.side()))?;
    tell_missing(&mut session, &mass);
    (session.density.on_stage)(Stage::Drawing);
    let learned = crop(&image, &cells, &density, mass.margin);
    session.draw_map(&learned)?;
    let mut compiles = session.compiles + session.measure.traces() + session.draw.traces();
    if let (Some(folder), Some(artist)) = (&session.folder, &session.artist) {
        let key = session.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
        artist.comparison(folder, &learned)?;
        let mut points = Vec::with_capacity(SAMPLES);
        Sampler::new().draw(&ema, SAMPLES, &key).try_for_each(|part| part.map(|part| points.extend(part)))?;
        for p in &mut points {
            *p = image.to_pixels(*p);
        }
        artist.samples(folder, &points)?;
        artist.flow(folder, &ema, &key)?;
        let mean_weight = session.density.data.mean_weight;
        pictures::loss_curve(folder, &session.header.recipe, image.entropy_nats, mean_weight)?;
        // The program of the samples, and that of the flow.
        compiles += 2;
    }
    let report = report(&session, nll_nats, &mass, compiles);
    Ok(Learned::new(session.state, session.header, Some(report)))
}

fn tell_missing(session: &mut Session, mass: &Mass) {
    if mass.outer >= OUTER_MASS {
        let text = format!(
            "warning: the density reaches far beyond the image: {:.1e} of it still lies in the outermost band of 4 times the image's sides, where {:.4} was found",
            mass.outer, mass.total
        );
        (session.density.on_note)(&text);
    }
}

fn report(session: &Session, nll_nats: f64, mass: &Mass, compiles: usize) -> Report {
    let recipe = &session.header.recipe;
    let entropy_nats = session.header.image.entropy_nats;
    let counters = session.counters();
    Report {
        updates: session.update,
        weights: super::num_weights(&session.state.model),
        loss: session.tallies.loss,
        nll_nats,
        entropy_nats,
        gap_nats: nll_nats - entropy_nats,
        mass: mass.total,
        mass_outer: mass.outer,
        first_update_s: counters.first_update_s,
        phases: session.tallies.phase_reports(),
        compiles,
        resumed_from_update: session.resumed_from,
        states_kept_max: counters.states_kept_max,
        plan_peak_bytes: counters.plan_peak_bytes,
        peak_rss_mb: counters.peak_rss_mb,
        seconds_to_gap: session.tallies.seconds_to_gap.clone(),
        threads: rayon::current_num_threads(),
        seed: recipe.seed,
        files: session.folder.as_ref().map(pictures::files).unwrap_or_default(),
    }
}
