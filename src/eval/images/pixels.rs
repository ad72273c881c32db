//! The pixel transform in a checkpoint: its name, and tensors beside the weights.

use crate::array::DType;
use crate::data::{DataError, ImageSet, LogitTransform, MarginalTransform, PixelTransform, SMOOTHING};
use crate::names::names;
use crate::tensor::{Key, Tensor};
use crate::tree;

/// The smallest distance of the logit's argument from 0 and 1.
const ALPHA: f64 = 1e-6;
/// Combined with a run's seed, so that this use has its own random numbers.
const LOGIT_STREAM: u64 = 0x70f5_0f7e_57da_7a11;

names! {
    /// The transform from pixel values to the coordinates of the flow.
    PixelTransformKind {
        /// Each pixel mapped through its own distribution ([`MarginalTransform`]).
        Marginals = "marginals",
        /// Each pixel mapped through the logit and standardized ([`LogitTransform`]).
        Logit = "logit",
    }
}

impl PixelTransformKind {
    /// The transform of this kind, fitted to the images with these indices.
    ///
    /// # Errors
    /// As [`ImageSet::rows`].
    pub(crate) fn fit(
        self,
        images: &ImageSet,
        rows: &[usize],
        seed: u64,
    ) -> Result<PixelTransform, DataError> {
        Ok(match self {
            PixelTransformKind::Marginals => MarginalTransform::fit(images, rows)?.into(),
            PixelTransformKind::Logit => {
                let mut rng = Key::new(seed ^ LOGIT_STREAM).rng();
                LogitTransform::fit(images, rows, ALPHA, &mut rng)?.into()
            }
        })
    }
}

tree! {
/// A [`PixelTransform`] as tensors.
pub enum PixelTables {
    /// [`MarginalTransform`].
    Marginals {
        /// Counts of each value per pixel, u32 `[dim, 256]`.
        counts: Tensor,
    },
    /// [`LogitTransform`].
    Logit {
        /// The smallest distance of the logit's argument from 0 and 1, f64.
        alpha: Tensor,
        /// Mean logit per pixel, f64 `[dim]`.
        mean: Tensor,
        /// Standard deviation of the logit per pixel, f64 `[dim]`.
        sd: Tensor,
    },
}
}

impl PixelTables {
    /// The tables of a transform.
    pub fn of(transform: &PixelTransform) -> PixelTables {
        match transform {
            PixelTransform::Marginals(marginals) => {
                let counts = Tensor::from_vec([marginals.dim(), 256], marginals.counts().to_vec());
                PixelTables::Marginals { counts }
            }
            PixelTransform::Logit(logit) => PixelTables::Logit {
                alpha: Tensor::from(logit.alpha),
                mean: Tensor::from(logit.mean.clone()),
                sd: Tensor::from(logit.std.clone()),
            },
        }
    }

    /// Tables of zeros, with the shapes of a transform of this kind, to be filled from a file.
    pub(crate) fn like(kind: PixelTransformKind, dim: usize) -> PixelTables {
        let zeros = |dtype, shape: &[usize]| Tensor::full(dtype, shape.to_vec(), 0.0);
        match kind {
            PixelTransformKind::Marginals => {
                PixelTables::Marginals { counts: zeros(DType::U32, &[dim, 256]) }
            }
            PixelTransformKind::Logit => PixelTables::Logit {
                alpha: Tensor::from(0.0),
                mean: zeros(DType::F64, &[dim]),
                sd: zeros(DType::F64, &[dim]),
            },
        }
    }

    /// The transform that the tables describe.
    pub fn transform(&self) -> PixelTransform {
        match self {
            PixelTables::Marginals { counts } => {
                let counts: Vec<u32> = counts.to_vec().into_iter().map(|c| c as u32).collect();
                MarginalTransform::from_counts(&counts, SMOOTHING).into()
            }
            PixelTables::Logit { alpha, mean, sd } => {
                LogitTransform { alpha: alpha.item(), mean: mean.to_vec(), std: sd.to_vec() }.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_come_back_from_their_tables() {
        let counts: Vec<u32> = (0..2 * 256).map(|i| (i * 7 % 31) as u32).collect();
        let logit = LogitTransform { alpha: 0.01, mean: vec![0.5, -1.0], std: vec![2.0, 0.25] };
        for transform in
            [MarginalTransform::from_counts(&counts, SMOOTHING).into(), PixelTransform::Logit(logit)]
        {
            assert_eq!(PixelTables::of(&transform).transform(), transform);
        }
    }
}
