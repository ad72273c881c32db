//! Training data as plain values: an image as a density over the plane, toy densities, points, sets of
//! images.
//!
//! - [`ImageDensity`]: one image as a density; darker pixels are more probable.
//! - [`ToyDensity`]: the usual 2-d benchmark densities, with their entropies.
//! - [`Points`]: rows of equal length from a file or an array, standardized, with the map back to their
//!   units.
//! - [`Rows`]: rows of numbers, as a trained density draws and evaluates them.
//! - [`ImageSet`]: images as points, from folders, IDX and `.npy` files, plain files of bytes of any size;
//!   [`MarginalTransform`] and [`LogitTransform`] map their pixel values to real numbers and back.
//!
//! The module handles pixels, probabilities and units. It does not depend on tensors, graphs or models. A
//! training program converts the tables of an [`ImageDensity`] to tensors and samples from them. The
//! density itself is not made of tensors, because the entropy, the figures and the held-out points use it
//! without a model.
//!
//! # Coordinates
//! An image has two coordinate systems with the same orientation, x to the right and y **down**, so array
//! rows, pixels and points agree without a flip:
//! - *pixel coordinates* `p`: the image covers `[0, width] x [0, height]`, so the center of the pixel in row r and
//!   column c is `(c + 1/2, r + 1/2)`;
//! - *standardized coordinates* `x = (p - mean) / std` per axis, in which models work and entropies and
//!   likelihoods are stated, in nats.
mod alias;
mod classes;
mod error;
pub(crate) mod estimate;
mod gray;
mod grid;
mod image_density;
mod image_set;
mod normal;
mod parts;
mod pixels;
mod points;
mod quadrature;
mod rounding;
mod rows;
mod split;
mod standard;
#[cfg(test)]
pub(crate) mod tests;
mod toy;
mod velocity;

pub use error::DataError;
pub use image_density::ImageDensity;
pub use image_set::ImageSet;
pub use pixels::{LogitTransform, MarginalTransform};
pub use points::Points;
pub use rows::Rows;
pub use standard::Standardizer;
pub use toy::ToyDensity;

pub mod extra {
    //! Building blocks of data, and statistics.
    pub use super::estimate::Estimate;
    pub use super::image_density::SamplingRule;
    pub use super::pixels::{PixelTransform, bits_per_dim, dequantize};
    pub use super::rounding::Rounding;
    pub use super::split::{Split, subset};
    pub use super::toy::ToyGrid;
    pub use super::velocity::MixtureVelocity;
}
pub(crate) use extra::*;

// Used by the command line, the benches and training.
#[doc(hidden)]
pub use self::{
    grid::Grid,
    image_density::JITTER_PIXELS,
    image_set::MEMORY_BUDGET,
    parts::{Given, HELD_OUT_SHARE, Parts},
    pixels::SMOOTHING,
    points::place,
};
pub(crate) use classes::numbers as class_numbers;
pub(crate) use estimate::grouped;
pub(crate) use image_density::Cover;
