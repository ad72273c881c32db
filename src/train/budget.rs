//! From a time limit to a number of updates: fixed once, before the schedule starts.
//!
//! Each phase's step runs a few times on a copy of the state, which is thrown away; its program is kept. What is left of
//! the limit, once the measures and pictures of the end are provided for, is divided between the phases by the
//! recipe's shares. The number goes into the first checkpoint, so a resumed run does not measure again.

use super::images::{MEASURED, TABLE};
use super::pictures::{FLOW_POINTS, SAMPLES};
use super::session::{Session, cells_per_pixel};
use super::step::{self, Step};
use super::{Phase, Stage, TrainError};
use crate::error::Result;
use std::time::Instant;

/// Seconds and updates that a phase is timed by, at least. A few dozen updates are not enough: a processor's first
/// tenths of a second run 1.4 times as fast as its minutes do.
const TIMED_S: f64 = 2.0;
const TIMED: usize = 3;
/// Share of the time beside the end's that goes to measures and pictures on the way, checkpoints and slower minutes.
const SPARE: f64 = 0.2;
/// Steps of six evaluations that the end's solves take for a flow that was trained a little, and what rasterising and
/// writing its pictures takes.
const MEASURE_STEPS: f64 = 50.0;
const DRAW_STEPS: f64 = 18.0;
/// Seconds that the end takes more for each second of training and million rows times steps: the longer a flow is trained,
/// the more sharply it bends. The end of an image of 200 x 200 pixels (6.3 million) took 115 s after 205, 33 after 85, 16
/// after 53. Flows of images are hardly bent: a measure of them takes the same steps after a minute and after an hour.
const BENDING: f64 = 0.071;
/// Steps of a solve of images, for its four tolerances together, and of a sample.
const IMAGE_STEPS: f64 = 8.0;
const TABLE_STEPS: f64 = 60.0;
/// Samples that are drawn of images, on their way too.
const IMAGE_SAMPLES: f64 = 200.0;
const PICTURES_S: f64 = 3.0;
const STAGES: f64 = 6.0;
/// An evaluation with its divergence, and one without, as parts of one with its gradient: two tangents beside the value
/// cost what a backward pass does.
const PLAIN: f64 = 1.0 / 3.0;
/// An evaluation with its divergence and the gradient of both.
const SECOND_ORDER: f64 = 3.0;

/// What a phase costs.
struct Cost {
    /// Seconds an update.
    update_s: f64,
    /// Seconds an evaluation of the field with its divergence takes for one row.
    row_s: f64,
}

/// Replaces the recipe's updates by as many as the limit allows.
pub(super) fn fix_updates(session: &mut Session, limit_s: f64) -> Result<()> {
    let phases = session.header.recipe.phases.clone();
    let mut costs = Vec::new();
    (session.density.on_stage)(Stage::Timing);
    for (i, phase) in phases.iter().enumerate() {
        costs.push(time(session, i, phase)?);
    }
    let row_s = costs.iter().map(|c| c.row_s).fold(f64::INFINITY, f64::min);
    let End { reserved_s, bending } = end(session, row_s);
    let spent_s = session.density.started.elapsed().as_secs_f64();
    let train_part = (1.0 - SPARE) / (1.0 + bending);
    let left_s = (limit_s - spent_s - reserved_s) * train_part;
    let least_s: f64 = costs.iter().map(|c| c.update_s).sum();
    if left_s < least_s {
        let least_s = spent_s + reserved_s + least_s / train_part + 1.0;
        return Err(TrainError::NoTime { limit_s, left_s: left_s.max(0.0), reserved_s, least_s }.into());
    }
    let shares = session.header.recipe.time_shares();
    for ((phase, cost), share) in session.header.recipe.phases.iter_mut().zip(&costs).zip(shares) {
        phase.updates = ((left_s * share / cost.update_s) as u64).clamp(1, u64::from(u32::MAX) / 2);
    }
    let told = format!("{} updates fit into {limit_s:.0} s", session.header.recipe.updates());
    (session.density.on_note)(&told);
    Ok(())
}

/// Times a phase's step; keeps its program for the run.
fn time(session: &mut Session, index: usize, phase: &Phase) -> Result<Cost> {
    let step = Step::new(&session.header.recipe, phase, &session.source, 0);
    let mut scratch = step::begin_phase(&session.header.recipe, phase, session.state.clone());
    session.check_memory(phase, &step, &scratch)?;
    let mut told = step.run(&mut scratch)?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.len() < TIMED || begun.elapsed().as_secs_f64() < TIMED_S {
        let started = Instant::now();
        told = step.run(&mut scratch)?;
        times.push(started.elapsed().as_secs_f64());
    }
    // The later half: the longer it runs, the more it is like the run itself.
    let mut late = times.split_off(times.len() / 2);
    late.sort_by(f64::total_cmp);
    let update_s = late[late.len() / 2];
    session.steps[index] = Some(step);
    let order = if told.steps > 0.0 { SECOND_ORDER } else { 1.0 };
    Ok(Cost { update_s, row_s: update_s / (phase.batch as f64 * told.field_evals.max(1.0) * order) })
}

/// What the measures and pictures of the end will take: seconds for a flow that was trained a little, and how much more
/// for each second that it is trained.
struct End {
    reserved_s: f64,
    bending: f64,
}

fn end(session: &Session, row_s: f64) -> End {
    let blocks = session.header.recipe.model.blocks as f64;
    if session.header.images.is_some() {
        let rows = (MEASURED as f64) * IMAGE_STEPS
            + TABLE as f64 * TABLE_STEPS
            + IMAGE_SAMPLES * IMAGE_STEPS * PLAIN;
        return End { reserved_s: PICTURES_S + rows * STAGES * blocks * row_s, bending: 0.0 };
    }
    let of = |image: &super::ImageFrame| {
        (image.width * image.height) as f64 * (cells_per_pixel(image) as f64).powi(2)
    };
    let cells = session.header.image.as_ref().map_or(0.0, of);
    let domain = 2.0 * cells;
    let rows = 4000.0 * MEASURE_STEPS
        + domain * DRAW_STEPS
        + (SAMPLES + 2 * FLOW_POINTS) as f64 * DRAW_STEPS * PLAIN;
    let reserved_s = PICTURES_S + rows * STAGES * blocks * row_s;
    End { reserved_s, bending: BENDING * rows / 1e6 }
}
