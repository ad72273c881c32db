//! Layers, and the vector fields of flows built from them.
//!
//! A layer is a tree of tensors with a `forward`. A [`VelocityField`] is a tree with a vector field
//! `dy/dt = f(t, y)`. Both are plain functions of their own tensors and do not depend on solving, training or
//! storage. The rows of a vector field are independent (no batch statistics), so a solve can work on tiles of rows.
//!
//! Layers consist of primitive operations and have no derivative rules of their own, so each is
//! differentiable to every order, in f32 and f64. Weights are initialized in f32.
//!
//! Alternatives considered: layers as boxed trait objects (files cannot name them, and they need their own
//! tree traversal), and layers generic over the activation (one type per network). A closed enum is used
//! where one type must cover several fields ([`AnyVelocityField`]), a trait where users add their own fields
//! ([`VelocityField`]).

mod attention;
mod conv;
mod embedding;
mod fixed;
mod fourier;
mod gru;
mod init;
mod layer_norm;
mod level_mixture;
mod linear;
mod mixture_preconditioned;
mod mlp;
mod preconditioned;
mod softmax;
mod time_layers;
mod unet;
mod velocity_field;

pub use attention::MultiHeadAttention;
pub use conv::Conv2d;
pub use embedding::Embedding;
pub use fixed::{Frozen, freeze, num_params};
pub use fourier::FourierMlp;
pub use gru::GruCell;
pub use layer_norm::LayerNorm;
pub use linear::{Activation, Linear, dropout};
pub use mlp::Mlp;
pub use time_layers::ConcatSquash;
pub use unet::UNet;
pub use velocity_field::VelocityField;

pub mod extra {
    //! Less common layers, and the parts of other layers.
    pub use super::attention::{AttentionOptions, causal_mask};
    pub use super::conv::{ConvTranspose2d, Padding, upsample};
    pub use super::embedding::{GaussianFourierProjection, timestep_embedding};
    pub use super::fixed::{Buffer, is_fixed, num_params_where};
    pub use super::fourier::{golden_frequencies, normal_frequencies};
    pub use super::init::{Init, ParseInitError};
    pub use super::level_mixture::LevelMixture;
    pub use super::mixture_preconditioned::MixturePreconditioned;
    pub use super::preconditioned::Preconditioned;
    pub use super::softmax::{log_softmax, softmax};
    pub use super::time_layers::{
        BlendLinear, BlendMlp, ConcatLinear, ConcatMlp, ConcatSquashLinear, SquashLinear, SquashMlp,
        TimeLayer, TimeMlp,
    };
    pub use super::unet::{FilmBlock, UNetConfig, UNetLevel};
    pub use super::velocity_field::AnyVelocityField;
}
pub(crate) use extra::*;

pub use crate::preludes::nn as prelude;

#[cfg(test)]
mod tests;
