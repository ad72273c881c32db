//! The field of the first continuous flows: affine layers that time scales and shifts.

use super::Linear;
use super::drift::{VelocityField, time_column};
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// `y -> (y W + b) * sigmoid(t g + c) + t h`.
    ///
    /// # References
    /// Grathwohl et al. (2019), FFJORD, its code's `ConcatSquashLinear`.
    pub struct ConcatSquashLinear {
        /// y W + b.
        pub linear: Linear,
        /// t g + c, of one input.
        pub gate: Linear,
        /// t h, of one input, without a bias.
        pub shift: Linear,
    }
}

impl ConcatSquashLinear {
    /// Each part as [`Linear::new`] draws it.
    pub fn new(inputs: usize, outputs: usize, key: &Key) -> ConcatSquashLinear {
        let [linear, gate, shift] = key.split();
        ConcatSquashLinear {
            linear: Linear::new(inputs, outputs, &linear),
            gate: Linear::new(1, outputs, &gate),
            shift: Linear::without_bias(1, outputs, &shift),
        }
    }

    /// The layer of each row of y, for t of shape `[1, 1]` or `[rows, 1]`.
    #[track_caller]
    pub fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.linear.forward(y) * self.gate.forward(t).sigmoid() + self.shift.forward(t)
    }
}

tree! {
    /// [`ConcatSquashLinear`]s with tanh between them.
    ///
    /// With sizes 2-64-64-64-2 it has 9,224 weights.
    pub struct ConcatSquash {
        /// The layers.
        pub layers: Vec<ConcatSquashLinear>,
    }
}

impl ConcatSquash {
    /// Layers from `dim` over the hidden sizes back to `dim`, drawn in order from `key`.
    pub fn new(dim: usize, hidden: impl AsRef<[usize]>, key: &Key) -> ConcatSquash {
        let sizes = [&[dim], hidden.as_ref(), &[dim]].concat();
        let pairs = sizes.windows(2).zip(0u32..);
        let layers = pairs.map(|(s, i)| ConcatSquashLinear::new(s[0], s[1], &key.fold_in(i))).collect();
        ConcatSquash { layers }
    }
}

impl VelocityField for ConcatSquash {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        let t = time_column(t, y);
        let first = self.layers[0].forward(&t, y);
        self.layers[1..].iter().fold(first, |y, layer| layer.forward(&t, &y.tanh()))
    }

    fn dim(&self) -> usize {
        self.layers[0].linear.inputs()
    }
}
