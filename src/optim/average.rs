//! Averages of weights over the updates.

use crate::array::DType;
use crate::nn::is_fixed;
use crate::tensor::{Tensor, Tree, TreePath};

/// An exponential moving average with a warm start.
///
/// After update n (0 at the first), `a += (1 - d_n) (w - a)` with `d_n = min(decay, (1 + n) / (10 + n))`.
/// It starts at the weights of the model, so at every time it is a weighted mean of weights that were
/// there, and needs no correction of a bias towards zero; the warm start forgets the first ones soon:
/// with decay 0.999 it is in force until n = 8,990, and the mean then spans the last tenth of the updates.
///
/// # References
/// Polyak and Juditsky (1992) for averaging; the warm start is that of TensorFlow's
/// `ExponentialMovingAverage`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema {
    decay: f64,
}

impl Ema {
    /// An average of this decay.
    ///
    /// # Panics
    /// When the decay is not in `[0, 1)`.
    #[track_caller]
    pub fn new(decay: f64) -> Ema {
        assert!(
            (0.0..1.0).contains(&decay),
            "the decay of an average must be in [0, 1), this one is {decay}"
        );
        Ema { decay }
    }

    /// The average after update `n`, an integer tensor: the number of updates made before it. Start from
    /// the weights themselves. Leaves that are not trained are those of the model.
    ///
    /// # Panics
    /// When the two trees differ.
    #[track_caller]
    pub fn update<M: Tree>(&self, average: &M, model: &M, n: &Tensor) -> M {
        let n = n.cast(DType::F64);
        let keep = ((&n + 1.0) / (&n + 10.0)).minimum(&Tensor::scalar(DType::F64, self.decay));
        let share = 1.0 - keep;
        let mut weights = model.leaves().into_iter();
        average.map(&mut TreePath::default(), &mut |path, a| {
            let w = weights.next().expect("the average and the model must be trees of one shape");
            if !w.dtype().is_float() || is_fixed(&path.to_string()) {
                return w;
            }
            a + (&w - a) * share.cast(a.dtype())
        })
    }
}
