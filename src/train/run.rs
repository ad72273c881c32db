//! `Trainer`: the builder of a run: data, options, run folder and callbacks.
//!
//! Calls on the builder may come in any order. [`Trainer::run`] resolves options and configuration, checks
//! whether there is a run to [`resume`], and starts the session.

mod resume;

pub(super) use resume::RESTART;

use super::plan::PhasePlan;
use super::progress::{Activity, Progress};
use super::session::Session;
use super::state::TrainState;
use super::step;
use super::team::Team;
use super::warnings::warnings;
use super::{
    Flow, InitialFlowKind, ModelConfig, ModelKind, Parts, PlotsKind, Preset, TrainConfig, TrainError,
    TrainOptions, TrainedFlow, TrainingData,
};
use crate::array::DType;
use crate::cnf::Cnf;
use crate::data::Standardizer;
use crate::error::{Error, Result};
use crate::eval::Frames;
use crate::io::Fnv;
use crate::io::run::RunFolder;
use crate::nn::{AnyVelocityField, VelocityField, num_params};
use crate::tensor::{Key, Tree};
use crate::time_source::TimeSource;
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The header of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Identifies the run: a hash of this header and the initial state, and under a time limit also of the
    /// current time. `counters.json` and `best.safetensors` contain it too. Empty in older checkpoints.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The options as they were given, with the preset for the kind of data if none was given.
    pub options: TrainOptions,
    /// The resulting configuration.
    #[serde(rename = "recipe")]
    pub config: TrainConfig,
    /// The frames of the data.
    #[serde(flatten)]
    pub frames: Frames,
    /// The number of rows in each part; `None` in checkpoints of versions without a test part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Whether the run learns from exact targets and estimates its KL divergence during training; false in checkpoints of
    /// versions without the estimate, which resume without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kl_estimate: bool,
    /// Whether the checks for the best weights of a table come after ever more updates, from early in a phase; false for
    /// other data, and in checkpoints of versions with equal distances, which resume with these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rising_checks: bool,
}

impl RunInfo {
    /// A hash of this header and this state. Without a time limit, bit-identical runs have the same hash.
    pub(super) fn id(&self, state: &TrainState, time: &TimeSource) -> String {
        let header = serde_json::to_value(self).expect("invariant: plain values with text keys");
        let mut hash = Fnv::of(header.to_string().into_bytes());
        // Under a time limit results depend on the clock, so no two runs are bit-identical.
        if self.options.time_limit.is_some() {
            hash.add(time.stamp().to_le_bytes());
        }
        for leaf in state.leaves() {
            hash.add(leaf.to_vec().into_iter().flat_map(f64::to_le_bytes));
        }
        hash.text()
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.config.model.dim
    }

    /// The transform between standardized coordinates and the coordinates of the data: pixels, or the units
    /// of points.
    pub fn standard(&self) -> Standardizer {
        self.frames.standard(self.dim())
    }
}

/// Trains a flow on an image, points, a toy density or a set of images; see [`Trainer::run`].
///
/// Methods may be called in any order. The setters check and build nothing. There is one per option of
/// [`TrainOptions`].
///
/// # Examples
/// ```
/// use flowline::cnf::prelude::*;
/// let moons = Trainer::new(ToyDensity::Moons).updates(20).batch(64).width(16).depth(2).lr(3e-3).seed(1).run()?;
/// assert_eq!((moons.num_updates, moons.header.config.model.hidden), (20, vec![16, 16]));
/// # Ok::<(), flowline::Error>(())
/// ```
pub struct Trainer<'a> {
    /// The caller's flow; `None` initializes the model of the configuration.
    pub(super) flow: Option<Flow>,
    pub(super) data: TrainingData,
    pub(super) options: TrainOptions,
    /// The caller's configuration, overridden by options; `None` uses the preset for the kind of data.
    config: Option<TrainConfig>,
    pub(super) folder: Option<PathBuf>,
    /// The time since the start of the process, and its seconds when the data were read.
    pub(super) time: TimeSource,
    pub(super) read_s: f64,
    pub(super) on_update: Box<dyn FnMut(&Progress) + 'a>,
    pub(super) on_note: Box<dyn FnMut(&str) + 'a>,
    pub(super) on_stage: Box<dyn FnMut(Activity, f64) + 'a>,
    pub(super) stop: Box<dyn FnMut() -> bool + 'a>,
    /// Whether an existing run in the folder is moved aside.
    pub(super) restart: bool,
    /// The ranks that share the updates.
    pub(super) world: Option<&'a World>,
    /// The shortest deadline for a rank that does not answer.
    pub(super) silent: Duration,
}

