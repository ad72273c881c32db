//! `Density`: what to train on what, where to, and who is told; then one call that runs it.
//!
//! The builder only collects. [`Trainer::run`] finds out whether there is a run to [`resume`], and hands over to the
//! session, which knows nothing of options.

mod resume;

pub(super) use resume::RESTART;

use super::plan::PhasePlan;
use super::progress::{Activity, Progress};
use super::session::Session;
use super::state::TrainState;
use super::step;
use super::{
    Flow, ModelConfig, ModelKind, Parts, PixelTransformKind, Preset, TrainConfig, TrainError, TrainOptions,
    TrainedFlow, TrainingData,
};
use crate::cnf::Cnf;
use crate::data::Standardizer;
use crate::error::Result;
use crate::eval::Frames;
use crate::io::Fnv;
use crate::io::run::RunFolder;
use crate::nn::{AnyVelocityField, VelocityField, is_fixed};
use crate::tensor::{Key, Tensor, Tree};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// What a checkpoint says of its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Tells runs apart: a number of everything that the first update begins with. What else lies in the folder has it too. Empty in
    /// checkpoints of before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The options as they were given.
    pub options: TrainOptions,
    /// What they led to.
    pub recipe: TrainConfig,
    /// What of its data the density needs.
    #[serde(flatten)]
    pub frames: Frames,
    /// How many rows each part has; none in checkpoints of before there was a test part.
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
        self.recipe.model.dim
    }

    /// The way between standardized coordinates and those that people see: pixels, or the units of points.
    pub fn standard(&self) -> Standardizer {
        self.frames.standard(self.dim())
    }
}

/// Learns the density of an image or of points; see [`Trainer::run`].
pub struct Trainer<'a> {
    pub(super) flow: Flow,
    pub(super) data: TrainingData,
    pub(super) options: TrainOptions,
    pub(super) recipe: TrainConfig,
    pub(super) folder: Option<PathBuf>,
    pub(super) started: Instant,
    pub(super) on_update: Box<dyn FnMut(&Progress) + 'a>,
    pub(super) on_note: Box<dyn FnMut(&str) + 'a>,
    pub(super) on_stage: Box<dyn FnMut(Activity, f64) + 'a>,
    pub(super) stop: Box<dyn FnMut() -> bool + 'a>,
    /// Whether a run that lies in the folder is moved aside.
    pub(super) restart: bool,
    /// Whether the recipe follows from the options, and a resumed run may leave them out.
    by_options: bool,
}

