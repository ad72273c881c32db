//! MLPs: affine layers with an activation between them.

use super::velocity_field::{VelocityField, one_hot, time_column};
use super::{Activation, Linear};
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// Affine layers with an activation between them; none after the last.
    #[doc(alias = "Chain")]
    #[doc(alias = "Sequential")]
    pub struct Mlp {
        /// The layers.
        pub layers: Vec<Linear>,
        /// The activation between layers.
        pub activation: Activation,
    }
}

impl Mlp {
    /// Layers with the given sizes, from input to output, sampled in order from `key`.
    ///
    /// # Panics
    /// With fewer than two sizes.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::prelude::*;
    /// use flowline::tensor::extra::num_elements;
    /// let net = Mlp::new([2, 64, 64, 2], Activation::Tanh, &Key::new(0));
    /// assert_eq!(num_elements(&net), 2 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2);
    /// ```
    #[track_caller]
    pub fn new(sizes: impl AsRef<[usize]>, activation: Activation, key: &Key) -> Mlp {
        let sizes = sizes.as_ref();
        assert!(sizes.len() >= 2, "an MLP needs an input and an output size, got {sizes:?}");
        let pairs = sizes.windows(2).zip(0u32..);
        let layers = pairs.map(|(s, i)| Linear::new(s[0], s[1], &key.fold_in(i))).collect();
        Mlp { layers, activation }
    }

    /// Length of an input row.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs()
    }

    /// Length of an output row.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs()
    }

    /// Applies the network to each row of x.
    ///
    /// # Panics
    /// When the last axis of x is not the input size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.behind_first(self.layers[0].forward(x))
    }

    /// Applies the network to `[a, b]` joined, where b may have a single row; see [`Linear::forward_joined`].
    #[track_caller]
    pub(super) fn forward_joined(&self, a: &Tensor, b: &Tensor) -> Tensor {
        self.behind_first(self.layers[0].forward_joined(a, b))
    }

    /// The network with its last `inputs.len()` inputs fixed at these numbers: their product is part of the bias.
    #[cfg(feature = "train")]
    pub(super) fn with_last_inputs(mut self, inputs: &[f64]) -> Mlp {
        let first = &mut self.layers[0];
        let (all, width) = (first.inputs(), first.weight.shape()[1]);
        let left = all - inputs.len();
        let weight = first.weight.to_vec();
        let mut bias = first.bias.as_ref().map_or_else(|| vec![0.0; width], Tensor::to_vec);
        for (x, row) in inputs.iter().zip(weight[left * width..].chunks_exact(width)) {
            bias.iter_mut().zip(row).for_each(|(bias, w)| *bias += x * w);
        }
        let dtype = first.weight.dtype();
        first.weight = Tensor::from_vec([left, width], weight[..left * width].to_vec()).cast(dtype);
        first.bias = Some(Tensor::from_vec([width], bias).cast(dtype));
        self
    }

    fn behind_first(&self, first: Tensor) -> Tensor {
        self.layers[1..].iter().fold(first, |x, layer| layer.forward(&self.activation.apply(&x)))
    }
}

/// `dy/dt = mlp([y, t])`. With as many inputs as outputs, `dy/dt = mlp(y)`; with k inputs more than y and t
/// have, `dy/dt = mlp([y, t, c])`, where c is the one-hot row of one of k classes.
impl VelocityField for Mlp {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let classes = self.num_classes();
        match labels {
            None if classes > 0 => {
                panic!(
                    "this field has {classes} classes: pass labels (flow: `condition_on_classes`, field: `eval_conditional`)"
                )
            }
            None if self.inputs() == self.outputs() => self.forward(y),
            None => self.forward_joined(y, &time_column(t, y)),
            Some(_) if classes == 0 => panic!("this field has no classes, but labels were passed"),
            Some(labels) => {
                let t = time_column(t, y).broadcast_to([y.shape()[0], 1]);
                self.forward_joined(y, &Tensor::concat(&[&t, &one_hot(labels, classes, y)], 1))
            }
        }
    }

    fn num_classes(&self) -> usize {
        self.inputs().saturating_sub(self.outputs() + 1)
    }

    fn dim(&self) -> usize {
        self.outputs()
    }
}
