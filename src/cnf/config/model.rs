//! The architecture of a flow. It determines the names and shapes of a checkpoint's tensors.

mod size;

use super::SolveConfig;
use crate::cnf::Cnf;
use crate::error::{Error, Result};
use crate::nn::{
    Activation, AnyVelocityField, ConcatSquash, FourierMlp, LevelMixture, MixturePreconditioned, Mlp,
    Preconditioned, UNet, UNetConfig, VelocityField, golden_frequencies, normal_frequencies,
};
use crate::tensor::{Key, Tensor};
use serde::{Deserialize, Serialize};

/// Folded into the key of the frequencies. The keys of layers have small numbers folded in, so they differ.
const FREQUENCIES: u32 = u32::MAX;

/// Maximum sizes: a header with larger ones is corrupt. The sizes of real flows are smaller.
const MOST_BLOCKS: usize = 1 << 10;
const MOST_WIDTH: usize = 1 << 16;
const MOST_CLASSES: usize = 1 << 16;
const MOST_LEVELS: usize = 16;
const MOST_NORMALS: usize = 1 << 10;
const MOST_NUMBERS: usize = 1 << 24;

/// A flow whose kinds of fields are chosen at run time.
pub type Flow = Cnf<AnyVelocityField>;

/// The architecture of a flow, without its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The kind of field in every block, unless `unlike` lists the blocks.
    pub field: FieldConfig,
    /// Sizes of the hidden layers in every block, unless `unlike` lists the blocks.
    pub hidden: Vec<usize>,
    /// The number of blocks.
    pub blocks: usize,
    /// Length of a row.
    pub dim: usize,
    /// Integration time per block.
    pub t1: f64,
    /// How the flow is solved in training.
    pub solve: SolveConfig,
    /// Kind and hidden layers of each block, from the base end to the data end. Empty if `field` and `hidden`
    /// describe every block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<(FieldConfig, Vec<usize>)>,
}

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldConfig {
    /// [`FourierMlp`].
    Fourier {
        /// Number of fixed frequencies.
        features: usize,
        /// `log_max` of a new field's [`golden_frequencies`] or [`normal_frequencies`]. A stored field has its own.
        log_frequency_max: f64,
        /// The damping of the frequencies, 0 for none.
        #[serde(default, skip_serializing_if = "is_default")]
        damping: f64,
        /// Whether the field is [`Preconditioned`].
        #[serde(default, skip_serializing_if = "is_default")]
        preconditioned: bool,
        /// The number of normal densities of a [`MixturePreconditioned`] field; 0 for another field.
        #[serde(default, skip_serializing_if = "is_default")]
        normals: usize,
        /// Number of classes; 0 for an unconditional field.
        #[serde(default, skip_serializing_if = "is_default")]
        classes: usize,
    },
    /// [`ConcatSquash`].
    ConcatSquash,
    /// [`Mlp`].
    Mlp {
        /// The activation function.
        activation: ActivationKind,
        /// Whether t is an input.
        time: bool,
        /// Number of classes; 0 for an unconditional field.
        #[serde(default)]
        classes: usize,
    },
    /// [`UNet`], or a [`LevelMixture`] with one; the hidden sizes are the channels of its levels.
    UNet {
        /// Range ends per pixel of a [`LevelMixture`]; 0 for a network that predicts the velocity.
        #[serde(default)]
        ends: usize,
        /// Height, width and channels of an image.
        image: [usize; 3],
        /// Side of a patch in pixels. Each patch becomes one position.
        patch: usize,
        /// Blocks on the way down, per level except the coarsest.
        blocks_down: usize,
        /// Blocks of the coarsest level.
        blocks_middle: usize,
        /// Blocks on the way up, per level except the coarsest.
        blocks_up: usize,
        /// Width of the time embedding.
        time: usize,
        /// Number of classes; 0 for an unconditional field.
        #[serde(default)]
        classes: usize,
    },
}

/// A stored [`Activation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants are those of Activation")]
pub enum ActivationKind {
    Tanh,
    Silu,
    Softplus,
    Relu,
    Gelu,
    Elu,
    LeakyRelu,
    Sigmoid,
    Identity,
}

