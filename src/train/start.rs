//! The start of a run on a table: a mixture of normal densities fitted to the training rows.
//!
//! A flow whose field is [added to the velocity of the mixture](crate::nn::extra::MixturePreconditioned), with a network
//! that returns 0, is the mixture. Training then learns only what the mixture misses. On a small table that may be
//! nothing: if no later check finds better weights than those before the first update, the flow ends as the mixture,
//! fitted again to the training and validation rows together, because nothing else was learned from either.
//!
//! A mixture needs two training rows per parameter. By default, tables with fewer start from a normal density; their
//! configuration has a mixture of 0 normals.
//!
//! Rank 0 fits the mixture and shares the state of the run, so all ranks have the same.

use super::best::Measured;
use super::data::Prepared;
use super::run::Trainer;
use super::session::Session;
use super::state::{Source, Tables, noise_of};
use super::{FieldConfig, Flow, InitialFlowKind, Objective, TrainConfig, TrainError, TrainingData};
use crate::cnf::NormalMixture;
use crate::data::subset;
use crate::error::Result;
use crate::eval::HeldOut;
use crate::nn::AnyVelocityField;
use crate::tensor::{Key, Tree};

/// The largest number of rows to which a mixture is fitted.
const MOST_ROWS: usize = 20_000;
/// The largest number of columns: the velocity of a mixture costs their square per component and row.
const MOST_COLUMNS: usize = 64;
/// Combined with a run's seed, so that the fit has its own random numbers.
const START_STREAM: u64 = 0x3a27_0f7e_57da_7a02;

/// The note of a run that ends as its mixture.
pub(super) const FITTED_AGAIN: &str = "no update improved the mixture from which the flow started: the flow is this mixture, fitted again to training and validation rows";

/// The second note of such a run with classes.
pub(super) const CLASSES_ALIKE: &str = "warning: all classes have the same density, because the mixture does not know the classes; give the run more updates, a smaller `lr` or more rows";

impl TrainConfig {
    /// This configuration with its start settled: a table starts from a mixture by default, if its model can. `is_given`
    /// says that the configuration is the caller's, which has a start of its own.
    ///
    /// # Errors
    /// [`TrainError::Useless`] for a mixture that the data or the model do not support.
    pub(super) fn with_start(
        mut self,
        data: &TrainingData,
        asked: Option<InitialFlowKind>,
        is_given: bool,
    ) -> Result<TrainConfig> {
        let obstacle = self.obstacle(data);
        if asked.is_none() && !is_given && obstacle.is_none() {
            self.start = InitialFlowKind::Mixture;
        }
        if self.start == InitialFlowKind::Normal {
            return Ok(self);
        }
        if let Some(reason) = obstacle {
            let value = InitialFlowKind::Mixture.name().to_owned();
            return Err(TrainError::Useless { option: "start", value, reason }.into());
        }
        if let FieldConfig::Fourier { preconditioned, .. } = &mut self.model.field {
            *preconditioned = true;
        }
        Ok(self)
    }

    /// Why a run cannot start from a mixture.
    fn obstacle(&self, data: &TrainingData) -> Option<&'static str> {
        let model = &self.model;
        if !matches!(data, TrainingData::Points(..)) {
            return Some("it needs a table, to whose rows a mixture is fitted");
        }
        if !matches!(model.field, FieldConfig::Fourier { .. }) || !model.unlike.is_empty() {
            return Some("it needs a network of Fourier features");
        }
        if self.phases.iter().all(|phase| phase.objective == Objective::MaximumLikelihood) {
            return Some("it needs flow matching, whose paths begin at noise");
        }
        if model.blocks > 1 || model.t1 != 1.0 {
            return Some("it needs a single block with an integration time of 1");
        }
        (model.dim > MOST_COLUMNS).then_some("it needs a table of at most 64 columns")
    }

    /// This configuration with the start of another one, as its run has settled and fitted it.
    pub(super) fn with_start_of(mut self, of: &TrainConfig) -> TrainConfig {
        self.start = of.start;
        self.with_fit_of(of)
    }

    /// This configuration; if it starts from a mixture like another one, with the number of normals fitted for that.
    pub(super) fn with_fit_of(mut self, of: &TrainConfig) -> TrainConfig {
        if let (
            InitialFlowKind::Mixture,
            FieldConfig::Fourier { preconditioned, normals, .. },
            FieldConfig::Fourier { preconditioned: of_preconditioned, normals: of_normals, .. },
        ) = (self.start, &mut self.model.field, of.model.field)
        {
            (*preconditioned, *normals) = (of_preconditioned, of_normals);
        }
        self
    }

    /// The number of normal densities of the mixture from which the flow started; 0 if the rows were too few for one.
    /// `None` for another start.
    pub(super) fn start_normals(&self) -> Option<usize> {
        match (self.start, self.model.field) {
            (InitialFlowKind::Mixture, FieldConfig::Fourier { normals, .. }) => Some(normals),
            _ => None,
        }
    }
}

