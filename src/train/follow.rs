//! Ranks other than 0: they hold the state of the run and follow the orders of rank 0.

use super::data::Prepared;
use super::options::{TrainOption, causes_first, plain};
use super::run::{RunInfo, Trainer};
use super::state::{Stored, TrainState};
use super::step::{self, Step};
use super::team::{Order, Team};
use super::{MODEL_FILE, PixelTables, TrainError, TrainedFlow};
use crate::data::{PixelTransform, SamplingRule};
use crate::error::{Error, Result};
use crate::io::{Fnv, checkpoint_bytes, checkpoint_of};
use crate::simd::Level;
use crate::tensor::Key;
use crate::world::World;
use std::path::Path;

/// Trains together with other ranks.
pub(super) fn run(trainer: Trainer<'_>, world: &World) -> Result<TrainedFlow> {
    world.set_deadline(None);
    world.agree(check(&trainer, world))?;
    if world.is_root() { lead(trainer, world) } else { follow(trainer, world) }
}

/// Compares everything that determines the results between the ranks, before anything is written.
fn check(trainer: &Trainer<'_>, world: &World) -> Result<()> {
    let mine = || -> Result<Vec<(String, String)>> {
        let (options, config) = trainer.settle()?;
        let json = serde_json::to_value((&options, &config)).expect("invariant: plain values with text keys");
        let of = |what: &str, value: String| (what.to_owned(), value);
        let mut values = vec![
            of("executable", executable()),
            of("set of instructions (FLOWLINE_LEVEL)", format!("{:?}", Level::detect())),
            of("`time_limit`", options.time_limit.map_or("none".to_owned(), |limit_s| limit_s.to_string())),
        ];
        // The first option that differs is named, in one line. The whole configuration comes after them.
        let value =
            |option: &TrainOption| Some(of(&format!("`{}`", option.name), plain(&option.value?(&config))));
        values.extend(causes_first().into_iter().filter_map(value));
        values.push(of("configuration", json.to_string()));
        values.push(of("data", format!("{:016x}", trainer.data.fingerprint()?)));
        Ok(values)
    };
    let mine = world.agree(mine())?;
    let named: Vec<(&str, String)> =
        mine.iter().map(|(what, value)| (what.as_str(), value.clone())).collect();
    Ok(world.compare(&named)?)
}

/// A hash of the running program.
fn executable() -> String {
    let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    Fnv::of(bytes).text()
}

/// Rank 0 runs the session and reports its end to the other ranks.
fn lead(trainer: Trainer<'_>, world: &World) -> Result<TrainedFlow> {
    let session = world.agree(trainer.begin())?;
    let team = session.team.clone();
    let mut start = checkpoint_bytes(&session.header, &Stored::of(&session.state, session.pixels.clone()));
    team.share(&mut start)?;
    world.agree(Ok::<(), Error>(()))?;
    let result = session.run();
    match &result {
        Ok(learned) => {
            team.order(&Order::End)?;
            team.share(&mut checkpoint_bytes(&learned.header, &learned.fitted.flow))?;
        }
        Err(Error::Train(TrainError::Stopped { update, .. })) => {
            team.order(&Order::Stop { update: *update })?;
        }
        Err(e) if team.has_failed() || matches!(e, Error::World(_)) => {}
        Err(e) => team.order(&Order::Fail { message: e.to_string() })?,
    }
    result
}

/// The state of a rank other than 0.
struct Follower<'a> {
    trainer: Trainer<'a>,
    team: Team<'a>,
    header: RunInfo,
    state: TrainState,
    prepared: Prepared,
    pixels: Option<PixelTransform>,
    /// The programs of the current phase, or the error of compiling them.
    step: Result<Step, String>,
}

fn follow(trainer: Trainer<'_>, world: &World) -> Result<TrainedFlow> {
    world.agree(Ok::<(), Error>(()))?;
    let mut start = Vec::new();
    world.broadcast(&mut start)?;
    Follower::new(trainer, world, &start)?.run()
}

impl<'a> Follower<'a> {
    /// Starts from the checkpoint of rank 0.
    fn new(mut trainer: Trainer<'a>, world: &'a World, start: &[u8]) -> Result<Follower<'a>> {
        let mut read = || -> Result<_> {
            let checkpoint = checkpoint_of::<RunInfo>(Path::new(MODEL_FILE), start)?;
            let header = checkpoint.header.clone();
            let like = step::begin(&header.config, trainer.build_flow(&header.config)?, &Key::new(0));
            let tables =
                header.frames.images.as_ref().map(|frame| PixelTables::like(frame.pixels, frame.dim()));
            let state = checkpoint.into_tree(&Stored::of(&like, tables))?;
            let pixels = state.pixels().map(PixelTables::transform);
            let rule = header.frames.image.as_ref().map_or(SamplingRule::Default, |image| image.rule);
            trainer.data = trainer.data.clone().with_rule(rule)?;
            let prepared = trainer.data.prepare(&header.config, pixels.clone())?;
            Ok((header, state.state(), prepared, pixels))
        };
        let (header, state, prepared, pixels) = world.agree(read())?;
        let team = Team::new(Some(world), header.config.shards, trainer.silent, trainer.time.clone());
        let step = Err("no phase has begun".to_owned());
        Ok(Follower { trainer, team, header, state, prepared, pixels, step })
    }

    fn run(mut self) -> Result<TrainedFlow> {
        loop {
            match self.team.next_order()? {
                Order::Begin { phase, first, is_new } => {
                    self.step = self.begin(phase, first, is_new).map_err(|e| e.to_string());
                }
                Order::Update { phase, updates } => self.update(phase, updates)?,
                Order::Wait => {}
                Order::End => return self.end(),
                Order::Stop { update } => {
                    let (updates, folder) = (self.header.config.updates(), self.trainer.folder);
                    return Err(TrainError::Stopped { update, updates, folder }.into());
                }
                Order::Fail { message } => return Err(self.team.error_of(0, message)),
            }
        }
    }

    fn begin(&mut self, phase: usize, first: u64, is_new: bool) -> Result<Step> {
        let (config, plan) = (&self.header.config, self.header.config.phases[phase]);
        if is_new {
            self.state = step::begin_phase(config, &plan, self.state.clone());
        }
        let step = Step::new(config, &plan, (&self.prepared.source, &self.prepared.matching), first);
        step.plan(&self.state, self.team.own_shards())?;
        Ok(step)
    }

    fn update(&mut self, phase: usize, updates: f64) -> Result<()> {
        let (plan, stop) = (self.header.config.phases[phase], (self.trainer.stop)());
        let step = self.step.as_ref().map_err(|message| Error::Model { reason: message.clone() });
        let found = self.team.gradient(step, &self.state, stop, &mut |_| {});
        let update = self.state.update.item() as u64 + 1;
        let (_, gradient) = step::checked(found, update, &plan)?;
        let Ok(step) = &self.step else {
            unreachable!("invariant: a rank that failed has returned its error")
        };
        step.apply(&mut self.state, gradient, updates)
    }

    /// The final flow, from rank 0.
    fn end(self) -> Result<TrainedFlow> {
        let mut end = Vec::new();
        self.team.share(&mut end)?;
        let checkpoint = checkpoint_of::<RunInfo>(Path::new(MODEL_FILE), &end)?;
        let header = checkpoint.header.clone();
        let state = TrainState { ema: checkpoint.into_tree(&self.state.ema)?, ..self.state };
        Ok(TrainedFlow::new(state, header, None, self.pixels))
    }
}