macro_rules! activations {
    ($($name:ident)*) => {
        impl From<Activation> for ActivationKind {
            fn from(a: Activation) -> Self { match a { $(Activation::$name => ActivationKind::$name),* } }
        }
        impl From<ActivationKind> for Activation {
            fn from(a: ActivationKind) -> Self { match a { $(ActivationKind::$name => Activation::$name),* } }
        }
    };
}
activations!(Tanh Silu Softplus Relu Gelu Elu LeakyRelu Sigmoid Identity);

impl ModelConfig {
    /// A new flow, with weights sampled from the key.
    ///
    /// # Errors
    /// [`Error::Model`] for invalid values, [`Error::Config`] for an unknown method.
    pub fn build(&self, key: &Key) -> Result<Flow> {
        self.check().map_err(|reason| Error::Model { reason })?;
        let block = |i: usize| {
            let (field, hidden) = self.kind(i);
            self.field(field, hidden, &key.fold_in(Tensor::from(i as u32)))
        };
        let blocks = (0..self.blocks).map(block).collect();
        let mut flow = Cnf::from_blocks(blocks);
        flow.settings = self.solve.settings(self.t1)?;
        Ok(flow)
    }

    /// A flow into which the tensors of a file with `numbers` numbers fit.
    ///
    /// # Errors
    /// As [`ModelConfig::build`]; and if the file has fewer numbers than such a flow has weights, before they are allocated.
    pub(crate) fn build_like(&self, numbers: usize) -> Result<Flow> {
        self.check().map_err(|reason| Error::Model { reason })?;
        let fewest = self.fewest_weights();
        if fewest > numbers {
            let reason =
                format!("the header describes at least {fewest} weights, but the file has {numbers} numbers");
            return Err(Error::Model { reason });
        }
        self.build(&Key::new(0))
    }

    /// Rejects impossible values: the header of an old or corrupt checkpoint may contain anything.
    fn check(&self) -> Result<(), String> {
        most("the number of blocks is", self.blocks, MOST_BLOCKS)?;
        most("the length of a row is", self.dim, MOST_NUMBERS)?;
        let (described, blocks) = (self.unlike.len(), self.blocks);
        if described != 0 && described != blocks {
            return Err(format!("the header describes {described} blocks, but the flow has {blocks}"));
        }
        if !self.t1.is_finite() {
            return Err(format!("t1 must be finite, got {:?}", self.t1));
        }
        (0..described.max(1))
            .map(|i| self.kind(i))
            .try_for_each(|(field, layers)| self.check_field(field, layers))
    }

    /// Kind and hidden layers of a block.
    fn kind(&self, i: usize) -> (FieldConfig, &[usize]) {
        self.unlike.get(i).map_or((self.field, &self.hidden), |(field, hidden)| (*field, hidden))
    }

    fn check_field(&self, field: FieldConfig, layers: &[usize]) -> Result<(), String> {
        most("the number of layers is", layers.len() + 1, MOST_BLOCKS)?;
        layers.iter().try_for_each(|&width| most("the width of a layer is", width, MOST_WIDTH))?;
        match field {
            FieldConfig::Fourier { features, log_frequency_max, damping, normals, classes, .. } => {
                at_most("the number of classes is", classes, MOST_CLASSES)?;
                most("the number of frequencies is", features, MOST_WIDTH)?;
                at_most("the number of normal densities is", normals, MOST_NORMALS)?;
                let rotations = self.dim.saturating_mul(self.dim).saturating_mul(normals);
                at_most("the number of elements of their rotations is", rotations, MOST_NUMBERS)?;
                let numbers = [("log_frequency_max", log_frequency_max), ("damping", damping)];
                match numbers.into_iter().find(|(_, x)| !x.is_finite()) {
                    None => Ok(()),
                    Some((name, x)) => Err(format!("{name} must be finite, got {x:?}")),
                }
            }
            FieldConfig::UNet {
                ends,
                image,
                patch,
                blocks_down,
                blocks_middle,
                blocks_up,
                time,
                classes,
            } => {
                let pixels = image.iter().try_fold(1_usize, |n, &side| n.checked_mul(side));
                if pixels != Some(self.dim) {
                    return Err(format!("images have shape {image:?}, but rows have length {}", self.dim));
                }
                most("the number of levels is", layers.len(), MOST_LEVELS)?;
                for blocks in [blocks_down, blocks_middle, blocks_up] {
                    at_most("the number of blocks of a level is", blocks, MOST_BLOCKS)?;
                }
                most("the side of a patch is", patch, MOST_WIDTH)?;
                most("the width of the time embedding is", time, MOST_WIDTH)?;
                at_most("the number of classes is", classes, MOST_CLASSES)?;
                at_most("the number of range ends per pixel is", ends, 255)
            }
            FieldConfig::Mlp { classes, .. } => at_most("the number of classes is", classes, MOST_CLASSES),
            FieldConfig::ConcatSquash => Ok(()),
        }
    }