impl<'a> Trainer<'a> {
    /// Trains on an [`ImageDensity`](crate::data::ImageDensity), [`Points`](crate::data::Points), a
    /// [`ToyDensity`](crate::data::ToyDensity) or an [`ImageSet`](crate::data::ImageSet), with the preset for that kind
    /// of data.
    pub fn new(data: impl Into<TrainingData>) -> Trainer<'a> {
        Trainer {
            flow: None,
            data: data.into(),
            options: TrainOptions::default(),
            config: None,
            folder: None,
            time: TimeSource::of_this_process(),
            read_s: 0.0,
            on_update: Box::new(|_| {}),
            on_note: Box::new(|_| {}),
            on_stage: Box::new(|_, _| {}),
            stop: Box::new(|| false),
            restart: false,
            world: None,
            silent: super::team::SILENT,
        }
    }

    /// Trains this flow, starting from its weights, instead of one described by the configuration. Options of the model
    /// and its solver are then errors.
    ///
    /// Flow matching needs no solver; maximum likelihood uses the flow's own solver options.
    pub fn from_flow<D: VelocityField + Into<AnyVelocityField>>(
        flow: Cnf<D>,
        data: impl Into<TrainingData>,
    ) -> Trainer<'a> {
        let blocks = flow.blocks.into_iter().map(Into::into).collect();
        let flow = Cnf { blocks, base: flow.base, settings: flow.settings, context: None };
        Trainer { flow: Some(flow), ..Trainer::new(data) }
    }

    /// Sets phases, learning rates and model, in place of the preset for the kind of data; options override it.
    pub fn config(mut self, config: TrainConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Sets options that were read from a file or a command line; options that are `None` here keep their previous values.
    /// In a program, each option has a setter, such as [`Trainer::width`].
    pub fn options(mut self, options: &TrainOptions) -> Self {
        self.options = self.options.with(options);
        self
    }

    /// Which figures are drawn; all by default.
    pub(super) fn plots_kind(&self) -> PlotsKind {
        self.options.plots.unwrap_or(PlotsKind::All)
    }

    /// Sets the folder for checkpoints, metrics and, with the feature `plot`, figures. A run in this folder
    /// is resumed. Without a time limit, the result is bit-identical to that of an uninterrupted run. Without
    /// a folder nothing is written.
    pub fn run_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.folder = Some(path.as_ref().to_owned());
        self
    }

    /// Starts a new run even if the folder holds one; the old files are moved to a folder beside it, `runs/cat` to
    /// `runs/cat.1`.
    pub fn restart(mut self) -> Self {
        self.restart = true;
        self
    }

    /// Sets a predicate that is called before every update and before every part of the final evaluation.
    /// When it returns true, the run is saved and ends with [`TrainError::Stopped`].
    pub fn stop_when(mut self, f: impl FnMut() -> bool + 'a) -> Self {
        self.stop = Box::new(f);
        self
    }

    /// Sets a callback after every update.
    pub fn on_update(mut self, f: impl FnMut(&Progress) + 'a) -> Self {
        self.on_update = Box::new(f);
        self
    }

    /// Sets a callback for human-readable notes. An error that ends the job of several ranks, after which no call
    /// returns, is a note that begins with `error: `; others are, for example, the run folder, a resumed or moved run, lost rows, a lost
    /// rank, a density that extends far beyond the image or the points, restored best weights.
    pub fn on_note(mut self, f: impl FnMut(&str) + 'a) -> Self {
        self.on_note = Box::new(f);
        self
    }

    /// Sets a callback before and during long work other than updates, with the activity and the fraction done.
    pub fn on_stage(mut self, f: impl FnMut(Activity, f64) + 'a) -> Self {
        self.on_stage = Box::new(f);
        self
    }

    /// Shares the updates with the other ranks of a job, which make the same call with the same data and options.
    ///
    /// A batch is divided into [`shards`](Self::shards), at least one per rank. The weights depend on the
    /// number of shards, never on the number of ranks, so a run may be resumed on fewer or more ranks. Only
    /// rank 0 writes the run folder, validates, and calls `on_update`, `on_note` and `on_stage`. All ranks
    /// call `stop_when`, and all stop after the same update.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::prelude::*;
    /// use flowline::world::World;
    /// let flows = World::threads(2, |world| {
    ///     Trainer::new(ToyDensity::Moons).updates(2).shards(2).world(world).run()
    /// });
    /// let weights: Vec<_> = flows.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(weights[0].num_updates, weights[1].num_updates);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn world(mut self, world: &'a World) -> Self {
        self.world = Some(world);
        self
    }

    /// Sets the deadline after which a rank that does not answer is considered lost: 60 seconds by default,
    /// but at least ten times the longest update so far. Rank 0 then saves the run and returns
    /// [`WorldError::Silent`](crate::world::WorldError::Silent), which names the lost rank.
    pub fn rank_timeout(mut self, deadline: Duration) -> Self {
        self.silent = deadline;
        self
    }

    /// Sets the start of the process, for time limits and the first update; by default the call of [`Trainer::new`].
    pub fn started_at(mut self, at: Instant) -> Self {
        self.time = TimeSource::of_process(at);
        self
    }

    /// Sets the time that the run reads.
    #[cfg(test)]
    pub(crate) fn time(mut self, time: TimeSource) -> Self {
        self.time = time;
        self
    }

    /// The number of trained parameters.
    ///
    /// # Errors
    /// Invalid settings, as in [`Trainer::run`].
    pub fn num_params(&self) -> Result<usize> {
        Ok(num_params(&self.build_flow(&self.settle()?.1)?))
    }

    /// A dry run: the cost of an update in each phase.
    ///
    /// # Errors
    /// Invalid settings, as in [`Trainer::run`]; settings that a solve refuses.
    pub fn plan(&self) -> Result<Vec<PhasePlan>> {
        let (_, mut config) = self.settle()?;
        let prepared = self.data.prepare(&config, None)?;
        let drawn = (&prepared.source, &prepared.matching);
        let flow = self.build_flow(&config)?;
        let flow = self.started_flow(&mut config, &prepared, flow)?;
        let state = step::begin(&config, flow, &Key::new(config.seed));
        let plan = |phase: &super::Phase| {
            let planned = step::Step::new(&config, phase, drawn, 0).plan(&state, config.shards)?;
            Ok(PhasePlan::of(&config, phase, &planned))
        };
        config.phases.iter().filter(|p| p.updates > 0).map(plan).collect()
    }

    /// Trains: all phases, then the final evaluation and figures.
    ///
    /// # Errors
    /// Options that are out of range, exclude each other, or have no effect for the data or the given flow; a
    /// configuration or a flow of another dimension than the data; a folder that cannot be written, is in use by
    /// another process, or holds another run or a damaged one (nothing is changed then); too little memory or
    /// time; a failed solve; a loss that is not finite; a stop; a lost rank. The last checkpoint is intact.
    pub fn run(self) -> Result<TrainedFlow> {
        match self.world.filter(|world| world.size() > 1) {
            Some(world) => super::follow::run(self, world),
            None => self.begin()?.run(),
        }
    }

    /// The session of a new or a resumed run.
    pub(super) fn begin(mut self) -> Result<Session<'a>> {
        self.read_s = self.time.now_s();
        let (options, mut config) = self.settle()?;
        let (mut flow, key) = (self.build_flow(&config)?, Key::new(config.seed));
        let folder = self.folder.as_ref().map(RunFolder::open).transpose()?;
        if let Some(path) = &self.folder {
            (self.on_note)(&format!("run folder {}", path.display()));
        }
        options.unused(&config).iter().for_each(|text| (self.on_note)(text));
        let found = match &folder {
            Some(folder) => self.find(folder)?,
            None => None,
        };
        let resumed = found.is_some();
        // The run's own configuration determines the split and the pixel transform.
        let mut prepared = match &found {
            Some(checkpoint) => self.data.prepare(&checkpoint.header.config, None)?,
            None => self.data.prepare(&config, None)?,
        };
        let (header, state) = if let Some(checkpoint) = found {
            self.resume(checkpoint, &mut prepared, (&options, &config))?
        } else {
            if self.flow.is_none() {
                prepared.set_ends(&mut flow);
            }
            let flow = self.started_flow(&mut config, &prepared, flow)?;
            let state = step::begin(&config, flow, &key);
            // The session sets the run's id.
            let (frames, parts) = (prepared.frames.clone(), Some(prepared.parts));
            let kl_estimate = prepared.exact.is_some() && config.estimates();
            let rising_checks = matches!(self.data, TrainingData::Points(..));
            let run = String::new();
            (RunInfo { run, options, config, frames, parts, kl_estimate, rising_checks }, state)
        };
        let dequantized = prepared.frames.points.as_ref().filter(|_| header.config.dequantize);
        let found = warnings(&self.data, prepared.parts, dequantized);
        let shards = header.config.shards;
        if let Some(world) = self.world.filter(|world| world.size() > shards) {
            return Err(TrainError::Ranks { ranks: world.size(), shards }.into());
        }
        let team = Rc::new(Team::new(self.world, shards, self.silent, self.time.clone()));
        let mut session = Session::new(self, team, prepared, header, state, folder, resumed)?;
        // After the files of a resumed run were read: an error comes without warnings about the data.
        found.iter().for_each(|text| (session.trainer.on_note)(text));
        Ok(session)
    }

    /// The options, with the preset for the kind of data, and the resulting configuration.
    pub(super) fn settle(&self) -> Result<(TrainOptions, TrainConfig)> {
        let mut options = self.options.clone();
        options.check()?;
        let config = if let Some(config) = &self.config {
            options.check_kind(&self.data)?;
            if let Some(other) = options.preset.as_ref().filter(|asked| **asked != config.preset) {
                let (value, reason) = (other.name().to_owned(), "the given configuration has its own preset");
                return Err(TrainError::Useless { option: "preset", value, reason }.into());
            }
            options.preset = Some(config.preset.clone());
            config.clone().with(&options)
        } else {
            check_preset(&mut options, &self.data)?;
            TrainConfig::of(&options, self.data.shape())
        };
        let config = if let Some(flow) = &self.flow {
            options.check_given_flow()?;
            let start = InitialFlowKind::Normal;
            TrainConfig { model: ModelConfig::of(flow), start, decorrelate: false, ..config }
        } else {
            super::bounds::check_model(&options, &config)?;
            config.with_start(&self.data, options.start, self.config.is_some())?
        };
        config.check_target(&self.data)?;
        config.check_patience(&self.data, options.patience)?;
        let is_single = |flow: &Flow| flow.leaves().iter().all(|leaf| leaf.dtype() == DType::F32);
        if config.shards > 1 && self.flow.as_ref().is_some_and(|flow| !is_single(flow)) {
            refused("shards", &config.shards.to_string(), "1 for a flow whose weights are not f32")?;
        }
        if let Some(phase) = config.phases.iter().find(|phase| phase.batch % config.shards != 0) {
            return Err(TrainError::Shards { shards: config.shards, batch: phase.batch }.into());
        }
        if let TrainingData::Points(points, _) = &self.data {
            points.check_classes()?;
            config.check_classes(points.classes().unwrap_or(0))?;
        }
        let (dim, name, of_data) = (config.model.dim, self.data.name(), self.data.dim());
        if dim != of_data {
            let reason = format!("the flow has {dim} dimensions, but the points of {name} have {of_data}");
            return Err(Error::Model { reason });
        }
        Ok((options, config))
    }

    pub(super) fn build_flow(&self, config: &TrainConfig) -> Result<Flow> {
        match &self.flow {
            Some(flow) => Ok(flow.clone()),
            None => config.model.build(&Key::new(config.seed).split::<2>()[0]),
        }
    }
}

fn refused(option: &'static str, value: &str, range: &'static str) -> Result<()> {
    Err(TrainError::Option { option, value: value.to_owned(), range }.into())
}

/// Sets the preset for points and images; refuses presets for other kinds of data.
fn check_preset(options: &mut TrainOptions, data: &TrainingData) -> Result<()> {
    options.check_kind(data)?;
    if let TrainingData::Images(images, _) = data {
        let preset = options.preset.get_or_insert(Preset::Images);
        if *preset != Preset::Images {
            return refused("preset", preset.name(), "images for a set of images");
        }
        if let (Some(field @ ModelKind::ConcatSquash), Some(_)) = (options.field, images.classes()) {
            return Err(TrainError::NoClasses { field: field.name() }.into());
        }
        return Ok(());
    }
    if options.preset == Some(Preset::Images) {
        return refused("preset", "images", "default or points unless the data are a set of images");
    }
    if let Some(Preset::Given { name }) = &options.preset {
        return refused("preset", name, "default, points or images unless a config is given");
    }
    if !matches!(data, TrainingData::Image(_)) {
        options.preset.get_or_insert(Preset::Points);
    }
    Ok(())
}
