//! What a trained density evaluates: rows of numbers, or a set of images.

use crate::data::{ImageSet, Rows};

/// What [`TrainedFlow::log_prob`](crate::train::TrainedFlow::log_prob) takes: everything that converts to [`Rows`], such
/// as `&rows`, `[[f64; 2]; N]`, `&[Vec<f64>]` or an `ndarray` matrix, and `&ImageSet`.
pub trait IntoRows<'a> {
    /// The rows, or the images.
    #[doc(hidden)]
    fn into_input(self) -> Input<'a>;
}

/// Rows or images.
#[doc(hidden)]
#[derive(Debug)]
pub enum Input<'a> {
    /// Rows in the units of the data; for image sets, pixel values.
    Rows(Rows),
    /// Images, with their classes if they have labels.
    Images(&'a ImageSet),
}

impl<'a, R: Into<Rows>> IntoRows<'a> for R {
    fn into_input(self) -> Input<'a> {
        Input::Rows(self.into())
    }
}

impl<'a> IntoRows<'a> for &'a ImageSet {
    fn into_input(self) -> Input<'a> {
        Input::Images(self)
    }
}