impl<'a> Trainer<'a> {
    /// A flow and the data whose density it is to learn (an image, [`Points`](crate::data::Points), a
    /// [`Toy`](crate::data::ToyDensity), an [`ImageSet`](crate::data::ImageSet)), by the default recipe for such data.
    ///
    /// Flow matching solves nothing; the flow's own settings are those of maximum likelihood.
    ///
    /// # Panics
    /// When the flow's dimension is not that of the data.
    #[track_caller]
    pub fn new<D: VelocityField + Into<AnyVelocityField>>(
        flow: Cnf<D>,
        data: impl Into<TrainingData>,
    ) -> Trainer<'a> {
        let (settings, data) = (flow.settings, data.into());
        let (of_flow, of_data) = (flow.blocks[0].dim(), data.dim());
        assert!(of_flow == of_data, "a flow over {of_flow} dimensions learns no points of {of_data}");
        let mut flow = Cnf::with_blocks(flow.blocks.into_iter().map(Into::into).collect(), flow.base);
        flow.settings = settings;
        let mut by_data = TrainOptions::default();
        // Without options there is nothing to refuse.
        let recipe = match check_preset(&mut by_data, &data) {
            Ok(()) => TrainConfig::of(&by_data, data.shape()),
            Err(e) => unreachable!("invariant: {e}"),
        };
        let recipe = TrainConfig { model: ModelConfig::of(&flow), ..recipe };
        Trainer::build(flow, data, TrainOptions::default(), recipe, false)
    }

    /// A flow and a recipe as options ask for them. Points, toys and sets of images have presets of their own.
    ///
    /// # Errors
    /// Options out of range; a preset of other data.
    pub fn from_options(options: &TrainOptions, data: impl Into<TrainingData>) -> Result<Trainer<'a>> {
        let (mut options, data) = (options.clone(), data.into());
        options.check()?;
        check_preset(&mut options, &data)?;
        let recipe = TrainConfig::of(&options, data.shape());
        Trainer::by_options(options, data, recipe)
    }

    /// A flow and a recipe of another's making, in which options change what they name. Its
    /// [`preset`](TrainConfig::preset) is [`Preset::Given`], a name by which a resumed run knows it.
    ///
    /// # Errors
    /// Options out of range.
    ///
    /// # Panics
    /// When the recipe's dimension is not that of the data.
    #[track_caller]
    pub fn from_recipe(
        recipe: TrainConfig,
        options: &TrainOptions,
        data: impl Into<TrainingData>,
    ) -> Result<Trainer<'a>> {
        let (of_recipe, data) = (recipe.model.dim, data.into());
        assert!(
            of_recipe == data.dim(),
            "a recipe over {of_recipe} dimensions learns no points of {}",
            data.dim()
        );
        options.check()?;
        check_field(options, &data)?;
        let options = TrainOptions { preset: Some(recipe.preset.clone()), ..options.clone() };
        let recipe = recipe.with(&options);
        Trainer::by_options(options, data, recipe)
    }

    fn by_options(options: TrainOptions, data: TrainingData, recipe: TrainConfig) -> Result<Trainer<'a>> {
        super::bounds::check_model(&recipe)?;
        let [model_key, _] = Key::new(recipe.seed).split();
        let flow = recipe.model.build(&model_key)?;
        Ok(Trainer::build(flow, data, options, recipe, true))
    }

    fn build(
        flow: Flow,
        data: TrainingData,
        options: TrainOptions,
        recipe: TrainConfig,
        by_options: bool,
    ) -> Self {
        Trainer {
            flow,
            data,
            options,
            recipe,
            folder: None,
            started: Instant::now(),
            on_update: Box::new(|_| {}),
            on_note: Box::new(|_| {}),
            on_stage: Box::new(|_, _| {}),
            stop: Box::new(|| false),
            restart: false,
            by_options,
        }
    }

    /// Updates of all phases together.
    pub fn updates(mut self, updates: u64) -> Self {
        self.options.updates = Some(updates);
        self.recipe = self.recipe.with_updates(updates);
        self
    }

    /// Another recipe; its model is that of the flow given.
    pub fn recipe(mut self, recipe: TrainConfig) -> Self {
        self.recipe = TrainConfig { model: self.recipe.model, ..recipe };
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

    /// Told after every update.
    pub fn on_update(mut self, f: impl FnMut(&Progress) + 'a) -> Self {
        self.on_update = Box::new(f);
        self
    }

    /// Told what a person should know: where the run is kept, that a run is resumed or moved aside, that rows are lost, that mass is missing.
    pub fn on_note(mut self, f: impl FnMut(&str) + 'a) -> Self {
        self.on_note = Box::new(f);
        self
    }

    /// Told before something beside updates that takes long, and while it is done: what, and which share of it is done.
    pub fn on_stage(mut self, f: impl FnMut(Activity, f64) + 'a) -> Self {
        self.on_stage = Box::new(f);
        self
    }

    /// When the process started, for time limits and the time of the first update; now, where it is not said.
    pub fn started(mut self, at: Instant) -> Self {
        self.started = at;
        self
    }

    /// The seed of the recipe.
    pub fn seed(&self) -> u64 {
        self.recipe.seed
    }

    /// The weights that are trained.
    pub fn num_params(&self) -> usize {
        num_weights(&self.flow)
    }

    /// What an update of each phase does and needs; nothing is run.
    ///
    /// # Errors
    /// Settings that a solve refuses.
    pub fn plan(&self) -> Result<Vec<PhasePlan>> {
        let source = self.data.prepare(&self.recipe)?.source;
        let state = step::begin(&self.recipe, self.flow.clone(), &Key::new(self.recipe.seed));
        let plan = |phase: &super::Phase| {
            let planned = step::Step::new(&self.recipe, phase, &source, 0).plan(&state)?;
            Ok(PhasePlan::of(&self.recipe, phase, &planned))
        };
        self.recipe.phases.iter().filter(|p| p.updates > 0).map(plan).collect()
    }

    /// Runs it: the recipe's phases, then the measures and pictures of the end.
    ///
    /// # Errors
    /// A folder that cannot be written, is another process's, or holds another run or a damaged one (nothing is changed
    /// then); a solve that ended early, a loss that is not finite. What the last checkpoint holds is still there then.
    pub fn run(mut self, key: &Key) -> Result<TrainedFlow> {
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
            Some(checkpoint) => self.data.prepare(&checkpoint.header.recipe)?,
            None => self.data.prepare(&self.recipe)?,
        };
        let (header, state) = if let Some(checkpoint) = found {
            self.resume(checkpoint, &mut prepared, key)?
        } else {
            let (options, recipe) = (self.options.clone(), self.recipe.clone());
            if self.by_options {
                prepared.set_ends(&mut self.flow);
            }
            // The session gives the run its number.
            let (frames, parts) = (prepared.frames.clone(), Some(prepared.parts));
            let header = RunInfo { run: String::new(), options, recipe, frames, parts };
            (header, step::begin(&self.recipe, self.flow.clone(), key))
        };
        Session::new(self, prepared, header, state, folder, resumed)?.run()
    }
}

