//! What of a set of images a learned density needs without them: their size, their classes, how pixels became numbers.

use super::PixelTransformKind;
use serde::{Deserialize, Serialize};

/// The frame of the images that a density was learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImagesFrame {
    /// What the set was called.
    pub name: String,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// 1 for gray, 3 for colors.
    pub channels: usize,
    /// How gray levels became numbers.
    pub pixels: PixelTransformKind,
    /// Number of classes, where images have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// A number that identifies sets.
    pub fingerprint: String,
}

impl ImagesFrame {
    /// Height, width, channels.
    pub fn size(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Coordinates of an image.
    pub fn dim(&self) -> usize {
        self.height * self.width * self.channels
    }
}
