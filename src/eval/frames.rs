//! The frames of any kind of data.

use super::{ImageFrame, ImagesFrame, PointsFrame};
use crate::data::Standardizer;
use crate::heatmap::{ColorScale, Heatmap};
use serde::{Deserialize, Serialize};

/// The frames of the training data, stored in checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Frames {
    /// The image's size, units and entropy; for points in the plane, the window of figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageFrame>,
    /// Units and entropy of points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<PointsFrame>,
    /// Size and pixel transform of an image set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesFrame>,
}

impl Frames {
    /// The labels of the axes over the plane: the columns of points, or pixels.
    pub fn axis_names(&self) -> [String; 2] {
        match &self.points {
            Some(points) if points.columns.len() == 2 => [0, 1].map(|a| points.columns[a].clone()),
            _ => ["x (pixels)", "y (pixels)"].map(str::to_owned),
        }
    }

    /// The transform between standardized coordinates and the coordinates of the data: pixels, or the units
    /// of points. For image sets, it is the identity of `dim` coordinates.
    pub fn standard(&self, dim: usize) -> Standardizer {
        match (&self.points, &self.image) {
            (Some(points), _) => points.standard(),
            (None, Some(image)) => {
                Standardizer { mean: image.mean.to_vec(), std: image.std.to_vec(), factor: Vec::new() }
            }
            (None, None) => Standardizer { mean: vec![0.0; dim], std: vec![1.0; dim], factor: Vec::new() },
        }
    }

    /// Entropy of the target density, if known, in the coordinates in which NLLs are reported: standardized for
    /// an image, the units of the data for points.
    pub fn entropy_nats(&self) -> Option<f64> {
        match (&self.points, &self.image) {
            (Some(points), _) => points.entropy_nats,
            (None, image) => image.as_ref().map(|image| image.entropy_nats),
        }
    }

    /// The color scale for a figure of a learned density: that of the target density, if known. For points
    /// from a file it is that of the learned density, because a few high bins would determine the scale of a
    /// histogram.
    pub fn color_scale(&self, learned: &Heatmap) -> ColorScale {
        let known = self.image.as_ref().filter(|_| self.entropy_nats().is_some());
        known.map_or_else(|| ColorScale::of(learned), ImageFrame::scale)
    }

    /// Added to an NLL in standardized coordinates for reporting: `sum ln std + sum ln L_ii` for points, 0 for other data.
    pub(crate) fn reported_nats(&self) -> f64 {
        self.points.as_ref().map_or(0.0, |points| -points.standard().log_jacobian())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageDensity, Points};
    use crate::heatmap::Extent;

    #[test]
    fn a_density_learned_from_a_file_has_its_own_color_scale() {
        let learned =
            Heatmap { values: &[0.5; 4], rows: 2, cols: 2, frame: Extent { x: [0.0, 1.0], y: [0.0, 1.0] } };
        let image = ImageFrame::of(&ImageDensity::embedded());
        let of_image = Frames { image: Some(image.clone()), ..Frames::default() };
        assert_eq!(of_image.color_scale(&learned), image.scale());
        let points = Points::from_rows(vec![[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]).unwrap();
        let points = PointsFrame::of(&points, String::new());
        let of_points = Frames { points: Some(points), ..of_image };
        assert_eq!(of_points.color_scale(&learned), ColorScale::of(&learned));
    }
}
