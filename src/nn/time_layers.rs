//! Time-dependent affine layers, and networks of them.
//!
//! FFJORD's code names its layers by how t enters. Here each layer is a tree that implements one trait, and one
//! network, [`TimeMlp`], works with all of them: `ConcatSquash`, `ConcatMlp`, `SquashMlp` and `BlendMlp` are
//! aliases of it. If t is one number, terms that do not depend on y have a single row and are hoisted from
//! loops in which t does not change.
//!
//! # References
//! Grathwohl et al. (2019), FFJORD: free-form continuous dynamics for scalable reversible generative models,
//! section 4.1 and appendix B; the layers "concat", "squash", "blend" and "concatsquash" of its code.

use super::velocity_field::{VelocityField, time_column};
use super::{Activation, Linear};
use crate::tensor::{Key, Tensor, Tree};
use crate::tree;

/// An affine layer of y that depends on t.
pub trait TimeLayer: Tree {
    /// Samples each part as in [`Linear::new`].
    fn new(inputs: usize, outputs: usize, key: &Key) -> Self;

    /// Length of a row of y.
    fn inputs(&self) -> usize;

    /// Applies the layer to each row of y `[rows, in]`, for t of shape `[1, 1]` or `[rows, 1]`.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor;
}

tree! {
    /// `y -> [y, t] W + b`.
    ///
    /// # Shapes and units
    /// y `[rows, in]`, W `[in + 1, out]`, b `[out]`.
    pub struct ConcatLinear {
        /// W and b; the last row of W multiplies t.
        pub linear: Linear,
    }
}

impl TimeLayer for ConcatLinear {
    fn new(inputs: usize, outputs: usize, key: &Key) -> ConcatLinear {
        ConcatLinear { linear: Linear::new(inputs + 1, outputs, key) }
    }

    fn inputs(&self) -> usize {
        self.linear.inputs() - 1
    }

    #[track_caller]
    fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.linear.forward_joined(y, t)
    }
}

tree! {
    /// `y -> (y W + b) * sigmoid(t g + c)`.
    ///
    /// # Shapes and units
    /// y `[rows, in]`, W `[in, out]`, b, g and c `[out]`.
    pub struct SquashLinear {
        /// y W + b.
        pub linear: Linear,
        /// t g + c, with one input.
        pub gate: Linear,
    }
}

impl TimeLayer for SquashLinear {
    fn new(inputs: usize, outputs: usize, key: &Key) -> SquashLinear {
        let [linear, gate] = key.split();
        SquashLinear { linear: Linear::new(inputs, outputs, &linear), gate: Linear::new(1, outputs, &gate) }
    }

    fn inputs(&self) -> usize {
        self.linear.inputs()
    }

    #[track_caller]
    fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.linear.forward(y) * self.gate.forward(t).sigmoid()
    }
}

tree! {
    /// `y -> (1 - t) (y W0 + b0) + t (y W1 + b1)`: linear interpolation between two layers.
    ///
    /// # Shapes and units
    /// y `[rows, in]`, W0 and W1 `[in, out]`, b0 and b1 `[out]`.
    pub struct BlendLinear {
        /// y W0 + b0, the layer at t = 0.
        pub at_zero: Linear,
        /// y W1 + b1, the layer at t = 1.
        pub at_one: Linear,
    }
}

impl TimeLayer for BlendLinear {
    fn new(inputs: usize, outputs: usize, key: &Key) -> BlendLinear {
        let [zero, one] = key.split();
        BlendLinear {
            at_zero: Linear::new(inputs, outputs, &zero),
            at_one: Linear::new(inputs, outputs, &one),
        }
    }

    fn inputs(&self) -> usize {
        self.at_zero.inputs()
    }

    #[track_caller]
    fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor {
        let zero = self.at_zero.forward(y);
        &zero + (self.at_one.forward(y) - &zero) * t
    }
}

tree! {
    /// `y -> (y W + b) * sigmoid(t g + c) + t h`.
    ///
    /// # Shapes and units
    /// y `[rows, in]`, W `[in, out]`, b, g, c and h `[out]`.
    ///
    /// # References
    /// Grathwohl et al. (2019), FFJORD; `ConcatSquashLinear` in its code.
    pub struct ConcatSquashLinear {
        /// y W + b.
        pub linear: Linear,
        /// t g + c, with one input.
        pub gate: Linear,
        /// t h, with one input and no bias.
        pub shift: Linear,
    }
}

impl TimeLayer for ConcatSquashLinear {
    fn new(inputs: usize, outputs: usize, key: &Key) -> ConcatSquashLinear {
        let [linear, gate, shift] = key.split();
        ConcatSquashLinear {
            linear: Linear::new(inputs, outputs, &linear),
            gate: Linear::new(1, outputs, &gate),
            shift: Linear::without_bias(1, outputs, &shift),
        }
    }

    fn inputs(&self) -> usize {
        self.linear.inputs()
    }

    #[track_caller]
    fn forward(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.linear.forward(y) * self.gate.forward(t).sigmoid() + self.shift.forward(t)
    }
}

tree! {
    /// [`TimeLayer`]s with an activation between them, none after the last: a vector field `dy/dt = f(t, y)`.
    pub struct TimeMlp<L: TimeLayer> {
        /// The layers.
        pub layers: Vec<L>,
        /// The activation between layers.
        pub activation: Activation,
    }
}

/// Layers that t scales and shifts: FFJORD's network. With sizes 2-64-64-64-2 it has 9,224 weights.
pub type ConcatSquash = TimeMlp<ConcatSquashLinear>;
/// Layers with t as an additional input.
pub type ConcatMlp = TimeMlp<ConcatLinear>;
/// Layers that t scales.
pub type SquashMlp = TimeMlp<SquashLinear>;
/// Layers that t interpolates.
pub type BlendMlp = TimeMlp<BlendLinear>;

impl<L: TimeLayer> TimeMlp<L> {
    /// Layers from `dim` through the hidden sizes back to `dim`, sampled in order from `key`, with tanh
    /// between them.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::BlendMlp;
    /// use flowline::nn::prelude::*;
    /// let field = BlendMlp::new(2, [16, 16], &Key::new(0)).activation(Activation::Softplus);
    /// let velocity = field.eval(&Tensor::from(0.5), &Tensor::zeros([5, 2]));
    /// assert_eq!(**velocity.shape(), [5, 2]);
    /// ```
    pub fn new(dim: usize, hidden: impl AsRef<[usize]>, key: &Key) -> TimeMlp<L> {
        let sizes = [&[dim], hidden.as_ref(), &[dim]].concat();
        let pairs = sizes.windows(2).zip(0u32..);
        let layers = pairs.map(|(s, i)| L::new(s[0], s[1], &key.fold_in(i))).collect();
        TimeMlp { layers, activation: Activation::Tanh }
    }

    /// Sets the activation between the layers.
    pub fn activation(mut self, activation: Activation) -> TimeMlp<L> {
        self.activation = activation;
        self
    }
}

impl<L: TimeLayer> VelocityField for TimeMlp<L> {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        let t = time_column(t, y);
        let first = self.layers[0].forward(&t, y);
        self.layers[1..].iter().fold(first, |y, layer| layer.forward(&t, &self.activation.apply(&y)))
    }

    fn dim(&self) -> usize {
        self.layers[0].inputs()
    }
}
