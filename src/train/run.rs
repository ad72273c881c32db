//! `Trainer`: what to train on what, where to, and who is notified; then one call that runs it.
//!
//! The builder only collects, so the order of its calls does not matter. [`Trainer::run`] settles options and config, finds out
//! whether there is a run to [`resume`], and hands over to the session, which knows nothing of options.

mod resume;

pub(super) use resume::RESTART;

use super::plan::PhasePlan;
use super::progress::{Activity, Progress};
use super::session::Session;
use super::state::TrainState;
use super::step;
use super::{
    Flow, ModelConfig, ModelKind, Parts, PixelTransformKind, PlotsKind, Preset, TrainConfig, TrainError,
    TrainOptions, TrainedFlow, TrainingData,
};
use crate::cnf::Cnf;
use crate::data::Standardizer;
use crate::error::{Error, Result};
use crate::eval::Frames;
use crate::io::Fnv;
use crate::io::run::RunFolder;
use crate::nn::{AnyVelocityField, VelocityField, num_params};
use crate::tensor::{Key, Tree};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// What a checkpoint says of its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Identifies the run: a hash of everything that the first update begins with. The other files of the folder have it too. Empty in
    /// earlier checkpoints.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The options as they were given.
    pub options: TrainOptions,
    /// What they led to.
    #[serde(rename = "recipe")]
    pub config: TrainConfig,
    /// What of its data the density needs.
    #[serde(flatten)]
    pub frames: Frames,
    /// How many rows each part has; none in checkpoints of versions without a test part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
}

impl RunInfo {
    /// The number of a run that begins with this header and this state: runs with the same bits have the same.
    pub(super) fn id(&self, state: &TrainState) -> String {
        let header = serde_json::to_value(self).expect("invariant: plain values with text keys");
        let mut hash = Fnv::of(header.to_string().into_bytes());
        // Under a time limit the clock decides too, and no two runs have the same bits.
        if self.options.time_limit.is_some() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            hash.add(now.as_nanos().to_le_bytes());
        }
        for leaf in state.leaves() {
            hash.add(leaf.to_vec().into_iter().flat_map(f64::to_le_bytes));
        }
        hash.text()
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.config.model.dim
    }

    /// The way between standardized coordinates and those that people see: pixels, or the units of points.
    pub fn standard(&self) -> Standardizer {
        self.frames.standard(self.dim())
    }
}

/// Learns the density of an image, of points, of a toy or of a set of images; see [`Trainer::run`].
///
/// What is set may be set in any order. Nothing is checked or built before [`Trainer::run`] or [`Trainer::plan`].
pub struct Trainer<'a> {
    /// The caller's own flow; otherwise the config's model is drawn.
    flow: Option<Flow>,
    pub(super) data: TrainingData,
    options: TrainOptions,
    /// What options change; otherwise the preset for the kind of data.
    config: Option<TrainConfig>,
    pub(super) folder: Option<PathBuf>,
    pub(super) started: Instant,
    pub(super) on_update: Box<dyn FnMut(&Progress) + 'a>,
    pub(super) on_note: Box<dyn FnMut(&str) + 'a>,
    pub(super) on_stage: Box<dyn FnMut(Activity, f64) + 'a>,
    pub(super) stop: Box<dyn FnMut() -> bool + 'a>,
    /// Whether a run that lies in the folder is moved aside.
    pub(super) restart: bool,
}