    fn field(&self, field: FieldConfig, hidden: &[usize], key: &Key) -> AnyVelocityField {
        match field {
            FieldConfig::Fourier {
                features,
                log_frequency_max,
                damping,
                preconditioned,
                normals,
                classes,
            } => {
                let frequencies = if self.dim == 2 {
                    golden_frequencies(features, log_frequency_max)
                } else {
                    // With this factor, the mean length of a frequency hardly depends on the number of coordinates.
                    let key = key.fold_in(FREQUENCIES);
                    normal_frequencies(self.dim, features, log_frequency_max, &key)
                        * (self.dim as f64).powf(-0.5)
                };
                let net = FourierMlp::with_classes(frequencies, hidden, classes, key).damping(damping);
                match (normals, preconditioned) {
                    (0, false) => net.into(),
                    (0, true) => Preconditioned::new(net).into(),
                    _ => MixturePreconditioned::standard(normals, without_output(net)).into(),
                }
            }
            FieldConfig::ConcatSquash => ConcatSquash::new(self.dim, hidden, key).into(),
            FieldConfig::Mlp { activation, time, classes } => {
                let sizes = [&[self.dim + usize::from(time) + classes], hidden, &[self.dim]].concat();
                Mlp::new(sizes, activation.into(), key).into()
            }
            FieldConfig::UNet {
                ends,
                image,
                patch,
                blocks_down,
                blocks_middle,
                blocks_up,
                time,
                classes,
            } => {
                let channels = hidden.to_vec();
                let [height, width, of_pixel] = image;
                let config = UNetConfig {
                    image_shape: [height, width, of_pixel * (ends + 1)],
                    patch,
                    channels,
                    blocks_down,
                    blocks_middle,
                    blocks_up,
                    time_dim: time,
                    num_classes: classes,
                };
                let net = UNet::new(&config, key);
                if ends == 0 {
                    net.into()
                } else {
                    LevelMixture::new(&Tensor::zeros([ends, self.dim]), net).into()
                }
            }
        }
    }

    /// The configuration of an existing flow.
    pub fn of(flow: &Flow) -> ModelConfig {
        let mut each: Vec<(FieldConfig, Vec<usize>)> = flow.blocks.iter().map(FieldConfig::of).collect();
        let (field, hidden) = each[0].clone();
        if each.iter().all(|block| *block == each[0]) {
            each.clear();
        }
        ModelConfig {
            field,
            hidden,
            blocks: flow.blocks.len(),
            dim: flow.base.dim,
            t1: flow.settings.t1,
            solve: SolveConfig::of(&flow.settings),
            unlike: each,
        }
    }
}

/// The flow of one class of a flow whose fields have classes. `None` for fields other than [`FourierMlp`]s.
pub(crate) fn of_class(flow: &Flow, class: usize) -> Option<Flow> {
    let block = |block: &AnyVelocityField| match block.clone() {
        AnyVelocityField::Fourier(net) => Some(net.of_class(class).into()),
        AnyVelocityField::PreconditionedFourier(net) => {
            Some(Preconditioned { field: net.field.of_class(class) }.into())
        }
        AnyVelocityField::MixturePreconditionedFourier(mut net) => {
            net.field = net.field.of_class(class);
            Some(net.into())
        }
        _ => None,
    };
    let blocks = flow.blocks.iter().map(block).collect::<Option<Vec<_>>>()?;
    Some(Flow { blocks, ..flow.clone() })
}

