//! An MLP on fixed Fourier features of y and t, which learns fine structure.
//!
//! An MLP on plain coordinates learns low frequencies first and high ones slowly; sines and cosines of fixed
//! projections supply the high ones (Tancik et al. 2020). The frequencies are not trained: their number
//! matters more than their exact values, and a field that can raise them becomes stiff.

use super::velocity_field::{VelocityField, one_hot, time_column};
use super::{Activation, Buffer, Mlp};
use crate::array::{Array, DType};
use crate::tensor::{Key, Tensor};
use crate::tree;
use std::f64::consts::PI;

/// Time frequencies, in half cycles over t in [0, 1].
const TIME_FREQUENCIES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

tree! {
    /// `dy/dt = mlp([y, g sin(y B), g cos(y B), sin(pi t (1, 2, 4, 8)), cos(pi t (1, 2, 4, 8)), c])`.
    ///
    /// c is the one-hot row of a class, if there are [classes](FourierMlp::with_classes). g is 1 unless there is
    /// [damping](FourierMlp::damping).
    ///
    /// # Shapes and units
    /// y `[rows, dim]`, B `[dim, features]` in radians per unit of y; the MLP takes
    /// `dim + 2 features + 8` inputs, and one per class.
    ///
    /// # References
    /// Tancik et al. (2020), Fourier features let networks learn high frequency functions in low
    /// dimensional domains, eq. 5.
    pub struct FourierMlp {
        /// B, not trained.
        pub frequencies: Buffer,
        /// The network, with SiLU between its layers.
        pub mlp: Mlp,
        /// The strength of the damping, 0 for none.
        pub damping: f64,
    }
}

impl FourierMlp {
    /// Hidden layers with the given sizes, on the given frequencies `[dim, features]`.
    ///
    /// # Panics
    /// When the frequencies are not a matrix.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::golden_frequencies;
    /// use flowline::nn::prelude::*;
    /// use flowline::tensor::extra::num_elements;
    /// let net = FourierMlp::new(golden_frequencies(24, 2.6), [80, 80, 80], &Key::new(0));
    /// assert_eq!((net.dim(), num_elements(&net)), (2, 17_890));
    /// ```
    #[track_caller]
    pub fn new(frequencies: Tensor, hidden: impl AsRef<[usize]>, key: &Key) -> FourierMlp {
        FourierMlp::with_classes(frequencies, hidden, 0, key)
    }

    /// A field of rows with a class each: as [`new`](FourierMlp::new), with an input per class.
    ///
    /// # Panics
    /// When the frequencies are not a matrix.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::Cnf;
    /// use flowline::nn::*;
    /// use flowline::nn::extra::golden_frequencies;
    /// use flowline::nn::prelude::*;
    /// let net = FourierMlp::with_classes(golden_frequencies(24, 2.6), [80, 80], 3, &Key::new(0));
    /// let labels = Tensor::from([[2.0], [0.0]]);
    /// let flow = Cnf::new(net).condition_on_classes(&labels);
    /// assert_eq!(flow.sample(2, &Key::new(1))?.shape()[..], [2, 2]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn with_classes(
        frequencies: Tensor,
        hidden: impl AsRef<[usize]>,
        classes: usize,
        key: &Key,
    ) -> FourierMlp {
        assert!(
            frequencies.rank() == 2,
            "frequencies must be a matrix [dim, features], got {}",
            frequencies.shape()
        );
        let (dim, features) = (frequencies.shape()[0], frequencies.shape()[1]);
        let inputs = dim + 2 * features + 2 * TIME_FREQUENCIES.len() + classes;
        let sizes = [&[inputs], hidden.as_ref(), &[dim]].concat();
        let mlp = Mlp::new(sizes, Activation::Silu, key);
        FourierMlp { frequencies: Buffer::new(frequencies), mlp, damping: 0.0 }
    }

    /// Multiplies the features of a frequency f, a column of B, by
    /// `g = exp(-(damping |f| (1 - t) / r)^2 / 2)`, `r^2 = (1 - t)^2 + t^2`.
    ///
    /// In a [`Preconditioned`](super::Preconditioned) field on a straight path, y is `(t x1 + (1 - t) x0) / r`, so the
    /// mean of `sin(y f)` over the noise x0 is `g sin(x1 f t / r)` with a damping of 1: a feature has influence only at
    /// times at which the noise has left something of it. Undamped high frequencies disturb the field at early times.
    pub fn damping(mut self, damping: f64) -> FourierMlp {
        self.damping = damping;
        self
    }

    /// The field of the rows of one class, which is no input of it.
    ///
    /// # Panics
    /// When there is no such class.
    #[track_caller]
    #[cfg(feature = "train")]
    pub(crate) fn of_class(mut self, class: usize) -> FourierMlp {
        let classes = self.num_classes();
        assert!(class < classes, "class {class} of a field of {classes} classes");
        let inputs: Vec<f64> = (0..classes).map(|k| f64::from(u8::from(k == class))).collect();
        self.mlp = self.mlp.with_last_inputs(&inputs);
        self
    }

    /// The factor of each feature, `[1, features]` or `[rows, features]`.
    fn factors(&self, t: &Tensor, frequencies: &Tensor) -> Tensor {
        let left = 1.0 - t;
        let square = left.square() / (left.square() + t.square());
        (square * (frequencies.square().sum_axes(&[0]).expand_dims(0) * (-0.5 * self.damping.powi(2)))).exp()
    }
}