impl<'a> Trainer<'a> {
    /// Learns from data: an [`ImageDensity`](crate::data::ImageDensity), [`Points`](crate::data::Points), a
    /// [`ToyDensity`](crate::data::ToyDensity) or an [`ImageSet`](crate::data::ImageSet), by the preset for its kind.
    pub fn new(data: impl Into<TrainingData>) -> Trainer<'a> {
        Trainer {
            flow: None,
            data: data.into(),
            options: TrainOptions::default(),
            config: None,
            folder: None,
            started: Instant::now(),
            on_update: Box::new(|_| {}),
            on_note: Box::new(|_| {}),
            on_stage: Box::new(|_, _| {}),
            stop: Box::new(|| false),
            restart: false,
        }
    }

    /// Trains this flow, from its weights, in place of one that the config describes; options of the model and its solver
    /// are refused.
    ///
    /// Flow matching solves nothing; the flow's own settings are those of maximum likelihood.
    pub fn with_flow<D: VelocityField + Into<AnyVelocityField>>(
        flow: Cnf<D>,
        data: impl Into<TrainingData>,
    ) -> Trainer<'a> {
        let blocks = flow.blocks.into_iter().map(Into::into).collect();
        let flow = Cnf { blocks, base: flow.base, settings: flow.settings, context: None };
        Trainer { flow: Some(flow), ..Trainer::new(data) }
    }

    /// The phases, rates and model to train by, in place of the preset for the kind of data; options change what they name.
    pub fn config(mut self, config: TrainConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Options that are given here; those set before stay where these leave them out.
    pub fn options(mut self, options: &TrainOptions) -> Self {
        self.options = self.options.with(options);
        self
    }

    /// Which figures are drawn: all, unless this is given.
    pub(super) fn plots(&self) -> PlotsKind {
        self.options.plots.unwrap_or(PlotsKind::All)
    }

    /// Updates of all phases together.
    pub fn updates(mut self, updates: u64) -> Self {
        self.options.updates = Some(updates);
        self
    }

    /// Seconds for everything, the measures and plots of the end too, in place of a number of updates.
    pub fn time_limit(mut self, seconds: f64) -> Self {
        self.options.time_limit = Some(seconds);
        self
    }

    /// The seed of everything that is drawn, 0 where none is given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Where checkpoints, metrics and, with the feature `plot`, figures go. A folder with a checkpoint of the same run is
    /// resumed: the result has the bits of a run that was never interrupted. Without a folder nothing is written.
    pub fn run_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.folder = Some(path.as_ref().to_owned());
        self
    }

    /// Begins anew in the run folder, whatever run lies there: its files are moved into a folder beside it, `runs/cat.1` of
    /// `runs/cat`.
    pub fn restart(mut self) -> Self {
        self.restart = true;
        self
    }

    /// Asked before every update and every part of the end; where it says yes, the run is saved and ends with
    /// [`TrainError::Stopped`].
    pub fn stop_when(mut self, f: impl FnMut() -> bool + 'a) -> Self {
        self.stop = Box::new(f);
        self
    }

    /// Called after every update.
    pub fn on_update(mut self, f: impl FnMut(&Progress) + 'a) -> Self {
        self.on_update = Box::new(f);
        self
    }

    /// Called with notes for people: where the run is kept, that a run is resumed or moved aside, that rows are lost, that probability is missing.
    pub fn on_note(mut self, f: impl FnMut(&str) + 'a) -> Self {
        self.on_note = Box::new(f);
        self
    }

    /// Called before and during long work other than updates: with the activity, and the share of it that is done.
    pub fn on_stage(mut self, f: impl FnMut(Activity, f64) + 'a) -> Self {
        self.on_stage = Box::new(f);
        self
    }

    /// When the process started, for time limits and the time of the first update; now, where it is not said.
    pub fn started(mut self, at: Instant) -> Self {
        self.started = at;
        self
    }

    /// The numbers of the model that are trained.
    ///
    /// # Errors
    /// As [`Trainer::run`] for what was set.
    pub fn num_params(&self) -> Result<usize> {
        Ok(num_params(&self.build_flow(&self.settle()?.1)?))
    }

    /// What an update of each phase does and needs; nothing is run.
    ///
    /// # Errors
    /// As [`Trainer::run`] for what was set; settings that a solve refuses.
    pub fn plan(&self) -> Result<Vec<PhasePlan>> {
        let (_, config) = self.settle()?;
        let source = self.data.prepare(&config)?.source;
        let state = step::begin(&config, self.build_flow(&config)?, &Key::new(config.seed));
        let plan = |phase: &super::Phase| {
            let planned = step::Step::new(&config, phase, &source, 0).plan(&state)?;
            Ok(PhasePlan::of(&config, phase, &planned))
        };
        config.phases.iter().filter(|p| p.updates > 0).map(plan).collect()
    }

    /// Trains: the config's phases, then the measures and plots of the end.
    ///
    /// # Errors
    /// Options out of range, that exclude each other or that the data or the given flow have no use for; a config or a flow of
    /// another dimension than the data. A folder that cannot be written, is another process's, or holds another run or a
    /// damaged one (nothing is changed then); a solve that ended early, a loss that is not finite. What the last checkpoint
    /// holds is still there then.
    pub fn run(mut self) -> Result<TrainedFlow> {
        let (options, config) = self.settle()?;
        let (mut flow, key) = (self.build_flow(&config)?, Key::new(config.seed));
        let folder = self.folder.as_ref().map(RunFolder::open).transpose()?;
        if let Some(path) = &self.folder {
            (self.on_note)(&format!("run folder {}", path.display()));
        }
        let found = match &folder {
            Some(folder) => self.find(folder)?,
            None => None,
        };
        let resumed = found.is_some();
        // What is held out is by the run's own seed, and so is what becomes of gray levels by its own transform.
        let mut prepared = match &found {
            Some(checkpoint) => self.data.prepare(&checkpoint.header.config)?,
            None => self.data.prepare(&config)?,
        };
        let (header, state) = if let Some(checkpoint) = found {
            self.resume(checkpoint, &mut prepared, (&options, &config))?
        } else {
            if self.flow.is_none() {
                prepared.set_ends(&mut flow);
            }
            let state = step::begin(&config, flow, &key);
            // The session gives the run its number.
            let (frames, parts) = (prepared.frames.clone(), Some(prepared.parts));
            (RunInfo { run: String::new(), options, config, frames, parts }, state)
        };
        Session::new(self, prepared, header, state, folder, resumed)?.run()
    }

    /// The options, with the preset that the data lead to, and the config that follows from all that was set.
    fn settle(&self) -> Result<(TrainOptions, TrainConfig)> {
        let mut options = self.options.clone();
        options.check()?;
        let config = if let Some(config) = &self.config {
            check_kind(&options, &self.data)?;
            if let Some(other) = options.preset.as_ref().filter(|asked| **asked != config.preset) {
                let (value, reason) = (other.name().to_owned(), "the given config has its own");
                return Err(TrainError::Useless { option: "--preset", value, reason }.into());
            }
            options.preset = Some(config.preset.clone());
            config.clone().with(&options)
        } else {
            check_preset(&mut options, &self.data)?;
            TrainConfig::of(&options, self.data.shape())
        };
        let config = if let Some(flow) = &self.flow {
            options.check_given_flow()?;
            TrainConfig { model: ModelConfig::of(flow), ..config }
        } else {
            super::bounds::check_model(&config)?;
            config
        };
        let (dim, name, of_data) = (config.model.dim, self.data.name(), self.data.dim());
        if dim != of_data {
            let reason = format!("the flow has {dim} dimensions and the points of {name} have {of_data}");
            return Err(Error::Model { reason });
        }
        Ok((options, config))
    }

    fn build_flow(&self, config: &TrainConfig) -> Result<Flow> {
        match &self.flow {
            Some(flow) => Ok(flow.clone()),
            None => config.model.build(&Key::new(config.seed).split::<2>()[0]),
        }
    }
}