impl FieldConfig {
    fn of_fourier(net: &FourierMlp, preconditioned: bool, normals: usize) -> (FieldConfig, Vec<usize>) {
        let (features, damping, log_frequency_max) = (net.frequencies.get().shape()[1], net.damping, 0.0);
        let classes = net.num_classes();
        let field =
            FieldConfig::Fourier { features, log_frequency_max, damping, preconditioned, normals, classes };
        (field, hidden(&net.mlp))
    }

    /// The kind of a field and its hidden sizes.
    fn of(block: &AnyVelocityField) -> (FieldConfig, Vec<usize>) {
        match block {
            AnyVelocityField::Fourier(net) => FieldConfig::of_fourier(net, false, 0),
            AnyVelocityField::PreconditionedFourier(net) => FieldConfig::of_fourier(&net.field, true, 0),
            AnyVelocityField::MixturePreconditionedFourier(net) => {
                FieldConfig::of_fourier(&net.field, true, net.num_normals())
            }
            AnyVelocityField::ConcatSquash(net) => {
                let is_tanh = matches!(net.activation, Activation::Tanh);
                assert!(is_tanh, "run folders support ConcatSquash only with tanh, got {:?}", net.activation);
                let sizes = net.layers[1..].iter().map(|layer| layer.linear.inputs()).collect();
                (FieldConfig::ConcatSquash, sizes)
            }
            AnyVelocityField::Mlp(net) => {
                let (time, classes) = (net.inputs() != net.outputs(), net.num_classes());
                (FieldConfig::Mlp { activation: net.activation.into(), time, classes }, hidden(net))
            }
            AnyVelocityField::UNet(_) | AnyVelocityField::Levels(_) => {
                let (net, ends) = match block {
                    AnyVelocityField::Levels(levels) => (&levels.net, levels.ends.get().shape()[0]),
                    AnyVelocityField::UNet(net) => (net, 0),
                    _ => unreachable!("invariant: a U-Net or a level mixture"),
                };
                let UNetConfig {
                    image_shape: image,
                    patch,
                    channels,
                    blocks_down,
                    blocks_middle,
                    blocks_up,
                    time_dim: time,
                    num_classes: classes,
                } = net.config();
                let [height, width, channels_seen] = image;
                let field = FieldConfig::UNet {
                    ends,
                    image: [height, width, channels_seen / (ends + 1)],
                    patch,
                    blocks_down,
                    blocks_middle,
                    blocks_up,
                    time,
                    classes,
                };
                (field, channels)
            }
        }
    }
}

/// Whether a field of a header has the value that headers without it mean.
pub(crate) fn is_default<T: Default + PartialEq>(x: &T) -> bool {
    *x == T::default()
}

fn at_most(what: &str, found: usize, most: usize) -> Result<(), String> {
    match found <= most {
        true => Ok(()),
        false => Err(format!("{what} {found}, but it must be at most {most}")),
    }
}

fn most(what: &str, found: usize, most: usize) -> Result<(), String> {
    match (1..=most).contains(&found) {
        true => Ok(()),
        false => Err(format!("{what} {found}, but it must be between 1 and {most}")),
    }
}

/// The network with an output of 0: a flow that starts from a mixture is this mixture before the first update.
fn without_output(mut net: FourierMlp) -> FourierMlp {
    let last = net.mlp.layers.last_mut().expect("invariant: an MLP has a layer");
    last.weight = Tensor::zeros(last.weight.shape().clone());
    last.bias = last.bias.as_ref().map(|bias| Tensor::zeros(bias.shape().clone()));
    net
}

fn hidden(mlp: &Mlp) -> Vec<usize> {
    mlp.layers[1..].iter().map(crate::nn::Linear::inputs).collect()
}

#[cfg(test)]
mod tests;