impl VelocityField for FourierMlp {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let classes = self.num_classes();
        assert!(labels.is_none() || classes > 0, "this field has no classes, but labels were passed");
        assert!(
            labels.is_some() || classes == 0,
            "this field has {classes} classes: pass labels (flow: `condition_on_classes`, field: `eval_conditional`)"
        );
        let (t, frequencies) = (time_column(t, y), self.frequencies.get());
        let angle = y.matmul(&frequencies);
        let (mut sin, mut cos) = (angle.sin(), angle.cos());
        if self.damping != 0.0 {
            let factors = self.factors(&t, &frequencies.cast(y.dtype()));
            (sin, cos) = (sin * &factors, cos * &factors);
        }
        let place = Tensor::concat(&[y, &sin, &cos], 1);
        // One scalar per frequency, not one array: a derivative records this function again, and equal scalars are
        // merged.
        let turns = TIME_FREQUENCIES.map(|f| &t * (PI * f));
        let turns = Tensor::concat(&turns.each_ref(), 1);
        let time = Tensor::concat(&[&turns.sin(), &turns.cos()], 1);
        let Some(labels) = labels else { return self.mlp.forward_joined(&place, &time) };
        let time = time.broadcast_to([y.shape()[0], time.shape()[1]]);
        self.mlp.forward_joined(&place, &Tensor::concat(&[&time, &one_hot(labels, classes, y)], 1))
    }

    fn num_classes(&self) -> usize {
        let (dim, features) = (self.dim(), self.frequencies.get().shape()[1]);
        self.mlp.inputs().saturating_sub(dim + 2 * features + 2 * TIME_FREQUENCIES.len())
    }

    fn dim(&self) -> usize {
        self.mlp.outputs()
    }
}

/// Frequencies in the plane. Their directions are a golden angle `pi (3 - sqrt 5)` apart, so that any number of them
/// is evenly spread. Their lengths grow geometrically from 1 to `e^log_max`. Shape `[2, features]`, f32.
pub fn golden_frequencies(features: usize, log_max: f64) -> Tensor {
    let angle = |j: usize| j as f64 * PI * (3.0 - 5.0_f64.sqrt());
    let row = |f: fn(f64) -> f64| (0..features).map(move |j| length(j, features, log_max) * f(angle(j)));
    numbers(DType::F32, [2, features], row(f64::cos).chain(row(f64::sin)))
}

/// Frequencies in any dimension: standard normal samples times factors that grow geometrically from 1 to
/// `e^log_max`. Shape `[dim, features]`, f32.
pub fn normal_frequencies(dim: usize, features: usize, log_max: f64, key: &Key) -> Tensor {
    let lengths = (0..features).map(|j| length(j, features, log_max));
    key.normal([dim, features]) * numbers(DType::F32, [1, features], lengths)
}

/// Element j of a geometric sequence from 1 to `e^log_max`.
fn length(j: usize, features: usize, log_max: f64) -> f64 {
    (log_max * j as f64 / features.saturating_sub(1).max(1) as f64).exp()
}

/// Numbers as a constant with the given element type.
fn numbers<const N: usize>(dtype: DType, shape: [usize; N], x: impl IntoIterator<Item = f64>) -> Tensor {
    let mut a = Array::zeros(dtype, shape);
    x.into_iter().enumerate().for_each(|(i, x)| a.data_mut().set_f64(i, x));
    Tensor::from_array(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;

    /// Fields of 1 to 4 coordinates and 1 to 5 classes, at a common time or a time per row.
    #[test]
    fn the_field_of_a_class_is_the_field_with_this_label() {
        let (mut draw, mut found) = (Draw(4), [0; 2]);
        for seed in 0..12 {
            let (dim, classes, rows) = (1 + draw.below(4), 1 + draw.below(5), 1 + draw.below(6));
            let [net, freq, place] = Key::new(seed).split();
            let frequencies = normal_frequencies(dim, 3, 1.0, &freq);
            let net = FourierMlp::with_classes(frequencies, [7, 5], classes, &net).damping(draw.unit());
            assert_eq!((net.num_classes(), net.dim()), (classes, dim));
            let (y, class) = (place.normal([rows, dim]), draw.below(classes));
            let t = match draw.coin() {
                true => Tensor::from(0.3_f32),
                false => Tensor::full(DType::F32, [rows, 1], 0.7),
            };
            found[usize::from(t.size() > 1)] += 1;
            let labels = Tensor::full(DType::F32, [rows, 1], class as f64);
            let of_class = net.clone().of_class(class);
            assert_eq!(of_class.num_classes(), 0);
            let [a, b] =
                [net.eval_conditional(&t, &y, Some(&labels)), of_class.eval(&t, &y)].map(|x| x.to_vec());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
        }
        assert!(found.iter().all(|&count| count > 1), "{found:?}");
    }
}
