//! Data to learn from, on the host: an image as a density over the plane, points, toy densities, sets of images.
//!
//! - [`ImageDensity`]: one picture, whose dark pixels are where the density is.
//! - [`ToyDensity`]: the densities over the plane that papers show, with their entropies.
//! - [`Points`]: rows of any length from a file or an array, standardized, their units kept.
//! - [`ImageSet`]: images as points, from folders, IDX and `.npy` files of any size; [`MarginalTransform`] and
//!   [`LogitTransform`] take their gray levels to real numbers and back.
//!
//! What it knows: pixels, probabilities, units. What it must never know: tensors, graphs, models. A training
//! program copies the public tables of an [`ImageDensity`] to where it computes, and draws from them there.
//! The alternative, a data set that hands out batches of tensors, would tie the definition of the density (which
//! the entropy, the pictures and the held-out points all share) to one way of computing.
//!
//! # Coordinates
//! Of one picture there are two frames with the same orientation, x to the right and y **down**, so that rows of an array, pixels
//! and points agree without a flip:
//! - *pixel coordinates* `p`: the image covers `[0, width] x [0, height]`, so the center of the pixel in row r and
//!   column c is `(c + 1/2, r + 1/2)`;
//! - *standardized coordinates* `x = (p - mean) / std` for each axis, in which models work and in which entropies and
//!   likelihoods are stated in nats.
mod alias;
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
mod split;
mod standard;
#[cfg(test)]
pub(crate) mod tests;
mod toy;

pub use error::DataError;
pub use estimate::Estimate;
pub(crate) use estimate::grouped;
pub use grid::Grid;
pub use image_density::{ImageDensity, JITTER_PIXELS, Rule};
pub use image_set::{ImageSet, MEMORY_BUDGET};
pub use parts::{Given, HELD_OUT_SHARE, Parts};
pub use pixels::{LogitTransform, MarginalTransform, PixelTransform, SMOOTHING, bits_per_dim, dequantize};
pub use points::{Points, Rows};
pub use split::{Split, subset};
pub use standard::Standardizer;
pub use toy::{ToyDensity, ToyGrid};
