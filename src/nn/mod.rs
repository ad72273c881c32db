//! Layers, and the vector fields of flows made of them.
//!
//! A layer is a tree of tensors with a `forward`; a [`VelocityField`] is a tree with a vector field
//! `dy/dt = f(t, y)`. Both are plain functions of their own tensors: nothing here knows how a field
//! is solved, trained or stored. Rows are independent everywhere (no batch statistics), which is what
//! lets a solve work on tiles of rows.
//!
//! Layers are composed of the primitive operations and have no derivative rules of their own, so each is
//! differentiable to every order, in f32 and f64. Weights are drawn in f32.
//!
//! Alternatives considered: layers as boxed trait objects (cannot be named in a file, need a walk of
//! their own) and layers generic over the activation (a type for each network). A closed enum where
//! one type must stand for several ([`AnyVelocityField`]), a trait where users add their own ([`VelocityField`]).

mod attention;
mod conv;
mod drift;
mod embedding;
mod fixed;
mod fourier;
mod gru;
mod init;
mod layer_norm;
mod level_mixture;
mod linear;
mod mlp;
mod softmax;
mod time_layers;
mod unet;

pub use attention::{AttentionOptions, MultiHeadAttention, causal_mask};
pub use conv::{Conv2d, ConvTranspose2d, Padding, upsample};
pub use drift::{AnyVelocityField, VelocityField};
pub use embedding::{Embedding, GaussianFourierProjection, timestep_embedding};
pub use fixed::{Buffer, Frozen, freeze, is_fixed, num_params, num_params_where};
pub use fourier::{FourierMlp, golden_frequencies, normal_frequencies};
pub use gru::GruCell;
pub use init::{Init, ParseInitError};
pub use layer_norm::LayerNorm;
pub use level_mixture::LevelMixture;
pub use linear::{Activation, Linear, dropout};
pub use mlp::Mlp;
pub use softmax::{log_softmax, softmax};
pub use time_layers::{
    BlendLinear, BlendMlp, ConcatLinear, ConcatMlp, ConcatSquash, ConcatSquashLinear, SquashLinear,
    SquashMlp, TimeLayer, TimeMlp,
};
pub use unet::{FilmBlock, UNet, UNetConfig, UNetLevel};

#[cfg(test)]
mod tests;
