//! Moving averages of the weights.

use crate::array::DType;
use crate::nn::is_fixed;
use crate::tensor::{Tensor, Tree, TreePath};

/// An exponential moving average (EMA) with warmup.
///
/// After update n, counted from 0, `a += (1 - d_n) (w - a)` with `d_n = min(decay, (1 + n) / (10 + n))`. The
/// average starts at the model's weights, so it is always a weighted mean of past weights and needs no bias
/// correction. The warmup soon forgets the first weights: it lasts while `d_n` is below the decay (until n =
/// 8,990 with decay 0.999), and during it the mean spans about the last tenth of the updates.
///
/// # References
/// Polyak and Juditsky (1992) for averaging. The warmup is the one in TensorFlow's
/// `ExponentialMovingAverage`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema {
    decay: f64,
}

impl Ema {
    /// An average with this decay.
    ///
    /// # Panics
    /// When the decay is not in `[0, 1)`.
    #[track_caller]
    pub fn new(decay: f64) -> Ema {
        assert!((0.0..1.0).contains(&decay), "the decay of an average must be in [0, 1), got {decay}");
        Ema { decay }
    }

    /// Returns the average after an update. `n` is the number of earlier updates, an integer tensor. Start
    /// from a copy of the weights. Leaves that are not trained are copied from the model.
    ///
    /// # Panics
    /// When `model` has fewer leaves than `average`, or two leaves have shapes that do not broadcast.
    #[track_caller]
    pub fn update<M: Tree>(&self, average: &M, model: &M, n: &Tensor) -> M {
        let n = n.cast(DType::F64);
        let keep = ((&n + 1.0) / (&n + 10.0)).minimum(&Tensor::scalar(DType::F64, self.decay));
        let share = 1.0 - keep;
        let mut weights = model.leaves().into_iter();
        average.map(&mut TreePath::default(), &mut |path, a| {
            let w = weights.next().expect("the average and the model must have the same tree structure");
            if !w.dtype().is_float() || is_fixed(&path.to_string()) {
                return w;
            }
            a + (&w - a) * share.cast(a.dtype())
        })
    }
}
