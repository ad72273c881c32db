//! The gated recurrent unit (GRU).

use super::{Init, Linear};
use crate::array::DType;
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// A gated recurrent unit: it maps an input x and a state h to the next state,
    /// ```text
    /// r = sigmoid(x W_r + b_r + h U_r + c_r)
    /// z = sigmoid(x W_z + b_z + h U_z + c_z)
    /// n = tanh(x W_n + b_n + r * (h U_n + c_n))
    /// h' = (1 - z) * n + z * h
    /// ```
    /// The reset gate acts after the product with U_n, as in PyTorch, cuDNN, Equinox and Keras with
    /// `reset_after`, so the three products with h are computed as one. The first paper applies the gate to h,
    /// before the product; a later version by its authors swaps z and 1 - z.
    ///
    /// # Shapes and units
    /// x `[rows, in]`, h `[rows, hidden]`. The three parts are concatenated in the order r, z, n: `input` is
    /// `[in, 3 hidden]`, `state` is `[hidden, 3 hidden]`.
    ///
    /// # References
    /// Cho et al. (2014), Learning phrase representations using RNN encoder-decoder for statistical machine
    /// translation, eq. 5-8; Chung et al. (2014), Empirical evaluation of gated recurrent neural networks on
    /// sequence modeling, section 3.2.
    pub struct GruCell {
        /// W and b.
        pub input: Linear,
        /// U and c.
        pub state: Linear,
    }
}

impl GruCell {
    /// All weights and biases uniform in `[-1/sqrt(hidden), 1/sqrt(hidden))`, as in PyTorch and Equinox.
    pub fn new(inputs: usize, hidden: usize, key: &Key) -> GruCell {
        let [input, state] = key.split();
        let init = Init::Uniform(1.0 / (hidden as f64).sqrt());
        GruCell {
            input: Linear::from_init(inputs, 3 * hidden, init, Some(init), &input),
            state: Linear::from_init(hidden, 3 * hidden, init, Some(init), &state),
        }
    }

    /// Length of a row of x.
    pub fn inputs(&self) -> usize {
        self.input.inputs()
    }

    /// Length of a row of h.
    pub fn hidden(&self) -> usize {
        self.state.inputs()
    }

    /// A zero state.
    pub fn zeros(&self, rows: usize, dtype: DType) -> Tensor {
        Tensor::full(dtype, [rows, self.hidden()], 0.0)
    }

    /// The next state of each row.
    ///
    /// # Panics
    /// When the shapes do not fit.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, h: &Tensor) -> Tensor {
        self.advance(&self.input.forward(x), h)
    }

    /// All states of a sequence x `[rows, time, in]` starting at h `[rows, hidden]`: `[rows, time, hidden]`.
    /// The products with x are computed as one. The loop over time is unrolled, so the program grows with the length
    /// of the sequence.
    ///
    /// # Panics
    /// When the shapes do not fit, or the sequence is empty.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::prelude::*;
    /// let cell = GruCell::new(3, 8, &Key::new(0));
    /// let states = cell.unroll(&Tensor::zeros([5, 10, 3]), &Tensor::zeros([5, 8]));
    /// assert_eq!(**states.shape(), [5, 10, 8]);
    /// ```
    #[track_caller]
    pub fn unroll(&self, x: &Tensor, h: &Tensor) -> Tensor {
        assert!(
            x.rank() == 3 && x.shape()[1] > 0,
            "a sequence must be [rows, time, in] with at least one step, got {}",
            x.shape()
        );
        let (rows, steps) = (x.shape()[0], x.shape()[1]);
        let (projected, mut h) = (self.input.forward(x), h.clone());
        let states: Vec<Tensor> = (0..steps)
            .map(|k| {
                let now = projected.slice(1, k..k + 1).reshape([rows, 3 * self.hidden()]);
                h = self.advance(&now, &h);
                h.expand_dims(1)
            })
            .collect();
        Tensor::concat(&states.iter().collect::<Vec<_>>(), 1)
    }

    /// The next state from `x W + b`.
    #[track_caller]
    fn advance(&self, from_x: &Tensor, h: &Tensor) -> Tensor {
        let (n, from_h) = (self.hidden(), self.state.forward(h));
        let part = |x: &Tensor, k: usize| x.slice(1, k * n..(k + 1) * n);
        let gate = |k| (part(from_x, k) + part(&from_h, k)).sigmoid();
        let (reset, keep) = (gate(0), gate(1));
        let new = (part(from_x, 2) + reset * part(&from_h, 2)).tanh();
        &new + keep * (h - &new)
    }
}