/// Refuses fields and transforms of images for other data.
fn check_field(options: &TrainOptions, data: &TrainingData) -> Result<()> {
    let fields = [
        ("--field", options.field.map(ModelKind::name)),
        ("--pixels", options.pixels.map(PixelTransformKind::name)),
    ];
    let found = fields.into_iter().find_map(|(option, value)| Some((option, value?)));
    match found.filter(|_| !matches!(data, TrainingData::Images(..))) {
        None => Ok(()),
        Some((option, value)) => refused(option, value, "left out: it is of sets of images"),
    }
}

fn refused(option: &'static str, value: &str, range: &'static str) -> Result<()> {
    Err(TrainError::Option { option, value: value.to_owned(), range }.into())
}

/// Gives points and images the presets of their own, and refuses those of other data.
fn check_preset(options: &mut TrainOptions, data: &TrainingData) -> Result<()> {
    check_field(options, data)?;
    if let TrainingData::Images(images, _) = data {
        let preset = options.preset.get_or_insert(Preset::Images);
        if *preset != Preset::Images {
            return refused("--preset", preset.name(), "images, for sets of images");
        }
        if let (Some(field @ ModelKind::ConcatSquash), Some(_)) = (options.field, images.classes()) {
            return Err(TrainError::NoClasses { field: field.name() }.into());
        }
        return Ok(());
    }
    if options.preset == Some(Preset::Images) {
        return refused(
            "--preset",
            "images",
            "default, points or a recipe's own, for data that are no sets of images",
        );
    }
    if let Some(Preset::Given(name)) = &options.preset {
        return refused("--preset", name, "default, points or images, without a recipe");
    }
    if !matches!(data, TrainingData::Image(_)) {
        options.preset.get_or_insert(Preset::Points);
    }
    Ok(())
}

/// Trained numbers of a flow.
pub fn num_weights(flow: &Flow) -> usize {
    flow.named_leaves()
        .iter()
        .filter(|(path, _)| !is_fixed(path))
        .map(|(_, t): &(String, Tensor)| t.size())
        .sum()
}
