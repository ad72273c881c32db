//! The frame of an image set: size, classes and pixel transform.

use super::PixelTransformKind;
use serde::{Deserialize, Serialize};

/// The frame of an image set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImagesFrame {
    /// The name of the set.
    pub name: String,
    /// Image height.
    pub height: usize,
    /// Image width.
    pub width: usize,
    /// 1 for gray, 3 for colors.
    pub channels: usize,
    /// The pixel transform.
    pub pixels: PixelTransformKind,
    /// Number of classes, if images have labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// A hash of the set and of separate validation images.
    pub fingerprint: String,
}

impl ImagesFrame {
    /// Height, width, channels.
    pub fn size(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Number of coordinates: height x width x channels.
    pub fn dim(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether images of this frame have `dim` coordinates. The sides of a damaged file may have any product.
    pub(crate) fn has_dim(&self, dim: usize) -> bool {
        let area = self.height.checked_mul(self.width);
        area.and_then(|area| area.checked_mul(self.channels)) == Some(dim)
    }
}