impl Trainer<'_> {
    /// The flow of a new run that starts from a mixture, with the number of normals in its configuration; any other flow
    /// as it is.
    pub(super) fn started_flow(
        &self,
        config: &mut TrainConfig,
        prepared: &Prepared,
        flow: Flow,
    ) -> Result<Flow> {
        if self.flow.is_some() || config.start == InitialFlowKind::Normal {
            return Ok(flow);
        }
        let key = Key::new(config.seed ^ START_STREAM);
        let rows = training_rows(&prepared.source, config.seed);
        let most = NormalMixture::most_components(rows.len() / config.model.dim, config.model.dim);
        if most == 0 && self.options.start.is_none() {
            return Ok(flow);
        }
        let mixture = NormalMixture::fit(&rows, config.model.dim, &key);
        if let FieldConfig::Fourier { normals, .. } = &mut config.model.field {
            *normals = mixture.num_components();
        }
        Ok(with_mixture(self.build_flow(config)?, &mixture))
    }
}

/// The weights with which a run ends, if `flow` is the best flow of its checks: the flow before the first update is fitted
/// again to training and validation rows.
pub(super) fn fitted_again(session: &Session, measured: &Measured, flow: Flow) -> Flow {
    let HeldOut::Rows { validation, .. } = &session.held_out else { return flow };
    let Some(mixture) = mixture(&flow).filter(|_| measured.update == 0) else { return flow };
    let mut rows = training_rows(&session.source, session.header.config.seed);
    rows.extend(validation.points.iter().copied().map(f64::from));
    with_mixture(flow, &mixture.fit_again(&rows))
}

/// Whether the averaged weights have a mixture that was fitted again: updates copy it from the model.
pub(super) fn is_fitted_again(session: &Session) -> bool {
    let tensors = |flow: &Flow| -> Option<Vec<Vec<f64>>> {
        let AnyVelocityField::MixturePreconditionedFourier(field) = flow.blocks.first()? else { return None };
        let buffers = [&field.log_weights, &field.centers, &field.rotations, &field.variances];
        Some(buffers.iter().flat_map(|buffer| buffer.leaves()).map(|leaf| leaf.to_vec()).collect())
    };
    tensors(&session.state.ema) != tensors(&session.state.model)
}

/// For example "a mixture of 3 normal densities".
pub(super) fn named(normals: usize) -> String {
    match normals {
        0 => "a normal density (too few rows for a mixture)".to_owned(),
        1 => "a mixture of 1 normal density".to_owned(),
        count => format!("a mixture of {count} normal densities"),
    }
}

/// The mixture of the flow's only block.
fn mixture(flow: &Flow) -> Option<NormalMixture> {
    match &flow.blocks[..] {
        [AnyVelocityField::MixturePreconditionedFourier(field)] => Some(NormalMixture::of_field(field)),
        _ => None,
    }
}

/// The flow with another mixture of as many normals.
fn with_mixture(mut flow: Flow, mixture: &NormalMixture) -> Flow {
    for block in &mut flow.blocks {
        if let AnyVelocityField::MixturePreconditionedFourier(field) = block {
            *field = mixture.precondition(field.field.clone());
        }
    }
    flow
}

/// Training rows in the coordinates of the model, row-major: all of them or a random part, with the noise of columns that
/// are dequantized.
fn training_rows(source: &Source, seed: u64) -> Vec<f64> {
    let Source::Tables(Tables::Points(table)) = source else {
        unreachable!("invariant: only a table starts from a mixture")
    };
    let (n, d) = (table.rows.shape()[0], table.rows.shape()[1]);
    let rows = match &table.steps {
        None => table.rows.to_vec(),
        Some(steps) => {
            let key = Key::new(seed ^ START_STREAM).fold_in(1u32);
            (&table.rows + noise_of(steps, n, &key)).to_vec()
        }
    };
    if n <= MOST_ROWS {
        return rows;
    }
    let all: Vec<usize> = (0..n).collect();
    let few = subset(&all, None, MOST_ROWS, seed ^ START_STREAM);
    few.into_iter().flat_map(|row| rows[row * d..(row + 1) * d].to_vec()).collect()
}