/// Refuses fields and transforms of images for other data.
fn check_kind(options: &TrainOptions, data: &TrainingData) -> Result<()> {
    let fields = [
        ("--field", options.field.map(ModelKind::name)),
        ("--pixels", options.pixels.map(PixelTransformKind::name)),
    ];
    let found = fields.into_iter().find_map(|(option, value)| Some((option, value?)));
    match found.filter(|_| !matches!(data, TrainingData::Images(..))) {
        None => Ok(()),
        Some((option, value)) => {
            let (value, reason) = (value.to_owned(), "it needs a set of images, and the data are none");
            Err(TrainError::Useless { option, value, reason }.into())
        }
    }
}

fn refused(option: &'static str, value: &str, range: &'static str) -> Result<()> {
    Err(TrainError::Option { option, value: value.to_owned(), range }.into())
}

/// Gives points and images the presets of their own, and refuses those of other data.
fn check_preset(options: &mut TrainOptions, data: &TrainingData) -> Result<()> {
    check_kind(options, data)?;
    if let TrainingData::Images(images, _) = data {
        let preset = options.preset.get_or_insert(Preset::Images);
        if *preset != Preset::Images {
            return refused("--preset", preset.name(), "images for a set of images");
        }
        if let (Some(field @ ModelKind::ConcatSquash), Some(_)) = (options.field, images.classes()) {
            return Err(TrainError::NoClasses { field: field.name() }.into());
        }
        return Ok(());
    }
    if options.preset == Some(Preset::Images) {
        return refused("--preset", "images", "default or points unless the data are a set of images");
    }
    if let Some(Preset::Given(name)) = &options.preset {
        return refused("--preset", name, "default, points or images unless a config is given");
    }
    if !matches!(data, TrainingData::Image(_)) {
        options.preset.get_or_insert(Preset::Points);
    }
    Ok(())
}
