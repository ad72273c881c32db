//! The affine layer, activations and dropout.

use super::Init;
use crate::array::DType;
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// `y = x W + b`.
    ///
    /// # Shapes and units
    /// x `[rows, in]`, W `[in, out]`, b `[out]`, y `[rows, out]`.
    #[doc(alias = "Dense")]
    pub struct Linear {
        /// W, of shape `[in, out]`; it multiplies rows from the right.
        pub weight: Tensor,
        /// b, of shape `[out]`.
        pub bias: Option<Tensor>,
    }
}

impl Linear {
    /// Weight and bias uniform in `[-1/sqrt(in), 1/sqrt(in))`, f32.
    ///
    /// # References
    /// LeCun et al. (1998), Efficient BackProp, section 4.6; as in most libraries, the interval here is
    /// narrower by a factor of sqrt(3).
    pub fn new(inputs: usize, outputs: usize, key: &Key) -> Linear {
        let bound = Init::Uniform(1.0 / (inputs as f64).sqrt());
        Linear::from_init(inputs, outputs, Init::FanIn, Some(bound), key)
    }

    /// Like [`Linear::new`], without a bias.
    pub fn without_bias(inputs: usize, outputs: usize, key: &Key) -> Linear {
        Linear::from_init(inputs, outputs, Init::FanIn, None, key)
    }

    /// Samples weight and bias from the given distributions, f32.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::Init;
    /// use flowline::nn::prelude::*;
    /// let linear = Linear::from_init(3, 2, Init::GlorotUniform, Some(Init::Zeros), &Key::new(0));
    /// assert_eq!(linear.bias.unwrap().to_vec(), [0.0, 0.0]);
    /// ```
    pub fn from_init(inputs: usize, outputs: usize, weight: Init, bias: Option<Init>, key: &Key) -> Linear {
        let [for_weight, for_bias] = key.split();
        Linear {
            weight: weight.sample([inputs, outputs], &for_weight),
            bias: bias.map(|bias| bias.sample([outputs], &for_bias)),
        }
    }

    /// Length of an input row.
    pub fn inputs(&self) -> usize {
        self.weight.shape()[0]
    }

    /// Length of an output row.
    pub fn outputs(&self) -> usize {
        self.weight.shape()[1]
    }

    /// `x W + b`. With a single input it is an elementwise product, which fuses with its consumers.
    ///
    /// # Panics
    /// When the last axis of x is not `in`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let product = if self.inputs() == 1 && x.shape().last() == Some(&1) {
            x * &self.weight
        } else {
            x.matmul(&self.weight)
        };
        self.add_bias(product)
    }

    /// Applies the layer to `[a, b]` joined along the last axis. b may have a single row for all rows of a;
    /// then `b W_b + bias` is computed once and is hoisted from loops in which b does not change.
    #[track_caller]
    pub(super) fn forward_joined(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let (width, rows) = (a.shape()[1], a.shape()[0]);
        assert!(
            width + b.shape()[1] == self.inputs(),
            "a linear layer with {} inputs got rows of {width} + {} numbers",
            self.inputs(),
            b.shape()[1]
        );
        if b.shape()[0] == rows {
            return self.forward(&Tensor::concat(&[a, b], 1));
        }
        let shared = b.matmul(&self.weight.slice(0, width..self.inputs()));
        a.matmul(&self.weight.slice(0, 0..width)) + self.add_bias(shared)
    }

    fn add_bias(&self, x: Tensor) -> Tensor {
        match &self.bias {
            Some(bias) => x + bias,
            None => x,
        }
    }
}

tree! {
    /// An elementwise function between layers.
    #[derive(Copy, PartialEq, Eq)]
    pub enum Activation {
        /// `tanh x`
        Tanh,
        /// `x / (1 + e^-x)`
        Silu,
        /// `ln(1 + e^x)`
        Softplus,
        /// `max(x, 0)`
        Relu,
        /// `x Phi(x)` for the normal distribution Phi; see [`Tensor::gelu`]
        Gelu,
        /// `x` for positive x, else `e^x - 1`; see [`Tensor::elu`]
        Elu,
        /// `x` for positive x, else `0.01 x`; see [`Tensor::leaky_relu`]
        LeakyRelu,
        /// `1 / (1 + e^-x)`
        Sigmoid,
        /// `x`
        Identity,
    }
}

impl Activation {
    /// Applies the function to each element.
    pub fn apply(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Silu => x.silu(),
            Activation::Softplus => x.softplus(),
            Activation::Relu => x.relu(),
            Activation::Gelu => x.gelu(),
            Activation::Elu => x.elu(1.0),
            Activation::LeakyRelu => x.leaky_relu(0.01),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Identity => x.clone(),
        }
    }
}

/// Zeroes each element with probability `rate` and scales the others by `1 / (1 - rate)`, which keeps the
/// mean.
///
/// # Panics
/// When the rate is not in `[0, 1)`.
///
/// # References
/// Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.
#[track_caller]
pub fn dropout(x: &Tensor, rate: f64, key: &Key) -> Tensor {
    assert!((0.0..1.0).contains(&rate), "a dropout rate must be in [0, 1), got {rate}");
    let dropped = key.uniform(x.shape().clone()).lt(Tensor::scalar(DType::F32, rate));
    dropped.select(&Tensor::scalar(x.dtype(), 0.0), &(x * (1.0 / (1.0 - rate))))
}
